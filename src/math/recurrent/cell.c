#include <stdio.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/recurrent/cell_kernels.h"
#include "rdna/op/recurrent.h"

enum { LSTM, LSTM_BACKWARD, GRU, GRU_BACKWARD, RNN_BACKWARD };
static const rdna__route routes[] = {
    [LSTM] = {.name = "lstm", .kernels = {"lstm_cell_{real}"}, .when = "lstm_cell"},
    [LSTM_BACKWARD] = {.name = "lstm_backward", .kernels = {"lstm_cell_backward_{real}"}, .when = "lstm_cell_backward"},
    [GRU] = {.name = "gru", .kernels = {"gru_cell_{real}"}, .when = "gru_cell"},
    [GRU_BACKWARD] = {.name = "gru_backward", .kernels = {"gru_cell_backward_{real}"}, .when = "gru_cell_backward"},
    [RNN_BACKWARD] = {.name = "rnn_backward", .kernels = {"rnn_cell_backward_{real}"}, .when = "rnn_cell_backward"},
};
RDNA_FIXED_ROUTES(rdna__cell_routes, "lstm_cell, lstm_cell_backward, gru_cell, gru_cell_backward, rnn_cell_backward",
                  routes)

/* A state that the other tensors of a call are compared with: |name| is its argument. */
typedef struct state {
  const char *op_name, *name;
  const rdna_tensor *tensor;
} state;

static rdna_status check_state(const state *s) {
  RDNA_TRY(rdna__check_real(s->op_name, s->name, s->tensor));
  RDNA_TRY(rdna__check_rank(s->op_name, s->name, s->tensor, 2));
  return rdna__check_dense_tail(s->op_name, s->name, s->tensor, 1);
}

/* Checks that dimension |d| of |tensor| is |parts| rows of the state. */
static rdna_status check_parts(const state *s, const char *argument, const rdna_tensor *tensor, int d, int64_t parts) {
  char what[64];
  snprintf(what, sizeof what, "%sthe row of %s",
           parts == 4   ? "four times "
           : parts == 3 ? "three times "
                        : "",
           s->name);
  return rdna__check_size(s->op_name, argument, tensor, d, parts * s->tensor->shape[1], what);
}

/* Checks a tensor of as many rows as the state, each |parts| times as long. */
static rdna_status check_like(const state *s, const char *argument, const rdna_tensor *tensor, int64_t parts) {
  char what[64];
  snprintf(what, sizeof what, "the rows of %s", s->name);
  RDNA_TRY(rdna__check_tensor(s->op_name, argument, tensor));
  RDNA_TRY(rdna__check_rank(s->op_name, argument, tensor, 2));
  RDNA_TRY(rdna__check_same_dtype(s->op_name, argument, tensor, s->name, s->tensor));
  RDNA_TRY(rdna__check_size(s->op_name, argument, tensor, 0, s->tensor->shape[0], what));
  RDNA_TRY(check_parts(s, argument, tensor, 1, parts));
  return rdna__check_dense_tail(s->op_name, argument, tensor, 1);
}

static rdna_status check_bias(const state *s, const char *argument, const rdna_tensor *bias, int64_t parts) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(s->op_name, argument, bias));
  RDNA_TRY(rdna__check_rank(s->op_name, argument, bias, 1));
  RDNA_TRY(rdna__check_same_dtype(s->op_name, argument, bias, s->name, s->tensor));
  RDNA_TRY(check_parts(s, argument, bias, 0, parts));
  return rdna__check_contiguous(s->op_name, argument, bias);
}

static rdna_grid grid_of(const rdna_tensor *c) {
  return (rdna_grid){rdna__groups_in_turn(rdna__divide_up(rdna_tensor_count(c), CELL_THREADS)), 1, 1};
}

