/* Loads a llama-architecture GGUF file: its keys, then each tensor, with every shape checked against the keys. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/driver.h"
#include "kernel/dtype.h"
#include "model/llm/llm.h"
#include "rdna/kernel.h"

typedef struct loader {
  rdna_llm *llm;
  const rdna_gguf *file;
  void (*progress)(void *data, double share);
  void *progress_data;
  uint64_t bytes_total;
  char *next_weight, *next_bias; /* where the next matrix and bias go, or NULL: memory of their own */
} loader;

enum { LARGEST_COUNT = 1 << 24, LARGEST_LAYERS = 4096 };

/* ---- keys ---- */

static void key_name(const loader *l, const char *key, char name[128]) {
  snprintf(name, 128, "%s.%s", l->llm->info.architecture, key);
}

/* A count between 1 and LARGEST_COUNT; |initial| when the key is missing or 0, unless |initial| is 0. */
static rdna_status read_count(const loader *l, const char *key, int initial, int *out) {
  char name[128];
  key_name(l, key, name);
  rdna_gguf_key found;
  uint64_t value = 0;
  if (rdna_gguf_find_key(l->file, name, &found)) {
    /* some files give one number a layer */
    if (found.type == RDNA_GGUF_TYPE_ARRAY)
      return rdna__fail(RDNA_UNSUPPORTED, "%s differs between layers, which this library does not run", name);
    RDNA_TRY(rdna_gguf_get_u64(l->file, name, &value));
  }
  if (value == 0) value = (uint64_t)initial;
  if (value == 0) return rdna__fail(RDNA_BAD_DATA, "the model file has no key '%s'", name);
  if (value > LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "%s is %llu; at most %d makes sense", name, (unsigned long long)value,
                      LARGEST_COUNT);
  *out = (int)value;
  return RDNA_OK;
}

/* A positive finite number; |initial| when the key is missing or 0, unless |initial| is 0. */
static rdna_status read_number(const loader *l, const char *key, double initial, double *out) {
  char name[128];
  key_name(l, key, name);
  double value = 0;
  if (rdna_gguf_find_key(l->file, name, NULL)) RDNA_TRY(rdna_gguf_get_f64(l->file, name, &value));
  if (value == 0) value = initial;
  if (!(value > 0 && value <= FLT_MAX))
    return rdna__fail(RDNA_BAD_DATA, "%s is %g; it must be a positive number", name, value);
  *out = value;
  return RDNA_OK;
}

static bool text_is(rdna_text text, const char *word) {
  return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static rdna_status read_architecture(loader *l) {
  rdna_text name;
  RDNA_TRY(rdna_gguf_get_text(l->file, "general.architecture", &name));
  if (!text_is(name, "llama"))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "the model's architecture is '%.*s'; this library runs 'llama' (Llama, Mistral)",
                      (int)(name.size < 64 ? name.size : 64), name.data);
  strcpy(l->llm->info.architecture, "llama");
  return RDNA_OK;
}

static rdna_status read_rope(loader *l) {
  rdna__llm_config *config = &l->llm->config;
  char name[128];
  rdna_text type = {"none", 4};
  RDNA_TRY(read_number(l, "rope.freq_base", 10000.0, &config->rope_base));
  RDNA_TRY(read_count(l, "rope.dimension_count", l->llm->info.head_dim, &config->rotated));
  if (config->rotated > l->llm->info.head_dim || config->rotated % 2 != 0)
    return rdna__fail(RDNA_BAD_DATA, "llama.rope.dimension_count is %d; it must be even and at most the head's %d",
                      config->rotated, l->llm->info.head_dim);
  key_name(l, "rope.scaling.type", name);
  if (rdna_gguf_find_key(l->file, name, NULL)) RDNA_TRY(rdna_gguf_get_text(l->file, name, &type));
  config->rope_factor = 1;
  if (text_is(type, "linear")) return read_number(l, "rope.scaling.factor", 1.0, &config->rope_factor);
  if (text_is(type, "none")) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the model asks for RoPE scaling '%.*s'; this library has 'none' and 'linear'",
                    (int)(type.size < 64 ? type.size : 64), type.data);
}

