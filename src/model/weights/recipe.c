/* The rules are those of llama_tensor_get_type in github.com/ggml-org/llama.cpp, src/llama-quant.cpp (April 2026),
 * which files of these names on the network were made by. They were found by trying out models, most of them in 2023
 * and 2024.
 */
#include "model/weights/recipe.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

enum role { OTHER, EMBEDDING, VALUES, KEYS, QUERIES, ATTENTION_OUT, DOWN, GATE, UP, EXPERTS };

/* Of a layer of n; layers with values of attention are counted among themselves. */
enum when {
  ALWAYS,
  FIRST_TWO,
  FIRST_FOUR,
  FIRST_SIXTEENTH,
  FIRST_EIGHTH,
  MIDDLE,          /* neither the first nor the last eighth */
  MORE,            /* the first and the last eighth, and every third between */
  SHARED,          /* at least four heads of queries share one of keys and values */
  SHARED_OR_MIXED, /* or there are at least four experts */
  SEVENTY,         /* 80 layers and shared heads: values are an eighth of the queries' size */
  EIGHT,           /* 8 experts, in a model like Mixtral, whose attention is small beside them */
  MORE_OF_EIGHT
};

typedef struct rule {
  enum role role;
  enum when when;
  rdna_dtype type;
} rule;

struct rdna__mix {
  const char *name;
  uint32_t number; /* enum llama_ftype in llama.h */
  rdna_dtype type, logits;
  rule rules[12]; /* the first that applies; after them |type| */
};

#define OF_EIGHT \
  {VALUES, EIGHT, RDNA_Q8_0}, { KEYS, EIGHT, RDNA_Q8_0 }
#define OUT_OF_EIGHT {ATTENTION_OUT, EIGHT, RDNA_Q5_K}
static const rdna__mix mixes[] = {
    {"q2_K_S",
     21,
     RDNA_Q2_K,
     RDNA_Q6_K,
     {OF_EIGHT, {VALUES, SEVENTY, RDNA_Q5_K}, {VALUES, SHARED, RDNA_Q4_K}, {DOWN, FIRST_EIGHTH, RDNA_Q4_K}}},
    {"q3_K_S", 11, RDNA_Q3_K, RDNA_Q6_K, {OF_EIGHT, OUT_OF_EIGHT, {VALUES, SEVENTY, RDNA_Q5_K}}},
    {"q3_K_M",
     12,
     RDNA_Q3_K,
     RDNA_Q6_K,
     {OF_EIGHT,
      OUT_OF_EIGHT,
      {VALUES, FIRST_TWO, RDNA_Q5_K},
      {VALUES, SEVENTY, RDNA_Q5_K},
      {VALUES, ALWAYS, RDNA_Q4_K},
      {DOWN, FIRST_SIXTEENTH, RDNA_Q5_K},
      {DOWN, ALWAYS, RDNA_Q4_K},
      {ATTENTION_OUT, ALWAYS, RDNA_Q4_K}}},
    {"q3_K_L",
     13,
     RDNA_Q3_K,
     RDNA_Q6_K,
     {OF_EIGHT,
      {ATTENTION_OUT, EIGHT, RDNA_Q3_K},
      {VALUES, ALWAYS, RDNA_Q5_K},
      {DOWN, ALWAYS, RDNA_Q5_K},
      {ATTENTION_OUT, ALWAYS, RDNA_Q5_K}}},
    {"q4_K_S",
     14,
     RDNA_Q4_K,
     RDNA_Q6_K,
     {OF_EIGHT,
      OUT_OF_EIGHT,
      {VALUES, FIRST_FOUR, RDNA_Q5_K},
      {VALUES, SEVENTY, RDNA_Q5_K},
      {DOWN, FIRST_EIGHTH, RDNA_Q5_K}}},
    {"q4_K_M",
     15,
     RDNA_Q4_K,
     RDNA_Q6_K,
     {OF_EIGHT, OUT_OF_EIGHT, {VALUES, MORE, RDNA_Q6_K}, {VALUES, SEVENTY, RDNA_Q5_K}, {DOWN, MORE, RDNA_Q6_K}}},
    {"q5_K_S", 16, RDNA_Q5_K, RDNA_Q6_K, {OF_EIGHT}},
    {"q5_K_M", 17, RDNA_Q5_K, RDNA_Q6_K, {OF_EIGHT, {VALUES, MORE, RDNA_Q6_K}, {DOWN, MORE, RDNA_Q6_K}}},
    {"iq2_M",
     29,
     RDNA_IQ2_S,
     RDNA_Q5_K,
     {{EMBEDDING, ALWAYS, RDNA_IQ3_S},
      {VALUES, SHARED_OR_MIXED, RDNA_Q4_K},
      {VALUES, ALWAYS, RDNA_IQ3_S},
      {KEYS, EIGHT, RDNA_Q4_K},
      OUT_OF_EIGHT,
      {ATTENTION_OUT, ALWAYS, RDNA_IQ3_S},
      {DOWN, FIRST_EIGHTH, RDNA_IQ3_S}}},
    {"iq3_XS",
     22,
     RDNA_IQ3_S,
     RDNA_Q6_K,
     {OF_EIGHT,
      OUT_OF_EIGHT,
      {VALUES, SEVENTY, RDNA_Q5_K},
      {VALUES, SHARED, RDNA_Q4_K},
      {KEYS, ALWAYS, RDNA_IQ3_XXS},
      {QUERIES, ALWAYS, RDNA_IQ3_XXS},
      {GATE, MIDDLE, RDNA_IQ3_XXS},
      {UP, MIDDLE, RDNA_IQ3_XXS}}},
    {"iq3_M",
     27,
     RDNA_IQ3_S,
     RDNA_Q6_K,
     {OF_EIGHT,
      OUT_OF_EIGHT,
      {VALUES, SEVENTY, RDNA_Q5_K},
      {VALUES, ALWAYS, RDNA_Q4_K},
      {DOWN, FIRST_EIGHTH, RDNA_Q4_K},
      {DOWN, MORE_OF_EIGHT, RDNA_Q4_K},
      {ATTENTION_OUT, ALWAYS, RDNA_Q4_K}}},
    {"mxfp4_moe", 38, RDNA_Q8_0, RDNA_Q8_0, {{EXPERTS, ALWAYS, RDNA_MXFP4}}},
};
enum { MIXES = sizeof mixes / sizeof *mixes };

