/* Convolution of each channel over time, with the inputs of before in a state; rdna/op/recurrent.h says what of.
 *
 * A thread has a channel. Grid: (channels / CAUSAL_CONV_THREADS, sequences, parts): a sequence is cut into pieces of
 * CAUSAL_CONV_PIECE tokens, which the groups along z take in turn. The first of them has the first piece, and alone
 * touches the state:
 *
 *     tokens    | piece 0 | piece 1 | piece 2 | piece 3 | ..   with 3 parts
 *     group z        0         1         2         0
 *     reads      state, x    x: the width - 1 rows before its own, and these
 *     writes    out, state   out
 */
#ifndef RDNA_MATH_RECURRENT_CAUSAL_CONV_KERNELS_H
#define RDNA_MATH_RECURRENT_CAUSAL_CONV_KERNELS_H

#include "math/recurrent/sequences.h"

enum { CAUSAL_CONV_THREADS = 64, CAUSAL_CONV_PIECE = 32 };

/* Strides count elements. The kernel's name ends in the width. */
struct causal_conv_args {
  const float *x;      /* (tokens, channels) */
  const float *weight; /* (channels, width) */
  float *state;        /* (slots, channels, width - 1) */
  float *out;          /* (tokens, channels) */
  struct sequences sequences;
  int64_t x_stride, out_stride;
  int32_t channels;
  int32_t silu; /* whether SiLU follows */
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_CAUSAL_CONV_KERNELS(X)                                                      \
  X(causal_conv_2, struct causal_conv_args, CAUSAL_CONV_THREADS, rdna__causal_conv_case) \
  X(causal_conv_3, struct causal_conv_args, CAUSAL_CONV_THREADS, rdna__causal_conv_case) \
  X(causal_conv_4, struct causal_conv_args, CAUSAL_CONV_THREADS, rdna__causal_conv_case)

#endif
