/* Operators that write at indices. Where several values may go to one place they are combined by segment.c. */
#include "base/deterministic.h"
#include "math/index/indexed_plan.h"

static rdna_status check_dst(const char *name, rdna_stream *stream, const rdna_tensor *dst, int *dim,
                             const rdna_tensor *indices) {
  RDNA_TRY(rdna__check_indexed(name, stream, "dst", dst));
  RDNA_TRY(rdna__check_distinct(name, dst));
  RDNA_TRY(rdna__check_dim(name, "dst", dst, dim));
  RDNA_TRY(rdna__check_indices(name, "indices", indices));
  return rdna__check_apart(name, "dst", dst, "indices", indices);
}

static rdna_status check_src(const char *name, const rdna_tensor *dst, const rdna_tensor *src) {
  RDNA_TRY(rdna__check_tensor(name, "src", src));
  RDNA_TRY(rdna__check_same_dtype(name, "src", src, "dst", dst));
  return rdna__check_apart(name, "dst", dst, "src", src);
}

static rdna_status check_mode(const char *name, rdna_scatter mode) {
  if ((unsigned)mode < RDNA_SCATTER_COUNT) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: mode is number %d; modes are 0 to %d", name, (int)mode,
                    RDNA_SCATTER_COUNT - 1);
}

/* Returns segments of |n| values that go to |rows| places of |dst|, with outer and inner of 1. */
static rdna__segments begin_segments(const char *name, const rdna_tensor *dst, rdna_scatter mode, bool include_self,
                                     int64_t n, int64_t rows) {
  return (rdna__segments){.name = name,
                          .dtype = dst->dtype,
                          .mode = mode,
                          .include_self = include_self,
                          .outer = 1,
                          .n = n,
                          .rows = rows,
                          .inner = 1};
}

/* Combines contiguous copies: dst as (outer, rows, inner), src as (outer, n, inner). Copies dst back. */
static rdna_status join_dense(rdna__scratch *scratch, const rdna__indexed *keys, rdna__segments segments,
                              const rdna_tensor *dst_view, const rdna_tensor *src_view) {
  rdna_tensor dst, src;
  void *memory;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)segments.n * sizeof(uint32_t), &memory));
  RDNA_TRY(rdna__index_keys(keys, false, segments.rows, -1, memory));
  RDNA_TRY(rdna__dense_in(scratch, dst_view, &dst));
  RDNA_TRY(rdna__dense_in(scratch, src_view, &src));
  segments.keys = memory, segments.src = src.data, segments.dst = dst.data;
  RDNA_TRY(rdna__segments_queue(scratch, &segments));
  return rdna__dense_out(scratch, &dst, dst_view);
}

/* Combines whole rows along |dim|, with one index each; |indices| is of rank 1 or 0. */
static rdna_status join_rows(const char *name, rdna_stream *stream, const rdna_tensor *dst, int dim,
                             const rdna_tensor *indices, const rdna_tensor *src, rdna_scatter mode, bool include_self,
                             uint32_t *outside) {
  rdna__segments segments =
      begin_segments(name, dst, mode, include_self, rdna_tensor_count(indices), dst->rank > 0 ? dst->shape[dim] : 1);
  RDNA_TRY(rdna__check_segments(name, dst->dtype, mode, segments.n, segments.rows));
  if (rdna_tensor_count(src) == 0 || rdna_tensor_count(dst) == 0) return RDNA_OK;
  for (int d = 0; d < dim; d++) segments.outer *= dst->shape[d];
  for (int d = dim + 1; d < dst->rank; d++) segments.inner *= dst->shape[d];
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna__indexed keys = {name, stream, *indices, *indices, rdna__index_rule(dst, dim, indices->dtype, false, outside)};
  for (int d = 0; d < indices->rank; d++) keys.base.stride[d] = 0;
  keys.rule.stride = 1;
  return rdna__scratch_release(&scratch, join_dense(&scratch, &keys, segments, dst, src));
}

