/* For host twins: converts contiguous f32, f16 or bf16 values to and from floats. */
#ifndef RDNA_MATH_COMMON_HOST_FLOATS_H
#define RDNA_MATH_COMMON_HOST_FLOATS_H

#include "math/common/host/simd.h"
#include "rdna/tensor.h"

SIMD_INLINE int64_t floats_bytes(rdna_dtype dtype) { return dtype == RDNA_F32 ? 4 : 2; }

SIMD_INLINE void floats_load(rdna_dtype dtype, const void *from, int64_t count, float *to) {
  const uint16_t *in = from;
  int64_t i = 0;
  if (dtype == RDNA_F32) {
    memcpy(to, from, (size_t)count * sizeof(float));
  } else if (dtype == RDNA_F16) {
    for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) simd_store(to + i, simd_load_f16(in + i));
    for (; i < count; i++) to[i] = f16_to_f32(in[i]);
  } else {
    for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) simd_store(to + i, simd_load_bf16(in + i));
    for (; i < count; i++) to[i] = bf16_to_f32(in[i]);
  }
}

SIMD_INLINE void floats_store(rdna_dtype dtype, void *to, int64_t count, const float *from) {
  uint16_t *out = to;
  int64_t i = 0;
  if (dtype == RDNA_F32) {
    memcpy(to, from, (size_t)count * sizeof(float));
  } else if (dtype == RDNA_F16) {
    for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) simd_store_f16(out + i, simd_load(from + i));
    for (; i < count; i++) out[i] = f32_to_f16(from[i]);
  } else {
    for (; i < count; i++) out[i] = f32_to_bf16(from[i]);
  }
}

#endif
