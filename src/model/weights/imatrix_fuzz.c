/* Importance matrices of both forms: any bytes give a sentence, or means that are numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/weights/imatrix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  void *copy = aligned_alloc(8, (size + 8) / 8 * 8);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  rdna__imatrix *imatrix;
  if (rdna__imatrix_open_memory(copy, size, &imatrix) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    free(copy);
    return 0;
  }
  const float *means;
  int64_t matrices;
  rdna_gguf_tensor tensor = {.name = "a.weight", .rank = 3, .shape = {2, 5, 4}};
  if (rdna__imatrix_count(imatrix) == 0) abort();
  if (rdna__imatrix_find(imatrix, &tensor, &means, &matrices) == RDNA_OK && means) {
    for (int64_t i = 0; i < matrices * 4; i++)
      if (!(means[i] >= 0) || isinf(means[i])) abort();
  }
  rdna__imatrix_close(imatrix);
  free(copy);
  return 0;
}
