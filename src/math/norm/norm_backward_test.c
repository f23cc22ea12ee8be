#include "math/common/test/operand.h"
#include "rdna/op/norm.h"

static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
static const double epsilon = 1e-5;

struct problem {
  rdna_dtype dtype, weight_dtype;
  int64_t rows, cols, gap, offset;
  bool centred, weighted, in_place, given; /* given: layer norm's mean and 1 / deviation, not epsilon */
  bool apart;                              /* dx begins elsewhere */
};

struct operands {
  operand dout, x, weight, dx, dweight, dbias, mean, inverse;
};

static double sum_error(int64_t n) { return ((double)n / 4 + 64) * 0x1p-24; }

/* Adds row |r| to the columns' sums and their magnitudes, and compares its dx; |out| is what holds dx. */
static void check_row(const struct problem *p, const struct operands *o, const operand *out, const double *dout,
                      const double *x, int64_t r, double *dweight, double *dbias, double *reach) {
  double n = (double)p->cols, sum = 0, squares = 0, magnitude = 0, error = sum_error(p->cols);
  for (int64_t i = 0; i < p->cols; i++) sum += x[i], magnitude += fabs(x[i]);
  double mean = p->centred ? sum / n : 0;
  for (int64_t i = 0; i < p->cols; i++) squares += (x[i] - mean) * (x[i] - mean);
  double inverse = 1 / sqrt(squares / n + epsilon), g_mean = 0, gy_mean = 0, g_reach = 0, gy_reach = 0, top = 0;
  for (int64_t i = 0; i < p->cols; i++) {
    double y = (x[i] - mean) * inverse, g = dout[i] * (p->weighted ? operand_get(&o->weight, i) : 1);
    g_mean += g / n, gy_mean += g * y / n, g_reach += fabs(g) / n, gy_reach += fabs(g * y) / n;
    top = fmax(top, fabs(y));
  }
  if (!p->centred) g_mean = 0;
  double y_error = error * (p->centred ? magnitude / n * inverse : 0) + error * top;
  for (int64_t i = 0; i < p->cols; i++) {
    double y = (x[i] - mean) * inverse, g = dout[i] * (p->weighted ? operand_get(&o->weight, i) : 1);
    double bound = inverse * (error * (fabs(g) + g_reach) + fabs(y) * (error * gy_reach + y_error * g_reach) +
                              2 * y_error * gy_reach);
    assert_close(p->dtype, operand_get(out, r * (p->cols + p->gap) + i), inverse * (g - g_mean - y * gy_mean), bound,
                 "dx", i);
    dweight[i] += dout[i] * y;
    dbias[i] += dout[i];
    reach[i] += fabs(dout[i]) * (y_error + (fabs(y) + 1) * 0x1p-24 * (double)(p->rows + 8));
  }
}

static void run(const struct problem *p, const struct operands *o) {
  const rdna_tensor *weight = p->weighted ? &o->weight.tensor : NULL;
  const rdna_tensor *dx = p->in_place ? &o->dout.tensor : &o->dx.tensor;
  if (p->centred) {
    assert_ok(rdna_op_layer_norm_backward(stream, &o->dout.tensor, &o->x.tensor, weight, p->given ? 0 : epsilon,
                                          p->given ? &o->mean.tensor : NULL, p->given ? &o->inverse.tensor : NULL, dx,
                                          &o->dweight.tensor, &o->dbias.tensor));
  } else {
    assert_ok(
        rdna_op_rms_norm_backward(stream, &o->dout.tensor, &o->x.tensor, weight, epsilon, dx, &o->dweight.tensor));
  }
}

