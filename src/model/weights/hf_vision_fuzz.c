/* Towers of Hugging Face folders: the input is {"config": …, "processor": …}, a byte of zero, and a safetensors file.
 */
#include <stdlib.h>
#include <string.h>

#include "model/weights/hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(const json_t *json, const rdna__safetensors *weights) {
  rdna_gguf_writer *writer;
  rdna__hf_tower *tower = NULL;
  if (rdna_gguf_writer_create(&writer) != RDNA_OK) abort();
  rdna_status status =
      rdna__hf_tower_add(json_object_get(json, "config"), json_object_get(json, "processor"), weights, writer, &tower);
  if (status != RDNA_OK && (tower || !*rdna_last_error())) abort();
  rdna_gguf_writer_release(writer);
  rdna__hf_tower_release(tower);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
  rdna__safetensors *weights;
  json_error_t error;
  if (!zero) return 0;
  size_t left = size - (size_t)(zero + 1 - data);
  uint8_t *copy = malloc(left ? left : 1);
  if (!copy) return 0;
  if (left) memcpy(copy, zero + 1, left);
  json_t *json = json_loadb((const char *)data, (size_t)(zero - data), 0, &error);
  if (json && rdna__safetensors_open_memory(copy, left, &weights) == RDNA_OK) {
    add(json, weights);
    rdna__safetensors_close(weights);
  }
  json_decref(json);
  free(copy);
  return 0;
}
