/* For host twins: vectors as wide as the instruction set that the file is compiled for. The names are the same at
 * every width, so that a twin is written once; only what the compiler does not find by itself uses intrinsics.
 * Without a fused multiply-add in the instruction set, simd_fma rounds twice. */
#ifndef RDNA_MATH_COMMON_HOST_SIMD_H
#define RDNA_MATH_COMMON_HOST_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernel/host.h"

#if defined(__AVX512F__)
#define SIMD_WIDTH 16
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define SIMD_WIDTH 8
#else
#define SIMD_WIDTH 4
#endif

typedef float simd_float __attribute__((vector_size(4 * SIMD_WIDTH)));
typedef int32_t simd_int __attribute__((vector_size(4 * SIMD_WIDTH)));

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

SIMD_INLINE simd_float simd_load(const float *p) {
  simd_float v;
  memcpy(&v, p, sizeof v);
  return v;
}
SIMD_INLINE void simd_store(float *p, simd_float v) { memcpy(p, &v, sizeof v); }
SIMD_INLINE simd_float simd_set(float v) { return v - (simd_float){0}; }

/* Returns |v| in a register; otherwise the compiler may load it again for each use. */
SIMD_INLINE simd_float simd_keep(simd_float v) {
#if SIMD_WIDTH == 16
  __asm__("" : "+v"(v));
#elif SIMD_WIDTH == 8
  __asm__("" : "+x"(v));
#endif
  return v;
}

SIMD_INLINE simd_float simd_fma(simd_float a, simd_float b, simd_float c) {
#if SIMD_WIDTH == 16
  return (simd_float)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif SIMD_WIDTH == 8
  return (simd_float)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

SIMD_INLINE float simd_sum(simd_float v) {
#if SIMD_WIDTH == 16
  return _mm512_reduce_add_ps((__m512)v);
#else
  float sum = 0;
  for (int i = 0; i < SIMD_WIDTH; i++) sum += v[i];
  return sum;
#endif
}

/* SIMD_WIDTH values of 16 bits. */
SIMD_INLINE simd_float simd_load_f16(const uint16_t *p) {
#if SIMD_WIDTH == 16
  return (simd_float)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif SIMD_WIDTH == 8
  return (simd_float)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
  simd_float v;
  for (int i = 0; i < SIMD_WIDTH; i++) v[i] = f16_to_f32(p[i]);
  return v;
#endif
}
SIMD_INLINE void simd_store_f16(uint16_t *p, simd_float v) {
#if SIMD_WIDTH == 16
  _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif SIMD_WIDTH == 8
  _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < SIMD_WIDTH; i++) p[i] = f32_to_f16(v[i]);
#endif
}
SIMD_INLINE simd_float simd_load_bf16(const uint16_t *p) {
#if SIMD_WIDTH == 16
  return (simd_float)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)), 16);
#elif SIMD_WIDTH == 8
  return (simd_float)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)), 16);
#else
  simd_float v;
  for (int i = 0; i < SIMD_WIDTH; i++) v[i] = bf16_to_f32(p[i]);
  return v;
#endif
}

/* SIMD_WIDTH bytes, zero- or sign-extended. */
SIMD_INLINE simd_int simd_load_u8(const uint8_t *p) {
#if SIMD_WIDTH == 16
  return (simd_int)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif SIMD_WIDTH == 8
  return (simd_int)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
  simd_int v;
  for (int i = 0; i < SIMD_WIDTH; i++) v[i] = p[i];
  return v;
#endif
}
SIMD_INLINE simd_int simd_load_i8(const int8_t *p) {
#if SIMD_WIDTH == 16
  return (simd_int)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif SIMD_WIDTH == 8
  return (simd_int)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
  simd_int v;
  for (int i = 0; i < SIMD_WIDTH; i++) v[i] = p[i];
  return v;
#endif
}
SIMD_INLINE simd_float simd_from_int(simd_int v) { return __builtin_convertvector(v, simd_float); }

/* simd_transpose transposes a square of SIMD_WIDTH vectors in place, in log2(SIMD_WIDTH) rounds. Each interleaves
 * vector i with vector i + SIMD_WIDTH / 2 (a perfect shuffle); zip_low and zip_high give the halves of the result:
 *
 *     a0 a1 a2 a3, b0 b1 b2 b3   ->   low a0 b0 a1 b1, high a2 b2 a3 b3
 */
SIMD_INLINE simd_float simd_zip_low(simd_float a, simd_float b) {
#if SIMD_WIDTH == 16
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif SIMD_WIDTH == 8
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
SIMD_INLINE simd_float simd_zip_high(simd_float a, simd_float b) {
#if SIMD_WIDTH == 16
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif SIMD_WIDTH == 8
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}
SIMD_INLINE void simd_transpose(simd_float v[SIMD_WIDTH]) {
#pragma GCC unroll 4
  for (int round = 1; round < SIMD_WIDTH; round *= 2) {
    simd_float next[SIMD_WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < SIMD_WIDTH / 2; i++) {
      next[2 * i] = simd_zip_low(v[i], v[i + SIMD_WIDTH / 2]);
      next[2 * i + 1] = simd_zip_high(v[i], v[i + SIMD_WIDTH / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < SIMD_WIDTH; i++) v[i] = next[i];
  }
}

#endif
