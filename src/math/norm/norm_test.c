#include "rdna/op/norm.h"
#include "math/common/test/operand.h"

static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
static const double epsilon = 1e-5;

enum norm { RMS, ADD_RMS, LAYER };
static const char *const norm_names[] = {"rms_norm", "add_rms_norm", "layer_norm"};

struct problem {
  enum norm norm;
  rdna_dtype dtype, weight_dtype; /* of x */
  rdna_dtype residual_dtype, out_dtype;
  int64_t outer, inner, cols; /* a tensor (outer, inner, cols) */
  int64_t gap, offset;        /* values between rows; before the first */
  bool weighted, biased, in_place, statistics;
  double mean;
};

struct operands {
  operand x, residual, weight, bias, out, mean, inverse;
};

/* A chain of additions no longer than cols / 4, and usually far shorter, then a few roundings. Each is off by half a
 * step of f32, of the sum of magnitudes. */
static double sum_error(int64_t cols) { return ((double)cols / 4 + 32) * 0x1p-24; }

static double value_or(const operand *o, int64_t i, double none) { return o->tensor.data ? operand_get(o, i) : none; }

static void check_row(const struct problem *p, const struct operands *o, const double *x, int64_t row_index) {
  double sum = 0, squares = 0, magnitude = 0;
  for (int64_t i = 0; i < p->cols; i++) sum += x[i], magnitude += fabs(x[i]);
  double mean = p->norm == LAYER ? sum / (double)p->cols : 0;
  for (int64_t i = 0; i < p->cols; i++) squares += (x[i] - mean) * (x[i] - mean);
  double deviation = sqrt(squares / (double)p->cols + epsilon), error = sum_error(p->cols);
  double mean_error = p->norm == LAYER ? error * magnitude / (double)p->cols : 0;
  if (p->norm == LAYER && p->statistics) {
    assert_close(RDNA_F32, operand_get(&o->mean, row_index), mean, mean_error, "mean", row_index);
    /* Each distance is off by what the mean is, which adds the square of that to their mean square. */
    double apart = (error + mean_error * mean_error / (deviation * deviation) + 4 * 0x1p-24) / deviation;
    assert_close(RDNA_F32, operand_get(&o->inverse, row_index), 1 / deviation, apart, "inverse", row_index);
  }
  for (int64_t i = 0; i < p->cols; i++) {
    double w = value_or(&o->weight, i, 1), b = value_or(&o->bias, i, 0), y = (x[i] - mean) / deviation * w;
    double bound = fabs(w) * mean_error / deviation + error * fabs(y) + 4 * 0x1p-24 * (fabs(y) + fabs(b));
    assert_close(p->out_dtype, operand_get(&o->out, row_index * (p->cols + p->gap) + i), y + b, bound,
                 norm_names[p->norm], i);
  }
}

static void run(const struct problem *p, struct operands *o) {
  const rdna_tensor *weight = p->weighted ? &o->weight.tensor : NULL, *bias = p->biased ? &o->bias.tensor : NULL;
  const rdna_tensor *out = p->in_place ? &o->x.tensor : &o->out.tensor;
  if (p->norm == RMS) assert_ok(rdna_op_rms_norm(stream, &o->x.tensor, weight, epsilon, out));
  if (p->norm == LAYER) {
    assert_ok(rdna_op_layer_norm(stream, &o->x.tensor, weight, bias, epsilon, out,
                                 p->statistics ? &o->mean.tensor : NULL, p->statistics ? &o->inverse.tensor : NULL));
  }
  if (p->norm == ADD_RMS) {
    assert_ok(rdna_op_add_rms_norm(stream, &o->x.tensor, &o->residual.tensor, weight, epsilon, out));
  }
}

static void make_operands(const struct problem *p, struct operands *o) {
  int64_t row = p->cols + p->gap;
  int64_t shape[] = {p->outer, p->inner, p->cols}, stride[] = {p->inner * row, row, 1};
  o->x = operand_make(p->dtype, 3, shape, stride, p->offset);
  o->residual = operand_make(p->residual_dtype, 3, shape, stride, p->offset);
  o->out = operand_make(p->out_dtype, 3, shape, stride, p->offset);
  o->weight = operand_make(p->weight_dtype, 1, &p->cols, NULL, p->offset);
  o->bias = operand_make(p->weight_dtype, 1, &p->cols, NULL, p->offset);
  const int64_t rows = p->outer * p->inner;
  o->mean = operand_make(RDNA_F32, 1, &rows, NULL, p->offset);
  o->inverse = operand_make(RDNA_F32, 1, &rows, NULL, p->offset);
  operand_upload(&o->mean);
  operand_upload(&o->inverse);
  for (int64_t i = 0; i < operand_span(&o->x); i++) {
    operand_set(&o->x, i, p->mean + rdna__random_normal(&random_state));
    operand_set(&o->residual, i, rdna__random_normal(&random_state));
  }
  operand_upload(&o->x);
  operand_upload(&o->residual);
  operand_upload(&o->out);
  operand_fill(&o->weight, 1);
  operand_fill(&o->bias, 1);
}

