/* Opens the input as a GGUF file and reads everything in it through every getter. */
#include <stdlib.h>
#include <string.h>

#include "rdna/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sink;

static void touch(const void *data, size_t size) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size; i++) sink += bytes[i];
}

static void read_arrays(const rdna_gguf *file, const rdna_gguf_key *key) {
  int32_t integers[16];
  float floats[16];
  const rdna_text *texts = NULL;
  size_t count = 0;
  for (uint64_t at = 0; at < key->count; at += 16) {
    size_t n = key->count - at < 16 ? (size_t)(key->count - at) : 16;
    if (rdna_gguf_read_i32(file, key->name, at, n, integers) == RDNA_OK) touch(integers, n * sizeof *integers);
    if (rdna_gguf_read_f32(file, key->name, at, n, floats) == RDNA_OK) touch(floats, n * sizeof *floats);
    if (key->element_type == RDNA_GGUF_TYPE_TEXT || key->element_type == RDNA_GGUF_TYPE_ARRAY) break;
  }
  if (rdna_gguf_read_i32(file, key->name, key->count, 1, integers) == RDNA_OK) abort();
  if (rdna_gguf_read_f32(file, key->name, UINT64_MAX, 1, floats) == RDNA_OK) abort();
  if (rdna_gguf_get_texts(file, key->name, &texts, &count) == RDNA_OK)
    for (size_t i = 0; i < count; i++) touch(texts[i].data, texts[i].size);
}

static void read_key(const rdna_gguf *file, size_t index) {
  rdna_gguf_key key, again;
  if (rdna_gguf_key_at(file, index, &key) != RDNA_OK) abort();
  if (!rdna_gguf_find_key(file, key.name, &again) || again.name != key.name) abort();
  touch(rdna_gguf_type_name(key.type), 1);
  uint64_t u64;
  int64_t i64;
  double f64;
  bool flag;
  rdna_text text;
  if (rdna_gguf_get_u64(file, key.name, &u64) == RDNA_OK) sink += u64;
  if (rdna_gguf_get_i64(file, key.name, &i64) == RDNA_OK) sink += (uint64_t)i64;
  if (rdna_gguf_get_f64(file, key.name, &f64) == RDNA_OK) sink += f64 > 0;
  if (rdna_gguf_get_bool(file, key.name, &flag) == RDNA_OK) sink += flag;
  if (rdna_gguf_get_text(file, key.name, &text) == RDNA_OK) touch(text.data, text.size);
  read_arrays(file, &key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1); /* aligned, and exactly as long */
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  rdna_gguf *file = NULL;
  if (rdna_gguf_open_memory(copy, size, &file) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    free(copy);
    return 0;
  }
  rdna_gguf_writer *writer = NULL;
  if (rdna_gguf_writer_create(&writer) != RDNA_OK) abort();
  for (size_t i = 0; i < rdna_gguf_key_count(file); i++) {
    rdna_gguf_key key;
    read_key(file, i);
    if (rdna_gguf_key_at(file, i, &key) != RDNA_OK) abort();
    /* the writer is stricter with names that are empty and alignments that are huge */
    if (rdna_gguf_writer_copy_key(writer, file, key.name) != RDNA_OK && *key.name &&
        strcmp(key.name, "general.alignment") != 0)
      abort();
  }
  rdna_gguf_writer_release(writer);
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor tensor, again;
    if (rdna_gguf_tensor_at(file, i, &tensor) != RDNA_OK) abort();
    if ((uintptr_t)tensor.data & 7) abort();
    touch(tensor.data, tensor.bytes);
    touch(rdna_gguf_tensor_type_name(tensor.ggml_type), 1);
    if (rdna_gguf_get_tensor(file, tensor.name, &again) == RDNA_OK && again.data != tensor.data) abort();
  }
  rdna_gguf_close(file);
  free(copy);
  return 0;
}
