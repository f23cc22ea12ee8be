/* Sorting rows and searching in them, on the host: by insertion up to 32 values, by radix above. */
#include <stdlib.h>
#include <string.h>

#include "math/common/host/bits.h"
#include "math/sort/sort_kernels.h"

struct item {
  uint64_t key, value;
  uint32_t place;
};

static bool before(const struct item *a, const struct item *b) {
  return a->key != b->key ? a->key < b->key : a->place < b->place;
}

static void insert_sort(struct item *items, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    struct item moving = items[i];
    uint32_t j = i;
    for (; j > 0 && before(&moving, &items[j - 1]); j--) items[j] = items[j - 1];
    items[j] = moving;
  }
}

/* By 8 bits of the place or of the key. */
static void radix_pass(const struct item *from, struct item *to, uint32_t n, uint32_t shift, bool by_place) {
  uint32_t count[SORT_DIGITS] = {0}, at = 0;
  for (uint32_t i = 0; i < n; i++) count[(by_place ? from[i].place : from[i].key) >> shift & 0xff]++;
  for (int d = 0; d < SORT_DIGITS; d++) {
    uint32_t here = count[d];
    count[d] = at;
    at += here;
  }
  for (uint32_t i = 0; i < n; i++) to[count[(by_place ? from[i].place : from[i].key) >> shift & 0xff]++] = from[i];
}

static struct item *sort_items(struct item *items, struct item *other, const struct sort_tile_args *a) {
  if (a->n <= 32) {
    insert_sort(items, a->n);
    return items;
  }
  for (int by_place = 1; by_place >= 0; by_place--) {
    for (uint32_t shift = 0; shift < (by_place ? a->place_bits : a->bits); shift += 8) {
      radix_pass(items, other, a->n, shift, by_place);
      struct item *held = items;
      items = other, other = held;
    }
  }
  return items;
}

struct tile_work {
  struct sort_tile_args a;
  int bytes;
};

static void sort_rows(void *context, int64_t begin, int64_t end) {
  const struct tile_work *work = context;
  const struct sort_tile_args *a = &work->a;
  struct item first[SORT_TILE], other[SORT_TILE];
  for (int64_t row = begin; row < end; row++) {
    for (uint32_t i = 0; i < a->n; i++) {
      uint64_t v = load_bits(a->x, work->bytes, row * a->n + i);
      first[i] = (struct item){sort_key_64(&a->order, v), v, a->places ? a->places[row * a->n + i] : i};
    }
    const struct item *sorted = sort_items(first, other, a);
    for (uint32_t i = 0; i < a->kept && i + a->first < a->n; i++) {
      if (a->values) store_bits(a->values, work->bytes, row * a->kept + i, sorted[a->first + i].value);
      if (a->indices) store_place(a->indices, a->narrow, row * a->kept + i, sorted[a->first + i].place);
    }
  }
}

struct count_work {
  struct radix_count_args a;
  int bytes;
};

static void count_parts(void *context, int64_t begin, int64_t end) {
  const struct count_work *work = context;
  const struct radix_count_args *a = &work->a;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row = unit / a->parts, first = unit % a->parts * a->part;
    int64_t last = first + a->part < a->n ? first + a->part : a->n;
    uint32_t count[8][SORT_DIGITS] = {{0}};
    for (int64_t i = first; i < last; i++) {
      uint64_t key = sort_key_64(&a->order, load_bits(a->x, work->bytes, row * a->n + i));
      for (uint32_t digit = 0; digit < a->digits; digit++) count[digit][key >> 8 * digit & 0xff]++;
    }
    for (uint32_t digit = 0; digit < a->digits; digit++) {
      for (int d = 0; d < SORT_DIGITS; d++)
        __atomic_fetch_add(&a->counts[(digit * a->rows + row) * SORT_DIGITS + d], count[digit][d], __ATOMIC_RELAXED);
    }
  }
}

struct sweep_work {
  struct radix_sweep_args a;
  int bytes;
};

/* This tile's values: the first and how many. */
static uint32_t tile_of(const struct radix_sweep_args *a, int64_t unit, int64_t *out_row, uint32_t *out_tile) {
  *out_row = unit / a->tiles;
  *out_tile = (uint32_t)(unit % a->tiles);
  uint32_t left = a->n - *out_tile * SORT_SWEEP_TILE;
  return left < SORT_SWEEP_TILE ? left : SORT_SWEEP_TILE;
}

static void count_tiles(void *context, int64_t begin, int64_t end) {
  const struct sweep_work *work = context;
  const struct radix_sweep_args *a = &work->a;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row;
    uint32_t tile, here = tile_of(a, unit, &row, &tile), *count = a->states + unit * SORT_DIGITS;
    for (int d = 0; d < SORT_DIGITS; d++) count[d] = 0;
    for (uint32_t i = 0; i < here; i++) {
      uint64_t v = load_bits(a->x, work->bytes, row * a->n + (int64_t)tile * SORT_SWEEP_TILE + i);
      count[sort_key_64(&a->order, v) >> a->shift & 0xff]++;
    }
  }
}

