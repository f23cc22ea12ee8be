#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/sort/sort_cases.h"
#include "math/sort/sort_kernels.h"

RDNA_CASE_MAKER(rdna__sort_tile_case) {
  struct sort_tile_args a = {.order = {0}};
  rdna_dtype dtype = sort_case_dtype(kernel->name, n, &a.order);
  bool rank = strstr(kernel->name, "rank"), wave = strstr(kernel->name, "wave");
  int most = rank                            ? SORT_RANK_MOST
             : strstr(kernel->name, "long")  ? SORT_LONG_WAVE_MOST
             : wave                          ? SORT_WAVE_MOST
             : strstr(kernel->name, "small") ? SORT_SMALL_MOST
                                             : SORT_TILE;
  a.rows = rdna__random_range(random, 0, rank ? 200 : wave ? 20 : 4);
  a.n = (uint32_t)rdna__random_range(random, 1, most);
  if (n == 0) a.rows = 3, a.n = 1;
  if (n == 1) a.rows = 2, a.n = (uint32_t)most;
  if (n == 2) a.rows = 1, a.n = 33;
  a.kept = a.n;
  if (n % 3 == 2) {
    a.first = (uint32_t)rdna__random_below(random, a.n);
    a.kept = (uint32_t)rdna__random_range(random, 1, a.n - a.first);
  }
  a.bits = (uint32_t)(8 * rdna_dtype_block_bytes(dtype));
  a.narrow = n % 2;
  bool places_given = n % 4 == 3 && !wave;
  a.place_bits = places_given ? 24 : 0;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %u, %u from %u, %s%s", (long long)a.rows, a.n, a.kept,
           a.first, rdna_dtype_name(dtype), places_given ? ", places" : "");
  int64_t count = a.rows * a.n, kept = a.rows * a.kept;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct sort_tile_args, x));
  uint32_t *places = NULL;
  if (x && places_given) {
    places = rdna__case_add(out_case, RDNA__IN, RDNA_I32, count, offsetof(struct sort_tile_args, places));
    if (!places) return rdna__case_no_memory(out_case);
  }
  bool there = x && rdna__case_add(out_case, RDNA__OUT, a.narrow ? RDNA_I32 : RDNA_I64, kept,
                                   offsetof(struct sort_tile_args, indices));
  if (there && n % 5 != 4)
    there = rdna__case_add(out_case, RDNA__OUT, dtype, kept, offsetof(struct sort_tile_args, values));
  if (!there) return rdna__case_no_memory(out_case);
  sort_case_fill(random, dtype, x, count);
  /* distinct in a row, in any order */
  for (int64_t i = 0; places && i < count; i++) places[i] = (uint32_t)(i % a.n * 7919 % 16381 * 1000);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__radix_count_case) {
  struct radix_count_args a = {.order = {0}};
  rdna_dtype dtype = sort_case_dtype(kernel->name, n, &a.order);
  a.rows = rdna__random_range(random, 0, 3);
  a.n = (uint32_t)rdna__random_range(random, 1, 5 * SORT_TILE);
  if (n == 0) a.rows = 1, a.n = 5;
  if (n == 1) a.rows = 2, a.n = 2 * SORT_TILE;
  a.part = SORT_TILE * (1 + (uint32_t)n % 3);
  a.parts = (a.n - 1) / a.part + 1;
  a.digits = (uint32_t)rdna__random_range(random, 1, (int64_t)rdna_dtype_block_bytes(dtype));
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 5), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %u, %u parts, %s, %u digits", (long long)a.rows, a.n,
           a.parts, rdna_dtype_name(dtype), a.digits);
  int64_t count = a.rows * a.n, digits = a.digits * a.rows * SORT_DIGITS;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct radix_count_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  sort_case_fill(random, dtype, x, count);
  uint32_t *counts = rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, digits, offsetof(struct radix_count_args, counts));
  if (!counts) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < digits; i++) counts[i] = (uint32_t)(i * n);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__radix_sweep_case) {
  struct radix_sweep_args a = {.order = {0}};
  rdna_dtype dtype = sort_case_dtype(kernel->name, n, &a.order);
  a.rows = rdna__random_range(random, 0, 3);
  a.n = (uint32_t)rdna__random_range(random, SORT_SWEEP_TILE + 1, (n % 8 == 7 ? 12 : 3) * SORT_SWEEP_TILE);
  if (n == 1) a.rows = 2, a.n = 2 * SORT_SWEEP_TILE;
  a.tiles = (a.n - 1) / SORT_SWEEP_TILE + 1;
  a.shift = 8 * (uint32_t)rdna__random_below(random, rdna_dtype_block_bytes(dtype));
  a.narrow = n % 3 != 2;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)(a.rows * a.tiles), 1, 1}; /* as the operator has it: a tile a group */
  snprintf(out_case->label, sizeof out_case->label, "%lld x %u, %u tiles, %s, shift %u", (long long)a.rows, a.n,
           a.tiles, rdna_dtype_name(dtype), a.shift);
  int64_t count = a.rows * a.n, of_tiles = a.rows * SORT_DIGITS * a.tiles, digits = a.rows * SORT_DIGITS;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct radix_sweep_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  sort_case_fill(random, dtype, x, count);
  uint32_t *counts = rdna__case_add(out_case, RDNA__IN, RDNA_I32, digits, offsetof(struct radix_sweep_args, counts));
  uint32_t *states =
      counts ? rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, of_tiles, offsetof(struct radix_sweep_args, states))
             : NULL;
  uint32_t *ticket =
      states ? rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 1, offsetof(struct radix_sweep_args, ticket)) : NULL;
  bool there = ticket && rdna__case_add(out_case, RDNA__OUT, a.narrow ? RDNA_I32 : RDNA_I64, count,
                                        offsetof(struct radix_sweep_args, indices));
  if (there && n % 4 != 3)
    there = rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct radix_sweep_args, values));
  uint32_t *places = there ? counts : NULL;
  if (there && n % 2)
    places = rdna__case_add(out_case, RDNA__IN, RDNA_I32, count, offsetof(struct radix_sweep_args, places));
  if (!places) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; n % 2 && i < count; i++) places[i] = (uint32_t)rdna__random_bits(random);
  for (int64_t i = 0; i < digits; i++) counts[i] = 0;
  for (int64_t i = 0; i < of_tiles; i++) states[i] = 0;
  *ticket = 0;
  for (int64_t i = 0; i < count; i++) {
    uint64_t key = sort_key_64(&a.order, sort_case_bits(dtype, x, i));
    counts[i / a.n * SORT_DIGITS + (int64_t)(key >> a.shift & 0xff)]++;
  }
  return RDNA_OK;
}

