/* Sorting rows and searching in them.
 *
 * sort_rank: n comparisons a value out of LDS. sort_wave and sort_long_wave: 28 and 45 exchanges a value, 15 of them
 * with other lanes (21 where a wave has 64). sort_small and sort_tile read and write each value once; a pass over 8
 * bits costs about 40 instructions for a wave's width of values. radix_count reads a value once for all passes;
 * radix_sweep reads and writes a value with its 4-byte place, through LDS, so that values of one digit leave as runs:
 * of b bytes a value and p passes, all of them b + p (2 b + 8) and 4 for the wide index, less 4 for the first place. */
#include "kernel/arguments.h"
#include "math/sort/sort_group.h"
#include "math/sort/sort_kernels.h"

RDNA_DEVICE void store_index(void *indices, bool narrow, int64_t at, uint32_t place) {
  if (narrow) {
    ((uint32_t *)indices)[at] = place;
  } else {
    ((int64_t *)indices)[at] = place;
  }
}

/* Sorts rows of a few values by counting, for each value, those that come before it. A row has a power of two of
 * threads, one for each value. */
template <typename type>
RDNA_DEVICE void sort_rank(const sort_tile_args &a, typename type::word *keys, uint32_t *places) {
  typedef typename type::stored stored;
  uint32_t width = 1;
  while (width < a.n) width *= 2;
  uint32_t rows_here = SORT_THREADS / width, mine = thread_id() & (width - 1), first = thread_id() - mine;
  for (int64_t unit = group_id_x(); unit * rows_here < a.rows; unit += group_count_x()) {
    int64_t row = unit * rows_here + thread_id() / width, at = row * a.n + mine;
    bool there = row < a.rows && mine < a.n;
    stored v = 0;
    typename type::word key = 0;
    uint32_t place = mine;
    if (there) {
      v = ((const stored *)a.x)[at];
      key = type::key(a.order, v);
      if (a.places) place = a.places[at];
    }
    keys[thread_id()] = key;
    places[thread_id()] = place;
    group_barrier();
    uint32_t rank = 0;
    for (uint32_t j = 0; j < a.n; j++) {
      typename type::word other = keys[first + j];
      rank += other < key || (other == key && places[first + j] < place);
    }
    rank -= a.first;
    if (there && rank < a.kept) {
      if (a.values) ((stored *)a.values)[row * a.kept + rank] = v;
      if (a.indices) store_index(a.indices, a.narrow, row * a.kept + rank, place);
    }
    group_barrier();
  }
}

/* What sort_wave orders: a key with where its value stood, in as few words as they fit. padding() is greater than all
 * entries that there are. */
template <typename type, bool small = (type::BITS <= 16), bool large = (type::BITS > 32)>
struct entry { /* of 32 bits */
  uint64_t all;
  RDNA_DEVICE entry make(uint32_t key, uint32_t at) { return entry{(uint64_t)key << 32 | at}; }
  RDNA_DEVICE entry padding(uint32_t at) { return make(~0u, at); }
  RDNA_DEVICE uint32_t at(entry e) { return (uint32_t)e.all; }
  RDNA_DEVICE bool greater(entry a, entry b) { return a.all > b.all; }
  RDNA_DEVICE entry pick(bool first, entry a, entry b) { return entry{first ? a.all : b.all}; }
  RDNA_DEVICE entry shuffle(entry e, uint32_t mask) {
    return make(wave_shuffle_xor_u32((uint32_t)(e.all >> 32), mask), wave_shuffle_xor_u32((uint32_t)e.all, mask));
  }
};
template <typename type>
struct entry<type, true, false> {
  uint32_t all;
  RDNA_DEVICE entry make(uint32_t key, uint32_t at) { return entry{key << 16 | at}; }
  RDNA_DEVICE entry padding(uint32_t at) { return make(0xffff, at); }
  RDNA_DEVICE uint32_t at(entry e) { return e.all & 0xffff; }
  RDNA_DEVICE bool greater(entry a, entry b) { return a.all > b.all; }
  RDNA_DEVICE entry pick(bool first, entry a, entry b) { return entry{first ? a.all : b.all}; }
  RDNA_DEVICE entry shuffle(entry e, uint32_t mask) { return entry{wave_shuffle_xor_u32(e.all, mask)}; }
};
template <typename type>
struct entry<type, false, true> {
  uint64_t key;
  uint32_t place;
  RDNA_DEVICE entry make(uint64_t key, uint32_t at) { return entry{key, at}; }
  RDNA_DEVICE entry padding(uint32_t at) { return make(~UINT64_C(0), at); }
  RDNA_DEVICE uint32_t at(entry e) { return e.place; }
  RDNA_DEVICE entry pick(bool first, entry a, entry b) {
    return entry{first ? a.key : b.key, first ? a.place : b.place};
  }
  RDNA_DEVICE bool greater(entry a, entry b) { return a.key > b.key || (a.key == b.key && a.place > b.place); }
  RDNA_DEVICE entry shuffle(entry e, uint32_t mask) {
    uint32_t high = wave_shuffle_xor_u32((uint32_t)(e.key >> 32), mask),
             low = wave_shuffle_xor_u32((uint32_t)e.key, mask);
    return entry{(uint64_t)high << 32 | low, wave_shuffle_xor_u32(e.place, mask)};
  }
};

