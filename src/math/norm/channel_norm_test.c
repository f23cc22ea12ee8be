#include "rdna/op/channel_norm.h"
#include "math/common/test/operand.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

struct problem {
  rdna_dtype dtype, weight_dtype;
  int64_t n, channels, groups; /* groups 0: batch norm */
  int rank;                    /* of what is spatial */
  int64_t spatial[3];
  bool last; /* channels-last */
  int64_t offset;
  bool weighted, in_place;
};

struct layout {
  int64_t shape[5], stride[5], samples, channels, inner;
  int rank;
  bool last;
};

static struct layout layout_of(const struct problem *p) {
  struct layout l = {.samples = p->n, .channels = p->channels, .inner = 1, .rank = p->rank + 2, .last = p->last};
  l.shape[0] = p->n, l.shape[1] = p->channels;
  for (int i = 0; i < p->rank; i++) l.shape[2 + i] = p->spatial[i];
  int64_t stride = p->last ? p->channels : 1;
  for (int i = l.rank - 1; i >= 2; i--) l.stride[i] = stride, stride *= l.shape[i], l.inner *= l.shape[i];
  l.stride[1] = p->last ? 1 : stride;
  l.stride[0] = l.inner * p->channels;
  return l;
}

static int64_t at(const struct layout *l, int64_t n, int64_t c, int64_t i) {
  return l->last ? (n * l->inner + i) * l->channels + c : (n * l->channels + c) * l->inner + i;
}

static operand make(const struct problem *p, const struct layout *l, double mean) {
  operand o = operand_make(p->dtype, l->rank, l->shape, l->stride, p->offset);
  for (int64_t i = 0; i < operand_span(&o); i++) operand_set(&o, i, mean + rdna__random_normal(&random_state));
  operand_upload(&o);
  return o;
}
static operand make_row(rdna_dtype dtype, int rank, const int64_t *shape, double mean) {
  operand o = operand_make(dtype, rank, shape, NULL, 1);
  for (int64_t i = 0; i < operand_span(&o); i++) operand_set(&o, i, mean + 0.5 * rdna__random_normal(&random_state));
  operand_upload(&o);
  return o;
}

static double *values_of(const operand *o) {
  double *v = malloc((o->bytes + 1) * 8);
  assert_non_null(v);
  for (int64_t i = 0; i < operand_span(o); i++) v[i] = operand_get(o, i);
  return v;
}

static double error_of(rdna_dtype dtype) { return 96 * (dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24); }

/* The statistic to which (n, c) belongs, and the sizes of its group. */
static int64_t group_of(const struct problem *p, int64_t n, int64_t c) {
  return p->groups ? n * p->groups + c / (p->channels / p->groups) : c;
}
static int64_t group_count(const struct problem *p) { return p->groups ? p->n * p->groups : p->channels; }

struct statistics {
  double *n, *mean, *variance; /* (groups) each */
};

static struct statistics statistics_of(const struct problem *p, const struct layout *l, const double *x) {
  int64_t count = group_count(p);
  struct statistics s;
  s.n = calloc((size_t)(3 * count + 1), sizeof *s.n);
  s.mean = s.n + count, s.variance = s.mean + count;
  for (int pass = 0; pass < 3; pass++) {
    for (int64_t n = 0; n < l->samples; n++) {
      for (int64_t c = 0; c < l->channels; c++) {
        for (int64_t i = 0; i < l->inner; i++) {
          int64_t g = group_of(p, n, c);
          double v = x[at(l, n, c, i)];
          if (pass == 0) s.n[g]++;
          if (pass == 1) s.mean[g] += v / s.n[g];
          if (pass == 2) s.variance[g] += (v - s.mean[g]) * (v - s.mean[g]) / s.n[g];
        }
      }
    }
  }
  return s;
}

static const double epsilon = 1e-3, momentum = 0.3;

struct operands {
  operand x, weight, bias, running_mean, running_var, out, mean, inverse;
};

