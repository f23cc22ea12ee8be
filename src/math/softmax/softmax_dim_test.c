#include "math/common/test/strided.h"
#include "rdna/op/softmax.h"

static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};

/* A tensor (outer, cols, inner), and softmax along the middle. */
struct problem {
  rdna_dtype dtype;
  int64_t outer, cols, inner;
  float scale;
  bool log, in_place;
};

static int64_t at(const struct problem *p, int64_t o, int64_t c, int64_t i) { return (o * p->cols + c) * p->inner + i; }

/* The definition in double. */
static void forward(const struct problem *p, const double *x, double *y) {
  for (int64_t o = 0; o < p->outer; o++) {
    for (int64_t i = 0; i < p->inner; i++) {
      double top = -INFINITY, sum = 0;
      for (int64_t c = 0; c < p->cols; c++) top = fmax(top, x[at(p, o, c, i)] * (double)p->scale);
      for (int64_t c = 0; c < p->cols; c++) sum += exp(x[at(p, o, c, i)] * (double)p->scale - top);
      for (int64_t c = 0; c < p->cols; c++) {
        double v = x[at(p, o, c, i)] * (double)p->scale - top;
        y[at(p, o, c, i)] = p->log ? v - log(sum) : exp(v) / sum;
      }
    }
  }
}

static double *doubles(const struct problem *p) {
  return calloc((size_t)(p->outer * p->cols * p->inner + 1), sizeof(double));
}

/* dx from the Jacobian's definition, on y as it is stored. */
static void check_backward(const struct problem *p, const double *d, const double *y, const operand *dx) {
  for (int64_t o = 0; o < p->outer; o++) {
    for (int64_t i = 0; i < p->inner; i++) {
      double sum = 0, reach = 0;
      for (int64_t c = 0; c < p->cols; c++) {
        double term = d[at(p, o, c, i)] * (p->log ? 1 : y[at(p, o, c, i)]);
        sum += term, reach += fabs(term);
      }
      for (int64_t c = 0; c < p->cols; c++) {
        int64_t k = at(p, o, c, i);
        double factor = p->log ? exp(y[k]) : y[k], scale = (double)p->scale;
        double want = scale * (p->log ? d[k] - factor * sum : factor * (d[k] - sum));
        double bound = fabs(scale * factor) * reach * ((double)p->cols / 4 + 40) * 0x1p-24 +
                       4 * 0x1p-24 * fabs(scale) * (fabs(d[k]) + (fabs(y[k]) + 4) * factor * reach);
        assert_close(p->dtype, operand_get(dx, k), want, bound, "dx", k);
      }
    }
  }
}

static void check(const struct problem *p) {
  const int64_t shape[] = {p->outer, p->cols, p->inner};
  int rank = p->inner == 1 ? 2 : 3, dim = p->inner == 1 ? -1 : 1;
  int64_t count = p->outer * p->cols * p->inner;
  operand x = operand_make(p->dtype, rank, shape, NULL, 0), out = operand_make(p->dtype, rank, shape, NULL, 0);
  operand dout = operand_make(p->dtype, rank, shape, NULL, 0), dx = operand_make(p->dtype, rank, shape, NULL, 0);
  operand_fill(&x, 2);
  operand_fill(&dout, 1);
  operand_upload(&out), operand_upload(&dx);
  double *vx = doubles(p), *vd = doubles(p), *vy = doubles(p);
  for (int64_t i = 0; i < count; i++) vx[i] = operand_get(&x, i), vd[i] = operand_get(&dout, i);
  assert_ok(p->log ? rdna_op_log_softmax(stream, &x.tensor, dim, p->scale, &out.tensor)
                   : rdna_op_softmax(stream, &x.tensor, dim, p->scale, &out.tensor));
  const rdna_tensor *to = p->in_place ? &dout.tensor : &dx.tensor;
  assert_ok(p->log ? rdna_op_log_softmax_backward(stream, &dout.tensor, &out.tensor, dim, p->scale, to)
                   : rdna_op_softmax_backward(stream, &dout.tensor, &out.tensor, dim, p->scale, to));
  operand_download(&out), operand_download(&dx), operand_download(&dout);
  forward(p, vx, vy);
  for (int64_t i = 0; i < count; i++) {
    double error = (2 * (double)p->cols + 300 + 8 * fabs(vy[i])) * 0x1p-24, size = p->log ? 1 : vy[i];
    error += p->log ? 0 : 40 * 0x1p-24; /* exp of an argument up to 20 that was rounded */
    assert_close(p->dtype, operand_get(&out, i), vy[i], error * size, "out", i);
    vy[i] = operand_get(&out, i);
  }
  check_backward(p, vd, vy, p->in_place ? &dout : &dx);
  free(vx), free(vd), free(vy);
  operand *all[] = {&x, &out, &dout, &dx};
  for (int k = 0; k < 4; k++) operand_free(all[k]);
}