/* One step of a sorting network over a wave's entries: compares each entry with the one whose number differs by |mask|,
 * and gives the lesser number the lesser one. Lane i has entries i * items to (i + 1) * items - 1, so that low bits of
 * |mask| are exchanges within a lane, and higher ones between lanes. */
template <uint32_t mask, int items, typename item>
RDNA_DEVICE void compare_exchange(item *v) {
  constexpr uint32_t within = mask & (items - 1), lanes = mask / items;
  item other[items];
  if constexpr (lanes == 0) {
#pragma unroll
    for (uint32_t i = 0; i < items; i++) {
      if ((i ^ within) < i || within == 0) continue;
      bool turn = item::greater(v[i], v[i ^ within]);
      item low = item::pick(turn, v[i ^ within], v[i]), high = item::pick(turn, v[i], v[i ^ within]);
      v[i] = low, v[i ^ within] = high;
    }
  } else {
    bool lower = !(lane_id() >> (31 - __builtin_clz(lanes)) & 1); /* the highest bit tells */
#pragma unroll
    for (uint32_t i = 0; i < items; i++) other[i] = item::shuffle(v[i ^ within], lanes);
#pragma unroll
    for (uint32_t i = 0; i < items; i++) {
      v[i] = item::pick(item::greater(v[i], other[i]) == lower, other[i], v[i]);
    }
  }
}
/* Merges sorted halves to sorted runs of |size| entries (Batcher, "Sorting networks and their applications", 1968):
 * compares each entry with its mirror image in the run, then with those a quarter of the run away, an eighth, and so
 * on.
 *
 *     size 8     0 1 2 3 | 4 5 6 7      halves sorted
 *                0-7 1-6 2-5 3-4        mask 7: mirror images
 *                0-2 1-3   4-6 5-7      mask 2
 *                0-1 2-3   4-5 6-7      mask 1 */
template <uint32_t step, int items, typename item>
RDNA_DEVICE void merge_halves(item *v) {
  if constexpr (step > 0) {
    compare_exchange<step, items>(v);
    merge_halves<step / 2, items>(v);
  }
}
template <uint32_t size, int items, typename item>
RDNA_DEVICE void sort_runs(item *v) {
  if constexpr (size > 1) {
    sort_runs<size / 2, items>(v);
    compare_exchange<size - 1, items>(v);
    merge_halves<size / 4, items>(v);
  }
}

/* Sorts rows of at most |most| values, a wave each, by that network. They come without places. |sorted|: group memory
 * for where each wave's values stood. */
