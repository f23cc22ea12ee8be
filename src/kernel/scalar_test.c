/* Every function of scalar.h against the double-precision C library, which is far more exact than a float, over a
 * dense stride of all floats; scalar_test --all takes every one of the 2^32 and some minutes a function. The bound
 * is in units of the last place of the result (of the smallest normal for subnormal results), plus an absolute part
 * where cancellation makes a relative one meaningless.
 *
 * The same functions are compiled with and without the fused multiply-add instruction and must give the same bits:
 * that is what kernels and host twins rely on. */
#include "kernel/scalar.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/testing.h"
#include "kernel/testing_fused.h"

#define FUNCTIONS(X)                                                                         \
  X(exp, exp(x), 1.1, 0)                                                                     \
  X(exp2, exp2(x), 1.1, 0)                                                                   \
  X(expm1, expm1(x), 1.6, 0)                                                                 \
  X(log, log(x), 1.1, 0)                                                                     \
  X(log2, log2(x), 1.6, 0)                                                                   \
  X(log1p, log1p(x), 1.6, 0)                                                                 \
  X(sin, sin(x), 2, 0)                                                                       \
  X(cos, cos(x), 2, 0)                                                                       \
  X(tanh, tanh(x), 1.6, 0)                                                                   \
  X(erf, erf(x), 1.6, 0)                                                                     \
  X(sigmoid, 1 / (1 + exp(-x)), 2.6, 0)                                                      \
  X(silu, x / (1 + exp(-x)), 4, 0x1p-143) /* x times a subnormal */                          \
  X(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)), 2.1, 0)                            \
  X(gelu, x * 0.5 * erfc(-x * 0.70710678118654752440), 3.1, 0x1.8p-24) /* 1 + erf cancels */ \
  X(gelu_tanh, 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))), 3.1, 0x1p-22)

#define WRAP(name, reference, ulps, absolute)                           \
  static float plain_##name(float x) { return scalar_##name(x); }       \
  FUSED static float fused_##name(float x) { return scalar_##name(x); } \
  static double reference_##name(double x) { return reference; }        \
  static double ulps_##name(double x) { return ulps; }
FUNCTIONS(WRAP)

typedef struct tested {
  const char *name;
  float (*plain)(float);
  float (*fused)(float);
  double (*reference)(double);
  double (*ulps)(double);
  double absolute;
} tested;

#define ROW(name, reference, ulps, absolute) \
  {#name, plain_##name, fused_##name, reference_##name, ulps_##name, absolute},
static const tested functions[] = {FUNCTIONS(ROW)};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

/* Error over its bound. */
static double judge(const tested *t, float x, float got) {
  double want = t->reference(x);
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isnan(got)) return INFINITY;
  if (fabs(want) >= 0x1.ffffffp127) return got == (float)want || fabsf(got) == 0x1.fffffep127f ? 0 : INFINITY;
  if (isinf(got)) return fabs(want) > 0x1.fffffcp127 ? 0 : INFINITY;
  int exponent;
  frexp(want, &exponent);
  double ulp = ldexp(1, (want == 0 || exponent < -125 ? -125 : exponent) - 24);
  return fabs(got - want) / (t->ulps(x) * ulp + t->absolute);
}

/* Takes every |stride|th float; returns the largest error over its bound. */
static double sweep(const tested *t, uint32_t stride, float *out_where) {
  float (*function)(float) = has_fused() ? t->fused : t->plain;
  double worst = 0;
  for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += stride) {
    float x = scalar_from_bits((uint32_t)bits);
    double error = judge(t, x, function(x));
    if (error <= worst) continue;
    worst = error;
    *out_where = x;
  }
  return worst;
}

static void test_errors(void **state) {
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    float where = 0;
    double worst = sweep(&functions[i], 1021, &where);
    if (worst > 1) fail_msg("%s(%a): %.3f times the bound", functions[i].name, (double)where, worst);
  }
}

/* What is exact, and the neighbourhoods of what is special. */
static void test_edges(void **state) {
  static const float starts[] = {
      0,        1,     -1,     INFINITY, 0x1p-126f,     0x1.62e43p6f,  -0x1.9fe368p6f, 0x1p20f,
      -0x1p20f, 0.6f,  0.925f, 3.95f,    0x1.921fb6p0f, 0x1.921fb6p1f, 0x1.6a09e6p-1f, 0x1.6a09e6p0f,
      -5.5f,    20.0f, 128.0f, -149.0f};
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    const tested *t = &functions[i];
    for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
      for (int step = -2000; step <= 2000; step++) {
        float x = scalar_from_bits(scalar_bits(starts[s]) + (uint32_t)step);
        double error = judge(t, x, t->plain(x));
        if (error > 1) fail_msg("%s(%a): %.3f times the bound", t->name, (double)x, error);
      }
    }
  }
  assert_true(scalar_exp(0) == 1 && scalar_exp2(0) == 1 && scalar_exp2(-149) == 0x1p-149f && scalar_log(1) == 0);
  assert_true(scalar_exp2(10) == 1024 && scalar_log2(0x1p-149f) == -149 && scalar_cos(0) == 1);
  assert_true(signbit(scalar_sin(-0.0f)) && signbit(scalar_tanh(-0.0f)) && signbit(scalar_erf(-0.0f)));
  assert_true(signbit(scalar_expm1(-0.0f)) && signbit(scalar_log1p(-0.0f)));
  assert_true(scalar_tanh(INFINITY) == 1 && scalar_tanh(-INFINITY) == -1 && scalar_erf(-INFINITY) == -1);
  assert_true(scalar_sigmoid(-INFINITY) == 0 && scalar_sigmoid(INFINITY) == 1 && scalar_softplus(INFINITY) == INFINITY);
  assert_true(isnan(scalar_max(NAN, 1)) && isnan(scalar_max(1, NAN)) && scalar_max(1, 2) == 2 && scalar_min(1, 2) == 1);
}

/* Rotary embeddings ask for positions up to a million, which are whole numbers. */
static void test_whole_angles(void **state) {
  for (int i = 0; i <= 1100000; i++) {
    float s, c;
    scalar_sincos((float)i, &s, &c);
    if (fabs(s - sin(i)) > 0x1.4p-24 || fabs(c - cos(i)) > 0x1.4p-24) fail_msg("sincos(%d) is %a, %a", i, s, c);
  }
}

static void test_same_bits_with_and_without_fma(void **state) {
  if (!has_fused()) return; /* the plain functions are then all that there is to run */
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 65521) {
      float x = scalar_from_bits((uint32_t)bits), plain = functions[i].plain(x), fused = functions[i].fused(x);
      if (scalar_bits(plain) != scalar_bits(fused) && !(isnan(plain) && isnan(fused)))
        fail_msg("%s(%a): %a without, %a with fma", functions[i].name, (double)x, (double)plain, (double)fused);
    }
  }
}

static int sweep_all(const char *name, uint32_t stride) {
  int failed = 0;
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    if (name && strcmp(name, functions[i].name)) continue;
    float where = 0;
    double worst = sweep(&functions[i], stride, &where);
    printf("%-10s %.4f of the bound, at %a (bound %.2f ulp)\n", functions[i].name, worst, (double)where,
           functions[i].ulps(where));
    fflush(stdout);
    failed |= worst > 1;
  }
  return failed;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--all"))
    return sweep_all(argc > 2 ? argv[2] : NULL, argc > 3 ? (uint32_t)atoi(argv[3]) : 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_whole_angles),
      cmocka_unit_test(test_same_bits_with_and_without_fma),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
