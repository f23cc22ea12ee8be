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

/* Masks of the lanes that have each digit, for each wave: 0 but while they are in use. */
struct sort_match {
  uint32_t of_wave[SORT_WAVES][SORT_DIGITS][WAVE_SIZE / 32];
};
RDNA_DEVICE void match_clear(sort_match *match) {
#pragma unroll
  for (uint32_t i = 0; i < sizeof(sort_match) / sizeof(uint32_t); i += SORT_THREADS)
    (&match->of_wave[0][0][0])[i + thread_id()] = 0;
}
/* The lanes with the same digit, of those that are |valid|, lane 0 among them; any if this is not. All lanes are
 * active. By or-ing bits in LDS, which takes a third of the instructions of a ballot for each bit of the digit, and no
 * longer on NVIDIA's; match.any takes a quarter longer. */
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

/* Counts a digit of each lane that is |valid|, lane 0 among them, in the wave's own |counts|; how many there were
 * before, in the lanes' order. */
RDNA_DEVICE uint32_t wave_count(uint32_t *counts, sort_match *match, uint32_t digit, bool valid) {
  wave_mask same = wave_match(match, digit, valid);
  uint32_t below = mask_count(same & lanes_below()), before = 0;
  if (valid) before = counts[digit];
  wave_barrier();
  if (valid && below == 0) counts[digit] = before + mask_count(same);
  wave_barrier();
  return before + below;
}

/* The sum over the threads before this one; |scratch| has SORT_WAVES values and may be used again after a barrier. */
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

/* LDS of a pass: digits counted by each wave. */
struct sort_counts {
  uint32_t of_wave[SORT_WAVES][SORT_DIGITS];
  uint32_t scratch[SORT_WAVES];
};

RDNA_DEVICE void counts_clear(sort_counts *counts) {
#pragma unroll
  for (uint32_t w = 0; w < SORT_WAVES; w++) counts->of_wave[w][thread_id()] = 0;
  group_barrier();
}

/* After each wave has counted: of_wave becomes where the wave's values of a digit begin within the group. The thread's
 * own digit is its number; returns where that begins, and how many there are. Ends with a barrier. */
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

/* Item |i| of this thread in a tile of |items| for each: a wave's items are neighbours. */
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