template <typename type, int most>
RDNA_DEVICE void sort_wave(const sort_tile_args &a, uint16_t (*sorted)[most]) {
  typedef typename type::stored stored;
  typedef entry<type> item;
  constexpr int items = most / WAVE_SIZE;
  uint16_t *mine = sorted[wave_id()];
  for (int64_t row = (int64_t)group_id_x() * SORT_WAVES + wave_id(); row < a.rows;
       row += (int64_t)group_count_x() * SORT_WAVES) {
    const stored *x = (const stored *)a.x + row * a.n;
    item v[items];
#pragma unroll
    for (uint32_t i = 0; i < items; i++) {
      uint32_t at = i * WAVE_SIZE + lane_id();
      stored raw = 0;
      if (at < a.n) raw = x[at];
      v[i] = item::make(type::key(a.order, raw), at);
      if (at >= a.n) v[i] = item::padding(at);
    }
    sort_runs<most, items>(v);
    wave_barrier(); /* the row before has been read */
#pragma unroll
    for (uint32_t i = 0; i < items; i++) mine[lane_id() * items + i] = (uint16_t)item::at(v[i]);
    wave_barrier();
#pragma unroll
    for (uint32_t i = 0; i < items; i++) {
      uint32_t at = i * WAVE_SIZE + lane_id() - a.first;
      if (i * WAVE_SIZE + lane_id() >= a.n || at >= a.kept) continue;
      uint32_t place = mine[at + a.first];
      if (a.values) ((stored *)a.values)[row * a.kept + at] = x[place];
      if (a.indices) store_index(a.indices, a.narrow, row * a.kept + at, place);
    }
  }
}

template <typename type, int items>
struct tile_memory {
  sort_counts counts;
  union {
    sort_match match; /* while digits are counted */
    typename type::word words[items * SORT_THREADS];
  };
};

/* Computes |ranks|, where each item goes when a tile is sorted by the digits digit(i). Until the counts of all waves
 * are known a rank within its wave shares a register with its digit. */
template <int items, bool full, typename digit_of>
RDNA_DEVICE uint32_t rank_items(sort_counts *counts, sort_match *match, uint32_t n, digit_of digit, uint32_t *ranks,
                                uint32_t *out_total) {
  group_barrier(); /* |words|, which |match| lies over, have been read */
  match_clear(match);
  counts_clear(counts);
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    ranks[i] = 0;
    if (full || item_there<items>(i, n)) {
      uint32_t d = digit(i);
      bool valid = full || item_at<items>(i) < n;
      ranks[i] = wave_count(counts->of_wave[wave_id()], match, d, valid) | d << 16;
    }
  }
  uint32_t begin = counts_begin(counts, out_total);
#pragma unroll
  for (uint32_t i = 0; i < items; i++) ranks[i] = (ranks[i] & 0xffff) + counts->of_wave[wave_id()][ranks[i] >> 16];
  return begin;
}

/* Moves each item to its rank within the tile, through |lds|. */
template <int items, typename word, typename memory>
RDNA_DEVICE void exchange(memory *lds, uint32_t n, const uint32_t *ranks, word *v) {
  group_barrier();
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    if (item_at<items>(i) < n) lds[ranks[i]] = v[i];
  }
  group_barrier();
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    if (item_at<items>(i) < n) v[i] = (word)lds[item_at<items>(i)];
  }
}

/* Sorts rows that fit in a group's registers, digit by digit from the lowest: first those of the places, then of the
 * keys. */
