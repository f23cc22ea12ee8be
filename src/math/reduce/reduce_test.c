#include "rdna/op/reduce.h"

#include "base/random.h"
#include "math/common/case/fill.h"
#include "math/common/test/operand.h"

enum { MOST = 1 << 18 };

static double get(rdna_dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
    case RDNA_F64:
      return ((const double *)data)[i];
    case RDNA_I32:
      return ((const int32_t *)data)[i];
    case RDNA_I64:
      return (double)((const int64_t *)data)[i];
    case RDNA_U8:
    case RDNA_BOOL:
      return ((const uint8_t *)data)[i];
    default:
      return (double)case_get(dtype, data, i);
  }
}

static void set(rdna_dtype dtype, void *data, int64_t i, double v) {
  switch (dtype) {
    case RDNA_F64:
      ((double *)data)[i] = v;
      break;
    case RDNA_I32:
      ((int32_t *)data)[i] = (int32_t)v;
      break;
    case RDNA_I64:
      ((int64_t *)data)[i] = (int64_t)v;
      break;
    case RDNA_U8:
    case RDNA_BOOL:
      ((uint8_t *)data)[i] = (uint8_t)v;
      break;
    default:
      case_set(dtype, data, i, (float)v);
  }
}

/* The definition, in double, of |n| values; |out_scale| is what a relative error is relative to. */
static double definition(rdna_reduction what, double p, const double *v, int64_t n, double *out_scale) {
  double sum = 0, size = 0, product = 1, squares = 0, top = -INFINITY, powers = 0, exponentials = 0, mean;
  bool nan = false, any = false, all = true;
  int64_t first_top = 0, first_low = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += v[i], size += fabs(v[i]), product *= v[i];
    nan = nan || isnan(v[i]), any = any || v[i] != 0, all = all && v[i] != 0;
    if (v[i] > v[first_top] || (isnan(v[i]) && !isnan(v[first_top]))) first_top = i;
    if (v[i] < v[first_low] || (isnan(v[i]) && !isnan(v[first_low]))) first_low = i;
    if (v[i] > top) top = v[i];
    if (what == RDNA_REDUCTION_NORM) powers += p == 0 ? v[i] != 0 : pow(fabs(v[i]), p);
  }
  mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) {
    squares += (v[i] - mean) * (v[i] - mean);
    if (what == RDNA_REDUCTION_LOGSUMEXP) exponentials += exp(v[i] - top);
  }
  *out_scale = size;
  switch (what) {
    case RDNA_REDUCTION_SUM:
      return sum;
    case RDNA_REDUCTION_MEAN:
      *out_scale = size / (double)n;
      return mean;
    case RDNA_REDUCTION_PROD:
      *out_scale = fabs(product);
      return product;
    case RDNA_REDUCTION_MIN:
      *out_scale = 0;
      return v[first_low];
    case RDNA_REDUCTION_MAX:
      *out_scale = 0;
      return v[first_top];
    case RDNA_REDUCTION_ARGMIN:
      *out_scale = 0;
      return (double)first_low;
    case RDNA_REDUCTION_ARGMAX:
      *out_scale = 0;
      return (double)first_top;
    case RDNA_REDUCTION_NORM:
      if (isinf(p)) {
        double largest = 0;
        for (int64_t i = 0; i < n; i++) largest = fabs(v[i]) > largest ? fabs(v[i]) : largest;
        *out_scale = 0;
        return largest;
      }
      *out_scale = p == 0 ? 0 : pow(powers, 1 / p);
      return p == 0 ? powers : pow(powers, 1 / p);
    case RDNA_REDUCTION_ANY:
      *out_scale = 0;
      return any;
    case RDNA_REDUCTION_ALL:
      *out_scale = 0;
      return all;
    case RDNA_REDUCTION_VAR:
    case RDNA_REDUCTION_STD: {
      double below = (double)n - p, variance = squares / (below > 0 ? below : 0);
      variance = what == RDNA_REDUCTION_STD ? sqrt(variance) : variance;
      *out_scale = fabs(variance);
      return variance;
    }
    default:
      *out_scale = fabs(top + log(exponentials)) + 1;
      return top + log(exponentials);
  }
}

