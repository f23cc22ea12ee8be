/* One step of an LSTM or GRU and its gradient, over all values of the state: what follows the products with the
 * weights. */
#ifndef RDNA_MATH_RECURRENT_CELL_KERNELS_H
#define RDNA_MATH_RECURRENT_CELL_KERNELS_H

#include <stdint.h>

enum { CELL_THREADS = 256 };

/* The kernel's name ends in the type of all tensors. A thread has one value of the state, with its gates, which lie
 * |n| apart in a row; groups go on after one another, so any grid is right. |at| is the distance of rows. */
struct lstm_cell_args {
  const void *input, *hidden;           /* (rows, 4 n), whose sum with the biases is what the gates are made of */
  const void *input_bias, *hidden_bias; /* (4 n) or NULL */
  const void *c;                        /* (rows, n) */
  void *h_out, *c_out;                  /* (rows, n) */
  void *gates;                          /* (rows, 4 n), after their functions; may be |input| or |hidden| */
  int64_t input_at, hidden_at, c_at, h_out_at, c_out_at, gates_at;
  int64_t rows, n;
};

struct lstm_cell_backward_args {
  const void *dh, *dout;  /* (rows, n), whose sum is the gradient of h_out, or NULL for zeros */
  const void *dc;         /* (rows, n), or NULL for zeros */
  const void *gates;      /* (rows, 4 n), as the step made them */
  const void *c, *c_next; /* (rows, n), before and after the step */
  void *dgates;           /* (rows, 4 n), of what the gates are made of */
  void *dc_out;           /* (rows, n), of |c|; may be |dc| */
  int64_t dh_at, dout_at, dc_at, gates_at, c_at, c_next_at, dgates_at, dc_out_at;
  int64_t rows, n;
};

struct gru_cell_args {
  const void *input, *hidden;           /* (rows, 3 n) */
  const void *input_bias, *hidden_bias; /* (3 n) or NULL */
  const void *h;                        /* (rows, n) */
  void *h_out;                          /* (rows, n) */
  void *gates;                          /* (rows, 3 n), after their functions; may be |input| or |hidden| */
  void *inner;                          /* (rows, n): what the reset gate is a factor of */
  int64_t input_at, hidden_at, h_at, h_out_at, gates_at, inner_at;
  int64_t rows, n;
};

struct gru_cell_backward_args {
  const void *dh, *dout;         /* (rows, n), whose sum is the gradient of h_out, or NULL for zeros */
  const void *gates, *inner, *h; /* (rows, 3 n), (rows, n) twice, of the step */
  void *dinput, *dhidden;        /* (rows, 3 n), of |input| and |hidden| */
  void *dh_out;                  /* (rows, n), of |h| but for what |dhidden| brings; may be |dh| */
  int64_t dh_at, dout_at, gates_at, inner_at, h_at, dinput_at, dhidden_at, dh_out_at;
  int64_t rows, n;
};

/* Of a layer whose step is tanh or the rectifier alone. */
struct rnn_cell_backward_args {
  const void *dh, *dout; /* (rows, n), whose sum is the gradient of h_out, or NULL for zeros */
  const void *h_out;     /* (rows, n) */
  void *dsum;            /* (rows, n), of what the function is of; may be |dh| */
  int64_t dh_at, dout_at, h_out_at, dsum_at;
  int64_t rows, n;
  uint32_t relu; /* not 0: the rectifier */
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_CELL_KERNELS(X)                                                                              \
  X(lstm_cell_f32, struct lstm_cell_args, CELL_THREADS, rdna__lstm_cell_case)                             \
  X(lstm_cell_f16, struct lstm_cell_args, CELL_THREADS, rdna__lstm_cell_case)                             \
  X(lstm_cell_bf16, struct lstm_cell_args, CELL_THREADS, rdna__lstm_cell_case)                            \
  X(lstm_cell_f64, struct lstm_cell_args, CELL_THREADS, rdna__lstm_cell_case)                             \
  X(lstm_cell_backward_f32, struct lstm_cell_backward_args, CELL_THREADS, rdna__lstm_cell_backward_case)  \
  X(lstm_cell_backward_f16, struct lstm_cell_backward_args, CELL_THREADS, rdna__lstm_cell_backward_case)  \
  X(lstm_cell_backward_bf16, struct lstm_cell_backward_args, CELL_THREADS, rdna__lstm_cell_backward_case) \
  X(lstm_cell_backward_f64, struct lstm_cell_backward_args, CELL_THREADS, rdna__lstm_cell_backward_case)  \
  X(gru_cell_f32, struct gru_cell_args, CELL_THREADS, rdna__gru_cell_case)                                \
  X(gru_cell_f16, struct gru_cell_args, CELL_THREADS, rdna__gru_cell_case)                                \
  X(gru_cell_bf16, struct gru_cell_args, CELL_THREADS, rdna__gru_cell_case)                               \
  X(gru_cell_f64, struct gru_cell_args, CELL_THREADS, rdna__gru_cell_case)                                \
  X(gru_cell_backward_f32, struct gru_cell_backward_args, CELL_THREADS, rdna__gru_cell_backward_case)     \
  X(gru_cell_backward_f16, struct gru_cell_backward_args, CELL_THREADS, rdna__gru_cell_backward_case)     \
  X(gru_cell_backward_bf16, struct gru_cell_backward_args, CELL_THREADS, rdna__gru_cell_backward_case)    \
  X(gru_cell_backward_f64, struct gru_cell_backward_args, CELL_THREADS, rdna__gru_cell_backward_case)     \
  X(rnn_cell_backward_f32, struct rnn_cell_backward_args, CELL_THREADS, rdna__rnn_cell_backward_case)     \
  X(rnn_cell_backward_f16, struct rnn_cell_backward_args, CELL_THREADS, rdna__rnn_cell_backward_case)     \
  X(rnn_cell_backward_bf16, struct rnn_cell_backward_args, CELL_THREADS, rdna__rnn_cell_backward_case)    \
  X(rnn_cell_backward_f64, struct rnn_cell_backward_args, CELL_THREADS, rdna__rnn_cell_backward_case)
#endif
