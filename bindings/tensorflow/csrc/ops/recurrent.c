/* Recurrent cells whose gates are one product, and whole sequences of them. A cell's state is (batch, cells); the gates
 * of LSTM are four blocks of columns, whose order each operator has, of GRU the two of reset and update. Types of 16
 * bits are computed in f32. LSTM as Gers, Schraudolph and Schmidhuber have it (2002), with connections of the cells to
 * the gates or without; GRU by Cho and others (2014). */
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/gemm.h"
#include "rdna/op/reduce.h"

enum { IN, NEW, FORGET, OUT, GATES }; /* of LSTM: input gate, new values, forget gate, output gate */
static const int columns_of_cell[GATES] = {[IN] = 0, [NEW] = 1, [FORGET] = 2, [OUT] = 3};
static const int columns_of_second[GATES] = {[IN] = 0, [FORGET] = 1, [NEW] = 2, [OUT] = 3};

/* What an LSTM has at one step, all (batch, cells) */
struct step {
  rdna_tensor in, state, forget, out, fresh, bounded, h;
};

/* Where each of a step's tensors is among an operator's outputs, and among its gradient's inputs */
enum { STEP_SIZE = 7 };
static rdna_tensor *of_step(struct step *s, int i) {
  rdna_tensor *all[STEP_SIZE] = {&s->in, &s->state, &s->forget, &s->out, &s->fresh, &s->bounded, &s->h};
  return all[i];
}

struct lstm {
  const int *columns;
  rdna_tensor w, peephole[3]; /* of input, forget and output gate, (cells), or no data */
  int64_t batch, width, cells;
};

/* Inputs |first| on: state, h, weights, three vectors of peepholes, biases. |width| is x's. */
static rdna_status read_lstm(call *c, int first, int64_t batch, int64_t width, const int *columns, rdna_tensor *state,
                             rdna_tensor *h, rdna_tensor *bias, struct lstm *out) {
  *out = (struct lstm){.columns = columns, .batch = batch, .width = width};
  TRY(call_wide_input(c, first, state));
  TRY(call_wide_input(c, first + 1, h));
  TRY(call_wide_input(c, first + 2, &out->w));
  TRY(call_wide_input(c, first + 6, bias));
  int64_t cells = out->cells = state->rank == 2 ? state->shape[1] : -1, size = cells * GATES, rows = width;
  if (cells < 0 || state->shape[0] != batch || !same_shape(h, 2, state->shape) || size_plus(c, &rows, cells) ||
      !same_shape(&out->w, 2, (int64_t[]){rows, size}) || !same_shape(bias, 1, &size))
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "an LSTM of %lld values and %lld cells wants (batch, cells) of cs_prev and h_prev, a w of (values "
                     "+ cells, 4 cells) and 4 cells of b",
                     (long long)width, (long long)cells);
  for (int i = 0; i < 3 && c->attributes->use_peephole; i++) {
    TRY(call_wide_input(c, first + 3 + i, &out->peephole[i]));
    if (!same_shape(&out->peephole[i], 1, &cells))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "wci, wcf and wco have a value for each of %lld cells",
                       (long long)cells);
  }
  return RDNA_OK;
}

static rdna_tensor gate_of(const struct lstm *l, const rdna_tensor *gates, int gate) {
  return narrowed(gates, 1, l->columns[gate] * l->cells, l->cells);
}

/* |to| += x weight, |scratch| being of its shape */
static rdna_status add_product(call *c, const rdna_tensor *x, const rdna_tensor *weight, const rdna_tensor *scratch,
                               const rdna_tensor *to) {
  TRY(zip(c, RDNA_ZIP_MUL, x, weight, scratch));
  return zip(c, RDNA_ZIP_ADD, to, scratch, to);
}

