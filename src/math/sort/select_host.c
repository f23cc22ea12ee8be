/* The first k values of each row, on the host. */
#include "math/common/host/bits.h"
#include "math/sort/select_kernels.h"

struct work {
  struct select_args a;
  int bytes;
};

static struct select_state find_state(const struct select_args *a, int64_t row, uint32_t *out_prior_left) {
  struct select_state s = {0, 0, a->k, 0, 0};
  *out_prior_left = 0;
  if (a->digit == 0) return s;
  if (a->digit > 1) s = a->states[(a->digit - 1) * a->rows + row];
  *out_prior_left = s.left;
  const uint32_t *counts = a->counts + ((a->digit - 1) * a->rows + row) * SELECT_DIGITS;
  uint32_t before = 0, digit = 0;
  while (digit + 1 < SELECT_DIGITS && before + counts[digit] < s.need) before += counts[digit++];
  return select_next(a, s, digit, counts[digit], before);
}

static void append(const struct work *work, void *values, uint32_t *places, int64_t row, uint32_t room, uint32_t *count,
                   uint64_t value, uint32_t place) {
  uint32_t to = __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
  if (to >= room) return;
  int64_t at = row * room + to;
  store_bits(values, work->bytes, at, value);
  places[at] = place;
}

static void select_units(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct select_args *a = &work->a;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row = unit / a->parts;
    uint32_t part = (uint32_t)(unit % a->parts), prior_left, totals[SELECT_DIGITS] = {0};
    struct select_state s = find_state(a, row, &prior_left);
    if (part == 0 && a->digit > 0 && a->digit < a->digits) a->states[a->digit * a->rows + row] = s;
    bool copy = s.left > 0 && prior_left == 0;
    const char *x = prior_left ? (const char *)a->left_values + row * a->room * work->bytes
                               : (const char *)a->x + row * a->n * work->bytes;
    uint32_t count = prior_left ? prior_left : a->n;
    for (uint32_t first = part * SELECT_TILE; first < count; first += a->parts * SELECT_TILE) {
      for (uint32_t at = first; at < count && at < first + SELECT_TILE; at++) {
        uint64_t value = load_bits(x, work->bytes, at), key = sort_key_64(&a->order, value);
        uint32_t place = prior_left ? a->left_places[row * a->room + at] : at;
        enum select_class what = select_classify(a, &s, key, place);
        if (what == SELECT_TAKE)
          append(work, a->values, a->places, row, a->only_kth ? 1 : a->k, &a->taken[2 * row], value, place);
        if (what != SELECT_LEFT || a->digit == a->digits) continue;
        totals[select_digit(a, key, place)]++;
        if (copy) append(work, a->left_values, a->left_places, row, a->room, &a->taken[2 * row + 1], value, place);
      }
    }
    if (a->digit == a->digits) continue;
    uint32_t *counts = a->counts + (a->digit * a->rows + row) * SELECT_DIGITS;
    for (int d = 0; d < SELECT_DIGITS; d++) {
      if (totals[d] > 0) __atomic_fetch_add(&counts[d], totals[d], __ATOMIC_RELAXED);
    }
  }
}

#define SELECT(bits)                                                             \
  void RDNA_HOST_KERNEL(select_begin_##bits)(const void *args, rdna_grid grid) { \
    struct work work = {*(const struct select_args *)args, bits / 8};            \
    rdna__parallel_for(work.a.rows *work.a.parts, 2, select_units, &work);       \
  }                                                                              \
  void RDNA_HOST_KERNEL(select_##bits)(const void *args, rdna_grid grid) {       \
    struct work work = {*(const struct select_args *)args, bits / 8};            \
    rdna__parallel_for(work.a.rows *work.a.parts, 2, select_units, &work);       \
  }
SELECT(8)
SELECT(16)
SELECT(32)
SELECT(64)
