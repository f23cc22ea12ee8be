/* Device code: what a token sees of the cache, and 8 values of its rows. */
#ifndef RDNA_MATH_ATTENTION_ATTENTION_REACH_H
#define RDNA_MATH_ATTENTION_ATTENTION_REACH_H

#include "kernel/arguments.h"
#include "kernel/scalar.h"
#include "math/attention/attention_kernels.h"
#include "math/common/device/values.h"

/* What a token may see: positions low..high of the cache rows from base on; none when high < low. */
struct reach {
  int64_t base;
  int32_t low, high;
  bool outside; /* its rows are not all in the cache */
};

RDNA_DEVICE reach token_reach(const attention_args &a, int32_t token) {
  reach r;
  r.base = a.cache_base[token];
  r.high = a.position[token];
  r.low = a.window > 0 && r.high >= a.window ? r.high - a.window + 1 : 0;
  if (a.block_table)
    r.outside = r.high >= 0 && (r.base < 0 || r.base >= a.sequences || r.high / a.block_rows >= a.table_stride);
  else
    r.outside = r.high >= 0 && (r.base < 0 || r.base + r.high >= a.slots);
  if (r.outside || r.high < 0) r.high = -1;
  return r;
}

/* Loads values dim..dim+7 of a row of d, zeros past its end. |wide|: 8 halves are aligned to 16 bytes. */
RDNA_DEVICE void load_8(const float *row, int dim, int d, bool wide, float out[8]) {
  float4 zero = {0, 0, 0, 0};
  float4 low = dim < d ? load_f32x4(row + dim) : zero;
  float4 high = dim + 4 < d ? load_f32x4(row + dim + 4) : zero;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    out[i] = low[i];
    out[i + 4] = high[i];
  }
}
RDNA_DEVICE void load_8(const half *row, int dim, int d, bool wide, float out[8]) {
  uint4 bits = {0, 0, 0, 0};
  if (wide) {
    if (dim < d) bits = load_u32x4(row + dim);
  } else {
    uint2 low = {0, 0}, high = {0, 0};
    if (dim < d) low = load_as<uint2>(row + dim);
    if (dim + 4 < d) high = load_as<uint2>(row + dim + 4);
    bits = uint4{low.x, low.y, high.x, high.y};
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 pair = f16x2_to_f32(bits[i]);
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
  }
}

template <int bytes>
RDNA_DEVICE bool rows_are_wide(const attention_args &a, int32_t dv) {
  return bytes == 2 && ((a.d | dv | a.k_stride | a.v_stride) & 7) == 0 && (((uintptr_t)a.k | (uintptr_t)a.v) & 15) == 0;
}

RDNA_DEVICE float capped(float s, float softcap) { return softcap != 0 ? softcap * scalar_tanh(s / softcap) : s; }

#endif
