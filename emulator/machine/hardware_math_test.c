// hardware_math.h against recordings of hardware. The digests and cases were recorded on a W7900 (gfx1100) and an R9700
// (gfx1201) and published with ROCm/rocm-systems, emulation/rocjitsu/tests/transcendental_test.cpp. A digest is
// h = (h ^ result) * 1099511628211 over all inputs of a range in ascending order.
#include "machine/hardware_math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "machine/wave.h"

static const uint64_t offset_basis = UINT64_C(14695981039346656037), prime = UINT64_C(1099511628211);

#define DIGEST(function, from, to, expected)                                              \
  do {                                                                                    \
    uint64_t h = offset_basis;                                                            \
    for (uint32_t bits = from; bits < to; bits++) h = (h ^ function(bits, true)) * prime; \
    assert_int_equal(h, UINT64_C(expected));                                              \
  } while (0)

// The same of functions of 32 lanes.
typedef void lanes_f32(const uint32_t from[EMU_HALF], uint32_t to[EMU_HALF], bool quiet);
static uint64_t digest_lanes(uint64_t h, lanes_f32 *function, const uint32_t from[EMU_HALF]) {
  uint32_t to[EMU_HALF];
  function(from, to, true);
  for (int l = 0; l < EMU_HALF; l++) h = (h ^ to[l]) * prime;
  return h;
}
#define DIGEST_LANES(function, from, to, expected)                 \
  do {                                                             \
    uint64_t h = offset_basis;                                     \
    for (uint32_t bits = from; bits < to; bits += EMU_HALF) {      \
      uint32_t given[EMU_HALF];                                    \
      for (uint32_t l = 0; l < EMU_HALF; l++) given[l] = bits + l; \
      h = digest_lanes(h, function, given);                        \
    }                                                              \
    assert_int_equal(h, UINT64_C(expected));                       \
  } while (0)

static void test_complete_mantissas(void **state) {
  (void)state;
  DIGEST(emu__hw_rcp_f32, 0x3f800000, 0x40000000, 0xd54ec24992572df9);
  DIGEST(emu__hw_rsq_f32, 0x3f800000, 0x40800000, 0x010bc79eb6e48caf);
  DIGEST(emu__hw_sqrt_f32, 0x3f800000, 0x40800000, 0x514d49d31f12176b);
  DIGEST_LANES(emu__hw_rcp_lanes, 0x3f800000, 0x40000000, 0xd54ec24992572df9);
  DIGEST_LANES(emu__hw_rsq_lanes, 0x3f800000, 0x40800000, 0x010bc79eb6e48caf);
  DIGEST_LANES(emu__hw_sqrt_lanes, 0x3f800000, 0x40800000, 0x514d49d31f12176b);
  DIGEST(emu__hw_log_f32, 0x3f000000, 0x40000000, 0xc33a54efbae098be);
  static const uint64_t expected[2] = {0x68959bb684f42e5f, 0x88b75684494db8d3};
  for (uint32_t sign = 0; sign < 2; sign++) {
    uint64_t h = offset_basis;
    for (uint32_t i = 0; i < 1u << 24; i++) {
      h = (h ^ emu__hw_exp_f32(emu__bits32((float)i * 0x1p-24f) | sign << 31, true)) * prime;
    }
    assert_int_equal(h, expected[sign]);
    h = offset_basis;
    for (uint32_t i = 0; i < 1u << 24; i += EMU_HALF) {
      uint32_t given[EMU_HALF];
      for (uint32_t l = 0; l < EMU_HALF; l++) given[l] = emu__bits32((float)(i + l) * 0x1p-24f) | sign << 31;
      h = digest_lanes(h, emu__hw_exp_lanes, given);
    }
    assert_int_equal(h, expected[sign]);
  }
}

typedef uint32_t function_f32(uint32_t bits, bool quiet);

