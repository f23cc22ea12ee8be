/* Adapters: read from a file, and given to sequences.
 *
 * A file of llama.cpp's has for the model's tensor NAME.weight two of its own, NAME.weight.lora_a (rank, columns) and
 * NAME.weight.lora_b (rows, rank). */
#include "model/llm/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "model/llm/cache.h"
#include "model/weights/peft.h"

enum { LARGEST_RANK = 4096, NAME = 96 };

/* ---- what the file says ---- */

static rdna_status check_word(const rdna_gguf *file, const char *key, const char *wanted, const char *what) {
  rdna_text text;
  if (!rdna_gguf_find_key(file, key, NULL)) return rdna__fail(RDNA_UNSUPPORTED, "it has no key %s: %s", key, what);
  RDNA_TRY(rdna_gguf_get_text(file, key, &text));
  if (rdna__text_is(text, wanted)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its %s is '%.*s', and not '%s': %s", key, (int)(text.size < 64 ? text.size : 64),
                    text.data, wanted, what);
}

static rdna_status check_keys(const rdna_llm *llm, const rdna_gguf *file) {
  RDNA_TRY(check_word(file, "general.type", "adapter", "it is no adapter"));
  RDNA_TRY(check_word(file, "adapter.type", "lora", "low-rank adapters alone are read"));
  if (rdna_gguf_find_key(file, "adapter.alora.invocation_tokens", NULL))
    return rdna__fail(RDNA_UNSUPPORTED, "it acts from certain tokens on (aLoRA), which this library has not");
  return check_word(file, "general.architecture", llm->info.architecture, "it is for models of another architecture");
}

/* The name of the matrix that tensor |name| with the ending |suffix| is for; false: it has another. */
static bool matrix_of(const char *name, const char *suffix, char out[NAME]) {
  static const char weight[] = ".weight";
  size_t size = strlen(name), end = strlen(suffix), middle = sizeof weight - 1;
  if (size < end + middle || size - end - middle >= NAME || strcmp(name + size - end, suffix) != 0) return false;
  if (memcmp(name + size - end - middle, weight, middle) != 0) return false;
  snprintf(out, NAME, "%.*s", (int)(size - end - middle), name);
  return true;
}

/* ---- matrices ---- */

/* |factor| is on B. */
static rdna_status put_values(rdna_llm_adapter *adapter, const char *name, int64_t rows, int64_t columns, double factor,
                              rdna_tensor *out) {
  float *values;
  rdna__weights *w = &adapter->weights;
  RDNA_TRY(rdna__read_matrix(w, name, rows, columns, &values));
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; i < rows * columns && status == RDNA_OK; i++) {
    if (!isfinite(values[i])) status = rdna__fail(RDNA_BAD_DATA, "tensor '%s' has values that are no numbers", name);
    values[i] = (float)((double)values[i] * factor);
  }
  if (status == RDNA_OK) status = rdna__put_vector(w, values, rows * columns, out);
  free(values);
  *out = rdna_tensor_contiguous(out->data, RDNA_F32, 2, (int64_t[]){rows, columns});
  rdna__weights_count(w, (uint64_t)(rows * columns) * sizeof(float), rows * columns);
  return status;
}

/* The rank by the shape of |tensor|, lora_a. */
static rdna_status rank_of(const rdna_gguf_tensor *tensor, int64_t *out) {
  *out = tensor->rank == 1 ? 1 : tensor->shape[0];
  if (tensor->rank <= 2 && *out >= 1 && *out <= LARGEST_RANK) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has %d dimensions and a rank of %lld; matrices of 1 to %d are read",
                    tensor->name, tensor->rank, (long long)*out, LARGEST_RANK);
}

static rdna_status add_matrix(rdna_llm_adapter *adapter, const rdna__named_matrix *base, const rdna_gguf_tensor *a,
                              double alpha) {
  char name[NAME + 16];
  int64_t rank, rows = base->weight.shape[0], columns = base->weight.shape[1];
  rdna__nn_low_rank *m = &adapter->matrices.matrices[adapter->matrices.count];
  RDNA_TRY(rank_of(a, &rank));
  m->begin = base->weight.data;
  m->end = m->begin + rdna_dtype_bytes(base->weight.dtype, rows * columns);
  RDNA_TRY(put_values(adapter, a->name, rank, columns, 1, &m->a));
  snprintf(name, sizeof name, "%s.weight.lora_b", base->name);
  RDNA_TRY(put_values(adapter, name, rows, rank, alpha > 0 ? alpha / (double)rank : 1, &m->b));
  adapter->matrices.count++;
  if (rank > adapter->rank) adapter->rank = (int)rank;
  return RDNA_OK;
}

