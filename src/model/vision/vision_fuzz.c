/* Towers of every kind with strange numbers in their keys and tensors of the sizes that these ask for, or of others,
 * and small pictures. The first byte is the kind; then a byte for each number, 0 to 199 the usual one; what is left are
 * the sides of a picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gguf/testing_gguf.h"
#include "rdna/vision.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_TENSORS = 80, MOST_VALUES = 1 << 16, MOST_PATCHES = 1 << 12, MOST_LAYERS = 3, COLOURS = 3 };

enum key { LAYERS, WIDTH, ROW, PATCH, HIDDEN, HEADS, IMAGE, SCALE, MERGE, PERIOD, WINDOW, LEAST, MOST, KEYS };
static const struct {
  const char *name;
  uint32_t usual[3]; /* of each kind; 0: it is left out */
} keys[KEYS] = {[LAYERS] = {"block_count", {1, 2, 2}},
                [WIDTH] = {"embedding_length", {8, 8, 8}},
                [ROW] = {"projection_dim", {8, 8, 8}},
                [PATCH] = {"patch_size", {2, 2, 2}},
                [HIDDEN] = {"feed_forward_length", {12, 12, 12}},
                [HEADS] = {"attention.head_count", {2, 2, 2}},
                [IMAGE] = {"image_size", {8, 0, 6}},
                [SCALE] = {"projector.scale_factor", {2, 0, 0}},
                [MERGE] = {"spatial_merge_size", {0, 2, 2}},
                [PERIOD] = {"n_wa_pattern", {0, 2, 0}},
                [WINDOW] = {"window_size", {0, 8, 0}},
                [LEAST] = {"image_min_pixels", {0, 16, 16}},
                [MOST] = {"image_max_pixels", {0, 400, 400}}};

enum kind { GEMMA, QWEN25, QWEN3, KINDS };
static const char *const projectors[KINDS] = {"gemma3", "qwen2.5vl_merger", "qwen3vl_merger"};

typedef struct made {
  const uint8_t *input;
  size_t left;
  enum kind kind;
  uint32_t values[KEYS];
  struct {
    char name[64];
    int rank;
    uint64_t dims[4]; /* slowest first */
  } tensors[MOST_TENSORS];
  int count;
  uint64_t all; /* values of them */
} made;

static uint8_t next(made *m) {
  if (m->left == 0) return 0;
  m->left--;
  return *m->input++;
}

static uint32_t number(made *m, uint32_t usual) {
  static const uint32_t strange[] = {
      0,          1,          2,         3,   4,    5,    6,     7,        8,        9,
      12,         14,         16,        17,  24,   28,   32,    63,       64,       100,
      112,        255,        256,       257, 1000, 4096, 65535, 1u << 20, 1u << 24, (1u << 24) + 1,
      0x7fffffff, 0x80000000, 0xffffffff};
  uint8_t byte = next(m);
  return byte < 200 ? usual : strange[(byte - 200u) % (sizeof strange / sizeof *strange)];
}

static void add(made *m, const char *name, int rank, uint64_t a, uint64_t b) {
  if (m->count == MOST_TENSORS) return;
  uint64_t dims[] = {a, b, m->values[PATCH], m->values[PATCH]}, product = 1;
  for (int i = 0; i < rank && product <= MOST_VALUES; i++)
    product *= dims[i] > 0 && dims[i] <= MOST_VALUES ? dims[i] : MOST_VALUES + 1;
  if (m->all + product > MOST_VALUES || next(m) >= 250) return; /* it is missing */
  m->all += product;
  snprintf(m->tensors[m->count].name, sizeof m->tensors->name, "%s", name);
  m->tensors[m->count].rank = rank;
  memcpy(m->tensors[m->count++].dims, dims, sizeof dims);
}

static void add_linear(made *m, const char *prefix, uint64_t rows, uint64_t columns) {
  char name[64];
  snprintf(name, sizeof name, "%s.weight", prefix);
  add(m, name, 2, rows, columns);
  snprintf(name, sizeof name, "%s.bias", prefix);
  add(m, name, 1, rows, 0);
}

