/* Every function of scalar64.h against the C library's in long double, which has 11 bits more on x86, at random numbers
 * of the whole range and of a part of it and in the neighbourhoods of what is special. The bound is in units of the
 * last place of the result; a long double's own error is added where the reference multiplies it.
 *
 * The same functions are compiled with and without the fused multiply-add instruction and must give the same bits:
 * that is what kernels and host twins rely on. */
#include "kernel/scalar64.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "base/testing.h"
#include "kernel/testing_fused.h"

static const long double root_half = 0.70710678118654752440084436210484904L;
static long double sigmoid_long(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static long double mish_long(long double x) { /* of exp(x), as log1p and tanh would lose it */
  long double e = expl(x < 100 ? x : 100);
  return x * (e * (e + 2) / (e * (e + 2) + 2));
}

/* name, reference, bound, where most random numbers are, and how much a relative error of the reference's inner
 * argument is multiplied by */
#define FUNCTIONS(X)                                                                                              \
  X(exp, expl(x), 0.8, 40, 0)                                                                                     \
  X(exp2, exp2l(x), 0.8, 60, 0)                                                                                   \
  X(expm1, expm1l(x), 0.9, 3, 0)                                                                                  \
  X(log, logl(x), 1, 2, 0)                                                                                        \
  X(log2, log2l(x), 1.2, 2, 0)                                                                                    \
  X(log10, log10l(x), 1, 2, 0)                                                                                    \
  X(log1p, log1pl(x), 1, 2, 0)                                                                                    \
  X(sin, sinl(x), 0.8, 20, 0)                                                                                     \
  X(cos, cosl(x), 0.8, 20, 0)                                                                                     \
  X(tan, tanl(x), 1, 20, 0)                                                                                       \
  X(tanh, tanhl(x), 1.3, 3, 0)                                                                                    \
  X(erf, erfl(x), 1.1, 2, 0)                                                                                      \
  X(sigmoid, sigmoid_long(x), 0.8, 10, 0)                                                                         \
  X(silu, x == 0 ? x : x * sigmoid_long(x), 0.8, 10, 0)                                                           \
  X(softplus, x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)), 1.2, 10, 0)                                         \
  X(mish, mish_long(x), 1, 10, 0)                                                                                 \
  X(gelu, 0.5L * x * erfcl(-x * root_half), 1.5, 3, x < 0 ? x * x : 0)                                            \
  X(gelu_tanh, x *sigmoid_long(2 * 0.79788456080286535587989L * (x + (long double)0.044715 * x * x * x)), 0.8, 3, \
    x < 0 ? 2 * fabsl(x) * (1 + 0.05L * x * x) : 0)

#define WRAP(name, reference, ulps, range, multiplied)                      \
  static double plain_##name(double x) { return scalar64_##name(x); }       \
  FUSED static double fused_##name(double x) { return scalar64_##name(x); } \
  static long double reference_##name(long double x) { return reference; }  \
  static long double multiplied_##name(long double x) { return multiplied; }
FUNCTIONS(WRAP)

typedef struct tested {
  const char *name;
  double (*plain)(double);
  double (*fused)(double);
  long double (*reference)(long double);
  long double (*multiplied)(long double);
  double ulps, range;
} tested;

