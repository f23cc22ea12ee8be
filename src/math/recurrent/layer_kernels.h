/* All steps of a narrow recurrent layer in one launch, and their gradient. */
#ifndef RDNA_MATH_RECURRENT_LAYER_KERNELS_H
#define RDNA_MATH_RECURRENT_LAYER_KERNELS_H

#include <stdint.h>

#include "rdna/op/recurrent.h"

/* A group goes with one sequence through all its steps, and with another when it ends; any grid is right. It holds the
 * weights in registers: four threads have a unit, each a quarter of the states that the unit is a sum of, so that a
 * step is a few products, two exchanges between lanes, the cell, and one barrier.
 *
 *     thread   4 u + 0   4 u + 1   4 u + 2   4 u + 3     of unit u
 *     states   0..3      4..7      8..11     12..15
 *              16..19    20..23    24..27    28..31      ... to 63 */
enum { LAYER_UNITS = 64, LAYER_SLICES = 4, LAYER_THREADS = LAYER_UNITS * LAYER_SLICES };

/* Kernels' names end in the type of all tensors, which are contiguous. Tokens are those of all steps: step t has
 * begin[t] to begin[t + 1], of which number r is sequence r's; without |begin| every step has |rows|. |parts| is 4 in
 * an LSTM, 3 in a GRU, else 1. */
struct layer_args {
  void *gates;          /* (tokens, parts n): sums of the inputs, which become what the gradient reads; not in an RNN */
  const void *weight;   /* (parts n, n) */
  const void *bias;     /* (3 n) or NULL, of a GRU; the gradient does not read it */
  const void *h, *c;    /* (rows, n), the first states; c of an LSTM */
  void *out;            /* (tokens, n); in an RNN also the sums */
  void *cells;          /* (tokens, n), of an LSTM */
  void *inner;          /* (tokens, n), of a GRU */
  const int32_t *begin; /* (steps + 1) or NULL */
  int32_t rows, steps, tokens;
  uint32_t n, reverse, relu;

  /* Of the gradient alone, which reads what the steps have written. */
  const void *dout;        /* (tokens, n) or NULL for zeros */
  const void *dh, *dc;     /* (rows, n), of the last states, or NULL for zeros */
  void *dsums;             /* (tokens, parts n), of the sums of the inputs */
  void *dhidden;           /* (tokens, 3 n), of a GRU's products with the state */
  void *dfirst, *dfirst_c; /* (rows, n), of the first states */
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_LAYER_KERNELS(X)                                                     \
  X(lstm_layer_f32, struct layer_args, LAYER_THREADS, rdna__layer_case)           \
  X(lstm_layer_f16, struct layer_args, LAYER_THREADS, rdna__layer_case)           \
  X(lstm_layer_bf16, struct layer_args, LAYER_THREADS, rdna__layer_case)          \
  X(lstm_layer_backward_f32, struct layer_args, LAYER_THREADS, rdna__layer_case)  \
  X(lstm_layer_backward_f16, struct layer_args, LAYER_THREADS, rdna__layer_case)  \
  X(lstm_layer_backward_bf16, struct layer_args, LAYER_THREADS, rdna__layer_case) \
  X(gru_layer_f32, struct layer_args, LAYER_THREADS, rdna__layer_case)            \
  X(gru_layer_f16, struct layer_args, LAYER_THREADS, rdna__layer_case)            \
  X(gru_layer_bf16, struct layer_args, LAYER_THREADS, rdna__layer_case)           \
  X(gru_layer_backward_f32, struct layer_args, LAYER_THREADS, rdna__layer_case)   \
  X(gru_layer_backward_f16, struct layer_args, LAYER_THREADS, rdna__layer_case)   \
  X(gru_layer_backward_bf16, struct layer_args, LAYER_THREADS, rdna__layer_case)  \
  X(rnn_layer_f32, struct layer_args, LAYER_THREADS, rdna__layer_case)            \
  X(rnn_layer_f16, struct layer_args, LAYER_THREADS, rdna__layer_case)            \
  X(rnn_layer_bf16, struct layer_args, LAYER_THREADS, rdna__layer_case)           \
  X(rnn_layer_backward_f32, struct layer_args, LAYER_THREADS, rdna__layer_case)   \
  X(rnn_layer_backward_f16, struct layer_args, LAYER_THREADS, rdna__layer_case)   \
  X(rnn_layer_backward_bf16, struct layer_args, LAYER_THREADS, rdna__layer_case)

#endif
