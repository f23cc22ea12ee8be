#include "graph/recurrent_run.h"

#include "array/array.h"
#include "device/driver.h"
#include "rdna/op/gemm.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"

static const rdna_scalar nothing = {0, 0};

static bool is_plain(rdna_cell cell) { return cell == RDNA_CELL_TANH || cell == RDNA_CELL_RELU; }

static rdna_activation activation_of(rdna_cell cell) {
  return cell == RDNA_CELL_TANH ? RDNA_ACTIVATION_TANH : RDNA_ACTIVATION_RELU;
}

/* ---- parts of tensors ---- */

/* A part of a tensor, and where it is described: NULL of a tensor that is not there. */
typedef struct part {
  rdna_tensor tensor;
  const rdna_tensor *at;
} part;

/* (steps, rows, …) as (steps * rows, …) */
static rdna_tensor flat(const rdna_tensor *t) {
  return rdna_tensor_contiguous(t->data, t->dtype, 2, (int64_t[]){t->shape[0] * t->shape[1], t->shape[2]});
}

static const rdna_tensor *flatten(const rdna_tensor *t, rdna_tensor *place) {
  if (!t) return NULL;
  *place = flat(t);
  return place;
}

/* Step |t| of (steps, rows, width), as (rows, width). */
static void step_of(const rdna_tensor *t, int64_t step, part *p) {
  p->at = NULL;
  if (!t) return;
  size_t bytes = rdna_dtype_bytes(t->dtype, t->shape[1] * t->shape[2]);
  char *data = t->data ? (char *)t->data + (size_t)step * bytes : NULL;
  p->tensor = rdna_tensor_contiguous(data, t->dtype, 2, t->shape + 1);
  p->at = &p->tensor;
}

static rdna_tensor transposed(const rdna_tensor *t) {
  rdna_tensor turned = *t;
  turned.shape[0] = t->shape[1], turned.shape[1] = t->shape[0];
  turned.stride[0] = t->stride[1], turned.stride[1] = t->stride[0];
  return turned;
}

static int64_t steps_of(const rdna__recurrent *l) { return l->x->shape[0]; }
static int64_t rows_of(const rdna__recurrent *l) { return l->h->shape[0]; }
static int64_t units_of(const rdna__recurrent *l) { return l->h->shape[1]; }

/* The state that step |t| reads: |first|, or what |made| has of the step before. */
static const rdna_tensor *before(const rdna__recurrent *l, int64_t t, const rdna_tensor *first, const rdna_tensor *made,
                                 part *place) {
  int64_t from = l->reverse ? t + 1 : t - 1;
  if (from < 0 || from == steps_of(l)) return first;
  step_of(made, from, place);
  return place->at;
}

static int64_t in_turn(const rdna__recurrent *l, int64_t i) { return l->reverse ? steps_of(l) - 1 - i : i; }

/* On the host a launch costs nothing, and the products of gemm are two to five times as fast from 32 units on. */
static bool is_whole(const rdna__recurrent *l) {
  const rdna__driver *driver = rdna__device_driver(rdna_stream_device(l->stream));
  return driver->code_format != RDNA__CODE_HOST &&
         rdna_recurrent_layer_pays(l->cell, l->h->dtype, rows_of(l), units_of(l));
}

static rdna_recurrent_layer describe(const rdna__recurrent *l) {
  return (rdna_recurrent_layer){RDNA_RECURRENT_LAYER_INIT, .cell = l->cell, .reverse = l->reverse,
                                .weight = l->weight_hh,    .h = l->h,       .c = l->c};
}

/* ---- forward ---- */

/* h_out = activation(h w + h_out) */
static rdna_status plain_step(const rdna__recurrent *l, const rdna_tensor *h, const rdna_tensor *w,
                              const rdna_tensor *h_out) {
  if (h_out->dtype == RDNA_F64) { /* products of f64 apply no functions */
    RDNA_TRY(rdna_op_gemm(l->stream, 1, h, w, 1, NULL, h_out));
    return rdna_op_map(l->stream, l->cell == RDNA_CELL_TANH ? RDNA_MAP_TANH : RDNA_MAP_RELU, h_out, nothing, nothing,
                       h_out);
  }
  rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .beta = 1, .activation = activation_of(l->cell)};
  return rdna_op_gemm_epilogue(l->stream, &epilogue, h, w, h_out);
}

