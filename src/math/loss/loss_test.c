#include "rdna/op/loss.h"
#include "math/common/test/operand.h"

static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
static const char *const loss_names[] = {"mse", "l1", "smooth_l1", "huber", "bce", "bce_logits", "kl", "kl_log"};
enum { LOSSES = RDNA_LOSS_KL_LOG + 1 };
static const double beta = 0.75;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double define(rdna_loss loss, double x, double t) {
  double a = fabs(x - t), p = loss == RDNA_LOSS_BCE_LOGITS ? sigmoid(x) : x;
  switch (loss) {
    case RDNA_LOSS_MSE:
      return a * a;
    case RDNA_LOSS_L1:
      return a;
    case RDNA_LOSS_SMOOTH_L1:
    case RDNA_LOSS_HUBER:
      return (a < beta ? a * a / (2 * beta) : a - beta / 2) * (loss == RDNA_LOSS_HUBER ? beta : 1);
    case RDNA_LOSS_BCE:
    case RDNA_LOSS_BCE_LOGITS:
      return -t * fmax(log(p), -100) - (1 - t) * fmax(log(1 - p), -100);
    case RDNA_LOSS_KL:
      return t > 0 ? t * (log(t) - x) : 0;
    default:
      return exp(t) * (t - x);
  }
}

/* Central differences; at the kink of |x - t| they are 0, as the derivative is defined. */
static double define_slope(rdna_loss loss, double x, double t) {
  double h = 1e-6;
  return (define(loss, x + h, t) - define(loss, x - h, t)) / (2 * h);
}

static void fill_pair(rdna_loss loss, operand *x, operand *t) {
  for (int64_t i = 0; i < operand_span(x); i++) {
    double a = rdna__random_unit(&random_state), b = rdna__random_unit(&random_state);
    bool probability = loss == RDNA_LOSS_BCE || loss == RDNA_LOSS_BCE_LOGITS || loss == RDNA_LOSS_KL;
    operand_set(x, i, loss == RDNA_LOSS_BCE ? 0.1 + 0.8 * a : 4 * a - 2);
    operand_set(t, i, probability ? (i % 9 == 4 ? 0 : b) : loss == RDNA_LOSS_KL_LOG ? -3 * b : 4 * b - 2);
    if (loss < RDNA_LOSS_L1 || loss > RDNA_LOSS_HUBER) continue;
    /* not so near to a kink that a difference would cross it */
    if (fabs(fabs(operand_get(x, i) - operand_get(t, i)) - beta) < 1e-4) operand_set(x, i, operand_get(t, i));
    if (fabs(operand_get(x, i) - operand_get(t, i)) < 1e-4) operand_set(t, i, operand_get(x, i));
  }
  operand_upload(x);
  operand_upload(t);
}