struct shape {
  int rank;
  int64_t size[RDNA_MAX_RANK];
  uint32_t dims;
  int order; /* how the dimensions lie in memory: as they are, reversed, with gaps */
};

static void make_strides(const struct shape *shape, int64_t *stride) {
  int64_t next = 1;
  for (int k = 0; k < shape->rank; k++) {
    int d = shape->order == 1 ? k : shape->rank - 1 - k;
    stride[d] = next;
    next *= shape->size[d] + (shape->order == 2 ? 1 : 0);
  }
}

/* The values of output |out|, in order. Returns how many. */
static int64_t collect(const struct shape *shape, const int64_t *stride, rdna_dtype dtype, const void *x, int64_t out,
                       double *v) {
  int64_t base = 0, count = 1;
  for (int d = shape->rank - 1; d >= 0; d--) {
    if (shape->dims >> d & 1) {
      count *= shape->size[d];
    } else {
      base += out % shape->size[d] * stride[d];
      out /= shape->size[d];
    }
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t at = base, left = i;
    for (int d = shape->rank - 1; d >= 0; d--) {
      if (!(shape->dims >> d & 1)) continue;
      at += left % shape->size[d] * stride[d];
      left /= shape->size[d];
    }
    v[i] = get(dtype, x, at);
  }
  return count;
}

/* On an emulated card, where they take nearly all of the time, every fifth of the calls with so many values is made.
 * The loops below have 3, 12, 13, 24 and 48 calls for a shape, none a multiple of 5: each reduction meets each type. */
enum { MANY = 50000, SHARE = 5 };
static int calls;

static bool takes_turn(const struct shape *shape) {
  int64_t values = 1;
  for (int d = 0; d < shape->rank; d++) values *= shape->size[d];
  return values < MANY || !rdna_device_get_info(device)->emulated || calls++ % SHARE == 0;
}

static void check(const struct shape *shape, rdna_reduction what, double p, rdna_dtype dtype, rdna_dtype out_dtype,
                  bool keep, double lowest, double highest) {
  if (!takes_turn(shape)) return;
  int64_t stride[RDNA_MAX_RANK], out_shape[RDNA_MAX_RANK];
  int out_rank = 0;
  make_strides(shape, stride);
  for (int d = 0; d < shape->rank; d++) {
    bool reduced = shape->dims >> d & 1;
    if (!reduced || keep) out_shape[out_rank++] = reduced ? 1 : shape->size[d];
  }
  operand x = operand_make(dtype, shape->rank, shape->size, stride, shape->order);
  operand out = operand_make(out_dtype, out_rank, out_shape, NULL, 1);
  int64_t values = (int64_t)(x.bytes / rdna_dtype_block_bytes(dtype));
  for (int64_t i = 0; i < values; i++) {
    double v = lowest + (highest - lowest) * rdna__random_unit(&random_state);
    bool whole = dtype == RDNA_I32 || dtype == RDNA_I64 || dtype == RDNA_U8 || dtype == RDNA_BOOL;
    bool few = whole || what == RDNA_REDUCTION_ARGMAX || what == RDNA_REDUCTION_ANY || what == RDNA_REDUCTION_ALL;
    set(dtype, x.host, i, few ? rint(v) : v);
  }
  operand_upload(&x), operand_upload(&out);
  assert_ok(rdna_op_reduce(stream, what, &x.tensor, shape->dims, p, &out.tensor));
  operand_download(&out);
  double *v = malloc(MOST * sizeof *v);
  assert_non_null(v);
  double unit = dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24;
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    double scale, got = get(out_dtype, out.host, i);
    int64_t n = collect(shape, stride, dtype, x.host, i, v);
    double want = definition(what, p, v, n, &scale);
    /* a chain of additions errs like a random walk; 8 times that is the bound, and the output's rounding */
    double bound = scale * unit * (8 * sqrt((double)n) + 64);
    if (what == RDNA_REDUCTION_NORM && p != 0 && p != 1 && p != 2) bound += scale * unit * 0x1p8;
    if (out_dtype == RDNA_F16) bound += fabs(want) * 0x1p-11 + 0x1p-25;
    if (out_dtype == RDNA_BF16) bound += fabs(want) * 0x1p-8;
    if (!(isnan(want) ? isnan(got) : got == want || fabs(got - want) <= bound)) {
      fail_msg("reduction %d of %s dims 0x%x order %d, result %lld of %lld values: got %.9g, want %.9g +- %.3g", what,
               rdna_dtype_name(dtype), shape->dims, shape->order, (long long)i, (long long)n, got, want, bound);
    }
  }
  free(v);
  operand_free(&x), operand_free(&out);
}