static const rdna_tensor *maybe(const struct problem *p, const operand *o) { return p->weighted ? &o->tensor : NULL; }

static double row_at(const struct problem *p, const double *row, int64_t c, double none) {
  return p->weighted ? row[c] : none;
}

static void check_forward(const struct problem *p, const struct layout *l, struct operands *o) {
  double *x = values_of(&o->x), *weight = values_of(&o->weight), *bias = values_of(&o->bias);
  double *old_mean = values_of(&o->running_mean), *old_var = values_of(&o->running_var), error = error_of(p->dtype);
  const rdna_tensor *out = p->in_place ? &o->x.tensor : &o->out.tensor;
  if (p->groups) {
    assert_ok(rdna_op_group_norm(stream, &o->x.tensor, p->groups, maybe(p, &o->weight), maybe(p, &o->bias), epsilon,
                                 out, &o->mean.tensor, &o->inverse.tensor));
  } else {
    assert_ok(rdna_op_batch_norm(stream, &o->x.tensor, maybe(p, &o->weight), maybe(p, &o->bias),
                                 &o->running_mean.tensor, &o->running_var.tensor, momentum, epsilon, out,
                                 &o->mean.tensor, &o->inverse.tensor));
  }
  operand *back[] = {&o->x, &o->out, &o->mean, &o->inverse, &o->running_mean, &o->running_var};
  for (int k = 0; k < 6; k++) operand_download(back[k]);
  struct statistics s = statistics_of(p, l, x);
  rdna_dtype saved = o->mean.tensor.dtype;
  for (int64_t g = 0; g < group_count(p); g++) {
    double inverse = s.n[g] > 0 ? 1 / sqrt(s.variance[g] + epsilon) : (double)NAN, reach = fabs(s.mean[g]) + 1;
    assert_close(saved, operand_get(&o->mean, g), s.mean[g], error * reach, "mean", g);
    assert_close(saved, operand_get(&o->inverse, g), inverse, error * inverse * reach, "inverse", g);
    if (p->groups) continue;
    rdna_dtype type = o->running_mean.tensor.dtype;
    bool none = s.n[g] == 0;
    double unbiased = s.variance[g] * s.n[g] / (s.n[g] - 1);
    assert_close(type, operand_get(&o->running_mean, g), none ? old_mean[g] : 0.7 * old_mean[g] + 0.3 * s.mean[g],
                 error * reach, "running mean", g);
    assert_close(type, operand_get(&o->running_var, g), none ? old_var[g] : 0.7 * old_var[g] + 0.3 * unbiased,
                 error * (reach + fabs(unbiased)), "running variance", g);
  }
  const operand *written = p->in_place ? &o->x : &o->out;
  for (int64_t n = 0; n < l->samples; n++) {
    for (int64_t c = 0; c < l->channels; c++) {
      for (int64_t i = 0; i < l->inner; i++) {
        int64_t k = at(l, n, c, i), g = group_of(p, n, c);
        double inverse = 1 / sqrt(s.variance[g] + epsilon), w = row_at(p, weight, c, 1), b = row_at(p, bias, c, 0);
        double y = (x[k] - s.mean[g]) * inverse, reach = (fabs(y) + fabs(s.mean[g]) * inverse + 1) * fabs(w) + fabs(b);
        assert_close(p->dtype, operand_get(written, k), y * w + b, error * reach, "out", k);
      }
    }
  }
  free(x), free(weight), free(bias), free(old_mean), free(old_var), free(s.n);
}

