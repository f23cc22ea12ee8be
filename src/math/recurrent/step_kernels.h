/* One step of a recurrent layer in one launch: the product with the states, and the cell; and its gradient. */
#ifndef RDNA_MATH_RECURRENT_STEP_KERNELS_H
#define RDNA_MATH_RECURRENT_STEP_KERNELS_H

#include "math/recurrent/layer_kernels.h"

/* A group has a few units, with all their gates, of a few bands of rows. Its waves share the sums among themselves: a
 * wave (in f32 64 threads) has one band, and of the states or gradients that are multiplied one part; what they have
 * summed is added up in group memory, in order, and a thread then has all gates of a unit of a row, and does the cell.
 *
 *                      parts 0    1    2    3  of the states
 *     rows  band 0   wave  0    2    4    6         2 bands, 8 waves
 *           band 1         1    3    5    7
 *
 * For a layer of n units, |parts| gates and values of b bytes a step reads b parts n^2 bytes of weights for all rows of
 * a group (out of the cache, as the step before did), and does 2 parts n^2 operations for each row: at n = 256, 32
 * rows, a GRU of f32, 786 KB and 12.6 million, less than a microsecond of either. So the launch is what costs, and
 * groups are small rather than lean: 64 of them there. */
enum {
  STEP_THREADS = 256,
  STEP_UNITS = 8,        /* of a group, forward: eight columns for each gate */
  STEP_UNITS_PLAIN = 16, /* of a group with one column for each unit, an RNN's and the gradients', or half of that */
  STEP_BAND = 16,        /* rows of a band of 16-bit values, which matrix units multiply */
  STEP_BAND_F32 = 4,
  STEP_BANDS_LOG = 2 /* a group has up to 4 bands, which are powers of two */
};

/* Names end in the type, as those of layer_kernels.h. The grid is (bands of rows, units) / a group's. */
struct step_args {
  /* The gradient's dh and dc are the last states' or, but for the first launch, dfirst and dfirst_c: what a step hands
   * back besides the product. It does not read |weight|. */
  struct layer_args layer;
  const void *transposed; /* (n, parts n), the weights: of the gradient alone */
  /* The step. That of the gradient reads dsums (an LSTM's or RNN's) or dhidden (a GRU's) of the one after it; -1, or
   * |steps| where the layer goes backwards, has no cell and leaves in dfirst the gradient of the first state. */
  int32_t step;
  uint32_t bands_log;
  uint32_t units;   /* of a group with one column for each: 8 or 16 */
  uint32_t vectors; /* not 0: rows of what is multiplied begin at multiples of 16 bytes */
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_STEP_KERNELS(X)                                                  \
  X(lstm_step_f32, struct step_args, STEP_THREADS, rdna__step_case)           \
  X(lstm_step_f16, struct step_args, STEP_THREADS, rdna__step_case)           \
  X(lstm_step_bf16, struct step_args, STEP_THREADS, rdna__step_case)          \
  X(gru_step_f32, struct step_args, STEP_THREADS, rdna__step_case)            \
  X(gru_step_f16, struct step_args, STEP_THREADS, rdna__step_case)            \
  X(gru_step_bf16, struct step_args, STEP_THREADS, rdna__step_case)           \
  X(rnn_step_f32, struct step_args, STEP_THREADS, rdna__step_case)            \
  X(rnn_step_f16, struct step_args, STEP_THREADS, rdna__step_case)            \
  X(rnn_step_bf16, struct step_args, STEP_THREADS, rdna__step_case)           \
  X(lstm_step_backward_f32, struct step_args, STEP_THREADS, rdna__step_case)  \
  X(lstm_step_backward_f16, struct step_args, STEP_THREADS, rdna__step_case)  \
  X(lstm_step_backward_bf16, struct step_args, STEP_THREADS, rdna__step_case) \
  X(gru_step_backward_f32, struct step_args, STEP_THREADS, rdna__step_case)   \
  X(gru_step_backward_f16, struct step_args, STEP_THREADS, rdna__step_case)   \
  X(gru_step_backward_bf16, struct step_args, STEP_THREADS, rdna__step_case)  \
  X(rnn_step_backward_f32, struct step_args, STEP_THREADS, rdna__step_case)   \
  X(rnn_step_backward_f16, struct step_args, STEP_THREADS, rdna__step_case)   \
  X(rnn_step_backward_bf16, struct step_args, STEP_THREADS, rdna__step_case)

#endif
