/* Reading and writing at indices. Where values are joined: segment.c. */
#include <stdio.h>
#include <stdlib.h>

#include "base/deterministic.h"
#include "math/common/plan/route.h"
#include "math/index/indexed_plan.h"

rdna_status rdna__check_indices(const char *name, const char *argument, const rdna_tensor *indices) {
  RDNA_TRY(rdna__check_tensor(name, argument, indices));
  if (indices->dtype == RDNA_I32) return RDNA_OK;
  return rdna__check_dtype(name, argument, indices, RDNA_I64);
}

rdna_status rdna__check_indexed(const char *name, rdna_stream *stream, const char *argument, const rdna_tensor *x) {
  RDNA_TRY(rdna__check_stream(name, stream));
  return rdna__check_unquantized(name, argument, x);
}

rdna_tensor rdna__along_dim(const rdna_tensor *indices, int dim, int rank, const int64_t *shape) {
  rdna_tensor view = {.data = indices->data, .dtype = indices->dtype, .rank = rank};
  for (int d = 0; d < rank; d++) view.shape[d] = shape[d];
  if (rank > 0) view.stride[dim] = indices->rank > 0 ? indices->stride[0] : 0;
  return view;
}

/* |x| seen through |shape|, with stride 0 along |dim|. */
static rdna_tensor base_of(const rdna_tensor *x, int dim, int rank, const int64_t *shape) {
  rdna_tensor view = {.data = x->data, .dtype = x->dtype, .rank = rank};
  for (int d = 0; d < rank; d++) view.shape[d] = shape[d], view.stride[d] = d == dim ? 0 : x->stride[d];
  return view;
}

struct index_rule rdna__index_rule(const rdna_tensor *x, int dim, rdna_dtype indices, bool wrap, uint32_t *outside) {
  return (struct index_rule){.size = x->rank > 0 ? x->shape[dim] : 1,
                             .stride = x->rank > 0 ? x->stride[dim] : 0,
                             .outside = outside,
                             .wide = indices == RDNA_I64,
                             .wrap = wrap};
}

typedef struct request {
  const rdna__indexed *indexed;
  struct indexed_args args;
  bool put;
} request;

static void copy_operands(const strided_plan *part, struct strided_operand *out) {
  for (int k = 0; k < 3; k++) {
    out[k].data = part->operand[k].data;
    for (int d = 0; d < part->rank; d++) out[k].stride[d] = part->operand[k].stride[d];
  }
}

typedef struct problem {
  const request *request;
  const strided_plan *part;
} problem;

/* Whether dense rows are read, of 16 bytes at least, each with one index. */
static bool are_rows(const rdna__route *route, const void *which) {
  const request *r = ((const problem *)which)->request;
  const strided_plan *part = ((const problem *)which)->part;
  int64_t size = part->size[0], bytes = part->operand[2].bytes;
  return !r->put && part->rank == 2 && bytes > 1 && size * bytes >= 16 && r->args.rule.stride >= size &&
         part->operand[0].stride[0] == 1 && part->operand[0].stride[1] == size && part->operand[1].stride[0] == 0 &&
         part->operand[2].stride[0] == 1 && part->operand[2].stride[1] == 0 &&
         (uintptr_t)part->operand[0].data % (uintptr_t)bytes == 0 &&
         (uintptr_t)part->operand[2].data % (uintptr_t)bytes == 0;
}
static bool is_put(const rdna__route *route, const void *which) { return ((const problem *)which)->request->put; }

enum { ROWS, PUT, GET };
static const rdna__route routes[] = {
    [ROWS] = {.name = "rows",
              .kernels = {"index_rows_{16|32|64|128}"},
              .when = "dense rows of at least 16 bytes, each with one index",
              .applies = are_rows},
    [PUT] = {.name = "put", .kernels = {"indexed_put_{bytes}"}, .when = "values are written", .applies = is_put},
    [GET] = {.name = "get", .kernels = {"indexed_get_{bytes}"}, .when = "values are read"},
};
RDNA_ROUTES(rdna__indexed_routes,
            "gather, index_select, index, embedding; scatter, index_copy, index_fill, index_put of single values",
            routes)

