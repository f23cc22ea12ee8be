/* Retargets any bytes as a code object. A result that is accepted may differ from the input only in the machine and in
 * the last characters of the target's name. */
#include <stdlib.h>
#include <string.h>

#include "kernel/loader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  memcpy(copy, data, size);
  rdna_status status = rdna__retarget(copy, size, "gfx1100", "gfx1101");
  size_t changed = 0;
  for (size_t i = 0; i < size; i++) changed += copy[i] != data[i];
  if (status == RDNA_OK ? changed != 2 : changed != 0) abort();
  free(copy);
  return 0;
}
