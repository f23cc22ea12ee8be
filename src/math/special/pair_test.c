/* Special functions of two arguments beside series, sums and closed forms in long double. */
#include <float.h>

#include "math/common/test/strided.h"
#include "rdna/op/special.h"

typedef long double wide;

/* The series of positive terms, which converges everywhere. */
static wide lower_gamma(wide a, wide x) {
  wide term = 1 / a, sum = term;
  for (int k = 1; k < 2000; k++) term *= x / (a + k), sum += term;
  return x == 0 ? 0 : sum * expl(a * logl(x) - x - lgammal(a));
}
static wide zeta_wide(wide s, wide q) {
  wide sum = 0;
  for (; q < 1000; q += 1) sum += powl(q, -s);
  return sum + powl(q, 1 - s) / (s - 1) + powl(q, -s) / 2 + s * powl(q, -s - 1) / 12;
}
static wide choose(int n, int k) {
  wide c = 1;
  for (int i = 1; i <= k; i++) c *= (wide)(n - k + i) / i;
  return c;
}
/* A&S 22.3.6 to 22.3.16: x is the cosine of an angle, or a hyperbolic one from 1 on. */
static wide chebyshev(rdna_special_pair kind, int n, wide x) {
  bool wave = fabsl(x) < 1;
  wide t = wave ? acosl(x) : acoshl(x);
  if (x == 1) t = 1e-9L;
  switch (kind) {
    case RDNA_SPECIAL_PAIR_CHEBYSHEV_T:
      return wave ? cosl(n * t) : coshl(n * t);
    case RDNA_SPECIAL_PAIR_CHEBYSHEV_U:
      return wave ? sinl((n + 1) * t) / sinl(t) : sinhl((n + 1) * t) / sinhl(t);
    case RDNA_SPECIAL_PAIR_CHEBYSHEV_V:
      return wave ? cosl((n + 0.5L) * t) / cosl(t / 2) : coshl((n + 0.5L) * t) / coshl(t / 2);
    default:
      return wave ? sinl((n + 0.5L) * t) / sinl(t / 2) : sinhl((n + 0.5L) * t) / sinhl(t / 2);
  }
}
static wide explicit_sum(rdna_special_pair kind, int n, wide x) {
  wide sum = 0;
  for (int k = 0; k <= n; k++) {
    if (kind == RDNA_SPECIAL_PAIR_LAGUERRE) sum += (k % 2 ? -1 : 1) * choose(n, k) * powl(x, k) / tgammal(k + 1.0L);
    if (kind == RDNA_SPECIAL_PAIR_LEGENDRE) {
      sum += choose(n, k) * choose(n, k) * powl(x - 1, n - k) * powl(x + 1, k) / powl(2, n);
    } else if (kind != RDNA_SPECIAL_PAIR_LAGUERRE && 2 * k <= n) {
      wide c = (k % 2 ? -1 : 1) * tgammal(n + 1.0L) / tgammal(k + 1.0L) / tgammal(n - 2 * k + 1.0L);
      sum += kind == RDNA_SPECIAL_PAIR_HERMITE_H ? c * powl(2 * x, n - 2 * k) : c * powl(x, n - 2 * k) / powl(2, k);
    }
  }
  return sum;
}

