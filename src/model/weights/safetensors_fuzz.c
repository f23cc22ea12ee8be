/* Opens the input as a safetensors file and reads all that it says. */
#include <stdlib.h>
#include <string.h>

#include "model/weights/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1); /* exactly as long, for the sanitizer */
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  rdna__safetensors *tensors = NULL;
  if (rdna__safetensors_open_memory(copy, size, &tensors) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    free(copy);
    return 0;
  }
  size_t total = 0;
  for (size_t i = 0; i < rdna__safetensors_count(tensors); i++) {
    const rdna__safetensor *t = rdna__safetensors_at(tensors, i);
    if (rdna__safetensors_find(tensors, t->name) != t) abort();
    for (size_t b = 0; b < t->bytes; b++) sink += t->data[b];
    total += t->bytes;
    if (t->dtype == RDNA_DTYPE_COUNT) continue;
    rdna_tensor shaped = rdna_tensor_contiguous(NULL, t->dtype, t->rank, t->shape);
    if (rdna_dtype_bytes(t->dtype, rdna_tensor_count(&shaped)) != t->bytes) abort();
  }
  if (total > size) abort(); /* no byte belongs to two */
  rdna__safetensors_close(tensors);
  free(copy);
  return 0;
}
