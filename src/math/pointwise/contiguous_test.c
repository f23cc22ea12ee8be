#include "math/common/test/operand.h"
#include "rdna/op/pointwise.h"

/* The operations that have kernels for contiguous tensors; the tests assert that these kernels run. */
static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
static const rdna_zip zips[] = {RDNA_ZIP_ADD, RDNA_ZIP_SUB, RDNA_ZIP_MUL, RDNA_ZIP_DIV};
static const rdna_map maps[] = {RDNA_MAP_NEG,  RDNA_MAP_EXP,  RDNA_MAP_RELU,      RDNA_MAP_SIGMOID,
                                RDNA_MAP_TANH, RDNA_MAP_SILU, RDNA_MAP_GELU_TANH, RDNA_MAP_GELU_ERF};
enum { ZIPS = sizeof zips / sizeof *zips, MAPS = sizeof maps / sizeof *maps };
static const rdna_scalar none;

static void assert_kernel(const char *op_name, const char *form, rdna_dtype dtype) {
  char want[64];
  snprintf(want, sizeof want, "%s%s_%s", op_name, form, rdna_dtype_name(dtype));
  assert_string_equal(rdna_stream_last_kernel(stream), want);
}

static double binary_double(rdna_zip op, double a, double b) {
  switch (op) {
    case RDNA_ZIP_ADD:
      return a + b;
    case RDNA_ZIP_SUB:
      return a - b;
    case RDNA_ZIP_MUL:
      return a * b;
    default:
      return a / b;
  }
}

/* What f32 arithmetic may add to the rounding of the result: nothing for one operation, as f32 is wide enough for the
 * 16-bit types to round as if once. */
static void check_binary(rdna_dtype dtype, rdna_zip op, int64_t rows, int64_t cols, bool row, int64_t offset,
                         int in_place) {
  int64_t shape[] = {rows, cols}, row_shape[] = {cols};
  operand a = operand_make(dtype, 2, shape, NULL, offset);
  operand b = row ? operand_make(dtype, 1, row_shape, NULL, offset) : operand_make(dtype, 2, shape, NULL, offset);
  operand c = operand_make(dtype, 2, shape, NULL, offset);
  operand *out = in_place == 1 ? &a : in_place == 2 && !row ? &b : &c;
  operand_fill(&a, 3);
  operand_fill(&b, 3);
  operand_upload(&c);
  double *want = malloc((size_t)(rows * cols + 1) * sizeof *want);
  for (int64_t i = 0; i < rows * cols; i++) {
    want[i] = binary_double(op, operand_get(&a, i), operand_get(&b, row ? i % cols : i));
  }
  assert_ok(rdna_op_zip(stream, op, &a.tensor, &b.tensor, none, none, &out->tensor));
  assert_kernel(rdna_zip_name(op), row ? "_row" : "", dtype);
  operand_download(out);
  for (int64_t i = 0; i < rows * cols; i++) {
    assert_close(dtype, operand_get(out, i), want[i], 0, rdna_zip_name(op), i);
  }
  free(want);
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
}

static void binary_matches_double(void **state) {
  for (int t = 0; t < 3; t++) {
    for (int k = 0; k < ZIPS; k++) {
      for (int n = 0; n < 12; n++) {
        int64_t rows = rdna__random_range(&random_state, 1, 30), cols = rdna__random_range(&random_state, 1, 900);
        if (n % 4 == 3) cols = cols / 8 * 8 + 8;
        check_binary(float_types[t], zips[k], rows, cols, n % 2, n % 3 == 2, n % 3);
      }
      check_binary(float_types[t], zips[k], 2, 9000, true, 0, 0);
    }
  }
}