static const struct shape shapes[] = {
    {1, {1}, 1, 0},
    {1, {100001}, 1, 0},
    {2, {7, 513}, 2, 0},
    {2, {513, 70}, 1, 0},
    {2, {5000, 33}, 1, 2},
    {3, {4, 50, 24}, 2, 0},
    {3, {4, 50, 24}, 5, 0},
    {3, {4, 50, 24}, 5, 1},
    {4, {3, 8, 5, 16}, 13, 0},
    {4, {3, 8, 5, 16}, 10, 2},
    {3, {6, 1, 40}, 7, 2},
    {3, {6, 7, 9}, 0, 0},
    {5, {2, 3, 4, 5, 6}, 21, 1},
    {2, {3, 40000}, 2, 0},
    {2, {2, 4096}, 2, 0},
    {0, {0}, 0, 0},
    {3, {2, 9000, 40}, 3, 0},
    {2, {300, 257}, 1, 0},
    {2, {4000, 33}, 1, 0},
    {2, {1026, 96}, 1, 0},
    {2, {512, 257}, 1, 0},
    {3, {3, 301, 41}, 2, 2},
    {2, {67, 21}, 2, 2},
    {2, {4, 5003}, 2, 2},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const rdna_dtype floats[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};
static const rdna_dtype wholes[] = {RDNA_I32, RDNA_I64, RDNA_U8, RDNA_BOOL};

static void sums(void **state) {
  for (int i = 0; i < SHAPES; i++) {
    for (int t = 0; t < 4; t++) {
      rdna_dtype to = t == 1 && i % 2 ? RDNA_F32 : floats[t];
      check(&shapes[i], RDNA_REDUCTION_SUM, 0, floats[t], to, i % 2, -1, 1.5);
      check(&shapes[i], RDNA_REDUCTION_MEAN, 0, floats[t], to, i % 2, -1, 1.5);
      check(&shapes[i], RDNA_REDUCTION_SUM, 0, wholes[t], RDNA_I64, i % 2, wholes[t] == RDNA_BOOL ? 0 : 3,
            t == 3 ? 1 : 90);
    }
  }
}

/* So many outputs side by side that a thread takes some alone. */
static void short_columns(void **state) {
  static const struct shape wide[] = {{2, {3, 131072}, 1, 0}, {2, {9, 131072 + 64}, 1, 0}, {3, {2, 2, 131072}, 1, 0}};
  for (int i = 0; i < 3; i++) {
    calls = SHARE - i; /* shape i has its turn in check i */
    check(&wide[i], RDNA_REDUCTION_SUM, 0, RDNA_BF16, RDNA_BF16, false, -1, 1.5);
    check(&wide[i], RDNA_REDUCTION_MEAN, 0, RDNA_F16, i ? RDNA_F32 : RDNA_F16, false, -1, 1.5);
    check(&wide[i], RDNA_REDUCTION_SUM, 0, RDNA_F32, RDNA_F32, false, -1, 1.5);
  }
}

static void products(void **state) {
  for (int i = 0; i < SHAPES; i++) {
    check(&shapes[i], RDNA_REDUCTION_PROD, 0, RDNA_F32, RDNA_F32, false, 0.99, 1.01);
    check(&shapes[i], RDNA_REDUCTION_PROD, 0, RDNA_F64, RDNA_F64, false, 0.99, 1.01);
    check(&shapes[i], RDNA_REDUCTION_PROD, 0, RDNA_I32, RDNA_I64, false, 1, 1.4);
  }
}

static void extremes(void **state) {
  for (int i = 0; i < SHAPES; i++) {
    for (int t = 0; t < 8; t++) {
      rdna_dtype dtype = t < 4 ? floats[t] : wholes[t - 4];
      double low = dtype == RDNA_U8 || dtype == RDNA_BOOL ? 0 : -90, high = dtype == RDNA_BOOL ? 1 : 90;
      check(&shapes[i], RDNA_REDUCTION_MIN, 0, dtype, dtype, i % 2, low, high);
      check(&shapes[i], RDNA_REDUCTION_MAX, 0, dtype, dtype, i % 2, low, high);
      check(&shapes[i], RDNA_REDUCTION_ARGMAX, 0, dtype, RDNA_I64, i % 2, low, high);
      check(&shapes[i], RDNA_REDUCTION_ARGMIN, 0, dtype, RDNA_I32, i % 2, low, high);
      check(&shapes[i], RDNA_REDUCTION_ANY, 0, dtype, RDNA_BOOL, i % 2, 0, 0.50001);
      check(&shapes[i], RDNA_REDUCTION_ALL, 0, dtype, RDNA_BOOL, i % 2, 0.49, 1);
    }
  }
}

static void norms(void **state) {
  static const double powers[] = {0, 1, 2, 3.5, 0.5, INFINITY};
  for (int i = 0; i < SHAPES; i++) {
    for (int t = 0; t < 4; t++) {
      for (int p = 0; p < 6; p++) {
        check(&shapes[i], RDNA_REDUCTION_NORM, powers[p], floats[t], t < 3 ? RDNA_F32 : RDNA_F64, false, -0.3, 0.6);
      }
    }
  }
}

/* A mean a hundred times the deviation: sums of squares would lose four digits. */
static void variances(void **state) {
  for (int i = 0; i < SHAPES; i++) {
    for (int t = 0; t < 4; t++) {
      rdna_dtype to = t < 3 ? RDNA_F32 : RDNA_F64;
      check(&shapes[i], RDNA_REDUCTION_VAR, 1, floats[t], to, false, -4, 5);
      check(&shapes[i], RDNA_REDUCTION_STD, 0, floats[t], to, true, -4, 5);
      if (t == 3) check(&shapes[i], RDNA_REDUCTION_VAR, 0.5, floats[t], to, true, 1e6, 1e6 + 1e5);
      check(&shapes[i], RDNA_REDUCTION_LOGSUMEXP, 0, floats[t], to, false, -20, 30);
    }
  }
}

/* Infinite values, and none, in f64, whose passes each meet them. */
static void special_values_of_f64(void **state) {
  static const double rows[][2] = {
      {-INFINITY, -INFINITY}, {INFINITY, 1}, {NAN, 1}, {2, -INFINITY}, {INFINITY, -INFINITY}};
  static const double wants[][2] = {
      {-INFINITY, INFINITY}, {INFINITY, INFINITY}, {NAN, NAN}, {2, INFINITY}, {INFINITY, INFINITY}};
  enum { ROWS = sizeof rows / sizeof rows[0] };
  const int64_t shape[] = {ROWS, 2}, out_shape[] = {ROWS}, nothing[] = {ROWS, 0};
  operand x = operand_make(RDNA_F64, 2, shape, NULL, 0), out = operand_make(RDNA_F64, 1, out_shape, NULL, 0);
  operand none = operand_make(RDNA_F64, 2, nothing, NULL, 0);
  for (int i = 0; i < 2 * ROWS; i++) set(RDNA_F64, x.host, i, rows[i / 2][i % 2]);
  operand_upload(&x), operand_upload(&out);
  for (int of_norm = 0; of_norm < 2; of_norm++) {
    rdna_reduction what = of_norm ? RDNA_REDUCTION_NORM : RDNA_REDUCTION_LOGSUMEXP;
    assert_ok(rdna_op_reduce(stream, what, &x.tensor, 2, 3, &out.tensor));
    operand_download(&out);
    for (int i = 0; i < ROWS; i++) {
      double got = get(RDNA_F64, out.host, i), want = wants[i][of_norm];
      if (isnan(want) ? !isnan(got) : got != want) fail_msg("%d of row %d is %g, not %g", what, i, got, want);
    }
    assert_ok(rdna_op_reduce(stream, what, &none.tensor, 2, 3, &out.tensor));
    operand_download(&out);
    for (int i = 0; i < ROWS; i++) assert_true(get(RDNA_F64, out.host, i) == (of_norm ? 0 : -(double)INFINITY));
  }
  operand_free(&x), operand_free(&out), operand_free(&none);
}

/* An infinite value has no distance from the mean, wherever it stands. */
static void variance_of_infinite_values(void **state) {
  enum { ROWS = 6, COLS = 70 };
  static const int places[ROWS] = {0, 1, 35, 64, COLS - 1, -1};
  const int64_t shape[] = {ROWS, COLS}, out_shape[] = {ROWS};
  for (int t = 0; t < 4; t++) {
    operand x = operand_make(floats[t], 2, shape, NULL, 0), out = operand_make(floats[t], 1, out_shape, NULL, 0);
    for (int i = 0; i < ROWS * COLS; i++) {
      set(floats[t], x.host, i, i % COLS == places[i / COLS] ? (double)INFINITY * (i % 2 ? 1 : -1) : i % 3);
    }
    operand_upload(&x), operand_upload(&out);
    for (rdna_reduction what = RDNA_REDUCTION_VAR; what <= RDNA_REDUCTION_STD; what++) {
      assert_ok(rdna_op_reduce(stream, what, &x.tensor, 2, 1, &out.tensor));
      operand_download(&out);
      for (int i = 0; i < ROWS; i++) assert_true(!!isnan(get(floats[t], out.host, i)) == (places[i] >= 0));
    }
    operand_free(&x), operand_free(&out);
  }
}

/* Cancellation: the variance of 1000 +- 1 is off by at most what the mean's own rounding brings in. */
static void variance_far_from_zero(void **state) {
  enum { N = 100000 };
  int64_t n = N;
  operand x = operand_make(RDNA_F32, 1, &n, NULL, 0), out = operand_make(RDNA_F32, 0, NULL, NULL, 0);
  for (int i = 0; i < N; i++) ((float *)x.host)[i] = 1000.0f + (float)(i % 3 - 1);
  operand_upload(&x), operand_upload(&out);
  assert_ok(rdna_op_reduce(stream, RDNA_REDUCTION_VAR, &x.tensor, 1, 0, &out.tensor));
  operand_download(&out);
  assert_true(fabs((double)*(float *)out.host - 2.0 / 3) < 1e-4);
  operand_free(&x), operand_free(&out);
}

static void nan_wins_and_first_of_equals(void **state) {
  static const int64_t lengths[] = {4, 7, 1000, 2049, 65537, 128256};
  const int64_t one = 1;
  for (int n = 0; n < 12; n++) {
    int64_t shape[] = {1, lengths[n / 2]}, middle = shape[1] / 2, last = shape[1] - 1, at;
    bool with_nan = n % 2;
    operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_I64, 1, &one, NULL, 0);
    float *v = (float *)x.host;
    for (int64_t i = 0; i <= last; i++) v[i] = (float)(i % 5);
    v[0] = 7, v[middle - 1] = -2, v[last] = with_nan ? NAN : -2, v[middle] = with_nan ? NAN : 7;
    operand_upload(&x), operand_upload(&out);
    assert_ok(rdna_op_reduce(stream, RDNA_REDUCTION_ARGMAX, &x.tensor, 2, 0, &out.tensor));
    operand_download(&out);
    memcpy(&at, out.host, sizeof at);
    assert_int_equal(at, with_nan ? middle : 0);
    assert_ok(rdna_op_reduce(stream, RDNA_REDUCTION_ARGMIN, &x.tensor, 2, 0, &out.tensor));
    operand_download(&out);
    memcpy(&at, out.host, sizeof at);
    assert_int_equal(at, with_nan ? middle : middle - 1);
    operand_free(&x), operand_free(&out);
  }
}

