/* Whole recurrent layers against their definition in double, step by step, and their gradients against its differences.
 */
#include "math/common/test/operand.h"
#include "rdna/op/recurrent.h"

static int64_t below(int64_t count) { return (int64_t)rdna__random_below(&random_state, (uint64_t)count); }
static double logistic(double x) { return 1 / (1 + exp(-x)); }

enum { MOST_STEPS = 8 };

/* A layer in double. |x| are the sums of the inputs and |y| what is added to the products with the states: of both the
 * gradient is wanted. */
typedef struct model {
  rdna_cell cell;
  bool reverse;
  int64_t rows, n, steps, tokens, parts;
  int32_t begin[MOST_STEPS + 1];
  double *x, *y, *w, *bias, *h, *c;                      /* given */
  double *gates, *out, *cells, *inner, *last_h, *last_c; /* made */
} model;

static double *numbers(int64_t count, double deviation) {
  double *v = malloc((size_t)(count + 1) * sizeof *v);
  assert_non_null(v);
  for (int64_t i = 0; i < count; i++) v[i] = deviation * rdna__random_normal(&random_state);
  return v;
}

static void one_step(model *m, int64_t row, int64_t token) {
  double *h = m->last_h + row * m->n, *c = m->last_c + row * m->n, next[RDNA_RECURRENT_LAYER_UNITS];
  for (int64_t j = 0; j < m->n; j++) {
    double x[4] = {0}, y[4] = {0};
    for (int64_t p = 0; p < m->parts; p++) {
      const int64_t at = (token * m->parts + p) * m->n + j;
      x[p] = m->x[at], y[p] = m->y[at] + m->bias[p * m->n + j];
      for (int64_t k = 0; k < m->n; k++) y[p] += m->w[(p * m->n + j) * m->n + k] * h[k];
    }
    double *gate = m->gates + token * m->parts * m->n + j;
    if (m->cell == RDNA_CELL_LSTM) {
      for (int64_t p = 0; p < 4; p++) gate[p * m->n] = p == 2 ? tanh(x[p] + y[p]) : logistic(x[p] + y[p]);
      c[j] = gate[m->n] * c[j] + gate[0] * gate[2 * m->n];
      next[j] = gate[3 * m->n] * tanh(c[j]);
    } else if (m->cell == RDNA_CELL_GRU) {
      for (int64_t p = 0; p < 2; p++) gate[p * m->n] = logistic(x[p] + y[p]);
      gate[2 * m->n] = tanh(x[2] + gate[0] * y[2]);
      m->inner[token * m->n + j] = y[2];
      next[j] = (1 - gate[m->n]) * gate[2 * m->n] + gate[m->n] * h[j];
    } else {
      next[j] = m->cell == RDNA_CELL_TANH ? tanh(x[0] + y[0]) : fmax(x[0] + y[0], 0);
    }
  }
  for (int64_t j = 0; j < m->n; j++) h[j] = m->out[token * m->n + j] = next[j], m->cells[token * m->n + j] = c[j];
}

static void run(model *m) {
  memcpy(m->last_h, m->h, (size_t)(m->rows * m->n) * sizeof(double));
  memcpy(m->last_c, m->c, (size_t)(m->rows * m->n) * sizeof(double));
  for (int64_t i = 0; i < m->steps; i++) {
    const int64_t t = m->reverse ? m->steps - 1 - i : i;
    for (int64_t token = m->begin[t]; token < m->begin[t + 1]; token++) one_step(m, token - m->begin[t], token);
  }
}

/* Values of |deviation|, rounded to |type|, in a tensor of |rows| of |n|, and in double. */
static operand given(rdna_dtype type, int64_t rows, int64_t n, double deviation, double **out_values) {
  operand o = operand_make(type, 2, (int64_t[]){rows, n}, NULL, 0);
  operand_fill(&o, deviation);
  *out_values = numbers(rows * n, 0);
  for (int64_t i = 0; i < rows * n; i++) (*out_values)[i] = operand_get(&o, i);
  return o;
}
static operand made(rdna_dtype type, int64_t rows, int64_t n, const double *values) {
  operand o = operand_make(type, 2, (int64_t[]){rows, n}, NULL, 0);
  for (int64_t i = 0; values && i < rows * n; i++) operand_set(&o, i, values[i]);
  operand_upload(&o);
  return o;
}