static void check_values(rdna_dtype dtype, rdna_loss loss, rdna_loss_reduction reduction, int64_t count,
                         bool weighted) {
  int64_t one = 1;
  bool none = reduction == RDNA_LOSS_REDUCTION_NONE;
  operand x = operand_make(dtype, 1, &count, NULL, 0), t = operand_make(dtype, 1, &count, NULL, 0);
  operand w = operand_make(dtype, 1, &count, NULL, 0), dx = operand_make(dtype, 1, &count, NULL, 0);
  operand out = operand_make(none ? dtype : RDNA_F32, 1, none ? &count : &one, NULL, 0);
  operand dout = operand_make(none ? dtype : RDNA_F32, 1, none ? &count : &one, NULL, 0);
  fill_pair(loss, &x, &t);
  operand_fill(&w, 1), operand_fill(&dout, 1);
  operand_upload(&out), operand_upload(&dx);
  const rdna_tensor *weight = weighted ? &w.tensor : NULL;
  assert_ok(rdna_op_loss(stream, loss, (float)beta, reduction, &x.tensor, &t.tensor, weight, &out.tensor));
  assert_ok(rdna_op_loss_backward(stream, loss, (float)beta, reduction, &dout.tensor, &x.tensor, &t.tensor, weight,
                                  &dx.tensor));
  operand_download(&out), operand_download(&dx);
  double sum = 0, magnitude = 0, scale = reduction == RDNA_LOSS_REDUCTION_MEAN ? 1 / (double)count : 1;
  for (int64_t i = 0; i < count; i++) {
    double factor = weighted ? operand_get(&w, i) : 1, a = operand_get(&x, i), b = operand_get(&t, i);
    double want = define(loss, a, b) * factor, slope = define_slope(loss, a, b) * factor * scale;
    sum += want, magnitude += fabs(want) + fabs(factor);
    if (none)
      assert_close(dtype, operand_get(&out, i), want, 16 * 0x1p-24 * (2 + fabs(factor * 4)), loss_names[loss], i);
    slope *= operand_get(&dout, none ? i : 0);
    /* a dozen roundings, and 1e-9 of the differences */
    double bound = 16 * 0x1p-24 * (fabs(slope) + fabs(factor * scale * 8 * operand_get(&dout, none ? i : 0)));
    assert_close(dtype, operand_get(&dx, i), slope, bound + 1e-8 * fabs(factor), loss_names[loss], i);
  }
  double bound = scale * magnitude * (8 + (double)count / 1000) * 8 * 0x1p-24;
  if (!none && (count > 0 || reduction == RDNA_LOSS_REDUCTION_SUM)) {
    assert_close(RDNA_F32, operand_get(&out, 0), scale * sum, bound, loss_names[loss], -1);
  } else if (!none) {
    assert_true(isnan(operand_get(&out, 0)));
  }
  operand *all[] = {&x, &t, &w, &dx, &out, &dout};
  for (int k = 0; k < 6; k++) operand_free(all[k]);
}

static void losses_match_their_definitions(void **state) {
  static const int64_t counts[] = {1, 0, 17, 2048, 4099, 100000};
  for (int loss = 0; loss < LOSSES; loss++) {
    for (int n = 0; n < 6; n++) {
      for (int reduction = 0; reduction < 3; reduction++) {
        check_values(float_types[(n + loss) % 3], (rdna_loss)loss, (rdna_loss_reduction)reduction, counts[n], n % 2);
        check_values(RDNA_F32, (rdna_loss)loss, (rdna_loss_reduction)reduction, counts[n] / 3, false);
      }
    }
  }
}

/* Limits of the logarithms: PyTorch documents -100. */
static void certain_probabilities_stay_finite(void **state) {
  const int64_t shape[] = {4};
  const double x_values[] = {0, 1, 0, 1}, t_values[] = {0, 1, 1, 0}, want[] = {0, 0, 100, 100};
  operand x = operand_make(RDNA_F32, 1, shape, NULL, 0), t = operand_make(RDNA_F32, 1, shape, NULL, 0);
  operand out = operand_make(RDNA_F32, 1, shape, NULL, 0);
  for (int i = 0; i < 4; i++) operand_set(&x, i, x_values[i]), operand_set(&t, i, t_values[i]);
  operand_upload(&x), operand_upload(&t), operand_upload(&out);
  assert_ok(rdna_op_loss(stream, RDNA_LOSS_BCE, 0, RDNA_LOSS_REDUCTION_NONE, &x.tensor, &t.tensor, NULL, &out.tensor));
  operand_download(&out);
  for (int i = 0; i < 4; i++) assert_true(operand_get(&out, i) == want[i]);
  operand_free(&x), operand_free(&t), operand_free(&out);
}

