#include "math/common/test/volume.h"
#include "rdna/op/pool.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

/* Each window's values are added where the definition puts them, one after another, in double. */
static void check_fold(rdna_dtype dtype, const rdna_pooling *p, int64_t n, int64_t channels, const int64_t *size) {
  int dims = p->spatial_dims;
  int64_t taps = 1, windows = 1, count[3] = {1, 1, 1}, all = 1, shape[5] = {n, channels};
  for (int d = 0; d < dims; d++) {
    count[d] = rdna_pooling_size(p, d, size[d]);
    taps *= p->window[d], windows *= count[d], all *= size[d], shape[d + 2] = size[d];
  }
  const int64_t columns_shape[] = {n, channels * taps, windows};
  operand columns = operand_make(dtype, 3, columns_shape, NULL, 0), out = operand_make(dtype, dims + 2, shape, NULL, 0);
  for (int64_t i = 0; i < rdna_tensor_count(&columns.tensor); i++)
    operand_set(&columns, i, rdna__random_normal(&random_state));
  operand_upload(&columns), operand_upload(&out);
  assert_ok(rdna_op_fold(stream, p, &columns.tensor, &out.tensor));
  operand_download(&out);
  double *want = calloc((size_t)(n * channels * all) + 1, sizeof *want);
  assert_non_null(want);
  for (int64_t plane = 0; plane < n * channels; plane++) {
    for (int64_t tap = 0; tap < taps; tap++) {
      for (int64_t window = 0; window < windows; window++) {
        int64_t at = 0, rest_tap = tap, rest_window = window, step = 1;
        bool inside = true;
        for (int d = dims - 1; d >= 0; d--) {
          int64_t t = rest_tap % p->window[d], o = rest_window % count[d];
          int64_t place = o * p->stride[d] + t * p->dilation[d] - p->pad_before[d];
          rest_tap /= p->window[d], rest_window /= count[d];
          inside = inside && place >= 0 && place < size[d];
          at += place * step, step *= size[d];
        }
        if (inside) want[plane * all + at] += operand_get(&columns, (plane * taps + tap) * windows + window);
      }
    }
  }
  double unit = dtype == RDNA_F64 ? 0x1p-53 : dtype == RDNA_F32 ? 0x1p-24 : dtype == RDNA_F16 ? 0x1p-11 : 0x1p-8;
  for (int64_t i = 0; i < n * channels * all; i++) {
    double got = operand_get(&out, i);
    if (!(fabs(got - want[i]) <= 2 * unit * fabs(want[i]) + 64 * (dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24)))
      fail_msg("value %lld is %g, it should be %g", (long long)i, got, want[i]);
  }
  free(want);
  operand_free(&columns), operand_free(&out);
}

static void windows_are_put_back(void **state) {
  static const struct {
    int dims;
    int64_t window[3], stride[3], pad[3], dilation[3], size[3];
  } shapes[] = {
      {2, {3, 3}, {1, 1}, {0, 0}, {1, 1}, {8, 8}},
      {2, {2, 3}, {2, 1}, {1, 0}, {1, 2}, {7, 9}},
      {2, {3, 3}, {2, 3}, {1, 1}, {2, 1}, {11, 5}},
      {2, {2, 2}, {3, 3}, {0, 0}, {1, 1}, {9, 11}},
      {2, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {3, 4}},
      {1, {5}, {2}, {2}, {1}, {17}},
      {3, {2, 3, 2}, {1, 2, 2}, {0, 1, 1}, {1, 1, 2}, {4, 5, 6}},
      {2, {4, 4}, {4, 4}, {0, 0}, {1, 1}, {16, 12}},
  };
  for (int t = 0; t < 4; t++) {
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      rdna_pooling p = {RDNA_POOLING_INIT, .spatial_dims = shapes[k].dims};
      for (int d = 0; d < p.spatial_dims; d++) {
        p.window[d] = shapes[k].window[d], p.stride[d] = shapes[k].stride[d], p.dilation[d] = shapes[k].dilation[d];
        p.pad_before[d] = p.pad_after[d] = shapes[k].pad[d];
      }
      check_fold(types[t], &p, 2, 3, shapes[k].size);
    }
  }
}

/* Of ones, each value is how many windows it lies in; taken with stride and size equal, it is what was taken apart. */
static void windows_of_ones_are_counted(void **state) {
  rdna_pooling p = {RDNA_POOLING_INIT, .spatial_dims = 1, .window = {3}, .stride = {1}, .dilation = {1}};
  const int64_t columns_shape[] = {1, 3, 3}, shape[] = {1, 1, 5};
  operand columns = operand_make(RDNA_F32, 3, columns_shape, NULL, 0), out = operand_make(RDNA_F32, 3, shape, NULL, 0);
  for (int i = 0; i < 9; i++) operand_set(&columns, i, 1);
  operand_upload(&columns), operand_upload(&out);
  assert_ok(rdna_op_fold(stream, &p, &columns.tensor, &out.tensor));
  operand_download(&out);
  const double want[] = {1, 2, 3, 2, 1};
  for (int i = 0; i < 5; i++) assert_true(operand_get(&out, i) == want[i]);
  operand_free(&columns), operand_free(&out);
}

static void descriptions_that_do_not_fit_are_refused(void **state) {
  rdna_pooling p = {RDNA_POOLING_INIT, .spatial_dims = 2, .window = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}};
  const int64_t columns_shape[] = {1, 9, 36}, shape[] = {1, 1, 8, 8};
  operand columns = operand_make(RDNA_F32, 3, columns_shape, NULL, 0), out = operand_make(RDNA_F32, 4, shape, NULL, 0);
  operand_upload(&columns), operand_upload(&out);
  rdna_pooling wrong = p;
  wrong.stride[0] = 2;
  assert_refused(rdna_op_fold(stream, &wrong, &columns.tensor, &out.tensor), RDNA_INVALID_ARGUMENT, "windows",
                 "(1, 9, 36)");
  wrong = p, wrong.window[1] = 9;
  assert_refused(rdna_op_fold(stream, &wrong, &columns.tensor, &out.tensor), RDNA_INVALID_ARGUMENT, "hold a window",
                 "(1, 1, 8, 8)");
  wrong = p, wrong.dilation[0] = 0;
  assert_refused(rdna_op_fold(stream, &wrong, &columns.tensor, &out.tensor), RDNA_INVALID_ARGUMENT, "dilation 0",
                 "at least 1");
  wrong = p, wrong.spatial_dims = 1;
  assert_refused(rdna_op_fold(stream, &wrong, &columns.tensor, &out.tensor), RDNA_INVALID_ARGUMENT, "(1, 1, 8, 8)",
                 "rank");
  operand_free(&columns), operand_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_are_put_back),
      cmocka_unit_test(windows_of_ones_are_counted),
      cmocka_unit_test(descriptions_that_do_not_fit_are_refused),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