static rdna_status refuse_matrix(const char *matrix) {
  bool experts = strstr(matrix, "_exps") != NULL, embedding = strcmp(matrix, "token_embd") == 0;
  return rdna__fail(RDNA_UNSUPPORTED, "it changes '%s', %s", matrix,
                    experts     ? "matrices of experts, which no adapter changes here"
                    : embedding ? "the embedding, which no adapter changes here"
                                : "which is no matrix of this model that an adapter changes");
}

/* Tensor |index|, where it is a lora_a of |adapter|'s part of |llm|, together with its lora_b. */
static rdna_status read_tensor(rdna_llm_adapter *adapter, const rdna_llm *llm, const rdna_gguf *file, size_t index,
                               double alpha) {
  rdna_gguf_tensor tensor;
  char matrix[NAME], other[NAME + 16];
  RDNA_TRY(rdna_gguf_tensor_at(file, index, &tensor));
  bool is_a = matrix_of(tensor.name, ".lora_a", matrix);
  if (!is_a && !matrix_of(tensor.name, ".lora_b", matrix))
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.80s' is no NAME.weight.lora_a or lora_b", tensor.name);
  snprintf(other, sizeof other, "%s.weight.lora_%s", matrix, is_a ? "b" : "a");
  if (!rdna_gguf_has_tensor(file, other))
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is there without '%s'", tensor.name, other);
  const rdna__named_matrix *base = rdna__weights_find(&llm->weights, matrix);
  if (!base && !(llm->below && rdna__weights_find(&llm->below->weights, matrix))) return refuse_matrix(matrix);
  base = rdna__weights_find(&adapter->llm->weights, matrix);
  return base && is_a ? add_matrix(adapter, base, &tensor, alpha) : RDNA_OK;
}

static int by_place(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const rdna__nn_low_rank *)a)->begin, y = (uintptr_t)((const rdna__nn_low_rank *)b)->begin;
  return (x > y) - (x < y);
}

/* What is for |part|, which is |llm| or the layers below it. */
static rdna_status read_part(const rdna_llm *llm, rdna_llm *part, const rdna_gguf *file, double alpha,
                             rdna_llm_adapter **out) {
  rdna__strmap read = {0};
  rdna_llm_adapter *adapter = calloc(1, sizeof *adapter);
  size_t count = rdna_gguf_tensor_count(file);
  if (adapter) adapter->matrices.matrices = calloc(count + 1, sizeof *adapter->matrices.matrices);
  if (!adapter || !adapter->matrices.matrices) {
    free(adapter);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an adapter");
  }
  adapter->references = 1;
  adapter->llm = rdna_llm_retain(part);
  adapter->weights = (rdna__weights){.device = rdna_device_retain(part->weights.device), .file = file, .read = &read};
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < count && status == RDNA_OK; i++) status = read_tensor(adapter, llm, file, i, alpha);
  if (status == RDNA_OK) status = rdna_stream_synchronize(rdna_device_default_stream(adapter->weights.device));
  rdna__nn_adapter *m = &adapter->matrices;
  qsort(m->matrices, (size_t)m->count, sizeof *m->matrices, by_place);
  adapter->weights.file = NULL;
  adapter->weights.read = NULL;
  rdna__strmap_deinit(&read);
  if (status == RDNA_OK)
    *out = adapter;
  else
    rdna_llm_adapter_release(adapter);
  return status;
}

rdna_status rdna__llm_adapter_read(rdna_llm *llm, const rdna_gguf *file, rdna_llm_adapter **out_adapter) {
  double alpha = 0;
  rdna_llm_adapter *adapter;
  RDNA_TRY(check_keys(llm, file));
  if (rdna_gguf_find_key(file, "adapter.lora.alpha", NULL))
    RDNA_TRY(rdna_gguf_get_f64(file, "adapter.lora.alpha", &alpha));
  if (!(alpha >= 0 && alpha < 1e9)) return rdna__fail(RDNA_BAD_DATA, "its adapter.lora.alpha is %g", alpha);
  if (rdna_gguf_tensor_count(file) == 0) return rdna__fail(RDNA_BAD_DATA, "it has no tensors");
  RDNA_TRY(read_part(llm, llm, file, alpha, &adapter));
  rdna_status status = llm->below ? read_part(llm, llm->below, file, alpha, &adapter->below) : RDNA_OK;
  if (status == RDNA_OK)
    *out_adapter = adapter;
  else
    rdna_llm_adapter_release(adapter);
  return status;
}