/* One step from |state|: |gates| (batch, 4 cells) holds the products and biases, and is changed. */
static rdna_status lstm_forward(call *c, const struct lstm *l, const rdna_tensor *gates, const rdna_tensor *state,
                                double forget_bias, const struct step *out) {
  bool peephole = c->attributes->use_peephole;
  double clip = (double)c->attributes->cell_clip;
  rdna_tensor in = gate_of(l, gates, IN), fresh = gate_of(l, gates, NEW), forget = gate_of(l, gates, FORGET),
              last = gate_of(l, gates, OUT), scratch;
  TRY(like(c, state, &scratch));
  if (peephole) TRY(add_product(c, state, &l->peephole[0], &scratch, &in));
  if (peephole) TRY(add_product(c, state, &l->peephole[1], &scratch, &forget));
  TRY(map(c, RDNA_MAP_SIGMOID, &in, &out->in));
  TRY(affine(c, &forget, 1, forget_bias, &out->forget));
  TRY(map(c, RDNA_MAP_SIGMOID, &out->forget, &out->forget));
  TRY(map(c, RDNA_MAP_TANH, &fresh, &out->fresh));
  TRY(zip(c, RDNA_ZIP_MUL, &out->fresh, &out->in, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, state, &out->forget, &out->state));
  TRY(zip(c, RDNA_ZIP_ADD, &out->state, &scratch, &out->state));
  if (clip > 0)
    TRY(rdna_op_map(c->stream, RDNA_MAP_CLAMP, &out->state, rdna_scalar_real(-clip), rdna_scalar_real(clip),
                    &out->state));
  if (peephole) TRY(add_product(c, &out->state, &l->peephole[2], &scratch, &last));
  TRY(map(c, RDNA_MAP_SIGMOID, &last, &out->out));
  TRY(map(c, RDNA_MAP_TANH, &out->state, &out->bounded));
  return zip(c, RDNA_ZIP_MUL, &out->bounded, &out->out, &out->h);
}

/* (x, cs_prev, h_prev, w, wci, wcf, wco, b) */
rdna_status compute_lstm_cell(call *c) {
  rdna_tensor x, state, h, bias, gates, outs[STEP_SIZE];
  struct lstm l;
  struct step step;
  TRY(call_wide_input(c, 0, &x));
  if (x.rank != 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "x must be 2D");
  TRY(read_lstm(c, 1, x.shape[0], x.shape[1], columns_of_cell, &state, &h, &bias, &l));
  for (int i = 0; i < STEP_SIZE; i++) TRY(call_wide_output(c, i, 2, state.shape, &outs[i], of_step(&step, i)));
  if (rdna_tensor_count(&state) == 0) return RDNA_OK;
  rdna_tensor above = narrowed(&l.w, 0, 0, l.width), below = narrowed(&l.w, 0, l.width, l.cells);
  TRY(call_scratch(c, x.dtype, 2, (int64_t[]){l.batch, GATES * l.cells}, &gates));
  TRY(rdna_op_gemm(c->stream, 1, &x, &above, 0, &bias, &gates));
  TRY(rdna_op_gemm(c->stream, 1, &h, &below, 1, NULL, &gates));
  TRY(lstm_forward(c, &l, &gates, &state, (double)c->attributes->forget_bias, &step));
  for (int i = 0; i < STEP_SIZE; i++) TRY(call_round(c, of_step(&step, i), &outs[i]));
  return RDNA_OK;
}

/* Step |t| of (steps, batch, cells) */
static rdna_tensor step_of(const rdna_tensor *x, int64_t t) {
  rdna_tensor one = narrowed(x, 0, t, 1);
  return reshaped(&one, 2, x->shape + 1);
}

/* x (steps, batch, values) and how many of its steps there are: inputs 1 and 0 */
static rdna_status read_sequence(call *c, rdna_tensor *x, int64_t *steps) {
  TRY(call_integer(c, 0, steps));
  TRY(call_wide_input(c, 1, x));
  if (x->rank != 3) return call_fail(c, RDNA_INVALID_ARGUMENT, "x must be 3D");
  if (*steps < 0 || *steps > x->shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "seq_len_max must be from 0 to %lld, not %lld", (long long)x->shape[0],
                     (long long)*steps);
  return RDNA_OK;
}