/* dx, dweight and dbias by their formulas; |constant|: mean and variance do not depend on x. */
static void check_gradients(const struct problem *p, const struct layout *l, const double *x, const double *dout,
                            const double *weight, const struct statistics *s, bool constant, const operand *dx,
                            const operand *dweight, const operand *dbias) {
  int64_t groups = group_count(p);
  double *sums = calloc((size_t)(4 * groups + 4 * l->channels + 1), sizeof *sums), error = error_of(p->dtype);
  double *g_sum = sums, *gy_sum = g_sum + groups, *g_reach = gy_sum + groups, *gy_reach = g_reach + groups;
  double *w_sum = gy_reach + groups, *b_sum = w_sum + l->channels, *w_reach = b_sum + l->channels,
         *b_reach = w_reach + l->channels;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t n = 0; n < l->samples; n++) {
      for (int64_t c = 0; c < l->channels; c++) {
        for (int64_t i = 0; i < l->inner; i++) {
          int64_t k = at(l, n, c, i), g = group_of(p, n, c);
          double inverse = 1 / sqrt(s->variance[g] + epsilon), y = (x[k] - s->mean[g]) * inverse;
          double gradient = dout[k] * row_at(p, weight, c, 1), wide = fabs(y) + 1 + fabs(s->mean[g]) * inverse;
          if (pass == 0) {
            g_sum[g] += gradient / s->n[g], gy_sum[g] += gradient * y / s->n[g];
            g_reach[g] += fabs(gradient) / s->n[g], gy_reach[g] += fabs(gradient) * wide / s->n[g];
            w_sum[c] += dout[k] * y, b_sum[c] += dout[k];
            w_reach[c] += fabs(dout[k]) * wide, b_reach[c] += fabs(dout[k]);
            continue;
          }
          double want = constant ? inverse * gradient : inverse * (gradient - g_sum[g] - y * gy_sum[g]);
          double reach = inverse * (fabs(gradient) * 2 + g_reach[g] + wide * gy_reach[g]);
          if (dx) assert_close(p->dtype, operand_get(dx, k), want, error * reach, "dx", k);
        }
      }
    }
  }
  for (int64_t c = 0; c < l->channels; c++) {
    if (dweight) {
      assert_close(dweight->tensor.dtype, operand_get(dweight, c), w_sum[c], error * w_reach[c], "dweight", c);
    }
    if (dbias) assert_close(dbias->tensor.dtype, operand_get(dbias, c), b_sum[c], error * b_reach[c], "dbias", c);
  }
  free(sums);
}

/* Which of dx, dweight and dbias are asked for: the bits of |wanted|. */
static void check_backward(const struct problem *p, const struct layout *l, struct operands *o, int wanted) {
  operand dout = make(p, l, 0), dx = operand_make(p->dtype, l->rank, l->shape, l->stride, p->offset);
  operand dweight = operand_make(p->weight_dtype, 1, &p->channels, NULL, 1);
  operand dbias = operand_make(p->weight_dtype, 1, &p->channels, NULL, 0);
  double *x = values_of(&o->x), *dout_values = values_of(&dout), *weight = values_of(&o->weight);
  operand *all[] = {&dx, &dweight, &dbias, &dout};
  for (int k = 0; k < 3; k++) operand_upload(all[k]);
  const rdna_tensor *tdx = wanted & 1 ? p->in_place ? &dout.tensor : &dx.tensor : NULL;
  const rdna_tensor *tw = wanted & 2 ? &dweight.tensor : NULL, *tb = wanted & 4 ? &dbias.tensor : NULL;
  if (p->groups) {
    assert_ok(rdna_op_group_norm_backward(stream, &dout.tensor, &o->x.tensor, p->groups, maybe(p, &o->weight),
                                          &o->mean.tensor, &o->inverse.tensor, tdx, tw, tb));
  } else {
    assert_ok(rdna_op_batch_norm_backward(stream, &dout.tensor, &o->x.tensor, maybe(p, &o->weight), &o->mean.tensor,
                                          &o->inverse.tensor, tdx, tw, tb));
  }
  for (int k = 0; k < 4; k++) operand_download(all[k]);
  struct statistics s = statistics_of(p, l, x);
  check_gradients(p, l, x, dout_values, weight, &s, false, tdx ? p->in_place ? &dout : &dx : NULL, tw ? &dweight : NULL,
                  tb ? &dbias : NULL);
  for (int k = 0; k < 3; k++) {
    for (int64_t i = 0; i < operand_span(all[k]) && !(wanted & 1 << k); i++) {
      assert_true(operand_is_poison(all[k], i));
    }
  }
  free(x), free(dout_values), free(weight), free(s.n);
  for (int k = 0; k < 4; k++) operand_free(all[k]);
}

