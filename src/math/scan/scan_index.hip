/* Running extremes with their places: x is read once, or twice where rows are cut; a value and 8 bytes are written for
 * each. Threads scan four neighbours, waves their threads' results, and the group carries on from tile to tile. */
#include "kernel/arguments.h"
#include "math/scan/scan_index_kernels.h"
#include "math/sort/sort_group.h"

enum { NOWHERE = 0xffffffff, WIDTH = SCAN_INDEX_TILE / SCAN_INDEX_THREADS };

template <typename word>
struct best { /* place NOWHERE: there is none yet */
  word raw;
  uint32_t place;
};

RDNA_DEVICE uint32_t rank_of(const scan_index_args &a, uint32_t raw) { return scan_rank_32(&a, raw); }
RDNA_DEVICE uint64_t rank_of(const scan_index_args &a, uint64_t raw) { return scan_rank_64(&a, raw); }
RDNA_DEVICE uint32_t shuffle(uint32_t v, uint32_t lane) { return wave_shuffle_u32(v, lane); }
RDNA_DEVICE uint64_t shuffle(uint64_t v, uint32_t lane) {
  return (uint64_t)wave_shuffle_u32((uint32_t)(v >> 32), lane) << 32 | wave_shuffle_u32((uint32_t)v, lane);
}

template <typename word>
RDNA_DEVICE best<word> join(const scan_index_args &a, best<word> first, best<word> later) {
  bool takes = first.place == NOWHERE || (later.place != NOWHERE && rank_of(a, later.raw) >= rank_of(a, first.raw));
  /* part by part: a choice of structs is a choice of addresses to clang 19, which then keeps both in memory */
  return {takes ? later.raw : first.raw, takes ? later.place : first.place};
}

template <typename type>
RDNA_DEVICE void store(const scan_index_args &a, int64_t at, best<typename type::word> v) {
  ((typename type::stored *)a.values)[at] = (typename type::stored)v.raw;
  if (a.narrow) {
    ((uint32_t *)a.indices)[at] = v.place;
  } else {
    ((int64_t *)a.indices)[at] = v.place;
  }
}

template <typename type>
RDNA_DEVICE void scan_segment(const scan_index_args &args, int64_t row, uint32_t segment,
                              best<typename type::word> *scratch) {
  typedef typename type::word word;
  const scan_index_args &a = arguments_again(args);
  const typename type::stored *x = (const typename type::stored *)a.x + row * a.n;
  uint32_t begin = segment * a.segment, end = begin + a.segment < a.n ? begin + a.segment : a.n;
  best<word> carry = {0, NOWHERE};
  if (a.carry_values && segment > 0) {
    carry.raw = ((const typename type::stored *)a.carry_values)[row * a.segments + segment - 1];
    carry.place = a.carry_places[row * a.segments + segment - 1];
  }
  for (uint32_t first = begin; first < end; first += SCAN_INDEX_TILE) {
    uint32_t at = first + thread_id() * WIDTH;
    best<word> v[WIDTH];
#pragma unroll
    for (uint32_t j = 0; j < WIDTH; j++) {
      v[j] = {0, NOWHERE};
      if (at + j < end) v[j] = {x[at + j], a.places ? a.places[row * a.n + at + j] : at + j};
    }
#pragma unroll
    for (uint32_t j = 1; j < WIDTH; j++) v[j] = join(a, v[j - 1], v[j]);
    best<word> mine = v[WIDTH - 1];
#pragma unroll
    for (uint32_t step = 1; step < WAVE_SIZE; step *= 2) {
      uint32_t lane = (lane_id() - step) & (WAVE_SIZE - 1);
      best<word> below = {shuffle(mine.raw, lane), wave_shuffle_u32(mine.place, lane)};
      if (lane_id() >= step) mine = join(a, below, mine);
    }
    group_barrier(); /* the last tile's totals have been read */
    if (lane_id() == WAVE_SIZE - 1) scratch[wave_id()] = mine;
    group_barrier();
    uint32_t lane = (lane_id() - 1) & (WAVE_SIZE - 1);
    best<word> before = carry, all = carry, below = {shuffle(mine.raw, lane), wave_shuffle_u32(mine.place, lane)};
    for (uint32_t w = 0; w < SORT_WAVES; w++) {
      if (w == wave_id()) before = all;
      all = join(a, all, scratch[w]);
    }
    if (lane_id() > 0) before = join(a, before, below);
    carry = all;
    if (a.total_values) continue;
#pragma unroll
    for (uint32_t j = 0; j < WIDTH; j++) {
      if (at + j < end) store<type>(a, row * a.n + at + j, join(a, before, v[j]));
    }
  }
  if (a.total_values && thread_id() == 0) {
    ((typename type::stored *)a.total_values)[row * a.segments + segment] = (typename type::stored)carry.raw;
    a.total_places[row * a.segments + segment] = carry.place;
  }
}

template <typename type>
RDNA_DEVICE void scan_any(const scan_index_args &a, best<typename type::word> *scratch) {
  if (a.inner == 1) {
    for (int64_t unit = group_id_x(); unit < a.outer * a.segments; unit += group_count_x()) {
      int64_t row = unit / a.segments;
      scan_segment<type>(a, row, (uint32_t)(unit - row * a.segments), scratch);
      group_barrier();
    }
    return;
  }
  int64_t columns = a.outer * a.inner;
  for (int64_t column = (int64_t)group_id_x() * SCAN_INDEX_THREADS + thread_id(); column < columns;
       column += (int64_t)group_count_x() * SCAN_INDEX_THREADS) {
    int64_t at = column / a.inner * a.n * a.inner + column % a.inner;
    best<typename type::word> kept = {0, NOWHERE};
    for (uint32_t i = 0; i < a.n; i++, at += a.inner) {
      best<typename type::word> one = {((const typename type::stored *)a.x)[at], i};
      kept = join(a, kept, one);
      store<type>(a, at, kept);
    }
  }
}

#define SCAN_INDEX(bits)                                                        \
  RDNA_KERNEL(SCAN_INDEX_THREADS) scan_index_##bits(struct scan_index_args a) { \
    RDNA_SHARED static best<bits_##bits::word> scratch[SORT_WAVES];             \
    scan_any<bits_##bits>(a, scratch);                                          \
  }
SCAN_INDEX(8)
SCAN_INDEX(16)
SCAN_INDEX(32)
SCAN_INDEX(64)