static void check(const struct problem *p) {
  struct operands o;
  int64_t row = p->cols + p->gap, rows = p->outer * p->inner;
  make_operands(p, &o);
  double *x = malloc((size_t)(rows * row + 1) * sizeof *x);
  for (int64_t i = 0; i < operand_span(&o.x); i++) {
    x[i] = operand_get(&o.x, i) + (p->norm == ADD_RMS ? operand_get(&o.residual, i) : 0);
  }
  run(p, &o);
  if (!p->weighted) o.weight.tensor.data = NULL;
  if (!p->biased) o.bias.tensor.data = NULL;
  operand_download(&o.x);
  operand_download(&o.residual);
  operand_download(&o.out);
  operand_download(&o.mean);
  operand_download(&o.inverse);
  operand kept = o.out;
  if (p->in_place) o.out = o.x;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; p->norm == ADD_RMS && i < p->cols; i++) { /* the norm is of the residual as it was stored */
      double stored = operand_get(&o.residual, r * row + i);
      assert_close(p->residual_dtype, stored, x[r * row + i], 0, "residual", i);
      x[r * row + i] = stored;
    }
    check_row(p, &o, x + r * row, r);
    for (int64_t i = p->cols; !p->in_place && r + 1 < rows && i < row; i++) {
      assert_true(operand_is_poison(&o.out, r * row + i));
    }
  }
  free(x);
  operand_free(&o.x);
  operand_free(&o.residual);
  operand_free(&kept);
  operand_free(&o.weight);
  operand_free(&o.bias);
  operand_free(&o.mean);
  operand_free(&o.inverse);
}

static void norms_match_double(void **state) {
  static const int64_t widths[] = {1, 8, 2048, 4096, 8192, 8200, 8191, 100000, 3001, 96};
  for (int norm = RMS; norm <= LAYER; norm++) {
    for (int t = 0; t < 3; t++) {
      for (int n = 0; n < 24; n++) {
        int64_t width = rdna__random_range(&random_state, 1, n % 5 == 0 ? 9000 : 400);
        struct problem p = {.norm = (enum norm)norm,
                            .dtype = float_types[t],
                            .weight_dtype = n % 2 ? RDNA_F32 : float_types[t],
                            .outer = rdna__random_range(&random_state, 1, 3),
                            .inner = rdna__random_range(&random_state, 1, 4),
                            .cols = n < 10       ? widths[n]
                                    : n % 4 == 1 ? width / 8 * 8 + 8
                                                 : width,
                            .gap = n < 10       ? 0
                                   : n % 3 == 1 ? 8
                                                : n % 3,
                            .offset = n % 6 == 5,
                            .weighted = n % 7 != 6,
                            .biased = norm == LAYER && n % 4 != 2,
                            .in_place = n % 3 == 1,
                            .statistics = n % 5 != 4,
                            .mean = norm == LAYER ? n % 4 : 0};
        p.residual_dtype = p.out_dtype = p.dtype;
        check(&p);
      }
    }
  }
}

/* Values are added up in f32, and results are of 16 bits. */
static void narrow_results_match_double(void **state) {
  static const int64_t widths[] = {1, 4, 1024, 4096, 8192, 8196, 8191, 20000, 3001, 0};
  for (int norm = RMS; norm <= ADD_RMS; norm++) {
    for (int n = 0; n < 36; n++) {
      struct problem p = {.norm = (enum norm)norm,
                          .dtype = RDNA_F32,
                          .weight_dtype = RDNA_F32,
                          .residual_dtype = RDNA_F32,
                          .out_dtype = n % 3 ? RDNA_F16 : RDNA_BF16,
                          .outer = rdna__random_range(&random_state, 1, 3),
                          .inner = rdna__random_range(&random_state, 1, 4),
                          .cols = n < 10 ? widths[n] : rdna__random_range(&random_state, 1, 3000),
                          .gap = n < 10       ? 0
                                 : n % 3 == 1 ? 8
                                              : n % 3,
                          .offset = n % 6 == 5,
                          .weighted = n % 7 != 6,
                          .mean = n % 5};
      if (n % 4 == 1 && norm == ADD_RMS) p.dtype = p.out_dtype, p.in_place = n % 8 == 1;
      if (n % 2) p.cols = p.cols / 4 * 4 + 4;
      check(&p);
    }
  }
}