/* (seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b): number 0, or 1 of the second version */
rdna_status compute_lstm_sequence(call *c) {
  rdna_tensor x, state, h, bias, gates, outs[STEP_SIZE];
  struct lstm l;
  struct step all;
  int64_t steps;
  TRY(read_sequence(c, &x, &steps));
  TRY(read_lstm(c, 2, x.shape[1], x.shape[2], c->number ? columns_of_second : columns_of_cell, &state, &h, &bias, &l));
  int64_t shape[] = {x.shape[0], l.batch, l.cells};
  for (int i = 0; i < STEP_SIZE; i++) {
    TRY(call_wide_output(c, i, 3, shape, &outs[i], of_step(&all, i)));
    if (steps < shape[0]) TRY(fill(c, 0, of_step(&all, i)));
  }
  if (rdna_tensor_count(&outs[0]) == 0 || steps == 0) return RDNA_OK;
  rdna_tensor above = narrowed(&l.w, 0, 0, l.width), below = narrowed(&l.w, 0, l.width, l.cells);
  TRY(call_scratch(c, x.dtype, 3, (int64_t[]){steps, l.batch, GATES * l.cells}, &gates));
  rdna_tensor values = reshaped(&x, 2, (int64_t[]){steps * l.batch, l.width}),
              products = reshaped(&gates, 2, (int64_t[]){steps * l.batch, GATES * l.cells});
  TRY(rdna_op_gemm(c->stream, 1, &values, &above, 0, &bias, &products));
  for (int64_t t = 0; t < steps; t++) {
    int before = c->scratch_count;
    struct step step;
    rdna_tensor now = step_of(&gates, t);
    for (int i = 0; i < STEP_SIZE; i++) *of_step(&step, i) = step_of(of_step(&all, i), t);
    TRY(rdna_op_gemm(c->stream, 1, &h, &below, 1, NULL, &now));
    TRY(lstm_forward(c, &l, &now, &state, c->number ? 0 : (double)c->attributes->forget_bias, &step));
    TRY(call_release(c, before));
    state = step.state;
    h = step.h;
  }
  for (int i = 0; i < STEP_SIZE; i++) TRY(call_round(c, of_step(&all, i), &outs[i]));
  return RDNA_OK;
}

/* a (1 - a) b c into |out|, which is the gradient of a sigmoid's argument */
static rdna_status through_sigmoid(call *c, const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *d,
                                   const rdna_tensor *out, const rdna_tensor *scratch) {
  TRY(zip(c, RDNA_ZIP_MUL, b, d, scratch));
  return zip(c, RDNA_ZIP_SIGMOID_GRAD, scratch, a, out);
}

/* |weights| (cells) += the sum of |gradient| x |values| over the batch */
static rdna_status add_peephole(call *c, const rdna_tensor *gradient, const rdna_tensor *values,
                                const rdna_tensor *scratch, const rdna_tensor *weights) {
  rdna_tensor sum;
  TRY(like(c, weights, &sum));
  TRY(zip(c, RDNA_ZIP_MUL, gradient, values, scratch));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, scratch, 1, 0, &sum));
  return zip(c, RDNA_ZIP_ADD, weights, &sum, weights);
}

/* From the gradients of a step's state and h those of its gates' arguments, (batch, 4 cells), and of the state before;
 * those of peepholes are added to |weights|. |state_before| may be where |d_state| is. */
