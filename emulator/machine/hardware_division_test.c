// The division instructions: V_DIV_FMAS against the host's FMA in every rounding mode, and the sequences that clang
// emits for a / b against the host's quotient, with denormals and everything else that floats hold.
#include "machine/hardware_division.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "machine/hardware_math.h"
#include "machine/wave.h"

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

// Anything, and often an edge: near the ends of the exponents, few bits.
static uint64_t random_single(void) {
  uint64_t r = random_bits(), pick = random_bits() % 8;
  if (pick == 0) return r & 0x807fffff;
  if (pick == 1) return (r & 0x807fffff) | (r >> 32) % 3 << 23;
  if (pick == 2) return (r & 0x807fffff) | (252 + (r >> 32) % 3) << 23;
  if (pick == 3) return (r & 0xff800000) | (r & 3);
  return r & 0xffffffff;
}
static uint64_t random_double(void) {
  uint64_t r = random_bits(), pick = random_bits() % 8, low = r & 0x800fffffffffffff, other = random_bits();
  if (pick == 0) return low;
  if (pick == 1) return low | other % 3 << 52;
  if (pick == 2) return low | (2044 + other % 3) << 52;
  if (pick == 3) return (r & 0xfff0000000000000) | (r & 3);
  return r;
}

static const int directions[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { KEEP = EMU_HW_KEEP_IN | EMU_HW_KEEP_OUT };

// Calls through these stay between the changes of the rounding mode.
static float (*volatile call_fmaf)(float, float, float) = fmaf;
static double (*volatile call_fma)(double, double, double) = fma;

#define CHECK_FMAS(bits_of, value_of, format, function, random)                 \
  do {                                                                          \
    uint64_t a = random(), b = random(), c = random();                          \
    for (unsigned m = 0; m < 4; m++) {                                          \
      fesetround(directions[m]);                                                \
      uint64_t want = bits_of(function(value_of(a), value_of(b), value_of(c))); \
      fesetround(FE_TONEAREST);                                                 \
      uint64_t got = emu__hw_div_fmas(&format, a, b, c, false, m | KEEP);       \
      if (value_of(want) == value_of(want)) {                                   \
        assert_int_equal(got, want);                                            \
      } else {                                                                  \
        assert_true(value_of(got) != value_of(got));                            \
      }                                                                         \
    }                                                                           \
  } while (0)

static void test_fmas(void **state) {
  (void)state;
  for (int i = 0; i < 300000; i++) {
    CHECK_FMAS(emu__bits32, emu__f32, emu__hw_single_format, call_fmaf, random_single);
    CHECK_FMAS(emu__bits64, emu__f64, emu__hw_double_format, call_fma, random_double);
  }
}

// Scaled and rounded once, also where the result is denormal: in double the product and this sum are exact.
static void test_fmas_after(void **state) {
  (void)state;
  for (int i = 0; i < 300000; i++) {
    uint64_t r = random_bits(), c_field = i & 1 ? 60 + r % 20 : 180 + r % 20;
    uint64_t c = (random_bits() & 0x807fffff) | c_field << 23;
    uint64_t a = (random_bits() & 0x80780000) | 110 << 23,
             b = (random_bits() & 0x80780000) | (c_field - (r >> 32) % 4 + 17) << 23;
    double exact = (double)emu__f32(a) * (double)emu__f32(b) + (double)emu__f32(c);
    float want = (float)ldexp(exact, i & 1 ? -64 : 64);
    assert_int_equal(emu__hw_div_fmas(&emu__hw_single_format, a, b, c, true, KEEP), emu__bits32(want));
    uint64_t flushed = emu__hw_div_fmas(&emu__hw_single_format, a, b, c, true, EMU_HW_KEEP_IN);
    assert_int_equal(flushed, fabsf(want) < 0x1p-126f ? emu__bits32(want) & 0x80000000 : emu__bits32(want));
  }
}

// clang's sequence for a correctly rounded n / d.
static uint64_t quotient32(uint64_t n, uint64_t d) {
  const struct emu_hw_format *f = &emu__hw_single_format;
  bool after, ignored;
  float sd = emu__f32(emu__hw_div_scale(f, d, d, n, KEEP, &ignored)),
        sn = emu__f32(emu__hw_div_scale(f, n, d, n, KEEP, &after));
  float r = emu__f32(emu__hw_rcp_f32((uint32_t)emu__bits32(sd), true));
  r = fmaf(fmaf(-sd, r, 1), r, r);
  float q = sn * r;
  q = fmaf(fmaf(-sd, q, sn), r, q);
  uint64_t last = emu__hw_div_fmas(f, emu__bits32(fmaf(-sd, q, sn)), emu__bits32(r), emu__bits32(q), after, KEEP);
  return emu__hw_div_fixup(f, last, d, n, KEEP);
}
static uint64_t quotient64(uint64_t n, uint64_t d) {
  const struct emu_hw_format *f = &emu__hw_double_format;
  bool after, ignored;
  double sd = emu__f64(emu__hw_div_scale(f, d, d, n, KEEP, &ignored)),
         sn = emu__f64(emu__hw_div_scale(f, n, d, n, KEEP, &after));
  double r = emu__f64(emu__bits64(1 / sd) & ~UINT64_C(0xfffffff));  // a seed of few digits, as V_RCP_F64 is
  r = fma(fma(-sd, r, 1), r, r);
  r = fma(fma(-sd, r, 1), r, r);
  double q = sn * r;
  uint64_t last = emu__hw_div_fmas(f, emu__bits64(fma(-sd, q, sn)), emu__bits64(r), emu__bits64(q), after, KEEP);
  return emu__hw_div_fixup(f, last, d, n, KEEP);
}

static void test_quotients(void **state) {
  (void)state;
  for (int i = 0; i < 1000000; i++) {
    uint64_t n = random_single(), d = random_single(), want = emu__bits32(emu__f32(n) / emu__f32(d)),
             got = quotient32(n, d);
    if (emu__f32(want) == emu__f32(want))
      assert_int_equal(got, want);
    else
      assert_true(emu__f32(got) != emu__f32(got));
    n = random_double(), d = random_double(), want = emu__bits64(emu__f64(n) / emu__f64(d)), got = quotient64(n, d);
    if (emu__f64(want) == emu__f64(want))
      assert_int_equal(got, want);
    else
      assert_true(emu__f64(got) != emu__f64(got));
  }
}

// What the quotients do not show.
static void test_edges(void **state) {
  (void)state;
  const struct emu_hw_format *f = &emu__hw_single_format, *h = &emu__hw_half_format;
  bool after;
  // 1 / 2^100: far apart, the denominator is left, the numerator takes 2^64
  assert_int_equal(emu__hw_div_scale(f, 0x3f800000, 0x71800000, 0x3f800000, KEEP, &after), 0x5f800000);
  assert_true(after);
  assert_int_equal(emu__hw_div_scale(f, 0x71800000, 0x71800000, 0x3f800000, KEEP, &after), 0x71800000);
  // and 2^100 / 1: the denominator takes it
  assert_int_equal(emu__hw_div_scale(f, 0x3f800000, 0x3f800000, 0x71800000, KEEP, &after), 0x5f800000);
  assert_true(after);
  // 2^8 / 1 is left alone
  assert_int_equal(emu__hw_div_scale(f, 0x43800000, 0x43800000, 0x3f800000, KEEP, &after), 0x43800000);
  assert_false(after);
  assert_int_equal(emu__hw_div_scale(f, 0x3f800000, 0, 0x3f800000, KEEP, &after), 0xffc00000);
  assert_int_equal(emu__hw_div_scale(f, 1, 1, 0x3f800000, EMU_HW_KEEP_OUT, &after), 0xffc00000);  // flushed to zero
  assert_int_equal(emu__hw_div_scale(f, 0x7fa00000, 0x3f800000, 0x7fa00000, KEEP, &after), 0x7fe00000);
  assert_int_equal(emu__hw_div_fixup(f, 0x3f800000, 0x80000000, 0x3f800000, KEEP), 0xff800000);
  assert_int_equal(emu__hw_div_fixup(f, 0x3f800000, 0, 0x80000000, KEEP), 0xffc00000);
  assert_int_equal(emu__hw_div_fixup(f, 0x3f800000, 0x3f800000, 0x7fa00001, KEEP), 0x7fe00001);
  assert_int_equal(emu__hw_div_fixup(f, 0x7fc00000, 0x3f800000, 0xbf800000, KEEP | 1), 0xff7fffff);  // upward
  assert_int_equal(emu__hw_div_fixup(f, 0, 0x7f000000, 0x00800000, KEEP | 1), 1);
  assert_int_equal(emu__hw_div_fixup(f, 0, 0x7f000000, 0x00800000, KEEP), 0);
  assert_int_equal(emu__hw_div_fixup(h, 0x3c00, 0xc000, 0x4000, KEEP), 0xbc00);
  assert_int_equal(emu__hw_div_fixup(h, 0x3c00, 0x0001, 0x4000, 0), 0x7c00);
  assert_int_equal(emu__hw_div_fixup(h, 0x3c00, 0x7c00, 0x7c00, KEEP), 0xfe00);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fmas),
      cmocka_unit_test(test_fmas_after),
      cmocka_unit_test(test_quotients),
      cmocka_unit_test(test_edges),
  };
  return cmocka_run_group_tests_name("hardware_division", tests, NULL, NULL);
}