static const rdna__route offset_route[] = {
    {.name = "offset", .kernels = {"index_offset"}, .when = "where values go that several indices may name"}};
RDNA_FIXED_ROUTES(rdna__index_offset_routes, "scatter, index_copy, index_put, embedding_backward", offset_route)

static rdna_status launch_move(const strided_plan *part, void *context) {
  request *r = context;
  size_t bytes = (size_t)part->operand[2].bytes;
  rdna_grid grid = {0, 1, 1};
  rdna__plan_shape(part, &r->args.shape);
  copy_operands(part, r->args.operand);
  problem which = {r, part};
  const rdna__route *route = rdna__route_choose(&rdna__indexed_routes, &which);
  if (route == &routes[ROWS])
    grid.x = (uint32_t)index_rows_groups(&r->args, part->operand[2].bytes);
  else
    RDNA_TRY(rdna__check_groups(r->indexed->name, r->args.shape.count, INDEXED_TILE, &grid.x));
  return RDNA__ROUTE_LAUNCH(r->indexed->stream, route, 0, grid, &r->args, rdna__route_bits(bytes));
}

/* Sees neighbours that share an index, and lie together, as one larger value, of 16 bytes at most. */
static void widen(strided_plan *plan, struct index_rule *rule) {
  while (plan->operand[2].bytes < 16) {
    if (plan->operand[1].stride[0] != 0 || rule->stride % 2 != 0) return;
    if (!rdna__plan_vector(plan, 0, 2) || !rdna__plan_vector(plan, 2, 2)) return;
    plan->size[0] /= 2;
    rule->stride /= 2;
    for (int k = 0; k < 3; k += 2) {
      plan->operand[k].bytes *= 2;
      for (int d = 1; d < plan->rank; d++) plan->operand[k].stride[d] /= 2;
    }
  }
}

rdna_status rdna__index_move(const rdna__indexed *indexed, bool put, const rdna_tensor *values, rdna_scalar value) {
  strided_plan plan;
  request r = {.indexed = indexed, .put = put, .args = {.rule = indexed->rule, .fill = !values}};
  rdna_tensor dense = rdna_tensor_contiguous(NULL, indexed->base.dtype, indexed->base.rank, indexed->base.shape);
  if (rdna_tensor_count(&dense) == 0) return RDNA_OK;
  uint64_t bits = rdna__scalar_bits(dense.dtype, value);
  for (int bytes = (int)rdna_dtype_block_bytes(dense.dtype); bytes < 8; bytes *= 2) {
    bits &= ~UINT64_C(0) >> (64 - 8 * bytes);
    bits |= bits << (8 * bytes);
  }
  r.args.value[0] = r.args.value[1] = bits;
  rdna__plan_begin(&plan, values ? values : &dense);
  rdna__plan_add(&plan, &indexed->indices);
  rdna__plan_add(&plan, &indexed->base);
  rdna__plan_merge(&plan);
  widen(&plan, &r.args.rule);
  return rdna__plan_each(&plan, launch_move, &r);
}

typedef struct offset_request {
  const rdna__indexed *indexed;
  struct index_offset_args args;
} offset_request;

static rdna_status launch_offset(const strided_plan *part, void *context) {
  offset_request *r = context;
  rdna_grid grid = {0, 1, 1};
  rdna__plan_shape(part, &r->args.shape);
  copy_operands(part, r->args.operand);
  RDNA_TRY(rdna__check_groups(r->indexed->name, r->args.shape.count, INDEXED_TILE, &grid.x));
  return rdna__launch_named(r->indexed->stream, offset_route->kernels[0], grid, &r->args);
}

static rdna_status offsets(const rdna__indexed *indexed, struct index_offset_args args, void *out) {
  strided_plan plan;
  offset_request r = {.indexed = indexed, .args = args};
  rdna_tensor base = indexed->base;
  rdna_tensor dense =
      rdna_tensor_contiguous(out, args.narrow ? RDNA_I32 : RDNA_I64, indexed->indices.rank, indexed->indices.shape);
  base.data = NULL;
  r.args.rule = indexed->rule;
  if (rdna_tensor_count(&dense) == 0) return RDNA_OK;
  rdna__plan_begin(&plan, &dense);
  rdna__plan_add(&plan, &indexed->indices);
  rdna__plan_add(&plan, &base);
  rdna__plan_merge(&plan);
  return rdna__plan_each(&plan, launch_offset, &r);
}

