#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/recurrent/cell_kernels.h"
#include "rdna/op/recurrent.h"

enum { FORWARD, BACKWARD };
static const rdna__route routes[] = {
    [FORWARD] = {.name = "lstm", .kernels = {"lstm_cell_{real}"}, .when = "lstm_cell"},
    [BACKWARD] = {.name = "lstm_backward", .kernels = {"lstm_cell_backward_{real}"}, .when = "lstm_cell_backward"},
};
RDNA_FIXED_ROUTES(rdna__cell_routes, "lstm_cell, lstm_cell_backward", routes)

/* Checks a tensor of as many rows as |c|, each |parts| times as long. */
static rdna_status check_like(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t parts,
                              const rdna_tensor *c) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  RDNA_TRY(rdna__check_rank(op_name, argument, tensor, 2));
  RDNA_TRY(rdna__check_same_dtype(op_name, argument, tensor, "c", c));
  RDNA_TRY(rdna__check_size(op_name, argument, tensor, 0, c->shape[0], "the rows of c"));
  RDNA_TRY(rdna__check_size(op_name, argument, tensor, 1, parts * c->shape[1],
                            parts == 4 ? "four times the row of c" : "the row of c"));
  return rdna__check_dense_tail(op_name, argument, tensor, 1);
}

static rdna_status check_state(const char *op_name, const rdna_tensor *c) {
  RDNA_TRY(rdna__check_real(op_name, "c", c));
  RDNA_TRY(rdna__check_rank(op_name, "c", c, 2));
  return rdna__check_dense_tail(op_name, "c", c, 1);
}

static rdna_status check_bias(const char *op_name, const char *argument, const rdna_tensor *bias,
                              const rdna_tensor *c) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(op_name, argument, bias));
  RDNA_TRY(rdna__check_rank(op_name, argument, bias, 1));
  RDNA_TRY(rdna__check_same_dtype(op_name, argument, bias, "c", c));
  RDNA_TRY(rdna__check_size(op_name, argument, bias, 0, 4 * c->shape[1], "four times the row of c"));
  return rdna__check_contiguous(op_name, argument, bias);
}

static rdna_grid grid_of(const rdna_tensor *c) {
  return (rdna_grid){rdna__groups_in_turn(rdna__divide_up(rdna_tensor_count(c), CELL_THREADS)), 1, 1};
}

rdna_status rdna_op_lstm_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                              const rdna_tensor *input_bias, const rdna_tensor *hidden_bias, const rdna_tensor *c,
                              const rdna_tensor *h_out, const rdna_tensor *c_out, const rdna_tensor *gates) {
  static const char op_name[] = "lstm_cell";
  RDNA_TRY(check_state(op_name, c));
  RDNA_TRY(check_like(op_name, "input", input, 4, c));
  RDNA_TRY(check_like(op_name, "hidden", hidden, 4, c));
  RDNA_TRY(check_bias(op_name, "input_bias", input_bias, c));
  RDNA_TRY(check_bias(op_name, "hidden_bias", hidden_bias, c));
  RDNA_TRY(check_like(op_name, "h_out", h_out, 1, c));
  RDNA_TRY(check_like(op_name, "c_out", c_out, 1, c));
  RDNA_TRY(check_like(op_name, "gates", gates, 4, c));
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
  return RDNA__ROUTE_LAUNCH(stream, &routes[FORWARD], 0, grid_of(c), &args, rdna_dtype_name(c->dtype));
}

rdna_status rdna_op_lstm_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dc,
                                       const rdna_tensor *gates, const rdna_tensor *c, const rdna_tensor *c_next,
                                       const rdna_tensor *dgates, const rdna_tensor *dc_out) {
  static const char op_name[] = "lstm_cell_backward";
  RDNA_TRY(check_state(op_name, c));
  if (dh) RDNA_TRY(check_like(op_name, "dh", dh, 1, c));
  if (dc) RDNA_TRY(check_like(op_name, "dc", dc, 1, c));
  RDNA_TRY(check_like(op_name, "gates", gates, 4, c));
  RDNA_TRY(check_like(op_name, "c_next", c_next, 1, c));
  RDNA_TRY(check_like(op_name, "dgates", dgates, 4, c));
  RDNA_TRY(check_like(op_name, "dc_out", dc_out, 1, c));
  const rdna__named written[] = {{"dc_out", dc_out}, {"dgates", dgates}};
  const rdna__named read[] = {{"dc", dc}, {"dh", dh}, {"gates", gates}, {"c", c}, {"c_next", c_next}};
  for (int i = 0; i < 2; i++) RDNA_TRY(rdna__check_written(op_name, written[i].name, written[i].tensor));
  RDNA_TRY(rdna__check_written_apart(op_name, written, 2, read, 5, 1));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (!rdna_tensor_count(c)) return RDNA_OK;
  struct lstm_cell_backward_args args = {.dh = dh ? dh->data : NULL,
                                         .dc = dc ? dc->data : NULL,
                                         .gates = gates->data,
                                         .c = c->data,
                                         .c_next = c_next->data,
                                         .dgates = dgates->data,
                                         .dc_out = dc_out->data,
                                         .dh_at = dh ? dh->stride[0] : 0,
                                         .dc_at = dc ? dc->stride[0] : 0,
                                         .gates_at = gates->stride[0],
                                         .c_at = c->stride[0],
                                         .c_next_at = c_next->stride[0],
                                         .dgates_at = dgates->stride[0],
                                         .dc_out_at = dc_out->stride[0],
                                         .rows = c->shape[0],
                                         .n = c->shape[1]};
  return RDNA__ROUTE_LAUNCH(stream, &routes[BACKWARD], 0, grid_of(c), &args, rdna_dtype_name(c->dtype));
}
