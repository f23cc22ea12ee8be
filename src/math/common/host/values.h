/* For host twins: contiguous values of any type as floats, up to RUN at a time, so that a loop is written once and
 * vectorises for all types. f32 is used in place; the 16-bit types go through a buffer that fits the first-level cache.
 */
#ifndef RDNA_MATH_COMMON_HOST_VALUES_H
#define RDNA_MATH_COMMON_HOST_VALUES_H

#include "math/common/host/simd.h"

enum { RUN = 512 }; /* values in a buffer */

#define STORED_f32 float
#define STORED_f16 uint16_t
#define STORED_bf16 uint16_t

/* Tells the compiler that no iteration of the loop depends on another: its output may be its input, in place, but does
 * not overlap it otherwise, which operators refuse. */
#ifdef __clang__
#define EACH_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_APART _Pragma("GCC ivdep")
#endif

/* read_T returns |n| <= RUN values at |p| as floats, in |buffer| unless T is f32. room_T returns where to compute
 * results: |p| itself for f32, else |buffer|; write_T then rounds them to |p|, which for f32 is nothing to do. store_T
 * rounds values from anywhere to |p|. */
SIMD_INLINE const float *read_f32(float *buffer, const float *p, int64_t n) { return p; }
SIMD_INLINE float *room_f32(float *buffer, float *p) { return p; }
SIMD_INLINE void write_f32(float *p, const float *values, int64_t n) {}

SIMD_INLINE const float *read_f16(float *buffer, const uint16_t *p, int64_t n) {
  int64_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) simd_store(buffer + i, simd_load_f16(p + i));
  for (; i < n; i++) buffer[i] = f16_to_f32(p[i]);
  return buffer;
}
SIMD_INLINE float *room_f16(float *buffer, uint16_t *p) { return buffer; }
SIMD_INLINE void write_f16(uint16_t *p, const float *values, int64_t n) {
  int64_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) simd_store_f16(p + i, simd_load(values + i));
  for (; i < n; i++) p[i] = f32_to_f16(values[i]);
}

SIMD_INLINE const float *read_bf16(float *buffer, const uint16_t *p, int64_t n) {
  for (int64_t i = 0; i < n; i++) buffer[i] = bf16_to_f32(p[i]);
  return buffer;
}
SIMD_INLINE float *room_bf16(float *buffer, uint16_t *p) { return buffer; }
SIMD_INLINE void write_bf16(uint16_t *p, const float *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) p[i] = f32_to_bf16(values[i]);
}

SIMD_INLINE void store_f32(float *p, const float *values, int64_t n) { memcpy(p, values, (size_t)n * sizeof *p); }
SIMD_INLINE void store_f16(uint16_t *p, const float *values, int64_t n) { write_f16(p, values, n); }
SIMD_INLINE void store_bf16(uint16_t *p, const float *values, int64_t n) { write_bf16(p, values, n); }

SIMD_INLINE int64_t run_length(int64_t left) { return left < RUN ? left : RUN; }

#endif