// Functions of 32 lanes beside those of one, whatever the bits: the digests above hold the mantissas of both.
static void test_lanes(void **state) {
  (void)state;
  static const struct {
    lanes_f32 *lanes;
    function_f32 *one;
  } functions[] = {{emu__hw_rcp_lanes, emu__hw_rcp_f32},
                   {emu__hw_rsq_lanes, emu__hw_rsq_f32},
                   {emu__hw_sqrt_lanes, emu__hw_sqrt_f32},
                   {emu__hw_exp_lanes, emu__hw_exp_f32}};
  uint32_t random = 3;
  for (int i = 0; i < 100000; i++) {
    uint32_t bits[EMU_HALF], to[EMU_HALF];
    for (int l = 0; l < EMU_HALF; l++) {
      random = random * 1664525 + 1013904223;
      bits[l] = random >> 8 ^ random << 24;
      if (l % 8 == 7) bits[l] &= 0x80ffffff | (random & 0x100 ? 0x7f000000 : 0);  // denormals, infinities, NaN
    }
    for (int f = 0; f < 4; f++) {
      for (int quiet = 0; quiet < 2; quiet++) {
        functions[f].lanes(bits, to, quiet);
        for (int l = 0; l < EMU_HALF; l++) assert_int_equal(to[l], functions[f].one(bits[l], quiet));
      }
    }
  }
}

// All 65,536 halves, for each of MODE's denormal settings, FP16_OVFL and treatment of signaling NaN.
static void test_complete_halves(void **state) {
  (void)state;
  // (function, kept in, kept out, FP16_OVFL, quiet); what does not depend on a bit is listed once
  static const uint64_t log_digests[2][2][2] = {
      // (kept in, FP16_OVFL, quiet)
      {{0x7ec126a2efb7cc29, 0x7b139780c1becc29}, {0xf5160d9ac46aec29, 0x3999dfce791d6c29}},
      {{0x1a7dc0df37544143, 0xab561022e31ba143}, {0x07029e1e69dff32b, 0xab21f15c2191eb2b}}};
  static const uint64_t exp_digests[2][2][2] = {
      // (kept out, FP16_OVFL, quiet)
      {{0xc64da58f553026d8, 0xa9b68cfe7b8372d8}, {0x689733bef391b6d8, 0xbdc5546b38d182d8}},
      {{0x590d5c6485394589, 0x7a49d8175530c589}, {0x610235de125ed589, 0x36d64dcb7d64d589}}};
  for (unsigned denormals = 0; denormals < 4; denormals++) {
    for (int overflow = 0; overflow < 2; overflow++) {
      for (int quiet = 0; quiet < 2; quiet++) {
        uint64_t l = offset_basis, e = offset_basis;
        for (uint32_t half = 0; half < 65536; half++) {
          l = (l ^ emu__hw_half(EMU_HW_LOG, half, denormals, overflow, quiet)) * prime;
          e = (e ^ emu__hw_half(EMU_HW_EXP, half, denormals, overflow, quiet)) * prime;
        }
        assert_int_equal(l, log_digests[denormals & 1][overflow][quiet]);
        assert_int_equal(e, exp_digests[denormals >> 1][overflow][quiet]);
      }
    }
  }
}

static uint32_t rcp(uint32_t b, bool q) { return emu__hw_rcp_f32(b, q); }
static uint32_t rsq(uint32_t b, bool q) { return emu__hw_rsq_f32(b, q); }
static uint32_t sqrt_(uint32_t b, bool q) { return emu__hw_sqrt_f32(b, q); }
static uint32_t exp_(uint32_t b, bool q) { return emu__hw_exp_f32(b, q); }
static uint32_t log_(uint32_t b, bool q) { return emu__hw_log_f32(b, q); }
static uint32_t sin_(uint32_t b, bool q) { return emu__hw_trig_f32(b, false, 3, q); }
static uint32_t cos_(uint32_t b, bool q) { return emu__hw_trig_f32(b, true, 3, q); }

