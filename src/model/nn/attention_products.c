/* Attention made of products, for heads that the attention kernels do not have: of more than 256 values, or with values
 * of another length than keys. The scores of some tokens at a time are written to memory:
 *
 *     scores (tokens, heads of a key head, length) = q k^T,  masked,  softmax,  times v */
#include <math.h>

#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

int64_t rdna__nn_score_tokens(int64_t group, int64_t context, int64_t batch) {
  const int64_t most = (int64_t)1 << 24; /* 64 MiB of scores */
  int64_t tokens = most / (group * context);
  return tokens < 1 ? 1 : tokens < batch ? tokens : batch;
}

/* Keys that a token does not see, those after it and those before its window, get -inf. */
static rdna_status hide(const rdna__nn_pass *pass, int window, int64_t first, int64_t tokens,
                        const rdna_tensor *scores) {
  int64_t length = scores->shape[2], of_keys[] = {1, length}, of_tokens[] = {tokens, 1}, of_mask[] = {tokens, length};
  rdna_tensor keys = rdna_tensor_contiguous(pass->key_numbers, RDNA_I32, 2, of_keys);
  rdna_tensor positions = rdna_tensor_contiguous((int32_t *)pass->positions.data + first, RDNA_I32, 2, of_tokens);
  rdna_tensor mask = rdna_tensor_contiguous(pass->hidden, RDNA_BOOL, 2, of_mask), hidden = mask;
  hidden.rank = 3;
  hidden.shape[1] = 1, hidden.shape[2] = length;
  hidden.stride[1] = length, hidden.stride[2] = 1;
  RDNA_TRY(rdna_op_compare(pass->stream, RDNA_COMPARE_GT, &keys, &positions, &mask));
  RDNA_TRY(rdna_op_masked_fill(pass->stream, &hidden, rdna_scalar_real(-INFINITY), scores, scores));
  if (window <= 0 || window >= length) return RDNA_OK;
  keys.data = (int32_t *)keys.data + window; /* key + window <= position */
  RDNA_TRY(rdna_op_compare(pass->stream, RDNA_COMPARE_LE, &keys, &positions, &mask));
  return rdna_op_masked_fill(pass->stream, &hidden, rdna_scalar_real(-INFINITY), scores, scores);
}

/* The tokens from |first| on, for key head |head|; |q| and |out| are the queries that share it, (tokens, group, …). */
static rdna_status attend_some(const rdna__nn_pass *pass, const rdna__nn_products *of, int64_t length, int64_t head,
                               int64_t first, const rdna_tensor *q, const rdna_tensor *out) {
  int64_t tokens = q->shape[0], group = q->shape[1];
  rdna_tensor scores = rdna_tensor_contiguous(pass->scores, RDNA_F32, 3, (int64_t[]){tokens, group, length});
  rdna_tensor k = *of->k_cache, v = *of->v_cache; /* (length, d) and, turned, (dv, length) */
  k.rank = v.rank = 2;
  k.data = (char *)k.data + rdna_dtype_bytes(k.dtype, head * k.stride[1]);
  v.data = (char *)v.data + rdna_dtype_bytes(v.dtype, head * v.stride[1]);
  k.shape[0] = length, k.shape[1] = of->k_cache->shape[2], k.stride[1] = 1;
  v.shape[0] = of->v_cache->shape[2], v.shape[1] = length, v.stride[1] = v.stride[0], v.stride[0] = 1;
  RDNA_TRY(rdna_op_linear(pass->stream, q, &k, NULL, &scores));
  RDNA_TRY(hide(pass, of->window, first, tokens, &scores));
  RDNA_TRY(rdna_op_softmax(pass->stream, &scores, 2, of->scale, &scores));
  return rdna_op_linear(pass->stream, &scores, &v, NULL, out);
}

/* The tokens of one sequence, whose rows of the caches follow one another. */
static rdna_status attend_span(const rdna__nn_pass *pass, const rdna__nn_span *span, const rdna__nn_products *of) {
  int64_t heads = of->q->shape[1], kv_heads = of->k_cache->shape[1], group = heads / kv_heads;
  int64_t most = pass->score_tokens, end = span->first + span->count;
  for (int64_t first = span->first; first < end; first += most) {
    int64_t tokens = end - first < most ? end - first : most;
    for (int64_t head = 0; head < kv_heads; head++) {
      rdna_tensor q = *of->q, out = *of->out;
      q.shape[0] = out.shape[0] = tokens;
      q.shape[1] = out.shape[1] = group;
      q.data = (float *)q.data + first * q.stride[0] + head * group * q.stride[1];
      out.data = (float *)out.data + first * out.stride[0] + head * group * out.stride[1];
      rdna_tensor q_rows = q, out_rows = out; /* with one stride between all rows */
      if (kv_heads > 1) {
        q_rows = rdna_tensor_contiguous(pass->group_rows, RDNA_F32, 3, q.shape);
        out_rows = rdna_tensor_contiguous((float *)pass->group_rows + rdna_tensor_count(&q), RDNA_F32, 3, out.shape);
        RDNA_TRY(rdna_op_copy(pass->stream, &q, &q_rows));
      }
      RDNA_TRY(attend_some(pass, of, span->length, head, first, &q_rows, &out_rows));
      if (kv_heads > 1) RDNA_TRY(rdna_op_copy(pass->stream, &out_rows, &out));
    }
  }
  return RDNA_OK;
}

/* Values that lie in their keys' rows need not be brought together too. */
static rdna_tensor values_in(const rdna__nn_products *of, const rdna_tensor *k_rows) {
  rdna_tensor v = *k_rows;
  v.shape[2] = of->out->shape[2];
  v.data = (char *)k_rows->data + rdna_dtype_bytes(k_rows->dtype, of->values_at);
  return v;
}

rdna_status rdna__nn_attend_by_products(const rdna__nn_pass *pass, const rdna__nn_products *of) {
  rdna_dtype dtype = pass->kv_dtype == RDNA_Q8_0 ? RDNA_F16 : pass->kv_dtype;
  for (int i = 0; i < pass->span_count; i++) {
    rdna_tensor k, v;
    rdna__scratch scratch = {.stream = pass->stream, .holder = "rows of a sequence"};
    rdna__nn_products rows = *of;
    rows.k_cache = &k, rows.v_cache = &v;
    rdna_status status = rdna__nn_rows_of(pass, &pass->spans[i], of->k_cache, dtype, &scratch, &k);
    if (status == RDNA_OK && !of->v_cache) v = values_in(of, &k);
    if (status == RDNA_OK && of->v_cache)
      status = rdna__nn_rows_of(pass, &pass->spans[i], of->v_cache, dtype, &scratch, &v);
    if (status == RDNA_OK) status = attend_span(pass, &pass->spans[i], &rows);
    RDNA_TRY(rdna__scratch_release(&scratch, status));
  }
  return RDNA_OK;
}
