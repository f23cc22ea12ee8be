#include "rdna/op/reduce.h"

#include <math.h>

#include "math/common/case/fill.h"
#include "math/common/test/device.h"

static const int64_t lengths[] = {1, 3, 64, 1000, 2048, 2049, 4096, 8200, 65537, 128256};
enum { LENGTH_COUNT = sizeof lengths / sizeof lengths[0] };

typedef rdna_status (*reduction)(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

static void run(reduction op, rdna_dtype dtype, const void *x, int64_t rows, int64_t cols, rdna_dtype out_dtype,
                void *out) {
  size_t bytes = rdna_dtype_bytes(dtype, rows * cols), out_bytes = rdna_dtype_bytes(out_dtype, rows);
  void *device_x = test_upload(x, bytes), *device_out = test_poisoned(out_bytes);
  rdna_tensor tx = rdna_tensor_contiguous(device_x, dtype, 2, (int64_t[]){rows, cols});
  rdna_tensor tout = rdna_tensor_contiguous(device_out, out_dtype, 1, &rows);
  assert_ok(op(test_stream, &tx, &tout));
  test_download(out, device_out, out_bytes);
  test_release(device_x);
  test_release(device_out);
}

static void argmax(void **state) {
  enum { ROWS = 5 };
  for (int i = 0; i < LENGTH_COUNT; i++) {
    int64_t cols = lengths[i], low = cols / 3, high = cols - 1;
    float *x = malloc((size_t)(ROWS * cols) * sizeof(float));
    int32_t out[ROWS];
    rdna__random random;
    rdna__random_seed(&random, (uint64_t)cols);
    for (int64_t j = 0; j < ROWS * cols; j++) x[j] = (float)rdna__random_range(&random, -9, 9);
    x[0 * cols + low] = x[0 * cols + high] = 10;            /* the first of two */
    x[1 * cols + high] = NAN, x[1 * cols + low] = INFINITY; /* a NaN wins */
    for (int64_t j = 0; j < cols; j++) x[2 * cols + j] = -INFINITY;
    x[3 * cols + low] = NAN, x[3 * cols + high] = NAN;
    run(rdna_op_argmax_rows, RDNA_F32, x, ROWS, cols, RDNA_I32, out);
    int32_t plain = 0;
    for (int64_t j = 0; j < cols; j++) {
      if (x[4 * cols + j] > x[4 * cols + plain]) plain = (int32_t)j;
    }
    assert_int_equal(out[0], low);
    assert_int_equal(out[1], cols == 1 ? 0 : high);
    assert_int_equal(out[2], 0);
    assert_int_equal(out[3], low);
    assert_int_equal(out[4], plain);
    free(x);
  }
}

/* |rows| rows in every type: sum, mean and maximum against double. Additions in a chain of at most cols / 16 err like
 * a random walk; 8 times that is the bound. */
static void check_floats(rdna_dtype dtype, int64_t rows, int64_t cols) {
  void *x = malloc(rdna_dtype_bytes(dtype, rows * cols) + 1);
  float *sum = malloc((size_t)rows * 3 * sizeof(float)), *mean = sum + rows, *max = mean + rows;
  rdna__random random;
  rdna__random_seed(&random, (uint64_t)(cols + rows));
  case_fill(&random, dtype, x, rows * cols, 2);
  run(rdna_op_sum_rows, dtype, x, rows, cols, RDNA_F32, sum);
  run(rdna_op_mean_rows, dtype, x, rows, cols, RDNA_F32, mean);
  run(rdna_op_max_rows, dtype, x, rows, cols, RDNA_F32, max);
  for (int64_t row = 0; row < rows; row++) {
    double want = 0, absolute = 0, top = -INFINITY;
    for (int64_t i = 0; i < cols; i++) {
      double v = (double)case_get(dtype, x, row * cols + i);
      want += v, absolute += fabs(v), top = fmax(top, v);
    }
    double bound = 8 * sqrt((double)cols / 16 + 16) * 0x1p-24 * absolute;
    assert_true(fabs((double)sum[row] - want) <= bound);
    assert_true(fabs((double)mean[row] - want / (double)cols) <= (bound + 0x1p-22 * absolute) / (double)cols);
    assert_true((double)max[row] == top);
  }
  free(x);
  free(sum);
}

static void sum_mean_max(void **state) {
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
    for (int i = 0; i < LENGTH_COUNT; i++) check_floats((rdna_dtype)dtype, 3, lengths[i]);
    check_floats((rdna_dtype)dtype, 1500, 70);
  }
}

