#include "rdna/op/scan.h"

#include "base/random.h"
#include "math/common/test/operand.h"

typedef rdna_status (*scan_operator)(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out);
static const scan_operator operators[] = {rdna_op_cumsum, rdna_op_cumprod, rdna_op_cummax, rdna_op_cummin};
enum { SUM, PROD, MAX, MIN };

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I32, RDNA_I64};

static double get(const operand *o, int64_t i) {
  if (o->tensor.dtype == RDNA_F64) return ((const double *)(const void *)o->host)[i];
  if (o->tensor.dtype == RDNA_I64) return (double)((const int64_t *)(const void *)o->host)[i];
  return operand_get(o, i);
}
static void set(operand *o, int64_t i, double v) {
  if (o->tensor.dtype == RDNA_F64) {
    ((double *)(void *)o->host)[i] = v;
  } else if (o->tensor.dtype == RDNA_I64) {
    ((int64_t *)(void *)o->host)[i] = (int64_t)v;
  } else {
    operand_set(o, i, v);
  }
}

/* Along the middle of (outer, n, inner), against a running double. */
static void check(int op, rdna_dtype dtype, int64_t outer, int64_t n, int64_t inner, bool in_place, int64_t offset,
                  int64_t out_offset) {
  int64_t shape[3] = {outer, n, inner}, count = outer * n * inner;
  operand x = operand_make(dtype, 3, shape, NULL, offset), out = operand_make(dtype, 3, shape, NULL, out_offset);
  double *v = malloc((size_t)count * sizeof *v + 1);
  assert_non_null(v);
  bool whole = dtype == RDNA_I32 || dtype == RDNA_I64;
  for (int64_t i = 0; i < count; i++) {
    double value = op == PROD ? 1 + (rdna__random_unit(&random_state) - 0.5) / 64 : rdna__random_normal(&random_state);
    set(&x, i, whole && op != PROD ? rint(9 * value) : whole ? (i % 3 ? 1 : -1) : value);
    v[i] = get(&x, i);
  }
  operand_upload(&x), operand_upload(&out);
  assert_ok(operators[op](stream, &x.tensor, in_place ? 1 : -2, in_place ? &x.tensor : &out.tensor));
  operand *result = in_place ? &x : &out;
  operand_download(result);
  double unit = whole || dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24;
  for (int64_t column = 0; column < outer * inner; column++) {
    double kept = op == PROD ? 1 : op == MAX ? -INFINITY : op == MIN ? INFINITY : 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
      int64_t at = column / inner * n * inner + i * inner + column % inner;
      size += op == SUM ? fabs(v[at]) : 0;
      kept = op == SUM ? kept + v[at] : op == PROD ? kept * v[at] : op == MAX ? fmax(kept, v[at]) : fmin(kept, v[at]);
      double got = get(result, at), scale = op == SUM ? size : op == PROD ? fabs(kept) : 0;
      /* a chain of at most all additions, which errs like a random walk, and the rounding of the result */
      double error = scale * unit * (8 * sqrt((double)i + 1) + 8), rounding = whole ? 0 : fabs(kept) * unit;
      if (dtype == RDNA_F16) rounding = fabs(kept) * 0x1p-11 + 0x1p-25;
      if (dtype == RDNA_BF16) rounding = fabs(kept) * 0x1p-8;
      if (!(fabs(got - kept) <= error + rounding)) {
        fail_msg("operator %d %s (%lld, %lld, %lld) column %lld value %lld: got %.9g, want %.9g", op,
                 rdna_dtype_name(dtype), (long long)outer, (long long)n, (long long)inner, (long long)column,
                 (long long)i, got, kept);
      }
    }
  }
  free(v);
  operand_free(&x), operand_free(&out);
}

static void shapes(void **state) {
  static const int64_t sizes[][3] = {{1, 1, 1},   {3, 7, 1},    {2, 1024, 1}, {5, 1025, 1},  {2, 4096, 1},
                                     {3, 9, 40},  {2, 300, 65}, {700, 3, 1},  {1, 33, 1000}, {2500, 1, 1},
                                     {99, 96, 1}, {37, 777, 1}, {5, 3001, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int t = 0; t < 6; t++) {
      for (int op = SUM; op <= MIN; op++)
        check(op, types[t], sizes[i][0], sizes[i][1], sizes[i][2], (i + t) % 2, t % 3, (t + (int)i) % 4);
    }
  }
}

/* Rows that are cut into segments. */
static void long_rows(void **state) {
  for (int t = 0; t < 6; t++) {
    for (int op = SUM; op <= MIN; op++) {
      check(op, types[t], 2, 40001, 1, t % 2, 0, 0);
      check(op, types[t], 3, 9001, 1, t % 2, t % 2, op % 2);
      if (t == 0) check(op, types[t], 1, 300000, 1, true, 0, 0);
    }
  }
}

