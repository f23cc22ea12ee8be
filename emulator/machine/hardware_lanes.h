// Eight sums of products at a time: what hardware_dot.c and hardware_pairs.c share.
#ifndef EMULATOR_MACHINE_HARDWARE_LANES_H
#define EMULATOR_MACHINE_HARDWARE_LANES_H

#include <immintrin.h>
#include <string.h>

#include "machine/hardware_dot.h"

typedef int32_t ints __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(32)));

enum { NOTHING = -1024 };  // the exponent of a zero

static inline ints all(int32_t value) { return (ints)_mm256_set1_epi32(value); }
static inline ints choose(ints mask, ints a, ints b) { return (a & mask) | (b & ~mask); }
static inline ints larger(ints a, ints b) { return (ints)_mm256_max_epi32((__m256i)a, (__m256i)b); }

// floor(log2 v) of 0 < v < 2^24; -127 of 0.
static inline ints log2_of(ints v) { return ((ints) __builtin_convertvector(v, floats) >> 23) - 127; }

static inline ints to_half(ints sum, ints grid, ints sign) {
  // what lies below 24 bits only decides ties
  ints size = choose(sum < 0, -sum, sum), big = size >= 1 << 24;
  ints kept = choose(big, (size >> 5) | (((size & 31) != 0) & 1), size), places = grid + (big & 5);
  ints bits = (ints) __builtin_convertvector(kept, floats);
  bits = choose(kept == 0, all(0), bits + (places << 23));
  __m128i halves = _mm256_cvtps_ph((__m256)bits, _MM_FROUND_TO_NEAREST_INT);
  ints half = (ints)_mm256_cvtepu16_epi32(halves);
  return choose(half == 0, half, half | (sign & 0x8000));
}

static inline ints to_float(ints sum, ints grid, ints sign) {
  ints bits = (ints) __builtin_convertvector(sum, floats), field = ((bits >> 23) & 255) + grid;
  ints value = (bits & 0x7fffff) | field << 23;
  value = choose(field > 254, all(0x7f800000), value) | (sign & INT32_MIN);
  return choose((sum == 0) | (field < 1), all(0), value);
}

// The float that an accumulator of 16 bits stands for, and back.
static inline ints open_c(ints c, enum emu_dot_result result) {
  if (result == EMU_DOT_BF16) return c << 16;
  if (result == EMU_DOT_F32) return c;
  __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)c), _mm256_extracti128_si256((__m256i)c, 1));
  return (ints)_mm256_cvtph_ps(halves);
}

static inline unsigned mask_of(ints m) { return (unsigned)_mm256_movemask_ps((__m256)m); }

#endif