rdna_status rdna_op_lstm_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                              const rdna_tensor *input_bias, const rdna_tensor *hidden_bias, const rdna_tensor *c,
                              const rdna_tensor *h_out, const rdna_tensor *c_out, const rdna_tensor *gates) {
  static const char op_name[] = "lstm_cell";
  const state like = {op_name, "c", c};
  RDNA_TRY(check_state(&like));
  RDNA_TRY(check_like(&like, "input", input, 4));
  RDNA_TRY(check_like(&like, "hidden", hidden, 4));
  RDNA_TRY(check_bias(&like, "input_bias", input_bias, 4));
  RDNA_TRY(check_bias(&like, "hidden_bias", hidden_bias, 4));
  RDNA_TRY(check_like(&like, "h_out", h_out, 1));
  RDNA_TRY(check_like(&like, "c_out", c_out, 1));
  RDNA_TRY(check_like(&like, "gates", gates, 4));
  const rdna__named written[] = {{"gates", gates}, {"h_out", h_out}, {"c_out", c_out}};
  const rdna__named read[] = {
      {"input", input}, {"hidden", hidden}, {"input_bias", input_bias}, {"hidden_bias", hidden_bias}, {"c", c}};
  for (int i = 0; i < 3; i++) RDNA_TRY(rdna__check_written(op_name, written[i].name, written[i].tensor));
  RDNA_TRY(rdna__check_written_apart(op_name, written, 3, read, 5, 2));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (!rdna_tensor_count(c)) return RDNA_OK;
  struct lstm_cell_args args = {.input = input->data,
                                .hidden = hidden->data,
                                .input_bias = input_bias ? input_bias->data : NULL,
                                .hidden_bias = hidden_bias ? hidden_bias->data : NULL,
                                .c = c->data,
                                .h_out = h_out->data,
                                .c_out = c_out->data,
                                .gates = gates->data,
                                .input_at = input->stride[0],
                                .hidden_at = hidden->stride[0],
                                .c_at = c->stride[0],
                                .h_out_at = h_out->stride[0],
                                .c_out_at = c_out->stride[0],
                                .gates_at = gates->stride[0],
                                .rows = c->shape[0],
                                .n = c->shape[1]};
  return RDNA__ROUTE_LAUNCH(stream, &routes[LSTM], 0, grid_of(c), &args, rdna_dtype_name(c->dtype));
}

rdna_status rdna_op_lstm_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dout,
                                       const rdna_tensor *dc, const rdna_tensor *gates, const rdna_tensor *c,
                                       const rdna_tensor *c_next, const rdna_tensor *dgates,
                                       const rdna_tensor *dc_out) {
  static const char op_name[] = "lstm_cell_backward";
  const state like = {op_name, "c", c};
  RDNA_TRY(check_state(&like));
  if (dh) RDNA_TRY(check_like(&like, "dh", dh, 1));
  if (dout) RDNA_TRY(check_like(&like, "dout", dout, 1));
  if (dc) RDNA_TRY(check_like(&like, "dc", dc, 1));
  RDNA_TRY(check_like(&like, "gates", gates, 4));
  RDNA_TRY(check_like(&like, "c_next", c_next, 1));
  RDNA_TRY(check_like(&like, "dgates", dgates, 4));
  RDNA_TRY(check_like(&like, "dc_out", dc_out, 1));
  const rdna__named written[] = {{"dc_out", dc_out}, {"dgates", dgates}};
  const rdna__named read[] = {{"dc", dc}, {"dh", dh}, {"dout", dout}, {"gates", gates}, {"c", c}, {"c_next", c_next}};
  for (int i = 0; i < 2; i++) RDNA_TRY(rdna__check_written(op_name, written[i].name, written[i].tensor));
  RDNA_TRY(rdna__check_written_apart(op_name, written, 2, read, 6, 1));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (!rdna_tensor_count(c)) return RDNA_OK;
  struct lstm_cell_backward_args args = {.dh = dh ? dh->data : NULL,
                                         .dout = dout ? dout->data : NULL,
                                         .dc = dc ? dc->data : NULL,
                                         .gates = gates->data,
                                         .c = c->data,
                                         .c_next = c_next->data,
                                         .dgates = dgates->data,
                                         .dc_out = dc_out->data,
                                         .dh_at = dh ? dh->stride[0] : 0,
                                         .dout_at = dout ? dout->stride[0] : 0,
                                         .dc_at = dc ? dc->stride[0] : 0,
                                         .gates_at = gates->stride[0],
                                         .c_at = c->stride[0],
                                         .c_next_at = c_next->stride[0],
                                         .dgates_at = dgates->stride[0],
                                         .dc_out_at = dc_out->stride[0],
                                         .rows = c->shape[0],
                                         .n = c->shape[1]};
  return RDNA__ROUTE_LAUNCH(stream, &routes[LSTM_BACKWARD], 0, grid_of(c), &args, rdna_dtype_name(c->dtype));
}

