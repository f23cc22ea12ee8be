/* See compact_kernels.h. Memory traffic: the mask is read twice, values and coordinates are read and written once. */
#include "math/index/compact_kernels.h"
#include "math/sort/sort_group.h"

static constexpr int items = COMPACT_TILE / COMPACT_THREADS;
enum { COMPACT_WAVES = COMPACT_THREADS / WAVE_SIZE };

/* Returns which of the thread's values in a tile count: bit i is item i. A vector register holds them: wave masks, one
 * for each item, would spill scalar registers. */
template <typename type>
RDNA_DEVICE uint32_t load_flags(const compact_args &a, int64_t tile) {
  typename type::stored v[items];
  uint32_t flags = 0;
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    int64_t at = tile * COMPACT_TILE + item_at<items>(i);
    v[i] = 0;
    if (at < a.n) v[i] = ((const typename type::stored *)a.x)[at];
  }
#pragma unroll
  for (uint32_t i = 0; i < items; i++) flags |= (uint32_t)((v[i] & ~(typename type::word)a.ignored) != 0) << i;
  return flags;
}

template <typename type>
RDNA_DEVICE void count_tiles(const compact_args &a, uint32_t *scratch) {
  for (int64_t tile = group_id_x(); tile < a.tiles; tile += group_count_x()) {
    uint32_t flags = load_flags<type>(a, tile), count = wave_sum_u32((uint32_t)__builtin_popcount(flags));
    if (lane_id() == 0) scratch[wave_id()] = count;
    group_barrier();
    uint32_t all = 0;
#pragma unroll
    for (uint32_t w = 0; w < COMPACT_WAVES; w++) all += scratch[w];
    if (thread_id() == 0) a.offsets[tile] = all;
    group_barrier();
  }
}

/* Calls keep(a, rank, place) for each value that counts: |rank| is how many count before it, |place| its index in x. */
template <typename type, typename keep_one>
RDNA_DEVICE void each_kept(const compact_args &a, uint32_t *scratch, keep_one keep) {
  for (int64_t tile = group_id_x(); tile < a.tiles; tile += group_count_x()) {
    uint32_t flags = load_flags<type>(a, tile), count = wave_sum_u32((uint32_t)__builtin_popcount(flags));
    if (lane_id() == 0) scratch[wave_id()] = count;
    group_barrier();
    int64_t rank = a.offsets[tile];
#pragma unroll
    for (uint32_t w = 0; w < COMPACT_WAVES; w++) {
      if (w < wave_id()) rank += scratch[w];
    }
#pragma unroll 1
    for (uint32_t i = 0; i < items; i++) {
      bool kept = flags >> i & 1;
      wave_mask those = (wave_mask)wave_ballot(kept);
      int64_t mine = rank + mask_count(those & lanes_below());
      if (kept && mine < a.limit) keep(a, mine, tile * COMPACT_TILE + item_at<items>(i));
      rank += mask_count(those);
    }
    group_barrier();
  }
}

RDNA_KERNEL(COMPACT_THREADS) compact_scan(struct compact_args a) {
  RDNA_SHARED static uint32_t scratch[COMPACT_WAVES];
  constexpr uint32_t some = 8;
  if (group_id_x() > 0) return;
  int64_t carry = 0;
  for (uint32_t first = 0; first < a.tiles; first += some * COMPACT_THREADS) {
    uint32_t at = first + thread_id() * some, v[some], sum = 0, all;
#pragma unroll
    for (uint32_t i = 0; i < some; i++) {
      v[i] = at + i < a.tiles ? (uint32_t)a.offsets[at + i] : 0;
      sum += v[i];
    }
    int64_t before = carry + group_sum_before(sum, scratch, &all);
#pragma unroll
    for (uint32_t i = 0; i < some; i++) {
      if (at + i < a.tiles) a.offsets[at + i] = before;
      before += v[i];
    }
    carry += all;
    group_barrier();
  }
  if (thread_id() == 0) a.offsets[a.tiles] = carry;
}

#define COMPACT(size)                                                                        \
  RDNA_KERNEL(COMPACT_THREADS) compact_count_##size(struct compact_args a) {                 \
    RDNA_SHARED static uint32_t scratch[COMPACT_WAVES];                                      \
    count_tiles<bits_##size>(a, scratch);                                                    \
  }                                                                                          \
  RDNA_KERNEL(COMPACT_THREADS) nonzero_##size(struct compact_args a) {                       \
    RDNA_SHARED static uint32_t scratch[COMPACT_WAVES];                                      \
    each_kept<bits_##size>(a, scratch, [](const compact_args &a, int64_t to, int64_t from) { \
      compact_coordinates(&a.shape, (uint32_t)from, (int64_t *)a.out + to * a.shape.rank);   \
    });                                                                                      \
  }                                                                                          \
  RDNA_KERNEL(COMPACT_THREADS) masked_select_##size(struct compact_args a) {                 \
    RDNA_SHARED static uint32_t scratch[COMPACT_WAVES];                                      \
    typedef bits_##size::stored stored;                                                      \
    each_kept<bits_8>(a, scratch, [](const compact_args &a, int64_t to, int64_t from) {      \
      ((stored *)a.out)[to] = ((const stored *)a.values)[from];                              \
    });                                                                                      \
  }                                                                                          \
  RDNA_KERNEL(COMPACT_THREADS) masked_scatter_##size(struct compact_args a) {                \
    RDNA_SHARED static uint32_t scratch[COMPACT_WAVES];                                      \
    typedef bits_##size::stored stored;                                                      \
    each_kept<bits_8>(a, scratch, [](const compact_args &a, int64_t from, int64_t to) {      \
      ((stored *)a.out)[to] = ((const stored *)a.values)[from];                              \
    });                                                                                      \
  }
COMPACT(8)
COMPACT(16)
COMPACT(32)
COMPACT(64)