static rdna_status read_keys(loader *l) {
  rdna_llm_info *info = &l->llm->info;
  RDNA_TRY(read_architecture(l));
  RDNA_TRY(read_count(l, "block_count", 0, &info->layers));
  if (info->layers > LARGEST_LAYERS)
    return rdna__fail(RDNA_BAD_DATA, "llama.block_count is %d; at most %d makes sense", info->layers, LARGEST_LAYERS);
  RDNA_TRY(read_count(l, "embedding_length", 0, &info->width));
  RDNA_TRY(read_count(l, "feed_forward_length", 0, &info->hidden));
  RDNA_TRY(read_count(l, "context_length", 0, &info->context));
  RDNA_TRY(read_count(l, "attention.head_count", 0, &info->heads));
  RDNA_TRY(read_count(l, "attention.head_count_kv", info->heads, &info->kv_heads));
  if (info->heads % info->kv_heads != 0)
    return rdna__fail(RDNA_BAD_DATA, "%d heads cannot share %d key/value heads evenly", info->heads, info->kv_heads);
  RDNA_TRY(read_count(l, "attention.key_length", info->width / info->heads, &info->head_dim));
  int value_dim;
  RDNA_TRY(read_count(l, "attention.value_length", info->head_dim, &value_dim));
  if (value_dim != info->head_dim)
    return rdna__fail(RDNA_UNSUPPORTED, "keys have %d values a head and values %d; this library needs them equal",
                      info->head_dim, value_dim);
  RDNA_TRY(read_number(l, "attention.layer_norm_rms_epsilon", 1e-5, &l->llm->config.norm_epsilon));
  char name[128];
  uint64_t number = 0;
  key_name(l, "expert_count", name);
  if (rdna_gguf_find_key(l->file, name, NULL)) RDNA_TRY(rdna_gguf_get_u64(l->file, name, &number));
  if (number > 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the model has %llu experts; this library runs dense Llama models",
                      (unsigned long long)number);
  key_name(l, "attention.sliding_window", name);
  if (rdna_gguf_find_key(l->file, name, NULL)) RDNA_TRY(rdna_gguf_get_u64(l->file, name, &number));
  l->llm->config.window = number > LARGEST_COUNT ? 0 : (int)number;
  return read_rope(l);
}

/* ---- tensors ---- */

static rdna_status keep(rdna_llm *llm, void *data) {
  if (llm->allocation_count == llm->allocation_room) {
    int room = llm->allocation_room ? 2 * llm->allocation_room : 256;
    void **grown = realloc(llm->allocations, (size_t)room * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the list of weights");
    llm->allocations = grown;
    llm->allocation_room = room;
  }
  llm->allocations[llm->allocation_count++] = data;
  return RDNA_OK;
}

/* Device memory that the model owns. */
static rdna_status allocate(loader *l, size_t size, void **out_data) {
  rdna_llm *llm = l->llm;
  RDNA_TRY(rdna_memory_alloc_named(llm->device, size, NULL, "weights", out_data));
  rdna_status status = keep(llm, *out_data);
  if (status != RDNA_OK) (void)!rdna_memory_free(llm->device, *out_data);
  return status;
}

/* Copies |bytes| of host memory to |*place|, which moves on, or into memory of their own. */
static rdna_status upload(loader *l, const void *bytes, size_t size, char **place, void **out_data) {
  if (place && *place) {
    *out_data = *place;
    *place += size;
  } else {
    RDNA_TRY(allocate(l, size, out_data));
  }
  return rdna_copy_to_device(rdna_device_default_stream(l->llm->device), *out_data, bytes, size);
}

static void count_bytes(loader *l, uint64_t bytes, int64_t values) {
  l->llm->info.weight_bytes += bytes;
  l->llm->info.parameters += (uint64_t)values;
  if (l->progress && l->bytes_total)
    l->progress(l->progress_data, (double)l->llm->info.weight_bytes / (double)l->bytes_total);
}

static rdna_status find_tensor(const loader *l, const char *name, int64_t rows, int64_t columns,
                               rdna_gguf_tensor *out_tensor) {
  RDNA_TRY(rdna_gguf_get_tensor(l->file, name, out_tensor));
  bool fits = columns == 0 ? out_tensor->rank == 1 && out_tensor->shape[0] == rows
                           : out_tensor->rank == 2 && out_tensor->shape[0] == rows && out_tensor->shape[1] == columns;
  if (fits) return RDNA_OK;
  char wanted[48], found[112] = "";
  snprintf(wanted, sizeof wanted, columns ? "%lld x %lld" : "%lld", (long long)rows, (long long)columns);
  for (int i = 0; i < out_tensor->rank; i++)
    snprintf(found + strlen(found), sizeof found - strlen(found), i ? " x %lld" : "%lld",
             (long long)out_tensor->shape[i]);
  return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is %s; the model's keys ask for %s", name, found, wanted);
}

/* A matrix as it stands in the file, uploaded or used in place. */
static rdna_status load_matrix(loader *l, const char *name, int64_t rows, int64_t columns, rdna_tensor *out) {
  rdna_gguf_tensor tensor;
  RDNA_TRY(find_tensor(l, name, rows, columns, &tensor));
  if (!dtype_is_float(tensor.dtype) && rdna_dtype_block_values(tensor.dtype) == 1) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "tensor '%s' is of type %s, which has no kernels; f32, f16, bf16 and the types of blocks have",
                      name, rdna_gguf_tensor_type_name(tensor.ggml_type));
  }
  void *data = (void *)tensor.data;
  if (!l->llm->in_place) RDNA_TRY(upload(l, tensor.data, tensor.bytes, &l->next_weight, &data));
  *out = rdna_tensor_contiguous(data, tensor.dtype, 2, tensor.shape);
  count_bytes(l, tensor.bytes, rows * columns);
  return RDNA_OK;
}