/* A random layer of |least| to |most| units and up to |rows| sequences, with what the operators take of it. */
typedef struct layer {
  model m;
  operand weight, bias, h, c, x, begin;
  rdna_tensor line;
  rdna_recurrent_layer options;
} layer;

static layer *make_layer(int turn, rdna_dtype type, int64_t least, int64_t most, int64_t rows_most) {
  layer *l = calloc(1, sizeof *l);
  assert_non_null(l);
  model *m = &l->m;
  *m = (model){
      .cell = (rdna_cell)(turn / 4 % 4), .reverse = turn % 3 == 1, .rows = 1 + below(rows_most), .steps = 1 + below(5)};
  m->n = turn % 5 == 0 ? most : least + below(most + 1 - least);
  m->parts = m->cell == RDNA_CELL_LSTM ? 4 : m->cell == RDNA_CELL_GRU ? 3 : 1;
  const bool packed = turn % 2;
  int64_t rows = m->rows, ends = m->steps + 1;
  for (int64_t t = 0; t < m->steps; t++) {
    m->begin[t + 1] = m->begin[t] + (int32_t)rows;
    if (packed) rows -= below(rows);
  }
  m->tokens = m->begin[m->steps];
  const int64_t n = m->n, wide = m->parts * n;
  l->weight = given(type, wide, n, 0.7 / sqrt((double)n), &m->w);
  l->bias = given(type, 1, wide, m->cell == RDNA_CELL_GRU && turn % 3 ? 0.5 : 0, &m->bias);
  if (m->cell != RDNA_CELL_GRU) memset(m->bias, 0, (size_t)wide * sizeof(double));
  l->h = given(type, m->rows, n, 0.5, &m->h), l->c = given(type, m->rows, n, 0.5, &m->c);
  l->x = given(type, m->tokens, wide, 1, &m->x), m->y = numbers(m->tokens * wide, 0);
  l->begin = operand_make(RDNA_I32, 1, &ends, NULL, 0);
  for (int64_t t = 0; t < ends; t++) operand_set(&l->begin, t, m->begin[t]);
  operand_upload(&l->begin);
  m->gates = numbers(m->tokens * wide, 0), m->out = numbers(m->tokens * n, 0), m->cells = numbers(m->tokens * n, 0);
  m->inner = numbers(m->tokens * n, 0), m->last_h = numbers(m->rows * n, 0), m->last_c = numbers(m->rows * n, 0);
  l->line = rdna_tensor_contiguous(l->bias.tensor.data, type, 1, &wide);
  l->options = (rdna_recurrent_layer){
      RDNA_RECURRENT_LAYER_INIT,   .cell = m->cell,
      .reverse = m->reverse,       .begin = packed ? &l->begin.tensor : NULL,
      .weight = &l->weight.tensor, .bias = m->cell == RDNA_CELL_GRU && turn % 3 ? &l->line : NULL,
      .h = &l->h.tensor,           .c = m->cell == RDNA_CELL_LSTM ? &l->c.tensor : NULL};
  return l;
}

static void free_layer(layer *l) {
  model *m = &l->m;
  double *all[] = {m->x, m->y, m->w, m->bias, m->h, m->c, m->gates, m->out, m->cells, m->inner, m->last_h, m->last_c};
  for (int i = 0; i < 12; i++) free(all[i]);
  operand *operands[] = {&l->weight, &l->bias, &l->h, &l->c, &l->x, &l->begin};
  for (int i = 0; i < 6; i++) operand_free(operands[i]);
  free(l);
}

static void compare(operand *o, const double *want, int64_t count, double error, const char *what) {
  operand_download(o);
  for (int64_t i = 0; i < count; i++)
    assert_close(o->tensor.dtype, operand_get(o, i), want[i], error * (1 + fabs(want[i])), what, i);
}
/* What is off after a few steps, each of which rounds its states. */
static double error_of(rdna_dtype type) { return type == RDNA_F32 ? 0x1p-17 : 12 * half_step(type, 1); }

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
enum { NARROW = 64 }; /* units up to which all steps are one launch */