static void check_inference(const struct problem *p, const struct layout *l, struct operands *o, bool relu) {
  operand residual = make(p, l, 0), out = operand_make(p->dtype, l->rank, l->shape, l->stride, p->offset);
  operand dx = operand_make(p->dtype, l->rank, l->shape, l->stride, p->offset);
  operand dweight = operand_make(p->weight_dtype, 1, &p->channels, NULL, 0);
  double *x = values_of(&o->x), *more = values_of(&residual), *weight = values_of(&o->weight),
         error = error_of(p->dtype);
  double *bias = values_of(&o->bias), *mean = values_of(&o->running_mean), *variance = values_of(&o->running_var);
  operand *all[] = {&residual, &out, &dx, &dweight};
  for (int k = 1; k < 4; k++) operand_upload(all[k]);
  assert_ok(rdna_op_batch_norm_inference(stream, &o->x.tensor, maybe(p, &o->weight), maybe(p, &o->bias),
                                         &o->running_mean.tensor, &o->running_var.tensor, epsilon,
                                         relu ? &residual.tensor : NULL, relu, &out.tensor));
  assert_ok(rdna_op_batch_norm_inference_backward(stream, &residual.tensor, &o->x.tensor, maybe(p, &o->weight),
                                                  &o->running_mean.tensor, &o->running_var.tensor, epsilon, &dx.tensor,
                                                  relu ? &dweight.tensor : NULL, NULL));
  for (int k = 0; k < 4; k++) operand_download(all[k]);
  for (int64_t n = 0; n < l->samples; n++) {
    for (int64_t c = 0; c < l->channels; c++) {
      double inverse = 1 / sqrt(variance[c] + epsilon), w = row_at(p, weight, c, 1), b = row_at(p, bias, c, 0);
      for (int64_t i = 0; i < l->inner; i++) {
        int64_t k = at(l, n, c, i);
        double want = (x[k] - mean[c]) * inverse * w + b + (relu ? more[k] : 0);
        double reach = (fabs(x[k]) + fabs(mean[c])) * inverse * fabs(w) + fabs(b) + fabs(more[k]);
        assert_close(p->dtype, operand_get(&out, k), relu && want < 0 ? 0 : want, error * reach, "inference", k);
      }
    }
  }
  double *ones = calloc((size_t)p->channels + 1, sizeof *ones);
  for (int64_t c = 0; c < p->channels; c++) ones[c] = 1;
  struct statistics s = {ones, mean, variance};
  check_gradients(p, l, x, more, weight, &s, true, &dx, relu ? &dweight : NULL, NULL);
  free(x), free(more), free(weight), free(bias), free(mean), free(variance), free(ones);
  for (int k = 0; k < 4; k++) operand_free(all[k]);
}

