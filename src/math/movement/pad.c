/* Padding and triangles: kernels that must know where in the tensor a value is, so dimensions are not merged. */
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/movement/movement_kernels.h"
#include "rdna/op/movement.h"

enum { PAD, TRIANGLE };
static const rdna__route routes[] = {
    [PAD] = {.name = "pad", .kernels = {"pad_strided_{bits}"}, .when = "pad"},
    [TRIANGLE] = {.name = "triangle", .kernels = {"triangle_strided_{bits}"}, .when = "triangle"},
};
RDNA_FIXED_ROUTES(rdna__pad_routes, "pad, triangle", routes)

static rdna_status check(const char *name, rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  RDNA_TRY(rdna__check_unquantized(name, "x", x));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_distinct(name, out));
  RDNA_TRY(rdna__check_apart(name, "out", out, "x", x));
  return rdna__check_stream(name, stream);
}

static rdna_status check_count(const char *name, const rdna_tensor *out) {
  char text[RDNA__TENSOR_TEXT];
  if (rdna_tensor_count(out) <= INT32_MAX) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: out is %s; at most %d values are offered", name,
                    rdna__tensor_text(out, text), INT32_MAX);
}

static rdna_status launch(rdna_stream *stream, const rdna__route *route, rdna_dtype dtype, int64_t count,
                          const void *args) {
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(route->name, count, RDNA__MOVEMENT_TILE, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna__route_bits(rdna_dtype_block_bytes(dtype)));
}

/* Shape and operands with all dimensions, and at least |rank|. */
static void describe(const rdna_tensor *out, const rdna_tensor *x, struct strided_shape *shape,
                     struct strided_operand *operands, int rank) {
  int added = out->rank < rank ? rank - out->rank : 0;
  *shape = (struct strided_shape){.rank = (uint32_t)(out->rank + added), .count = (uint32_t)rdna_tensor_count(out)};
  for (int d = 0; d < out->rank; d++) {
    strided_set_size(shape, (uint32_t)d, (uint32_t)out->shape[out->rank - 1 - d]);
    operands[0].stride[d] = out->stride[out->rank - 1 - d];
    operands[1].stride[d] = x->stride[out->rank - 1 - d];
  }
  for (int d = out->rank; d < rank; d++) strided_set_size(shape, (uint32_t)d, 1);
  operands[0].data = out->data;
  operands[1].data = x->data;
}

static rdna_status check_reach(rdna_pad_mode mode, const rdna_tensor *x, const int64_t *before,
                               const rdna_tensor *out) {
  for (int d = 0; d < out->rank; d++) {
    int64_t size = x->shape[d], after = out->shape[d] - size - before[d];
    bool padded = before[d] > 0 || after > 0;
    if (mode != RDNA_PAD_MODE_CONSTANT && size == 0 && padded) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "pad: size %d of x is 0; only a constant can pad nothing", d);
    }
    int64_t most = mode == RDNA_PAD_MODE_REFLECT ? size - 1 : mode == RDNA_PAD_MODE_CIRCULAR ? size : INT64_MAX;
    if (padded && (before[d] > most || after > most)) {
      return rdna__fail(
          RDNA_INVALID_ARGUMENT,
          "pad: dimension %d of size %lld is padded by %lld before and %lld after; this mode reaches %lld "
          "at most",
          d, (long long)size, (long long)before[d], (long long)after, (long long)most);
    }
  }
  return RDNA_OK;
}

rdna_status rdna_op_pad(rdna_stream *stream, rdna_pad_mode mode, const rdna_tensor *x, const int64_t *before,
                        rdna_scalar value, const rdna_tensor *out) {
  if ((unsigned)mode >= RDNA_PAD_MODE_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "pad: the mode is number %d; there are 0 to %d", (int)mode,
                      RDNA_PAD_MODE_COUNT - 1);
  }
  RDNA_TRY(check("pad", stream, x, out));
  RDNA_TRY(rdna__check_rank("pad", "out", out, x->rank));
  if (!before && x->rank > 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "pad: before is NULL; pass %d numbers", x->rank);
  RDNA_TRY(check_reach(mode, x, before, out));
  RDNA_TRY(check_count("pad", out));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  struct pad_args args = {.value = rdna__scalar_bits(x->dtype, value), .mode = (uint32_t)mode};
  describe(out, x, &args.shape, args.operand, 1);
  args.size[0] = 1;
  for (int d = 0; d < out->rank; d++) {
    args.before[d] = before[out->rank - 1 - d];
    args.size[d] = x->shape[out->rank - 1 - d];
  }
  return launch(stream, &routes[PAD], x->dtype, args.shape.count, &args);
}

rdna_status rdna_op_triangle(rdna_stream *stream, const rdna_tensor *x, bool upper, int64_t diagonal,
                             const rdna_tensor *out) {
  RDNA_TRY(check("triangle", stream, x, out));
  RDNA_TRY(rdna__check_same_shape("triangle", "out", out, "x", x));
  if (x->rank < 2) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "triangle: x has rank %d; its rank must be 2 or more", x->rank);
  }
  RDNA_TRY(check_count("triangle", out));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  struct triangle_args args = {.diagonal = diagonal, .upper = upper};
  describe(out, x, &args.shape, args.operand, 2);
  return launch(stream, &routes[TRIANGLE], x->dtype, args.shape.count, &args);
}
