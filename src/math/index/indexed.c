/* What reading and writing at indices share: take.c, put.c. */
#include <stdio.h>

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

rdna_tensor rdna__index_base(const rdna_tensor *x, int dim, int rank, const int64_t *shape) {
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

/* Returns whether contiguous rows of at least 16 bytes are read, with one index each. */
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

/* Makes one larger value, of at most 16 bytes, of neighbours that share an index and are contiguous in both tensors. */
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

rdna_status rdna__index_offsets(const rdna__indexed *indexed, struct index_offset_args args, void *out) {
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
  return rdna__index_offsets(indexed, args, keys);
}

rdna_status rdna__check_within(const char *name, const rdna_tensor *indices, const char *x_name, const rdna_tensor *x,
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

rdna_status rdna__check_select(const char *name, const char *values_name, const rdna_tensor *values, const char *x_name,
                               const rdna_tensor *x, int dim, const rdna_tensor *indices) {
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