static rdna_status lstm_backward(call *c, const struct lstm *l, const struct step *s, const rdna_tensor *state,
                                 const rdna_tensor *d_state, const rdna_tensor *d_h, const rdna_tensor *d_gates,
                                 const rdna_tensor *state_before, const rdna_tensor *weights) {
  bool peephole = c->attributes->use_peephole;
  rdna_tensor in = gate_of(l, d_gates, IN), fresh = gate_of(l, d_gates, NEW), forget = gate_of(l, d_gates, FORGET),
              last = gate_of(l, d_gates, OUT), scratch, whole;
  TRY(like(c, state, &scratch));
  TRY(like(c, state, &whole));
  TRY(through_sigmoid(c, &s->out, d_h, &s->bounded, &last, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, d_h, &s->out, &scratch));
  TRY(zip(c, RDNA_ZIP_TANH_GRAD, &scratch, &s->bounded, &whole));
  TRY(zip(c, RDNA_ZIP_ADD, &whole, d_state, &whole));
  if (peephole) TRY(add_product(c, &last, &l->peephole[2], &scratch, &whole));
  TRY(zip(c, RDNA_ZIP_MUL, &whole, &s->in, &scratch));
  TRY(zip(c, RDNA_ZIP_TANH_GRAD, &scratch, &s->fresh, &fresh));
  TRY(through_sigmoid(c, &s->forget, &whole, state, &forget, &scratch));
  TRY(through_sigmoid(c, &s->in, &whole, &s->fresh, &in, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, &whole, &s->forget, state_before));
  if (!peephole) return RDNA_OK;
  TRY(add_product(c, &in, &l->peephole[0], &scratch, state_before));
  TRY(add_product(c, &forget, &l->peephole[1], &scratch, state_before));
  TRY(add_peephole(c, &in, state, &scratch, &weights[0]));
  TRY(add_peephole(c, &forget, state, &scratch, &weights[1]));
  return add_peephole(c, &last, &s->state, &scratch, &weights[2]);
}

/* The step's tensors from inputs |first| on, of |count| of them (the cell's gradient has no h), each of |shape|. */
static rdna_status read_step(call *c, int first, int count, int rank, const int64_t *shape, struct step *out) {
  for (int i = 0; i < count; i++) {
    TRY(call_wide_input(c, first + i, of_step(out, i)));
    if (!same_shape(of_step(out, i), rank, shape))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "input %d has not the shape of the operator's outputs", first + i);
  }
  return RDNA_OK;
}

/* Outputs |first| on: gradients of the peepholes, 0 so far. */
static rdna_status peephole_outputs(call *c, int first, const int64_t *cells, rdna_tensor *outs, rdna_tensor *wide) {
  for (int i = 0; i < 3; i++) {
    TRY(call_wide_output(c, first + i, 1, cells, &outs[i], &wide[i]));
    TRY(fill(c, 0, &wide[i]));
  }
  return RDNA_OK;
}

/* (x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad): gradients of cs_prev, of the gates'
 * arguments, and of the peepholes */
