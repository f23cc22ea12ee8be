/* Device code: where the values of a reduction are, and how results are written. */
#ifndef RDNA_MATH_REDUCE_REDUCE_WRITE_H
#define RDNA_MATH_REDUCE_REDUCE_WRITE_H

#include "math/reduce/reduce_states.h"

/* Returns where value |i| is, in values. Not unrolled: more dimensions than one are rare where each value has to be
 * looked for. */
RDNA_DEVICE int64_t place(int32_t rank, const int64_t *size, const int64_t *stride, int64_t i) {
  if (rank == 1) return i * stride[0];
  int64_t offset = 0;
  uint32_t left = (uint32_t)i;
#pragma nounroll
  for (int d = 0; d < rank; d++) {
    uint32_t quotient = left / (uint32_t)size[d];
    offset += (int64_t)(left - quotient * (uint32_t)size[d]) * stride[d];
    left = quotient;
  }
  return offset;
}

RDNA_DEVICE void store(void *out, int64_t i, int32_t dtype, int64_t v) {
  if (dtype == RDNA_I64) {
    ((int64_t *)out)[i] = v;
  } else if (dtype == RDNA_I32) {
    ((int32_t *)out)[i] = (int32_t)v;
  } else {
    ((uint8_t *)out)[i] = (uint8_t)v;
  }
}
RDNA_DEVICE void store(void *out, int64_t i, int32_t dtype, float v) {
  if (dtype == RDNA_F32) {
    ((float *)out)[i] = v;
  } else if (dtype == RDNA_F16) {
    ((uint16_t *)out)[i] = f32_to_f16(v);
  } else if (dtype == RDNA_BF16) {
    ((uint16_t *)out)[i] = f32_to_bf16(v);
  } else {
    ((uint8_t *)out)[i] = (uint8_t)(int32_t)v;
  }
}
RDNA_DEVICE void store(void *out, int64_t i, int32_t dtype, double v) {
  if (dtype == RDNA_F64) {
    ((double *)out)[i] = v;
  } else {
    ((uint8_t *)out)[i] = (uint8_t)(int32_t)v;
  }
}

/* Writes an output or, where there are several slices, what this one comes to. */
template <typename state>
RDNA_DEVICE void write(const reduce_dims_args &a, int64_t out, int64_t slice, state s) {
  typedef typename state::kept acc;
  if (a.slices == 1) {
    store(a.out, out, a.out_dtype, state::end(s, a.end, a.parameter));
    return;
  }
  int64_t at = slice * a.outs + out;
  const acc *parts = (const acc *)&s;
#pragma unroll
  for (int i = 0; i < state::PARTS; i++) ((acc *)a.partial)[i * a.slices * a.outs + at] = parts[i];
  if constexpr (state::KIND == REDUCE_ARG) a.partial_index[at] = s.index;
}

#endif
