/* Writes GGUF bytes for tests and fuzz targets, including broken ones: nothing here checks anything. */
#ifndef RDNA_MODEL_TESTING_GGUF_H
#define RDNA_MODEL_TESTING_GGUF_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/model.h"

typedef struct testing_gguf {
  uint8_t *data; /* malloc'ed; free with free() */
  size_t size, capacity;
} testing_gguf;

static inline void testing_put(testing_gguf *to, const void *data, size_t size) {
  if (to->size + size > to->capacity) {
    to->capacity = (to->size + size) * 2;
    to->data = realloc(to->data, to->capacity);
    if (!to->data) abort();
  }
  if (size) memcpy(to->data + to->size, data, size);
  to->size += size;
}

static inline void testing_put_u32(testing_gguf *to, uint32_t value) { testing_put(to, &value, sizeof value); }
static inline void testing_put_u64(testing_gguf *to, uint64_t value) { testing_put(to, &value, sizeof value); }

static inline void testing_put_bytes(testing_gguf *to, const void *data, size_t size) {
  testing_put_u64(to, size);
  testing_put(to, data, size);
}

static inline void testing_put_text(testing_gguf *to, const char *text) { testing_put_bytes(to, text, strlen(text)); }

static inline void testing_put_header(testing_gguf *to, uint32_t version, uint64_t tensors, uint64_t keys) {
  testing_put(to, "GGUF", 4);
  testing_put_u32(to, version);
  testing_put_u64(to, tensors);
  testing_put_u64(to, keys);
}

static inline void testing_put_key(testing_gguf *to, const char *name, rdna_gguf_type type) {
  testing_put_text(to, name);
  testing_put_u32(to, type);
}

static inline void testing_put_array(testing_gguf *to, const char *name, rdna_gguf_type element, uint64_t count) {
  testing_put_key(to, name, RDNA_GGUF_TYPE_ARRAY);
  testing_put_u32(to, element);
  testing_put_u64(to, count);
}

static inline void testing_put_key_u32(testing_gguf *to, const char *name, uint32_t value) {
  testing_put_key(to, name, RDNA_GGUF_TYPE_U32);
  testing_put_u32(to, value);
}

static inline void testing_put_key_bool(testing_gguf *to, const char *name, bool value) {
  testing_put_key(to, name, RDNA_GGUF_TYPE_BOOL);
  uint8_t byte = value;
  testing_put(to, &byte, 1);
}

static inline void testing_put_key_text(testing_gguf *to, const char *name, const char *text) {
  testing_put_key(to, name, RDNA_GGUF_TYPE_TEXT);
  testing_put_text(to, text);
}

/* |dims| fastest first, as in the file. */
static inline void testing_put_tensor(testing_gguf *to, const char *name, uint32_t rank, const uint64_t *dims,
                                      uint32_t type, uint64_t offset) {
  testing_put_text(to, name);
  testing_put_u32(to, rank);
  testing_put(to, dims, (rank <= 4 ? rank : 4) * sizeof *dims);
  testing_put_u32(to, type);
  testing_put_u64(to, offset);
}

static inline void testing_pad(testing_gguf *to, size_t alignment) {
  static const uint8_t zeros[4096];
  testing_put(to, zeros, (alignment - to->size % alignment) % alignment);
}

/* A vocabulary as the keys of a file without tensors. */
typedef struct testing_token {
  const char *text; /* (size) */
  size_t size;
  int32_t type;
  float score;
} testing_token;

typedef struct testing_vocabulary {
  const char *model, *pre; /* NULL: no such key */
  const testing_token *tokens;
  size_t token_count;
  const rdna_text *merges;
  size_t merge_count;
  int32_t bos, eos, unknown;              /* -2: no such key */
  int add_bos, add_eos, add_space_prefix; /* -1: no such key */
  const char *architecture;               /* NULL: no such key */
} testing_vocabulary;

static inline testing_gguf testing_write_vocabulary(const testing_vocabulary *v) {
  testing_gguf g = {0};
  const struct {
    const char *key;
    int32_t id;
  } ids[] = {{"tokenizer.ggml.bos_token_id", v->bos},
             {"tokenizer.ggml.eos_token_id", v->eos},
             {"tokenizer.ggml.unknown_token_id", v->unknown}};
  const struct {
    const char *key;
    int value;
  } flags[] = {{"tokenizer.ggml.add_bos_token", v->add_bos},
               {"tokenizer.ggml.add_eos_token", v->add_eos},
               {"tokenizer.ggml.add_space_prefix", v->add_space_prefix}};
  uint64_t keys = 4 + (v->model != NULL) + (v->pre != NULL) + (v->architecture != NULL);
  for (int i = 0; i < 3; i++) keys += (uint64_t)(ids[i].id != -2) + (uint64_t)(flags[i].value != -1);
  testing_put_header(&g, 3, 0, keys);
  if (v->model) testing_put_key_text(&g, "tokenizer.ggml.model", v->model);
  if (v->pre) testing_put_key_text(&g, "tokenizer.ggml.pre", v->pre);
  if (v->architecture) testing_put_key_text(&g, "general.architecture", v->architecture);
  testing_put_array(&g, "tokenizer.ggml.tokens", RDNA_GGUF_TYPE_TEXT, v->token_count);
  for (size_t i = 0; i < v->token_count; i++) testing_put_bytes(&g, v->tokens[i].text, v->tokens[i].size);
  testing_put_array(&g, "tokenizer.ggml.token_type", RDNA_GGUF_TYPE_I32, v->token_count);
  for (size_t i = 0; i < v->token_count; i++) testing_put(&g, &v->tokens[i].type, 4);
  testing_put_array(&g, "tokenizer.ggml.scores", RDNA_GGUF_TYPE_F32, v->token_count);
  for (size_t i = 0; i < v->token_count; i++) testing_put(&g, &v->tokens[i].score, 4);
  testing_put_array(&g, "tokenizer.ggml.merges", RDNA_GGUF_TYPE_TEXT, v->merge_count);
  for (size_t i = 0; i < v->merge_count; i++) testing_put_bytes(&g, v->merges[i].data, v->merges[i].size);
  for (int i = 0; i < 3; i++) {
    if (ids[i].id != -2) testing_put_key_u32(&g, ids[i].key, (uint32_t)ids[i].id);
    if (flags[i].value != -1) testing_put_key_bool(&g, flags[i].key, flags[i].value);
  }
  return g;
}

#endif