// The edges: zeros, denormals, infinities, NaN, results that leave the range.
static void test_recorded_edges(void **state) {
  (void)state;
  static const struct {
    function_f32 *function;
    uint32_t input, expected;
  } cases[] = {
      {rcp, 0x00000000, 0x7f800000},   {rcp, 0x80000000, 0xff800000},   {rcp, 0x7f800000, 0x00000000},
      {rcp, 0xff800000, 0x80000000},   {rcp, 0x00800000, 0x7e800000},   {rcp, 0x80800000, 0xfe800000},
      {rcp, 0x7f000000, 0x00000000},   {rcp, 0xff000000, 0x80000000},   {rcp, 0x00000001, 0x7f800000},
      {rcp, 0x80000001, 0xff800000},   {rcp, 0x7fa12345, 0x7fe12345},   {rcp, 0xffa12345, 0xffe12345},
      {rcp, 0xbfc00000, 0xbf2aaaaa},   {rsq, 0x407fffff, 0x3f000000},   {rsq, 0x00000000, 0x7f800000},
      {rsq, 0x80000000, 0xff800000},   {rsq, 0x00000001, 0x7f800000},   {rsq, 0x80000001, 0xff800000},
      {rsq, 0xbf800000, 0xffc00000},   {rsq, 0xff800000, 0xffc00000},   {rsq, 0x7f800000, 0x00000000},
      {rsq, 0x7fa12345, 0x7fe12345},   {rsq, 0xffa12345, 0xffe12345},   {sqrt_, 0x3f7a2707, 0x3f7d0f30},
      {sqrt_, 0x00800001, 0x20000000}, {sqrt_, 0x00ffffff, 0x203504f3}, {sqrt_, 0x01000001, 0x203504f4},
      {sqrt_, 0x7e800001, 0x5f000000}, {sqrt_, 0x7f7fffff, 0x5f7fffff}, {sqrt_, 0x00000000, 0x00000000},
      {sqrt_, 0x80000000, 0x80000000}, {sqrt_, 0x00000001, 0x00000000}, {sqrt_, 0x80000001, 0x80000000},
      {sqrt_, 0xbf800000, 0xffc00000}, {sqrt_, 0xff800000, 0xffc00000}, {sqrt_, 0x7f800000, 0x7f800000},
      {sqrt_, 0x7fa12345, 0x7fe12345}, {sqrt_, 0xffa12345, 0xffe12345}, {exp_, 0x337fffff, 0x3f800000},
      {exp_, 0x33800001, 0x3f800000},  {exp_, 0xb37fffff, 0x3f800000},  {exp_, 0xb3800000, 0x3f7fffff},
      {exp_, 0x42ffffff, 0x7f7fffa7},  {exp_, 0x43000000, 0x7f800000},  {exp_, 0xc2fc0000, 0x00800000},
      {exp_, 0xc2fc0001, 0x00000000},  {exp_, 0xc114ed44, 0x3acecc1e},  {exp_, 0x7f800000, 0x7f800000},
      {exp_, 0xff800000, 0x00000000},  {log_, 0x00000000, 0xff800000},  {log_, 0xbf800000, 0xffc00000},
      {log_, 0x7f800000, 0x7f800000},  {log_, 0x3f800000, 0x00000000},  {log_, 0x40800000, 0x40000000},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    assert_int_equal(cases[i].function(cases[i].input, true), cases[i].expected);
  }
  assert_int_equal(emu__hw_sqrt_f32(0x7fa12345, false), 0x7fa12345);  // without MODE.IEEE a signaling NaN passes
}