/* |carried| (rows, parts n) is room for a step's product. */
static rdna_status steps_forward(const rdna__recurrent *l, const rdna_tensor *carried) {
  rdna_tensor w = transposed(l->weight_hh);
  for (int64_t i = 0; i < steps_of(l); i++) {
    int64_t t = in_turn(l, i);
    part last, last_c, to, second, gates;
    const rdna_tensor *h = before(l, t, l->h, l->out, &last);
    step_of(l->out, t, &to);
    if (is_plain(l->cell)) {
      RDNA_TRY(plain_step(l, h, &w, to.at));
      continue;
    }
    step_of(l->second, t, &second);
    step_of(l->gates, t, &gates);
    RDNA_TRY(rdna_op_gemm(l->stream, 1, h, &w, 0, NULL, carried));
    if (l->cell == RDNA_CELL_GRU)
      RDNA_TRY(rdna_op_gru_cell(l->stream, gates.at, carried, NULL, l->hidden_bias, h, to.at, gates.at, second.at));
    else
      RDNA_TRY(rdna_op_lstm_cell(l->stream, gates.at, carried, NULL, NULL, before(l, t, l->c, l->second, &last_c),
                                 to.at, second.at, gates.at));
  }
  return RDNA_OK;
}

rdna_status rdna__recurrent_forward(const rdna__recurrent *l) {
  rdna_tensor x = flat(l->x), sums = flat(is_plain(l->cell) ? l->out : l->gates), by = transposed(l->weight_ih);
  RDNA_TRY(rdna_op_gemm(l->stream, 1, &x, &by, 0, l->bias, &sums)); /* of all steps in one product */
  if (is_whole(l)) {
    rdna_tensor out = flat(l->out), gates, second;
    rdna_recurrent_layer layer = describe(l);
    layer.bias = l->hidden_bias;
    const rdna_tensor *of_cells = flatten(l->second, &second);
    return rdna_op_recurrent_layer(l->stream, &layer, flatten(l->gates, &gates), &out,
                                   l->cell == RDNA_CELL_LSTM ? of_cells : NULL,
                                   l->cell == RDNA_CELL_GRU ? of_cells : NULL);
  }
  rdna_array *carried = NULL;
  if (!is_plain(l->cell))
    RDNA_TRY(rdna__array_make(l->stream, l->h->dtype, 2, (int64_t[]){rows_of(l), l->weight_hh->shape[0]}, &carried));
  rdna_status status = steps_forward(l, carried ? &carried->tensor : NULL);
  rdna_array_release(carried);
  return status;
}

/* ---- backward ---- */

/* From the last step to the first; |dh| and |dc| are what each hands back. */
static rdna_status steps_backward(const rdna__recurrent *l, const rdna_tensor *dout, const rdna_tensor *dlast_c,
                                  const rdna_tensor *dsums, const rdna_tensor *dhidden, const rdna_tensor *dh,
                                  const rdna_tensor *dc) {
  for (int64_t i = steps_of(l) - 1; i >= 0; i--) {
    int64_t t = in_turn(l, i);
    bool is_last = i == steps_of(l) - 1;
    part given, gates, second, out, sums, hidden, last;
    const rdna_tensor *later = is_last ? NULL : dh;
    step_of(dout, t, &given);
    step_of(l->gates, t, &gates);
    step_of(l->second, t, &second);
    step_of(l->out, t, &out);
    step_of(dsums, t, &sums);
    step_of(dhidden, t, &hidden);
    if (l->cell == RDNA_CELL_LSTM)
      RDNA_TRY(rdna_op_lstm_cell_backward(l->stream, later, given.at, is_last ? dlast_c : dc, gates.at,
                                          before(l, t, l->c, l->second, &last), second.at, sums.at, dc));
    else if (l->cell == RDNA_CELL_GRU)
      RDNA_TRY(rdna_op_gru_cell_backward(l->stream, later, given.at, gates.at, second.at,
                                         before(l, t, l->h, l->out, &last), sums.at, hidden.at, dh));
    else
      RDNA_TRY(rdna_op_rnn_cell_backward(l->stream, activation_of(l->cell), later, given.at, out.at, sums.at));
    bool of_gru = l->cell == RDNA_CELL_GRU; /* whose state is also read beside the product */
    RDNA_TRY(rdna_op_gemm(l->stream, 1, of_gru ? hidden.at : sums.at, l->weight_hh, of_gru, NULL, dh));
  }
  return RDNA_OK;
}

rdna_status rdna__recurrent_backward(const rdna__recurrent *l, const rdna_tensor *dout, const rdna_tensor *dc,
                                     const rdna_tensor *dsums, const rdna_tensor *dhidden, const rdna_tensor *dh,
                                     const rdna_tensor *dfirst_c) {
  if (!is_whole(l)) return steps_backward(l, dout, dc, dsums, dhidden, dh, dfirst_c);
  rdna_recurrent_layer layer = describe(l);
  rdna_tensor given, gates, out = flat(l->out), second, sums = flat(dsums), hidden;
  const rdna_tensor *of_cells = flatten(l->second, &second);
  return rdna_op_recurrent_layer_backward(l->stream, &layer, flatten(dout, &given), NULL, dc, flatten(l->gates, &gates),
                                          &out, l->cell == RDNA_CELL_LSTM ? of_cells : NULL,
                                          l->cell == RDNA_CELL_GRU ? of_cells : NULL, &sums, flatten(dhidden, &hidden),
                                          dh, dfirst_c);
}