const rdna__mix *rdna__mix_find(const char *name) {
  for (int i = 0; i < MIXES; i++)
    if (strcasecmp(name, mixes[i].name) == 0) return &mixes[i];
  return NULL;
}

void rdna__mix_names(char *out, size_t size) {
  size_t at = 0;
  out[0] = 0;
  for (int i = 0; i < MIXES && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, "%s%s", i ? " " : "", mixes[i].name);
}

rdna_dtype rdna__mix_type(const rdna__mix *mix) { return mix->type; }
uint32_t rdna__mix_file_type(const rdna__mix *mix) { return mix->number; }
rdna_dtype rdna__mix_logits_type(const rdna__mix *mix) { return mix->logits; }

static enum role role_of(const char *name) {
  static const struct {
    const char *part;
    enum role role;
  } parts[] = {{"token_embd.weight", EMBEDDING},
               {"attn_qkv.weight", VALUES},
               {"attn_kv_b.weight", VALUES},
               {"attn_v.weight", VALUES},
               {"attn_k.weight", KEYS},
               {"attn_q.weight", QUERIES},
               {"attn_output.weight", ATTENTION_OUT},
               {"ffn_up", UP},
               {"ffn_gate", GATE},
               {"ffn_down", DOWN}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(name, parts[i].part)) return parts[i].role;
  return OTHER;
}

/* The layer that a tensor is named for, as in blk.5.attn_v.weight; -1: none. */
static int64_t layer_of(const char *name) {
  long long layer;
  int end = 0;
  return sscanf(name, "blk.%lld.%n", &layer, &end) == 1 && end > 0 && layer >= 0 ? layer : -1;
}

/* A number of the model, or that of its first layer; 0 where the file does not say. */
static int64_t number_of(const rdna_gguf *file, const char *key) {
  char name[128];
  rdna_text architecture;
  int64_t value = 0;
  int32_t first = 0;
  if (!rdna_gguf_find_key(file, "general.architecture", NULL) ||
      rdna_gguf_get_text(file, "general.architecture", &architecture) != RDNA_OK || architecture.size > 64)
    return 0;
  snprintf(name, sizeof name, "%.*s.%s", (int)architecture.size, architecture.data, key);
  if (!rdna_gguf_find_key(file, name, NULL)) return 0;
  if (rdna_gguf_get_i64(file, name, &value) == RDNA_OK) return value;
  return rdna_gguf_read_i32(file, name, 0, 1, &first) == RDNA_OK ? first : 0; /* a list, a number for each layer */
}

/* How many matrices of layers have attention's values, and how many of them are in layers before |layer|. */
static void count_values(const rdna_gguf *file, int64_t layer, int64_t *out_before, int64_t *out_all) {
  *out_before = *out_all = 0;
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor tensor;
    if (rdna_gguf_tensor_at(file, i, &tensor) != RDNA_OK || role_of(tensor.name) != VALUES) continue;
    const int64_t its = layer_of(tensor.name);
    *out_all += its >= 0;
    *out_before += its >= 0 && its < layer;
  }
}

static bool has_more(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static bool applies(enum when when, const rdna_gguf *file, int64_t layer, int64_t layers) {
  const int64_t experts = number_of(file, "expert_count"), keys = number_of(file, "attention.head_count_kv");
  const int64_t heads = number_of(file, "attention.head_count"), sharing = keys > 0 ? heads / keys : 1;
  const bool is_layer = layer >= 0; /* what is in none is not among the first */
  switch (when) {
    case ALWAYS:
      return true;
    case FIRST_TWO:
      return is_layer && layer < 2;
    case FIRST_FOUR:
      return is_layer && layer < 4;
    case FIRST_SIXTEENTH:
      return is_layer && layer < layers / 16;
    case FIRST_EIGHTH:
      return is_layer && layer < layers / 8;
    case MIDDLE:
      return layer >= layers / 8 && layer < 7 * layers / 8;
    case MORE:
      return is_layer && has_more(layer, layers);
    case SHARED:
      return sharing >= 4;
    case SHARED_OR_MIXED:
      return sharing >= 4 || experts >= 4;
    case SEVENTY:
      return number_of(file, "block_count") == 80 && sharing > 1;
    case EIGHT:
      return experts == 8;
    case MORE_OF_EIGHT:
      return experts == 8 && is_layer && has_more(layer, layers);
  }
  return false;
}

rdna_dtype rdna__mix_type_of(const rdna__mix *mix, const rdna_gguf *file, const rdna_gguf_tensor *tensor) {
  const enum role role = role_of(tensor->name);
  int64_t layer = layer_of(tensor->name), layers = number_of(file, "block_count");
  if (role == VALUES && layer >= 0) count_values(file, layer, &layer, &layers);
  for (const rule *r = mix->rules; r->role != OTHER; r++) {
    const bool is_meant = r->role == EXPERTS ? tensor->rank == 3 : r->role == role;
    if (is_meant && applies(r->when, file, layer, layers)) return r->type;
  }
  return mix->type;
}
