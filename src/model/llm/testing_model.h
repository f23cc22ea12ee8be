/* For tests: a small Llama with random weights of f32, on the device of math/common/test/device.h. */
#ifndef RDNA_MODEL_TESTING_MODEL_H
#define RDNA_MODEL_TESTING_MODEL_H

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "math/common/test/device.h"
#include "model/gguf/testing_gguf.h"
#include "rdna/llm_cache.h"

enum {
  MADE_WIDTH = 32,
  MADE_HEADS = 4,
  MADE_KV_HEADS = 2,
  MADE_HIDDEN = 48,
  MADE_LAYERS = 2,
  MADE_VOCABULARY = 40,
  MADE_CONTEXT = 400,
  MADE_TENSORS = 32
};

typedef struct made {
  testing_gguf bytes;
  rdna_gguf *file;
  rdna_llm *llm;
} made;

typedef struct tensor_row {
  char name[32];
  uint64_t dims[2]; /* (columns, rows), or (values, 1) */
} tensor_row;

static inline int list_tensors(tensor_row *rows) {
  static const struct {
    const char *name;
    int columns, rows;
  } of_layer[] = {{"attn_norm", MADE_WIDTH, 1},
                  {"ffn_norm", MADE_WIDTH, 1},
                  {"attn_q", MADE_WIDTH, MADE_WIDTH},
                  {"attn_k", MADE_WIDTH, MADE_WIDTH / MADE_HEADS * MADE_KV_HEADS},
                  {"attn_v", MADE_WIDTH, MADE_WIDTH / MADE_HEADS * MADE_KV_HEADS},
                  {"attn_output", MADE_WIDTH, MADE_WIDTH},
                  {"ffn_gate", MADE_WIDTH, MADE_HIDDEN},
                  {"ffn_up", MADE_WIDTH, MADE_HIDDEN},
                  {"ffn_down", MADE_HIDDEN, MADE_WIDTH}};
  int count = 0;
  rows[count++] = (tensor_row){"token_embd.weight", {MADE_WIDTH, MADE_VOCABULARY}};
  rows[count++] = (tensor_row){"output_norm.weight", {MADE_WIDTH, 1}};
  rows[count++] = (tensor_row){"output.weight", {MADE_WIDTH, MADE_VOCABULARY}};
  for (int layer = 0; layer < MADE_LAYERS; layer++) {
    for (size_t k = 0; k < sizeof of_layer / sizeof *of_layer; k++) {
      tensor_row *row = &rows[count++];
      snprintf(row->name, sizeof row->name, "blk.%d.%s.weight", layer, of_layer[k].name);
      row->dims[0] = (uint64_t)of_layer[k].columns;
      row->dims[1] = (uint64_t)of_layer[k].rows;
    }
  }
  return count;
}

/* |change| may add to the values of a tensor before they are rounded to f32. */
static inline made make_changed_model(uint32_t window,
                                      void (*change)(void *data, const tensor_row *row, double *values), void *data) {
  static const struct {
    const char *key;
    uint32_t value;
  } keys[] = {{"llama.block_count", MADE_LAYERS},         {"llama.embedding_length", MADE_WIDTH},
              {"llama.feed_forward_length", MADE_HIDDEN}, {"llama.context_length", MADE_CONTEXT},
              {"llama.attention.head_count", MADE_HEADS}, {"llama.attention.head_count_kv", MADE_KV_HEADS}};
  enum { KEYS = sizeof keys / sizeof *keys };
  tensor_row rows[MADE_TENSORS];
  int count = list_tensors(rows);
  made m = {0};
  testing_put_header(&m.bytes, 3, (uint64_t)count, KEYS + 1 + (window > 0));
  testing_put_key_text(&m.bytes, "general.architecture", "llama");
  for (int k = 0; k < KEYS; k++) testing_put_key_u32(&m.bytes, keys[k].key, keys[k].value);
  if (window) testing_put_key_u32(&m.bytes, "llama.attention.sliding_window", window);
  uint64_t offset = 0;
  for (int k = 0; k < count; k++) {
    testing_put_tensor(&m.bytes, rows[k].name, rows[k].dims[1] > 1 ? 2 : 1, rows[k].dims, 0, offset);
    offset += rows[k].dims[0] * rows[k].dims[1] * sizeof(float); /* each a multiple of the alignment of 32 */
  }
  testing_pad(&m.bytes, 32);
  rdna__random random;
  rdna__random_seed(&random, 12);
  for (int k = 0; k < count; k++) {
    bool norm = rows[k].dims[1] == 1;
    double values[MADE_WIDTH * MADE_HIDDEN];
    uint64_t values_count = rows[k].dims[0] * rows[k].dims[1];
    for (uint64_t i = 0; i < values_count; i++)
      values[i] = rdna__random_normal(&random) * (norm ? 0.2 : 1 / sqrt((double)rows[k].dims[0])) + norm;
    if (change) change(data, &rows[k], values);
    for (uint64_t i = 0; i < values_count; i++) {
      float v = (float)values[i];
      testing_put(&m.bytes, &v, sizeof v);
    }
  }
  assert_ok(rdna_gguf_open_memory(m.bytes.data, m.bytes.size, &m.file));
  assert_ok(rdna_llm_open(device, m.file, NULL, NULL, &m.llm));
  return m;
}

static inline made make_model(uint32_t window) { return make_changed_model(window, NULL, NULL); }

/* Of a step: text. */
static inline rdna_llm_part part_of(rdna_llm_sequence *sequence, const int32_t *tokens, int count, int logits) {
  return (rdna_llm_part){.sequence = sequence, .tokens = tokens, .count = count, .logits = logits};
}

static inline void free_model(made *m) {
  rdna_llm_release(m->llm);
  rdna_gguf_close(m->file);
  free(m->bytes.data);
}

#endif
