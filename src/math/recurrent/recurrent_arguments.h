/* Rows of the operators of recurrent.h for arguments_test.c: tokens M, of B sequences; channels or values of a head N,
 * heads of q and k B, each with 2 of v. */
#ifndef RDNA_MATH_RECURRENT_RECURRENT_ARGUMENTS_H
#define RDNA_MATH_RECURRENT_RECURRENT_ARGUMENTS_H

#include "math/common/test/arguments.h"

static const rdna_sequences *sequences(void) {
  static rdna_sequences s;
  s = (rdna_sequences){RDNA_SEQUENCES_INIT, .starts = in("starts", ONLY(RDNA_I32), 0, SHAPE(B + 1)),
                       .slots = in("slots", ONLY(RDNA_I32), 0, SHAPE(B)),
                       .max_tokens = (int64_t)number("max_tokens", 2, "1 1000000", "0 -1")};
  return given_options("sequences", &s);
}
#define CONV_ACTIVATION (rdna_activation) number("activation", RDNA_ACTIVATION_SILU, "0", "-1 1 7")
OPERATOR(causal_conv, plain, .empty = "MNB") {
  return rdna_op_causal_conv(stream, sequences(), in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, 0, SHAPE(N, 3)),
                             CONV_ACTIVATION, out("state", MAIN, FREE, SHAPE(5, N, 2)),
                             out("out", MAIN, 0, SHAPE(M, N)));
}

static const rdna_gated_delta *delta(void) {
  static rdna_gated_delta d;
  d = (rdna_gated_delta){RDNA_GATED_DELTA_INIT, .scale = (float)number("scale", 0.5, "0 -1", "nan inf -inf"),
                         .epsilon = (float)EPSILON, .rate = in("rate", MAIN, STRIDED, SHAPE(B, 2)),
                         .dt = in("dt", MAIN, STRIDED, SHAPE(B, 2))};
  return given_options("options", &d);
}
OPERATOR(gated_delta, plain, .empty = "MNB") {
  return rdna_op_gated_delta(stream, delta(), sequences(), in("q", MAIN, ALIGNED, SHAPE(M, B, 8)),
                             in("k", MAIN, ALIGNED, SHAPE(M, B, 8)), in("v", MAIN, 0, SHAPE(M, B, 2, N)),
                             in("a", MAIN, STRIDED, SHAPE(M, B, 2)), in("b", MAIN, STRIDED, SHAPE(M, B, 2)),
                             out("state", MAIN, ALIGNED | FREE, SHAPE(3, B, 2, N, 8)),
                             out("out", MAIN, 0, SHAPE(M, B, 2, N)));
}

OPERATOR(rms_norm_gated, f32, .types = F32, .besides = HALVES, .empty = "MNB", .same = "out=x out=gate") {
  return rdna_op_rms_norm_gated(stream, in("x", MAIN, 0, SHAPE(M, B, N)), in("gate", MAIN, 0, SHAPE(M, B, N)),
                                in("weight", MAIN, OPTIONAL, SHAPE(N)), EPSILON,
                                out("out", MAIN_OR(FLOATS), 0, SHAPE(M, B, N)));
}
OPERATOR(mul_sigmoid, f32, .types = F32, .besides = HALVES, .empty = "MNB", .same = "out=x out=gate") {
  return rdna_op_mul_sigmoid(stream, in("x", MAIN, 0, SHAPE(M, B, N)), in("gate", MAIN, 0, SHAPE(M, B, N)),
                             out("out", MAIN_OR(FLOATS), 0, SHAPE(M, B, N)));
}
OPERATOR(mul_sigmoid, one_gate, .types = F32, .besides = HALVES, .empty = "MNB", .same = "out=x") {
  return rdna_op_mul_sigmoid(stream, in("x", MAIN, 0, SHAPE(M, B, N)), in("gate", MAIN, 0, SHAPE(M, B, 1)),
                             out("out", MAIN_OR(FLOATS), 0, SHAPE(M, B, N)));
}

OPERATOR(lstm_cell, plain, .types = REALS, .empty = "MN", .same = "gates=input gates=hidden") {
  return rdna_op_lstm_cell(stream, in("input", MAIN, 0, SHAPE(M, 4 * N)), in("hidden", MAIN, 0, SHAPE(M, 4 * N)),
                           in("input_bias", MAIN, OPTIONAL, SHAPE(4 * N)),
                           in("hidden_bias", MAIN, OPTIONAL, SHAPE(4 * N)), in("c", MAIN, 0, SHAPE(M, N)),
                           out("h_out", MAIN, 0, SHAPE(M, N)), out("c_out", MAIN, 0, SHAPE(M, N)),
                           out("gates", MAIN, 0, SHAPE(M, 4 * N)));
}
OPERATOR(lstm_cell_backward, plain, .types = REALS, .empty = "MN", .same = "dc_out=dc") {
  return rdna_op_lstm_cell_backward(
      stream, in("dh", MAIN, OPTIONAL, SHAPE(M, N)), in("dout", MAIN, OPTIONAL, SHAPE(M, N)),
      in("dc", MAIN, OPTIONAL, SHAPE(M, N)), in("gates", MAIN, 0, SHAPE(M, 4 * N)), in("c", MAIN, 0, SHAPE(M, N)),
      in("c_next", MAIN, 0, SHAPE(M, N)), out("dgates", MAIN, 0, SHAPE(M, 4 * N)), out("dc_out", MAIN, 0, SHAPE(M, N)));
}

