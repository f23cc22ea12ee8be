#include "rdna/op/cast.h"

#include <math.h>

#include "kernel/float8.h"
#include "math/cast/cast_kernels.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "rdna/memory.h"
#include "rdna/op/movement.h"

static bool has_kernel(rdna_dtype from, rdna_dtype to) {
  enum { CAST_f32 = RDNA_F32, CAST_f16 = RDNA_F16, CAST_bf16 = RDNA_BF16, CAST_i32 = RDNA_I32 };
  enum { CAST_f8_e4m3fn = RDNA_F8_E4M3FN, CAST_f8_e5m2 = RDNA_F8_E5M2 };
  enum { CAST_f8_e4m3fnuz = RDNA_F8_E4M3FNUZ, CAST_f8_e5m2fnuz = RDNA_F8_E5M2FNUZ };
#define ENTRY(from, to) [CAST_##from][CAST_##to] = true,
  static const bool kernels[RDNA_DTYPE_COUNT][RDNA_DTYPE_COUNT] = {RDNA__CASTS(ENTRY)};
#undef ENTRY
  return kernels[from][to];
}

/* A pair of types without a kernel is converted by rdna_op_copy. */
#define TYPE "f32|f16|bf16|f8_e4m3fn|f8_e5m2|f8_e4m3fnuz|f8_e5m2fnuz"
static const rdna__route route[] = {{.name = "dense",
                                     .kernels = {"cast_{" TYPE "|i32}_{" TYPE "}"},
                                     .when = "dense values of two of these types, through f32; others by copy"}};
#undef TYPE
RDNA_FIXED_ROUTES(rdna__cast_routes, "cast, cast_saturating", route)

static rdna_status cast(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out, float largest) {
  RDNA_TRY(rdna__check_tensor("cast", "x", x));
  RDNA_TRY(rdna__check_tensor("cast", "out", out));
  RDNA_TRY(rdna__check_same_shape("cast", "out", out, "x", x));
  RDNA_TRY(rdna__check_contiguous("cast", "x", x));
  RDNA_TRY(rdna__check_contiguous("cast", "out", out));
  RDNA_TRY(rdna__check_overlap("cast", "out", out, "x", x));
  RDNA_TRY(rdna__check_stream("cast", stream));
  int64_t count = rdna_tensor_count(x);
  if (x->dtype == out->dtype) {
    if (x->data == out->data) return RDNA_OK;
    size_t bytes = rdna_dtype_bytes(x->dtype, count);
    return bytes > 0 ? rdna_copy_on_device(stream, out->data, x->data, bytes) : RDNA_OK;
  }
  if (!has_kernel(x->dtype, out->dtype)) return rdna_op_copy(stream, x, out);
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups("cast", count, RDNA__CAST_TILE, &grid.x));
  struct cast_args args = {.x = x->data, .out = out->data, .count = count, .largest = largest};
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, rdna_dtype_name(x->dtype), rdna_dtype_name(out->dtype));
}

rdna_status rdna_op_cast(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  return cast(stream, x, out, INFINITY);
}

rdna_status rdna_op_cast_saturating(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  RDNA_TRY(rdna__check_float("cast_saturating", "x", x));
  RDNA_TRY(rdna__check_tensor("cast_saturating", "out", out));
  if (!float8_is(out->dtype)) {
    return rdna__fail(RDNA_UNSUPPORTED, "cast_saturating: out is %s; it must be a type of 8-bit floats",
                      rdna_dtype_name(out->dtype));
  }
  return cast(stream, x, out, float8_largest(out->dtype));
}
