#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/scan/scan_index_kernels.h"
#include "math/sort/sort_cases.h"

RDNA_CASE_MAKER(rdna__scan_index_case) {
  struct scan_index_args a = {.order = {0}};
  rdna_dtype dtype = sort_case_dtype(kernel->name, n, &a.order);
  a.nan_last = a.order.infinity != 0 && a.order.invert != 0;
  a.outer = rdna__random_range(random, 1, 4), a.n = (uint32_t)rdna__random_range(random, 1, 4 * SCAN_INDEX_TILE);
  a.inner = n % 4 == 3 ? rdna__random_range(random, 2, 40) : 1;
  if (n == 0) a.outer = 2, a.n = 5;
  if (n == 1) a.n = SCAN_INDEX_TILE;
  if (a.inner > 1) a.n = a.n / 40 + 1;
  int mode = a.inner > 1 || a.n < 100 ? 0 : n % 3; /* whole rows, totals of segments, from carries on */
  a.segment = mode ? a.n / 3 + 1 : a.n;
  a.segments = (a.n - 1) / a.segment + 1;
  a.narrow = n % 5 == 2;
  bool given = a.inner == 1 && n % 2;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 5), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %u x %lld mode %d, %s", (long long)a.outer, a.n,
           (long long)a.inner, mode, rdna_dtype_name(dtype));
  int64_t count = a.outer * a.n * a.inner, parts = a.outer * a.segments;
#define BUFFER(role, dtype, count, field) \
  rdna__case_add(out_case, role, dtype, count, offsetof(struct scan_index_args, field))
  void *x = BUFFER(RDNA__IN, dtype, count, x), *carry = x;
  uint32_t *places = x, *carry_places = x;
  bool there = x;
  if (there && given) there = (places = BUFFER(RDNA__IN, RDNA_I32, count, places)) != NULL;
  if (there && mode == 1)
    there = BUFFER(RDNA__OUT, dtype, parts, total_values) && BUFFER(RDNA__OUT, RDNA_I32, parts, total_places);
  if (there && mode != 1)
    there =
        BUFFER(RDNA__OUT, dtype, count, values) && BUFFER(RDNA__OUT, a.narrow ? RDNA_I32 : RDNA_I64, count, indices);
  if (there && mode == 2) {
    carry = BUFFER(RDNA__IN, dtype, parts, carry_values);
    carry_places = carry ? BUFFER(RDNA__IN, RDNA_I32, parts, carry_places) : NULL;
  }
#undef BUFFER
  if (!there || !carry || !carry_places) return rdna__case_no_memory(out_case);
  sort_case_fill(random, dtype, x, count);
  for (int64_t i = 0; given && i < count; i++) places[i] = (uint32_t)rdna__random_below(random, 1000000);
  if (mode == 2) {
    sort_case_fill(random, dtype, carry, parts);
    for (int64_t i = 0; i < parts; i++) carry_places[i] = (uint32_t)rdna__random_below(random, 1000);
  }
  return RDNA_OK;
}