static void compare_forward(layer *l, rdna_dtype type) {
  model *m = &l->m;
  const bool lstm = m->cell == RDNA_CELL_LSTM, gru = m->cell == RDNA_CELL_GRU;
  operand cells = made(type, m->tokens, m->n, NULL), inner = made(type, m->tokens, m->n, NULL);
  operand own = made(type, m->tokens, m->n, NULL), *out = lstm || gru ? &own : &l->x;
  assert_ok(rdna_op_recurrent_layer(stream, &l->options, lstm || gru ? &l->x.tensor : NULL, &out->tensor,
                                    lstm ? &cells.tensor : NULL, gru ? &inner.tensor : NULL));
  run(m);
  const double error = error_of(type);
  compare(out, m->out, m->tokens * m->n, error, "out");
  if (lstm || gru) compare(&l->x, m->gates, m->tokens * m->parts * m->n, error, "gates");
  if (lstm) compare(&cells, m->cells, m->tokens * m->n, error, "cells");
  if (gru) compare(&inner, m->inner, m->tokens * m->n, error, "inner");
  operand_free(&cells), operand_free(&inner), operand_free(&own);
}

static void layers_match_double(void **test_state) {
  for (int turn = 0; turn < 48; turn++) {
    const rdna_dtype type = types[turn / 2 % 3];
    layer *l = make_layer(turn, type, 1, turn < 16 ? NARROW : 20, 4);
    compare_forward(l, type);
    free_layer(l);
  }
}

/* Layers of a launch for each step: of units and rows that fill no group, and that fill several. */
static void wide_layers_match_double(void **test_state) {
  for (int turn = 0; turn < 24; turn++) {
    const rdna_dtype type = types[turn / 2 % 3];
    const int64_t most = turn % 8 == 0 ? 257 : turn % 3 ? 72 : 128, least = turn % 3 ? NARROW + 1 : most;
    layer *l = make_layer(turn, type, least, most, turn % 4 ? 8 : 35);
    compare_forward(l, type);
    free_layer(l);
  }
}

/* The loss whose gradients dout, dh and dc are. */
static double loss(model *m, const double *dout, const double *dh, const double *dc) {
  run(m);
  double sum = 0;
  for (int64_t i = 0; dout && i < m->tokens * m->n; i++) sum += dout[i] * m->out[i];
  for (int64_t i = 0; i < m->rows * m->n; i++) sum += (dh ? dh[i] * m->last_h[i] : 0) + (dc ? dc[i] * m->last_c[i] : 0);
  return sum;
}

/* Of many values some are compared: each takes two runs of the model. */
static void compare_differences(operand *o, model *m, double *of, int64_t count, const double *d[3], const char *what) {
  const double step = 0x1p-18;
  const rdna_dtype type = o->tensor.dtype;
  const double error = 4 * error_of(type);
  operand_download(o);
  for (int64_t i = 0; i<count; i += m->n> NARROW ? 1 + below(count / 16 + 1) : 1) {
    const double was = of[i];
    of[i] = was + step;
    const double up = loss(m, d[0], d[1], d[2]);
    of[i] = was - step;
    const double want = (up - loss(m, d[0], d[1], d[2])) / (2 * step);
    of[i] = was;
    assert_close(type, operand_get(o, i), want, error * (1 + fabs(want)), what, i);
  }
}

/* What pays is offered: not f64, nor more units, and of f32 fewer rows than of 16 bits. */
static void what_pays_is_offered(void **test_state) {
  const rdna_cell lstm = RDNA_CELL_LSTM;
  assert_true(rdna_recurrent_layer_pays(lstm, RDNA_F32, 1 << 30, 64));
  assert_true(rdna_recurrent_layer_pays(lstm, RDNA_F32, 64, 512));
  assert_true(rdna_recurrent_layer_pays(lstm, RDNA_BF16, 256, 1024));
  assert_false(rdna_recurrent_layer_pays(lstm, RDNA_F32, 256, 1024));
  assert_false(rdna_recurrent_layer_pays(lstm, RDNA_F16, 1, RDNA_RECURRENT_LAYER_UNITS + 1));
  assert_false(rdna_recurrent_layer_pays(lstm, RDNA_F64, 1, 8));
}

