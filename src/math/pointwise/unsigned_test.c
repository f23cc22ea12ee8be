/* u16, u32 and u64 over their whole range, beside C's own unsigned arithmetic. */
#include "base/testing.h"

#include "math/common/test/strided.h"
#include "rdna/op/pointwise.h"

static const rdna_dtype types[] = {RDNA_U16, RDNA_U32, RDNA_U64};
enum { TYPES = sizeof types / sizeof *types, ROUNDS = 4 };

static uint64_t most_of(rdna_dtype dtype) { return ~UINT64_C(0) >> (64 - 8 * rdna_dtype_block_bytes(dtype)); }

static uint64_t get(const operand *o, int64_t i) { return (uint64_t)integer_get(o, i); }

/* A value of any size, the ends of the range, and what signed types of the width take for negative. */
static uint64_t any_value(rdna_dtype dtype) {
  uint64_t most = most_of(dtype), kind = rdna__random_below(&random_state, 8);
  const uint64_t edges[] = {0, 1, 2, most, most - 1, most / 2, most / 2 + 1, 3};
  if (kind < 3) return edges[rdna__random_below(&random_state, sizeof edges / sizeof *edges)];
  return (rdna__random_bits(&random_state) & most) >> (kind < 5 ? rdna__random_below(&random_state, 64) : 0);
}

