/* Layers and losses as nodes: gradients and second derivatives against differences in double, or against the same in
 * f64, which is made of other operators, or, of what is linear in each input, against whole steps. Values of what has
 * no f64 against loops. The device: RDNA_TEST_DEVICE. */
#include "rdna/graph_neural.h"

#include "graph/gradient_test.h"

/* ---- convolutions, which are linear in each input: a step of any size is exact ---- */

typedef struct conv_case {
  rdna_convolution conv;
  bool transposed;
  int64_t more[3];
} conv_case;

static rdna_node *build_conv(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const conv_case *c = what;
  return c->transposed ? rdna_record_conv_transpose(r, in[0], in[1], in[2], &c->conv, c->more)
                       : rdna_record_conv(r, in[0], in[1], in[2], &c->conv);
}

static void convolutions(void **state) {
  static const conv_case one = {{RDNA_CONVOLUTION_INIT, 1, {2}, {1}, {0}, {2}, 1}, false, {0}};
  static const conv_case two = {{RDNA_CONVOLUTION_INIT, 2, {1, 2}, {1, 0}, {1, 1}, {1, 1}, 2}, false, {0}};
  static const conv_case three = {
      {RDNA_CONVOLUTION_INIT, 3, {1, 1, 1}, {0, 0, 1}, {0, 0, 0}, {1, 1, 1}, 1}, false, {0}};
  static const conv_case back = {{RDNA_CONVOLUTION_INIT, 2, {2, 1}, {1, 0}, {1, 0}, {1, 1}, 2}, true, {1, 0}};
  subject subjects[] = {
      {"conv1d",
       build_conv,
       &one,
       3,
       {TYPE(RDNA_F32, 2, 2, 7), TYPE(RDNA_F32, 3, 2, 3), TYPE(RDNA_F32, 3)},
       -1,
       1,
       {{0}}},
      {"conv2d",
       build_conv,
       &two,
       3,
       {TYPE(RDNA_F32, 1, 4, 3, 4), TYPE(RDNA_F32, 2, 2, 3, 2), TYPE(RDNA_F32, 2)},
       -1,
       1,
       {{0}}},
      {"conv3d",
       build_conv,
       &three,
       3,
       {TYPE(RDNA_F32, 1, 1, 3, 3, 2), TYPE(RDNA_F32, 2, 1, 2, 2, 2), TYPE(RDNA_F32, 2)},
       -1,
       1,
       {{0}}},
      {"conv_transpose2d",
       build_conv,
       &back,
       3,
       {TYPE(RDNA_F32, 1, 4, 2, 3), TYPE(RDNA_F32, 4, 1, 3, 2), TYPE(RDNA_F32, 2)},
       -1,
       1,
       {{0}}},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    expect_differences(&subjects[i], 1, 2e-4);
    for (int k = 0; k < 3; k++) subjects[i].types[k].dtype = RDNA_F64; /* made of products */
    if (!few) expect_differences(&subjects[i], 1, 1e-11);
    expect_as_in_f64(&subjects[i], RDNA_F32, 1e-4);
  }
}

/* Values, with an activation in the same launch. */
static void conv_values(void **state) {
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, 1, {1}, {1}, {1}, {1}, 1};
  double x[2 * 5], w[3 * 2 * 3], bias[3], got[3 * 5];
  for (int i = 0; i < 10; i++) x[i] = uniform(-1, 1);
  for (int i = 0; i < 18; i++) w[i] = uniform(-1, 1);
  for (int i = 0; i < 3; i++) bias[i] = uniform(-1, 1);
  rdna_array *arrays[] = {upload(&(rdna__type)TYPE(RDNA_F32, 1, 2, 5), x),
                          upload(&(rdna__type)TYPE(RDNA_F32, 3, 2, 3), w),
                          upload(&(rdna__type)TYPE(RDNA_F32, 3), bias)};
  rdna_recorder *r;
  rdna_node *in[3];
  rdna_plan *plan;
  rdna_array *out;
  assert_ok(rdna_recorder_create(stream, &r));
  for (int i = 0; i < 3; i++) in[i] = rdna_record_constant(r, arrays[i]);
  rdna_node *y = rdna_record_map(r, rdna_record_conv(r, in[0], in[1], in[2], &conv), RDNA_MAP_RELU, zero, zero);
  assert_ok(rdna_recorder_status(r));
  assert_ok(rdna_plan_create(&y, 1, NULL, 0, &plan));
  assert_int_equal(rdna_plan_steps(plan), 1);
  assert_ok(rdna_plan_run(plan, NULL, 0, &out));
  download(out, got);
  for (int o = 0; o < 3; o++)
    for (int i = 0; i < 5; i++) {
      double sum = bias[o];
      for (int c = 0; c < 2; c++)
        for (int k = 0; k < 3; k++)
          if (i + k - 1 >= 0 && i + k - 1 < 5) sum += x[5 * c + i + k - 1] * w[6 * o + 3 * c + k];
      assert_true(fabs(got[5 * o + i] - fmax(sum, 0)) < 1e-5);
    }
  rdna_array_release(out);
  rdna_plan_release(plan);
  rdna_recorder_release(r);
  for (int i = 0; i < 3; i++) rdna_array_release(arrays[i]);
}

