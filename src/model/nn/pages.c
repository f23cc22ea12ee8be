/* Writes keys and values of a pass's tokens into caches, and gathers the rows of one sequence from its pages, for
 * attention that reads them one after the other. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

rdna_dtype rdna__nn_sequence_type(const rdna__nn_pass *pass) {
  return pass->kv_dtype == RDNA_BF16 ? RDNA_BF16 : RDNA_F16;
}

/* A cache as a matrix whose rows are |at_once| positions each; of a block format as bytes. */
static rdna_tensor as_matrix(const rdna_tensor *cache, int64_t slots, int64_t at_once) {
  int64_t values = at_once * cache->shape[1] * cache->shape[2], rows = slots / at_once;
  if (rdna_dtype_block_values(cache->dtype) == 1)
    return rdna_tensor_contiguous(cache->data, cache->dtype, 2, (int64_t[]){rows, values});
  return rdna_tensor_contiguous(cache->data, RDNA_U8, 2,
                                (int64_t[]){rows, (int64_t)rdna_dtype_bytes(cache->dtype, values)});
}

/* Gathers the span's pages, in its order, in scratch memory; |rows| is a view of them. */
static rdna_status bring_together(const rdna__nn_pass *pass, const rdna__nn_span *span, const rdna_tensor *cache,
                                  rdna__scratch *scratch, rdna_tensor *rows) {
  rdna_tensor pages = as_matrix(cache, pass->pages * pass->page_rows, pass->page_rows), out;
  RDNA_TRY(rdna__scratch_tensor(scratch, pages.dtype, 2, (int64_t[]){span->pages.shape[0], pages.shape[1]}, &out));
  *rows = rdna__nn_rows(cache, 0, span->length);
  rows->data = out.data;
  return rdna_op_index_select(pass->stream, &pages, 0, &span->pages, &out, NULL);
}

rdna_status rdna__nn_rows_of(const rdna__nn_pass *pass, const rdna__nn_span *span, const rdna_tensor *cache,
                             rdna_dtype dtype, rdna__scratch *scratch, rdna_tensor *rows) {
  if (span->base >= 0)
    *rows = rdna__nn_rows(cache, span->base, span->length);
  else
    RDNA_TRY(bring_together(pass, span, cache, scratch, rows));
  if (dtype == cache->dtype) return RDNA_OK;
  rdna_tensor from = *rows;
  RDNA_TRY(rdna__scratch_tensor(scratch, dtype, 3, from.shape, rows));
  return cache->dtype == RDNA_Q8_0 ? rdna_op_dequantize(pass->stream, &from, rows)
                                   : rdna_op_cast(pass->stream, &from, rows);
}

/* The blocks |from| (count, heads, d) to the cache rows of the tokens from |first| on. */
static rdna_status keep_blocks(const rdna__nn_pass *pass, int first, const rdna_tensor *from,
                               const rdna_tensor *cache) {
  rdna_tensor rows = rdna__nn_rows(&pass->cache_rows, first, from->shape[0]);
  rdna_tensor to = as_matrix(cache, pass->pages * pass->page_rows, 1), bytes = as_matrix(from, from->shape[0], 1);
  return rdna_op_index_copy(pass->stream, &to, 0, &rows, &bytes, RDNA_SCATTER_ASSIGN, false, NULL);
}

rdna_status rdna__nn_rotate_and_keep(const rdna__nn_pass *pass, const rdna_rope *rope, int first, const rdna_tensor *q,
                                     const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *k_cache,
                                     const rdna_tensor *v_cache) {
  int64_t count = k->shape[0], values = k->shape[1] * k->shape[2], of_v = v->shape[1] * v->shape[2];
  if (pass->kv_dtype != RDNA_Q8_0) {
    rdna_tensor rows = rdna__nn_rows(&pass->cache_rows, first, count);
    return rdna_op_rope_qkv_write(pass->stream, rope, q, k, v, &rows, k_cache, v_cache);
  }
  rdna_tensor fresh_k = rdna_tensor_contiguous(pass->fresh, RDNA_F32, 3, k->shape);
  rdna_tensor fresh_v = rdna_tensor_contiguous((float *)pass->fresh + count * values, RDNA_F32, 3, v->shape);
  rdna_tensor rows = rdna_tensor_contiguous(pass->fresh_rows, RDNA_I32, 1, &count);
  RDNA_TRY(rdna_op_rope_qkv_write(pass->stream, rope, q, k, v, &rows, &fresh_k, &fresh_v));
  rdna_tensor both = rdna_tensor_contiguous(pass->fresh, RDNA_F32, 2, (int64_t[]){count, values + of_v});
  rdna_tensor blocks = both, k_blocks = fresh_k, v_blocks = fresh_v;
  blocks.dtype = k_blocks.dtype = v_blocks.dtype = RDNA_Q8_0;
  blocks.data = k_blocks.data = pass->fresh_blocks;
  v_blocks.data = (char *)pass->fresh_blocks + rdna_dtype_bytes(RDNA_Q8_0, count * values);
  RDNA_TRY(rdna_op_quantize(pass->stream, &both, &blocks));
  RDNA_TRY(keep_blocks(pass, first, &k_blocks, k_cache));
  return of_v > 0 ? keep_blocks(pass, first, &v_blocks, v_cache) : RDNA_OK;
}
