/* The 16-bit conversions of host.h (their portable form: this file is compiled without F16C) against the
 * definition of the formats, over every 16-bit value and the floats around each of them. */
#define RDNA_ISA test
#include "kernel/host.h"

#include <math.h>

#include "base/testing.h"

/* IEEE 754-2019, 3.4: sign, |exponent_bits|, the rest fraction. */
static double decode(uint16_t v, int exponent_bits) {
  int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = v >> fraction_bits & ((1 << exponent_bits) - 1), fraction = v & ((1 << fraction_bits) - 1);
  double magnitude;
  if (exponent == (1 << exponent_bits) - 1)
    magnitude = fraction ? (double)NAN : (double)INFINITY;
  else if (exponent == 0)
    magnitude = ldexp(fraction, 1 - bias - fraction_bits);
  else
    magnitude = ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  return v & 0x8000 ? -magnitude : magnitude;
}

static void check_widening(float (*widen)(uint16_t), int exponent_bits) {
  for (int v = 0; v < 65536; v++) {
    double want = decode((uint16_t)v, exponent_bits), got = (double)widen((uint16_t)v);
    if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
      fail_msg("0x%04x widens to %g, not %g", v, got, want);
  }
}

/* Every float between two neighbours of the format that is a neighbour, their middle, or next to one of these. */
static void check_narrowing(uint16_t (*narrow)(float), int exponent_bits) {
  uint16_t infinity = (uint16_t)(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  for (uint16_t low = 0; low < infinity; low++) {
    double a = decode(low, exponent_bits), b = decode((uint16_t)(low + 1), exponent_bits);
    if (isinf(b)) b = 2 * ldexp(1, (1 << (exponent_bits - 1)) - 1); /* where the next value would be */
    float middle = (float)((a + b) / 2);                            /* exact: one bit more than the format has */
    float points[] = {
        (float)a, nextafterf((float)a, INFINITY), nextafterf(middle, 0),
        middle,   nextafterf(middle, INFINITY),   isinf((float)b) ? 0x1.fffffep127f : nextafterf((float)b, 0)};
    uint16_t even = (uint16_t)(low & 1 ? low + 1 : low);
    uint16_t want[] = {low, low, low, even, (uint16_t)(low + 1), (uint16_t)(low + 1)};
    for (int i = 0; i < 6; i++) {
      uint16_t got = narrow(points[i]), negative = narrow(-points[i]);
      if (got != want[i] || negative != (want[i] | 0x8000))
        fail_msg("%a narrows to 0x%04x and 0x%04x, not 0x%04x", (double)points[i], got, negative, want[i]);
    }
  }
  assert_int_equal(narrow(INFINITY), infinity);
  assert_int_equal(narrow(-INFINITY), infinity | 0x8000);
  for (uint32_t payload = 1; payload < 0x800000; payload += payload < 64 ? 1 : 4099)
    assert_true(isnan(decode(narrow(scalar_from_bits(0x7f800000u | payload)), exponent_bits)));
}

static void test_f16(void **state) {
  check_widening(f16_to_f32, 5);
  check_narrowing(f32_to_f16, 5);
  assert_int_equal(f32_to_f16(0x1p-149f), 0);
  assert_int_equal(f32_to_f16(0x1.fffffep127f), 0x7c00);
}

static void test_bf16(void **state) {
  check_widening(bf16_to_f32, 8);
  check_narrowing(f32_to_bf16, 8);
}

static void test_dot4(void **state) {
  assert_int_equal(dot4_i8((int32_t)0x80808080, (int32_t)0x80808080, 5), 4 * 128 * 128 + 5);
  assert_int_equal(dot4_i8(0x01ff7f80, 0x02030405, 0), 1 * 2 - 1 * 3 + 127 * 4 - 128 * 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_f16),
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_dot4),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
