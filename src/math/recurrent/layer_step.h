/* Device code: what a step of a recurrent layer reads, for the kernels of whole layers and of single steps. */
#ifndef RDNA_MATH_RECURRENT_LAYER_STEP_H
#define RDNA_MATH_RECURRENT_LAYER_STEP_H

#include "kernel/prelude.h"
#include "math/recurrent/cell_functions.h"
#include "math/recurrent/layer_kernels.h"

enum cell { LSTM, GRU, RNN };
template <cell kind>
struct parts_of {
  static constexpr uint32_t count = kind == LSTM ? 4 : kind == GRU ? 3 : 1;
};

/* The token of |row| in step |t|, or -1 where its sequence has none. */
RDNA_DEVICE int32_t token_of(const layer_args &a, int32_t t, int32_t row) {
  if (t < 0 || t >= a.steps) return -1;
  if (!a.begin) return t * a.rows + row;
  const int32_t begin = a.begin[t], end = a.begin[t + 1];
  return begin >= 0 && begin < end && end <= a.tokens && row < end - begin ? begin + row : -1;
}

#endif
