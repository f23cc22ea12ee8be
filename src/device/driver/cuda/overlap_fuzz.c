/* Any text: rewritten or left alone; what is rewritten holds the text in order and can be rewritten again. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver/cuda/overlap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char head[] = ".version 7.8\n.target sm_80\n";
  char *text = malloc(sizeof head + size), *once = NULL, *twice = NULL;
  if (text == NULL) return 0;
  bool whole = size > 0 && data[0] % 2 == 0; /* half of them get past the first checks */
  size_t skip = whole ? sizeof head - 1 : 0;
  memcpy(text, head, skip);
  memcpy(text + skip, data, size);
  text[skip + size] = '\0';
  if (rdna__ptx_with_waits(text, &once) == RDNA_OK && once != NULL) {
    if (strlen(once) <= strlen(text) || strstr(once, "griddepcontrol.wait;") == NULL) abort();
    if (rdna__ptx_with_waits(once, &twice) != RDNA_OK || twice == NULL) abort();
  }
  free(text);
  free(once);
  free(twice);
  return 0;
}