/* Where a definition changes or a logarithm ends: the loss and its slope there, exact in every type. */
static void losses_at_their_edges(void **state) {
  static const struct {
    rdna_loss loss;
    double beta, x, t, want, slope;
  } edges[] = {
      {RDNA_LOSS_SMOOTH_L1, 0, 1.5, 1.5, 0, 0},
      {RDNA_LOSS_SMOOTH_L1, 0, 0, 0, 0, 0},
      {RDNA_LOSS_SMOOTH_L1, 0, 1.5, 2, 0.5, -1},
      {RDNA_LOSS_SMOOTH_L1, 0, -3, -5, 2, 1},
      {RDNA_LOSS_SMOOTH_L1, 0.5, 2, 1.5, 0.25, 1},
      {RDNA_LOSS_SMOOTH_L1, 0.5, 1.5, 2, 0.25, -1},
      {RDNA_LOSS_SMOOTH_L1, 0.5, 1.25, 1, 0.0625, 0.5},
      {RDNA_LOSS_SMOOTH_L1, 0.5, 3, 1, 1.75, 1},
      {RDNA_LOSS_HUBER, 0, 1.5, 1.5, 0, 0},
      {RDNA_LOSS_HUBER, 0, 4, 1.5, 0, 0},
      {RDNA_LOSS_HUBER, 2, 3, 1, 2, 2},
      {RDNA_LOSS_HUBER, 2, 1, 3, 2, -2},
      {RDNA_LOSS_HUBER, 2, 2, 1, 0.5, 1},
      {RDNA_LOSS_HUBER, 2, 8, 1, 12, 2},
      {RDNA_LOSS_L1, 0, 1.5, 1.5, 0, 0},
      {RDNA_LOSS_MSE, 0, 1.5, 1.5, 0, 0},
      {RDNA_LOSS_BCE, 0, 0, 0, 0, 0},
      {RDNA_LOSS_BCE, 0, 1, 1, 0, 0},
      {RDNA_LOSS_BCE, 0, 0, 1, 100, -1e12},
      {RDNA_LOSS_BCE, 0, 1, 0, 100, 1e12},
      {RDNA_LOSS_BCE, 0, 0, 0.5, 50, -5e11},
      {RDNA_LOSS_BCE, 0, 1, 0.5, 50, 5e11},
      {RDNA_LOSS_BCE_LOGITS, 0, 128, 0, 128, 1},
      {RDNA_LOSS_BCE_LOGITS, 0, 128, 1, 0, 0},
      {RDNA_LOSS_BCE_LOGITS, 0, -128, 1, 128, -1},
      {RDNA_LOSS_BCE_LOGITS, 0, -128, 0, 0, 0},
      {RDNA_LOSS_KL, 0, -4, 0, 0, 0},
      {RDNA_LOSS_KL, 0, -4, 1, 4, -1},
      {RDNA_LOSS_KL_LOG, 0, -4, 0, 4, -1},
      {RDNA_LOSS_KL_LOG, 0, 3, -512, 0, 0},
  };
  enum { EDGES = sizeof edges / sizeof *edges };
  const int64_t one = 1;
  for (int n = 0; n < 3 * EDGES; n++) {
    const int e = n / 3;
    rdna_dtype dtype = float_types[n % 3];
    operand x = operand_make(dtype, 1, &one, NULL, 0), t = operand_make(dtype, 1, &one, NULL, 0);
    operand out = operand_make(dtype, 1, &one, NULL, 0), dout = operand_make(dtype, 1, &one, NULL, 0);
    operand dx = operand_make(dtype, 1, &one, NULL, 0);
    operand_set(&x, 0, edges[e].x), operand_set(&t, 0, edges[e].t), operand_set(&dout, 0, 1);
    operand *all[] = {&x, &t, &dout, &out, &dx};
    for (int k = 0; k < 5; k++) operand_upload(all[k]);
    assert_ok(rdna_op_loss(stream, edges[e].loss, (float)edges[e].beta, RDNA_LOSS_REDUCTION_NONE, &x.tensor, &t.tensor,
                           NULL, &out.tensor));
    assert_ok(rdna_op_loss_backward(stream, edges[e].loss, (float)edges[e].beta, RDNA_LOSS_REDUCTION_NONE, &dout.tensor,
                                    &x.tensor, &t.tensor, NULL, &dx.tensor));
    operand_download(&out), operand_download(&dx);
    double error = fabs(edges[e].slope) * 0x1p-22;
    /* the smallest numbers that exp makes of such arguments are no more than these */
    assert_close(dtype, operand_get(&out, 0), edges[e].want, 0x1p-120, loss_names[edges[e].loss], e);
    assert_close(dtype, operand_get(&dx, 0), edges[e].slope, error + 0x1p-120, loss_names[edges[e].loss], e);
    for (int k = 0; k < 5; k++) operand_free(all[k]);
  }
}