static operand make_values(rdna_dtype dtype, int rank, const int64_t *shape) {
  operand o = strided_make(dtype, rank, shape, true);
  size_t bytes = rdna_dtype_block_bytes(dtype);
  for (int64_t i = 0; i < operand_span(&o); i++) {
    uint64_t v = any_value(dtype);
    memcpy(o.host + (size_t)i * bytes, &v, bytes);
  }
  operand_upload(&o);
  return o;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

static uint64_t power(uint64_t a, uint64_t b) {
  uint64_t half = b > 1 ? power(a, b / 2) : 1;
  return half * half * (b % 2 ? a : 1);
}

/* In 64 bits; what the type cuts off is cut off afterwards. */
static uint64_t zip_of(rdna_zip op, uint64_t a, uint64_t b, uint64_t p) {
  switch (op) {
    case RDNA_ZIP_ADD:
      return a + b;
    case RDNA_ZIP_SUB:
      return a - b;
    case RDNA_ZIP_MUL:
      return a * b;
    case RDNA_ZIP_DIV:
    case RDNA_ZIP_FLOOR_DIV:
      return b == 0 ? 0 : a / b;
    case RDNA_ZIP_ADD_SCALED:
      return a + p * b;
    case RDNA_ZIP_MAXIMUM:
      return a > b ? a : b;
    case RDNA_ZIP_MINIMUM:
      return a < b ? a : b;
    case RDNA_ZIP_SQUARED_DIFF:
      return (a - b) * (a - b);
    case RDNA_ZIP_FMOD:
    case RDNA_ZIP_REMAINDER:
      return b == 0 ? a : a % b;
    case RDNA_ZIP_POW:
      return power(a, b);
    case RDNA_ZIP_BITWISE_AND:
      return a & b;
    case RDNA_ZIP_BITWISE_OR:
      return a | b;
    case RDNA_ZIP_BITWISE_XOR:
      return a ^ b;
    case RDNA_ZIP_SHIFT_LEFT:
      return b > 63 ? 0 : a << b;
    case RDNA_ZIP_SHIFT_RIGHT:
      return b > 63 ? 0 : a >> b;
    case RDNA_ZIP_GCD:
      return common_divisor(a, b);
    case RDNA_ZIP_LCM:
      return a == 0 || b == 0 ? 0 : a / common_divisor(a, b) * b;
    case RDNA_ZIP_HEAVISIDE:
      return a == 0 ? b : 1;
    default:
      fail_msg("%s has no definition for unsigned integers in this test", rdna_zip_name(op));
      return 0;
  }
}

static uint64_t map_of(rdna_map op, uint64_t x, uint64_t p, uint64_t q) {
  switch (op) {
    case RDNA_MAP_ABS:
    case RDNA_MAP_RELU:
      return x;
    case RDNA_MAP_NEG:
      return 0 - x;
    case RDNA_MAP_SIGN:
      return x > 0;
    case RDNA_MAP_SQUARE:
      return x * x;
    case RDNA_MAP_AFFINE:
      return x * p + q;
    case RDNA_MAP_CLAMP:
      return x < p ? p : x > q ? q : x;
    case RDNA_MAP_BITWISE_NOT:
      return ~x;
    default:
      fail_msg("%s has no definition for unsigned integers in this test", rdna_map_name(op));
      return 0;
  }
}

#define IS_I_R false
#define IS_I_RI true
#define IS_I_I true
#define OFFERED(NAME, name, types, ...) IS_I_##types,
static const bool of_maps[] = {RDNA_POINTWISE_MAPS(OFFERED, OFFERED, , )};
static const bool of_zips[] = {RDNA_POINTWISE_ZIPS(OFFERED, OFFERED, )};

static void expect(const char *name, const operand *out, int64_t i, uint64_t a, uint64_t b, uint64_t want) {
  uint64_t got = get(out, place_of(&out->tensor, &out->tensor, i));
  if (out->tensor.dtype != RDNA_BOOL) want &= most_of(out->tensor.dtype);
  if (got != want)
    fail_msg("%s of %llu and %llu: got %llu want %llu", name, (unsigned long long)a, (unsigned long long)b,
             (unsigned long long)got, (unsigned long long)want);
}

/* The ways of giving |b|: a tensor, or a number behind or before the other. */
static void check_zip(rdna_dtype dtype, rdna_zip op, int way) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand a = make_values(dtype, rank, shape), b = make_values(dtype, rank, shape);
  operand out = strided_make(dtype, rank, shape, false);
  uint64_t number = any_value(dtype);
  rdna_scalar p = rdna_scalar_integer(3), given = rdna_scalar_integer((int64_t)number);
  operand_upload(&out);
  if (way == 0)
    assert_ok(rdna_op_zip(stream, op, &a.tensor, &b.tensor, p, p, &out.tensor));
  else
    assert_ok(rdna_op_zip_scalar(stream, op, &a.tensor, given, way == 2, p, p, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    uint64_t x = get(&a, place_of(&a.tensor, &out.tensor, i)), y = number;
    if (way == 0) y = get(&b, place_of(&b.tensor, &out.tensor, i));
    expect(rdna_zip_name(op), &out, i, x, y, way == 2 ? zip_of(op, y, x, 3) : zip_of(op, x, y, 3));
  }
  assert_gaps_whole(&out);
  operand_free(&a), operand_free(&b), operand_free(&out);
}

static void check_map(rdna_dtype dtype, rdna_map op) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand x = make_values(dtype, rank, shape), out = strided_make(dtype, rank, shape, false);
  uint64_t p = any_value(dtype) / 2, q = p + most_of(dtype) / 3;
  operand_upload(&out);
  assert_ok(rdna_op_map(stream, op, &x.tensor, rdna_scalar_integer((int64_t)p), rdna_scalar_integer((int64_t)q),
                        &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    uint64_t v = get(&x, place_of(&x.tensor, &out.tensor, i));
    expect(rdna_map_name(op), &out, i, v, p, map_of(op, v, p, q));
  }
  assert_gaps_whole(&out);
  operand_free(&x), operand_free(&out);
}

static void every_operation_is_that_of_unsigned_numbers(void **state) {
  for (int t = 0; t < TYPES * ROUNDS; t++) {
    for (int op = 0; op < RDNA_MAP_COUNT; op++)
      if (of_maps[op]) check_map(types[t % TYPES], (rdna_map)op);
    for (int op = 0; op < RDNA_ZIP_COUNT; op++)
      if (of_zips[op]) check_zip(types[t % TYPES], (rdna_zip)op, t / TYPES % 3);
  }
}

static void check_zip3(rdna_dtype dtype, rdna_zip3 op) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand o[3], out = strided_make(dtype, rank, shape, false);
  for (int k = 0; k < 3; k++) o[k] = make_values(dtype, rank, shape);
  operand_upload(&out);
  assert_ok(rdna_op_zip3(stream, op, &o[0].tensor, &o[1].tensor, &o[2].tensor, rdna_scalar_integer(3), &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    uint64_t v[3], want;
    for (int k = 0; k < 3; k++) v[k] = get(&o[k], place_of(&o[k].tensor, &out.tensor, i));
    if (op == RDNA_ZIP3_CLAMP) {
      want = v[0] > v[1] ? v[0] : v[1];
      want = want < v[2] ? want : v[2];
    } else {
      want = op == RDNA_ZIP3_FMA ? v[0] * v[1] + v[2] : v[0] + 3 * v[1] * v[2];
    }
    expect(rdna_zip3_name(op), &out, i, v[0], v[1], want);
  }
  for (int k = 0; k < 3; k++) operand_free(&o[k]);
  operand_free(&out);
}

static bool answer(rdna_compare op, uint64_t a, uint64_t b) {
  switch (op) {
    case RDNA_COMPARE_EQ:
      return a == b;
    case RDNA_COMPARE_NE:
      return a != b;
    case RDNA_COMPARE_LT:
      return a < b;
    case RDNA_COMPARE_LE:
      return a <= b;
    case RDNA_COMPARE_GT:
      return a > b;
    case RDNA_COMPARE_GE:
      return a >= b;
    case RDNA_COMPARE_LOGICAL_AND:
      return a && b;
    case RDNA_COMPARE_LOGICAL_OR:
      return a || b;
    case RDNA_COMPARE_LOGICAL_XOR:
      return !a != !b;
    case RDNA_COMPARE_LOGICAL_NOT:
      return !a;
    default: /* whether it is finite, infinite or no number */
      return op == RDNA_COMPARE_ISFINITE;
  }
}

static void check_compare(rdna_dtype dtype, rdna_compare op, bool of_number) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand a = make_values(dtype, rank, shape), b = make_values(dtype, rank, shape);
  operand out = strided_make(RDNA_BOOL, rank, shape, false);
  uint64_t number = any_value(dtype);
  operand_upload(&out);
  if (of_number)
    assert_ok(rdna_op_compare_scalar(stream, op, &a.tensor, rdna_scalar_integer((int64_t)number), &out.tensor));
  else
    assert_ok(rdna_op_compare(stream, op, &a.tensor, &b.tensor, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    uint64_t x = get(&a, place_of(&a.tensor, &out.tensor, i));
    uint64_t y = of_number ? number : get(&b, place_of(&b.tensor, &out.tensor, i));
    expect(rdna_compare_name(op), &out, i, x, y, answer(op, x, y));
  }
  operand_free(&a), operand_free(&b), operand_free(&out);
}

static void questions_and_zips_of_three(void **state) {
  for (int t = 0; t < TYPES * ROUNDS; t++) {
    for (int op = 0; op < RDNA_COMPARE_COUNT; op++) check_compare(types[t % TYPES], (rdna_compare)op, t / TYPES % 2);
    check_zip3(types[t % TYPES], RDNA_ZIP3_FMA);
    check_zip3(types[t % TYPES], RDNA_ZIP3_ADDCMUL);
    check_zip3(types[t % TYPES], RDNA_ZIP3_CLAMP);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operation_is_that_of_unsigned_numbers),
      cmocka_unit_test(questions_and_zips_of_three),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