/* What it is, and how far off a result may be in units of 2^-52 of the larger of it and |of|. */
static wide wanted(rdna_special_pair f, double x, double y, double *units, double *of) {
  *of = 0;
  switch (f) {
    case RDNA_SPECIAL_PAIR_IGAMMA:
    case RDNA_SPECIAL_PAIR_IGAMMAC:
      *units = 32 + 4 * x * fabs(log(x)), *of = 1;
      return f == RDNA_SPECIAL_PAIR_IGAMMA ? lower_gamma((wide)x, (wide)y) : 1 - lower_gamma((wide)x, (wide)y);
    case RDNA_SPECIAL_PAIR_ZETA:
      *units = 64 + 4 * x;
      return zeta_wide((wide)x, (wide)y);
    default:
      break;
  }
  wide v = (wide)x, w = (wide)y;
  switch (f) {
    case RDNA_SPECIAL_PAIR_LOGADDEXP:
    case RDNA_SPECIAL_PAIR_LOGADDEXP2:
      *units = 4, *of = fmax(1, fmax(fabs(x), fabs(y)));
      return f == RDNA_SPECIAL_PAIR_LOGADDEXP ? logl(expl(v) + expl(w)) : log2l(exp2l(v) + exp2l(w));
    case RDNA_SPECIAL_PAIR_XLOGY:
    case RDNA_SPECIAL_PAIR_XLOG1PY:
      *units = 4;
      return v * (f == RDNA_SPECIAL_PAIR_XLOGY ? logl(w) : log1pl(w));
    case RDNA_SPECIAL_PAIR_HYPOT:
      *units = 2;
      return hypotl(v, w);
    case RDNA_SPECIAL_PAIR_COPYSIGN:
      *units = 0;
      return copysignl(v, w);
    case RDNA_SPECIAL_PAIR_FMAX:
    case RDNA_SPECIAL_PAIR_FMIN:
      *units = 0;
      return f == RDNA_SPECIAL_PAIR_FMAX ? fmaxl(v, w) : fminl(v, w);
    default:
      break;
  }
  int n = (int)y;
  bool shifted = f >= RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T && f <= RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W;
  *units = 16 * (n + 2) * (n + 2), *of = 1; /* of recurrences whose terms are larger than they */
  if (f > RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W) {
    for (int k = 0; k <= n; k++) *of = fmax(*of, fabs((double)explicit_sum(f, k, (wide)x)) * pow(1 + fabs(x), n - k));
    return explicit_sum(f, n, (wide)x);
  }
  rdna_special_pair kind = shifted ? (rdna_special_pair)(f - 4) : f;
  if (shifted) v = 2 * v - 1;
  *of = fmax(1, fabs((double)chebyshev(kind, n, v)));
  return chebyshev(kind, n, v);
}

static void check(rdna_special_pair f, rdna_dtype dtype, int64_t count, int in_place) {
  bool gamma = f < RDNA_SPECIAL_PAIR_ZETA, zeta = f == RDNA_SPECIAL_PAIR_ZETA;
  operand x = operand_make(dtype, 1, &count, NULL, 1), y = operand_make(dtype, 1, &count, NULL, 0);
  operand out = operand_make(dtype, 1, &count, NULL, 2);
  double *v = malloc((size_t)count * sizeof *v), *w = malloc((size_t)count * sizeof *w);
  assert_true(v && w);
  for (int64_t i = 0; i < count; i++) {
    double u = rdna__random_unit(&random_state), z = rdna__random_unit(&random_state);
    any_set(&x, i, gamma ? (i % 4 ? 8 : 100) * u + 1e-3 : zeta ? 1.01 + 12 * u : i % 3 == 0 ? 1 + u : 2 * u - 1);
    bool shifted = f >= RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T && f <= RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W;
    if (shifted) any_set(&x, i, (1 + real_get(&x, i)) / 2);
    any_set(&y, i, gamma ? (i % 4 ? 12 : 100) * z : zeta ? 20 * z + 0.01 : 13 * z - 0.9);
    if (!gamma && !zeta && i % 17 == 5) any_set(&x, i, 1);
    if (f >= RDNA_SPECIAL_PAIR_LOGADDEXP) { /* logarithms of what is above 0 */
      bool log = f == RDNA_SPECIAL_PAIR_XLOGY || f == RDNA_SPECIAL_PAIR_XLOG1PY;
      any_set(&x, i, 40 * u - 20), any_set(&y, i, log ? ldexp(z + 0x1p-30, (int)(i % 60) - 30) : 30 * z - 15);
    }
    v[i] = real_get(&x, i), w[i] = real_get(&y, i);
  }
  operand_upload(&x), operand_upload(&y), operand_upload(&out);
  operand *result = in_place == 0 ? &out : in_place == 1 ? &x : &y;
  assert_ok(rdna_op_special_pair(stream, f, &x.tensor, &y.tensor, &result->tensor));
  operand_download(result);
  for (int64_t i = 0; i < count; i++) {
    double units, of, got = real_get(result, i), want = (double)wanted(f, v[i], w[i], &units, &of);
    double room = units * 0x1p-52 * fmax(fabs(want), of) + (dtype == RDNA_F32 ? fabs(want) * 0x1p-24 + 0x1p-150 : 0);
    if (!(fabs(got - want) <= room) && !(dtype == RDNA_F32 && fabs(want) > (double)FLT_MAX && isinf(got))) {
      fail_msg("%s(%.17g, %.17g) in %s: got %.17g, want %.17g, %.3g of the room", rdna_special_pair_name(f), v[i], w[i],
               rdna_dtype_name(dtype), got, want, fabs(got - want) / room);
    }
  }
  free(v), free(w);
  operand_free(&x), operand_free(&y), operand_free(&out);
}