/* ---- pooling ---- */

enum { LARGEST, AVERAGE, ADAPTIVE };
typedef struct pool_case {
  rdna_pooling pooling;
  int kind;
  int64_t sizes[3];
} pool_case;

static rdna_node *build_pool(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const pool_case *c = what;
  rdna_node *x = rdna_record_map(r, in[0], RDNA_MAP_SQUARE, zero, zero);
  if (c->kind == ADAPTIVE) return rdna_record_adaptive_average_pool(r, x, c->sizes);
  return c->kind == LARGEST ? rdna_record_max_pool(r, x, &c->pooling) : rdna_record_average_pool(r, x, &c->pooling);
}

static void pools(void **state) {
  for (int kind = LARGEST; kind <= ADAPTIVE; kind++) {
    pool_case one = {{RDNA_POOLING_INIT, 1, {3}, {2}, {1}, {1}, {1}, false, true, 0}, kind, {3}};
    pool_case two = {{RDNA_POOLING_INIT, 2, {2, 3}, {1, 2}, {0, 1}, {1, 0}, {1, 1}, true, false, 0}, kind, {2, 1}};
    pool_case three = {
        {RDNA_POOLING_INIT, 3, {2, 2, 2}, {2, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, false, true, 0}, kind, {1, 1, 1}};
    subject subjects[] = {{"pool1d", build_pool, &one, 1, {F64(2, 2, 7)}, 0.1, 2, {{0}}},
                          {"pool2d", build_pool, &two, 1, {F64(1, 2, 4, 5)}, 0.1, 2, {{0}}},
                          {"pool3d", build_pool, &three, 1, {F64(1, 1, 4, 3, 2)}, 0.1, 2, {{0}}}};
    for (int i = 0; i < 3; i++) expect_slopes(&subjects[i]);
  }
}

/* ---- normalizations and softmax ---- */

enum { LAYER, RMS, BATCH, GROUP, BY };
static rdna_node *build_norm(rdna_recorder *r, rdna_node *const *in, const void *what) {
  switch (*(const int *)what) {
    case LAYER:
      return rdna_record_layer_norm(r, in[0], in[1], in[2], 1e-3);
    case RMS:
      return rdna_record_rms_norm(r, in[0], in[1], 1e-3);
    case BATCH:
      return rdna_record_batch_norm(r, in[0], in[1], in[2], 1e-3);
    case GROUP:
      return rdna_record_group_norm(r, in[0], 2, in[1], in[2], 1e-3);
    default:
      return rdna_record_batch_norm_inference(r, in[0], in[1], in[2], in[3], in[4], 1e-3);
  }
}
static rdna_node *build_plain_norm(rdna_recorder *r, rdna_node *const *in, const void *what) {
  rdna_node *alone[5] = {in[0]};
  return build_norm(r, alone, what);
}

static void norms(void **state) {
  for (int kind = LAYER; kind <= BY; kind++) {
    int inputs = kind == RMS ? 2 : kind == BY ? 5 : 3;
    subject s = {"norm", build_norm, &kind, inputs, {F64(3, 4, 4), F64(4), F64(4), F64(4), F64(4)}, 0.2, 2, {{0}}};
    expect_slopes(&s);
    expect_as_in_f64(&s, RDNA_F32, 1e-3);
    subject plain = {"norm without weights", build_plain_norm, &kind, 1, {F64(3, 4, 4)}, 0.2, 2, {{0}}};
    if (kind == BY) continue;
    expect_slopes(&plain);
    expect_as_in_f64(&plain, RDNA_F32, 1e-3);
  }
}

static rdna_node *build_softmax(rdna_recorder *r, rdna_node *const *in, const void *what) {
  int dim = *(const int *)what;
  return dim < 0 ? rdna_record_softmax(r, in[0], dim) : rdna_record_log_softmax(r, in[0], dim);
}

static void softmaxes(void **state) {
  for (int dim = -2; dim < 2; dim++) {
    subject s = {"softmax", build_softmax, &dim, 1, {F64(3, 5)}, -2, 2, {{0}}};
    expect_slopes(&s);
    expect_as_in_f64(&s, RDNA_F32, 1e-4);
  }
}

/* ---- indices ---- */

static rdna_node *constant_of(rdna_recorder *r, rdna_dtype dtype, int rank, const int64_t *shape, const void *data) {
  rdna_array *array;
  assert_ok(rdna_array_from_host(stream, dtype, rank, shape, data, &array));
  rdna_node *node = rdna_record_constant(r, array);
  rdna_array_release(array);
  return node;
}

static rdna_node *build_index(rdna_recorder *r, rdna_node *const *in, const void *what) {
  static const int64_t ids[6] = {3, 0, 3, 1, 1, 3};
  static const int32_t places[6] = {2, 0, 0, 1, 1, 1};
  rdna_node *rows =
      rdna_record_embedding(r, in[0], constant_of(r, RDNA_I64, 2, (int64_t[]){2, 3}, ids)); /* (2, 3, 3) */
  rdna_node *some =
      rdna_record_gather(r, in[0], -1, constant_of(r, RDNA_I32, 2, (int64_t[]){3, 2}, places)); /* (3, 2) */
  rdna_node *wide = rdna_record_reshape(r, some, 3, (int64_t[]){2, 3, 1});
  return rdna_record_zip(r, rdna_record_map(r, rows, RDNA_MAP_SQUARE, zero, zero), wide, RDNA_ZIP_MUL, zero, zero);
}

static void indices(void **state) {
  subject s = {"indices", build_index, NULL, 1, {F64(4, 3)}, -1, 1, {{0}}};
  expect_slopes(&s);
}

/* ---- attention and dropout ---- */

static rdna_node *build_attention(rdna_recorder *r, rdna_node *const *in, const void *what) {
  return rdna_record_attention(r, in[0], in[1], in[2], 0.6, *(const bool *)what);
}

static void attentions(void **state) {
  for (int causal = 0; causal < 2; causal++) {
    bool flag = causal;
    subject s = {"attention", build_attention, &flag, 3, {F64(1, 2, 3, 4), F64(1, 2, 3, 4), F64(1, 2, 3, 5)}, -1, 1,
                 {{0}}};
    expect_slopes(&s);
    expect_as_in_f64(&s, RDNA_F32, 1e-4);
  }
}

static rdna_node *build_masked(rdna_recorder *r, rdna_node *const *in, const void *what) {
  return rdna_record_attention_masked(r, in[0], in[1], in[2], in[3], 0.6, *(const bool *)what);
}

/* q, k and v are slices of one array, whose gradient is theirs beside each other. */
static rdna_node *build_of_one(rdna_recorder *r, rdna_node *const *in, const void *what) {
  rdna_node *all = rdna_record_reshape(r, in[0], 5, (int64_t[]){2, 4, 3, 2, 3}), *parts[3];
  all = rdna_record_permute(r, all, (int[]){2, 0, 3, 1, 4});
  for (int i = 0; i < 3; i++)
    parts[i] = rdna_record_reshape(r, rdna_record_slice(r, all, 0, i, 1, 1), 4, (int64_t[]){2, 2, 4, 3});
  return rdna_record_attention(r, parts[0], parts[1], parts[2], 0.6, true);
}

static void masked_attentions(void **state) {
  bool flag = false;
  subject masked = {"a mask that is added",
                    build_masked,
                    &flag,
                    4,
                    {F64(1, 2, 3, 4), F64(1, 2, 3, 4), F64(1, 2, 3, 5), F64(1, 1, 3, 3)},
                    -1,
                    1,
                    {{0}}};
  subject one = {"attention of one array", build_of_one, NULL, 1, {F64(2, 4, 18)}, -1, 1, {{0}}};
  subject *subjects[] = {&masked, &one};
  for (int i = 0; i < 2; i++) {
    expect_slopes(subjects[i]);
    expect_as_in_f64(subjects[i], RDNA_F32, 1e-4);
  }
}

/* In f32 the logits go through f16, which the loss then reads; in f64 not. */
static rdna_node *build_narrow(rdna_recorder *r, rdna_node *const *in, const void *what) {
  rdna_node *logits = rdna_record_matmul(r, in[0], in[1]);
  if (in[0]->type.dtype == RDNA_F32) logits = rdna_record_cast(r, rdna_record_cast(r, logits, RDNA_F16), RDNA_F32);
  rdna_array *array = upload(&(rdna__type)TYPE(RDNA_I64, 6), (double[]){3, 0, 8, 8, 1, 5});
  rdna_node *target = rdna_record_constant(r, array);
  rdna_array_release(array);
  rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, .reduction = RDNA_LOSS_REDUCTION_MEAN};
  return rdna_record_cross_entropy(r, logits, target, NULL, &options);
}

