#include "rdna/op/special.h"

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/special/special_kernels.h"

enum { MOST_ORDER = 100 };

/* Each family's kernels compute its functions alone, so that their coefficients fit into the scalar registers. */
static const rdna__route routes[] = {
    {.name = "complement", .kernels = {"special_erf_complement_{f32|f64}"}, .when = "erfc"},
    {.name = "inverse", .kernels = {"special_erf_inverse_{f32|f64}"}, .when = "erfinv, ndtri"},
    {.name = "gamma", .kernels = {"special_log_gamma_{f32|f64}"}, .when = "lgamma"},
    {.name = "derivative", .kernels = {"special_gamma_derivative_{f32|f64}"}, .when = "digamma, polygamma"},
    {.name = "bessel", .kernels = {"special_bessel_{f32|f64}"}, .when = "i0, i0e, i1, i1e"},
    {.name = "wave", .kernels = {"special_wave_{f32|f64}"}, .when = "j0, j1, y0, y1"},
    {.name = "decay", .kernels = {"special_decay_{f32|f64}"}, .when = "k0, k0e, k1, k1e"},
    {.name = "airy", .kernels = {"special_airy_{f32|f64}"}, .when = "airy_ai"},
    {.name = "arc", .kernels = {"special_arc_{f32|f64}"}, .when = "asin, acos, atan"},
    {.name = "hyperbolic", .kernels = {"special_hyperbolic_{f32|f64}"}, .when = "sinh, cosh"},
    {.name = "area", .kernels = {"special_area_{f32|f64}"}, .when = "asinh, acosh, atanh"}};
RDNA_FIXED_ROUTES(rdna__special_routes, "special functions", routes)

const char *rdna_special_name(rdna_special function) {
  static const char *const names[RDNA_SPECIAL_COUNT] = {
      [RDNA_SPECIAL_ERFC] = "erfc",       [RDNA_SPECIAL_ERFINV] = "erfinv",   [RDNA_SPECIAL_NDTRI] = "ndtri",
      [RDNA_SPECIAL_LGAMMA] = "lgamma",   [RDNA_SPECIAL_DIGAMMA] = "digamma", [RDNA_SPECIAL_POLYGAMMA] = "polygamma",
      [RDNA_SPECIAL_I0] = "i0",           [RDNA_SPECIAL_I0E] = "i0e",         [RDNA_SPECIAL_I1] = "i1",
      [RDNA_SPECIAL_I1E] = "i1e",         [RDNA_SPECIAL_J0] = "j0",           [RDNA_SPECIAL_J1] = "j1",
      [RDNA_SPECIAL_Y0] = "y0",           [RDNA_SPECIAL_Y1] = "y1",           [RDNA_SPECIAL_K0] = "k0",
      [RDNA_SPECIAL_K1] = "k1",           [RDNA_SPECIAL_K0E] = "k0e",         [RDNA_SPECIAL_K1E] = "k1e",
      [RDNA_SPECIAL_AIRY_AI] = "airy_ai", [RDNA_SPECIAL_ASIN] = "asin",       [RDNA_SPECIAL_ACOS] = "acos",
      [RDNA_SPECIAL_ATAN] = "atan",       [RDNA_SPECIAL_SINH] = "sinh",       [RDNA_SPECIAL_COSH] = "cosh",
      [RDNA_SPECIAL_ASINH] = "asinh",     [RDNA_SPECIAL_ACOSH] = "acosh",     [RDNA_SPECIAL_ATANH] = "atanh",
  };
  return (unsigned)function < RDNA_SPECIAL_COUNT ? names[function] : NULL;
}

static const char *kernel_of(rdna_special function, bool wide) {
  switch (function) {
    case RDNA_SPECIAL_ERFC:
      return wide ? "special_erf_complement_f64" : "special_erf_complement_f32";
    case RDNA_SPECIAL_ERFINV:
    case RDNA_SPECIAL_NDTRI:
      return wide ? "special_erf_inverse_f64" : "special_erf_inverse_f32";
    case RDNA_SPECIAL_LGAMMA:
      return wide ? "special_log_gamma_f64" : "special_log_gamma_f32";
    case RDNA_SPECIAL_DIGAMMA:
    case RDNA_SPECIAL_POLYGAMMA:
      return wide ? "special_gamma_derivative_f64" : "special_gamma_derivative_f32";
    case RDNA_SPECIAL_J0:
    case RDNA_SPECIAL_J1:
    case RDNA_SPECIAL_Y0:
    case RDNA_SPECIAL_Y1:
      return wide ? "special_wave_f64" : "special_wave_f32";
    case RDNA_SPECIAL_K0:
    case RDNA_SPECIAL_K1:
    case RDNA_SPECIAL_K0E:
    case RDNA_SPECIAL_K1E:
      return wide ? "special_decay_f64" : "special_decay_f32";
    case RDNA_SPECIAL_AIRY_AI:
      return wide ? "special_airy_f64" : "special_airy_f32";
    case RDNA_SPECIAL_ASIN:
    case RDNA_SPECIAL_ACOS:
    case RDNA_SPECIAL_ATAN:
      return wide ? "special_arc_f64" : "special_arc_f32";
    case RDNA_SPECIAL_SINH:
    case RDNA_SPECIAL_COSH:
      return wide ? "special_hyperbolic_f64" : "special_hyperbolic_f32";
    case RDNA_SPECIAL_ASINH:
    case RDNA_SPECIAL_ACOSH:
    case RDNA_SPECIAL_ATANH:
      return wide ? "special_area_f64" : "special_area_f32";
    default:
      return wide ? "special_bessel_f64" : "special_bessel_f32";
  }
}

rdna_status rdna_op_special(rdna_stream *stream, rdna_special function, int order, const rdna_tensor *x,
                            const rdna_tensor *out) {
  const char *name = "special";
  RDNA_TRY(rdna__check_stream(name, stream));
  if ((unsigned)function >= RDNA_SPECIAL_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the function is %d; functions are 0 to %d", name, (int)function,
                      RDNA_SPECIAL_COUNT - 1);
  }
  int most = function == RDNA_SPECIAL_POLYGAMMA ? MOST_ORDER : 0;
  if (order < 0 || order > most) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the order of %s is %d; it must be 0 to %d", name,
                      rdna_special_name(function), order, most);
  }
  RDNA_TRY(rdna__check_tensor(name, "x", x));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  if (x->dtype != RDNA_F32 && x->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x is %s; the types offered are f32 and f64", name,
                      rdna_dtype_name(x->dtype));
  }
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_same_shape(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_contiguous(name, "x", x));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  RDNA_TRY(rdna__check_overlap(name, "out", out, "x", x));
  struct special_args a = {.x = x->data,
                           .out = out->data,
                           .count = (uint64_t)rdna_tensor_count(x),
                           .function = (uint32_t)function,
                           .order = (uint32_t)order};
  if (a.count == 0) return RDNA_OK;
  rdna_grid grid = {1, 1, 1};
  RDNA_TRY(rdna__check_groups(name, (int64_t)a.count, SPECIAL_THREADS, &grid.x));
  return rdna__launch_named(stream, kernel_of(function, x->dtype == RDNA_F64), grid, &a);
}