static void add_layer(made *m, int i) {
  static const char *const square[] = {"attn_q", "attn_k", "attn_v", "attn_out"}, *const norms[] = {"ln1", "ln2"};
  uint64_t width = m->values[WIDTH], hidden = m->values[HIDDEN];
  char name[64];
  if (m->kind == QWEN3) {
    snprintf(name, sizeof name, "v.blk.%d.attn_qkv", i);
    add_linear(m, name, 3 * width, width);
  }
  for (int k = m->kind == QWEN3 ? 3 : 0; k < 4; k++) {
    snprintf(name, sizeof name, "v.blk.%d.%s", i, square[k]);
    add_linear(m, name, width, width);
  }
  for (int k = 0; k < 2; k++) {
    snprintf(name, sizeof name, "v.blk.%d.%s.weight", i, norms[k]);
    add(m, name, 1, width, 0);
    snprintf(name, sizeof name, "v.blk.%d.%s.bias", i, norms[k]);
    if (m->kind != QWEN25) add(m, name, 1, width, 0);
  }
  snprintf(name, sizeof name, "v.blk.%d.ffn_up", i);
  add_linear(m, name, hidden, width);
  snprintf(name, sizeof name, "v.blk.%d.ffn_down", i);
  add_linear(m, name, width, hidden);
  snprintf(name, sizeof name, "v.blk.%d.ffn_gate", i);
  if (m->kind == QWEN25) add_linear(m, name, hidden, width);
}

static void add_deep(made *m, uint64_t width, uint64_t row) {
  add(m, "v.deepstack.0.norm.weight", 1, 4 * width, 0);
  add(m, "v.deepstack.0.norm.bias", 1, 4 * width, 0);
  add_linear(m, "v.deepstack.0.fc1", 4 * width, 4 * width);
  add_linear(m, "v.deepstack.0.fc2", row, 4 * width);
}

static void add_tensors(made *m) {
  uint64_t width = m->values[WIDTH], row = m->values[ROW], patch = m->values[PATCH];
  uint64_t line = patch ? m->values[IMAGE] / patch : 0;
  add(m, "v.patch_embd.weight", 4, width, COLOURS);
  if (m->kind != QWEN25) add(m, "v.patch_embd.bias", 1, width, 0);
  if (m->kind != GEMMA) add(m, "v.patch_embd.weight.1", 4, width, COLOURS);
  if (m->kind != QWEN25) add(m, "v.position_embd.weight", 2, line * line, width);
  add(m, "v.post_ln.weight", 1, width, 0);
  if (m->kind != QWEN25) add(m, "v.post_ln.bias", 1, width, 0);
  if (m->kind == GEMMA) add(m, "mm.soft_emb_norm.weight", 1, width, 0);
  if (m->kind == GEMMA) add(m, "mm.input_projection.weight", 2, width, row);
  if (m->kind != GEMMA) add_linear(m, "mm.0", 4 * width, 4 * width);
  if (m->kind != GEMMA) add_linear(m, "mm.2", row, 4 * width);
  if (m->kind == QWEN3) add_deep(m, width, row);
  for (int i = 0; i < MOST_LAYERS && (uint32_t)i < m->values[LAYERS]; i++) add_layer(m, i);
}

static void put_colours(testing_gguf *to, const char *name, float value) {
  testing_put_array(to, name, RDNA_GGUF_TYPE_F32, COLOURS);
  for (int i = 0; i < COLOURS; i++) testing_put(to, &value, sizeof value);
}

/* Which layers have rows for the language model: the first, or others. */
static void put_marks(testing_gguf *to, made *m) {
  uint8_t marks[MOST_LAYERS] = {1}, byte = next(m);
  for (int i = 0; byte >= 200 && i < MOST_LAYERS; i++) marks[i] = byte >> i & 1;
  testing_put_array(to, "clip.vision.is_deepstack_layers", RDNA_GGUF_TYPE_BOOL, MOST_LAYERS);
  testing_put(to, marks, sizeof marks);
}