rdna_status compute_lstm_cell_gradient(call *c) {
  rdna_tensor x, state, h, bias, d_state, d_h, before, wide_before, gates, wide_gates, outs[3], weights[3];
  struct lstm l;
  struct step step;
  TRY(call_wide_input(c, 0, &x));
  if (x.rank != 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "x must be 2D");
  TRY(read_lstm(c, 1, x.shape[0], x.shape[1], columns_of_cell, &state, &h, &bias, &l));
  TRY(read_step(c, 8, STEP_SIZE - 1, 2, state.shape, &step));
  TRY(call_wide_input(c, 14, &d_state));
  TRY(call_wide_input(c, 15, &d_h));
  if (!same_shape(&d_state, 2, state.shape) || !same_shape(&d_h, 2, state.shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "cs_grad and h_grad must have the shape of cs_prev");
  TRY(call_wide_output(c, 0, 2, state.shape, &before, &wide_before));
  TRY(call_wide_output(c, 1, 2, (int64_t[]){l.batch, GATES * l.cells}, &gates, &wide_gates));
  TRY(peephole_outputs(c, 2, &l.cells, outs, weights));
  if (rdna_tensor_count(&state) == 0) return RDNA_OK;
  TRY(lstm_backward(c, &l, &step, &state, &d_state, &d_h, &wide_gates, &wide_before, weights));
  TRY(call_round(c, &wide_before, &before));
  TRY(call_round(c, &wide_gates, &gates));
  for (int i = 0; i < 3; i++) TRY(call_round(c, &weights[i], &outs[i]));
  return RDNA_OK;
}

/* What a sequence's gradient is added up in: inputs' gradients, all steps' of the gates, and the shapes. */
struct gradients {
  rdna_tensor x, state, h, w, peephole[3], bias, gates;
};

/* From the last step to the first. */
static rdna_status sequence_backward(call *c, const struct lstm *l, int64_t steps, struct step *all,
                                     const rdna_tensor *first_state, const rdna_tensor *d_states,
                                     const rdna_tensor *d_hs, const struct gradients *g) {
  rdna_tensor turned = narrowed(&l->w, 0, l->width, l->cells);
  turned = transposed(turned);
  for (int64_t t = steps - 1; t >= 0; t--) {
    int before = c->scratch_count;
    struct step step;
    rdna_tensor d_state = step_of(d_states, t), d_h = step_of(d_hs, t), gates = step_of(&g->gates, t);
    rdna_tensor state = t ? step_of(&all->state, t - 1) : *first_state;
    for (int i = 0; i < STEP_SIZE; i++) *of_step(&step, i) = step_of(of_step(all, i), t);
    TRY(zip(c, RDNA_ZIP_ADD, &g->state, &d_state, &g->state));
    TRY(zip(c, RDNA_ZIP_ADD, &g->h, &d_h, &g->h));
    TRY(lstm_backward(c, l, &step, &state, &g->state, &g->h, &gates, &g->state, g->peephole));
    TRY(rdna_op_gemm(c->stream, 1, &gates, &turned, 0, NULL, &g->h));
    TRY(call_release(c, before));
  }
  return RDNA_OK;
}

/* Those of x, weights and biases: one product each over all steps. */
static rdna_status sum_sequence(call *c, const struct lstm *l, int64_t steps, const rdna_tensor *x,
                                const rdna_tensor *first_h, const struct step *all, const struct gradients *g) {
  rdna_tensor above = narrowed(&l->w, 0, 0, l->width),
              gates = reshaped(&g->gates, 2, (int64_t[]){steps * l->batch, GATES * l->cells}),
              values = reshaped(x, 2, (int64_t[]){steps * l->batch, l->width}), hs,
              d_values = reshaped(&g->x, 2, (int64_t[]){steps * l->batch, l->width});
  rdna_tensor d_above = narrowed(&g->w, 0, 0, l->width), d_below = narrowed(&g->w, 0, l->width, l->cells);
  above = transposed(above);
  TRY(rdna_op_gemm(c->stream, 1, &gates, &above, 0, NULL, &d_values));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &gates, 1, 0, &g->bias));
  values = transposed(values);
  TRY(rdna_op_gemm(c->stream, 1, &values, &gates, 0, NULL, &d_above));
  TRY(call_scratch(c, x->dtype, 3, (int64_t[]){steps, l->batch, l->cells}, &hs)); /* those before each step */
  rdna_tensor first = narrowed(&hs, 0, 0, 1), rest = narrowed(&hs, 0, 1, steps - 1),
              until = narrowed(&all->h, 0, 0, steps - 1);
  first = reshaped(&first, 2, first_h->shape);
  TRY(rdna_op_copy(c->stream, first_h, &first));
  if (steps > 1) TRY(rdna_op_copy(c->stream, &until, &rest));
  hs = reshaped(&hs, 2, (int64_t[]){steps * l->batch, l->cells});
  hs = transposed(hs);
  return rdna_op_gemm(c->stream, 1, &hs, &gates, 0, NULL, &d_below);
}

/* (seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad): number 0, or 1 of
 * the second version. Gradients of x, cs_prev, h_prev, w, wci, wcf, wco, b */