/* A NaN or an infinity spoils its own row and no other. */
static void special_values_stay_in_their_row(void **state) {
  const int64_t shape[] = {4, 300};
  for (int norm = RMS; norm <= LAYER; norm++) {
    operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
    operand residual = operand_make(RDNA_F32, 2, shape, NULL, 0);
    operand_fill(&residual, 0);
    for (int64_t i = 0; i < 1200; i++) operand_set(&x, i, i < 900 ? 1 + (double)(i % 7) : 0);
    operand_set(&x, 10, (double)NAN);
    operand_set(&x, 310, (double)INFINITY);
    operand_upload(&x);
    operand_upload(&out);
    if (norm == RMS) assert_ok(rdna_op_rms_norm(stream, &x.tensor, NULL, epsilon, &out.tensor));
    if (norm == ADD_RMS)
      assert_ok(rdna_op_add_rms_norm(stream, &x.tensor, &residual.tensor, NULL, epsilon, &out.tensor));
    if (norm == LAYER) assert_ok(rdna_op_layer_norm(stream, &x.tensor, NULL, NULL, epsilon, &out.tensor, NULL, NULL));
    operand_download(&out);
    for (int64_t i = 0; i < 300; i++) {
      assert_true(isnan(operand_get(&out, i)));
      assert_true(norm == LAYER || i == 10 ? isnan(operand_get(&out, 300 + i)) : operand_get(&out, 300 + i) == 0);
      assert_true(isfinite(operand_get(&out, 600 + i)) && operand_get(&out, 600 + i) != 0);
      assert_true(operand_get(&out, 900 + i) == 0);
    }
    operand_free(&x);
    operand_free(&residual);
    operand_free(&out);
  }
}

