/* For twins: values of recurrent layers, and which token is a row's in a step. */
#ifndef RDNA_MATH_RECURRENT_LAYER_HOST_H
#define RDNA_MATH_RECURRENT_LAYER_HOST_H

#include "kernel/host.h"
#include "math/recurrent/layer_kernels.h"

enum { LSTM, GRU, RNN };
static const int64_t parts_of[] = {4, 3, 1};

/* The token of |row| in step |t|, or -1 where its sequence has none. */
static inline int64_t token_of(const struct layer_args *a, int64_t t, int64_t row) {
  if (t < 0 || t >= a->steps) return -1;
  if (!a->begin) return t * a->rows + row;
  const int64_t token = a->begin[t] + row, end = a->begin[t + 1];
  return a->begin[t] >= 0 && token < end && end <= a->tokens ? token : -1;
}

#define LOAD_f32(p, i) (((const float *)(p))[i])
#define LOAD_f16(p, i) f16_to_f32(((const uint16_t *)(p))[i])
#define LOAD_bf16(p, i) bf16_to_f32(((const uint16_t *)(p))[i])
#define STORE_f32(p, i, v) (((float *)(p))[i] = (v))
#define STORE_f16(p, i, v) (((uint16_t *)(p))[i] = f32_to_f16(v))
#define STORE_bf16(p, i, v) (((uint16_t *)(p))[i] = f32_to_bf16(v))

#endif