rdna_status compute_lstm_sequence_gradient(call *c) {
  rdna_tensor x, state, h, bias, d_states, d_hs, outs[5], peepholes[3];
  struct gradients g;
  struct lstm l;
  struct step all;
  int64_t steps;
  TRY(read_sequence(c, &x, &steps));
  TRY(read_lstm(c, 2, x.shape[1], x.shape[2], c->number ? columns_of_second : columns_of_cell, &state, &h, &bias, &l));
  int64_t shape[] = {x.shape[0], l.batch, l.cells};
  TRY(read_step(c, 9, STEP_SIZE, 3, shape, &all));
  TRY(call_wide_input(c, 16, &d_states));
  TRY(call_wide_input(c, 17, &d_hs));
  if (!same_shape(&d_states, 3, shape) || !same_shape(&d_hs, 3, shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "cs_grad and h_grad must have the shape of cs and h");
  TRY(call_wide_output(c, 0, 3, x.shape, &outs[0], &g.x));
  TRY(call_wide_output(c, 1, 2, state.shape, &outs[1], &g.state));
  TRY(call_wide_output(c, 2, 2, state.shape, &outs[2], &g.h));
  TRY(call_wide_output(c, 3, 2, l.w.shape, &outs[3], &g.w));
  TRY(peephole_outputs(c, 4, &l.cells, peepholes, g.peephole));
  TRY(call_wide_output(c, 7, 1, bias.shape, &outs[4], &g.bias));
  rdna_tensor *wide[] = {&g.x, &g.state, &g.h, &g.w, &g.bias};
  for (int i = 0; i < 5; i++) TRY(fill(c, 0, wide[i]));
  if (steps && rdna_tensor_count(&state)) {
    TRY(call_scratch(c, x.dtype, 3, (int64_t[]){steps, l.batch, GATES * l.cells}, &g.gates));
    TRY(sequence_backward(c, &l, steps, &all, &state, &d_states, &d_hs, &g));
    TRY(sum_sequence(c, &l, steps, &x, &h, &all, &g));
  }
  for (int i = 0; i < 5; i++) TRY(call_round(c, wide[i], &outs[i]));
  for (int i = 0; i < 3; i++) TRY(call_round(c, &g.peephole[i], &peepholes[i]));
  return RDNA_OK;
}

/* ---- GRU ---- */

struct gru {
  rdna_tensor x, h, w_gates, w_new, b_gates, b_new;
  int64_t batch, width, cells;
};

/* (x, h_prev, w_ru, w_c, b_ru, b_c) */
static rdna_status read_gru(call *c, struct gru *g) {
  rdna_tensor *inputs[] = {&g->x, &g->h, &g->w_gates, &g->w_new, &g->b_gates, &g->b_new};
  for (int i = 0; i < 6; i++) TRY(call_input(c, i, inputs[i]));
  bool fits = g->x.rank == 2 && g->h.rank == 2 && g->x.shape[0] == g->h.shape[0];
  g->batch = fits ? g->x.shape[0] : 0;
  g->width = fits ? g->x.shape[1] : 0;
  g->cells = fits ? g->h.shape[1] : 0;
  int64_t rows = g->width + g->cells, twice = 2 * g->cells;
  if (!fits || !same_shape(&g->w_gates, 2, (int64_t[]){rows, twice}) ||
      !same_shape(&g->w_new, 2, (int64_t[]){rows, g->cells}) || !same_shape(&g->b_gates, 1, &twice) ||
      !same_shape(&g->b_new, 1, &g->cells))
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "a GRU of %lld values and %lld cells wants w_ru (values + cells, 2 cells), w_c (values + cells, "
                     "cells), 2 cells of b_ru and cells of b_c",
                     (long long)g->width, (long long)g->cells);
  return RDNA_OK;
}

/* out = x above + h below + bias, of a weight's rows for x and for h */
static rdna_status both_products(call *c, const struct gru *g, const rdna_tensor *h, const rdna_tensor *w,
                                 const rdna_tensor *bias, const rdna_tensor *out) {
  rdna_tensor above = narrowed(w, 0, 0, g->width), below = narrowed(w, 0, g->width, g->cells);
  TRY(rdna_op_gemm(c->stream, 1, &g->x, &above, 0, bias, out));
  return rdna_op_gemm(c->stream, 1, h, &below, 1, NULL, out);
}