static void write_file(made *m, testing_gguf *to) {
  uint64_t count = m->kind == QWEN3 ? 7 : 6, offset = 0;
  float epsilon = 1e-6F;
  char name[96];
  for (int i = 0; i < KEYS; i++) count += m->values[i] != 0;
  testing_put_header(to, 3, (uint64_t)m->count, count);
  testing_put_key(to, "general.architecture", RDNA_GGUF_TYPE_TEXT);
  testing_put_text(to, "clip");
  testing_put_key(to, "clip.projector_type", RDNA_GGUF_TYPE_TEXT);
  testing_put_text(to, projectors[m->kind]);
  testing_put_key_bool(to, "clip.has_vision_encoder", true);
  testing_put_key(to, "clip.vision.attention.layer_norm_epsilon", RDNA_GGUF_TYPE_F32);
  testing_put(to, &epsilon, sizeof epsilon);
  put_colours(to, "clip.vision.image_mean", 0.5F);
  put_colours(to, "clip.vision.image_std", 0.25F);
  if (m->kind == QWEN3) put_marks(to, m);
  for (int i = 0; i < KEYS; i++) {
    snprintf(name, sizeof name, "clip.vision.%s", keys[i].name);
    if (m->values[i]) testing_put_key_u32(to, name, m->values[i]);
  }
  for (int i = 0; i < m->count; i++) {
    uint64_t values = 1;
    testing_put_text(to, m->tensors[i].name);
    testing_put_u32(to, (uint32_t)m->tensors[i].rank);
    for (int k = m->tensors[i].rank; k-- > 0; values *= m->tensors[i].dims[k])
      testing_put_u64(to, m->tensors[i].dims[k]);
    testing_put_u32(to, 0); /* f32 */
    testing_put_u64(to, offset);
    offset += (values * sizeof(float) + 31) / 32 * 32;
  }
  while (to->size % 32) testing_put(to, "", 1);
  for (uint64_t i = 0; i < offset / sizeof(float); i++) {
    float value = (float)(i % 7) / 8 - 0.375F;
    testing_put(to, &value, sizeof value);
  }
}

static void see(rdna_vision *vision, int height, int width) {
  rdna_llm_picture picture = {0};
  const rdna_vision_info *info = rdna_vision_get_info(vision);
  if (rdna_vision_measure(vision, height, width, &picture) != RDNA_OK) return;
  int64_t tokens = (int64_t)picture.height * picture.width;
  if (tokens < 1 || tokens > info->most_tokens) abort();
  if (tokens > MOST_PATCHES / 16) return; /* too slow */
  uint8_t *pixels = malloc((size_t)height * (size_t)width * COLOURS);
  float *rows = malloc((size_t)tokens * (size_t)info->row * (1 + (size_t)info->deepstack) * sizeof *rows);
  if (!pixels || !rows) abort();
  for (int i = 0; i < height * width * COLOURS; i++) pixels[i] = (uint8_t)(i * 7);
  if (rdna_vision_see(vision, pixels, height, width, rows) != RDNA_OK && !*rdna_last_error()) abort();
  free(pixels);
  free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rdna_device *device;
  if (!device && rdna_device_open("host", &device) != RDNA_OK) abort();
  made m = {.input = data, .left = size};
  testing_gguf bytes = {0};
  rdna_gguf *file;
  rdna_vision *vision = NULL;
  m.kind = next(&m) % KINDS;
  for (int i = 0; i < KEYS; i++) m.values[i] = number(&m, keys[i].usual[m.kind]);
  add_tensors(&m);
  write_file(&m, &bytes);
  if (rdna_gguf_open_memory(bytes.data, bytes.size, &file) != RDNA_OK) abort();
  if (rdna_vision_open(device, file, &vision) == RDNA_OK)
    see(vision, 1 + next(&m), 1 + next(&m));
  else if (!*rdna_last_error())
    abort();
  rdna_vision_release(vision);
  rdna_gguf_close(file);
  free(bytes.data);
  return 0;
}
