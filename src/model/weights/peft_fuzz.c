/* Folders of PEFT's: the first two bytes are the length of adapter_config.json, which follows; the rest is
 * adapter_model.safetensors. All values of what opens are read. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/weights/peft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile float sum;

static void read_all(const rdna_gguf *file) {
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor tensor;
    if (rdna_gguf_tensor_at(file, i, &tensor) != RDNA_OK || tensor.dtype != RDNA_F32) abort();
    for (size_t k = 0; k < tensor.bytes / sizeof(float); k++) sum += ((const float *)tensor.data)[k];
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t config = data[0] | (size_t)data[1] << 8, rest = size - 2;
  if (config > rest) config = rest;
  void *weights = aligned_alloc(8, (rest - config + 8) / 8 * 8);
  rdna_gguf *file = NULL;
  if (!weights) return 0;
  memcpy(weights, data + 2 + config, rest - config);
  rdna_status status = rdna__peft_read((rdna_text){(const char *)data + 2, config}, (rdna_text){weights, rest - config},
                                       "llama", 4, &file);
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  if (status == RDNA_OK) read_all(file);
  if (status == RDNA_OK) rdna_gguf_close(file);
  free(weights);
  return 0;
}
