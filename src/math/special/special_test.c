/* Special functions beside others of the mathematical library, sums and integrals in long double. */
#include "rdna/op/special.h"

#include <float.h>

#include "math/common/test/strided.h"

typedef long double wide;
static const wide pi = 3.14159265358979323846264338327950288L;

/* The trapezoid rule on a period of an analytic function: its error is about exp(-points^2 / (2 x)), 1e-34 for x of
 * 1000, twice the sum over half a period. */
static wide bessel_scaled(int order, wide x) {
  enum { POINTS = 400 };
  wide sum = 0;
  for (int i = 0; i <= POINTS / 2; i++) {
    wide t = 2 * pi * (wide)i / POINTS, c = cosl(t);
    sum += (i == 0 || i == POINTS / 2 ? 1 : 2) * expl(x * c - fabsl(x)) * (order ? c : 1);
  }
  return sum / POINTS;
}
/* Integrals over all t > 0 of functions that are nothing from some t on: exp(-x cosh(t)) cosh(n t), which is K of order
 * n, and along the line on which t^3 is imaginary, exp(i (t^3 / 3 + x t)) / pi, whose real part is Ai(x). */
static wide bessel_k(wide n, wide x) {
  wide sum = expl(-x) / 2, step = 0.01L;
  for (int i = 1; i < 2500; i++) sum += expl(-x * coshl(step * i)) * coshl(n * step * i);
  return sum * step;
}
static wide airy(wide x) { /* t = exp(u - exp(-u)) */
  wide step = 1 / 128.0L, sum = 0;
  for (int i = -5 * 128; i < 3 * 128; i++) {
    wide u = step * i, t = expl(u - expl(-u));
    sum += t * (1 + expl(-u)) * expl(-t * t * t / 3 - x * t / 2) * cosl(x * t * cosl(pi / 6) + pi / 6);
  }
  return sum * step / pi;
}
/* By the recurrence up to 1000, where two terms of the expansion do. */
static wide digamma_wide(wide x) {
  wide below = 0;
  for (; x < 1000; x += 1) below += 1 / x;
  return logl(x) - 1 / (2 * x) - 1 / (12 * x * x) + 1 / (120 * x * x * x * x) - below;
}
static wide polygamma_wide(int n, wide x) {
  wide sum = 0, factorial = 1, s = n + 1;
  if (n == 0) return digamma_wide(x);
  for (int k = 2; k <= n; k++) factorial *= k;
  for (; x < 1000; x += 1) sum += powl(x, -s);
  sum += powl(x, 1 - s) / (s - 1) + powl(x, -s) / 2 + s * powl(x, -s - 1) / 12;
  return (n % 2 ? 1 : -1) * factorial * sum;
}
/* y of erfc(y) = q, from |y| near it. */
static wide erfc_inverse(wide y, wide q) {
  for (int i = 0; i < 4; i++) y += (erfcl(y) - q) * sqrtl(pi) / 2 * expl(y * y);
  return y;
}