OPERATOR(gru_cell, plain, .types = REALS, .empty = "MN", .same = "gates=input gates=hidden") {
  return rdna_op_gru_cell(stream, in("input", MAIN, 0, SHAPE(M, 3 * N)), in("hidden", MAIN, 0, SHAPE(M, 3 * N)),
                          in("input_bias", MAIN, OPTIONAL, SHAPE(3 * N)),
                          in("hidden_bias", MAIN, OPTIONAL, SHAPE(3 * N)), in("h", MAIN, 0, SHAPE(M, N)),
                          out("h_out", MAIN, 0, SHAPE(M, N)), out("gates", MAIN, 0, SHAPE(M, 3 * N)),
                          out("inner", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gru_cell_backward, plain, .types = REALS, .empty = "MN", .same = "dh_out=dh") {
  return rdna_op_gru_cell_backward(stream, in("dh", MAIN, OPTIONAL, SHAPE(M, N)),
                                   in("dout", MAIN, OPTIONAL, SHAPE(M, N)), in("gates", MAIN, 0, SHAPE(M, 3 * N)),
                                   in("inner", MAIN, 0, SHAPE(M, N)), in("h", MAIN, 0, SHAPE(M, N)),
                                   out("dinput", MAIN, 0, SHAPE(M, 3 * N)), out("dhidden", MAIN, 0, SHAPE(M, 3 * N)),
                                   out("dh_out", MAIN, 0, SHAPE(M, N)));
}
#define RNN_ACTIVATION (rdna_activation) number("activation", RDNA_ACTIVATION_TANH, "1 3", "-1 0 2 4 7")
OPERATOR(rnn_cell_backward, plain, .types = REALS, .empty = "MN", .same = "dsum=dh") {
  return rdna_op_rnn_cell_backward(stream, RNN_ACTIVATION, in("dh", MAIN, OPTIONAL, SHAPE(M, N)),
                                   in("dout", MAIN, OPTIONAL, SHAPE(M, N)), in("h_out", MAIN, 0, SHAPE(M, N)),
                                   out("dsum", MAIN, 0, SHAPE(M, N)));
}

/* Layers of M rows in 3 steps. */
static const rdna_recurrent_layer *layer_of(rdna_cell cell, int64_t parts, bool forward) {
  static rdna_recurrent_layer l;
  l = (rdna_recurrent_layer){RDNA_RECURRENT_LAYER_INIT,
                             .cell = (rdna_cell)number("cell", cell, "", "-1 4"),
                             .begin = in("begin", ONLY(RDNA_I32), OPTIONAL | FREE, SHAPE(4)),
                             .weight = in("weight", MAIN, 0, SHAPE(parts * N, N)),
                             .bias = forward && cell == RDNA_CELL_GRU ? in("bias", MAIN, OPTIONAL, SHAPE(3 * N)) : NULL,
                             .h = in("h", MAIN, forward && cell != RDNA_CELL_LSTM ? FREE : 0, SHAPE(M, N)),
                             .c = cell == RDNA_CELL_LSTM ? in("c", MAIN, 0, SHAPE(M, N)) : NULL};
  return given_options("layer", &l);
}
OPERATOR(recurrent_layer, lstm, .types = FLOATS, .empty = "MN") {
  return rdna_op_recurrent_layer(stream, layer_of(RDNA_CELL_LSTM, 4, false), out("gates", MAIN, 0, SHAPE(3 * M, 4 * N)),
                                 out("out", MAIN, 0, SHAPE(3 * M, N)), out("cells", MAIN, 0, SHAPE(3 * M, N)), NULL);
}
OPERATOR(recurrent_layer, gru, .types = FLOATS, .empty = "MN") {
  return rdna_op_recurrent_layer(stream, layer_of(RDNA_CELL_GRU, 3, true), out("gates", MAIN, 0, SHAPE(3 * M, 3 * N)),
                                 out("out", MAIN, 0, SHAPE(3 * M, N)), NULL, out("inner", MAIN, 0, SHAPE(3 * M, N)));
}
OPERATOR(recurrent_layer, tanh, .types = FLOATS, .empty = "MN") {
  return rdna_op_recurrent_layer(stream, layer_of(RDNA_CELL_TANH, 1, true), NULL,
                                 out("out", MAIN, FREE, SHAPE(3 * M, N)), NULL, NULL);
}
OPERATOR(recurrent_layer_backward, lstm, .types = FLOATS, .empty = "MN") {
  return rdna_op_recurrent_layer_backward(
      stream, layer_of(RDNA_CELL_LSTM, 4, false), in("dout", MAIN, OPTIONAL, SHAPE(3 * M, N)),
      in("dh", MAIN, OPTIONAL, SHAPE(M, N)), in("dc", MAIN, OPTIONAL, SHAPE(M, N)),
      in("gates", MAIN, 0, SHAPE(3 * M, 4 * N)), in("out", MAIN, 0, SHAPE(3 * M, N)),
      in("cells", MAIN, 0, SHAPE(3 * M, N)), NULL, out("dsums", MAIN, 0, SHAPE(3 * M, 4 * N)), NULL,
      out("dfirst", MAIN, 0, SHAPE(M, N)), out("dfirst_c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(recurrent_layer_backward, gru, .types = FLOATS, .empty = "MN") {
  return rdna_op_recurrent_layer_backward(
      stream, layer_of(RDNA_CELL_GRU, 3, false), in("dout", MAIN, OPTIONAL, SHAPE(3 * M, N)),
      in("dh", MAIN, OPTIONAL, SHAPE(M, N)), NULL, in("gates", MAIN, 0, SHAPE(3 * M, 3 * N)),
      in("out", MAIN, 0, SHAPE(3 * M, N)), NULL, in("inner", MAIN, 0, SHAPE(3 * M, N)),
      out("dsums", MAIN, 0, SHAPE(3 * M, 3 * N)), out("dhidden", MAIN, 0, SHAPE(3 * M, 3 * N)),
      out("dfirst", MAIN, 0, SHAPE(M, N)), NULL);
}

#endif