/* By insertion. */
static void sort_row(const struct sort_order *order, rdna_dtype dtype, char *row, int64_t n) {
  size_t bytes = rdna_dtype_block_bytes(dtype);
  for (int64_t i = 1; i < n; i++) {
    char moving[8];
    memcpy(moving, row + (size_t)i * bytes, bytes);
    uint64_t key = sort_key_64(order, sort_case_bits(dtype, moving, 0));
    int64_t j = i;
    for (; j > 0 && sort_key_64(order, sort_case_bits(dtype, row, j - 1)) > key; j--)
      memcpy(row + (size_t)j * bytes, row + (size_t)(j - 1) * bytes, bytes);
    memcpy(row + (size_t)j * bytes, moving, bytes);
  }
}

RDNA_CASE_MAKER(rdna__search_case) {
  struct search_args a = {.order = {0}};
  rdna_dtype dtype = sort_case_dtype(kernel->name, n, &a.order);
  a.rows = rdna__random_range(random, 0, 4), a.n = rdna__random_range(random, 0, 300);
  a.count = rdna__random_range(random, 0, 500);
  if (n == 0) a.rows = 2, a.n = 4, a.count = 20;
  a.shared = n % 2, a.right = n / 2 % 2, a.narrow = n / 4 % 2;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld, %lld values, %s", (long long)a.rows, (long long)a.n,
           (long long)a.count, rdna_dtype_name(dtype));
  int64_t rows = a.shared ? 1 : a.rows;
  char *sorted = rdna__case_add(out_case, RDNA__IN, dtype, rows * a.n, offsetof(struct search_args, sorted));
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, a.rows * a.count, offsetof(struct search_args, x));
  if (!sorted || !x ||
      !rdna__case_add(out_case, RDNA__OUT, a.narrow ? RDNA_I32 : RDNA_I64, a.rows * a.count,
                      offsetof(struct search_args, out)))
    return rdna__case_no_memory(out_case);
  sort_case_fill(random, dtype, sorted, rows * a.n);
  sort_case_fill(random, dtype, x, a.rows * a.count);
  size_t row_bytes = (size_t)a.n * rdna_dtype_block_bytes(dtype);
  for (int64_t row = 0; row < rows; row++) sort_row(&a.order, dtype, sorted + (size_t)row * row_bytes, a.n);
  return RDNA_OK;
}