rdna_status rdna_op_gru_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                             const rdna_tensor *input_bias, const rdna_tensor *hidden_bias, const rdna_tensor *h,
                             const rdna_tensor *h_out, const rdna_tensor *gates, const rdna_tensor *inner) {
  static const char op_name[] = "gru_cell";
  const state like = {op_name, "h", h};
  RDNA_TRY(check_state(&like));
  RDNA_TRY(check_like(&like, "input", input, 3));
  RDNA_TRY(check_like(&like, "hidden", hidden, 3));
  RDNA_TRY(check_bias(&like, "input_bias", input_bias, 3));
  RDNA_TRY(check_bias(&like, "hidden_bias", hidden_bias, 3));
  RDNA_TRY(check_like(&like, "h_out", h_out, 1));
  RDNA_TRY(check_like(&like, "gates", gates, 3));
  RDNA_TRY(check_like(&like, "inner", inner, 1));
  const rdna__named written[] = {{"gates", gates}, {"h_out", h_out}, {"inner", inner}};
  const rdna__named read[] = {
      {"input", input}, {"hidden", hidden}, {"input_bias", input_bias}, {"hidden_bias", hidden_bias}, {"h", h}};
  for (int i = 0; i < 3; i++) RDNA_TRY(rdna__check_written(op_name, written[i].name, written[i].tensor));
  RDNA_TRY(rdna__check_written_apart(op_name, written, 3, read, 5, 2));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (!rdna_tensor_count(h)) return RDNA_OK;
  struct gru_cell_args args = {.input = input->data,
                               .hidden = hidden->data,
                               .input_bias = input_bias ? input_bias->data : NULL,
                               .hidden_bias = hidden_bias ? hidden_bias->data : NULL,
                               .h = h->data,
                               .h_out = h_out->data,
                               .gates = gates->data,
                               .inner = inner->data,
                               .input_at = input->stride[0],
                               .hidden_at = hidden->stride[0],
                               .h_at = h->stride[0],
                               .h_out_at = h_out->stride[0],
                               .gates_at = gates->stride[0],
                               .inner_at = inner->stride[0],
                               .rows = h->shape[0],
                               .n = h->shape[1]};
  return RDNA__ROUTE_LAUNCH(stream, &routes[GRU], 0, grid_of(h), &args, rdna_dtype_name(h->dtype));
}