/* What the function is, and how far the result may be off in units of 2^-52: of it, and of |of| where that is more. */
static wide wanted(rdna_special function, int order, double x, double got, double *units, double *of) {
  wide v = (wide)x;
  *of = 0, *units = 16;
  switch (function) {
    case RDNA_SPECIAL_ERFC:
      return *units = 4, erfcl(v);
    case RDNA_SPECIAL_ERFINV:
      *units = 8;
      return x < 0 ? -erfc_inverse(fabsl((wide)got), 1 + v) : erfc_inverse((wide)got, 1 - v);
    case RDNA_SPECIAL_NDTRI:
      *of = 1;
      return -sqrtl(2) * erfc_inverse(-(wide)got / sqrtl(2), 2 * v);
    case RDNA_SPECIAL_LGAMMA:
      *units = x > 0 ? 8 : 16;
      if (x <= 0) *of = fmax(1, fabs(log(-x)) + fabs(lgamma(-x)));
      return lgammal(v);
    case RDNA_SPECIAL_POLYGAMMA:
      *units = 64 + 4 * order, *of = order == 0;
      return polygamma_wide(order, v);
    case RDNA_SPECIAL_DIGAMMA:
      *of = 1;
      if (x > 0) return digamma_wide(v);
      *of = fmax(1, fabs(M_PI / tan(M_PI * (x - rint(x)))) + log(2 - x));
      return digamma_wide(1 - v) - pi / tanl(pi * (v - rintl(v)));
    case RDNA_SPECIAL_I0:
    case RDNA_SPECIAL_I1:
      *units = 16 + (fabs(x) < 20 ? 0 : 2 * fabs(x));
      return bessel_scaled(function == RDNA_SPECIAL_I1, v) * expl(fabsl(v));
    case RDNA_SPECIAL_I0E:
    case RDNA_SPECIAL_I1E:
      return bessel_scaled(function == RDNA_SPECIAL_I1E, v);
    case RDNA_SPECIAL_J0:
    case RDNA_SPECIAL_J1:
      *units = 8, *of = 1;
      return function == RDNA_SPECIAL_J0 ? j0l(v) : j1l(v);
    case RDNA_SPECIAL_Y0:
    case RDNA_SPECIAL_Y1:
      *units = 8, *of = 1;
      return x < 0 ? (wide)NAN : function == RDNA_SPECIAL_Y0 ? y0l(v) : y1l(v);
    case RDNA_SPECIAL_K0:
    case RDNA_SPECIAL_K1:
      *units = 16 + (x < 1 ? 0 : 2 * x);
      return x < 0 ? (wide)NAN : bessel_k(function == RDNA_SPECIAL_K1, v);
    case RDNA_SPECIAL_K0E:
    case RDNA_SPECIAL_K1E:
      return x < 0 ? (wide)NAN : bessel_k(function == RDNA_SPECIAL_K1E, v) * expl(v);
    case RDNA_SPECIAL_AIRY_AI:
      *units = 16 + (x > 0 ? 2 : 1) * pow(fabs(x), 1.5), *of = x < 0;
      return x > 5 ? sqrtl(v / 3) / pi * bessel_k(1.0L / 3, 2 * v * sqrtl(v) / 3) : airy(v);
    case RDNA_SPECIAL_ASIN:
      return *units = 4, asinl(v);
    case RDNA_SPECIAL_ACOS:
      return *units = 4, acosl(v);
    case RDNA_SPECIAL_ATAN:
      return *units = 4, atanl(v);
    case RDNA_SPECIAL_SINH:
      return *units = 4, sinhl(v);
    case RDNA_SPECIAL_COSH:
      return *units = 4, coshl(v);
    case RDNA_SPECIAL_ASINH:
      return *units = 4, asinhl(v);
    case RDNA_SPECIAL_ACOSH:
      return *units = 4, acoshl(v);
    case RDNA_SPECIAL_ATANH:
      return *units = 4, atanhl(v);
    case RDNA_SPECIAL_COUNT:
      break;
  }
  fail_msg("function %d is not known here", (int)function);
  return 0;
}

