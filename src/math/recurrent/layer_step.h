/* Device code: what a step of a recurrent layer reads, for the kernels of whole layers and of single steps. */
#ifndef RDNA_MATH_RECURRENT_LAYER_STEP_H
#define RDNA_MATH_RECURRENT_LAYER_STEP_H

#include "kernel/arguments.h"
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

/* What a step's gradient reads of memory. */
struct step_values {
  float gate[4], dout;
  float before, after; /* c of an LSTM; h before a GRU's step, and its inner sum; of an RNN only h after it */
};

/* |args| is, or begins, the kernel's argument. |before|: the token of the step before, -1 for the first state's. */
template <typename type, cell kind>
RDNA_DEVICE step_values load_step(const layer_args &args, int32_t token, int32_t before, int32_t row, uint32_t unit) {
  const layer_args &a = arguments_again(args);
  constexpr uint32_t parts = parts_of<kind>::count;
  step_values s = {};
  const uint64_t n = a.n, at = (uint64_t)token * n + unit, from = (uint64_t)before * n + unit;
  const uint64_t first = (uint64_t)row * n + unit;
  if (token < 0 || unit >= n) return s;
  if (a.dout) s.dout = type::load(a.dout, at);
  if constexpr (kind == RNN) {
    s.after = type::load(a.out, at);
  } else {
#pragma unroll
    for (uint32_t p = 0; p < parts; p++) s.gate[p] = type::load(a.gates, ((uint64_t)token * parts + p) * n + unit);
    if constexpr (kind == LSTM) {
      s.before = before >= 0 ? type::load(a.cells, from) : type::load(a.c, first);
      s.after = type::load(a.cells, at);
    } else {
      s.before = before >= 0 ? type::load(a.out, from) : type::load(a.h, first);
      s.after = type::load(a.inner, at);
    }
  }
  return s;
}

#endif
