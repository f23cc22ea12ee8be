/* Selects the first k values of each row; select_kernels.h says how. x is read as often as it takes until the rest fits
 * in |room|, commonly twice; nearly nothing is written. */
#include "kernel/arguments.h"
#include "math/sort/select_kernels.h"
#include "math/sort/sort_group.h"

static constexpr int items = SELECT_TILE / SELECT_THREADS;

struct select_memory {
  sort_counts counts;
  uint32_t digit, of_digit, before;
};

/* Returns a row's state after a.digit digits, 1 at least; |out_prior_left| is |left| of the state before. */
RDNA_DEVICE select_state find_state(const select_args &a, int64_t row, select_memory *lds, uint32_t *out_prior_left) {
  select_state s = {0, 0, a.k, 0, 0};
  if (a.digit > 1) s = a.states[(a.digit - 1) * a.rows + row];
  *out_prior_left = s.left;
  uint32_t all, mine = a.counts[((a.digit - 1) * a.rows + row) * SELECT_DIGITS + thread_id()];
  uint32_t before = group_sum_before(mine, lds->counts.scratch, &all);
  if (before < s.need && s.need - before <= mine) lds->digit = thread_id(), lds->of_digit = mine, lds->before = before;
  group_barrier();
  return select_next(&a, s, lds->digit, lds->of_digit, lds->before);
}

/* Returns where the value of each lane with |append| goes; one atomic addition a wave. All lanes are active. */
RDNA_DEVICE uint32_t append_place(uint32_t *count, bool append) {
  wave_mask those = (wave_mask)wave_ballot(append);
  uint32_t first = 0;
  if (those == 0) return 0;
  if (lane_id() == 0) first = atomic_add_u32(count, mask_count(those));
  return wave_shuffle_u32(first, 0) + mask_count(those & lanes_below());
}

/* Adds the waves' counts to the row's. */
RDNA_DEVICE void store_counts(const select_args &a, int64_t row, const sort_counts *counts) {
  group_barrier();
  uint32_t total = 0;
#pragma unroll
  for (uint32_t w = 0; w < SORT_WAVES; w++) total += counts->of_wave[w][thread_id()];
  if (total > 0) atomic_add_u32(&a.counts[(a.digit * a.rows + row) * SELECT_DIGITS + thread_id()], total);
  group_barrier();
}

/* Launch 0: counts the first digit of all values. */
template <typename type>
RDNA_DEVICE void select_begin(const select_args &a, sort_counts *counts) {
  typedef typename type::stored stored;
  for (int64_t unit = group_id_x(); unit < a.rows * a.parts; unit += group_count_x()) {
    int64_t row = unit / a.parts;
    const stored *x = (const stored *)a.x + row * a.n;
    uint32_t part = (uint32_t)(unit - row * a.parts), *mine = counts->of_wave[wave_id()];
    counts_clear(counts);
    for (uint32_t first = part * SELECT_TILE; first < a.n; first += a.parts * SELECT_TILE) {
      uint32_t digits[items];
#pragma unroll
      for (uint32_t i = 0; i < items; i++) {
        uint32_t at = first + item_at<items>(i);
        digits[i] = 0;
        if (at < a.n) digits[i] = (uint32_t)(type::key(a.order, x[at]) >> (type::BITS - 8));
      }
#pragma unroll
      for (uint32_t i = 0; i < items; i++) {
        if (first + item_at<items>(i) < a.n) atomic_add_u32(&mine[digits[i]], 1);
      }
    }
    store_counts(a, row, counts);
  }
}

template <typename type>
RDNA_DEVICE void select(const select_args &args, select_memory *lds) {
  typedef typename type::stored stored;
  typedef typename type::word word;
  for (int64_t unit = group_id_x(); unit < args.rows * args.parts; unit += group_count_x()) {
    const select_args &a = arguments_again_wide(args);
    int64_t row = unit / a.parts;
    uint32_t part = (uint32_t)(unit - row * a.parts), prior_left;
    select_state s = find_state(a, row, lds, &prior_left);
    if (part == 0 && thread_id() == 0 && a.digit < a.digits) a.states[a.digit * a.rows + row] = s;
    bool copy = s.left > 0 && prior_left == 0;
    const stored *x = prior_left ? (const stored *)a.left_values + row * a.room : (const stored *)a.x + row * a.n;
    const uint32_t *places = prior_left ? a.left_places + row * a.room : NULL;
    uint32_t count = prior_left ? prior_left : a.n, *mine = lds->counts.of_wave[wave_id()];
    uint32_t room = a.only_kth ? 1 : a.k, *taken = a.taken + 2 * row;
    counts_clear(&lds->counts);
    for (uint32_t first = part * SELECT_TILE; first < count; first += a.parts * SELECT_TILE) {
      word v[items];
      uint32_t interesting = 0; /* bit i: item i is worth a second look */
#pragma unroll
      for (uint32_t i = 0; i < items; i++) {
        uint32_t at = first + item_at<items>(i);
        v[i] = 0;
        if (at < count) v[i] = x[at];
      }
      word top = (word)s.key;
      uint32_t shift = a.digit < a.key_digits ? 8 * (a.key_digits - a.digit) : 0;
#pragma unroll
      for (uint32_t i = 0; i < items; i++) interesting |= (uint32_t)(type::key(a.order, v[i]) >> shift <= top) << i;
      /* those are few, and are loaded again */
#pragma unroll 1
      for (uint32_t i = 0; i < items; i++) {
        uint32_t at = first + item_at<items>(i), place = at;
        bool here = (interesting >> i & 1) && at < count;
        if (!wave_any(here)) continue;
        stored value = 0;
        if (here) {
          value = x[at];
          if (places) place = global(places)[at];
        }
        word key = type::key(a.order, value);
        enum select_class what = here ? select_classify(&a, &s, key, place) : SELECT_NOT;
        uint32_t to = append_place(taken, what == SELECT_TAKE);
        if (what == SELECT_TAKE && to < room) {
          ((stored *)a.values)[row * room + to] = value;
          a.places[row * room + to] = place;
        }
        if (a.digit == a.digits) continue;
        if (what == SELECT_LEFT) atomic_add_u32(&mine[select_digit(&a, key, place)], 1);
        if (!copy) continue;
        to = append_place(taken + 1, what == SELECT_LEFT);
        if (what == SELECT_LEFT && to < a.room) {
          ((stored *)a.left_values)[row * a.room + to] = value;
          a.left_places[row * a.room + to] = place;
        }
      }
    }
    if (a.digit < a.digits) {
      store_counts(a, row, &lds->counts);
    } else {
      group_barrier();
    }
  }
}

#define SELECT(bits)                                                      \
  RDNA_KERNEL(SELECT_THREADS) select_begin_##bits(struct select_args a) { \
    RDNA_SHARED static sort_counts counts;                                \
    select_begin<bits_##bits>(a, &counts);                                \
  }                                                                       \
  RDNA_KERNEL(SELECT_THREADS) select_##bits(struct select_args a) {       \
    RDNA_SHARED static select_memory lds;                                 \
    select<bits_##bits>(a, &lds);                                         \
  }
SELECT(8)
SELECT(16)
SELECT(32)
SELECT(64)