static void test_recorded_angles(void **state) {
  (void)state;
  static const uint32_t cases[][3] = {
      // (turns, sine, cosine)
      {0x00000000, 0x00000000, 0x3f800000}, {0x80000000, 0x80000000, 0x3f800000}, {0x00000001, 0x00000006, 0x3f800000},
      {0x80000001, 0x80000006, 0x3f800000}, {0x007fffff, 0x01c90fd3, 0x3f800000}, {0x00800000, 0x01c90fd5, 0x3f800000},
      {0x39bfffff, 0x3b16cbdf, 0x3f7fffd3}, {0x39c00000, 0x3b16cbdf, 0x3f7fffd3}, {0x39ffffff, 0x3b490fbe, 0x3f7fffb1},
      {0x3a000000, 0x3b490fcb, 0x3f7fffb1}, {0x3e000000, 0x3f3504f4, 0x3f3504f3}, {0x3e7fffff, 0x3f800000, 0x33c90fd9},
      {0x3e800000, 0x3f800000, 0x00000000}, {0x3f000000, 0x00000000, 0xbf800000}, {0x3f800000, 0x00000000, 0x3f800000},
      {0x7f7fffff, 0x00000000, 0x3f800000}, {0xff7fffff, 0x00000000, 0x3f800000}, {0x7f800000, 0xffc00000, 0xffc00000},
      {0xff800000, 0xffc00000, 0xffc00000}, {0x3aab9885, 0x3c06c500, 0x3f7ffdc8}, {0x3b8419b1, 0x3ccf7b0d, 0x3f7feaf9},
      {0x3bcf188b, 0x3d229c2d, 0x3f7fcc55}, {0x3c98be2d, 0x3def6125, 0x3f7e3ec8}, {0x3d2001fb, 0x3e78d2d0, 0x3f7853c7},
      {0x3d6002f3, 0x3eac7f01, 0x3f7108a3}, {0x3dc084ad, 0x3f0e9072, 0x3f54a13b}, {0x3df0010d, 0x3f2bebe5, 0x3f3dae6b},
      {0x3e7f2800, 0x3f7fff1f, 0x3ba9a533}, {0x3e7ff600, 0x3f7fffff, 0x397b53d7}, {0x3e7fff08, 0x3f800000, 0x37c2c761},
      {0x3e7ffff1, 0x3f800000, 0x35bc7ee2}, {0x3e7ffa50, 0x3f800000, 0x390ef149}, {0x3efffd28, 0x390ef149, 0xbf800000},
      {0x3f3ffe94, 0xbf800000, 0xb90ef149}, {0x3f7ffe94, 0xb90ef149, 0x3f800000},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    assert_int_equal(emu__hw_trig_f32(cases[i][0], false, 3, true), cases[i][1]);
    assert_int_equal(emu__hw_trig_f32(cases[i][0], true, 3, true), cases[i][2]);
  }
}

// Every exponent: what the digests leave open. The distance from the exact value, in units of the last place.
static double distance(uint32_t bits, double exact) {
  int e;
  (void)frexp(exact, &e);
  return fabs((double)emu__f32(bits) - exact) / ldexp(1, e - 24);
}
static double f_rcp(double a) { return 1 / a; }
static double f_rsq(double a) { return 1 / sqrt(a); }

static void test_all_exponents(void **state) {
  (void)state;
  static const struct {
    function_f32 *function;
    double (*exact)(double);
  } functions[] = {{rcp, f_rcp}, {rsq, f_rsq}, {sqrt_, sqrt}, {exp_, exp2}, {log_, log2}};
  uint32_t random = 1;
  double worst[5] = {0};
  for (int i = 0; i < 2000000; i++) {
    random = random * 1664525 + 1013904223;
    uint32_t bits = random & 0x7fffffff;
    if (bits < 0x800000 || bits >= 0x7f800000) continue;
    for (int f = 0; f < 5; f++) {
      double exact = functions[f].exact((double)emu__f32(bits));
      if (fabs(exact) < 0x1p-126 || fabs(exact) >= 0x1p128) continue;
      double d = distance(functions[f].function(bits, true), exact);
      if (d > worst[f]) worst[f] = d;
      if (f == 0) assert_int_equal(rcp(bits | 0x80000000, true), rcp(bits, true) | 0x80000000);
    }
  }
  for (int f = 0; f < 5; f++) assert_true(worst[f] > 0.5 && worst[f] <= 1.0);
}