/* A sum of small integers is exact in any order. */
static void exact_sums(void **state) {
  const int64_t shape[] = {1, 100003}, one = 1;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 1, &one, NULL, 0);
  double want = 0;
  for (int64_t i = 0; i < shape[1]; i++) want += ((float *)x.host)[i] = (float)(i % 16 + 1);
  operand_upload(&x), operand_upload(&out);
  assert_ok(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &x.tensor, 2, 0, &out.tensor));
  operand_download(&out);
  assert_true(operand_get(&out, 0) == want);
  ((float *)x.host)[70000] = NAN;
  operand_upload(&x);
  for (rdna_reduction what = RDNA_REDUCTION_SUM; what <= RDNA_REDUCTION_MAX; what++) {
    assert_ok(rdna_op_reduce(stream, what, &x.tensor, 2, 0, &out.tensor));
    operand_download(&out);
    assert_true(isnan(operand_get(&out, 0)));
  }
  operand_free(&x), operand_free(&out);
}

/* Of nothing but one value, be it the least that there is, the first. */
static void first_of_infinite_values(void **state) {
  static const int64_t lengths[] = {1, 5, 21, 700, 5003};
  for (int n = 0; n < 20; n++) {
    rdna_dtype dtype = floats[n % 4];
    int64_t shape[] = {3, lengths[n / 4]}, out_shape[] = {3};
    operand x = operand_make(dtype, 2, shape, NULL, 0), out = operand_make(RDNA_I64, 1, out_shape, NULL, 0);
    for (int64_t i = 0; i < 3 * shape[1]; i++) set(dtype, x.host, i, i / shape[1] == 1 ? -INFINITY : INFINITY);
    operand_upload(&x);
    for (rdna_reduction what = RDNA_REDUCTION_ARGMIN; what <= RDNA_REDUCTION_ARGMAX; what++) {
      operand_upload(&out);
      assert_ok(rdna_op_reduce(stream, what, &x.tensor, 2, 0, &out.tensor));
      operand_download(&out);
      for (int i = 0; i < 3; i++) assert_int_equal(((int64_t *)out.host)[i], 0);
    }
    operand_free(&x), operand_free(&out);
  }
}