static double unary_double(rdna_map op, double x) {
  switch (op) {
    case RDNA_MAP_NEG:
      return -x;
    case RDNA_MAP_EXP:
      return exp(x);
    case RDNA_MAP_RELU:
      return isnan(x) ? x : x > 0 ? x : 0;
    case RDNA_MAP_SIGMOID:
      return 1 / (1 + exp(-x));
    case RDNA_MAP_TANH:
      return tanh(x);
    case RDNA_MAP_SILU:
      return x / (1 + exp(-x));
    case RDNA_MAP_GELU_TANH:
      return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    default:
      return 0.5 * x * erfc(-x / sqrt(2));
  }
}

/* The error allowed: eight roundings in f32, of the result, or of |x| where 1 + tanh and the like cancel. A subnormal
 * exponential is off by one subnormal step, times a factor of x. With 16 bits a GPU's functions are right to 2^-13, and
 * results below 2^-126 may be 0. */
static double unary_error(rdna_dtype dtype, rdna_map op, double x, double want) {
  bool cancels = op == RDNA_MAP_GELU_TANH || op == RDNA_MAP_GELU_ERF;
  if (op == RDNA_MAP_NEG || op == RDNA_MAP_RELU) return 0;
  if (dtype != RDNA_F32) return 0x1p-13 * fabs(want) + 0x1p-22 * cancels + 0x1p-126 * (1 + fabs(x));
  double scale = cancels ? fabs(x) : fabs(want);
  return 8 * 0x1p-24 * scale + 0x1p-149 * (1 + fabs(x));
}

static void check_unary(rdna_dtype dtype, rdna_map op, operand *x, operand *out) {
  assert_ok(rdna_op_map(stream, op, &x->tensor, none, none, &out->tensor));
  assert_kernel(rdna_map_name(op), "", dtype);
  double *values = malloc((size_t)(operand_span(x) + 1) * sizeof *values);
  for (int64_t i = 0; i < operand_span(x); i++) values[i] = operand_get(x, i);
  operand_download(out);
  for (int64_t i = 0; i < operand_span(x); i++) {
    double want = unary_double(op, values[i]);
    assert_close(dtype, operand_get(out, i), want, unary_error(dtype, op, values[i], want), rdna_map_name(op), i);
  }
  free(values);
}

static void unary_matches_double(void **state) {
  for (int t = 0; t < 3; t++) {
    for (int k = 0; k < MAPS; k++) {
      for (int n = 0; n < 8; n++) {
        int64_t shape[] = {rdna__random_range(&random_state, 1, 3), rdna__random_range(&random_state, 1, 7000)};
        operand x = operand_make(float_types[t], 2, shape, NULL, n % 2);
        operand out = operand_make(float_types[t], 2, shape, NULL, n % 2);
        operand_fill(&x, n < 4 ? 2 : 20);
        operand_upload(&out);
        check_unary(float_types[t], maps[k], &x, n % 4 == 3 ? &x : &out);
        operand_free(&x);
        operand_free(&out);
      }
    }
  }
}

static void special_values_have_their_limits(void **state) {
  static const double in[] = {0.0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 0x1p-24, 200, -200};
  const double inf = (double)INFINITY, nan = (double)NAN;
  const struct {
    rdna_map op;
    double out[6];
  } want[] = {
      {RDNA_MAP_NEG, {0, 0, -inf, inf, nan, -0x1p-24}},     {RDNA_MAP_EXP, {1, 1, inf, 0, nan, 1}},
      {RDNA_MAP_RELU, {0, 0, inf, 0, nan, 0x1p-24}},        {RDNA_MAP_SIGMOID, {0.5, 0.5, 1, 0, nan, 0.5}},
      {RDNA_MAP_TANH, {0, 0, 1, -1, nan, 0x1p-24}},         {RDNA_MAP_SILU, {0, 0, inf, nan, nan, 0x1p-25}},
      {RDNA_MAP_GELU_TANH, {0, 0, inf, nan, nan, 0x1p-25}}, {RDNA_MAP_GELU_ERF, {0, 0, inf, nan, nan, 0x1p-25}}};
  const int64_t shape[] = {8};
  for (int t = 0; t < 3; t++) {
    for (int k = 0; k < MAPS; k++) {
      operand x = operand_make(float_types[t], 1, shape, NULL, 0),
              out = operand_make(float_types[t], 1, shape, NULL, 0);
      for (int i = 0; i < 8; i++) operand_set(&x, i, in[i]);
      operand_upload(&x);
      operand_upload(&out);
      assert_ok(rdna_op_map(stream, want[k].op, &x.tensor, none, none, &out.tensor));
      operand_download(&out);
      for (int i = 0; i < 6; i++) {
        assert_close(float_types[t], operand_get(&out, i), want[k].out[i], 0x1p-24, rdna_map_name(want[k].op), i);
      }
      for (int i = 6; i < 8; i++) { /* arguments for which an exponential overflows */
        assert_close(float_types[t], operand_get(&out, i), unary_double(want[k].op, in[i]), 0x1p-18,
                     rdna_map_name(want[k].op), i);
      }
      operand_free(&x);
      operand_free(&out);
    }
  }
}