static void narrow_logits(void **state) {
  subject s = {"logits of f16", build_narrow, NULL, 2, {F64(6, 5), F64(5, 9)}, -1, 1, {{0}}};
  expect_as_in_f64(&s, RDNA_F32, 5e-3);
}

/* A value is dropped, or scaled; and so is its gradient. */
static void dropouts(void **state) {
  enum { COUNT = 1000 };
  double x[COUNT], y[COUNT], dx[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = uniform(1, 2);
  rdna_array *array = upload(&(rdna__type)TYPE(RDNA_F32, COUNT), x), *out[2];
  rdna_recorder *r;
  rdna_node *both[2];
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *in = rdna_record_constant(r, array);
  both[0] = rdna_record_dropout(r, in, 0.25, 7, 3);
  rdna_node *sum = rdna_record_reduce(r, both[0], RDNA_REDUCTION_SUM, 1, false, 0);
  assert_ok(rdna_record_gradients(r, &sum, 1, NULL, &in, 1, &both[1]));
  assert_ok(rdna_evaluate(both, 2, out));
  download(out[0], y);
  download(out[1], dx);
  int kept = 0;
  for (int i = 0; i < COUNT; i++) {
    kept += y[i] != 0;
    assert_true(y[i] == 0 ? dx[i] == 0 : fabs(y[i] - x[i] / 0.75) < 1e-5 && fabs(dx[i] - 1 / 0.75) < 1e-6);
  }
  assert_true(kept > 690 && kept < 810); /* 4.4 standard deviations around 750 */
  for (int i = 0; i < 2; i++) rdna_array_release(out[i]);
  rdna_array_release(array);
  rdna_recorder_release(r);
}

/* ---- recurrent networks ---- */

typedef struct recurrent_case {
  rdna_cell cell;
  bool reverse, ends; /* whether the states behind the last step are read too */
} recurrent_case;

/* x, both weights, h, both biases, and an LSTM's c */
static rdna_node *build_recurrent(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const recurrent_case *c = what;
  bool cells = c->cell == RDNA_CELL_LSTM;
  rdna_node *out =
      rdna_record_recurrent(r, c->cell, c->reverse, in[0], in[1], in[2], in[4], in[5], in[3], cells ? in[6] : NULL);
  if (!c->ends) return out;
  rdna_node *last = rdna_record_slice(r, out, 0, c->reverse ? 0 : 2, 1, 1);
  rdna_node *behind = cells ? rdna_record_recurrent_cells(r, out) : last;
  behind = rdna_record_reshape(r, rdna_record_map(r, behind, RDNA_MAP_SQUARE, zero, zero), 3, (int64_t[]){1, 2, 2});
  rdna_node *both[] = {out, behind};
  return cells ? rdna_record_concat(r, both, 2, 0) : behind;
}

static void recurrents(void **state) {
  static const char *const names[] = {"lstm", "gru", "rnn of tanh", "rnn of relu"};
  for (int cell = 0; cell < RDNA_CELL_COUNT; cell++)
    for (int way = 0; way < (few ? 1 : 4); way++) {
      recurrent_case c = {(rdna_cell)cell, way & 1, way < 2};
      bool lstm = cell == RDNA_CELL_LSTM;
      int64_t wide = lstm ? 8 : cell == RDNA_CELL_GRU ? 6 : 2;
      subject s = {names[cell],
                   build_recurrent,
                   &c,
                   lstm ? 7 : 6,
                   {F64(3, 2, 2), F64(wide, 2), F64(wide, 2), F64(2, 2), F64(wide), F64(wide), F64(2, 2)},
                   -1,
                   1,
                   {{0}}};
      if (cell == RDNA_CELL_RELU) s.low = 0.1; /* away from where it bends */
      expect_slopes(&s);
      expect_as_in_f64(&s, RDNA_F32, 1e-4);
    }
}

/* ---- losses ---- */

typedef struct loss_case {
  int loss, reduction;
} loss_case;

static rdna_node *build_loss(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const loss_case *c = what;
  return rdna_record_loss(r, in[0], in[1], (rdna_loss)c->loss, 0.4, (rdna_loss_reduction)c->reduction);
}

static void losses(void **state) {
  for (int loss = 0; loss < RDNA_LOSS_COUNT; loss++)
    for (int reduction = 0; reduction < RDNA_LOSS_REDUCTION_COUNT; reduction++) {
      loss_case c = {loss, reduction};
      subject s = {"loss", build_loss, &c, 2, {F64(3, 3), F64(3, 3)}, 0.1, 0.9, {{0}}};
      expect_slopes(&s);
      expect_as_in_f64(&s, RDNA_F32, 1e-3);
    }
}

typedef struct entropy_case {
  rdna_cross_entropy options;
  bool weighted;
} entropy_case;

static rdna_node *build_entropy(rdna_recorder *r, rdna_node *const *in, const void *what) {
  static const int64_t target[5] = {2, 0, -7, 1, 2};
  static const float weight[3] = {0.5f, 2, 1.25f};
  const entropy_case *c = what;
  rdna_node *classes = constant_of(r, RDNA_I64, 1, (int64_t[]){5}, target);
  rdna_node *weights = c->weighted ? constant_of(r, RDNA_F32, 1, (int64_t[]){3}, weight) : NULL;
  return rdna_record_cross_entropy(r, in[0], classes, weights, &c->options);
}

static void entropies(void **state) {
  for (int i = 0; i < 3 * 2 * 3; i++) {
    entropy_case c = {{RDNA_CROSS_ENTROPY_INIT, (rdna_loss_reduction)(i % 3), -7, 0, false, NULL}, i / 3 % 2 == 1};
    if (i / 6 == 1) c.options.label_smoothing = 0.25f;
    if (i / 6 == 2) c.options.log_probabilities = true;
    subject s = {"cross_entropy", build_entropy, &c, 1, {F64(5, 3)}, -2, 2, {{0}}};
    expect_slopes(&s);
    expect_as_in_f64(&s, RDNA_F32, 1e-4);
  }
}

/* ---- what is refused ---- */

#define REFUSED(call, ...)                                                       \
  do {                                                                           \
    assert_null(call);                                                           \
    assert_refused(rdna_recorder_status(r), RDNA_INVALID_ARGUMENT, __VA_ARGS__); \
  } while (0)

static void refusals(void **state) {
  rdna_recorder *r;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *x = rdna_record_input(r, RDNA_F32, 3, (int64_t[]){1, 4, 6});
  rdna_node *m = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){4, 6});
  rdna_node *v = rdna_record_input(r, RDNA_F32, 1, (int64_t[]){5});
  rdna_node *n = rdna_record_input(r, RDNA_I64, 1, (int64_t[]){4});
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, 1, {1}, {0}, {0}, {1}, 1}, none = {RDNA_CONVOLUTION_INIT};
  rdna_pooling pooling = {RDNA_POOLING_INIT, 1, {9}, {1}, {0}, {0}, {1}, false, false, 0}, empty = {RDNA_POOLING_INIT};
  rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT}, wrong = {RDNA_CROSS_ENTROPY_INIT};
  wrong.label_smoothing = 2;
  REFUSED(rdna_record_conv(r, x, x, NULL, &none), "0 spatial dimensions");
  REFUSED(rdna_record_conv(r, x, x, NULL, NULL), "conv");
  REFUSED(rdna_record_cross_entropy(r, m, n, NULL, NULL), "options");
  REFUSED(rdna_record_conv(r, x, m, NULL, &conv), "x f32 (1, 4, 6), weight f32 (4, 6)");
  REFUSED(rdna_record_conv_transpose(r, x, x, NULL, &conv, NULL), "f32 (1, 4, 6)");
  REFUSED(rdna_record_max_pool(r, x, &empty), "1 to 3 spatial dimensions");
  REFUSED(rdna_record_average_pool(r, x, &pooling), "f32 (1, 4, 6) has no windows");
  REFUSED(rdna_record_adaptive_average_pool(r, m, (int64_t[]){1}), "not f32 (4, 6)");
  REFUSED(rdna_record_layer_norm(r, x, v, NULL, 0), "f32 (5) beside f32 (1, 4, 6)", "size 6");
  REFUSED(rdna_record_group_norm(r, x, 3, NULL, NULL, 0), "4 channels are not 3 equal groups");
  REFUSED(rdna_record_batch_norm(r, v, NULL, NULL, 0), "2 dimensions or more, not f32 (5)");
  REFUSED(rdna_record_softmax(r, x, 3), "dim 3");
  REFUSED(rdna_record_gather(r, m, 0, n), "indices i64 (4) of x f32 (4, 6)");
  REFUSED(rdna_record_embedding(r, m, v), "f32 (4, 6) and f32 (5)");
  REFUSED(rdna_record_attention(r, x, x, x, 1, false), "attention: q f32 (1, 4, 6)");
  REFUSED(rdna_record_dropout(r, x, 1.5, 0, 0), "1.5");
  rdna_node *h = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){4, 2}),
            *wide = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){6, 6});
  rdna_node *square = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){6, 2});
  REFUSED(rdna_record_recurrent(r, RDNA_CELL_LSTM, false, x, wide, square, NULL, NULL, h, h), "of a lstm", "(4 n, n)");
  REFUSED(rdna_record_recurrent(r, RDNA_CELL_GRU, false, x, wide, square, v, NULL, h, NULL), "bias f32 (5)",
          "6 values");
  REFUSED(rdna_record_recurrent(r, RDNA_CELL_GRU, false, x, wide, square, NULL, NULL, h, h), "c f32 (4, 2) of a gru");
  REFUSED(rdna_record_recurrent(r, RDNA_CELL_COUNT, false, x, wide, square, NULL, NULL, h, h), "no cell 4");
  REFUSED(rdna_record_recurrent_cells(r, x), "input is not what");
  REFUSED(rdna_record_loss(r, x, m, RDNA_LOSS_MSE, 0, RDNA_LOSS_REDUCTION_MEAN), "target f32 (4, 6)");
  REFUSED(rdna_record_loss(r, x, x, RDNA_LOSS_COUNT, 0, RDNA_LOSS_REDUCTION_MEAN), "no loss 8");
  REFUSED(rdna_record_cross_entropy(r, m, v, NULL, &options), "not f32 (4, 6), f32 (5)");
  REFUSED(rdna_record_cross_entropy(r, m, n, NULL, &wrong), "smoothing in [0, 1]");
  rdna_recorder_release(r);
}

int main(int argc, char **argv) {
  few = argc > 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
      cmocka_unit_test(conv_values),
      cmocka_unit_test(pools),
      cmocka_unit_test(norms),
      cmocka_unit_test(softmaxes),
      cmocka_unit_test(indices),
      cmocka_unit_test(attentions),
      cmocka_unit_test(dropouts),
      cmocka_unit_test(losses),
      cmocka_unit_test(recurrents),
      cmocka_unit_test(entropies),
      cmocka_unit_test(refusals),
      cmocka_unit_test(masked_attentions),
      cmocka_unit_test(narrow_logits),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