static void check(const struct problem *p, int wanted) {
  struct layout l = layout_of(p);
  rdna_dtype saved = p->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  int64_t saved_shape[] = {p->n, p->groups};
  int saved_rank = p->groups ? 2 : 1;
  if (!p->groups) saved_shape[0] = p->channels;
  struct operands o = {.x = make(p, &l, 2),
                       .weight = make_row(p->weight_dtype, 1, &p->channels, 1),
                       .bias = make_row(p->weight_dtype, 1, &p->channels, 0),
                       .running_mean = make_row(p->weight_dtype, 1, &p->channels, 0),
                       .running_var = make_row(p->weight_dtype, 1, &p->channels, 4),
                       .out = operand_make(p->dtype, l.rank, l.shape, l.stride, p->offset),
                       .mean = operand_make(saved, saved_rank, saved_shape, NULL, 0),
                       .inverse = operand_make(saved, saved_rank, saved_shape, NULL, 0)};
  operand *all[] = {&o.out, &o.mean, &o.inverse, &o.x, &o.weight, &o.bias, &o.running_mean, &o.running_var};
  for (int k = 0; k < 3; k++) operand_upload(all[k]);
  if (p->groups == 0) check_inference(p, &l, &o, p->n % 2);
  double *x = values_of(&o.x);
  check_forward(p, &l, &o);
  for (int64_t i = 0; p->in_place && i < operand_span(&o.x); i++) operand_set(&o.x, i, x[i]);
  operand_upload(&o.x);
  check_backward(p, &l, &o, wanted);
  free(x);
  for (int k = 0; k < 8; k++) operand_free(all[k]);
}

static void formulas(void **state) {
  static const struct problem edges[] = {
      {.n = 2, .channels = 3, .rank = 2, .spatial = {4, 5}},
      {.n = 2, .channels = 4, .rank = 2, .spatial = {70, 71}}, /* several slices */
      {.n = 1, .channels = 2, .rank = 1, .spatial = {40001}},  /* a run in parts */
      {.n = 700, .channels = 8, .rank = 2, .spatial = {1, 2}}, /* short runs */
      {.n = 3000, .channels = 24, .rank = 0},                  /* columns in slices */
      {.n = 5, .channels = 300, .rank = 0},
      {.n = 0, .channels = 3, .rank = 1, .spatial = {4}},
      {.n = 2, .channels = 0, .rank = 1, .spatial = {4}},
      {.n = 2, .channels = 3, .rank = 1, .spatial = {0}},
      {.n = 6, .channels = 1, .rank = 0},
      {.n = 2, .channels = 16, .rank = 3, .spatial = {3, 7, 7}},
  };
  const int edge_count = (int)(sizeof edges / sizeof *edges);
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 2 * edge_count + 24; k++) {
      struct problem p = edges[k < 2 * edge_count ? k / 2 : 0];
      p.dtype = types[t], p.weight_dtype = k % 3 == 0 && t != 3 ? RDNA_F32 : types[t];
      p.last = k % 2, p.weighted = k % 5 != 4, p.in_place = k % 4 == 3, p.offset = k % 7 == 6;
      if (k >= 2 * edge_count) {
        p.n = rdna__random_range(&random_state, 1, 5), p.channels = rdna__random_range(&random_state, 1, 20);
        p.rank = k % 4;
        for (int d = 0; d < p.rank; d++) p.spatial[d] = rdna__random_range(&random_state, 1, 9);
        if (p.rank == 0 && p.n == 1) p.n = 2; /* the unbiased variance of one value is NaN */
      }
      if (k % 3 == 2 && p.n * p.channels > 0) {
        int64_t divides = rdna__random_range(&random_state, 1, p.channels);
        while (p.channels % divides != 0) divides--;
        p.groups = divides;
      }
      check(&p, k % 6 == 5 ? (k % 7) + 1 : 7);
    }
  }
}

static double loss(const struct problem *p, const struct layout *l, const double *x, const double *dout,
                   const double *weight) {
  struct statistics s = statistics_of(p, l, x);
  double sum = 0;
  for (int64_t n = 0; n < l->samples; n++) {
    for (int64_t c = 0; c < l->channels; c++) {
      for (int64_t i = 0; i < l->inner; i++) {
        int64_t k = at(l, n, c, i), g = group_of(p, n, c);
        sum += dout[k] * (x[k] - s.mean[g]) / sqrt(s.variance[g] + epsilon) * weight[c];
      }
    }
  }
  free(s.n);
  return sum;
}