#define ROW(name, reference, ulps, range, multiplied) \
  {#name, plain_##name, fused_##name, reference_##name, multiplied_##name, ulps, range},
static const tested functions[] = {FUNCTIONS(ROW)};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

static long double ulp_of(long double v) {
  int exponent;
  frexpl(v, &exponent);
  return ldexpl(1, (v == 0 || exponent < -1021 ? -1021 : exponent) - 53);
}

static double error_of(double got, long double want, double ulps, long double multiplied) {
  if (isnan(want)) return isnan(got) ? 0 : (double)INFINITY;
  if (isnan(got)) return (double)INFINITY;
  if (isinf((double)want) || isinf(got)) {
    bool near = fabsl(want) > (long double)DBL_MAX * (1 - 0x1p-52L) && fabs(got) >= DBL_MAX * (1 - 0x1p-52);
    return near && !signbit(got) == !signbit(want) ? 0 : (double)INFINITY;
  }
  if (want == 0 && (got != 0 || !signbit(got) != !signbit(want))) return (double)INFINITY;
  long double allowed = ulps * ulp_of(want) + multiplied * fabsl(want) * LDBL_EPSILON;
  return (double)(fabsl((long double)got - want) / allowed);
}

static bool is_left_out(const tested *t, double x) {
  bool gate = !strcmp(t->name, "silu") || !strcmp(t->name, "mish") || !strncmp(t->name, "gelu", 4);
  return gate && isinf(x) && x < 0; /* 0 times infinity */
}

static void check(const tested *t, double x) {
  double got = has_fused() ? t->fused(x) : t->plain(x);
  if (is_left_out(t, x)) return;
  double error = error_of(got, t->reference((long double)x), t->ulps, t->multiplied((long double)x));
  if (error > 1)
    fail_msg("%s(%a) is %a, not %La: %.3f times the bound", t->name, x, got, t->reference((long double)x), error);
}

static double random_number(rdna__random *random, int kind, double range) {
  if (kind % 3 == 0) return scalar64_from_bits(rdna__random_bits(random));
  double unit = 2 * ((double)(rdna__random_bits(random) >> 11) * 0x1p-53) - 1;
  return kind % 3 == 1 ? unit * range : unit * 2;
}

static void test_errors(void **state) {
  rdna__random random;
  rdna__random_seed(&random, 1);
  for (int i = 0; i < FUNCTION_COUNT; i++)
    for (int n = 0; n < 60000; n++) check(&functions[i], random_number(&random, n, functions[i].range));
}

static void test_edges(void **state) {
  static const double starts[] = {0,
                                  1,
                                  2,
                                  (double)INFINITY,
                                  DBL_MIN,
                                  DBL_MAX,
                                  0x1.62e42fefa39efp-2,
                                  0x1.62e42fefa39efp9,
                                  0x1.74910d52d3051p9,
                                  1024,
                                  1074,
                                  0x1p20,
                                  0x1p52,
                                  0x1p53,
                                  0.4,
                                  0.565,
                                  0.84,
                                  5.86,
                                  26.55,
                                  36,
                                  40,
                                  700,
                                  800,
                                  0x1.921fb54442d18p-1,
                                  0x1.921fb54442d18p0,
                                  0x1.921fb54442d18p1,
                                  6381956970095103.0 * 0x1p797, /* nearest of all to a multiple of pi/2 (Muller 2006) */
                                  0x1.6a09e667f3bcdp-1,
                                  0x1.6a09e667f3bcdp0,
                                  1000,
                                  1e22};
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
      for (int step = -100; step <= 100; step++) {
        double x = scalar64_from_bits(scalar64_bits(starts[s]) + (uint64_t)(int64_t)step);
        check(&functions[i], x);
        check(&functions[i], -x);
      }
    }
  }
  assert_true(scalar64_exp(0) == 1 && scalar64_exp2(-1074) == 0x1p-1074 && scalar64_log(1) == 0);
  assert_true(scalar64_exp2(10) == 1024 && scalar64_log2(0x1p-1074) == -1074 && scalar64_log10(1e15) == 15);
  assert_true(signbit(scalar64_sin(-0.0)) && signbit(scalar64_tanh(-0.0)) && signbit(scalar64_erf(-0.0)));
  assert_true(signbit(scalar64_expm1(-0.0)) && signbit(scalar64_log1p(-0.0)) && signbit(scalar64_gelu(-0.0)));
}

static void check_two(const char *name, double a, double b, double got, long double want) {
  double error = error_of(got, want, 0.9, 0);
  if (error > 1) fail_msg("%s(%a, %a) is %a, not %La: %.3f times the bound", name, a, b, got, want, error);
}

static void test_two_arguments(void **state) {
  static const double special[] = {0,    1,    2,       3,       0.5,       1.5,    (double)INFINITY,    (double)NAN,
                                   1e15, 1e16, DBL_MAX, DBL_MIN, 0x1p-1074, 0x1p53, 0x1.fffffffffffffp52};
  enum { N = sizeof special / sizeof special[0] };
  rdna__random random;
  rdna__random_seed(&random, 2);
  for (int i = 0; i < 4 * N * N; i++) {
    double a = special[i / 4 / N] * (i & 1 ? -1 : 1), b = special[i / 4 % N] * (i & 2 ? -1 : 1);
    check_two("pow", a, b, scalar64_pow(a, b), powl((long double)a, (long double)b));
    check_two("atan2", a, b, scalar64_atan2(a, b), atan2l((long double)a, (long double)b));
  }
  for (int i = 0; i < 200000; i++) {
    double a = random_number(&random, i, 3), b = random_number(&random, i / 2, 3);
    check_two("atan2", a, b, scalar64_atan2(a, b), atan2l((long double)a, (long double)b));
    a = fabs(a);
    if (i % 2) b = random_number(&random, 1, 700) / log(a);
    check_two("pow", a, b, scalar64_pow(a, b), powl((long double)a, (long double)b));
  }
}

static void assert_same(const char *name, double a, double b, double plain, double fused) {
  if (scalar64_bits(plain) != scalar64_bits(fused) && !(isnan(plain) && isnan(fused)))
    fail_msg("%s(%a, %a): %a without, %a with fma", name, a, b, plain, fused);
}
static double plain_pow(double a, double b) { return scalar64_pow(a, b); }
FUSED static double fused_pow(double a, double b) { return scalar64_pow(a, b); }
static double plain_atan2(double a, double b) { return scalar64_atan2(a, b); }
FUSED static double fused_atan2(double a, double b) { return scalar64_atan2(a, b); }

static void test_same_bits_with_and_without_fma(void **state) {
  rdna__random random;
  if (!has_fused()) return; /* the plain functions are then all that there is to run */
  rdna__random_seed(&random, 3);
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    for (int n = 0; n < 20000; n++) {
      double x = random_number(&random, n, functions[i].range);
      assert_same(functions[i].name, x, 0, functions[i].plain(x), functions[i].fused(x));
    }
  }
  for (int n = 0; n < 20000; n++) {
    double a = random_number(&random, n, 3), b = random_number(&random, n + 1, 30);
    assert_same("pow", a, b, plain_pow(a, b), fused_pow(a, b));
    assert_same("atan2", a, b, plain_atan2(a, b), fused_atan2(a, b));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_two_arguments),
      cmocka_unit_test(test_same_bits_with_and_without_fma),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