rdna_status rdna__index_keys(const rdna__indexed *indexed, bool add, int64_t absent, int64_t skipped, uint32_t *keys) {
  struct index_offset_args args = {.absent = absent, .skipped = skipped, .add = add, .narrow = 1};
  return offsets(indexed, args, keys);
}

static rdna_status check_out(const char *name, const rdna_tensor *out, const char *x_name, const rdna_tensor *x) {
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, x_name, x));
  RDNA_TRY(rdna__check_distinct(name, out));
  return rdna__check_apart(name, "out", out, x_name, x);
}

/* The sizes of |indices| are at most those of |x|, but along |skip|. */
static rdna_status check_within(const char *name, const rdna_tensor *indices, const char *x_name, const rdna_tensor *x,
                                int skip) {
  char text[RDNA__TENSOR_TEXT], x_text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_rank(name, "indices", indices, x->rank));
  for (int d = 0; d < x->rank; d++) {
    if (d == skip || indices->shape[d] <= x->shape[d]) continue;
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: indices are %s and %s is %s; size %d of indices must be at most %lld",
                      name, rdna__tensor_text(indices, text), x_name, rdna__tensor_text(x, x_text), d,
                      (long long)x->shape[d]);
  }
  return RDNA_OK;
}

rdna_status rdna_op_gather(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *indices,
                           const rdna_tensor *out, uint32_t *outside) {
  static const char *const name = "gather";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, &dim));
  RDNA_TRY(rdna__check_indices(name, "indices", indices));
  RDNA_TRY(check_within(name, indices, "x", x, dim));
  RDNA_TRY(check_out(name, out, "x", x));
  RDNA_TRY(rdna__check_same_shape(name, "out", out, "indices", indices));
  RDNA_TRY(rdna__check_apart(name, "out", out, "indices", indices));
  rdna__indexed indexed = {name, stream, *indices, base_of(x, dim, x->rank, indices->shape),
                           rdna__index_rule(x, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, false, out, (rdna_scalar){0});
}

/* |indices| has rank 1 and as many as size |dim| of |values|, whose other sizes are x's. */
static rdna_status check_select(const char *name, const char *values_name, const rdna_tensor *values,
                                const char *x_name, const rdna_tensor *x, int dim, const rdna_tensor *indices) {
  RDNA_TRY(rdna__check_indices(name, "indices", indices));
  if (x->rank == 0 && indices->rank == 0) return rdna__check_rank(name, values_name, values, 0);
  RDNA_TRY(rdna__check_rank(name, "indices", indices, 1));
  RDNA_TRY(rdna__check_rank(name, values_name, values, x->rank));
  for (int d = 0; d < x->rank; d++) {
    char meaning[40];
    snprintf(meaning, sizeof meaning, d == dim ? "the number of indices" : "as that of %s", x_name);
    RDNA_TRY(rdna__check_size(name, values_name, values, d, d == dim ? indices->shape[0] : x->shape[d], meaning));
  }
  return RDNA_OK;
}

rdna_status rdna_op_index_select(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *indices,
                                 const rdna_tensor *out, uint32_t *outside) {
  static const char *const name = "index_select";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, &dim));
  RDNA_TRY(check_out(name, out, "x", x));
  RDNA_TRY(check_select(name, "out", out, "x", x, dim, indices));
  RDNA_TRY(rdna__check_apart(name, "out", out, "indices", indices));
  rdna__indexed indexed = {name, stream, rdna__along_dim(indices, dim, out->rank, out->shape),
                           base_of(x, dim, out->rank, out->shape),
                           rdna__index_rule(x, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, false, out, (rdna_scalar){0});
}

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

/* dst and src are dense here: (outer, rows, inner) and (outer, n, inner). */
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