/* Counts become where the next tile's go. */
static void scan_tiles(void *context, int64_t begin, int64_t end) {
  const struct radix_sweep_args *a = &((const struct sweep_work *)context)->a;
  for (int64_t row = begin; row < end; row++) {
    uint32_t upto[SORT_DIGITS], sum = 0;
    for (int d = 0; d < SORT_DIGITS; d++) {
      upto[d] = sum;
      sum += a->counts[row * SORT_DIGITS + d];
    }
    for (uint32_t tile = 0; tile < a->tiles; tile++) {
      uint32_t *states = a->states + (row * a->tiles + tile) * SORT_DIGITS;
      for (int d = 0; d < SORT_DIGITS; d++) states[d] = SWEEP_UPTO | (upto[d] += states[d]);
    }
  }
}

static void scatter_tiles(void *context, int64_t begin, int64_t end) {
  const struct sweep_work *work = context;
  const struct radix_sweep_args *a = &work->a;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row;
    uint32_t tile, here = tile_of(a, unit, &row, &tile), next[SORT_DIGITS], sum = 0;
    for (int d = 0; d < SORT_DIGITS; d++) {
      next[d] = tile > 0 ? a->states[(unit - 1) * SORT_DIGITS + d] & ~SWEEP_UPTO : sum;
      sum += a->counts[row * SORT_DIGITS + d];
    }
    for (uint32_t i = 0; i < here; i++) {
      uint32_t at = tile * SORT_SWEEP_TILE + i;
      uint64_t v = load_bits(a->x, work->bytes, row * a->n + at);
      int64_t to = row * a->n + next[sort_key_64(&a->order, v) >> a->shift & 0xff]++;
      if (a->values) store_bits(a->values, work->bytes, to, v);
      if (a->indices) store_place(a->indices, a->narrow, to, a->places ? a->places[row * a->n + at] : at);
    }
  }
}

static void sweep(const struct radix_sweep_args *a, int bytes) {
  struct sweep_work work = {*a, bytes};
  int64_t units = a->rows * a->tiles;
  rdna__parallel_for(units, 2, count_tiles, &work);
  rdna__parallel_for(a->rows, 1, scan_tiles, &work);
  rdna__parallel_for(units, 2, scatter_tiles, &work);
  *a->ticket += (uint32_t)units;
}

struct search_work {
  struct search_args a;
  int bytes;
};

static void search_values(void *context, int64_t begin, int64_t end) {
  const struct search_work *work = context;
  const struct search_args *a = &work->a;
  for (int64_t i = begin; i < end; i++) {
    int64_t row = a->shared ? 0 : i / a->count * a->n, low = 0, high = a->n;
    uint64_t wanted = sort_key_64(&a->order, load_bits(a->x, work->bytes, i));
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      uint64_t key = sort_key_64(&a->order, load_bits(a->sorted, work->bytes, row + middle));
      if (a->right ? key <= wanted : key < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (a->narrow) {
      ((int32_t *)a->out)[i] = (int32_t)low;
    } else {
      ((int64_t *)a->out)[i] = low;
    }
  }
}

static void tile_kernel(const struct sort_tile_args *a, int bytes) {
  struct tile_work work = {*a, bytes};
  rdna__parallel_for(a->rows, 1 + 4096 / (a->n + 1), sort_rows, &work);
}

#define SORT(bits)                                                                                            \
  void RDNA_HOST_KERNEL(sort_rank_##bits)(const void *args, rdna_grid grid) { tile_kernel(args, bits / 8); }  \
  void RDNA_HOST_KERNEL(sort_wave_##bits)(const void *args, rdna_grid grid) { tile_kernel(args, bits / 8); }  \
  void RDNA_HOST_KERNEL(sort_small_##bits)(const void *args, rdna_grid grid) { tile_kernel(args, bits / 8); } \
  void RDNA_HOST_KERNEL(sort_tile_##bits)(const void *args, rdna_grid grid) { tile_kernel(args, bits / 8); }  \
  void RDNA_HOST_KERNEL(radix_count_##bits)(const void *args, rdna_grid grid) {                               \
    struct count_work work = {*(const struct radix_count_args *)args, bits / 8};                              \
    rdna__parallel_for(work.a.rows *work.a.parts, 2, count_parts, &work);                                     \
  }                                                                                                           \
  void RDNA_HOST_KERNEL(radix_sweep_##bits)(const void *args, rdna_grid grid) { sweep(args, bits / 8); }      \
  void RDNA_HOST_KERNEL(search_##bits)(const void *args, rdna_grid grid) {                                    \
    struct search_work work = {*(const struct search_args *)args, bits / 8};                                  \
    rdna__parallel_for(work.a.rows *work.a.count, 1024, search_values, &work);                                \
  }
SORT(8)
SORT(16)
SORT(32)
SORT(64)
void RDNA_HOST_KERNEL(sort_long_wave_8)(const void *args, rdna_grid grid) { tile_kernel(args, 1); }
void RDNA_HOST_KERNEL(sort_long_wave_16)(const void *args, rdna_grid grid) { tile_kernel(args, 2); }
void RDNA_HOST_KERNEL(sort_long_wave_32)(const void *args, rdna_grid grid) { tile_kernel(args, 4); }
