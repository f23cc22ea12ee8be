/* Multi-head latent attention (DeepSeek-AI, 2024). The cache has one vector c a token for all heads, and the rotated
 * part k_r of its key. A head's key would be W_k c and its value W_v c for every position; instead W_k is applied once
 * to the query and W_v once to the result:
 *
 *     cache row    | k_r (rotated) | c (rank) |            one key head, whose values are its c
 *     query        | q_r (rotated) | q W_k    |
 *     head's out   = (attention over c) W_v */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

/* Columns |first| to |first| + |count| - 1 of |t|: a view. */
static rdna_tensor columns_of(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  part.data = (float *)t->data + first;
  part.shape[t->rank - 1] = count;
  return part;
}

int64_t rdna__nn_latent_values(const rdna__nn_latent *l) {
  int64_t row = l->rank + l->rotated, heads = l->heads;
  return l->q_rank + heads * (l->unrotated + l->rotated) + 2 * row + heads * row + heads * l->rank +
         heads * l->value_dim;
}

/* |q| (count, heads, rotated + rank), before it is rotated. */
static rdna_status make_queries(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_latent *l,
                                const rdna_tensor *h, float *place, const rdna_tensor *q) {
  int64_t count = pass->count, dim = l->unrotated + l->rotated;
  rdna_tensor low = rdna__nn_matrix(place, count, l->q_rank);
  rdna_tensor raw = rdna__nn_matrix(place + count * l->q_rank, count, l->heads * dim), from = *h;
  if (l->q_rank) {
    RDNA_TRY(rdna__nn_linear(pass, &l->q_a, h, &low));
    RDNA_TRY(rdna_op_rms_norm(pass->stream, &low, &l->q_a_norm, decoder->norm_epsilon, &low));
    from = low;
  }
  RDNA_TRY(rdna__nn_linear(pass, &l->q_b, &from, &raw));
  raw = rdna__nn_heads(raw.data, count, l->heads, dim);
  rdna_tensor plain = columns_of(&raw, 0, l->unrotated), turned = columns_of(&raw, l->unrotated, l->rotated);
  rdna_tensor q_turned = columns_of(q, 0, l->rotated), q_rank = columns_of(q, l->rotated, l->rank);
  rdna_tensor heads = rdna_tensor_contiguous(pass->head_numbers, RDNA_I32, 2, (int64_t[]){count, l->heads});
  rdna_moe_product product = {RDNA_MOE_PRODUCT_INIT}; /* heads are the experts, and each token takes all */
  RDNA_TRY(rdna_op_copy(pass->stream, &turned, &q_turned));
  return rdna_op_moe_linear(pass->stream, &product, &plain, &l->k_b, &heads, &q_rank);
}

rdna_status rdna__nn_attend_latent(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                                   const rdna_tensor *h, const rdna_tensor *projected) {
  const rdna__nn_latent *l = &decoder->layers[index].latent;
  int64_t count = pass->count, row = l->rank + l->rotated, dim = l->unrotated + l->rotated;
  float *place = pass->latent, *raw = place + count * (l->q_rank + l->heads * dim), *key = raw + count * row;
  rdna_tensor q = rdna__nn_heads(key + count * row, count, l->heads, row);
  RDNA_TRY(make_queries(pass, decoder, l, h, place, &q));

  rdna_tensor both = rdna__nn_matrix(raw, count, row), k_row = rdna__nn_matrix(key, count, row);
  rdna_tensor c = columns_of(&both, 0, l->rank), c_normed = columns_of(&k_row, l->rotated, l->rank);
  rdna_tensor k_raw = columns_of(&both, l->rank, l->rotated), k_turned = columns_of(&k_row, 0, l->rotated);
  RDNA_TRY(rdna__nn_linear(pass, &l->kv_a, h, &both));
  RDNA_TRY(rdna_op_rms_norm(pass->stream, &c, &l->kv_a_norm, decoder->norm_epsilon, &c_normed));
  RDNA_TRY(rdna_op_copy(pass->stream, &k_raw, &k_turned));

  int64_t cache_shape[] = {pass->pages * pass->page_rows, 1, row};
  rdna_tensor k_cache =
      rdna_tensor_contiguous((char *)pass->k_cache + pass->cache_layer_bytes * (size_t)decoder->layers[index].cache,
                             pass->kv_dtype, 3, cache_shape);
  rdna_tensor c_cache = k_cache, none = k_cache, k = rdna__nn_heads(key, count, 1, row), no_values = k;
  c_cache.data = (char *)c_cache.data + rdna_dtype_bytes(pass->kv_dtype, l->rotated);
  c_cache.shape[2] = l->rank;
  none.shape[2] = no_values.shape[2] = 0; /* values are in the keys */
  rdna_rope rope = {RDNA_ROPE_INIT, l->rotation->layout, &pass->turns, &l->rotation->inv_freq, l->rotation->magnitude};
  RDNA_TRY(rdna__nn_rotate_and_keep(pass, &rope, 0, &q, &k, &no_values, &k_cache, &none));

  float *seen = (float *)q.data + count * l->heads * row;
  rdna_tensor attended = rdna__nn_heads(seen, count, l->heads, l->rank);
  rdna_tensor values = rdna__nn_heads(seen + count * l->heads * l->rank, count, l->heads, l->value_dim);
  const rdna__nn_attention of_rows = {.heads = l->heads, .kv_heads = 1, .scale = l->scale};
  RDNA_TRY(rdna__nn_attend_over(pass, &of_rows, &q, &k_cache, &c_cache, &attended));
  rdna_tensor heads = rdna_tensor_contiguous(pass->head_numbers, RDNA_I32, 2, (int64_t[]){count, l->heads});
  rdna_moe_product product = {RDNA_MOE_PRODUCT_INIT};
  RDNA_TRY(rdna_op_moe_linear(pass->stream, &product, &attended, &l->v_b, &heads, &values));
  rdna_tensor flat = rdna__nn_matrix(values.data, count, l->heads * l->value_dim);
  return rdna__nn_linear_out(pass, &l->output, &flat, projected);
}