/* The operators' gradients in f64 against central differences. */
static void gradients_match_differences(void **state) {
  for (int groups = 0; groups < 3; groups++) {
    struct problem p = {.dtype = RDNA_F64,
                        .weight_dtype = RDNA_F64,
                        .n = 2,
                        .channels = 4,
                        .groups = groups,
                        .rank = 2,
                        .spatial = {2, 3},
                        .last = groups == 1,
                        .weighted = true};
    struct layout l = layout_of(&p);
    int64_t shape[] = {groups ? 2 : 4, groups};
    operand x = make(&p, &l, 1), dout = make(&p, &l, 0), weight = make_row(RDNA_F64, 1, &p.channels, 1);
    operand out = make(&p, &l, 0), dx = make(&p, &l, 0), dweight = make_row(RDNA_F64, 1, &p.channels, 0);
    operand mean = operand_make(RDNA_F64, groups ? 2 : 1, shape, NULL, 0);
    operand inverse = operand_make(RDNA_F64, groups ? 2 : 1, shape, NULL, 0);
    operand *all[] = {&dx, &dweight, &x, &dout, &weight, &out, &mean, &inverse};
    for (int k = 6; k < 8; k++) operand_upload(all[k]);
    const rdna_tensor *w = &weight.tensor, *m = &mean.tensor, *v = &inverse.tensor;
    if (groups) {
      assert_ok(rdna_op_group_norm(stream, &x.tensor, groups, w, NULL, epsilon, &out.tensor, m, v));
      assert_ok(rdna_op_group_norm_backward(stream, &dout.tensor, &x.tensor, groups, w, m, v, &dx.tensor,
                                            &dweight.tensor, NULL));
    } else {
      assert_ok(rdna_op_batch_norm(stream, &x.tensor, w, NULL, NULL, NULL, 0, epsilon, &out.tensor, m, v));
      assert_ok(
          rdna_op_batch_norm_backward(stream, &dout.tensor, &x.tensor, w, m, v, &dx.tensor, &dweight.tensor, NULL));
    }
    for (int k = 0; k < 2; k++) operand_download(all[k]);
    double *values[] = {values_of(&x), values_of(&weight)}, *g = values_of(&dout);
    for (int k = 0; k < 2; k++) {
      for (int64_t i = 0; i < operand_span(all[k]); i++) {
        double kept = values[k][i], h = 1e-5, around[2];
        for (int side = 0; side < 2; side++) {
          values[k][i] = kept + (side ? -h : h);
          around[side] = loss(&p, &l, values[0], g, values[1]);
        }
        values[k][i] = kept;
        assert_close(RDNA_F64, operand_get(all[k], i), (around[0] - around[1]) / (2 * h), 1e-7, "gradient", i);
      }
    }
    free(values[0]), free(values[1]), free(g);
    for (int k = 0; k < 8; k++) operand_free(all[k]);
  }
}

/* Of a group of one value: 0 whatever its weight and gradient are, and the rest of the gradients beside it. */
static void no_gradient_of_one_value(void **state) {
  for (int last = 0; last < 2; last++) {
    struct problem p = {.dtype = RDNA_F32,
                        .weight_dtype = RDNA_F32,
                        .n = 5,
                        .channels = 3,
                        .groups = 3,
                        .last = last,
                        .weighted = true};
    struct layout l = layout_of(&p);
    int64_t shape[] = {5, 3};
    operand x = make(&p, &l, 1), dout = make(&p, &l, 0), weight = make_row(RDNA_F32, 1, &p.channels, 1);
    operand out = make(&p, &l, 0), dx = make(&p, &l, 0), dbias = make_row(RDNA_F32, 1, &p.channels, 0);
    operand mean = operand_make(RDNA_F32, 2, shape, NULL, 0), inverse = operand_make(RDNA_F32, 2, shape, NULL, 0);
    operand *all[] = {&dx, &dbias, &x, &dout, &weight, &out, &mean, &inverse};
    assert_ok(rdna_op_group_norm(stream, &x.tensor, 3, &weight.tensor, NULL, 1e-5, &out.tensor, &mean.tensor,
                                 &inverse.tensor));
    assert_ok(rdna_op_group_norm_backward(stream, &dout.tensor, &x.tensor, 3, &weight.tensor, &mean.tensor,
                                          &inverse.tensor, &dx.tensor, NULL, &dbias.tensor));
    for (int k = 0; k < 2; k++) operand_download(all[k]);
    for (int64_t i = 0; i < 15; i++) assert_true(operand_get(&dx, i) == 0);
    for (int64_t c = 0; c < 3; c++) {
      double sum = 0;
      for (int64_t n = 0; n < 5; n++) sum += operand_get(&dout, n * 3 + c);
      assert_close(RDNA_F32, operand_get(&dbias, c), sum, 1e-6, "dbias", c);
    }
    for (int k = 0; k < 8; k++) operand_free(all[k]);
  }
}