static void affine_and_swiglu_match_double(void **state) {
  for (int t = 0; t < 3; t++) {
    for (int n = 0; n < 8; n++) {
      rdna_dtype dtype = float_types[t];
      int64_t shape[] = {rdna__random_range(&random_state, 1, 9000)};
      float scale = (float)rdna__random_normal(&random_state), shift = (float)rdna__random_normal(&random_state);
      operand a = operand_make(dtype, 1, shape, NULL, n % 2), b = operand_make(dtype, 1, shape, NULL, n % 2);
      operand c = operand_make(dtype, 1, shape, NULL, n % 2), d = operand_make(dtype, 1, shape, NULL, n % 2);
      operand_fill(&a, 3);
      operand_fill(&b, 3);
      operand_upload(&c);
      operand_upload(&d);
      assert_ok(rdna_op_map(stream, RDNA_MAP_AFFINE, &a.tensor, rdna_scalar_real((double)scale),
                            rdna_scalar_real((double)shift), &c.tensor));
      assert_kernel("affine", "", dtype);
      assert_ok(rdna_op_swiglu(stream, &a.tensor, &b.tensor, &d.tensor));
      operand_download(&c);
      operand_download(&d);
      for (int64_t i = 0; i < shape[0]; i++) {
        double x = operand_get(&a, i), gated = x / (1 + exp(-x)) * operand_get(&b, i);
        double moved = x * (double)scale + (double)shift;
        /* f32 rounds the sum before the type does; the sum may cancel */
        assert_close(dtype, operand_get(&c, i), moved, dtype == RDNA_F32 ? 0 : 0x1p-24 * fabs(moved), "affine", i);
        assert_close(dtype, operand_get(&d, i), gated, (dtype == RDNA_F32 ? 8 * 0x1p-24 : 0x1p-13) * fabs(gated),
                     "swiglu", i);
      }
      operand_free(&a);
      operand_free(&b);
      operand_free(&c);
      operand_free(&d);
    }
  }
}

/* Transposed views of contiguous tensors take the contiguous kernels; gaps, or orders that differ, the strided ones. */
static void lines_in_any_order_take_the_same_way(void **state) {
  const int64_t shape[] = {6, 40}, gaps[] = {48, 1}, turned[] = {1, 6};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand wide = operand_make(RDNA_F32, 2, shape, gaps, 0);
  rdna_tensor a = x.tensor, b = out.tensor;
  operand_fill(&x, 1);
  operand_fill(&wide, 1);
  operand_upload(&out);
  memcpy(a.stride, turned, sizeof turned);
  memcpy(b.stride, turned, sizeof turned);
  assert_ok(rdna_op_map(stream, RDNA_MAP_NEG, &a, none, none, &b));
  assert_kernel("neg", "", RDNA_F32);
  operand_download(&out);
  for (int64_t i = 0; i < 240; i++) assert_true(operand_get(&out, i) == -operand_get(&x, i));
  assert_ok(rdna_op_map(stream, RDNA_MAP_NEG, &a, none, none, &out.tensor));
  assert_kernel("map", "_strided", RDNA_F32);
  assert_ok(rdna_op_zip(stream, RDNA_ZIP_ADD, &wide.tensor, &x.tensor, none, none, &out.tensor));
  assert_kernel("zip", "_strided", RDNA_F32);
  operand_free(&x);
  operand_free(&out);
  operand_free(&wide);
}