// Symmetries that hold exactly, and closeness everywhere.
static void test_angles(void **state) {
  (void)state;
  const double tau = 6.283185307179586476925;
  uint32_t random = 7;
  for (int i = 0; i < 1000000; i++) {
    random = random * 1664525 + 1013904223;
    float turns = (float)((random >> 8) & 0xffffff) * (random & 64 ? 0x1p-24f : 0x1p-20f);
    uint32_t bits = emu__bits32(turns), s = sin_(bits, true), c = cos_(bits, true);
    double part = (double)turns - floor((double)turns);
    assert_true(fabs((double)emu__f32(s) - sin(part * tau)) < 0x1p-22);
    assert_true(fabs((double)emu__f32(c) - cos(part * tau)) < 0x1p-22);
    assert_int_equal(cos_(bits | 0x80000000, true), c);
    assert_int_equal(sin_(bits | 0x80000000, true), s & 0x7fffffff ? s ^ 0x80000000 : s);
  }
  assert_int_equal(emu__hw_trig_f32(0x00000001, false, 0, true), 0);
  assert_int_equal(emu__hw_trig_f32(0x80000001, false, 2, true), 0x80000000);
  assert_int_equal(emu__hw_trig_f32(0x00000001, false, 1, true), 0);
}

// Halves through the F32 functions: the exact value lies within half a unit, but for what F32 has already lost.
static double half_value(uint32_t half) {
  uint32_t field = half >> 10 & 31, low = half & 0x3ff;
  return ldexp(field ? low | 0x400 : low, (int)(field ? field : 1) - 25) * (half & 0x8000 ? -1 : 1);
}
static void test_halves(void **state) {
  (void)state;
  static const struct {
    enum emu_hw_half function;
    double (*exact)(double);
  } functions[] = {{EMU_HW_RCP, f_rcp}, {EMU_HW_RSQ, f_rsq}, {EMU_HW_SQRT, sqrt}};
  for (uint32_t half = 1; half < 0x7c00; half++) {
    for (int f = 0; f < 3; f++) {
      double exact = functions[f].exact(half_value(half));
      uint32_t r = emu__hw_half(functions[f].function, half, 3, false, true);
      if (exact >= 65520) {
        assert_int_equal(r, 0x7c00);
        assert_int_equal(emu__hw_half(functions[f].function, half, 3, true, true), 0x7bff);
        continue;
      }
      int e;
      (void)frexp(exact, &e);
      assert_true(fabs(half_value(r) - exact) <= 0.5002 * ldexp(1, (e < -13 ? -13 : e) - 11));
      if (!(r & 0x7c00)) assert_int_equal(emu__hw_half(functions[f].function, half, 1, false, true), 0);
    }
  }
  assert_int_equal(emu__hw_half(EMU_HW_RCP, 0x8000, 3, false, true), 0xfc00);
  assert_int_equal(emu__hw_half(EMU_HW_RCP, 0x8001, 0, false, true), 0xfc00);
  assert_int_equal(emu__hw_half(EMU_HW_RCP, 0x0000, 3, true, true), 0x7bff);
  assert_int_equal(emu__hw_half(EMU_HW_SQRT, 0xbc00, 3, false, true), 0xfe00);
  assert_int_equal(emu__hw_half(EMU_HW_RSQ, 0x7d01, 3, false, true), 0x7f01);
  assert_int_equal(emu__hw_half(EMU_HW_SIN, 0x3400, 3, false, true), 0x3c00);  // a quarter turn
  assert_int_equal(emu__hw_half(EMU_HW_COS, 0x3800, 3, false, true), 0xbc00);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_complete_mantissas),
      cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_complete_halves),
      cmocka_unit_test(test_recorded_edges),
      cmocka_unit_test(test_recorded_angles),
      cmocka_unit_test(test_all_exponents),
      cmocka_unit_test(test_angles),
      cmocka_unit_test(test_halves),
  };
  return cmocka_run_group_tests_name("hardware_math", tests, NULL, NULL);
}
