#include "rdna/op/softmax.h"

#include <math.h>

#include "math/common/case/fill.h"
#include "math/common/test/device.h"

/* An output of the operator, which is in |dtype|, against the definition in double. The operator's sum of positive
 * terms is off by at most 2^-24 for each addition in a chain of at most 300 and one more for each 256 columns. */
static void compare_row(rdna_dtype dtype, const void *x, int64_t begin, const void *out, int64_t out_begin,
                        int64_t cols, float scale, bool is_log) {
  double top = -INFINITY, sum = 0, error = (300 + (double)cols / 256) * 0x1p-24;
  bool is_nan = false;
  for (int64_t i = 0; i < cols; i++) {
    double v = (double)(case_get(dtype, x, begin + i) * scale);
    if (isnan(v) || v == INFINITY) is_nan = true;
    if (v > top) top = v;
  }
  if (top == -INFINITY) is_nan = true;
  for (int64_t i = 0; i < cols; i++) sum += exp((double)(case_get(dtype, x, begin + i) * scale) - top);
  for (int64_t i = 0; i < cols; i++) {
    double v = (double)(case_get(dtype, x, begin + i) * scale), got = (double)case_get(dtype, out, out_begin + i);
    double want = is_log ? v - top - log(sum) : exp(v - top) / sum;
    if (is_nan) {
      assert_true(isnan(got));
      continue;
    }
    if (got == want) continue; /* infinities of a logarithm */
    double bound = is_log ? error + (case_spacing(dtype) + 0x1p-22) * fabs(want) + 0x1p-22 * log((double)cols + 1)
                          : (error + case_spacing(dtype) + 0x1p-22 * (fabs(v - top) + 1)) * want;
    if (!(fabs(got - want) <= bound + case_smallest(dtype))) {
      fail_msg("%s of %lld columns, [%lld]: got %g, want %g", is_log ? "log_softmax" : "softmax", (long long)cols,
               (long long)i, got, want);
    }
  }
}

static void check(rdna_dtype dtype, int64_t rows, int64_t cols, float scale, bool is_log, bool in_place) {
  rdna__random random;
  rdna__random_seed(&random, (uint64_t)(rows * 1000003 + cols));
  size_t bytes = rdna_dtype_bytes(dtype, rows * cols);
  void *x = malloc(bytes + 1), *out = malloc(bytes + 1);
  case_fill(&random, dtype, x, rows * cols, 3);
  if (rows > 4) {
    case_set(dtype, x, cols + cols / 2, NAN);
    case_set(dtype, x, 2 * cols, INFINITY);
    for (int64_t i = 0; i < cols; i++) case_set(dtype, x, 3 * cols + i, -INFINITY);
    for (int64_t i = 0; i < cols; i += 2) case_set(dtype, x, 4 * cols + i, -INFINITY);
  }
  void *device_x = test_upload(x, bytes), *device_out = in_place ? device_x : test_poisoned(bytes);
  rdna_tensor tx = rdna_tensor_contiguous(device_x, dtype, 2, (int64_t[]){rows, cols});
  rdna_tensor tout = rdna_tensor_contiguous(device_out, dtype, 2, (int64_t[]){rows, cols});
  assert_ok(is_log ? rdna_op_log_softmax(stream, &tx, -1, scale, &tout)
                   : rdna_op_softmax(stream, &tx, -1, scale, &tout));
  test_download(out, device_out, bytes);
  for (int64_t row = 0; row < rows; row++) compare_row(dtype, x, row * cols, out, row * cols, cols, scale, is_log);
  test_release(device_x);
  if (!in_place) test_release(device_out);
  free(x);
  free(out);
}

