#include "rdna/op/cast.h"
#include "math/common/test/float8.h"
#include "math/common/test/operand.h"

/* Returns the nearest value of the type, ties to even: divides |x| by the type's step there, rounds, multiplies again.
 */
static double nearest(rdna_dtype dtype, double x) {
  int bits = dtype == RDNA_F32 ? 23 : dtype == RDNA_F16 ? 10 : 7, lowest = dtype == RDNA_F16 ? -14 : -126;
  if (dtype == RDNA_I32 || x == 0 || isnan(x) || isinf(x)) return x;
  int exponent = ilogb(x) > lowest ? ilogb(x) : lowest;
  double rounded = ldexp(rint(ldexp(x, bits - exponent)), exponent - bits);
  return fabs(rounded) > largest_finite(dtype) ? copysign((double)INFINITY, x) : rounded;
}

static void assert_cast(operand *x, rdna_dtype to, int64_t offset) {
  operand out = operand_make(to, 1, x->tensor.shape, NULL, offset);
  operand_upload(x);
  operand_upload(&out);
  assert_ok(rdna_op_cast(stream, &x->tensor, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < operand_span(x); i++) {
    double in = operand_get(x, i), got = operand_get(&out, i), want = nearest(to, in);
    if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want)) {
      fail_msg("%s to %s of %a: got %a, want %a", rdna_dtype_name(x->tensor.dtype), rdna_dtype_name(to), in, got, want);
    }
  }
  operand_free(&out);
}