template <typename type, int items>
RDNA_DEVICE void sort_tile(const sort_tile_args &a, tile_memory<type, items> *lds) {
  typedef typename type::stored stored;
  typedef typename type::word word;
  uint32_t n = a.n;
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    word v[items];
    uint32_t place[items], ranks[items], total;
#pragma unroll
    for (uint32_t i = 0; i < items; i++) {
      uint32_t at = item_at<items>(i);
      v[i] = 0;
      place[i] = at;
      if (at < n) v[i] = ((const stored *)a.x)[row * n + at];
      if (at < n && a.places) place[i] = a.places[row * n + at];
    }
    for (uint32_t shift = 0; shift < a.place_bits; shift += 8) {
      rank_items<items, false>(
          &lds->counts, &lds->match, n, [&](uint32_t i) { return place[i] >> shift & 0xff; }, ranks, &total);
      exchange<items>(lds->words, n, ranks, v);
      exchange<items>(lds->words, n, ranks, place);
    }
    for (uint32_t shift = 0; shift < a.bits; shift += 8) {
      rank_items<items, false>(
          &lds->counts, &lds->match, n,
          [&](uint32_t i) { return (uint32_t)(type::key(a.order, v[i]) >> shift) & 0xff; }, ranks, &total);
      exchange<items>(lds->words, n, ranks, v);
      exchange<items>(lds->words, n, ranks, place);
    }
#pragma unroll
    for (uint32_t i = 0; i < items; i++) {
      uint32_t at = item_at<items>(i) - a.first;
      if (item_at<items>(i) < n && at < a.kept) {
        if (a.values) ((stored *)a.values)[row * a.kept + at] = (stored)v[i];
        if (a.indices) store_index(a.indices, a.narrow, row * a.kept + at, place[i]);
      }
    }
    group_barrier();
  }
}

/* Counts all digits of all values of a part of a row at once. */
template <typename type>
RDNA_DEVICE void radix_count(const radix_count_args &a, uint32_t (*counts)[SORT_DIGITS]) {
  typedef typename type::stored stored;
  constexpr uint32_t items = 8, most = type::BITS / 8;
  for (int64_t unit = group_id_x(); unit < a.rows * a.parts; unit += group_count_x()) {
    int64_t row = unit / a.parts;
    uint32_t begin = (uint32_t)(unit - row * a.parts) * a.part, end = min_u32(a.n - begin, a.part) + begin;
    const stored *x = (const stored *)a.x + row * a.n;
#pragma unroll
    for (uint32_t d = 0; d < most; d++) counts[d][thread_id()] = 0;
    group_barrier();
#pragma unroll 1
    for (uint32_t first = begin + thread_id(); first < end; first += items * SORT_THREADS) {
      stored v[items];
#pragma unroll
      for (uint32_t i = 0; i < items; i++) {
        v[i] = 0;
        if (first + i * SORT_THREADS < end) v[i] = x[first + i * SORT_THREADS];
      }
#pragma unroll
      for (uint32_t i = 0; i < items; i++) {
        if (first + i * SORT_THREADS >= end) continue;
        typename type::word key = type::key(a.order, v[i]);
#pragma unroll
        for (uint32_t d = 0; d < most; d++) {
          if (d < a.digits) atomic_add_u32(&counts[d][(uint32_t)(key >> 8 * d) & 0xff], 1);
        }
      }
    }
    group_barrier();
    for (uint32_t d = 0; d < a.digits; d++) {
      uint32_t count = counts[d][thread_id()];
      if (count > 0) atomic_add_u32(&a.counts[(d * a.rows + row) * SORT_DIGITS + thread_id()], count);
    }
    group_barrier();
  }
}

/* A word that other groups read and write meanwhile. */
RDNA_DEVICE uint32_t load_shared_word(const uint32_t *p) {
#ifdef RDNA_AMD
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
#endif
}
RDNA_DEVICE void store_shared_word(uint32_t *p, uint32_t v) {
#ifdef RDNA_AMD
  __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v));
#endif
}

/* Returns where the tile's values of this thread's digit go. The tile has |total| of them, |state| is the tile's word
 * for it, and the row's go from |row_begin| on. Looks back at the tiles before until one knows where its own end. */