/* Far from zero, where sums of squares would keep no digit of the variance. */
static void variance_far_from_zero(void **state) {
  for (int last = 0; last < 2; last++) {
    struct problem p = {.dtype = RDNA_F32, .n = 3, .channels = 8, .rank = 2, .spatial = {60, 61}, .last = last};
    struct layout l = layout_of(&p);
    operand x = make(&p, &l, 4096), out = make(&p, &l, 0);
    operand mean = make_row(RDNA_F32, 1, &p.channels, 0), inverse = make_row(RDNA_F32, 1, &p.channels, 0);
    assert_ok(rdna_op_batch_norm(stream, &x.tensor, NULL, NULL, NULL, NULL, 0, 0, &out.tensor, &mean.tensor,
                                 &inverse.tensor));
    operand_download(&inverse);
    double *v = values_of(&x);
    struct statistics s = statistics_of(&p, &l, v);
    for (int64_t c = 0; c < p.channels; c++) {
      double want = 1 / sqrt(s.variance[c]);
      assert_close(RDNA_F32, operand_get(&inverse, c), want, 1e-4 * want, "inverse", c);
    }
    free(v), free(s.n);
    operand *all[] = {&x, &out, &mean, &inverse};
    for (int k = 0; k < 4; k++) operand_free(all[k]);
  }
}

