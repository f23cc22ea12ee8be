/* DeepSeek V2 and V3 (DeepSeek-AI, 2024) and what is built like them, as GLM-4.7-Flash: attention over a latent vector,
 * first some dense layers, then mixtures of experts with one that all tokens take. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  rdna__rope_scaling scaling;
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__arch_scaling(llm, &scaling));
  scaling.log_multiplier = 10 * scaling.log_multiplier; /* files of this architecture have a tenth of it */
  RDNA_TRY(rdna__arch_rotation(llm, llm->config.rope_base, RDNA_ROPE_LAYOUT_INTERLEAVED, &scaling, &llm->rotations[0]));
  double stretched = scaling.kind == RDNA__ROPE_YARN && scaling.factor > 1 ? log(scaling.factor) : 0;
  if (scaling.log_multiplier > 0) llm->rotations[0].magnitude = 1; /* it is in the scale of scores instead */
  llm->config.score_magnitude = 1 + 0.1 * (double)scaling.log_multiplier * stretched;
  return RDNA_OK;
}

/* The sizes, by keys that older files have under other names: there keys and values are those of expanded heads. */
static rdna_status read_sizes(const rdna_llm *llm, rdna__nn_latent *l, bool *out_older) {
  const rdna__weights *w = &llm->weights;
  int dim;
  RDNA_TRY(rdna__key_count(w, "attention.kv_lora_rank", 0, &l->rank));
  RDNA_TRY(rdna__key_count_or_none(w, "attention.q_lora_rank", &l->q_rank));
  RDNA_TRY(rdna__key_count_or_none(w, "attention.key_length_mla", &dim));
  *out_older = dim == 0;
  if (*out_older) dim = llm->info.head_dim;
  RDNA_TRY(
      rdna__key_count(w, *out_older ? "attention.value_length" : "attention.value_length_mla", dim, &l->value_dim));
  l->heads = llm->info.heads;
  l->rotated = llm->config.rotated;
  l->unrotated = dim - l->rotated;
  if (l->unrotated < 1)
    return rdna__fail(RDNA_BAD_DATA, "%s has heads of %d values, of which %d are rotated", w->architecture, dim,
                      l->rotated);
  l->scale = (float)(llm->config.score_magnitude * llm->config.score_magnitude / sqrt(dim));
  return RDNA_OK;
}

/* attn_kv_b, (heads, unrotated + value_dim, rank), has what newer files have as attn_k_b, turned, and attn_v_b. */
static rdna_status split(rdna_llm *llm, int index, rdna__nn_latent *l) {
  int64_t heads = l->heads, rank = l->rank, n = l->unrotated, v = l->value_dim;
  int64_t shape[] = {heads * (n + v), rank}, count = heads * n * rank, v_count = heads * v * rank;
  float *both;
  RDNA_TRY(rdna__read_layer_values(&llm->weights, index, "attn_kv_b.weight", 2, shape, &both));
  float *keys_of = malloc((size_t)(count + v_count) * sizeof *keys_of), *values_of = keys_of + count;
  rdna_status status = keys_of ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the heads of a layer");
  for (int64_t h = 0; status == RDNA_OK && h < heads; h++) {
    const float *from = both + h * (n + v) * rank;
    for (int64_t r = 0; r < rank; r++)
      for (int64_t i = 0; i < n; i++) keys_of[(h * rank + r) * n + i] = from[i * rank + r];
    for (int64_t i = 0; i < v * rank; i++) values_of[h * v * rank + i] = from[n * rank + i];
  }
  if (status == RDNA_OK) status = rdna__put_vector(&llm->weights, keys_of, count, &l->k_b);
  if (status == RDNA_OK) status = rdna__put_vector(&llm->weights, values_of, v_count, &l->v_b);
  free(keys_of);
  free(both);
  RDNA_TRY(status);
  rdna__weights_count(&llm->weights, (uint64_t)(count + v_count) * sizeof(float), count + v_count);
  l->k_b = rdna_tensor_contiguous(l->k_b.data, RDNA_F32, 3, (int64_t[]){heads, rank, n});
  l->v_b = rdna_tensor_contiguous(l->v_b.data, RDNA_F32, 3, (int64_t[]){heads, v, rank});
  return RDNA_OK;
}

static rdna_status load_latent(rdna_llm *llm, int index, rdna__nn_latent *l) {
  rdna__weights *w = &llm->weights;
  bool older;
  RDNA_TRY(read_sizes(llm, l, &older));
  l->rotation = &llm->rotations[0];
  int64_t width = llm->info.width, queries = (int64_t)l->heads * (l->unrotated + l->rotated);
  const rdna__part q_a = {"attn_q_a", &l->q_a, l->q_rank, width, true};
  const rdna__part q_b = {l->q_rank ? "attn_q_b" : "attn_q", &l->q_b, queries, l->q_rank ? l->q_rank : width, true};
  const rdna__part kv_a = {"attn_kv_a_mqa", &l->kv_a, l->rank + l->rotated, width, true};
  const rdna__part output = {"attn_output", &l->output, width, (int64_t)l->heads * l->value_dim, true};
  if (l->q_rank) {
    RDNA_TRY(rdna__load_parts(w, index, &q_a, 1, NULL, NULL));
    RDNA_TRY(rdna__load_layer_vector(w, index, "attn_q_a_norm.weight", l->q_rank, &l->q_a_norm));
  }
  RDNA_TRY(rdna__load_parts(w, index, &q_b, 1, NULL, NULL));
  RDNA_TRY(rdna__load_parts(w, index, &kv_a, 1, NULL, NULL));
  RDNA_TRY(rdna__load_layer_vector(w, index, "attn_kv_a_norm.weight", l->rank, &l->kv_a_norm));
  RDNA_TRY(rdna__load_parts(w, index, &output, 1, NULL, NULL));
  bool apart = rdna__has_in_layer(w, index, "attn_k_b.weight");
  if (apart) RDNA_TRY(rdna__leave_unread(w, index, "attn_kv_b.weight")); /* some files have it both ways */
  if (!apart && rdna__has_in_layer(w, index, "attn_kv_b.weight")) return split(llm, index, l);
  if (older)
    return rdna__fail(RDNA_BAD_DATA, "the model file has no key '%s.attention.key_length_mla'", w->architecture);
  RDNA_TRY(rdna__load_layer_matrices(w, index, "attn_k_b.weight", l->heads, l->rank, l->unrotated, &l->k_b));
  return rdna__load_layer_matrices(w, index, "attn_v_b.weight", l->heads, l->value_dim, l->rank, &l->v_b);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(load_latent(llm, index, &l->latent));
  RDNA_TRY(rdna__arch_norms(llm, index, l));
  return rdna__arch_dense_or_experts(llm, index, l, RDNA__ARCH_SOFTMAX);
}

const rdna__llm_arch rdna__arch_deepseek2 = {"deepseek2", keys, layer};