RDNA_DEVICE uint32_t look_back(uint32_t *state, uint32_t tile, uint32_t total, uint32_t row_begin) {
  constexpr uint32_t window = 4; /* tiles whose words are in flight at once */
  uint32_t before = 0;
  if (tile == 0) {
    before = row_begin;
  } else {
    store_shared_word(state, total + 1);
    const uint32_t *at = state - SORT_DIGITS;
    bool found = false;
    while (!found) {
      uint32_t words[window];
#pragma unroll
      for (uint32_t k = 0; k < window; k++) words[k] = k < tile ? load_shared_word(at - k * SORT_DIGITS) : 0;
#pragma unroll
      for (uint32_t k = 0; k < window; k++) {
        if (found || words[k] == 0) break;
        found = words[k] & SWEEP_UPTO;
        before += found ? words[k] & ~SWEEP_UPTO : words[k] - 1;
        at -= SORT_DIGITS, tile--;
      }
    }
  }
  store_shared_word(state, SWEEP_UPTO | (before + total));
  return before;
}

template <typename type>
struct sweep_memory {
  sort_counts counts;
  uint32_t base[SORT_DIGITS]; /* of each digit: where its values go in the row, less where they are in the tile */
  uint32_t ticket;
  union {
    sort_match match;
    typename type::word words[SORT_SWEEP_TILE];
  };
};

/* Moves tile |tile| of row |row|, which has |left| values from there on; |full|: a whole tile. */
template <bool full, typename type>
RDNA_DEVICE void sweep_tile(const radix_sweep_args &args, sweep_memory<type> *lds, int64_t row, uint32_t tile,
                            uint32_t left) {
  typedef typename type::stored stored;
  typedef typename type::word word;
  constexpr int items = SORT_SWEEP_TILE / SORT_THREADS;
  const radix_sweep_args &a = arguments_again(args);
  int64_t row_at = row * a.n, tile_at = row_at + (int64_t)tile * SORT_SWEEP_TILE;
  uint32_t ranks[items], to[items], total, all;
  word v[items];
  if (full) left = SORT_SWEEP_TILE;
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    v[i] = 0;
    if (full || item_at<items>(i) < left) v[i] = ((const stored *)a.x)[tile_at + item_at<items>(i)];
  }
  uint32_t begin = rank_items<items, full>(
      &lds->counts, &lds->match, left,
      [&](uint32_t i) { return (uint32_t)(type::key(a.order, v[i]) >> a.shift) & 0xff; }, ranks, &total);
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    if (full || item_at<items>(i) < left) lds->words[ranks[i]] = v[i];
  }
  uint32_t row_begin = 0;
  if (tile == 0) row_begin = group_sum_before(a.counts[row * SORT_DIGITS + thread_id()], lds->counts.scratch, &all);
  uint32_t *state = a.states + (row * a.tiles + tile) * SORT_DIGITS + thread_id();
  lds->base[thread_id()] = look_back(state, tile, total, row_begin) - begin;
  group_barrier();
  const radix_sweep_args &now = arguments_again(args);
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    uint32_t at = i * SORT_THREADS + thread_id();
    to[i] = 0;
    if (full || at < left) {
      word key = lds->words[at];
      to[i] = at + lds->base[(uint32_t)(type::key(now.order, key) >> now.shift) & 0xff];
      if (now.values) ((stored *)now.values)[row_at + to[i]] = (stored)key;
    }
  }
  if (!now.indices) return;
  group_barrier();
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    uint32_t at = item_at<items>(i);
    if (full || at < left) lds->words[ranks[i]] = now.places ? now.places[tile_at + at] : tile * SORT_SWEEP_TILE + at;
  }
  group_barrier();
#pragma unroll
  for (uint32_t i = 0; i < items; i++) {
    uint32_t at = i * SORT_THREADS + thread_id();
    if (full || at < left) store_index(now.indices, now.narrow, row_at + to[i], (uint32_t)lds->words[at]);
  }
}

template <typename type>
RDNA_DEVICE void radix_sweep(const radix_sweep_args &a, sweep_memory<type> *lds) {
  int64_t units = a.rows * a.tiles;
  for (int64_t turn = group_id_x(); turn < units; turn += group_count_x()) {
    if (thread_id() == 0) lds->ticket = atomic_add_u32(a.ticket, 1);
    group_barrier();
    uint32_t unit = wave_uniform_u32(lds->ticket), row = unit / a.tiles, tile = unit - row * a.tiles;
    uint32_t left = a.n - tile * SORT_SWEEP_TILE;
    if (left >= SORT_SWEEP_TILE) {
      sweep_tile<true>(a, lds, row, tile, left);
    } else {
      sweep_tile<false>(a, lds, row, tile, left);
    }
    group_barrier();
  }
}