struct entropy {
  rdna_dtype dtype;
  int64_t rows, cols, gap;
  rdna_cross_entropy options;
  bool weighted, i32;
};

struct entropy_operands {
  operand x, target, weight, out, lse, total, dout, dx;
  double *logits; /* x before dx was written over it */
};

static int64_t target_at(const struct entropy_operands *o, int64_t r) {
  return o->target.tensor.dtype == RDNA_I64 ? ((const int64_t *)(const void *)o->target.host)[r]
                                            : ((const int32_t *)(const void *)o->target.host)[r];
}

static void make_entropy(const struct entropy *p, struct entropy_operands *o) {
  int64_t pitch = p->cols + p->gap, shape[] = {p->rows, p->cols}, stride[] = {pitch, 1}, one = 1;
  bool none = p->options.reduction == RDNA_LOSS_REDUCTION_NONE;
  *o = (struct entropy_operands){.x = operand_make(p->dtype, 2, shape, stride, 0),
                                 .target = operand_make(p->i32 ? RDNA_I32 : RDNA_I64, 1, shape, NULL, 0),
                                 .weight = operand_make(RDNA_F32, 1, shape + 1, NULL, 0),
                                 .out = operand_make(none ? p->dtype : RDNA_F32, 1, none ? shape : &one, NULL, 0),
                                 .lse = operand_make(RDNA_F32, 1, shape, NULL, 0),
                                 .total = operand_make(RDNA_F32, 1, &one, NULL, 0),
                                 .dout = operand_make(none ? p->dtype : RDNA_F32, 1, none ? shape : &one, NULL, 0),
                                 .dx = operand_make(p->dtype, 2, shape, stride, 0)};
  operand_fill(&o->x, p->options.log_probabilities ? 1 : 3);
  operand_fill(&o->dout, 1);
  for (int64_t i = 0; i < p->cols; i++) operand_set(&o->weight, i, 0.5 + rdna__random_unit(&random_state));
  for (int64_t r = 0; r < p->rows; r++) {
    int64_t y = r % 4 == 2 ? p->options.ignore_index : rdna__random_range(&random_state, 0, p->cols - 1);
    if (p->i32) {
      ((int32_t *)(void *)o->target.host)[r] = (int32_t)y;
    } else {
      ((int64_t *)(void *)o->target.host)[r] = y;
    }
  }
  operand *all[] = {&o->target, &o->weight, &o->out, &o->lse, &o->total, &o->dx};
  for (int k = 0; k < 6; k++) operand_upload(all[k]);
  o->logits = malloc((size_t)(p->rows * pitch + 1) * sizeof(double));
  for (int64_t i = 0; i < operand_span(&o->x); i++) o->logits[i] = operand_get(&o->x, i);
}

/* The loss of a row by the definition with smoothed targets q: -sum of q[c] w[c] log p[c]. */
static double row_loss(const struct entropy *p, const struct entropy_operands *o, int64_t r, double *lse,
                       double *w_sum) {
  const double *x = o->logits + r * (p->cols + p->gap);
  int64_t y = target_at(o, r);
  double top = -INFINITY, sum = 0, loss = 0, s = (double)p->options.label_smoothing;
  for (int64_t c = 0; c < p->cols; c++) top = fmax(top, x[c]);
  for (int64_t c = 0; c < p->cols; c++) sum += exp(x[c] - top);
  *lse = p->options.log_probabilities ? 0 : top + log(sum);
  *w_sum = 0;
  for (int64_t c = 0; c < p->cols; c++) {
    double w = p->weighted ? operand_get(&o->weight, c) : 1, q = (c == y ? 1 - s : 0) + s / (double)p->cols;
    *w_sum += q * w;
    loss -= q * w * (x[c] - *lse);
  }
  return y == p->options.ignore_index ? 0 : loss;
}