/* Outputs r, u, c, h = u h_prev + (1 - u) c */
rdna_status compute_gru_cell(call *c) {
  struct gru g;
  rdna_tensor out[4], gates, scratch;
  TRY(read_gru(c, &g));
  for (int i = 0; i < 4; i++) TRY(call_output(c, i, 2, g.h.shape, &out[i]));
  if (rdna_tensor_count(&g.h) == 0) return RDNA_OK;
  TRY(call_scratch(c, g.h.dtype, 2, (int64_t[]){g.batch, 2 * g.cells}, &gates));
  TRY(like(c, &g.h, &scratch));
  TRY(both_products(c, &g, &g.h, &g.w_gates, &g.b_gates, &gates));
  for (int i = 0; i < 2; i++) {
    rdna_tensor gate = narrowed(&gates, 1, i * g.cells, g.cells);
    TRY(map(c, RDNA_MAP_SIGMOID, &gate, &out[i]));
  }
  TRY(zip(c, RDNA_ZIP_MUL, &g.h, &out[0], &scratch));
  TRY(both_products(c, &g, &scratch, &g.w_new, &g.b_new, &out[2]));
  TRY(map(c, RDNA_MAP_TANH, &out[2], &out[2]));
  TRY(zip(c, RDNA_ZIP_SUB, &g.h, &out[2], &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, &scratch, &out[1], &scratch));
  return zip(c, RDNA_ZIP_ADD, &scratch, &out[2], &out[3]);
}

/* (…, r, u, c, d_h): gradients of x, of h_prev, and of the arguments of c and of the gates */
rdna_status compute_gru_cell_gradient(call *c) {
  struct gru g;
  rdna_tensor given[4], dx, dh, d_new, d_gates, scratch, inner;
  TRY(read_gru(c, &g));
  for (int i = 0; i < 4; i++) {
    TRY(call_input(c, 6 + i, &given[i]));
    if (!same_shape(&given[i], 2, g.h.shape))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "r, u, c and d_h must have the shape of h_prev");
  }
  const rdna_tensor *r = &given[0], *u = &given[1], *fresh = &given[2], *d = &given[3];
  TRY(call_output(c, 0, 2, g.x.shape, &dx));
  TRY(call_output(c, 1, 2, g.h.shape, &dh));
  TRY(call_output(c, 2, 2, g.h.shape, &d_new));
  TRY(call_output(c, 3, 2, (int64_t[]){g.batch, 2 * g.cells}, &d_gates));
  if (rdna_tensor_count(&g.h) == 0) return fill(c, 0, &dx);
  rdna_tensor d_reset = narrowed(&d_gates, 1, 0, g.cells), d_update = narrowed(&d_gates, 1, g.cells, g.cells),
              w_gates = transposed(g.w_gates), w_new = transposed(g.w_new);
  rdna_tensor new_x = narrowed(&w_new, 1, 0, g.width), new_h = narrowed(&w_new, 1, g.width, g.cells),
              gates_x = narrowed(&w_gates, 1, 0, g.width), gates_h = narrowed(&w_gates, 1, g.width, g.cells);
  TRY(like(c, &g.h, &scratch));
  TRY(like(c, &g.h, &inner));
  TRY(affine(c, u, -1, 1, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, &scratch, d, &scratch));
  TRY(zip(c, RDNA_ZIP_TANH_GRAD, &scratch, fresh, &d_new));
  TRY(zip(c, RDNA_ZIP_SUB, &g.h, fresh, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, &scratch, d, &scratch));
  TRY(zip(c, RDNA_ZIP_SIGMOID_GRAD, &scratch, u, &d_update));
  TRY(rdna_op_gemm(c->stream, 1, &d_new, &new_h, 0, NULL, &inner)); /* of the h that the reset gate let through */
  TRY(zip(c, RDNA_ZIP_MUL, &inner, &g.h, &scratch));
  TRY(zip(c, RDNA_ZIP_SIGMOID_GRAD, &scratch, r, &d_reset));
  TRY(rdna_op_gemm(c->stream, 1, &d_new, &new_x, 0, NULL, &dx));
  TRY(rdna_op_gemm(c->stream, 1, &d_gates, &gates_x, 1, NULL, &dx));
  TRY(zip(c, RDNA_ZIP_MUL, d, u, &dh));
  TRY(zip(c, RDNA_ZIP_MUL, &inner, r, &scratch));
  TRY(zip(c, RDNA_ZIP_ADD, &dh, &scratch, &dh));
  return rdna_op_gemm(c->stream, 1, &d_gates, &gates_h, 1, NULL, &dh);
}