rdna_status rdna_llm_adapter_open(rdna_llm *llm, const char *path, rdna_llm_adapter **out_adapter) {
  struct stat info;
  rdna_gguf *file;
  if (!llm || !path || !out_adapter)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_adapter_open needs a model, a path and a place for the adapter");
  bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  if (is_folder)
    RDNA_TRY(rdna__peft_open(path, llm->info.architecture, llm->info.head_dim, &file));
  else
    RDNA_TRY(rdna_gguf_open(path, &file));
  rdna_status status = rdna__llm_adapter_read(llm, file, out_adapter);
  rdna_gguf_close(file);
  return rdna__annotate(status, "adapter %s", path);
}

rdna_llm_adapter *rdna_llm_adapter_retain(rdna_llm_adapter *adapter) {
  atomic_fetch_add(&adapter->references, 1);
  return adapter;
}

void rdna_llm_adapter_release(rdna_llm_adapter *adapter) {
  if (!adapter || atomic_fetch_sub(&adapter->references, 1) > 1) return;
  rdna_llm_adapter_release(adapter->below);
  rdna__weights_free(&adapter->weights);
  rdna_device_release(adapter->weights.device);
  free(adapter->matrices.matrices);
  rdna_llm_release(adapter->llm);
  free(adapter);
}

rdna_status rdna_llm_adapter_get_info(const rdna_llm_adapter *adapter, rdna_llm_adapter_info *out_info) {
  if (!adapter || !out_info || out_info->size < sizeof *out_info)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_llm_adapter_get_info needs an adapter, and a struct whose size is set");
  *out_info = (rdna_llm_adapter_info){.size = out_info->size};
  for (const rdna_llm_adapter *part = adapter; part; part = part->below) {
    out_info->matrices += part->matrices.count;
    out_info->rank = part->rank > out_info->rank ? part->rank : out_info->rank;
    out_info->parameters += part->weights.parameters;
    out_info->bytes += part->weights.bytes;
  }
  return RDNA_OK;
}

/* ---- sequences ---- */

static rdna_status check_uses(const rdna_llm_sequence *s, const rdna_llm_adapter_use *uses, int count) {
  if (s->position > 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "adapters for a sequence that has %d tokens already; truncate it first",
                      s->position);
  for (int i = 0; i < count; i++) {
    if (!uses[i].adapter || uses[i].adapter->llm != s->cache->llm)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "adapter %d of a sequence is NULL or another model's", i);
    if (!isfinite(uses[i].scale)) return rdna__fail(RDNA_INVALID_ARGUMENT, "the scale of adapter %d is no number", i);
    for (int k = 0; k < i; k++)
      if (uses[k].adapter == uses[i].adapter)
        return rdna__fail(RDNA_INVALID_ARGUMENT, "adapters %d and %d of a sequence are the same", k, i);
  }
  return RDNA_OK;
}

/* Where |adapter| is among the cache's, which has it from now on; RDNA_LLM_MOST_ADAPTERS: there is no place. */
static int place_of(rdna_llm_cache *c, rdna_llm_adapter *adapter) {
  int at = 0;
  while (at < c->adapter_count && c->adapters[at] != adapter) at++;
  if (at == c->adapter_count && at < RDNA_LLM_MOST_ADAPTERS) {
    c->adapters[c->adapter_count++] = rdna_llm_adapter_retain(adapter);
    if (c->below) c->below->adapters[c->below->adapter_count++] = rdna_llm_adapter_retain(adapter->below);
  }
  return at;
}

rdna_status rdna_llm_sequence_adapt(rdna_llm_sequence *s, const rdna_llm_adapter_use *uses, int count) {
  if (!s || count < 0 || (count > 0 && !uses))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_sequence_adapt needs a sequence and its adapters");
  RDNA_TRY(check_uses(s, uses, count));
  memset(s->adapter_scales, 0, sizeof s->adapter_scales);
  for (int i = 0; i < count; i++) {
    int at = place_of(s->cache, uses[i].adapter);
    if (at == RDNA_LLM_MOST_ADAPTERS)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "a cache whose sequences have more than %d adapters",
                        RDNA_LLM_MOST_ADAPTERS);
    s->adapter_scales[at] = uses[i].scale;
  }
  return RDNA_OK;
}