static void compare_slopes(const struct entropy *p, const struct entropy_operands *o, double total) {
  bool none = p->options.reduction == RDNA_LOSS_REDUCTION_NONE, mean = p->options.reduction == RDNA_LOSS_REDUCTION_MEAN;
  double s = (double)p->options.label_smoothing;
  for (int64_t r = 0; r < p->rows; r++) {
    double lse, w_sum, g = operand_get(&o->dout, none ? r : 0) / (mean ? total : 1);
    int64_t y = target_at(o, r), pitch = p->cols + p->gap;
    row_loss(p, o, r, &lse, &w_sum);
    for (int64_t c = 0; c < p->cols; c++) {
      double w = p->weighted ? operand_get(&o->weight, c) : 1, q = (c == y ? 1 - s : 0) + s / (double)p->cols;
      double likely = p->options.log_probabilities ? 0 : w_sum * exp(o->logits[r * pitch + c] - lse);
      double want = y == p->options.ignore_index ? 0 : g * (likely - q * w);
      double bound = fabs(g) * (likely * (400 + (double)p->cols / 64) + 8 * q * w + 4) * 0x1p-24;
      assert_close(p->dtype, operand_get(&o->dx, r * pitch + c), want, bound, "dx", c);
    }
  }
}

static void check_entropy(const struct entropy *p) {
  struct entropy_operands o;
  make_entropy(p, &o);
  const rdna_tensor *weight = p->weighted ? &o.weight.tensor : NULL;
  assert_ok(rdna_op_cross_entropy(stream, &p->options, &o.x.tensor, &o.target.tensor, weight, &o.out.tensor,
                                  &o.lse.tensor, &o.total.tensor));
  assert_ok(rdna_op_cross_entropy_backward(stream, &p->options, &o.dout.tensor, &o.x.tensor, &o.target.tensor, weight,
                                           &o.lse.tensor, &o.total.tensor, &o.dx.tensor));
  operand_download(&o.out), operand_download(&o.lse), operand_download(&o.total), operand_download(&o.dx);
  double sum = 0, total = 0, magnitude = 0, error = (300 + (double)p->cols / 64) * 0x1p-24;
  for (int64_t r = 0; r < p->rows; r++) {
    double lse, w_sum, loss = row_loss(p, &o, r, &lse, &w_sum);
    int64_t y = target_at(&o, r);
    assert_close(RDNA_F32, operand_get(&o.lse, r), lse, error * 4, "lse", r);
    if (p->options.reduction == RDNA_LOSS_REDUCTION_NONE) {
      assert_close(p->dtype, operand_get(&o.out, r), loss, error * 40, "loss", r);
    }
    sum += loss, magnitude += fabs(loss) + 10;
    if (y != p->options.ignore_index) total += p->weighted ? operand_get(&o.weight, y) : 1;
  }
  assert_close(RDNA_F32, operand_get(&o.total, 0), total, total * error, "total", 0);
  double scale = p->options.reduction == RDNA_LOSS_REDUCTION_MEAN ? 1 / total : 1;
  if (p->options.reduction != RDNA_LOSS_REDUCTION_NONE) {
    assert_close(RDNA_F32, operand_get(&o.out, 0), scale * sum, 4 * fabs(scale) * magnitude * error, "loss", -1);
  }
  compare_slopes(p, &o, total);
  free(o.logits);
  operand *all[] = {&o.x, &o.target, &o.weight, &o.out, &o.lse, &o.total, &o.dout, &o.dx};
  for (int k = 0; k < 8; k++) operand_free(all[k]);
}

static void cross_entropy_matches_its_definition(void **state) {
  static const int64_t shapes[][2] = {{1, 1},     {7, 10}, {5, 1000}, {3, 1024}, {3, 1032}, {2, 5001},
                                      {2, 50264}, {90, 3}, {70, 100}, {66, 301}, {65, 57}};
  enum { SHAPES = sizeof shapes / sizeof *shapes };
  for (int n = 0; n < 6 * SHAPES; n++) {
    struct entropy p = {.dtype = float_types[n % 3],
                        .rows = shapes[n % SHAPES][0],
                        .cols = shapes[n % SHAPES][1],
                        .gap = n / 8 % 3 * 4,
                        .weighted = n / 2 % 2,
                        .i32 = n / 4 % 2};
    p.options = (rdna_cross_entropy){RDNA_CROSS_ENTROPY_INIT, .reduction = (rdna_loss_reduction)(n / 8 % 3),
                                     .ignore_index = n % 5 == 4 ? 0 : -100, .label_smoothing = n % 4 == 3 ? 0.1f : 0,
                                     .log_probabilities = n % 7 == 5 && n % 4 != 3};
    if (p.options.ignore_index == 0 && p.cols < 3) continue; /* nothing would count */
    check_entropy(&p);
  }
}