static void any_dimension_matches_double(void **state) {
  static const int64_t shapes[][3] = {{5, 1, 1},     {3, 1024, 1},  {2, 1025, 1},  {2, 4096, 1}, {2, 4104, 1},
                                      {1, 50000, 1}, {3, 20001, 1}, {40, 33, 1},   {2, 7, 5},    {3, 10, 64},
                                      {1, 200, 3},   {2, 1, 9},     {1, 21, 1500}, {0, 3, 4},    {2, 3, 0}};
  const int shape_count = (int)(sizeof shapes / sizeof shapes[0]);
  for (int t = 0; t < 3; t++) {
    for (int n = 0; n < shape_count + 8; n++) {
      struct problem p = {.dtype = float_types[t],
                          .outer = rdna__random_range(&random_state, 1, 4),
                          .cols = rdna__random_range(&random_state, 1, 60),
                          .inner = rdna__random_range(&random_state, 1, 90),
                          .scale = n % 3 ? 1 : 0.6f,
                          .in_place = n % 4 == 1};
      if (n < shape_count) p.outer = shapes[n][0], p.cols = shapes[n][1], p.inner = shapes[n][2];
      for (int is_log = 0; is_log < 2; is_log++) {
        p.log = is_log;
        check(&p);
      }
    }
  }
}

/* f64, of any strides, in place and not. */
static void check_f64(struct problem p, int dim) {
  const int64_t shape[] = {p.outer, p.cols, p.inner};
  int64_t count = p.outer * p.cols * p.inner;
  operand x = strided_make(RDNA_F64, 3, shape, false), dout = strided_make(RDNA_F64, 3, shape, false);
  operand out = strided_make(RDNA_F64, 3, shape, false), dx = strided_make(RDNA_F64, 3, shape, false);
  any_fill(&x, 2), any_fill(&dout, 1);
  operand_upload(&out), operand_upload(&dx);
  double *vx = doubles(&p), *vd = doubles(&p), *vy = doubles(&p);
  for (int64_t i = 0; i < count; i++) {
    vx[i] = real_get(&x, place_of(&x.tensor, &x.tensor, i));
    vd[i] = real_get(&dout, place_of(&dout.tensor, &dout.tensor, i));
  }
  operand *y = p.in_place ? &x : &out, *d = p.in_place ? &dout : &dx;
  assert_ok(p.log ? rdna_op_log_softmax(stream, &x.tensor, dim, p.scale, &y->tensor)
                  : rdna_op_softmax(stream, &x.tensor, dim, p.scale, &y->tensor));
  assert_ok(p.log ? rdna_op_log_softmax_backward(stream, &dout.tensor, &y->tensor, dim, p.scale, &d->tensor)
                  : rdna_op_softmax_backward(stream, &dout.tensor, &y->tensor, dim, p.scale, &d->tensor));
  operand_download(y), operand_download(d);
  forward(&p, vx, vy);
  double unit = ((double)p.cols + 40) * 0x1p-52;
  for (int64_t o = 0; o < p.outer; o++) {
    for (int64_t i = 0; i < p.inner; i++) {
      double sum = 0, reach = 0;
      for (int64_t c = 0; c < p.cols; c++) {
        double term = vd[at(&p, o, c, i)] * (p.log ? 1 : vy[at(&p, o, c, i)]);
        sum += term, reach += fabs(term);
      }
      for (int64_t c = 0; c < p.cols; c++) {
        int64_t k = at(&p, o, c, i);
        double got = real_get(y, place_of(&y->tensor, &y->tensor, k));
        if (!(fabs(got - vy[k]) <= unit * fmax(fabs(vy[k]), p.log)))
          fail_msg("out [%lld] is %.17g, not %.17g", (long long)k, got, vy[k]);
        double factor = p.log ? exp(vy[k]) : vy[k], scale = (double)p.scale;
        double want = scale * (p.log ? vd[k] - factor * sum : factor * (vd[k] - sum));
        got = real_get(d, place_of(&d->tensor, &d->tensor, k));
        if (!(fabs(got - want) <= unit * fabs(scale) * (fabs(vd[k]) + reach) * fmax(factor, p.log)))
          fail_msg("dx [%lld] is %.17g, not %.17g", (long long)k, got, want);
      }
    }
  }
  if (!p.in_place) assert_gaps_whole(y), assert_gaps_whole(d);
  free(vx), free(vd), free(vy);
  operand *all[] = {&x, &out, &dout, &dx};
  for (int k = 0; k < 4; k++) operand_free(all[k]);
}