static void a_nan_stays(void **state) {
  int64_t n = 50000;
  for (int op = SUM; op <= MIN; op++) {
    operand x = operand_make(RDNA_F32, 1, &n, NULL, 0);
    for (int64_t i = 0; i < n; i++) set(&x, i, i == 20000 ? NAN : 1);
    operand_upload(&x);
    assert_ok(operators[op](stream, &x.tensor, 0, &x.tensor));
    operand_download(&x);
    for (int64_t i = 0; i < n; i++) assert_int_equal(isnan(get(&x, i)) != 0, i >= 20000);
    operand_free(&x);
  }
}

/* Against sums of exponentials in double, relative to the largest; infinities where they are. */
static void logarithms(void **state) {
  static const int64_t sizes[][3] = {{1, 1, 1}, {3, 700, 1}, {2, 40000, 1}, {2, 90, 40}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (int t = 0; t < 3; t++) {
      int64_t n = sizes[s][1], inner = sizes[s][2];
      operand x = operand_make(types[t], 3, sizes[s], NULL, 0), out = operand_make(types[t], 3, sizes[s], NULL, 0);
      for (int64_t i = 0; i < sizes[s][0] * n * inner; i++)
        set(&x, i, i % 11 == 3 || i < inner ? -INFINITY : 5 * rdna__random_normal(&random_state));
      operand_upload(&x), operand_upload(&out);
      assert_ok(rdna_op_logcumsumexp(stream, &x.tensor, 1, &out.tensor));
      operand_download(&out);
      for (int64_t column = 0; column < sizes[s][0] * inner; column++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
          int64_t at = (column / inner * n + i) * inner + column % inner;
          sum += exp(get(&x, at));
          /* chains of a few dozen joins within a group and one for each tile, or for each value of a column */
          double want = log(sum), error = (inner > 1 ? 100 : 60) * 0x1p-20;
          assert_close(types[t], get(&out, at), want, error, "logcumsumexp", at);
        }
      }
      operand_free(&x), operand_free(&out);
    }
  }
  operand x = operand_make(RDNA_F32, 1, &(int64_t){4}, NULL, 0);
  set(&x, 0, 1), set(&x, 1, INFINITY), set(&x, 2, INFINITY), set(&x, 3, NAN);
  operand_upload(&x);
  assert_ok(rdna_op_logcumsumexp(stream, &x.tensor, 0, &x.tensor));
  operand_download(&x);
  assert_true(get(&x, 0) == 1 && isinf(get(&x, 1)) && isinf(get(&x, 2)) && isnan(get(&x, 3)));
  operand_free(&x);
}

static void refusals(void **state) {
  int64_t shape[2] = {3, 4}, gaps[2] = {5, 1};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand spaced = operand_make(RDNA_F32, 2, shape, gaps, 0), half = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand bytes = operand_make(RDNA_U8, 2, shape, NULL, 0);
  operand_upload(&out);
  assert_refused(rdna_op_cumsum(stream, &x.tensor, 2, &out.tensor), RDNA_INVALID_ARGUMENT, "dim is 2", "f32 (3, 4)");
  assert_refused(rdna_op_cumsum(stream, &x.tensor, 0, &half.tensor), RDNA_INVALID_ARGUMENT, "f16", "f32");
  assert_refused(rdna_op_cumsum(stream, &spaced.tensor, 0, &out.tensor), RDNA_UNSUPPORTED, "cumsum: x", "contiguous");
  assert_refused(rdna_op_cumsum(stream, &bytes.tensor, 0, &bytes.tensor), RDNA_UNSUPPORTED, "cumsum: x", "u8");
  assert_refused(rdna_op_cummax(NULL, &x.tensor, 0, &out.tensor), RDNA_INVALID_ARGUMENT, "stream", "NULL");
  operand_download(&out);
  for (size_t i = 0; i < out.bytes; i++) assert_int_equal(out.host[i], OPERAND_POISON);
  operand_free(&x), operand_free(&out), operand_free(&spaced), operand_free(&half), operand_free(&bytes);
}

static void empty(void **state) {
  int64_t shape[2] = {0, 4};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0);
  assert_ok(rdna_op_cumsum(stream, &x.tensor, 0, &x.tensor));
  operand_free(&x);
}

/* It has one dimension, and nothing to add. */
static void scalar(void **state) {
  operand x = operand_make(RDNA_F32, 0, NULL, NULL, 0);
  set(&x, 0, 3);
  operand_upload(&x);
  assert_ok(rdna_op_cumsum(stream, &x.tensor, -1, &x.tensor));
  operand_download(&x);
  assert_true(get(&x, 0) == 3);
  assert_refused(rdna_op_cumsum(stream, &x.tensor, 1, &x.tensor), RDNA_INVALID_ARGUMENT, "dim is 1", "-1 to 0");
  operand_free(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes),     cmocka_unit_test(long_rows), cmocka_unit_test(a_nan_stays),
      cmocka_unit_test(logarithms), cmocka_unit_test(refusals),  cmocka_unit_test(empty),
      cmocka_unit_test(scalar),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