static void nothing_to_reduce(void **state) {
  static const struct {
    rdna_reduction what;
    double want;
  } answers[] = {{RDNA_REDUCTION_SUM, 0},  {RDNA_REDUCTION_MEAN, NAN}, {RDNA_REDUCTION_PROD, 1},
                 {RDNA_REDUCTION_NORM, 0}, {RDNA_REDUCTION_VAR, NAN},  {RDNA_REDUCTION_LOGSUMEXP, -INFINITY}};
  int64_t shape[2] = {3, 0}, three = 3;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 1, &three, NULL, 0);
  operand flags = operand_make(RDNA_BOOL, 1, &three, NULL, 0);
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    operand_upload(&out);
    assert_ok(rdna_op_reduce(stream, answers[i].what, &x.tensor, 2, 2, &out.tensor));
    operand_download(&out);
    for (int j = 0; j < 3; j++) {
      double got = (double)((float *)out.host)[j];
      assert_true(isnan(answers[i].want) ? isnan(got) : got == answers[i].want);
    }
  }
  for (int all = 0; all < 2; all++) {
    operand_upload(&flags);
    assert_ok(rdna_op_reduce(stream, all ? RDNA_REDUCTION_ALL : RDNA_REDUCTION_ANY, &x.tensor, 2, 0, &flags.tensor));
    operand_download(&flags);
    for (int j = 0; j < 3; j++) assert_int_equal(flags.host[j], all);
  }
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_MAX, &x.tensor, 2, 0, &out.tensor), RDNA_INVALID_ARGUMENT,
                 "reduce_max", "f32 (3, 0)");
  operand_free(&x), operand_free(&out), operand_free(&flags);
}

