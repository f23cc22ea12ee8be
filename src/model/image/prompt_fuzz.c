/* Parses prompts that are the input. Pieces lie in the prompt's own text, side by side, and weigh finite numbers unless
 * the text says very large ones. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__prompt prompt;
  char *text = malloc(size + 1);
  if (!text) return 0;
  if (size) memcpy(text, data, size);
  if (rdna__prompt_parse(text, size, &prompt) != RDNA_OK) abort();
  const char *at = prompt.text;
  for (size_t i = 0; i < prompt.count; i++) {
    const rdna__prompt_piece *piece = &prompt.pieces[i];
    if (piece->text != at || (piece->breaks && piece->size)) abort();
    at += piece->size;
    if (isnan(piece->weight) && size < 64) abort();
  }
  if ((size_t)(at - prompt.text) > size) abort();
  rdna__prompt_deinit(&prompt);
  free(text);
  return 0;
}