static double random_argument(rdna_special function, int64_t i) {
  double u = rdna__random_unit(&random_state), g = rdna__random_normal(&random_state);
  switch (function) {
    case RDNA_SPECIAL_ERFINV:
      return i % 4 == 0 ? ldexp(u, -(int)(i % 40)) : i % 4 == 1 ? 1 - ldexp(u, -(int)(i % 40)) - 0x1p-53 : 2 * u - 1;
    case RDNA_SPECIAL_NDTRI:
      return i % 3 ? u : ldexp(0.5 * u, -(int)i % 900);
    case RDNA_SPECIAL_POLYGAMMA:
      return i % 3 ? 4 * u + 0.01 : 200 * u + 0.01;
    case RDNA_SPECIAL_LGAMMA:
      return i % 5 == 0 ? 1 + 0.01 * g : i % 5 == 1 ? 2 + 0.01 * g : i % 5 == 2 ? 300 * u : 5 * g;
    case RDNA_SPECIAL_I0:
    case RDNA_SPECIAL_I1:
      return i % 3 == 0 ? 200 * g : 10 * g;
    case RDNA_SPECIAL_AIRY_AI:
      return i % 3 == 0 ? 60 * u : 4 * g;
    case RDNA_SPECIAL_ASIN:
    case RDNA_SPECIAL_ACOS:
    case RDNA_SPECIAL_ATANH: /* near 1, near 0, and a few beyond */
      return i % 5 == 0   ? 1 - ldexp(u, -(int)(i % 50))
             : i % 5 == 1 ? ldexp(g, -(int)(i % 60))
             : i % 5 == 2 ? ldexp(u, -(int)(i % 50)) - 1
                          : 2.02 * u - 1.01;
    case RDNA_SPECIAL_ACOSH:
      return i % 3 ? 1 + ldexp(u, 50 - (int)(i % 100)) : 4 * g;
    case RDNA_SPECIAL_ATAN:
    case RDNA_SPECIAL_SINH:
    case RDNA_SPECIAL_COSH:
    case RDNA_SPECIAL_ASINH:
      return i % 3 == 0 ? 300 * g : ldexp(g, 8 - (int)(i % 60));
    default:
      return i % 3 == 0 ? 20 * g : 3 * g;
  }
}

static void check(rdna_special function, int order, rdna_dtype dtype, int64_t count, bool in_place) {
  int64_t shape[] = {count};
  operand x = operand_make(dtype, 1, shape, NULL, 1), out = operand_make(dtype, 1, shape, NULL, 1);
  double *v = malloc((size_t)count * sizeof *v + 1);
  assert_non_null(v);
  for (int64_t i = 0; i < count; i++) {
    any_set(&x, i, random_argument(function, i));
    v[i] = real_get(&x, i);
  }
  operand_upload(&x), operand_upload(&out);
  assert_ok(rdna_op_special(stream, function, order, &x.tensor, in_place ? &x.tensor : &out.tensor));
  operand *result = in_place ? &x : &out;
  operand_download(result);
  for (int64_t i = 0; i < count; i++) {
    double units, of, got = real_get(result, i);
    if ((function == RDNA_SPECIAL_ERFINV && fabs(v[i]) >= 1) ||
        (function == RDNA_SPECIAL_NDTRI && (v[i] == 0 || v[i] == 1)))
      continue;
    double want = (double)wanted(function, order, v[i], got, &units, &of), size = fmax(fabs(want), of);
    double room = units * 0x1p-52 * size + (dtype == RDNA_F32 ? fabs(want) * 0x1p-24 + 0x1p-150 : 0x1p-1074);
    bool overflow = dtype == RDNA_F32 && fabs(want) > (double)FLT_MAX;
    if (isnan(want) ? !isnan(got) : overflow ? !isinf(got) : isinf(want) ? got != want : !(fabs(got - want) <= room)) {
      fail_msg("%s order %d of %.17g in %s: got %.17g, want %.17g, off by %.3g units", rdna_special_name(function),
               order, v[i], rdna_dtype_name(dtype), got, want, fabs(got - want) / size * 0x1p52);
    }
  }
  free(v);
  operand_free(&x), operand_free(&out);
}

static void functions_match_wide_ones(void **state) {
  for (int function = 0; function < RDNA_SPECIAL_COUNT; function++) {
    for (int t = 0; t < 2; t++) check((rdna_special)function, 0, t ? RDNA_F32 : RDNA_F64, 300, t);
  }
  for (int order = 1; order < 9; order++) check(RDNA_SPECIAL_POLYGAMMA, order, RDNA_F64, 100, order % 2);
}