static void empty_tensors_are_no_work(void **state) {
  const int64_t shape[] = {3, 0}, row[] = {0};
  rdna_tensor a = rdna_tensor_contiguous(NULL, RDNA_F32, 2, shape), b = rdna_tensor_contiguous(NULL, RDNA_F32, 1, row);
  assert_ok(rdna_op_zip(stream, RDNA_ZIP_ADD, &a, &a, none, none, &a));
  assert_ok(rdna_op_zip(stream, RDNA_ZIP_ADD, &a, &b, none, none, &a));
  assert_ok(rdna_op_map(stream, RDNA_MAP_EXP, &a, none, none, &a));
  assert_ok(rdna_op_map(stream, RDNA_MAP_AFFINE, &a, none, none, &a));
  assert_ok(rdna_op_swiglu(stream, &a, &a, &a));
  assert_ok(rdna_stream_synchronize(stream));
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t shape[] = {2, 3}, other[] = {3, 2}, one[] = {2};
  operand a = operand_make(RDNA_F32, 2, shape, NULL, 0), b = operand_make(RDNA_F32, 2, other, NULL, 0);
  operand c = operand_make(RDNA_F32, 1, one, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand_fill(&a, 1);
  operand_fill(&b, 1);
  operand_fill(&c, 1);
  operand_upload(&out);
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
#define REFUSED(wrong, text, other_text) \
  assert_refused(rdna_op_map(stream, RDNA_MAP_EXP, &wrong, none, none, &out.tensor), bad, text, other_text)
  assert_refused(rdna_op_zip(stream, RDNA_ZIP_MUL, &a.tensor, &c.tensor, none, none, &out.tensor), bad,
                 "mul: b is f32 (2)", "(2, 3)");
  assert_refused(rdna_op_zip(stream, RDNA_ZIP_ADD, &a.tensor, &a.tensor, none, none, &b.tensor), bad, "(2, 3)",
                 "out is f32 (3, 2)");
  assert_refused(rdna_op_zip(NULL, RDNA_ZIP_ADD, &a.tensor, &a.tensor, none, none, &out.tensor), bad, "stream", "NULL");
  rdna_tensor t = a.tensor;
  t.shape[1] = -3;
  REFUSED(t, "exp: x", "-3");
  t = a.tensor;
  t.data = NULL;
  REFUSED(t, "exp: x", "NULL");
  t = a.tensor;
  t.data = (uint8_t *)a.tensor.data + 1;
  REFUSED(t, "exp: x", "multiple of 4");
  t = out.tensor;
  t.data = (uint8_t *)out.tensor.data + 4;
  REFUSED(t, "out", "overlap");
  t = a.tensor;
  t.rank = 9;
  REFUSED(t, "rank 9", "8");
  t = a.tensor;
  t.shape[0] = INT64_MAX / 2;
  REFUSED(t, "exp: x", "63 bits");
#undef REFUSED
  t = a.tensor;
  t.stride[0] = 1, t.stride[1] = 2;
  assert_refused(rdna_op_swiglu(stream, &t, &a.tensor, &out.tensor), RDNA_UNSUPPORTED, "swiglu: gate", "stride 2");
  operand_download(&out);
  for (int64_t k = 0; k < 6; k++) assert_true(operand_is_poison(&out, k));
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
  operand_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(binary_matches_double),
      cmocka_unit_test(unary_matches_double),
      cmocka_unit_test(special_values_have_their_limits),
      cmocka_unit_test(affine_and_swiglu_match_double),
      cmocka_unit_test(lines_in_any_order_take_the_same_way),
      cmocka_unit_test(empty_tensors_are_no_work),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