static float value_at(const rdna_gguf_tensor *tensor, int64_t i) {
  if (tensor->dtype == RDNA_F32) return ((const float *)tensor->data)[i];
  uint16_t half = ((const uint16_t *)tensor->data)[i];
  if (tensor->dtype == RDNA_BF16) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  int exponent = half >> 10 & 31, fraction = half & 1023;
  float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                               : ldexpf((float)(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
  return half & 0x8000 ? -value : value;
}

/* A vector as f32 in host memory that the caller frees. */
static rdna_status read_vector(loader *l, const char *name, int64_t count, float **out_values) {
  rdna_gguf_tensor tensor;
  RDNA_TRY(find_tensor(l, name, count, 0, &tensor));
  if (tensor.dtype != RDNA_F32 && tensor.dtype != RDNA_F16 && tensor.dtype != RDNA_BF16)
    return rdna__fail(RDNA_UNSUPPORTED, "vector '%s' is of type %s; f32, f16 and bf16 are read", name,
                      rdna_gguf_tensor_type_name(tensor.ggml_type));
  float *values = malloc((size_t)count * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for vector '%s'", name);
  for (int64_t i = 0; i < count; i++) values[i] = value_at(&tensor, i);
  *out_values = values;
  return RDNA_OK;
}

static rdna_status load_vector(loader *l, const char *name, int64_t count, char **place, rdna_tensor *out) {
  float *values;
  void *data;
  RDNA_TRY(read_vector(l, name, count, &values));
  rdna_status status = upload(l, values, (size_t)count * sizeof *values, place, &data);
  free(values);
  RDNA_TRY(status);
  *out = rdna_tensor_contiguous(data, RDNA_F32, 1, &count);
  count_bytes(l, (uint64_t)count * sizeof(float), count);
  return RDNA_OK;
}

/* PREFIX.weight with PREFIX.bias and PREFIX.scale where the file has them. */
static rdna_status load_linear(loader *l, const char *prefix, int64_t rows, int64_t columns, rdna__llm_matrix *out) {
  char name[96];
  snprintf(name, sizeof name, "%s.weight", prefix);
  RDNA_TRY(load_matrix(l, name, rows, columns, &out->weight));
  snprintf(name, sizeof name, "%s.bias", prefix);
  if (rdna_gguf_has_tensor(l->file, name)) RDNA_TRY(load_vector(l, name, rows, &l->next_bias, &out->bias));
  out->scale = 1;
  snprintf(name, sizeof name, "%s.scale", prefix);
  if (rdna_gguf_has_tensor(l->file, name)) {
    float *scale;
    RDNA_TRY(read_vector(l, name, 1, &scale));
    out->scale = *scale;
    free(scale);
  }
  return RDNA_OK;
}

/* A matrix of a layer and what it is called there. */
typedef struct part {
  const char *name;
  rdna__llm_matrix *matrix;
  int64_t rows, columns;
  bool scale_after_bias; /* as llama.cpp applies it */
} part;

/* The weights of |parts| and their biases in one piece each, as |out|, if they are of one type, all with a bias or
 * none, none with a scale, and are not used in place. */
static rdna_status load_parts(loader *l, int index, const part *parts, int count, rdna__llm_matrix *out) {
  rdna_gguf_tensor tensor;
  char name[96];
  rdna_dtype dtype = RDNA_F32;
  size_t bytes = 0;
  int64_t rows = 0;
  int biases = 0;
  bool together = out && !l->llm->in_place;
  for (int i = 0; together && i < count; i++) {
    snprintf(name, sizeof name, "blk.%d.%s.weight", index, parts[i].name);
    RDNA_TRY(find_tensor(l, name, parts[i].rows, parts[i].columns, &tensor));
    together = i == 0 || tensor.dtype == dtype;
    dtype = tensor.dtype;
    bytes += tensor.bytes;
    rows += parts[i].rows;
    snprintf(name, sizeof name, "blk.%d.%s.bias", index, parts[i].name);
    biases += rdna_gguf_has_tensor(l->file, name);
    snprintf(name, sizeof name, "blk.%d.%s.scale", index, parts[i].name);
    together = together && !rdna_gguf_has_tensor(l->file, name);
  }
  together = together && (biases == 0 || biases == count);
  void *weights = NULL, *bias = NULL;
  if (together) RDNA_TRY(allocate(l, bytes, &weights));
  if (together && biases) RDNA_TRY(allocate(l, (size_t)rows * sizeof(float), &bias));
  l->next_weight = weights;
  l->next_bias = bias;
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "blk.%d.%s", index, parts[i].name);
    parts[i].matrix->scale_after_bias = parts[i].scale_after_bias;
    RDNA_TRY(load_linear(l, name, parts[i].rows, parts[i].columns, parts[i].matrix));
  }
  l->next_weight = l->next_bias = NULL;
  if (!together) return RDNA_OK;
  out->weight = rdna_tensor_contiguous(weights, dtype, 2, (int64_t[]){rows, parts[0].columns});
  if (bias) out->bias = rdna_tensor_contiguous(bias, RDNA_F32, 1, &rows);
  out->scale = 1;
  return RDNA_OK;
}

static rdna_status load_layer(loader *l, int index, rdna__llm_layer *layer) {
  const rdna_llm_info *info = &l->llm->info;
  int64_t queries = (int64_t)info->heads * info->head_dim, keys = (int64_t)info->kv_heads * info->head_dim;
  const part parts[] = {
      {"attn_q", &layer->q, queries, info->width, false},
      {"attn_k", &layer->k, keys, info->width, false},
      {"attn_v", &layer->v, keys, info->width, false},
      {"attn_output", &layer->output, info->width, queries, true},
      {"ffn_gate", &layer->gate, info->hidden, info->width, true},
      {"ffn_up", &layer->up, info->hidden, info->width, true},
      {"ffn_down", &layer->down, info->width, info->hidden, true},
  };
  RDNA_TRY(load_parts(l, index, &parts[0], 3, &layer->qkv));
  RDNA_TRY(load_parts(l, index, &parts[3], 1, NULL));
  RDNA_TRY(load_parts(l, index, &parts[4], 2, &layer->gate_up));
  RDNA_TRY(load_parts(l, index, &parts[6], 1, NULL));
  char prefix[64];
  snprintf(prefix, sizeof prefix, "blk.%d.attn_norm.weight", index);
  RDNA_TRY(load_vector(l, prefix, info->width, NULL, &layer->attention_norm));
  snprintf(prefix, sizeof prefix, "blk.%d.ffn_norm.weight", index);
  return load_vector(l, prefix, info->width, NULL, &layer->ffn_norm);
}

/* base^(-2i/n), divided by the linear factor and by the file's own factor for each pair (Llama 3's scaling). */
static rdna_status make_frequencies(loader *l) {
  const rdna__llm_config *config = &l->llm->config;
  int64_t count = config->rotated / 2;
  float *factors = NULL;
  if (rdna_gguf_has_tensor(l->file, "rope_freqs.weight"))
    RDNA_TRY(read_vector(l, "rope_freqs.weight", count, &factors));
  float *frequencies = malloc((size_t)count * sizeof *frequencies);
  rdna_status status = RDNA_OK;
  if (!frequencies) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's frequencies");
  for (int64_t i = 0; status == RDNA_OK && i < count; i++) {
    double frequency = pow(config->rope_base, -2.0 * (double)i / config->rotated) / config->rope_factor;
    if (factors) frequency /= factors[i];
    frequencies[i] = (float)frequency;
    if (!isfinite(frequencies[i]))
      status = rdna__fail(RDNA_BAD_DATA, "rope_freqs.weight[%lld] is %g; RoPE divides by it", (long long)i,
                          factors ? (double)factors[i] : 0.0);
  }
  void *data = NULL;
  if (status == RDNA_OK) status = upload(l, frequencies, (size_t)count * sizeof *frequencies, NULL, &data);
  free(frequencies);
  free(factors);
  if (status == RDNA_OK) l->llm->inv_freq = rdna_tensor_contiguous(data, RDNA_F32, 1, &count);
  return status;
}

static rdna_status read_vocabulary_size(loader *l) {
  rdna_gguf_tensor embedding;
  RDNA_TRY(rdna_gguf_get_tensor(l->file, "token_embd.weight", &embedding));
  if (embedding.rank != 2 || embedding.shape[0] < 1 || embedding.shape[0] > LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "tensor 'token_embd.weight' is no table of one row a token");
  l->llm->info.vocabulary = (int)embedding.shape[0];
  return RDNA_OK;
}

rdna_status rdna__llm_load(rdna_llm *llm, const rdna_gguf *file, void (*progress)(void *data, double share),
                           void *progress_data) {
  loader l = {.llm = llm, .file = file, .progress = progress, .progress_data = progress_data};
  const rdna_kernel *kernel; /* a GPU that has no code should say so before gigabytes are read */
  RDNA_TRY(rdna_kernel_get(llm->device, "rms_norm_f32", &kernel));
  RDNA_TRY(read_keys(&l));
  RDNA_TRY(read_vocabulary_size(&l));
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor tensor;
    RDNA_TRY(rdna_gguf_tensor_at(file, i, &tensor));
    l.bytes_total += tensor.bytes;
  }
  llm->in_place = rdna__device_driver(llm->device)->code_format == RDNA__CODE_HOST;
  rdna_llm_info *info = &llm->info;
  llm->layers = calloc((size_t)info->layers, sizeof *llm->layers);
  if (!llm->layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d layers", info->layers);

  RDNA_TRY(load_matrix(&l, "token_embd.weight", info->vocabulary, info->width, &llm->embedding));
  uint64_t embedding_bytes = info->weight_bytes;
  for (int i = 0; i < info->layers; i++) RDNA_TRY(load_layer(&l, i, &llm->layers[i]));
  RDNA_TRY(load_vector(&l, "output_norm.weight", info->width, NULL, &llm->output_norm));
  info->bytes_per_token = info->weight_bytes - embedding_bytes + embedding_bytes / (uint64_t)info->vocabulary;
  if (rdna_gguf_has_tensor(file, "output.weight")) {
    uint64_t before = info->weight_bytes;
    RDNA_TRY(load_linear(&l, "output", info->vocabulary, info->width, &llm->output));
    info->bytes_per_token += info->weight_bytes - before;
  } else {
    llm->output = (rdna__llm_matrix){.weight = llm->embedding, .scale = 1}; /* tied */
    info->bytes_per_token += embedding_bytes;
  }
  RDNA_TRY(make_frequencies(&l));
  return rdna_stream_synchronize(rdna_device_default_stream(llm->device));
}
