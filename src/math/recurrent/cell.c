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

typedef enum role { READ, MAYBE, BIAS, WRITTEN } role; /* MAYBE and BIAS may be NULL */

/* A tensor of a call, whose rows are |parts| rows of the state. */
typedef struct part {
  const char *name;
  const rdna_tensor *tensor;
  int parts;
  role role;
} part;

enum { MOST_PARTS = 8 };

/* Checks a call's tensors and its state, which is read too. The first that is written may be one of the first |shared|
 * that are read. */
static rdna_status check_call(rdna_stream *stream, const state *s, const part *parts, int count, int shared) {
  rdna__named read[MOST_PARTS + 1], written[MOST_PARTS];
  int reads = 0, writes = 0;
  for (const part *p = parts; p < parts + count; p++) {
    if (p->role == BIAS)
      RDNA_TRY(check_bias(s, p->name, p->tensor, p->parts));
    else if (p->tensor || p->role != MAYBE)
      RDNA_TRY(check_like(s, p->name, p->tensor, p->parts));
    if (p->role == WRITTEN) RDNA_TRY(rdna__check_written(s->op_name, p->name, p->tensor));
    *(p->role == WRITTEN ? &written[writes++] : &read[reads++]) = (rdna__named){p->name, p->tensor};
  }
  read[reads++] = (rdna__named){s->name, s->tensor};
  RDNA_TRY(rdna__check_written_apart(s->op_name, written, writes, read, reads, shared));
  return rdna__check_stream(s->op_name, stream);
}

static rdna_status launch(rdna_stream *stream, int which, const rdna_tensor *like, const void *args) {
  const int64_t count = rdna_tensor_count(like);
  if (!count) return RDNA_OK;
  const rdna_grid grid = {rdna__groups_in_turn(rdna__divide_up(count, CELL_THREADS)), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &routes[which], 0, grid, args, rdna_dtype_name(like->dtype));
}

static void *data_of(const rdna_tensor *tensor) { return tensor ? tensor->data : NULL; }
static int64_t row_of(const rdna_tensor *tensor) { return tensor ? tensor->stride[0] : 0; }
/* The two members of an argument struct that tell of |tensor|. */
#define ROWS_OF(tensor) .tensor = data_of(tensor), .tensor##_at = row_of(tensor)

rdna_status rdna_op_lstm_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                              const rdna_tensor *input_bias, const rdna_tensor *hidden_bias, const rdna_tensor *c,
                              const rdna_tensor *h_out, const rdna_tensor *c_out, const rdna_tensor *gates) {
  const state like = {"lstm_cell", "c", c};
  RDNA_TRY(check_state(&like));
  const part parts[] = {{"input", input, 4, READ},           {"hidden", hidden, 4, READ},
                        {"input_bias", input_bias, 4, BIAS}, {"hidden_bias", hidden_bias, 4, BIAS},
                        {"gates", gates, 4, WRITTEN},        {"h_out", h_out, 1, WRITTEN},
                        {"c_out", c_out, 1, WRITTEN}};
  RDNA_TRY(check_call(stream, &like, parts, 7, 2));
  struct lstm_cell_args args = {ROWS_OF(input),
                                ROWS_OF(hidden),
                                .input_bias = data_of(input_bias),
                                .hidden_bias = data_of(hidden_bias),
                                ROWS_OF(c),
                                ROWS_OF(h_out),
                                ROWS_OF(c_out),
                                ROWS_OF(gates),
                                .rows = c->shape[0],
                                .n = c->shape[1]};
  return launch(stream, LSTM, c, &args);
}

rdna_status rdna_op_lstm_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dout,
                                       const rdna_tensor *dc, const rdna_tensor *gates, const rdna_tensor *c,
                                       const rdna_tensor *c_next, const rdna_tensor *dgates,
                                       const rdna_tensor *dc_out) {
  const state like = {"lstm_cell_backward", "c", c};
  RDNA_TRY(check_state(&like));
  const part parts[] = {{"dc", dc, 1, MAYBE},          {"dh", dh, 1, MAYBE},        {"dout", dout, 1, MAYBE},
                        {"gates", gates, 4, READ},     {"c_next", c_next, 1, READ}, {"dc_out", dc_out, 1, WRITTEN},
                        {"dgates", dgates, 4, WRITTEN}};
  RDNA_TRY(check_call(stream, &like, parts, 7, 1));
  struct lstm_cell_backward_args args = {ROWS_OF(dh),         ROWS_OF(dout),   ROWS_OF(dc),     ROWS_OF(gates),
                                         ROWS_OF(c),          ROWS_OF(c_next), ROWS_OF(dgates), ROWS_OF(dc_out),
                                         .rows = c->shape[0], .n = c->shape[1]};
  return launch(stream, LSTM_BACKWARD, c, &args);
}