static void check(const struct problem *p) {
  int64_t pitch = p->cols + p->gap, shape[] = {p->rows, p->cols}, stride[] = {pitch, 1};
  struct operands o = {.dout = operand_make(p->dtype, 2, shape, stride, p->offset),
                       .x = operand_make(p->dtype, 2, shape, stride, p->offset),
                       .dx = operand_make(p->dtype, 2, shape, stride, p->offset + p->apart),
                       .weight = operand_make(p->weight_dtype, 1, &p->cols, NULL, p->offset),
                       .dweight = operand_make(p->weight_dtype, 1, &p->cols, NULL, p->offset),
                       .dbias = operand_make(p->weight_dtype, 1, &p->cols, NULL, p->offset),
                       .mean = operand_make(RDNA_F32, 1, &p->rows, NULL, p->offset),
                       .inverse = operand_make(RDNA_F32, 1, &p->rows, NULL, p->offset)};
  operand_fill(&o.dout, 1);
  operand_fill(&o.weight, 1);
  for (int64_t i = 0; i < operand_span(&o.x); i++) operand_set(&o.x, i, 0.5 + rdna__random_normal(&random_state));
  for (int64_t r = 0; r < p->rows; r++) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < p->cols; i++) mean += operand_get(&o.x, r * pitch + i) / (double)p->cols;
    for (int64_t i = 0; i < p->cols; i++) squares += pow(operand_get(&o.x, r * pitch + i) - mean, 2);
    operand_set(&o.mean, r, mean);
    operand_set(&o.inverse, r, 1 / sqrt(squares / (double)p->cols + epsilon));
  }
  operand *written[] = {&o.x, &o.dx, &o.dweight, &o.dbias, &o.mean, &o.inverse};
  for (int k = 0; k < 6; k++) operand_upload(written[k]);
  size_t bytes = (size_t)(p->rows * pitch + 1) * sizeof(double);
  double *x = malloc(bytes), *dout = malloc(bytes), *sums = calloc((size_t)(3 * p->cols + 1), sizeof(double));
  for (int64_t i = 0; i < operand_span(&o.x); i++) x[i] = operand_get(&o.x, i), dout[i] = operand_get(&o.dout, i);
  run(p, &o);
  operand *back[] = {&o.dout, &o.dx, &o.dweight, &o.dbias};
  for (int k = 0; k < 4; k++) operand_download(back[k]);
  double *dweight = sums, *dbias = sums + p->cols, *reach = dbias + p->cols;
  const operand *out = p->in_place ? &o.dout : &o.dx;
  for (int64_t r = 0; r < p->rows; r++) {
    check_row(p, &o, out, dout + r * pitch, x + r * pitch, r, dweight, dbias, reach);
    for (int64_t i = p->cols; !p->in_place && r + 1 < p->rows && i < pitch; i++) {
      assert_true(operand_is_poison(&o.dx, r * pitch + i));
    }
  }
  for (int64_t i = 0; i < p->cols; i++) {
    assert_close(p->weight_dtype, operand_get(&o.dweight, i), dweight[i], reach[i], "dweight", i);
    if (p->centred) assert_close(p->weight_dtype, operand_get(&o.dbias, i), dbias[i], reach[i], "dbias", i);
  }
  free(x);
  free(dout);
  free(sums);
  operand *all[] = {&o.dout, &o.x, &o.weight, &o.dx, &o.dweight, &o.dbias, &o.mean, &o.inverse};
  for (int k = 0; k < 8; k++) operand_free(all[k]);
}

static void gradients_match_double(void **state) {
  enum { SHAPES = 16 };
  static const int64_t shapes[SHAPES][2] = {{1, 1},    {5, 8},     {600, 64}, {3, 1024},  {4, 1032}, {3, 4096},
                                            {2, 8192}, {3, 8200},  {2, 8191}, {2, 20000}, {0, 9},    {50, 701},
                                            {9, 3001}, {17, 8200}, {700, 96}, {300, 521}};
  for (int centred = 0; centred < 2; centred++) {
    for (int t = 0; t < 3; t++) {
      for (int n = 0; n < SHAPES + 9; n++) {
        int64_t cols = rdna__random_range(&random_state, 1, 600);
        struct problem p = {.dtype = float_types[t],
                            .weight_dtype = n % 2 ? RDNA_F32 : float_types[t],
                            .rows = n < SHAPES ? shapes[n][0] : rdna__random_range(&random_state, 1, 300),
                            .cols = n < SHAPES ? shapes[n][1]
                                    : n % 3    ? cols
                                               : cols / 8 * 8 + 8,
                            .gap = n < SHAPES   ? 0
                                   : n % 3 == 1 ? 8
                                                : n % 3,
                            .offset = n % 6 == 5,
                            .centred = centred,
                            .weighted = n % 7 != 6,
                            .in_place = n % 4 == 1,
                            .given = centred && n % 3 != 2,
                            .apart = n % 5 == 2};
        check(&p);
      }
    }
  }
}

/* Central differences of the operators' own forward in double, on a few values. */
static double loss(bool centred, int64_t cols, const double *x, const double *weight, const double *bias,
                   const double *dout) {
  double mean = 0, squares = 0, sum = 0;
  for (int64_t i = 0; i < cols && centred; i++) mean += x[i] / (double)cols;
  for (int64_t i = 0; i < cols; i++) squares += (x[i] - mean) * (x[i] - mean) / (double)cols;
  for (int64_t i = 0; i < cols; i++) {
    sum += dout[i] * ((x[i] - mean) / sqrt(squares + epsilon) * weight[i] + bias[i]);
  }
  return sum;
}

static void gradients_match_differences(void **state) {
  enum { COLS = 11 };
  const int64_t shape[] = {1, COLS};
  for (int centred = 0; centred < 2; centred++) {
    operand o[6]; /* dout, x, weight, dx, dweight, dbias */
    double v[4][COLS] = {0};
    for (int k = 0; k < 6; k++) {
      bool row = k == 2 || k > 3;
      o[k] = operand_make(RDNA_F32, row ? 1 : 2, row ? shape + 1 : shape, NULL, 0);
      operand_fill(&o[k], 1);
      for (int i = 0; i < COLS && k < 3; i++) v[k][i] = operand_get(&o[k], i);
    }
    const rdna_tensor *t[] = {&o[0].tensor, &o[1].tensor, &o[2].tensor, &o[3].tensor, &o[4].tensor, &o[5].tensor};
    assert_ok(centred ? rdna_op_layer_norm_backward(stream, t[0], t[1], t[2], epsilon, NULL, NULL, t[3], t[4], t[5])
                      : rdna_op_rms_norm_backward(stream, t[0], t[1], t[2], epsilon, t[3], t[4]));
    for (int k = 3; k < 6; k++) operand_download(&o[k]);
    for (int k = 1; k < (centred ? 4 : 3); k++) {
      for (int i = 0; i < COLS; i++) {
        double kept = v[k][i], step = 1e-5;
        v[k][i] = kept + step;
        double above = loss(centred, COLS, v[1], v[2], v[3], v[0]);
        v[k][i] = kept - step;
        double below = loss(centred, COLS, v[1], v[2], v[3], v[0]);
        v[k][i] = kept;
        assert_close(RDNA_F32, operand_get(&o[k + 2], i), (above - below) / (2 * step), 2e-5, "gradient", i);
      }
    }
    for (int k = 0; k < 6; k++) operand_free(&o[k]);
  }
}