static void nan_stays_in_its_channel(void **state) {
  for (int last = 0; last < 2; last++) {
    struct problem p = {.dtype = RDNA_F16, .n = 2, .channels = 8, .rank = 1, .spatial = {9}, .last = last};
    struct layout l = layout_of(&p);
    operand x = make(&p, &l, 0), out = make(&p, &l, 0);
    operand mean = make_row(RDNA_F32, 1, &p.channels, 0), inverse = make_row(RDNA_F32, 1, &p.channels, 0);
    operand_set(&x, at(&l, 1, 5, 3), (double)NAN);
    operand_upload(&x);
    assert_ok(rdna_op_batch_norm(stream, &x.tensor, NULL, NULL, NULL, NULL, 0, epsilon, &out.tensor, &mean.tensor,
                                 &inverse.tensor));
    operand_download(&out);
    for (int64_t n = 0; n < 2; n++) {
      for (int64_t c = 0; c < 8; c++) {
        for (int64_t i = 0; i < 9; i++) assert_int_equal(isnan(operand_get(&out, at(&l, n, c, i))) != 0, c == 5);
      }
    }
    operand *all[] = {&x, &out, &mean, &inverse};
    for (int k = 0; k < 4; k++) operand_free(all[k]);
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  const int64_t shape[] = {2, 6, 5}, saved_shape[] = {2, 3}, other[] = {2, 6, 4};
  operand x = operand_make(RDNA_F32, 3, shape, NULL, 0), out = operand_make(RDNA_F32, 3, shape, NULL, 0);
  operand w = operand_make(RDNA_F32, 1, &shape[1], NULL, 0), w5 = operand_make(RDNA_F32, 1, &shape[2], NULL, 0);
  operand h = operand_make(RDNA_F16, 1, &shape[1], NULL, 0), t = operand_make(RDNA_F32, 3, other, NULL, 0);
  operand m = operand_make(RDNA_F32, 1, &shape[1], NULL, 0), v = operand_make(RDNA_F32, 1, &shape[1], NULL, 0);
  operand gm = operand_make(RDNA_F32, 2, saved_shape, NULL, 0), gv = operand_make(RDNA_F32, 2, saved_shape, NULL, 0);
  operand *all[] = {&out, &m, &v, &gm, &gv, &x, &w, &w5, &h, &t};
  for (int k = 0; k < 5; k++) operand_upload(all[k]);
  const rdna_tensor *X = &x.tensor, *O = &out.tensor, *W = &w.tensor, *M = &m.tensor, *V = &v.tensor;
  const rdna_tensor *GM = &gm.tensor, *GV = &gv.tensor;
#define TRAIN(x, w, b, e, o, m, v) rdna_op_batch_norm(stream, x, w, b, NULL, NULL, 0.1, e, o, m, v)
  assert_refused(TRAIN(X, &w5.tensor, NULL, 0, O, M, V), bad, "weight is f32 (5)", "be 6");
  assert_refused(TRAIN(X, &h.tensor, NULL, 0, O, M, V), bad, "weight is f16", "x is f32");
  assert_refused(TRAIN(X, W, NULL, 0, &t.tensor, M, V), bad, "out is f32 (2, 6, 4)", "(2, 6, 5)");
  assert_refused(TRAIN(X, W, NULL, 0, O, GM, V), bad, "saved_mean is f32 (2, 3)", "1");
  assert_refused(TRAIN(X, W, NULL, 0, O, M, M), bad, "saved_inverse", "overlap");
  assert_refused(TRAIN(X, W, NULL, -1, O, M, V), bad, "epsilon", "-1");
  assert_refused(TRAIN(W, W, NULL, 0, O, M, V), bad, "x is f32 (6)", "rank 1");
  assert_refused(TRAIN(X, M, NULL, 0, O, M, V), bad, "saved_mean", "weight");
  assert_refused(rdna_op_batch_norm(NULL, X, W, NULL, NULL, NULL, 0, 0, O, M, V), bad, "batch_norm", "NULL");
  assert_refused(rdna_op_group_norm(stream, X, 4, W, NULL, 0, O, GM, GV), bad, "groups is 4", "divide 6");
  assert_refused(rdna_op_group_norm(stream, X, 2, W, NULL, 0, O, GM, GV), bad, "saved_mean is f32 (2, 3)", "be 2");
  assert_refused(rdna_op_batch_norm_inference(stream, X, W, NULL, NULL, V, 0, NULL, false, O), bad, "mean is NULL",
                 "tensor");
  rdna_tensor last = x.tensor;
  last.stride[1] = 1, last.stride[2] = 6;
  assert_refused(TRAIN(&last, W, NULL, 0, O, M, V), RDNA_UNSUPPORTED, "out is f32 (2, 6, 5)", "channels-last");
  rdna_tensor shifted = x.tensor;
  shifted.data = (char *)x.tensor.data + 4;
  assert_refused(TRAIN(X, W, NULL, 0, &shifted, M, V), bad, "out", "overlap");
  for (int k = 0; k < 5; k++) {
    operand_download(all[k]);
    for (int64_t i = 0; i < operand_span(all[k]); i++) assert_true(operand_is_poison(all[k], i));
  }
  for (int k = 0; k < 10; k++) operand_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formulas),
      cmocka_unit_test(gradients_match_differences),
      cmocka_unit_test(no_gradient_of_one_value),
      cmocka_unit_test(variance_far_from_zero),
      cmocka_unit_test(nan_stays_in_its_channel),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