rdna_status rdna_op_gru_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dout,
                                      const rdna_tensor *gates, const rdna_tensor *inner, const rdna_tensor *h,
                                      const rdna_tensor *dinput, const rdna_tensor *dhidden,
                                      const rdna_tensor *dh_out) {
  static const char op_name[] = "gru_cell_backward";
  const state like = {op_name, "h", h};
  RDNA_TRY(check_state(&like));
  if (dh) RDNA_TRY(check_like(&like, "dh", dh, 1));
  if (dout) RDNA_TRY(check_like(&like, "dout", dout, 1));
  RDNA_TRY(check_like(&like, "gates", gates, 3));
  RDNA_TRY(check_like(&like, "inner", inner, 1));
  RDNA_TRY(check_like(&like, "dinput", dinput, 3));
  RDNA_TRY(check_like(&like, "dhidden", dhidden, 3));
  RDNA_TRY(check_like(&like, "dh_out", dh_out, 1));
  const rdna__named written[] = {{"dh_out", dh_out}, {"dinput", dinput}, {"dhidden", dhidden}};
  const rdna__named read[] = {{"dh", dh}, {"dout", dout}, {"gates", gates}, {"inner", inner}, {"h", h}};
  for (int i = 0; i < 3; i++) RDNA_TRY(rdna__check_written(op_name, written[i].name, written[i].tensor));
  RDNA_TRY(rdna__check_written_apart(op_name, written, 3, read, 5, 1));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (!rdna_tensor_count(h)) return RDNA_OK;
  struct gru_cell_backward_args args = {.dh = dh ? dh->data : NULL,
                                        .dout = dout ? dout->data : NULL,
                                        .gates = gates->data,
                                        .inner = inner->data,
                                        .h = h->data,
                                        .dinput = dinput->data,
                                        .dhidden = dhidden->data,
                                        .dh_out = dh_out->data,
                                        .dh_at = dh ? dh->stride[0] : 0,
                                        .dout_at = dout ? dout->stride[0] : 0,
                                        .gates_at = gates->stride[0],
                                        .inner_at = inner->stride[0],
                                        .h_at = h->stride[0],
                                        .dinput_at = dinput->stride[0],
                                        .dhidden_at = dhidden->stride[0],
                                        .dh_out_at = dh_out->stride[0],
                                        .rows = h->shape[0],
                                        .n = h->shape[1]};
  return RDNA__ROUTE_LAUNCH(stream, &routes[GRU_BACKWARD], 0, grid_of(h), &args, rdna_dtype_name(h->dtype));
}

rdna_status rdna_op_rnn_cell_backward(rdna_stream *stream, rdna_activation activation, const rdna_tensor *dh,
                                      const rdna_tensor *dout, const rdna_tensor *h_out, const rdna_tensor *dsum) {
  static const char op_name[] = "rnn_cell_backward";
  const state like = {op_name, "h_out", h_out};
  RDNA_TRY(check_state(&like));
  if (activation != RDNA_ACTIVATION_TANH && activation != RDNA_ACTIVATION_RELU)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the activation is tanh or relu, not number %d", op_name, activation);
  if (dh) RDNA_TRY(check_like(&like, "dh", dh, 1));
  if (dout) RDNA_TRY(check_like(&like, "dout", dout, 1));
  RDNA_TRY(check_like(&like, "dsum", dsum, 1));
  const rdna__named written[] = {{"dsum", dsum}}, read[] = {{"dh", dh}, {"dout", dout}, {"h_out", h_out}};
  RDNA_TRY(rdna__check_written(op_name, "dsum", dsum));
  RDNA_TRY(rdna__check_written_apart(op_name, written, 1, read, 3, 1));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (!rdna_tensor_count(h_out)) return RDNA_OK;
  struct rnn_cell_backward_args args = {.dh = dh ? dh->data : NULL,
                                        .dout = dout ? dout->data : NULL,
                                        .h_out = h_out->data,
                                        .dsum = dsum->data,
                                        .dh_at = dh ? dh->stride[0] : 0,
                                        .dout_at = dout ? dout->stride[0] : 0,
                                        .h_out_at = h_out->stride[0],
                                        .dsum_at = dsum->stride[0],
                                        .rows = h_out->shape[0],
                                        .n = h_out->shape[1],
                                        .relu = activation == RDNA_ACTIVATION_RELU};
  return RDNA__ROUTE_LAUNCH(stream, &routes[RNN_BACKWARD], 0, grid_of(h_out), &args, rdna_dtype_name(h_out->dtype));
}