static void same_bits_every_time(void **state) {
  const int64_t shape[] = {700, 264};
  operand dout = operand_make(RDNA_F16, 2, shape, NULL, 0), x = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand dx = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand a = operand_make(RDNA_F32, 1, shape + 1, NULL, 0), b = operand_make(RDNA_F32, 1, shape + 1, NULL, 0);
  operand_fill(&dout, 1);
  operand_fill(&x, 1);
  operand_upload(&dx), operand_upload(&a), operand_upload(&b);
  assert_ok(rdna_op_rms_norm_backward(stream, &dout.tensor, &x.tensor, NULL, epsilon, &dx.tensor, &a.tensor));
  assert_ok(rdna_op_rms_norm_backward(stream, &dout.tensor, &x.tensor, NULL, epsilon, &dx.tensor, &b.tensor));
  operand_download(&a), operand_download(&b);
  assert_memory_equal(a.host, b.host, a.bytes);
  operand *all[] = {&dout, &x, &dx, &a, &b};
  for (int k = 0; k < 5; k++) operand_free(all[k]);
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t shape[] = {4, 6}, other[] = {6, 4};
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand d = operand_make(RDNA_F32, 2, shape, NULL, 0), x = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand dx = operand_make(RDNA_F32, 2, shape, NULL, 0), t = operand_make(RDNA_F32, 2, other, NULL, 0);
  operand w = operand_make(RDNA_F32, 1, &shape[1], NULL, 0), w4 = operand_make(RDNA_F32, 1, &other[1], NULL, 0);
  operand h = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand_upload(&dx);
  operand_upload(&w);
  const rdna_tensor *D = &d.tensor, *X = &x.tensor, *W = &w.tensor, *DX = &dx.tensor;
  assert_refused(rdna_op_rms_norm_backward(stream, &t.tensor, X, W, epsilon, DX, NULL), bad, "dout is f32 (6, 4)",
                 "(4, 6)");
  assert_refused(rdna_op_rms_norm_backward(stream, &h.tensor, X, W, epsilon, DX, NULL), bad, "dout is f16", "x is f32");
  assert_refused(rdna_op_rms_norm_backward(stream, D, X, &w4.tensor, epsilon, DX, NULL), bad, "weight is f32 (4)",
                 "be 6");
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, NULL, epsilon, NULL, NULL, DX, W, W), bad, "dbias", "apart");
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, W, epsilon, NULL, NULL, DX, W, NULL), bad, "dweight",
                 "weight");
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, W, -1, NULL, NULL, DX, NULL, NULL), bad, "epsilon", "-1");
  assert_refused(rdna_op_layer_norm_backward(stream, D, NULL, W, epsilon, NULL, NULL, DX, NULL, NULL), bad, "x is NULL",
                 "tensor");
  assert_refused(rdna_op_layer_norm_backward(NULL, D, X, W, epsilon, NULL, NULL, DX, NULL, NULL), bad,
                 "layer_norm_backward", "stream is NULL");
  const rdna_tensor *W4 = &w4.tensor;
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, W, 0, W4, NULL, DX, NULL, NULL), bad, "mean is given",
                 "inverse NULL");
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, W, 0, W4, W, DX, NULL, NULL), bad, "inverse is f32 (6)",
                 "be 4");
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, NULL, 0, W4, W4, DX, &x.tensor, NULL), bad, "dweight",
                 "f32 (4, 6)");
  rdna_tensor v = dx.tensor;
  v.stride[0] = 5;
  assert_refused(rdna_op_layer_norm_backward(stream, D, X, W, epsilon, NULL, NULL, &v, NULL, NULL), bad,
                 "dx is f32 (4, 6)", "5 apart");
  operand_download(&dx);
  operand_download(&w);
  for (int64_t k = 0; k < 24; k++) assert_true(operand_is_poison(&dx, k));
  for (int64_t k = 0; k < 6; k++) assert_true(operand_is_poison(&w, k));
  operand *all[] = {&d, &x, &dx, &t, &w, &w4, &h};
  for (int k = 0; k < 7; k++) operand_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_match_double),
      cmocka_unit_test(gradients_match_differences),
      cmocka_unit_test(same_bits_every_time),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