static void refusals(void **state) {
  int64_t shape[2] = {3, 4}, three = 3;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 1, &three, NULL, 0);
  operand whole = operand_make(RDNA_I32, 2, shape, NULL, 0);
  rdna_tensor *to = &out.tensor;
  operand_upload(&out);
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &x.tensor, 1, 0, to), RDNA_INVALID_ARGUMENT, "f32 (3, 4)",
                 "f32 (3)");
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &x.tensor, 4, 0, to), RDNA_INVALID_ARGUMENT, "0x4",
                 "rank 2");
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_ARGMAX, &x.tensor, 2, 0, to), RDNA_INVALID_ARGUMENT,
                 "reduce_argmax", "out is f32");
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_MEAN, &whole.tensor, 2, 0, to), RDNA_UNSUPPORTED, "reduce_mean",
                 "i32");
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_NORM, &x.tensor, 2, -1, to), RDNA_INVALID_ARGUMENT, "parameter",
                 "-1");
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_VAR, &x.tensor, 2, NAN, to), RDNA_INVALID_ARGUMENT, "correction",
                 "nan");
  assert_refused(rdna_op_reduce(stream, (rdna_reduction)99, &x.tensor, 2, 0, to), RDNA_INVALID_ARGUMENT, "99", "12");
  assert_refused(rdna_op_reduce(NULL, RDNA_REDUCTION_SUM, &x.tensor, 2, 0, to), RDNA_INVALID_ARGUMENT, "stream",
                 "NULL");
  rdna_tensor many = {x.tensor.data, RDNA_F32, 2, {3, (INT64_C(1) << 31) + 1}, {1, 0}}, places = *to;
  places.dtype = RDNA_I32;
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_ARGMIN, &many, 2, 0, &places), RDNA_INVALID_ARGUMENT,
                 "2147483647", "2147483649");
  rdna_tensor inside = rdna_tensor_contiguous(x.tensor.data, RDNA_F32, 1, &three);
  assert_refused(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &x.tensor, 2, 0, &inside), RDNA_INVALID_ARGUMENT, "out",
                 "overlap");
  operand_download(&out);
  for (size_t i = 0; i < out.bytes; i++) assert_int_equal(out.host[i], OPERAND_POISON);
  operand_free(&x), operand_free(&out), operand_free(&whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums),
      cmocka_unit_test(short_columns),
      cmocka_unit_test(products),
      cmocka_unit_test(extremes),
      cmocka_unit_test(norms),
      cmocka_unit_test(variances),
      cmocka_unit_test(special_values_of_f64),
      cmocka_unit_test(variance_of_infinite_values),
      cmocka_unit_test(variance_far_from_zero),
      cmocka_unit_test(nan_wins_and_first_of_equals),
      cmocka_unit_test(exact_sums),
      cmocka_unit_test(first_of_infinite_values),
      cmocka_unit_test(nothing_to_reduce),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