static void doubles_match(void **state) {
  for (int n = 0; n < 40; n++) {
    struct problem p = {.dtype = RDNA_F64,
                        .outer = rdna__random_range(&random_state, 1, 5),
                        .cols = n == 0   ? 1
                                : n == 1 ? 3000
                                         : rdna__random_range(&random_state, 1, 40),
                        .inner = n % 3 == 0 ? 1 : rdna__random_range(&random_state, 1, 30),
                        .scale = n % 4 ? 1 : -0.5f,
                        .log = n % 2,
                        .in_place = n % 5 == 2};
    check_f64(p, n % 7 == 0 ? -2 : 1);
  }
}

/* It has one dimension: 1 is all there is. */
static void scalars(void **state) {
  for (int wide = 0; wide < 2; wide++) {
    operand x = operand_make(wide ? RDNA_F64 : RDNA_F32, 0, NULL, NULL, 0);
    memset(x.host, 0, x.bytes);
    operand_upload(&x);
    assert_ok(rdna_op_softmax(stream, &x.tensor, wide - 1, 1, &x.tensor));
    operand_download(&x);
    assert_true(wide ? *(double *)(void *)x.host == 1 : *(float *)(void *)x.host == 1);
    assert_ok(rdna_op_softmax_backward(stream, &x.tensor, &x.tensor, 0, 1, &x.tensor));
    operand_download(&x);
    assert_true(wide ? *(double *)(void *)x.host == 0 : *(float *)(void *)x.host == 0);
    operand_free(&x);
  }
}

static void wrong_arguments_are_refused(void **state) {
  const int64_t shape[] = {4, 6}, other[] = {6, 4};
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand a = operand_make(RDNA_F32, 2, shape, NULL, 0), b = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand c = operand_make(RDNA_F32, 2, other, NULL, 0), h = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand dx = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand w = operand_make(RDNA_F64, 2, shape, NULL, 0);
  operand_upload(&dx);
  const rdna_tensor *A = &a.tensor, *B = &b.tensor, *DX = &dx.tensor;
  assert_refused(rdna_op_softmax(stream, A, 2, 1, DX), bad, "dim is 2", "-2 to 1");
  assert_refused(rdna_op_softmax_backward(stream, A, B, -3, 1, DX), bad, "dim is -3", "(4, 6)");
  assert_refused(rdna_op_softmax_backward(stream, A, &c.tensor, 0, 1, DX), bad, "(6, 4)", "(4, 6)");
  assert_refused(rdna_op_log_softmax_backward(stream, A, &h.tensor, 0, 1, DX), bad, "f16", "f32");
  assert_refused(rdna_op_log_softmax_backward(stream, NULL, B, 0, 1, DX), bad, "dout", "NULL");
  assert_refused(rdna_op_softmax_backward(NULL, A, B, 0, 1, DX), bad, "stream", "NULL");
  rdna_tensor v = dx.tensor;
  v.stride[0] = 1, v.stride[1] = 4;
  assert_refused(rdna_op_softmax(stream, A, 0, 1, &v), RDNA_UNSUPPORTED, "out", "contiguous");
  v = dx.tensor;
  v.stride[0] = 5;
  assert_refused(rdna_op_softmax_backward(stream, A, B, 1, 1, &v), bad, "5 apart", "rows of 6");
  v = dx.tensor;
  v.data = (char *)a.tensor.data + 4;
  assert_refused(rdna_op_softmax_backward(stream, A, B, 1, 1, &v), bad, "dx", "overlap");
  assert_refused(rdna_op_softmax(stream, &w.tensor, 0, 1, DX), bad, "out is f32", "x is f64");
  assert_refused(rdna_op_softmax(NULL, &w.tensor, 0, 1, &w.tensor), bad, "stream", "NULL");
  v = w.tensor;
  v.stride[0] = 0;
  assert_refused(rdna_op_log_softmax_backward(stream, &w.tensor, &w.tensor, 0, 1, &v), bad, "dx");
  operand_download(&dx);
  for (int64_t k = 0; k < 24; k++) assert_true(operand_is_poison(&dx, k));
  operand *all[] = {&a, &b, &c, &h, &dx, &w};
  for (int k = 0; k < 6; k++) operand_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_dimension_matches_double), cmocka_unit_test(doubles_match),
                                     cmocka_unit_test(scalars), cmocka_unit_test(wrong_arguments_are_refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