rdna_status rdna_op_gru_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                             const rdna_tensor *input_bias, const rdna_tensor *hidden_bias, const rdna_tensor *h,
                             const rdna_tensor *h_out, const rdna_tensor *gates, const rdna_tensor *inner) {
  const state like = {"gru_cell", "h", h};
  RDNA_TRY(check_state(&like));
  const part parts[] = {{"input", input, 3, READ},           {"hidden", hidden, 3, READ},
                        {"input_bias", input_bias, 3, BIAS}, {"hidden_bias", hidden_bias, 3, BIAS},
                        {"gates", gates, 3, WRITTEN},        {"h_out", h_out, 1, WRITTEN},
                        {"inner", inner, 1, WRITTEN}};
  RDNA_TRY(check_call(stream, &like, parts, 7, 2));
  struct gru_cell_args args = {ROWS_OF(input),
                               ROWS_OF(hidden),
                               .input_bias = data_of(input_bias),
                               .hidden_bias = data_of(hidden_bias),
                               ROWS_OF(h),
                               ROWS_OF(h_out),
                               ROWS_OF(gates),
                               ROWS_OF(inner),
                               .rows = h->shape[0],
                               .n = h->shape[1]};
  return launch(stream, GRU, h, &args);
}

rdna_status rdna_op_gru_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dout,
                                      const rdna_tensor *gates, const rdna_tensor *inner, const rdna_tensor *h,
                                      const rdna_tensor *dinput, const rdna_tensor *dhidden,
                                      const rdna_tensor *dh_out) {
  const state like = {"gru_cell_backward", "h", h};
  RDNA_TRY(check_state(&like));
  const part parts[] = {{"dh", dh, 1, MAYBE},
                        {"dout", dout, 1, MAYBE},
                        {"gates", gates, 3, READ},
                        {"inner", inner, 1, READ},
                        {"dh_out", dh_out, 1, WRITTEN},
                        {"dinput", dinput, 3, WRITTEN},
                        {"dhidden", dhidden, 3, WRITTEN}};
  RDNA_TRY(check_call(stream, &like, parts, 7, 1));
  struct gru_cell_backward_args args = {ROWS_OF(dh),         ROWS_OF(dout),   ROWS_OF(gates),   ROWS_OF(inner),
                                        ROWS_OF(h),          ROWS_OF(dinput), ROWS_OF(dhidden), ROWS_OF(dh_out),
                                        .rows = h->shape[0], .n = h->shape[1]};
  return launch(stream, GRU_BACKWARD, h, &args);
}

rdna_status rdna_op_rnn_cell_backward(rdna_stream *stream, rdna_activation activation, const rdna_tensor *dh,
                                      const rdna_tensor *dout, const rdna_tensor *h_out, const rdna_tensor *dsum) {
  const state like = {"rnn_cell_backward", "h_out", h_out};
  RDNA_TRY(check_state(&like));
  if (activation != RDNA_ACTIVATION_TANH && activation != RDNA_ACTIVATION_RELU) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the activation is tanh or relu, not number %d", like.op_name,
                      activation);
  }
  const part parts[] = {{"dh", dh, 1, MAYBE}, {"dout", dout, 1, MAYBE}, {"dsum", dsum, 1, WRITTEN}};
  RDNA_TRY(check_call(stream, &like, parts, 3, 1));
  struct rnn_cell_backward_args args = {ROWS_OF(dh),
                                        ROWS_OF(dout),
                                        ROWS_OF(h_out),
                                        ROWS_OF(dsum),
                                        .rows = h_out->shape[0],
                                        .n = h_out->shape[1],
                                        .relu = activation == RDNA_ACTIVATION_RELU};
  return launch(stream, RNN_BACKWARD, h_out, &args);
}