static uint32_t taken(uint32_t *outside) {
  uint32_t word;
  assert_ok(rdna_copy_to_host(stream, &word, outside, sizeof word));
  assert_ok(rdna_fill_bytes(stream, outside, 0, sizeof *outside));
  assert_ok(rdna_stream_synchronize(stream));
  return word;
}

/* Of every kernel: logits and logarithms, rows that are short, a wave's, a group's and in parts. */
static void a_target_that_is_no_class_is_reported(void **state) {
  static const int64_t shapes[][2] = {{3, 5}, {66, 100}, {3, 1000}, {3, 5001}, {2, 50264}};
  uint32_t *outside;
  assert_ok(rdna_memory_alloc(device, sizeof *outside, stream, (void **)&outside));
  assert_ok(rdna_fill_bytes(stream, outside, 0, sizeof *outside));
  for (int n = 0; n < 2 * 3 * 5; n++) {
    struct entropy p = {
        .dtype = float_types[n % 3], .rows = shapes[n / 6][0], .cols = shapes[n / 6][1], .i32 = n % 4 > 1};
    p.options = (rdna_cross_entropy){RDNA_CROSS_ENTROPY_INIT, .reduction = (rdna_loss_reduction)(n / 2 % 3),
                                     .ignore_index = n % 5 == 1 ? p.cols + 7 : -100, .log_probabilities = n % 2,
                                     .outside = outside};
    struct entropy_operands o;
    make_entropy(&p, &o);
    const int64_t targets[] = {p.options.ignore_index, 0, p.cols - 1, -1, p.cols, p.cols + 1};
    for (int k = 0; k < 6; k++) {
      operand_set(&o.target, p.rows - 1, (double)targets[k]);
      operand_upload(&o.target);
      assert_ok(rdna_op_cross_entropy(stream, &p.options, &o.x.tensor, &o.target.tensor, NULL, &o.out.tensor,
                                      &o.lse.tensor, &o.total.tensor));
      assert_int_equal(taken(outside), k > 2);
      assert_ok(rdna_op_cross_entropy_backward(stream, &p.options, &o.dout.tensor, &o.x.tensor, &o.target.tensor, NULL,
                                               &o.lse.tensor, &o.total.tensor, &o.dx.tensor));
      assert_int_equal(taken(outside), k > 2);
    }
    free(o.logits);
    operand *all[] = {&o.x, &o.target, &o.weight, &o.out, &o.lse, &o.total, &o.dout, &o.dx};
    for (int k = 0; k < 8; k++) operand_free(all[k]);
  }
  assert_ok(rdna_memory_free(device, outside));
}

