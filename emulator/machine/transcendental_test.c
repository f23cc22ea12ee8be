// The fixed-point functions against digests of whole ranges that were recorded on gfx1100 and gfx1201 hardware and
// published with ROCm/rocm-systems (emulation/rocjitsu/tests/transcendental_test.cpp): h = (h ^ word) * 1099511628211.
#include "machine/transcendental_fixed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint64_t digest_of(uint32_t (*function)(uint32_t), uint32_t from, uint32_t to) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (uint32_t bits = from; bits < to; bits++) h = (h ^ function(bits)) * UINT64_C(1099511628211);
  return h;
}

static void test_log(void **state) {
  (void)state;
  assert_int_equal(digest_of(emu__log2_bits, 0x3f000000, 0x40000000), 0xc33a54efbae098be);
}

static void test_sqrt(void **state) {
  (void)state;
  assert_int_equal(digest_of(emu__sqrt_bits, 0x3f800000, 0x40800000), 0x514d49d31f12176b);
}

static void test_exp(void **state) {
  (void)state;
  static const uint64_t expected[2] = {0x68959bb684f42e5f, 0x88b75684494db8d3};
  for (uint32_t sign = 0; sign < 2; sign++) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (uint32_t i = 0; i < 1u << 24; i++) {
      float x = (float)i * 0x1p-24f;
      uint32_t bits;
      memcpy(&bits, &x, 4);
      h = (h ^ emu__exp2_bits(bits | sign << 31)) * UINT64_C(1099511628211);
    }
    assert_int_equal(h, expected[sign]);
  }
}

static void test_edges(void **state) {
  (void)state;
  static const uint32_t exp_cases[][2] = {{0x42ffffff, 0x7f7fffa7}, {0x43000000, 0x7f800000}, {0xc2fc0000, 0x00800000},
                                          {0xc2fc0001, 0},          {0xb3800000, 0x3f7fffff}, {0x7fa12345, 0x7fe12345}};
  static const uint32_t sqrt_cases[][2] = {{0x80000001, 0x80000000},
                                           {0xbf800000, 0xffc00000},
                                           {0x7f7fffff, 0x5f7fffff},
                                           {0x00800001, 0x20000000},
                                           {0xffa12345, 0xffe12345}};
  static const uint32_t log_cases[][2] = {{1, 0xff800000}, {0xbf800000, 0xffc00000}, {0x7f800000, 0x7f800000}};
  for (size_t i = 0; i < sizeof(exp_cases) / 8; i++) assert_int_equal(emu__exp2_bits(exp_cases[i][0]), exp_cases[i][1]);
  for (size_t i = 0; i < sizeof(sqrt_cases) / 8; i++)
    assert_int_equal(emu__sqrt_bits(sqrt_cases[i][0]), sqrt_cases[i][1]);
  for (size_t i = 0; i < sizeof(log_cases) / 8; i++) assert_int_equal(emu__log2_bits(log_cases[i][0]), log_cases[i][1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_log), cmocka_unit_test(test_sqrt),
                                     cmocka_unit_test(test_exp), cmocka_unit_test(test_edges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