static void exact_sums(void **state) {
  int64_t cols = 100003;
  float *x = malloc((size_t)cols * sizeof(float)), out;
  for (int64_t i = 0; i < cols; i++) x[i] = (float)(i % 16 + 1);
  double want = 0;
  for (int64_t i = 0; i < cols; i++) want += (double)x[i];
  run(rdna_op_sum_rows, RDNA_F32, x, 1, cols, RDNA_F32, &out);
  assert_true((double)out == want);
  x[70000] = NAN;
  run(rdna_op_sum_rows, RDNA_F32, x, 1, cols, RDNA_F32, &out);
  assert_true(isnan(out));
  run(rdna_op_max_rows, RDNA_F32, x, 1, cols, RDNA_F32, &out);
  assert_true(isnan(out));
  free(x);
}

static void empty_and_refused(void **state) {
  rdna_tensor no_rows = rdna_tensor_contiguous(NULL, RDNA_F32, 2, (int64_t[]){0, 5});
  rdna_tensor no_out = rdna_tensor_contiguous(NULL, RDNA_F32, 1, (int64_t[]){0});
  assert_ok(rdna_op_sum_rows(test_stream, &no_rows, &no_out));
  assert_ok(rdna_op_max_rows(test_stream, &no_rows, &no_out));

  void *memory = test_poisoned(4096), *other = test_poisoned(4096);
  float got[4];
  rdna_tensor no_cols = rdna_tensor_contiguous(NULL, RDNA_F16, 2, (int64_t[]){4, 0});
  rdna_tensor out = rdna_tensor_contiguous(memory, RDNA_F32, 1, (int64_t[]){4});
  assert_ok(rdna_op_sum_rows(test_stream, &no_cols, &out));
  test_download(got, memory, sizeof got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == 0);
  assert_ok(rdna_op_mean_rows(test_stream, &no_cols, &out));
  test_download(got, memory, sizeof got);
  for (int i = 0; i < 4; i++) assert_true(isnan(got[i]));
  assert_fails(RDNA_INVALID_ARGUMENT, "max_rows: x has 0 columns", rdna_op_max_rows(test_stream, &no_cols, &out));

  rdna_tensor x = rdna_tensor_contiguous(other, RDNA_F32, 2, (int64_t[]){5, 8});
  assert_fails(RDNA_INVALID_ARGUMENT, "x is f32 (5, 8) and out is f32 (4)", rdna_op_sum_rows(test_stream, &x, &out));
  assert_fails(RDNA_INVALID_ARGUMENT, "out is f32; it must be i32", rdna_op_argmax_rows(test_stream, &x, &out));
  x = rdna_tensor_contiguous(memory, RDNA_F32, 2, (int64_t[]){4, 1});
  assert_fails(RDNA_INVALID_ARGUMENT, "must be apart", rdna_op_max_rows(test_stream, &x, &out));
  out.dtype = RDNA_I32;
  x = rdna_tensor_contiguous(other, RDNA_F16, 2, (int64_t[]){4, 8});
  assert_fails(RDNA_INVALID_ARGUMENT, "x is f16; it must be f32", rdna_op_argmax_rows(test_stream, &x, &out));
  test_release(memory);
  test_release(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(argmax), cmocka_unit_test(sum_mean_max),
                                     cmocka_unit_test(exact_sums), cmocka_unit_test(empty_and_refused)};
  return cmocka_run_group_tests(tests, test_device_open, test_device_close);
}