static void empty_tensors_are_no_work(void **state) {
  const int64_t shapes[][2] = {{0, 5}, {3, 0}};
  for (int k = 0; k < 2; k++) {
    operand weight = operand_make(RDNA_F32, 1, &shapes[k][1], NULL, 0);
    rdna_tensor x = rdna_tensor_contiguous(NULL, RDNA_F32, 2, shapes[k]);
    assert_ok(rdna_op_rms_norm(stream, &x, &weight.tensor, epsilon, &x));
    assert_ok(rdna_op_add_rms_norm(stream, &x, &x, &weight.tensor, epsilon, &x));
    assert_ok(rdna_op_layer_norm(stream, &x, &weight.tensor, &weight.tensor, epsilon, &x, NULL, NULL));
    assert_ok(rdna_stream_synchronize(stream));
    operand_free(&weight);
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t shape[] = {4, 6}, other[] = {6, 4}, narrow[] = {4};
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), r = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand out = operand_make(RDNA_F32, 2, shape, NULL, 0), t = operand_make(RDNA_F32, 2, other, NULL, 0);
  operand w = operand_make(RDNA_F32, 1, &shape[1], NULL, 0), w4 = operand_make(RDNA_F32, 1, narrow, NULL, 0);
  operand h = operand_make(RDNA_F16, 1, &shape[1], NULL, 0), i = operand_make(RDNA_I32, 2, shape, NULL, 0);
  operand_upload(&out);
  const rdna_tensor *X = &x.tensor, *W = &w.tensor, *O = &out.tensor;
  assert_refused(rdna_op_rms_norm(stream, X, &w4.tensor, epsilon, O), bad, "rms_norm: weight is f32 (4)", "be 6");
  assert_refused(rdna_op_rms_norm(stream, X, &h.tensor, epsilon, O), bad, "weight is f16", "out is f32");
  assert_refused(rdna_op_rms_norm(stream, &t.tensor, W, epsilon, O), bad, "x is f32 (6, 4)", "(4, 6)");
  assert_refused(rdna_op_rms_norm(stream, NULL, W, epsilon, O), bad, "rms_norm: x", "NULL");
  assert_refused(rdna_op_rms_norm(stream, X, W, epsilon, NULL), bad, "rms_norm: out", "NULL");
  assert_refused(rdna_op_rms_norm(NULL, X, W, epsilon, O), bad, "rms_norm", "stream is NULL");
  assert_refused(rdna_op_rms_norm(stream, X, W, -1, O), bad, "rms_norm: epsilon", "-1");
  assert_refused(rdna_op_layer_norm(stream, X, W, NULL, NAN, O, NULL, NULL), bad, "layer_norm: epsilon", "nan");
  assert_refused(rdna_op_layer_norm(stream, X, W, &w4.tensor, epsilon, O, NULL, NULL), bad, "layer_norm: bias", "be 6");
  const rdna_tensor rows = rdna_tensor_contiguous(t.tensor.data, RDNA_F32, 1, shape), *T = &t.tensor;
  assert_refused(rdna_op_layer_norm(stream, X, W, NULL, epsilon, O, T, NULL), bad, "layer_norm: mean", "rank");
  assert_refused(rdna_op_layer_norm(stream, X, W, NULL, epsilon, O, NULL, W), bad, "inverse", "must be 4");
  assert_refused(rdna_op_layer_norm(stream, X, W, NULL, epsilon, O, &rows, &rows), bad, "inverse", "mean");
  assert_refused(rdna_op_rms_norm(stream, &i.tensor, W, epsilon, &i.tensor), RDNA_UNSUPPORTED, "out is i32", "bf16");
  assert_refused(rdna_op_add_rms_norm(stream, X, X, W, epsilon, O), bad, "add_rms_norm: residual", "x at");
  assert_refused(rdna_op_add_rms_norm(stream, X, &r.tensor, W, epsilon, &r.tensor), bad, "residual", "apart");
  assert_refused(rdna_op_add_rms_norm(stream, X, &t.tensor, W, epsilon, O), bad, "residual is f32 (6, 4)", "(4, 6)");
  operand n = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand_upload(&n);
  const rdna_tensor *N = &n.tensor;
  assert_refused(rdna_op_rms_norm(stream, X, &h.tensor, epsilon, N), bad, "weight is f16", "f32 becomes f16", "f32");
  assert_refused(rdna_op_rms_norm(stream, N, W, epsilon, O), bad, "x is f16", "out is f32");
  assert_refused(rdna_op_add_rms_norm(stream, X, N, W, epsilon, N), bad, "x is f32", "out is f16");
  assert_refused(rdna_op_add_rms_norm(stream, N, X, W, epsilon, X), bad, "x is f16", "out is f32");
  assert_refused(rdna_op_add_rms_norm(stream, X, X, W, epsilon, N), bad, "add_rms_norm: residual", "x at");
  rdna_tensor v = n.tensor;
  v.dtype = RDNA_BF16;
  assert_refused(rdna_op_add_rms_norm(stream, N, X, W, epsilon, &v), bad, "x is f16", "out bf16");
  v.data = x.tensor.data;
  assert_refused(rdna_op_rms_norm(stream, X, W, epsilon, &v), bad, "out at", "overlap");
  v.data = r.tensor.data;
  assert_refused(rdna_op_add_rms_norm(stream, X, &r.tensor, W, epsilon, &v), bad, "residual at", "overlap");
  operand_download(&n);
  for (int64_t k = 0; k < 24; k++) assert_true(operand_is_poison(&n, k));
  operand_free(&n);
  v = out.tensor;
  v.stride[0] = 5;
  assert_refused(rdna_op_rms_norm(stream, X, W, epsilon, &v), bad, "out is f32 (4, 6)", "rows 5 apart");
  v = x.tensor;
  v.stride[0] = 1, v.stride[1] = 4;
  assert_refused(rdna_op_rms_norm(stream, &v, W, epsilon, O), RDNA_UNSUPPORTED, "x is f32", "stride 4");
  v = out.tensor;
  v.data = w.tensor.data;
  assert_refused(rdna_op_rms_norm(stream, X, W, epsilon, &v), bad, "weight", "overlap");
  operand_download(&out);
  for (int64_t k = 0; k < 24; k++) assert_true(operand_is_poison(&out, k));
  operand *all[] = {&x, &r, &out, &t, &w, &w4, &h, &i};
  for (int k = 0; k < 8; k++) operand_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(norms_match_double),
      cmocka_unit_test(narrow_results_match_double),
      cmocka_unit_test(special_values_stay_in_their_row),
      cmocka_unit_test(empty_tensors_are_no_work),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