static void every_16_bit_value_casts(void **state) {
  static const rdna_dtype to[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  const int64_t shape[] = {65536};
  for (int from = RDNA_F16; from <= RDNA_BF16; from++) {
    operand x = operand_make((rdna_dtype)from, 1, shape, NULL, 0);
    for (int64_t i = 0; i < 65536; i++) ((uint16_t *)(void *)x.host)[i] = (uint16_t)i;
    for (int k = 0; k < 3; k++) assert_cast(&x, to[k], k);
    operand_free(&x);
  }
}

static uint32_t hard_bits(int64_t i) {
  uint32_t bits = (uint32_t)rdna__random_bits(&random_state);
  if (i % 4 == 1) bits = (bits & 0xffffe000u) + 0x0fff + (uint32_t)rdna__random_below(&random_state, 3); /* f16 ties */
  if (i % 4 == 2) bits = (bits & 0xffff0000u) + 0x7fff + (uint32_t)rdna__random_below(&random_state, 3); /* bf16 ties */
  if (i % 2 == 1) bits = (bits & 0x807fffffu) | (uint32_t)rdna__random_range(&random_state, 100, 145) << 23;
  return bits;
}

static void f32_rounds_to_nearest_even(void **state) {
  static const uint32_t edges[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff,
                                   0x477fefff, 0x477ff000, 0x477fe000, 0x7f7f8000, 0x7f7f7fff, 0x7f7fffff, 0x33000000,
                                   0x33000001, 0x32ffffff, 0x33800000, 0x387fc000, 0x387fe000, 0x387ff000, 0x00000001,
                                   0x00008000, 0x00008001, 0x00018000, 0x007fffff, 0x00800000};
  for (int n = 0; n < 12; n++) {
    const int64_t shape[] = {n == 0 ? 40000 : rdna__random_range(&random_state, 1, 9000)};
    operand x = operand_make(RDNA_F32, 1, shape, NULL, n % 2);
    uint32_t *bits = (uint32_t *)(void *)x.host;
    for (int64_t i = 0; i < shape[0]; i++) bits[i] = hard_bits(i);
    for (int64_t i = 0; i < shape[0] && i < (int64_t)(sizeof edges / sizeof *edges); i++) bits[i] = edges[i];
    assert_cast(&x, RDNA_F16, n % 3);
    assert_cast(&x, RDNA_BF16, n % 3);
    assert_cast(&x, RDNA_F32, n % 3);
    operand_free(&x);
  }
}

static void i32_rounds_to_nearest_even(void **state) {
  static const int32_t edges[] = {0, 1, -1, INT32_MAX, INT32_MIN, 16777216, 16777217, 16777219, -16777217, 33554434};
  const int64_t shape[] = {5003};
  operand x = operand_make(RDNA_I32, 1, shape, NULL, 0);
  int32_t *values = (int32_t *)(void *)x.host;
  for (int64_t i = 0; i < shape[0]; i++) {
    values[i] = (int32_t)rdna__random_bits(&random_state) >> rdna__random_below(&random_state, 31);
  }
  memcpy(values, edges, sizeof edges);
  assert_cast(&x, RDNA_F32, 0);
  assert_cast(&x, RDNA_I32, 0);
  operand_free(&x);
}

static void casts_of_one_size_work_in_place(void **state) {
  static const rdna_dtype pairs[][2] = {{RDNA_F16, RDNA_BF16}, {RDNA_BF16, RDNA_F16}, {RDNA_I32, RDNA_F32}};
  const int64_t shape[] = {9001};
  for (int k = 0; k < 3; k++) {
    operand x = operand_make(pairs[k][0], 1, shape, NULL, 0);
    double *want = malloc((size_t)shape[0] * sizeof *want);
    for (int64_t i = 0; i < shape[0]; i++) {
      operand_set(&x, i, 100 * rdna__random_normal(&random_state));
      want[i] = nearest(pairs[k][1], operand_get(&x, i));
    }
    operand_upload(&x);
    rdna_tensor from = x.tensor;
    x.tensor.dtype = pairs[k][1];
    assert_ok(rdna_op_cast(stream, &from, &x.tensor));
    operand_download(&x);
    for (int64_t i = 0; i < shape[0]; i++) assert_true(operand_get(&x, i) == want[i]);
    free(want);
    operand_free(&x);
  }
}

/* Returns the code of the nearest value, ties to the even code. Beyond the largest value it rounds as if the next step
 * were a value too, which is infinity, NaN or, |saturating|, the largest. */
static int float8_nearest(rdna_dtype type, double v, bool saturating) {
  bool odd_zero = type == RDNA_F8_E4M3FNUZ || type == RDNA_F8_E5M2FNUZ;
  int largest = type == RDNA_F8_E4M3FN ? 126 : type == RDNA_F8_E5M2 ? 123 : 127, sign = signbit(v) ? 128 : 0;
  if (isnan(v)) return odd_zero ? 128 : -1; /* -1: any NaN; hardware's conversions drop its sign */
  double size = fabs(v), top = float8_value(type, largest), step = top - float8_value(type, largest - 1);
  bool beyond = size > top + step / 2 || (size == top + step / 2 && largest % 2 == 1);
  if (saturating && size > top) return largest + sign;
  if (beyond) return odd_zero ? 128 : type == RDNA_F8_E5M2 ? 124 + sign : 127 + sign;
  int low = 0, high = largest;
  while (low < high) { /* the last value that is not larger */
    int middle = (low + high + 1) / 2;
    if (float8_value(type, middle) <= size)
      low = middle;
    else
      high = middle - 1;
  }
  if (low < largest) {
    double down = size - float8_value(type, low), up = float8_value(type, low + 1) - size;
    if (up < down || (up == down && low % 2 == 1)) low++;
  }
  return low == 0 && odd_zero ? 0 : low + sign;
}

static void assert_to_float8(operand *x, rdna_dtype to, bool saturating) {
  operand out = operand_make(to, 1, x->tensor.shape, NULL, 0);
  operand_upload(x);
  operand_upload(&out);
  assert_ok(saturating ? rdna_op_cast_saturating(stream, &x->tensor, &out.tensor)
                       : rdna_op_cast(stream, &x->tensor, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < operand_span(x); i++) {
    double in = operand_get(x, i);
    int want = float8_nearest(to, in, saturating), got = out.host[i];
    if (want == -1 ? !isnan(float8_value(to, got)) : got != want)
      fail_msg("%s to %s of %a: got 0x%02x, want 0x%02x", rdna_dtype_name(x->tensor.dtype), rdna_dtype_name(to), in,
               (unsigned)got, (unsigned)want);
  }
  operand_free(&out);
}

static void every_8_bit_float_casts(void **state) {
  static const rdna_dtype others[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  const int64_t shape[] = {256 + 37};
  for (int type = RDNA_F8_E4M3FN; type <= RDNA_F8_E5M2FNUZ; type++) {
    operand x = operand_make((rdna_dtype)type, 1, shape, NULL, 0);
    for (int64_t i = 0; i < shape[0]; i++) x.host[i] = (uint8_t)i;
    operand_upload(&x);
    for (int k = 0; k < 3; k++) {
      operand out = operand_make(others[k], 1, shape, NULL, k);
      operand_upload(&out);
      assert_ok(rdna_op_cast(stream, &x.tensor, &out.tensor));
      operand_download(&out);
      for (int64_t i = 0; i < shape[0]; i++) {
        double want = nearest(others[k], float8_value((rdna_dtype)type, (int)(i % 256))), got = operand_get(&out, i);
        if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
          fail_msg("%s 0x%02x to %s: got %a, want %a", rdna_dtype_name((rdna_dtype)type), (unsigned)(i % 256),
                   rdna_dtype_name(others[k]), got, want);
      }
      operand_free(&out);
    }
    operand_free(&x);
  }
}

static void every_value_rounds_to_8_bits(void **state) {
  const int64_t shape[] = {65536}, some[] = {50021};
  for (int type = RDNA_F8_E4M3FN; type <= RDNA_F8_E5M2FNUZ; type++) {
    for (int saturating = 0; saturating < 2; saturating++) {
      for (int from = RDNA_F16; from <= RDNA_BF16; from++) {
        operand x = operand_make((rdna_dtype)from, 1, shape, NULL, 0);
        for (int64_t i = 0; i < 65536; i++) ((uint16_t *)(void *)x.host)[i] = (uint16_t)i;
        assert_to_float8(&x, (rdna_dtype)type, saturating);
        operand_free(&x);
      }
      operand x = operand_make(RDNA_F32, 1, some, NULL, saturating);
      uint32_t *bits = (uint32_t *)(void *)x.host;
      for (int64_t i = 0; i < some[0]; i++) {
        uint32_t dropped = 20 + (uint32_t)rdna__random_below(&random_state, 3);
        bits[i] = (uint32_t)rdna__random_bits(&random_state);
        if (i % 2) bits[i] = (bits[i] & 0x807fffffu) | (uint32_t)rdna__random_range(&random_state, 105, 145) << 23;
        if (i % 3) /* halves of steps, and just beside them */
          bits[i] = (bits[i] >> dropped << dropped) + (1u << (dropped - 1)) +
                    (uint32_t)rdna__random_below(&random_state, 3) - 1;
      }
      assert_to_float8(&x, (rdna_dtype)type, saturating);
      operand_free(&x);
    }
  }
}

static void check_boundaries(rdna_dtype to, const float *values, int64_t count) {
  operand x = operand_make(RDNA_F32, 1, &count, NULL, 0);
  memcpy(x.host, values, (size_t)count * sizeof *values);
  for (int saturating = 0; saturating < 2 && to >= RDNA_F8_E4M3FN; saturating++) assert_to_float8(&x, to, saturating);
  if (to < RDNA_F8_E4M3FN) assert_cast(&x, to, 0);
  operand_free(&x);
}

/* For every value of a narrow type: the value, the point halfway from the one before, and the floats on either side of
 * both, of both signs; one step past the largest value too; and a NaN for every leading bit. */
static void every_boundary_rounds_to_nearest_even(void **state) {
  static const rdna_dtype types[] = {RDNA_F16,     RDNA_BF16,        RDNA_F8_E4M3FN,
                                     RDNA_F8_E5M2, RDNA_F8_E4M3FNUZ, RDNA_F8_E5M2FNUZ};
  enum { MOST = 32768 };
  float *values = malloc((size_t)MOST * 12 * sizeof *values);
  for (int t = 0; t < 6; t++) {
    const bool eight = types[t] >= RDNA_F8_E4M3FN;
    operand codes = operand_make(types[t], 1, (int64_t[]){MOST}, NULL, 0);
    int64_t count = 0;
    double previous = 0, step = 0;
    for (int code = 0; code < (eight ? 128 : MOST); code++) {
      ((uint16_t *)(void *)codes.host)[0] = (uint16_t)code;
      double value = eight ? float8_value(types[t], code) : operand_get(&codes, 0);
      if (!isfinite(value)) value = previous + step; /* where the next value would be */
      double places[] = {value, (previous + value) / 2};
      for (int k = 0; k < 2; k++) {
        float at = (float)places[k]; /* exact, or out of range */
        if (!isfinite(at)) continue;
        const float near[] = {at, nextafterf(at, INFINITY), nextafterf(at, -INFINITY)};
        for (int j = 0; j < 3; j++) values[count++] = near[j], values[count++] = -near[j];
      }
      step = value - previous, previous = value;
      if (code > 0 && !isfinite(eight ? float8_value(types[t], code) : operand_get(&codes, 0))) break;
    }
    check_boundaries(types[t], values, count);
    count = 0;
    for (int bit = 0; bit < 23; bit++) {
      for (uint32_t sign = 0; sign < 2; sign++) {
        uint32_t bits[] = {sign << 31 | 0x7f800000u | 1u << bit, sign << 31 | 0x7f800000u | ((2u << bit) - 1)};
        memcpy(values + count, bits, sizeof bits);
        count += 2;
      }
    }
    check_boundaries(types[t], values, count);
    operand_free(&codes);
  }
  free(values);
}

/* Pairs that have no kernel of their own go the way of rdna_op_copy. */
static void any_pair_casts(void **state) {
  const int64_t shape[] = {100};
  for (int from = 0; from < RDNA_DTYPE_COUNT; from++) {
    for (int to = 0; to < RDNA_DTYPE_COUNT; to++) {
      if (rdna_dtype_block_values((rdna_dtype)from) > 1 || rdna_dtype_block_values((rdna_dtype)to) > 1) continue;
      operand small = operand_make(RDNA_I32, 1, shape, NULL, 0), x = operand_make((rdna_dtype)from, 1, shape, NULL, 0);
      operand y = operand_make((rdna_dtype)to, 1, shape, NULL, 0), back = operand_make(RDNA_I32, 1, shape, NULL, 0);
      for (int64_t i = 0; i < shape[0]; i++)
        operand_set(&small, i, (double)(i % 9)); /* which every type holds but bool */
      operand_upload(&small);
      operand_upload(&x);
      operand_upload(&y);
      operand_upload(&back);
      assert_ok(rdna_op_cast(stream, &small.tensor, &x.tensor));
      assert_ok(rdna_op_cast(stream, &x.tensor, &y.tensor));
      assert_ok(rdna_op_cast(stream, &y.tensor, &back.tensor));
      operand_download(&back);
      bool truth = from == RDNA_BOOL || to == RDNA_BOOL;
      for (int64_t i = 0; i < shape[0]; i++) {
        double want = truth ? i % 9 != 0 : (double)(i % 9);
        if (operand_get(&back, i) != want)
          fail_msg("i32 to %s to %s to i32 of %d: got %g", rdna_dtype_name((rdna_dtype)from),
                   rdna_dtype_name((rdna_dtype)to), (int)(i % 9), operand_get(&back, i));
      }
      operand_free(&small);
      operand_free(&x);
      operand_free(&y);
      operand_free(&back);
    }
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t shape[] = {4, 2}, other[] = {8}, none[] = {0, 2};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand flat = operand_make(RDNA_F16, 1, other, NULL, 0), wide = operand_make(RDNA_F64, 2, shape, NULL, 0);
  operand_fill(&x, 1);
  operand_upload(&out);
  assert_refused(rdna_op_cast(stream, &x.tensor, &flat.tensor), RDNA_INVALID_ARGUMENT, "out is f16 (8)", "f32 (4, 2)");
  assert_refused(rdna_op_cast_saturating(stream, &x.tensor, &out.tensor), RDNA_UNSUPPORTED, "out is f16", "8-bit");
  assert_refused(rdna_op_cast_saturating(stream, &wide.tensor, &out.tensor), RDNA_UNSUPPORTED, "x is f64", "bf16");
  assert_refused(rdna_op_cast(NULL, &x.tensor, &out.tensor), RDNA_INVALID_ARGUMENT, "cast", "stream is NULL");
  rdna_tensor t = out.tensor;
  t.data = x.tensor.data;
  assert_refused(rdna_op_cast(stream, &x.tensor, &t), RDNA_INVALID_ARGUMENT, "out", "overlap");
  t = x.tensor;
  t.stride[0] = 3;
  assert_refused(rdna_op_cast(stream, &t, &out.tensor), RDNA_UNSUPPORTED, "x is f32 (4, 2)", "stride 3");
  rdna_tensor empty = rdna_tensor_contiguous(NULL, RDNA_F32, 2, none);
  rdna_tensor empty_out = rdna_tensor_contiguous(NULL, RDNA_BF16, 2, none);
  assert_ok(rdna_op_cast(stream, &empty, &empty_out));
  assert_ok(rdna_op_cast(stream, &empty, &empty));
  operand_download(&out);
  for (int64_t i = 0; i < 8; i++) assert_true(operand_is_poison(&out, i));
  operand_free(&x);
  operand_free(&out);
  operand_free(&flat);
  operand_free(&wide);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_16_bit_value_casts),
      cmocka_unit_test(f32_rounds_to_nearest_even),
      cmocka_unit_test(i32_rounds_to_nearest_even),
      cmocka_unit_test(every_8_bit_float_casts),
      cmocka_unit_test(every_value_rounds_to_8_bits),
      cmocka_unit_test(every_boundary_rounds_to_nearest_even),
      cmocka_unit_test(any_pair_casts),
      cmocka_unit_test(casts_of_one_size_work_in_place),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