static void a_target_that_is_no_class_makes_nan(void **state) {
  const int64_t shape[] = {3, 5}, one = 1;
  const rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, .ignore_index = -100};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), target = operand_make(RDNA_I32, 1, shape, NULL, 0);
  operand out = operand_make(RDNA_F32, 1, shape, NULL, 0), lse = operand_make(RDNA_F32, 1, shape, NULL, 0);
  operand total = operand_make(RDNA_F32, 1, &one, NULL, 0);
  operand_fill(&x, 1);
  operand_set(&target, 0, 4), operand_set(&target, 1, 5), operand_set(&target, 2, -1);
  operand_upload(&target), operand_upload(&out), operand_upload(&lse), operand_upload(&total);
  assert_ok(rdna_op_cross_entropy(stream, &options, &x.tensor, &target.tensor, NULL, &out.tensor, &lse.tensor,
                                  &total.tensor));
  assert_ok(rdna_op_cross_entropy_backward(stream, &options, &out.tensor, &x.tensor, &target.tensor, NULL, &lse.tensor,
                                           &total.tensor, &x.tensor));
  operand_download(&out), operand_download(&x);
  assert_true(isfinite(operand_get(&out, 0)) && isnan(operand_get(&out, 1)) && isnan(operand_get(&out, 2)));
  for (int i = 0; i < 15; i++) assert_true(isnan(operand_get(&x, i)) == (i >= 5));
  operand *all[] = {&x, &target, &out, &lse, &total};
  for (int k = 0; k < 5; k++) operand_free(all[k]);
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t shape[] = {4, 6}, one = 1;
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), h = operand_make(RDNA_F16, 2, shape, NULL, 0);
  operand y = operand_make(RDNA_I32, 1, shape, NULL, 0), y6 = operand_make(RDNA_I32, 1, shape + 1, NULL, 0);
  operand out = operand_make(RDNA_F32, 1, &one, NULL, 0), lse = operand_make(RDNA_F32, 1, shape, NULL, 0);
  operand total = operand_make(RDNA_F32, 1, &one, NULL, 0);
  operand_upload(&out);
  rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, .reduction = RDNA_LOSS_REDUCTION_MEAN};
  const rdna_tensor *X = &x.tensor, *Y = &y.tensor, *O = &out.tensor, *L = &lse.tensor, *T = &total.tensor;
  const rdna_loss_reduction mean = RDNA_LOSS_REDUCTION_MEAN;
  assert_refused(rdna_op_loss(stream, RDNA_LOSS_MSE, 0, mean, X, &h.tensor, NULL, O), bad, "target is f16", "x is f32");
  assert_refused(rdna_op_loss(stream, RDNA_LOSS_MSE, 0, mean, X, X, NULL, X), bad, "out is f32 (4, 6)", "one value");
  assert_refused(rdna_op_loss(stream, RDNA_LOSS_HUBER, -1, mean, X, X, NULL, O), bad, "beta is -1", "negative");
  assert_refused(rdna_op_loss(stream, (rdna_loss)9, 0, mean, X, X, NULL, O), bad, "loss is 9", "0 to 7");
  assert_refused(rdna_op_loss(stream, RDNA_LOSS_L1, 0, (rdna_loss_reduction)3, X, X, NULL, O), bad, "reduction is 3",
                 "2");
  assert_refused(rdna_op_loss(NULL, RDNA_LOSS_L1, 0, mean, X, X, NULL, O), bad, "loss", "stream is NULL");
  assert_refused(rdna_op_loss_backward(stream, RDNA_LOSS_L1, 0, RDNA_LOSS_REDUCTION_NONE, O, X, X, NULL, X), bad,
                 "dout is", "(4, 6)");
  assert_refused(rdna_op_cross_entropy(stream, &options, X, &y6.tensor, NULL, O, L, T), bad, "target is i32 (6)",
                 "be 4");
  assert_refused(rdna_op_cross_entropy(stream, &options, X, L, NULL, O, L, T), bad, "target is f32", "be i32");
  assert_refused(rdna_op_cross_entropy(stream, &options, X, Y, L, O, L, T), bad, "weight is f32 (4)", "be 6");
  assert_refused(rdna_op_cross_entropy(stream, &options, X, Y, NULL, O, L, O), bad, "out", "apart");
  options.label_smoothing = 2;
  assert_refused(rdna_op_cross_entropy(stream, &options, X, Y, NULL, O, L, T), bad, "label_smoothing is 2", "0 to 1");
  options.label_smoothing = 0.5f, options.log_probabilities = true;
  assert_refused(rdna_op_cross_entropy_backward(stream, &options, O, X, Y, NULL, L, T, X), bad, "label_smoothing",
                 "log_probabilities");
  operand_download(&out);
  assert_true(operand_is_poison(&out, 0));
  operand *all[] = {&x, &h, &y, &y6, &out, &lse, &total};
  for (int k = 0; k < 7; k++) operand_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(losses_match_their_definitions),
      cmocka_unit_test(certain_probabilities_stay_finite),
      cmocka_unit_test(losses_at_their_edges),
      cmocka_unit_test(cross_entropy_matches_its_definition),
      cmocka_unit_test(a_target_that_is_no_class_is_reported),
      cmocka_unit_test(a_target_that_is_no_class_makes_nan),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