static void compare_backward(layer *l, int turn, rdna_dtype type) {
  model *m = &l->m;
  const bool lstm = m->cell == RDNA_CELL_LSTM, gru = m->cell == RDNA_CELL_GRU, gated = lstm || gru;
  const int64_t n = m->n, tokens = m->tokens, wide = m->parts * n;
  run(m);
  operand gates = made(type, tokens, wide, m->gates), out = made(type, tokens, n, m->out);
  operand cells = made(type, tokens, n, m->cells), inner = made(type, tokens, n, m->inner);
  double *values[3];
  operand d[] = {given(type, tokens, n, 1, &values[0]), given(type, m->rows, n, 1, &values[1]),
                 given(type, m->rows, n, 1, &values[2])};
  const bool of[] = {turn % 3 != 2, turn % 5 != 1, lstm && turn % 7 != 3};
  const rdna_tensor *given_d[3];
  const double *of_loss[3];
  for (int i = 0; i < 3; i++) given_d[i] = of[i] ? &d[i].tensor : NULL, of_loss[i] = of[i] ? values[i] : NULL;
  operand dsums = made(type, tokens, wide, NULL), dhidden = made(type, tokens, wide, NULL);
  operand first = made(type, m->rows, n, NULL), first_c = made(type, m->rows, n, NULL);
  assert_ok(rdna_op_recurrent_layer_backward(stream, &l->options, given_d[0], given_d[1], given_d[2],
                                             gated ? &gates.tensor : NULL, &out.tensor, lstm ? &cells.tensor : NULL,
                                             gru ? &inner.tensor : NULL, &dsums.tensor, gru ? &dhidden.tensor : NULL,
                                             &first.tensor, lstm ? &first_c.tensor : NULL));
  compare_differences(&dsums, m, m->x, tokens * wide, of_loss, "dsums");
  if (gru) compare_differences(&dhidden, m, m->y, tokens * wide, of_loss, "dhidden");
  compare_differences(&first, m, m->h, m->rows * n, of_loss, "dfirst");
  if (lstm) compare_differences(&first_c, m, m->c, m->rows * n, of_loss, "dfirst_c");
  operand *all[] = {&gates, &out, &cells, &inner, &d[0], &d[1], &d[2], &dsums, &dhidden, &first, &first_c};
  for (int i = 0; i < 11; i++) operand_free(all[i]);
  for (int i = 0; i < 3; i++) free(values[i]);
}

static void gradients_match_differences(void **test_state) {
  for (int turn = 0; turn < 32; turn++) {
    const rdna_dtype type = types[turn / 2 % 3];
    layer *l = make_layer(turn, type, 1, 5, 4);
    compare_backward(l, turn, type);
    free_layer(l);
  }
}

static void wide_gradients_match_differences(void **test_state) {
  for (int turn = 0; turn < 24; turn++) {
    const rdna_dtype type = types[turn / 2 % 3];
    layer *l = make_layer(turn, type, turn % 3 ? NARROW + 1 : 72, turn % 8 == 0 ? 100 : 72, turn % 6 ? 4 : 20);
    compare_backward(l, turn, type);
    free_layer(l);
  }
}

/* Tokens that |begin| puts outside belong to no step: nothing else is read or written. */
static void steps_outside_are_left_out(void **test_state) {
  for (int turn = 0; turn < 6; turn++) {
    layer *l = make_layer(4 * turn + 17, RDNA_F32, turn < 3 ? 1 : NARROW + 1, turn < 3 ? 9 : NARROW + 9, 4);
    model *m = &l->m;
    m->cell = l->options.cell = RDNA_CELL_TANH;
    const int32_t far[] = {INT32_MAX, -5, (int32_t)m->tokens + 1};
    operand_set(&l->begin, m->steps, far[turn % 3]);
    operand_upload(&l->begin);
    rdna_tensor w = l->weight.tensor;
    w.shape[0] = m->n;
    l->options.weight = &w, l->options.begin = &l->begin.tensor, l->options.bias = NULL, l->options.c = NULL;
    operand out = made(RDNA_F32, m->tokens, m->n, m->x);
    assert_ok(rdna_op_recurrent_layer(stream, &l->options, NULL, &out.tensor, NULL, NULL));
    operand_download(&out);
    for (int64_t i = m->begin[m->steps - 1] * m->n; i < m->tokens * m->n; i++)
      assert_true(operand_get(&out, i) == (double)(float)m->x[i]);
    operand_free(&out);
    free_layer(l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_match_double),
      cmocka_unit_test(wide_layers_match_double),
      cmocka_unit_test(what_pays_is_offered),
      cmocka_unit_test(gradients_match_differences),
      cmocka_unit_test(wide_gradients_match_differences),
      cmocka_unit_test(steps_outside_are_left_out),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