/* One index for each row along |dim|, |indices| of rank 1 or 0. */
static rdna_status join_rows(const char *name, rdna_stream *stream, const rdna_tensor *dst, int dim,
                             const rdna_tensor *indices, const rdna_tensor *src, rdna_scatter mode, bool include_self,
                             uint32_t *outside) {
  rdna__segments segments = {.name = name,
                             .dtype = dst->dtype,
                             .mode = mode,
                             .include_self = include_self,
                             .outer = 1,
                             .n = rdna_tensor_count(indices),
                             .rows = dst->rank > 0 ? dst->shape[dim] : 1,
                             .inner = 1};
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

/* One index for each value. |src| has the shape of |indices|. */
static rdna_status join_values(const char *name, rdna_stream *stream, const rdna_tensor *dst, int dim,
                               const rdna_tensor *indices, const rdna_tensor *src, rdna_scatter mode, bool include_self,
                               uint32_t *outside) {
  rdna__segments segments = {.name = name,
                             .dtype = dst->dtype,
                             .mode = mode,
                             .include_self = include_self,
                             .outer = 1,
                             .n = rdna_tensor_count(indices),
                             .rows = rdna_tensor_count(dst),
                             .inner = 1};
  RDNA_TRY(rdna__check_segments(name, dst->dtype, mode, segments.n, segments.rows));
  if (segments.n == 0 || segments.rows == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna_tensor dense = rdna_tensor_contiguous(dst->data, dst->dtype, dst->rank, dst->shape);
  rdna__indexed keys = {name, stream, *indices, base_of(&dense, dim, dst->rank, indices->shape),
                        rdna__index_rule(&dense, dim, indices->dtype, false, outside)};
  return rdna__scratch_release(&scratch, join_dense(&scratch, &keys, segments, dst, src));
}

/* Indices that differ along |dim| alone, and cover the other dimensions of |dst|. */
static bool goes_by_rows(const rdna_tensor *dst, int dim, const rdna_tensor *indices) {
  for (int d = 0; d < dst->rank; d++) {
    if (d == dim) continue;
    if (indices->shape[d] != dst->shape[d] || (indices->shape[d] != 1 && indices->stride[d] != 0)) return false;
  }
  return dst->rank > 0;
}

/* ASSIGN leaves open which value stays; where the same bits are asked for it is the last. */
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
  RDNA_TRY(check_within(name, indices, "dst", dst, dim));
  RDNA_TRY(check_within(name, indices, "src", src, -1));
  rdna_tensor values = *src; /* as much of it as there are indices */
  for (int d = 0; d < src->rank; d++) values.shape[d] = indices->shape[d];
  if (mode != RDNA_SCATTER_ASSIGN) {
    if (!goes_by_rows(dst, dim, indices))
      return join_values(name, stream, dst, dim, indices, &values, mode, include_self, outside);
    rdna_tensor line = *indices;
    line.rank = 1, line.shape[0] = indices->shape[dim], line.stride[0] = indices->stride[dim];
    return join_rows(name, stream, dst, dim, &line, &values, mode, include_self, outside);
  }
  rdna__indexed indexed = {name, stream, *indices, base_of(dst, dim, dst->rank, indices->shape),
                           rdna__index_rule(dst, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, true, &values, (rdna_scalar){0});
}

rdna_status rdna_op_scatter_value(rdna_stream *stream, const rdna_tensor *dst, int dim, const rdna_tensor *indices,
                                  rdna_scalar value, uint32_t *outside) {
  static const char *const name = "scatter_value";
  RDNA_TRY(check_dst(name, stream, dst, &dim, indices));
  RDNA_TRY(check_within(name, indices, "dst", dst, dim));
  rdna__indexed indexed = {name, stream, *indices, base_of(dst, dim, dst->rank, indices->shape),
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
  RDNA_TRY(check_select(name, "src", src, "dst", dst, dim, indices));
  if (mode != RDNA_SCATTER_ASSIGN) return join_rows(name, stream, dst, dim, indices, src, mode, include_self, outside);
  rdna__indexed indexed = {name, stream, rdna__along_dim(indices, dim, src->rank, src->shape),
                           base_of(dst, dim, src->rank, src->shape),
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
                           base_of(dst, dim, dst->rank, shape),
                           rdna__index_rule(dst, dim, indices->dtype, true, outside)};
  return rdna__index_move(&indexed, true, NULL, value);
}

/* The shape that all indices are broadcast to, counted from the last dimension. */
static rdna_status broadcast_shape(const char *name, const rdna_tensor *index, int dim, int *rank, int64_t *reversed) {
  char text[RDNA__TENSOR_TEXT];
  for (int d = 0; d < index->rank; d++) {
    int64_t size = index->shape[index->rank - 1 - d];
    if (d >= *rank) reversed[(*rank)++] = 1;
    if (size == reversed[d] || size == 1) continue;
    if (reversed[d] != 1) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: the indices of dimension %d are %s and those before have %lld where they have %lld; sizes "
                        "must be equal or 1",
                        name, dim, rdna__tensor_text(index, text), (long long)reversed[d], (long long)size);
    }
    reversed[d] = size;
  }
  return RDNA_OK;
}

rdna_status rdna__advanced_plan(const char *name, const rdna_tensor *x, const rdna_tensor *const *indices,
                                rdna__advanced *out_plan) {
  rdna__advanced *p = out_plan;
  int64_t reversed[RDNA_MAX_RANK];
  *p = (rdna__advanced){0};
  for (int d = 0; d < x->rank && indices; d++) {
    if (!indices[d]) continue;
    RDNA_TRY(rdna__check_indices(name, "indices", indices[d]));
    RDNA_TRY(broadcast_shape(name, indices[d], d, &p->broadcast_rank, reversed));
    p->indexed_dim[p->indexed_count++] = d;
  }
  if (p->indexed_count == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: no dimension has indices; pass a tensor for one", name);
  int last = p->indexed_dim[p->indexed_count - 1];
  bool neighbours = last - p->indexed_dim[0] + 1 == p->indexed_count;
  p->first = neighbours ? p->indexed_dim[0] : 0;
  p->rank = p->broadcast_rank + x->rank - p->indexed_count;
  if (p->rank > RDNA_MAX_RANK) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: the result would have rank %d; at most %d is offered", name, p->rank,
                      RDNA_MAX_RANK);
  }
  int at = 0;
  for (int d = 0; d <= x->rank; d++) {
    if (at == p->first) {
      for (int b = 0; b < p->broadcast_rank; b++, at++)
        p->shape[at] = reversed[p->broadcast_rank - 1 - b], p->from[at] = -1;
    }
    if (d < x->rank && !indices[d]) p->shape[at] = x->shape[d], p->from[at++] = d;
  }
  for (int k = 0; k < p->indexed_count; k++) {
    const rdna_tensor *index = indices[p->indexed_dim[k]];
    rdna_tensor *view = &p->indices[k];
    *view = (rdna_tensor){.data = index->data, .dtype = index->dtype, .rank = p->broadcast_rank};
    for (int b = 0; b < p->broadcast_rank; b++) {
      int from = b - (p->broadcast_rank - index->rank);
      view->shape[b] = reversed[p->broadcast_rank - 1 - b];
      view->stride[b] = from < 0 || index->shape[from] == 1 ? 0 : index->stride[from];
    }
  }
  return RDNA_OK;
}