template <typename type>
RDNA_DEVICE void search(const search_args &a) {
  typedef typename type::stored stored;
  typedef typename type::word word;
  int64_t all = a.rows * a.count, step = (int64_t)group_count_x() * SORT_THREADS;
  for (int64_t i = (int64_t)group_id_x() * SORT_THREADS + thread_id(); i < all; i += step) {
    const stored *row = (const stored *)a.sorted + (a.shared ? 0 : i / a.count * a.n);
    word wanted = type::key(a.order, ((const stored *)a.x)[i]);
    int64_t low = 0, high = a.n;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      word key = type::key(a.order, row[middle]);
      if (a.right ? key <= wanted : key < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (a.narrow) {
      ((int32_t *)a.out)[i] = (int32_t)low;
    } else {
      ((int64_t *)a.out)[i] = low;
    }
  }
}

#define SORT(bits)                                                                   \
  RDNA_KERNEL(SORT_THREADS) sort_rank_##bits(struct sort_tile_args a) {              \
    RDNA_SHARED static bits_##bits::word keys[SORT_THREADS];                         \
    RDNA_SHARED static uint32_t places[SORT_THREADS];                                \
    sort_rank<bits_##bits>(a, keys, places);                                         \
  }                                                                                  \
  RDNA_KERNEL(SORT_THREADS) sort_wave_##bits(struct sort_tile_args a) {              \
    RDNA_SHARED static uint16_t sorted[SORT_WAVES][SORT_WAVE_MOST];                  \
    sort_wave<bits_##bits>(a, sorted);                                               \
  }                                                                                  \
  RDNA_KERNEL(SORT_THREADS) sort_small_##bits(struct sort_tile_args a) {             \
    RDNA_SHARED static tile_memory<bits_##bits, SORT_SMALL_MOST / SORT_THREADS> lds; \
    sort_tile(a, &lds);                                                              \
  }                                                                                  \
  RDNA_KERNEL_RESIDENT(SORT_THREADS, sizeof(bits_##bits::word) > 4 ? 2 : 3)          \
  sort_tile_##bits(struct sort_tile_args a) {                                        \
    RDNA_SHARED static tile_memory<bits_##bits, SORT_TILE / SORT_THREADS> lds;       \
    sort_tile(a, &lds);                                                              \
  }                                                                                  \
  RDNA_KERNEL(SORT_THREADS) radix_count_##bits(struct radix_count_args a) {          \
    RDNA_SHARED static uint32_t counts[bits / 8][SORT_DIGITS];                       \
    radix_count<bits_##bits>(a, counts);                                             \
  }                                                                                  \
  RDNA_KERNEL_RESIDENT(SORT_THREADS, sizeof(bits_##bits::word) > 4 ? 2 : 3)          \
  radix_sweep_##bits(struct radix_sweep_args a) {                                    \
    RDNA_SHARED static sweep_memory<bits_##bits> lds;                                \
    radix_sweep(a, &lds);                                                            \
  }                                                                                  \
  RDNA_KERNEL(SORT_THREADS) search_##bits(struct search_args a) { search<bits_##bits>(a); }
SORT(8)
SORT(16)
SORT(32)
SORT(64)

#define SORT_LONG_WAVE(bits)                                                 \
  RDNA_KERNEL(SORT_THREADS) sort_long_wave_##bits(struct sort_tile_args a) { \
    RDNA_SHARED static uint16_t sorted[SORT_WAVES][SORT_LONG_WAVE_MOST];     \
    sort_wave<bits_##bits>(a, sorted);                                       \
  }
SORT_LONG_WAVE(8)
SORT_LONG_WAVE(16)
SORT_LONG_WAVE(32)
