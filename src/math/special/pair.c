/* Special functions of two arguments. */
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/special/pair_kernels.h"
#include "rdna/op/special.h"

enum { GAMMA, ZETA, POLYNOMIAL, ADD, LOG, CHOICE };
static const rdna__route routes[] = {
    [GAMMA] = {.name = "gamma", .kernels = {"pair_gamma_{f32|f64}"}, .when = "igamma, igammac"},
    [ZETA] = {.name = "zeta", .kernels = {"pair_zeta_{f32|f64}"}, .when = "zeta"},
    [POLYNOMIAL] = {.name = "polynomial",
                    .kernels = {"pair_polynomial_{f32|f64}"},
                    .when = "Chebyshev's, Hermite's, Laguerre's and Legendre's polynomials"},
    [ADD] = {.name = "add", .kernels = {"pair_add_{f32|f64}"}, .when = "logaddexp, logaddexp2"},
    [LOG] = {.name = "log", .kernels = {"pair_log_{f32|f64}"}, .when = "xlogy, xlog1py"},
    [CHOICE] = {.name = "choice", .kernels = {"pair_choice_{f32|f64}"}, .when = "hypot, copysign, fmax, fmin"}};
RDNA_FIXED_ROUTES(rdna__pair_routes, "special functions of two arguments", routes)

const char *rdna_special_pair_name(rdna_special_pair function) {
  static const char *const names[RDNA_SPECIAL_PAIR_COUNT] = {
      [RDNA_SPECIAL_PAIR_IGAMMA] = "igamma",
      [RDNA_SPECIAL_PAIR_IGAMMAC] = "igammac",
      [RDNA_SPECIAL_PAIR_ZETA] = "zeta",
      [RDNA_SPECIAL_PAIR_CHEBYSHEV_T] = "chebyshev_t",
      [RDNA_SPECIAL_PAIR_CHEBYSHEV_U] = "chebyshev_u",
      [RDNA_SPECIAL_PAIR_CHEBYSHEV_V] = "chebyshev_v",
      [RDNA_SPECIAL_PAIR_CHEBYSHEV_W] = "chebyshev_w",
      [RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T] = "shifted_chebyshev_t",
      [RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_U] = "shifted_chebyshev_u",
      [RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_V] = "shifted_chebyshev_v",
      [RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W] = "shifted_chebyshev_w",
      [RDNA_SPECIAL_PAIR_HERMITE_H] = "hermite_h",
      [RDNA_SPECIAL_PAIR_HERMITE_HE] = "hermite_he",
      [RDNA_SPECIAL_PAIR_LAGUERRE] = "laguerre",
      [RDNA_SPECIAL_PAIR_LEGENDRE] = "legendre",
      [RDNA_SPECIAL_PAIR_LOGADDEXP] = "logaddexp",
      [RDNA_SPECIAL_PAIR_LOGADDEXP2] = "logaddexp2",
      [RDNA_SPECIAL_PAIR_XLOGY] = "xlogy",
      [RDNA_SPECIAL_PAIR_XLOG1PY] = "xlog1py",
      [RDNA_SPECIAL_PAIR_HYPOT] = "hypot",
      [RDNA_SPECIAL_PAIR_COPYSIGN] = "copysign",
      [RDNA_SPECIAL_PAIR_FMAX] = "fmax",
      [RDNA_SPECIAL_PAIR_FMIN] = "fmin",
  };
  return (unsigned)function < RDNA_SPECIAL_PAIR_COUNT ? names[function] : NULL;
}

rdna_status rdna_op_special_pair(rdna_stream *stream, rdna_special_pair function, const rdna_tensor *x,
                                 const rdna_tensor *y, const rdna_tensor *out) {
  const char *name = "special_pair";
  RDNA_TRY(rdna__check_stream(name, stream));
  if ((unsigned)function >= RDNA_SPECIAL_PAIR_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the function is %d; functions are 0 to %d", name, (int)function,
                      RDNA_SPECIAL_PAIR_COUNT - 1);
  }
  RDNA_TRY(rdna__check_tensor(name, "x", x));
  if (x->dtype != RDNA_F32 && x->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x is %s; the types offered are f32 and f64", name,
                      rdna_dtype_name(x->dtype));
  }
  RDNA_TRY(rdna__check_contiguous(name, "x", x));
  const rdna_tensor *others[] = {y, out};
  static const char *const names[] = {"y", "out"};
  for (int i = 0; i < 2; i++) {
    RDNA_TRY(rdna__check_tensor(name, names[i], others[i]));
    RDNA_TRY(rdna__check_same_dtype(name, names[i], others[i], "x", x));
    RDNA_TRY(rdna__check_same_shape(name, names[i], others[i], "x", x));
    RDNA_TRY(rdna__check_contiguous(name, names[i], others[i]));
  }
  RDNA_TRY(rdna__check_overlap(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_overlap(name, "out", out, "y", y));
  struct pair_args a = {.x = x->data,
                        .y = y->data,
                        .out = out->data,
                        .count = (uint64_t)rdna_tensor_count(x),
                        .function = (uint32_t)function};
  if (a.count == 0) return RDNA_OK;
  rdna_grid grid = {1, 1, 1};
  RDNA_TRY(rdna__check_groups(name, (int64_t)a.count, PAIR_THREADS, &grid.x));
  const rdna__route *route = &routes[function < RDNA_SPECIAL_PAIR_ZETA        ? GAMMA
                                     : function == RDNA_SPECIAL_PAIR_ZETA     ? ZETA
                                     : function < RDNA_SPECIAL_PAIR_LOGADDEXP ? POLYNOMIAL
                                     : function < RDNA_SPECIAL_PAIR_XLOGY     ? ADD
                                     : function < RDNA_SPECIAL_PAIR_HYPOT     ? LOG
                                                                              : CHOICE];
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &a, rdna_dtype_name(x->dtype));
}