static double one(rdna_special function, int order, double x) {
  int64_t shape[] = {1};
  operand o = operand_make(RDNA_F64, 1, shape, NULL, 0);
  any_set(&o, 0, x);
  operand_upload(&o);
  assert_ok(rdna_op_special(stream, function, order, &o.tensor, &o.tensor));
  operand_download(&o);
  double got = real_get(&o, 0);
  operand_free(&o);
  return got;
}

static void edges(void **state) {
  const double inf = (double)INFINITY, nan = (double)NAN, hard[] = {0, 1, -1, inf, -inf, nan};
  static const struct {
    rdna_special function;
    int order;
    double want[6]; /* of 0, 1, -1, inf, -inf, NaN */
  } rows[] = {
      {RDNA_SPECIAL_ERFC, 0, {1, 0x1.4226162fbddd5p-3, 0x1.d7bb3d3a08445p+0, 0, 2, (double)NAN}},
      {RDNA_SPECIAL_ERFINV, 0, {0, (double)INFINITY, -(double)INFINITY, (double)NAN, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_NDTRI,
       0,
       {-(double)INFINITY, (double)INFINITY, (double)NAN, (double)NAN, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_LGAMMA,
       0,
       {(double)INFINITY, 0, (double)INFINITY, (double)INFINITY, (double)INFINITY, (double)NAN}},
      {RDNA_SPECIAL_DIGAMMA,
       0,
       {-(double)INFINITY, -0x1.2788cfc6fb619p-1, (double)NAN, (double)INFINITY, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_POLYGAMMA,
       1,
       {(double)INFINITY, 0x1.a51a6625307d3p+0, (double)INFINITY, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_I0,
       0,
       {1, 1.2660658777520083, 1.2660658777520083, (double)INFINITY, (double)INFINITY, (double)NAN}},
      {RDNA_SPECIAL_I0E, 0, {1, 0.46575960759364044, 0.46575960759364044, 0, 0, (double)NAN}},
      {RDNA_SPECIAL_I1,
       0,
       {0, 0.56515910399248503, -0.56515910399248503, (double)INFINITY, -(double)INFINITY, (double)NAN}},
      {RDNA_SPECIAL_I1E, 0, {0, 0.20791041534970845, -0.20791041534970845, 0, 0, (double)NAN}},
      {RDNA_SPECIAL_J0, 0, {1, 0.76519768655796655, 0.76519768655796655, 0, 0, (double)NAN}},
      {RDNA_SPECIAL_J1, 0, {0, 0.44005058574493352, -0.44005058574493352, 0, 0, (double)NAN}},
      {RDNA_SPECIAL_Y0, 0, {-(double)INFINITY, 0.088256964215676958, (double)NAN, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_Y1, 0, {-(double)INFINITY, -0.78121282130028872, (double)NAN, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_K0, 0, {(double)INFINITY, 0.42102443824070834, (double)NAN, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_K1, 0, {(double)INFINITY, 0.60190723019723457, (double)NAN, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_K0E, 0, {(double)INFINITY, 1.1444630798068949, (double)NAN, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_K1E, 0, {(double)INFINITY, 1.6361534862632582, (double)NAN, 0, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_AIRY_AI, 0, {0.35502805388781724, 0.13529241631288141, 0.53556088329235211, 0, 0, (double)NAN}},
      {RDNA_SPECIAL_ASIN, 0, {0, M_PI / 2, -M_PI / 2, (double)NAN, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_ACOS, 0, {M_PI / 2, 0, M_PI, (double)NAN, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_ATAN, 0, {0, M_PI / 4, -M_PI / 4, M_PI / 2, -M_PI / 2, (double)NAN}},
      {RDNA_SPECIAL_SINH,
       0,
       {0, 1.1752011936438014, -1.1752011936438014, (double)INFINITY, -(double)INFINITY, (double)NAN}},
      {RDNA_SPECIAL_COSH,
       0,
       {1, 1.5430806348152438, 1.5430806348152438, (double)INFINITY, (double)INFINITY, (double)NAN}},
      {RDNA_SPECIAL_ASINH,
       0,
       {0, 0.88137358701954303, -0.88137358701954303, (double)INFINITY, -(double)INFINITY, (double)NAN}},
      {RDNA_SPECIAL_ACOSH, 0, {(double)NAN, 0, (double)NAN, (double)INFINITY, (double)NAN, (double)NAN}},
      {RDNA_SPECIAL_ATANH, 0, {0, (double)INFINITY, -(double)INFINITY, (double)NAN, (double)NAN, (double)NAN}},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (int i = 0; i < 6; i++) {
      double got = one(rows[r].function, rows[r].order, hard[i]), want = rows[r].want[i];
      bool right = isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= fabs(want) * 0x1p-30;
      if (!right) {
        fail_msg("%s of %g: got %.17g, want %.17g", rdna_special_name(rows[r].function), hard[i], got, want);
      }
    }
  }
  assert_null(rdna_special_name(RDNA_SPECIAL_COUNT));
  /* the sign of zero, and what squares and exponentials would overflow at */
  for (int f = RDNA_SPECIAL_ASIN; f < RDNA_SPECIAL_COUNT; f++) {
    bool odd = f != RDNA_SPECIAL_ACOS && f != RDNA_SPECIAL_COSH && f != RDNA_SPECIAL_ACOSH;
    if (odd && !signbit(one((rdna_special)f, 0, -0.0)))
      fail_msg("%s of -0 is not -0", rdna_special_name((rdna_special)f));
  }
  assert_true(fabs(one(RDNA_SPECIAL_SINH, 0, -710) / sinh(-710) - 1) < 1e-15);
  assert_true(fabs(one(RDNA_SPECIAL_COSH, 0, 710.4) / cosh(710.4) - 1) < 1e-15);
  assert_true(isinf(one(RDNA_SPECIAL_COSH, 0, 711)));
  assert_true(fabs(one(RDNA_SPECIAL_ASINH, 0, -1.7e308) / asinh(-1.7e308) - 1) < 1e-15);
  assert_true(fabs(one(RDNA_SPECIAL_ACOSH, 0, 1.7e308) / acosh(1.7e308) - 1) < 1e-15);
  assert_true(fabs(one(RDNA_SPECIAL_ASINH, 0, 1e160) / asinh(1e160) - 1) < 1e-15);
}

/* Below 0, by the recurrence psi_n(x) = psi_n(x + 1) - (-1)^n n! x^-(n + 1), which holds there too. */
static void polygamma_below_zero(void **state) {
  for (int order = 1; order < 6; order++) {
    double factorial = tgamma(order + 1.0);
    for (int i = 0; i < 40; i++) {
      double start = 0.05 + 0.9 * rdna__random_unit(&random_state);
      wide x = (wide)start, want = polygamma_wide(order, x), size = fabsl(want);
      for (int down = 0; down < 4; down++) {
        x -= 1;
        wide term = (order % 2 ? -1 : 1) * (wide)factorial * powl(x, -order - 1);
        want -= term, size += fabsl(term);
        double got = one(RDNA_SPECIAL_POLYGAMMA, order, (double)x);
        /* x itself is off by a rounding of x, which the next derivative enlarges */
        double slope = fabs((double)polygamma_wide(order + 1, (wide)fmin(start, 1 - start)));
        double room = 0x1p-52 * ((64 + 4 * order) * (double)size + 8 * slope);
        if (!(fabs(got - (double)want) <= room)) {
          fail_msg("polygamma(%d, %.17g): got %.17g, want %.17g", order, (double)x, got, (double)want);
        }
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_match_wide_ones),
      cmocka_unit_test(edges),
      cmocka_unit_test(polygamma_below_zero),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