static rdna_status check_shape(const char *name, const char *argument, const rdna_tensor *t, const rdna__advanced *p) {
  RDNA_TRY(rdna__check_rank(name, argument, t, p->rank));
  for (int d = 0; d < p->rank; d++) {
    RDNA_TRY(rdna__check_size(name, argument, t, d, p->shape[d], p->from[d] < 0 ? "as the indices'" : "as x's"));
  }
  return RDNA_OK;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  a = llabs(a), b = llabs(b);
  while (b != 0) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* All indices as one: the first itself, or the sums of offsets from the lowest place, in units of what divides all. */
static rdna_status combine(rdna__scratch *scratch, const rdna__advanced *p, const rdna_tensor *x, uint32_t *outside,
                           rdna__indexed *out) {
  *out = (rdna__indexed){scratch->holder, scratch->stream, p->indices[0], *x, {0}};
  out->rule = rdna__index_rule(x, p->indexed_dim[0], p->indices[0].dtype, true, outside);
  if (p->indexed_count > 1) {
    void *memory;
    int64_t unit = 0, count = rdna_tensor_count(&p->indices[0]);
    for (int k = 0; k < p->indexed_count; k++) unit = common_divisor(unit, x->stride[p->indexed_dim[k]]);
    if (unit == 0) unit = 1;
    RDNA_TRY(rdna__scratch_take(scratch, (size_t)count * sizeof(int64_t), &memory));
    for (int k = 0; k < p->indexed_count; k++) {
      int dim = p->indexed_dim[k];
      rdna__indexed one = {scratch->holder, scratch->stream, p->indices[k], p->indices[k],
                           rdna__index_rule(x, dim, p->indices[k].dtype, true, outside)};
      struct index_offset_args args = {.absent = -1, .skipped = -1, .add = k > 0};
      for (int b = 0; b < p->broadcast_rank; b++) one.base.stride[b] = 0;
      one.rule.stride /= unit;
      if (one.rule.stride < 0) {
        args.bias = -(x->shape[dim] - 1) * one.rule.stride;
        out->base.data = (char *)out->base.data - args.bias * unit * (int64_t)rdna_dtype_block_bytes(x->dtype);
      }
      RDNA_TRY(offsets(&one, args, memory));
    }
    out->indices = rdna_tensor_contiguous(memory, RDNA_I64, p->broadcast_rank, p->indices[0].shape);
    out->rule = (struct index_rule){.size = INT64_MAX, .stride = unit, .wide = 1};
  }
  rdna_tensor index = out->indices;
  out->indices.rank = out->base.rank = p->rank;
  for (int d = 0, b = 0; d < p->rank; d++) {
    bool indexed = p->from[d] < 0;
    out->indices.shape[d] = out->base.shape[d] = p->shape[d];
    out->indices.stride[d] = indexed ? index.stride[b++] : 0;
    out->base.stride[d] = indexed ? 0 : x->stride[p->from[d]];
  }
  return RDNA_OK;
}

rdna_status rdna_op_index(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *const *indices,
                          const rdna_tensor *out, uint32_t *outside) {
  static const char *const name = "index";
  rdna__advanced plan;
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(rdna__advanced_plan(name, x, indices, &plan));
  RDNA_TRY(check_out(name, out, "x", x));
  RDNA_TRY(check_shape(name, "out", out, &plan));
  for (int k = 0; k < plan.indexed_count; k++)
    RDNA_TRY(rdna__check_apart(name, "out", out, "indices", &plan.indices[k]));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__indexed indexed;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna_status status = combine(&scratch, &plan, x, outside, &indexed);
  if (status == RDNA_OK) status = rdna__index_move(&indexed, false, out, (rdna_scalar){0});
  return rdna__scratch_release(&scratch, status);
}

/* |dims| of x, in that order. */
static rdna_tensor permuted(const rdna_tensor *x, const int *dims) {
  rdna_tensor view = *x;
  for (int d = 0; d < x->rank; d++) view.shape[d] = x->shape[dims[d]], view.stride[d] = x->stride[dims[d]];
  return view;
}

/* |values| has the shape of the result; dst's indexed dimensions and the broadcast ones are brought to the front. */
static rdna_status put_joined(rdna__scratch *scratch, const rdna__advanced *p, const rdna_tensor *dst,
                              const rdna_tensor *values, rdna_scatter mode, uint32_t *outside) {
  int dst_order[RDNA_MAX_RANK], order[RDNA_MAX_RANK], at = 0;
  rdna__segments segments = {.name = scratch->holder,
                             .dtype = dst->dtype,
                             .mode = mode,
                             .include_self = mode != RDNA_SCATTER_LAST,
                             .outer = 1,
                             .n = rdna_tensor_count(&p->indices[0]),
                             .rows = 1,
                             .inner = 1};
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
  rdna_status status = combine(&scratch, &plan, dst, outside, &indexed);
  if (status == RDNA_OK) status = rdna__index_move(&indexed, true, &spread, (rdna_scalar){0});
  return rdna__scratch_release(&scratch, status);
}