static void rows_of_any_length(void **state) {
  static const int64_t lengths[] = {1, 2, 31, 64, 65, 1000, 1024, 1025, 4096, 4097, 8192, 8195, 3001, 50000, 100003};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
      check((rdna_dtype)dtype, 6, lengths[i], 1, false, false);
      check((rdna_dtype)dtype, 6, lengths[i], 0.3f, true, i % 2);
    }
  }
  check(RDNA_F32, 1, 2200000, 1, false, true); /* more parts than a group has threads, of several steps each */
  check(RDNA_F32, 300, 20, -2, false, true);
  check(RDNA_BF16, 1025, 1100, 1, true, false); /* so many rows that each is a wave's */
}

/* Rows of |out| at the multiples of 16 bytes that those of |x| have, or at others. */
static void strided_rows(void **state) {
  enum { ROWS = 5, PITCH = 3000, VALUES = ROWS * (PITCH + 3) };
  static const int64_t lengths[] = {37, 600, 2999};
  for (int n = 0; n < 18; n++) {
    rdna_dtype dtype = (rdna_dtype)(n % 3);
    int64_t cols = lengths[n / 3 % 3], pitch = PITCH + (n < 9 ? 0 : 3), values = ROWS * pitch;
    float x[VALUES], out[VALUES];
    size_t bytes = rdna_dtype_bytes(dtype, VALUES);
    rdna__random random;
    rdna__random_seed(&random, (uint64_t)n);
    case_fill(&random, dtype, x, VALUES, 1);
    void *device_x = test_upload(x, bytes), *device_out = test_poisoned(bytes);
    rdna_tensor tx = {device_x, dtype, 2, {ROWS, cols}, {PITCH, 1}};
    rdna_tensor tout = {device_out, dtype, 2, {ROWS, cols}, {pitch, 1}};
    assert_ok(rdna_op_softmax(stream, &tx, 1, 1, &tout));
    test_download(out, device_out, bytes);
    for (int row = 0; row < ROWS; row++) {
      compare_row(dtype, x, row * PITCH, out, row * pitch, cols, 1, false);
      for (int64_t i = row * pitch + cols; i < values && i < (row + 1) * pitch; i++)
        assert_true(isnan(case_get(dtype, out, i)));
    }
    test_release(device_x);
    test_release(device_out);
  }
}

static void empty_and_refused(void **state) {
  rdna_tensor empty = rdna_tensor_contiguous(NULL, RDNA_F32, 2, (int64_t[]){0, 5});
  assert_ok(rdna_op_softmax(stream, &empty, 1, 1, &empty));
  empty = rdna_tensor_contiguous(NULL, RDNA_F16, 2, (int64_t[]){5, 0});
  assert_ok(rdna_op_softmax(stream, &empty, 1, 1, &empty));

  void *memory = test_poisoned(1024);
  rdna_tensor x = rdna_tensor_contiguous(memory, RDNA_F32, 2, (int64_t[]){4, 8}), out = x;
  out.dtype = RDNA_F16;
  assert_refused(rdna_op_softmax(stream, &x, 1, 1, &out), RDNA_INVALID_ARGUMENT, "softmax: out is f16 and x is f32");
  out = rdna_tensor_contiguous(memory, RDNA_F32, 2, (int64_t[]){4, 7});
  assert_refused(rdna_op_softmax(stream, &x, 1, 1, &out), RDNA_INVALID_ARGUMENT, "(4, 7)");
  out = rdna_tensor_contiguous((char *)memory + 16, RDNA_F32, 2, (int64_t[]){4, 8});
  assert_refused(rdna_op_log_softmax(stream, &x, 1, 1, &out), RDNA_INVALID_ARGUMENT, "overlap");
  out = rdna_tensor_contiguous(NULL, RDNA_F32, 2, (int64_t[]){4, 8});
  assert_refused(rdna_op_log_softmax(stream, &x, 1, 1, &out), RDNA_INVALID_ARGUMENT, "log_softmax: out");
  x.dtype = out.dtype = RDNA_I32;
  assert_refused(rdna_op_softmax(stream, &x, 1, 1, &x), RDNA_UNSUPPORTED, "i32");
  test_release(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_any_length), cmocka_unit_test(strided_rows),
                                     cmocka_unit_test(empty_and_refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
