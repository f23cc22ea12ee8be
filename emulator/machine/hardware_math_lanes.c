// V_RCP, V_RSQ, V_SQRT and V_EXP of 32 lanes. The arithmetic is that of hardware_math.h, step by step, on four products
// of 64 bits at a time:
//
//     eight lanes     | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
//     even            | 0     | 1     | 4     | 5     |
//     odd             | 2     | 3     | 6     | 7     |
#include <immintrin.h>
#include <string.h>

#include "machine/hardware_math.h"

enum { LANES = 32, EIGHT = 8 };
typedef uint64_t fours __attribute__((vector_size(32)));

static inline fours all(uint64_t value) { return (fours)_mm256_set1_epi64x((int64_t)value); }
static inline __m256i eight_at(const uint32_t *at) { return _mm256_loadu_si256((const __m256i *)at); }
static inline fours even_lanes(__m256i v) { return (fours)_mm256_unpacklo_epi32(v, _mm256_setzero_si256()); }
static inline fours odd_lanes(__m256i v) { return (fours)_mm256_unpackhi_epi32(v, _mm256_setzero_si256()); }
static inline void put_eight(uint32_t *to, fours even, fours odd) {
  _mm256_storeu_ps((float *)to, _mm256_shuffle_ps((__m256)even, (__m256)odd, 0x88));
}

// Of the low 32 bits.
static inline fours times(fours a, fours b) { return (fours)_mm256_mul_epu32((__m256i)a, (__m256i)b); }

// emu__hw_even
static inline fours to_even(fours v, unsigned places) {
  return (v + ((UINT64_C(1) << (places - 1)) - 1) + (v >> places & 1)) >> places;
}
// emu__hw_24
static inline fours to_24(fours product, unsigned places) {
  fours up = product >> (places + 24) & 1, by = up + places;
  return ((product + ((all(1) << (by - 1)) - 1) + (product >> by & 1)) >> by) << up;
}

struct cubics {
  fours c0, c1, c2, c3;
};
static inline struct cubics rows_at(const struct emu_cubic *rows, const uint32_t *at) {
  __m128i r[4];
  static const int lanes[4] = {0, 1, 4, 5};
  for (int i = 0; i < 4; i++) r[i] = _mm_loadu_si128((const __m128i *)&rows[at[lanes[i]]]);
  __m256i first = _mm256_set_m128i(r[2], r[0]), second = _mm256_set_m128i(r[3], r[1]);
  fours low = (fours)_mm256_unpacklo_epi64(first, second), high = (fours)_mm256_unpackhi_epi64(first, second);
  return (struct cubics){low & UINT32_MAX, low >> 32, high & UINT32_MAX, high >> 32};
}

// emu__hw_curve
static inline fours curve(const struct cubics *c, fours x, unsigned c3_shift, unsigned places) {
  fours inner = to_even((c->c2 << 20) - (times(c->c3, x + 1) << c3_shift), places);
  fours square = times(x >> 3, x >> 3) >> 10;
  return to_24(times(inner, square), 23);
}

static inline fours rcp(const struct cubics *c, fours x) {
  fours slope = (to_24(times(c->c1, x), 14) + 1) >> 1;
  return to_even((c->c0 << 9) - (slope << 6) + curve(c, x << 2, 0, 12), 11);
}
static inline fours rsq(const struct cubics *c, fours x) {
  fours slope = (to_24(times(c->c1, x), 13) + 3) >> 2;
  return to_even((c->c0 << 10) - (slope << 7) + curve(c, x << 2, 0, 11), 12);
}
static inline fours square_root(const struct cubics *c, fours x) {
  fours slope = to_24(times(c->c1, x), 16) >> 1;
  return to_even((c->c0 << 10) + (slope << 7) - curve(c, x << 1, 1, 12), 12);
}
static inline fours exp_fraction(const struct cubics *c, fours x) {
  fours high = x >> 6, slope = to_24(times(c->c1, x), 23) >> 1;
  fours inner = to_even((c->c2 << 7) + times(c->c3, high), 7), square = times(high, high) >> 12;
  return to_even(((c->c0 + slope) << 8) + to_24(times(inner, square), 23), 13);
}

// From 32 coordinates, whose bits from `shift` on are the number of the row.
#define MANTISSAS(name, rows, function, shift)                                                         \
  static inline void name##s(const uint32_t *index, uint32_t *to) {                                    \
    for (int l = 0; l < LANES; l += EIGHT) {                                                           \
      uint32_t row[EIGHT];                                                                             \
      __m256i v = eight_at(index + l), x = _mm256_and_si256(v, _mm256_set1_epi32((1 << (shift)) - 1)); \
      _mm256_storeu_si256((__m256i *)row, _mm256_srli_epi32(v, shift));                                \
      struct cubics even = rows_at(rows, row), odd = rows_at(rows, row + 2);                           \
      put_eight(to + l, function(&even, even_lanes(x)), function(&odd, odd_lanes(x)));                 \
    }                                                                                                  \
  }
MANTISSAS(rcp, emu__hw_rcp_rows, rcp, 18)
MANTISSAS(rsq, emu__hw_rsq_rows, rsq, 18)
MANTISSAS(square_root, emu__hw_sqrt_rows, square_root, 19)
MANTISSAS(exp_fraction, emu__hw_exp_rows, exp_fraction, 24)

#define EACH for (int l = 0; l < LANES; l++)
#define FLOATS(name, index_of, mantissas, place)                          \
  void name(const uint32_t from[LANES], uint32_t to[LANES], bool quiet) { \
    uint32_t bits[LANES], index[LANES], mantissa[LANES], r[LANES];        \
    memcpy(bits, from, sizeof(bits));                                     \
    EACH index[l] = index_of(bits[l]);                                    \
    mantissas(index, mantissa);                                           \
    EACH r[l] = place(bits[l], mantissa[l], quiet);                       \
    memcpy(to, r, sizeof(r));                                             \
  }
FLOATS(emu__hw_rcp_lanes, emu__hw_rcp_index, rcps, emu__hw_rcp_place)
FLOATS(emu__hw_rsq_lanes, emu__hw_root_index, rsqs, emu__hw_rsq_place)
FLOATS(emu__hw_sqrt_lanes, emu__hw_root_index, square_roots, emu__hw_sqrt_place)

void emu__hw_exp_lanes(const uint32_t from[LANES], uint32_t to[LANES], bool quiet) {
  uint32_t bits[LANES], fraction[LANES], power[LANES], r[LANES];
  int32_t whole[LANES];
  memcpy(bits, from, sizeof(bits));
  EACH {
    int64_t fixed = emu__hw_exp_fixed(bits[l]);
    fraction[l] = (uint32_t)fixed & 0x1fffffff;
    whole[l] = (int32_t)(fixed >> 29);
  }
  exp_fractions(fraction, power);
  EACH r[l] = emu__hw_exp_place(bits[l], whole[l], power[l], quiet);
  memcpy(to, r, sizeof(r));
}
