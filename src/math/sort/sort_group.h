/* Device code: what sorting shares: values and keys by their size, counting of digits within a wave, ranks within a
 * work-group of SORT_THREADS. */
#ifndef RDNA_MATH_SORT_GROUP_H
#define RDNA_MATH_SORT_GROUP_H

#include "kernel/prelude.h"
#include "math/sort/sort_kernels.h"

#if WAVE_SIZE == 32
typedef uint32_t wave_mask;
RDNA_DEVICE uint32_t mask_count(wave_mask m) { return (uint32_t)__builtin_popcount(m); }
#else
typedef uint64_t wave_mask;
RDNA_DEVICE uint32_t mask_count(wave_mask m) { return (uint32_t)__builtin_popcountll(m); }
#endif
enum { SORT_WAVES = SORT_THREADS / WAVE_SIZE };

template <typename raw>
struct sort_type { /* at most 32 bits */
  typedef raw stored;
  typedef uint32_t word;
  enum { BITS = 8 * sizeof(raw), IN_16 = 16 / sizeof(raw) };
  RDNA_DEVICE word key(const sort_order &order, word v) { return sort_key_32(&order, v); }
};
template <>
struct sort_type<uint64_t> {
  typedef uint64_t stored;
  typedef uint64_t word;
  enum { BITS = 64, IN_16 = 2 };
  RDNA_DEVICE word key(const sort_order &order, word v) { return sort_key_64(&order, v); }
};
typedef sort_type<uint8_t> bits_8;
typedef sort_type<uint16_t> bits_16;
typedef sort_type<uint32_t> bits_32;
typedef sort_type<uint64_t> bits_64;

RDNA_DEVICE wave_mask lanes_below(void) { return ((wave_mask)1 << lane_id()) - 1; }

/* For each wave and digit the mask of the lanes that have that digit; 0 but while in use. */
struct sort_match {
  uint32_t of_wave[SORT_WAVES][SORT_DIGITS][WAVE_SIZE / 32];
};
RDNA_DEVICE void match_clear(sort_match *match) {
#pragma unroll
  for (uint32_t i = 0; i < sizeof(sort_match) / sizeof(uint32_t); i += SORT_THREADS)
    (&match->of_wave[0][0][0])[i + thread_id()] = 0;
}
/* Returns the mask of the valid lanes that have this lane's digit; lanes that are not |valid| get any mask. Lane 0 must
 * be valid, and all lanes active. Each lane ors its bit into a word in LDS: a third of the instructions of a ballot for
 * each bit of the digit. On NVIDIA that is as quick as those, and match.any takes a quarter longer. */
RDNA_DEVICE wave_mask wave_match(sort_match *match, uint32_t digit, bool valid) {
  uint32_t *of_digit = match->of_wave[wave_id()][digit];
  wave_mask same = (wave_mask)wave_ballot(valid);
  uint32_t first = wave_shuffle_u32(digit, 0); /* of all lanes: not behind the test of |valid| */
  if (wave_all(!valid || digit == first)) return same;
  if (valid) atomic_or_u32(&of_digit[lane_id() / 32], UINT32_C(1) << lane_id() % 32);
  wave_barrier();
  same = 0;
  if (valid) __builtin_memcpy(&same, of_digit, sizeof same);
  wave_barrier();
  if (valid) of_digit[lane_id() / 32] = 0;
  return same;
}

/* Counts the valid lanes' digits in the wave's own |counts|; lane 0 must be valid. Returns how many of its digit there
 * were before this lane. */
RDNA_DEVICE uint32_t wave_count(uint32_t *counts, sort_match *match, uint32_t digit, bool valid) {
  wave_mask same = wave_match(match, digit, valid);
  uint32_t below = mask_count(same & lanes_below()), before = 0;
  if (valid) before = counts[digit];
  wave_barrier();
  if (valid && below == 0) counts[digit] = before + mask_count(same);
  wave_barrier();
  return before + below;
}

/* Returns the sum of |v| over the threads before this one. |scratch|: SORT_WAVES values, free again after a barrier. */
RDNA_DEVICE uint32_t group_sum_before(uint32_t v, uint32_t *scratch, uint32_t *out_all) {
  uint32_t upto = v;
#pragma unroll
  for (uint32_t step = 1; step < WAVE_SIZE; step *= 2) {
    uint32_t other = wave_shuffle_u32(upto, (lane_id() - step) & (WAVE_SIZE - 1));
    if (lane_id() >= step) upto += other;
  }
  if (lane_id() == WAVE_SIZE - 1) scratch[wave_id()] = upto;
  group_barrier();
  uint32_t before = 0, all = 0;
#pragma unroll
  for (uint32_t w = 0; w < SORT_WAVES; w++) {
    if (w == wave_id()) before = all;
    all += scratch[w];
  }
  *out_all = all;
  return before + upto - v;
}

/* Group memory of a pass: how many of each digit each wave has. */
struct sort_counts {
  uint32_t of_wave[SORT_WAVES][SORT_DIGITS];
  uint32_t scratch[SORT_WAVES];
};

RDNA_DEVICE void counts_clear(sort_counts *counts) {
#pragma unroll
  for (uint32_t w = 0; w < SORT_WAVES; w++) counts->of_wave[w][thread_id()] = 0;
  group_barrier();
}

/* Turns counts into places: of_wave becomes where the wave's values of a digit begin within the group, digit by digit,
 * and of a digit wave by wave. A thread does the digit that is its number; it returns where that digit begins and, in
 * |out_total|, how many values have it. Ends with a barrier. */
RDNA_DEVICE uint32_t counts_begin(sort_counts *counts, uint32_t *out_total) {
  group_barrier();
  uint32_t mine[SORT_WAVES], total = 0, all;
#pragma unroll
  for (uint32_t w = 0; w < SORT_WAVES; w++) {
    mine[w] = total;
    total += counts->of_wave[w][thread_id()];
  }
  *out_total = total;
  uint32_t begin = group_sum_before(total, counts->scratch, &all);
#pragma unroll
  for (uint32_t w = 0; w < SORT_WAVES; w++) counts->of_wave[w][thread_id()] = begin + mine[w];
  group_barrier();
  return begin;
}

/* Where item |i| of this thread lies in a tile of |items| values a thread: a wave has consecutive values, 32 (or 64) of
 * them for each i. */
template <int items>
RDNA_DEVICE uint32_t item_at(uint32_t i) {
  return (wave_id() * items + i) * WAVE_SIZE + lane_id();
}
/* Whether any lane of the wave has one there. */
template <int items>
RDNA_DEVICE bool item_there(uint32_t i, uint32_t n) {
  return (wave_id() * items + i) * WAVE_SIZE < n;
}

#endif
