/* nonzero, masked_select and masked_scatter; see compact_kernels.h. */
#include "kernel/dtype.h"
#include "math/common/plan/route.h"
#include "math/index/compact_kernels.h"
#include "math/index/indexed_plan.h"

enum { MOST_GROUPS = 1 << 16 }; /* of a launch; groups stride over the rest */

static rdna_status check_count(const char *name, const rdna_tensor *x) {
  if (rdna_tensor_count(x) <= INT32_MAX) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: x has %lld values; at most %d are offered", name,
                    (long long)rdna_tensor_count(x), INT32_MAX);
}

enum { COUNT, NONZERO, SELECT, SCATTER };
static const rdna__route routes[] = {
    [COUNT] = {.name = "count",
               .kernels = {"compact_count_{bits}", "compact_scan"},
               .when = "nonzero_count; and first"},
    [NONZERO] = {.name = "nonzero", .kernels = {"nonzero_{bits}"}, .when = "then the places of nonzero"},
    [SELECT] = {.name = "select", .kernels = {"masked_select_{bits}"}, .when = "then the values of masked_select"},
    [SCATTER] = {.name = "scatter", .kernels = {"masked_scatter_{bits}"}, .when = "then the places of masked_scatter"},
};
RDNA_FIXED_ROUTES(rdna__compact_routes, "nonzero_count, nonzero, masked_select, masked_scatter", routes)

static rdna_status launch(rdna_stream *stream, int step, rdna_dtype dtype, const struct compact_args *a) {
  rdna_grid grid = {a->tiles < MOST_GROUPS ? a->tiles : MOST_GROUPS, 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &routes[step], 0, grid, a, rdna__route_bits(rdna_dtype_block_bytes(dtype)));
}

/* Queues count and scan over |flags|, which is not empty, and fills in the arguments that the next kernel shares. */
static rdna_status scan(rdna__scratch *scratch, const rdna_tensor *flags, struct compact_args *a) {
  rdna_tensor dense;
  void *offsets;
  RDNA_TRY(rdna__dense_in(scratch, flags, &dense));
  a->x = dense.data;
  a->n = rdna_tensor_count(flags);
  a->tiles = (uint32_t)((a->n - 1) / COMPACT_TILE + 1);
  a->ignored = dtype_is_real(flags->dtype) ? UINT64_C(1) << (8 * rdna_dtype_block_bytes(flags->dtype) - 1) : 0;
  RDNA_TRY(rdna__scratch_take(scratch, (a->tiles + 1) * sizeof(int64_t), &offsets));
  a->offsets = offsets;
  RDNA_TRY(launch(scratch->stream, COUNT, flags->dtype, a));
  return rdna__launch_named(scratch->stream, routes[COUNT].kernels[1], (rdna_grid){1, 1, 1}, a);
}

static rdna_status count(rdna__scratch *scratch, const rdna_tensor *x, const rdna_tensor *out) {
  struct compact_args a = {0};
  RDNA_TRY(scan(scratch, x, &a));
  return rdna_copy_on_device(scratch->stream, out->data, a.offsets + a.tiles, sizeof(int64_t));
}

rdna_status rdna_op_nonzero_count(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  static const char *const name = "nonzero_count";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(check_count(name, x));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  RDNA_TRY(rdna__check_dtype(name, "out", out, RDNA_I64));
  RDNA_TRY(rdna__check_one_value(name, "out", out));
  RDNA_TRY(rdna__check_apart(name, "out", out, "x", x));
  if (rdna_tensor_count(x) == 0) return rdna_fill_bytes(stream, out->data, 0, sizeof(int64_t));
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, count(&scratch, x, out));
}

static rdna_status list(rdna__scratch *scratch, const rdna_tensor *x, const rdna_tensor *out) {
  struct compact_args a = {.out = out->data, .limit = out->shape[0]};
  RDNA_TRY(scan(scratch, x, &a));
  a.shape.rank = (uint32_t)x->rank;
  for (int d = 0; d < x->rank; d++) strided_set_size(&a.shape, (uint32_t)d, (uint32_t)x->shape[x->rank - 1 - d]);
  return launch(scratch->stream, NONZERO, x->dtype, &a);
}

rdna_status rdna_op_nonzero(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  static const char *const name = "nonzero";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(check_count(name, x));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  RDNA_TRY(rdna__check_dtype(name, "out", out, RDNA_I64));
  RDNA_TRY(rdna__check_rank(name, "out", out, 2));
  RDNA_TRY(rdna__check_size(name, "out", out, 1, x->rank, "the rank of x"));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  RDNA_TRY(rdna__check_apart(name, "out", out, "x", x));
  if (rdna_tensor_count(x) == 0 || rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, list(&scratch, x, out));
}

static rdna_status check_mask(const char *name, const char *argument, const rdna_tensor *x, const rdna_tensor *mask) {
  RDNA_TRY(check_count(name, x));
  RDNA_TRY(rdna__check_tensor(name, "mask", mask));
  if (mask->dtype != RDNA_U8) RDNA_TRY(rdna__check_dtype(name, "mask", mask, RDNA_BOOL));
  return rdna__check_same_shape(name, "mask", mask, argument, x);
}

static rdna_status select_kept(rdna__scratch *scratch, const rdna_tensor *x, const rdna_tensor *mask,
                               const rdna_tensor *out) {
  struct compact_args a = {.out = out->data, .limit = out->shape[0]};
  rdna_tensor values;
  RDNA_TRY(scan(scratch, mask, &a));
  RDNA_TRY(rdna__dense_in(scratch, x, &values));
  a.values = values.data;
  return launch(scratch->stream, SELECT, x->dtype, &a);
}

rdna_status rdna_op_masked_select(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *mask,
                                  const rdna_tensor *out) {
  static const char *const name = "masked_select";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(check_mask(name, "x", x, mask));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_rank(name, "out", out, 1));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  RDNA_TRY(rdna__check_apart(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_apart(name, "out", out, "mask", mask));
  if (rdna_tensor_count(x) == 0 || rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, select_kept(&scratch, x, mask, out));
}

static rdna_status scatter_kept(rdna__scratch *scratch, const rdna_tensor *dst, const rdna_tensor *mask,
                                const rdna_tensor *src) {
  struct compact_args a = {.limit = rdna_tensor_count(src)};
  rdna_tensor values, dense;
  RDNA_TRY(scan(scratch, mask, &a));
  RDNA_TRY(rdna__dense_in(scratch, src, &values));
  RDNA_TRY(rdna__dense_in(scratch, dst, &dense));
  a.values = values.data, a.out = dense.data;
  RDNA_TRY(launch(scratch->stream, SCATTER, dst->dtype, &a));
  return rdna__dense_out(scratch, &dense, dst);
}

rdna_status rdna_op_masked_scatter(rdna_stream *stream, const rdna_tensor *dst, const rdna_tensor *mask,
                                   const rdna_tensor *src) {
  static const char *const name = "masked_scatter";
  RDNA_TRY(rdna__check_indexed(name, stream, "dst", dst));
  RDNA_TRY(rdna__check_distinct(name, dst));
  RDNA_TRY(check_mask(name, "dst", dst, mask));
  RDNA_TRY(rdna__check_tensor(name, "src", src));
  RDNA_TRY(rdna__check_same_dtype(name, "src", src, "dst", dst));
  RDNA_TRY(rdna__check_apart(name, "dst", dst, "src", src));
  RDNA_TRY(rdna__check_apart(name, "dst", dst, "mask", mask));
  if (rdna_tensor_count(dst) == 0 || rdna_tensor_count(src) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, scatter_kept(&scratch, dst, mask, src));
}