/* Combines single values, with one index each: a row is one value. |src| has the shape of |indices|. */
static rdna_status join_values(const char *name, rdna_stream *stream, const rdna_tensor *dst, int dim,
                               const rdna_tensor *indices, const rdna_tensor *src, rdna_scatter mode, bool include_self,
                               uint32_t *outside) {
  rdna__segments segments =
      begin_segments(name, dst, mode, include_self, rdna_tensor_count(indices), rdna_tensor_count(dst));
  RDNA_TRY(rdna__check_segments(name, dst->dtype, mode, segments.n, segments.rows));
  if (segments.n == 0 || segments.rows == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna_tensor dense = rdna_tensor_contiguous(dst->data, dst->dtype, dst->rank, dst->shape);
  rdna__indexed keys = {name, stream, *indices, rdna__index_base(&dense, dim, dst->rank, indices->shape),
                        rdna__index_rule(&dense, dim, indices->dtype, false, outside)};
  return rdna__scratch_release(&scratch, join_dense(&scratch, &keys, segments, dst, src));
}

/* Returns whether the indices differ along |dim| alone and cover the other dimensions of |dst|: then rows are moved. */
static bool goes_by_rows(const rdna_tensor *dst, int dim, const rdna_tensor *indices) {
  for (int d = 0; d < dst->rank; d++) {
    if (d == dim) continue;
    if (indices->shape[d] != dst->shape[d] || (indices->shape[d] != 1 && indices->stride[d] != 0)) return false;
  }
  return dst->rank > 0;
}

/* ASSIGN leaves open which of several values stays. Deterministic mode makes it the last. */
static rdna_scatter settled(rdna_scatter mode) {
  return mode == RDNA_SCATTER_ASSIGN && rdna__deterministic() ? RDNA_SCATTER_LAST : mode;
}

rdna_status rdna_op_scatter(rdna_stream *stream, const rdna_tensor *dst, int dim, const rdna_tensor *indices,
                            const rdna_tensor *src, rdna_scatter mode, bool include_self, uint32_t *outside) {
  static const char *const name = "scatter";
  mode = settled(mode);
  RDNA_TRY(check_dst(name, stream, dst, &dim, indices));
  RDNA_TRY(check_mode(name, mode));
  RDNA_TRY(check_src(name, dst, src));
  RDNA_TRY(rdna__check_within(name, indices, "dst", dst, dim));
  RDNA_TRY(rdna__check_within(name, indices, "src", src, -1));
  rdna_tensor values = *src; /* src cut down to the shape of indices */
  for (int d = 0; d < src->rank; d++) values.shape[d] = indices->shape[d];
  if (mode != RDNA_SCATTER_ASSIGN) {
    if (!goes_by_rows(dst, dim, indices))
      return join_values(name, stream, dst, dim, indices, &values, mode, include_self, outside);
    rdna_tensor line = *indices;
    line.rank = 1, line.shape[0] = indices->shape[dim], line.stride[0] = indices->stride[dim];
    return join_rows(name, stream, dst, dim, &line, &values, mode, include_self, outside);
  }
  rdna__indexed indexed = {name, stream, *indices, rdna__index_base(dst, dim, dst->rank, indices->shape),
                           rdna__index_rule(dst, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, true, &values, (rdna_scalar){0});
}

rdna_status rdna_op_scatter_value(rdna_stream *stream, const rdna_tensor *dst, int dim, const rdna_tensor *indices,
                                  rdna_scalar value, uint32_t *outside) {
  static const char *const name = "scatter_value";
  RDNA_TRY(check_dst(name, stream, dst, &dim, indices));
  RDNA_TRY(rdna__check_within(name, indices, "dst", dst, dim));
  rdna__indexed indexed = {name, stream, *indices, rdna__index_base(dst, dim, dst->rank, indices->shape),
                           rdna__index_rule(dst, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, true, NULL, value);
}

rdna_status rdna_op_index_copy(rdna_stream *stream, const rdna_tensor *dst, int dim, const rdna_tensor *indices,
                               const rdna_tensor *src, rdna_scatter mode, bool include_self, uint32_t *outside) {
  static const char *const name = "index_copy";
  mode = settled(mode);
  RDNA_TRY(check_dst(name, stream, dst, &dim, indices));
  RDNA_TRY(check_mode(name, mode));
  RDNA_TRY(check_src(name, dst, src));
  RDNA_TRY(rdna__check_select(name, "src", src, "dst", dst, dim, indices));
  if (mode != RDNA_SCATTER_ASSIGN) return join_rows(name, stream, dst, dim, indices, src, mode, include_self, outside);
  rdna__indexed indexed = {name, stream, rdna__along_dim(indices, dim, src->rank, src->shape),
                           rdna__index_base(dst, dim, src->rank, src->shape),
                           rdna__index_rule(dst, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, true, src, (rdna_scalar){0});
}

rdna_status rdna_op_index_fill(rdna_stream *stream, const rdna_tensor *dst, int dim, const rdna_tensor *indices,
                               rdna_scalar value, uint32_t *outside) {
  static const char *const name = "index_fill";
  RDNA_TRY(check_dst(name, stream, dst, &dim, indices));
  if (dst->rank > 0) RDNA_TRY(rdna__check_rank(name, "indices", indices, 1));
  int64_t shape[RDNA_MAX_RANK] = {0};
  for (int d = 0; d < dst->rank; d++) shape[d] = d == dim ? indices->shape[0] : dst->shape[d];
  rdna__indexed indexed = {name, stream, rdna__along_dim(indices, dim, dst->rank, shape),
                           rdna__index_base(dst, dim, dst->rank, shape),
                           rdna__index_rule(dst, dim, indices->dtype, true, outside)};
  return rdna__index_move(&indexed, true, NULL, value);
}

/* Returns x with its dimensions in the order |dims|. */
static rdna_tensor permuted(const rdna_tensor *x, const int *dims) {
  rdna_tensor view = *x;
  for (int d = 0; d < x->rank; d++) view.shape[d] = x->shape[dims[d]], view.stride[d] = x->stride[dims[d]];
  return view;
}

/* index_put that combines. |values| has the shape of x[indices]. Permutes dst so that its indexed dimensions come
 * first, and values so that the broadcast ones do: then both are rows, and the keys are row-major offsets in the
 * former. */
static rdna_status put_joined(rdna__scratch *scratch, const rdna__advanced *p, const rdna_tensor *dst,
                              const rdna_tensor *values, rdna_scatter mode, uint32_t *outside) {
  int dst_order[RDNA_MAX_RANK], order[RDNA_MAX_RANK], at = 0;
  rdna__segments segments =
      begin_segments(scratch->holder, dst, mode, mode != RDNA_SCATTER_LAST, rdna_tensor_count(&p->indices[0]), 1);
  for (int k = 0; k < p->indexed_count; k++) dst_order[k] = p->indexed_dim[k];
  for (int b = 0; b < p->broadcast_rank; b++) order[b] = p->first + b;
  for (int d = 0; d < p->rank; d++) {
    if (p->from[d] < 0) continue;
    order[p->broadcast_rank + at] = d;
    dst_order[p->indexed_count + at++] = p->from[d];
    segments.inner *= p->shape[d];
  }
  rdna_tensor dst_view = permuted(dst, dst_order), values_view = permuted(values, order), dense, src;
  for (int k = 0; k < p->indexed_count; k++) segments.rows *= dst_view.shape[k];
  RDNA_TRY(rdna__check_segments(segments.name, dst->dtype, mode, segments.n, segments.rows));
  void *memory;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)segments.n * sizeof(uint32_t), &memory));
  int64_t step = segments.rows;
  for (int k = 0; k < p->indexed_count; k++) {
    rdna__indexed one = {scratch->holder, scratch->stream, p->indices[k], p->indices[k],
                         rdna__index_rule(dst, p->indexed_dim[k], p->indices[k].dtype, true, outside)};
    for (int b = 0; b < p->broadcast_rank; b++) one.base.stride[b] = 0;
    step /= dst_view.shape[k];
    one.rule.stride = step;
    RDNA_TRY(rdna__index_keys(&one, k > 0, segments.rows, -1, memory));
  }
  RDNA_TRY(rdna__dense_in(scratch, &dst_view, &dense));
  RDNA_TRY(rdna__dense_in(scratch, &values_view, &src));
  segments.keys = memory, segments.src = src.data, segments.dst = dense.data;
  RDNA_TRY(rdna__segments_queue(scratch, &segments));
  return rdna__dense_out(scratch, &dense, &dst_view);
}

rdna_status rdna_op_index_put(rdna_stream *stream, const rdna_tensor *dst, const rdna_tensor *const *indices,
                              const rdna_tensor *values, rdna_scatter mode, uint32_t *outside) {
  static const char *const name = "index_put";
  mode = settled(mode);
  rdna__advanced plan;
  RDNA_TRY(rdna__check_indexed(name, stream, "dst", dst));
  RDNA_TRY(rdna__check_distinct(name, dst));
  RDNA_TRY(rdna__advanced_plan(name, dst, indices, &plan));
  if (mode != RDNA_SCATTER_ASSIGN && mode != RDNA_SCATTER_LAST && mode != RDNA_SCATTER_ADD) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "index_put: mode is number %d; it must be ASSIGN, LAST or ADD", (int)mode);
  }
  RDNA_TRY(rdna__check_tensor(name, "values", values));
  RDNA_TRY(rdna__check_same_dtype(name, "values", values, "dst", dst));
  RDNA_TRY(rdna__check_apart(name, "dst", dst, "values", values));
  for (int k = 0; k < plan.indexed_count; k++)
    RDNA_TRY(rdna__check_apart(name, "dst", dst, "indices", &plan.indices[k]));
  rdna_tensor spread = rdna_tensor_contiguous(values->data, dst->dtype, plan.rank, plan.shape);
  RDNA_TRY(rdna__check_broadcast(name, "values", values, &spread));
  for (int d = 0; d < plan.rank; d++) {
    int from = d - (plan.rank - values->rank);
    spread.stride[d] = from < 0 || values->shape[from] == 1 ? 0 : values->stride[from];
  }
  if (rdna_tensor_count(&spread) == 0) return RDNA_OK;
  rdna__indexed indexed;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  if (mode != RDNA_SCATTER_ASSIGN)
    return rdna__scratch_release(&scratch, put_joined(&scratch, &plan, dst, &spread, mode, outside));
  rdna_status status = rdna__advanced_combine(&scratch, &plan, dst, outside, &indexed);
  if (status == RDNA_OK) status = rdna__index_move(&indexed, true, &spread, (rdna_scalar){0});
  return rdna__scratch_release(&scratch, status);
}