static void functions_match_wide_ones(void **state) {
  for (int f = 0; f < RDNA_SPECIAL_PAIR_COUNT; f++) {
    for (int t = 0; t < 2; t++) check((rdna_special_pair)f, t ? RDNA_F32 : RDNA_F64, 300, (f + t) % 3);
  }
}

static double one(rdna_special_pair f, double x, double y) {
  int64_t count = 1;
  operand a = operand_make(RDNA_F64, 1, &count, NULL, 0), b = operand_make(RDNA_F64, 1, &count, NULL, 0);
  any_set(&a, 0, x), any_set(&b, 0, y);
  operand_upload(&a), operand_upload(&b);
  assert_ok(rdna_op_special_pair(stream, f, &a.tensor, &b.tensor, &a.tensor));
  operand_download(&a);
  double got = real_get(&a, 0);
  operand_free(&a), operand_free(&b);
  return got;
}

static void edges(void **state) {
  const double inf = (double)INFINITY, nan = (double)NAN;
  const struct {
    rdna_special_pair f;
    double x, y, want;
  } rows[] = {
      {RDNA_SPECIAL_PAIR_IGAMMA, 0, 0, nan},
      {RDNA_SPECIAL_PAIR_IGAMMA, 0, 1, 1},
      {RDNA_SPECIAL_PAIR_IGAMMA, 1, 0, 0},
      {RDNA_SPECIAL_PAIR_IGAMMA, -1, 1, nan},
      {RDNA_SPECIAL_PAIR_IGAMMA, 1, -1, nan},
      {RDNA_SPECIAL_PAIR_IGAMMA, inf, 1, 0},
      {RDNA_SPECIAL_PAIR_IGAMMA, 1, inf, 1},
      {RDNA_SPECIAL_PAIR_IGAMMA, inf, inf, nan},
      {RDNA_SPECIAL_PAIR_IGAMMA, nan, 1, nan},
      {RDNA_SPECIAL_PAIR_IGAMMAC, 0, 1, 0},
      {RDNA_SPECIAL_PAIR_IGAMMAC, 1, 0, 1},
      {RDNA_SPECIAL_PAIR_IGAMMAC, 1, inf, 0},
      {RDNA_SPECIAL_PAIR_IGAMMAC, inf, 1, 1},
      {RDNA_SPECIAL_PAIR_IGAMMAC, 1, nan, nan},
      {RDNA_SPECIAL_PAIR_ZETA, 1, 2, inf},
      {RDNA_SPECIAL_PAIR_ZETA, 0.5, 2, nan},
      {RDNA_SPECIAL_PAIR_ZETA, 2, 0, inf},
      {RDNA_SPECIAL_PAIR_ZETA, 2, -3, inf},
      {RDNA_SPECIAL_PAIR_ZETA, 2.5, -0.5, nan},
      {RDNA_SPECIAL_PAIR_ZETA, 2, nan, nan},
      {RDNA_SPECIAL_PAIR_ZETA, 2, -0.5, 8.9348022005446793094}, /* pi^2 / 2 + 4 */
      {RDNA_SPECIAL_PAIR_ZETA, 3, -0.5, 0.41439832211716000},   /* 7 zeta(3) - 8 */
      {RDNA_SPECIAL_PAIR_CHEBYSHEV_T, 2, -1, 0},
      {RDNA_SPECIAL_PAIR_CHEBYSHEV_T, nan, 2, nan},
      {RDNA_SPECIAL_PAIR_CHEBYSHEV_T, nan, 0, nan},
      {RDNA_SPECIAL_PAIR_CHEBYSHEV_T, 0.5, 1e9, nan},
      {RDNA_SPECIAL_PAIR_CHEBYSHEV_U, -1, 4, 5},
      {RDNA_SPECIAL_PAIR_LEGENDRE, inf, 1, inf},
      {RDNA_SPECIAL_PAIR_HERMITE_H, 1, 3.9, -4},
      {RDNA_SPECIAL_PAIR_LAGUERRE, 0, 7, 1},
      {RDNA_SPECIAL_PAIR_LOGADDEXP, inf, inf, inf},
      {RDNA_SPECIAL_PAIR_LOGADDEXP, -inf, -inf, -inf},
      {RDNA_SPECIAL_PAIR_LOGADDEXP, -inf, 3, 3},
      {RDNA_SPECIAL_PAIR_LOGADDEXP, inf, -inf, inf},
      {RDNA_SPECIAL_PAIR_LOGADDEXP, nan, inf, nan},
      {RDNA_SPECIAL_PAIR_LOGADDEXP2, 3, nan, nan},
      {RDNA_SPECIAL_PAIR_LOGADDEXP2, 1000, 1000, 1001},
      {RDNA_SPECIAL_PAIR_XLOGY, 0, 0, 0},
      {RDNA_SPECIAL_PAIR_XLOGY, 0, -1, 0},
      {RDNA_SPECIAL_PAIR_XLOGY, 0, nan, nan},
      {RDNA_SPECIAL_PAIR_XLOGY, 2, 0, -inf},
      {RDNA_SPECIAL_PAIR_XLOGY, nan, 1, nan},
      {RDNA_SPECIAL_PAIR_XLOG1PY, 0, -1, 0},
      {RDNA_SPECIAL_PAIR_XLOG1PY, 1, -1, -inf},
      {RDNA_SPECIAL_PAIR_XLOG1PY, 1, -2, nan},
      {RDNA_SPECIAL_PAIR_HYPOT, -inf, nan, inf},
      {RDNA_SPECIAL_PAIR_HYPOT, nan, 1, nan},
      {RDNA_SPECIAL_PAIR_HYPOT, 0, 0, 0},
      {RDNA_SPECIAL_PAIR_HYPOT, 1, nan, nan},
      {RDNA_SPECIAL_PAIR_COPYSIGN, inf, -0.0, -inf},
      {RDNA_SPECIAL_PAIR_COPYSIGN, nan, 1, nan},
      {RDNA_SPECIAL_PAIR_FMAX, nan, -3, -3},
      {RDNA_SPECIAL_PAIR_FMAX, -3, nan, -3},
      {RDNA_SPECIAL_PAIR_FMAX, nan, nan, nan},
      {RDNA_SPECIAL_PAIR_FMIN, nan, inf, inf},
      {RDNA_SPECIAL_PAIR_FMIN, 2, -inf, -inf},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    double got = one(rows[r].f, rows[r].x, rows[r].y), want = rows[r].want;
    if (!(isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= 1e-13)) {
      fail_msg("%s(%g, %g): got %.17g, want %.17g", rdna_special_pair_name(rows[r].f), rows[r].x, rows[r].y, got, want);
    }
  }
  assert_null(rdna_special_pair_name(RDNA_SPECIAL_PAIR_COUNT));
  assert_true(fabs(one(RDNA_SPECIAL_PAIR_HYPOT, 1e308, -1e308) / hypot(1e308, 1e308) - 1) < 1e-15);
  assert_true(fabs(one(RDNA_SPECIAL_PAIR_HYPOT, 3e-310, 4e-310) / 5e-310 - 1) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_match_wide_ones), cmocka_unit_test(edges)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
