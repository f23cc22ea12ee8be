#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/lu_kernels.h"

/* Normal numbers, or small integers, of which many are equal and pivots may be 0. */
RDNA_CASE_MAKER(rdna__lu_case) {
  static const uint32_t edges[] = {1, 2, 31, 32, 16, 17};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  uint32_t most = strstr(kernel->name, "small") ? LU_SMALL_ROWS : n == 3 ? 1100 : 200;
  struct lu_args a = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, LU_BLOCK),
                      .batch = (uint32_t)rdna__random_range(random, n == 3 ? 0 : 1, 4),
                      .first = n % 3 == 1 ? 64 : 0,
                      .in_place = n % 5 == 4};
  a.m = n % 4 == 3 ? most : (uint32_t)rdna__random_range(random, a.n, most);
  a.row = n % 2 ? 1 : a.n + rdna__random_range(random, 0, 3);
  a.column = n % 2 ? a.m + rdna__random_range(random, 0, 3) : 1;
  a.stride = n % 2 ? a.column * a.n : a.row * a.m;
  a.pivots_stride = a.first + a.n + rdna__random_range(random, 0, 3);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u x %u, rows %lld columns %lld first %u in place %u",
           a.batch, a.m, a.n, (long long)a.row, (long long)a.column, a.first, a.in_place);
  void *x = rdna__case_add(out_case, RDNA__INOUT, dtype, a.batch * a.stride, offsetof(struct lu_args, a));
  if (!x) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < a.batch * a.stride; i++)
    store_double(dtype, x, i, n % 3 == 2 ? (double)rdna__random_range(random, -1, 1) : rdna__random_normal(random));
  int32_t *pivots =
      rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, a.batch * a.pivots_stride, offsetof(struct lu_args, pivots));
  int32_t *info =
      pivots ? rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, a.batch, offsetof(struct lu_args, info)) : NULL;
  if (!info) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < a.batch * a.pivots_stride; i++) pivots[i] = -1;
  for (int64_t i = 0; i < a.batch; i++) info[i] = i % 2 ? 5 : 0;
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__swap_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t batch = rdna__random_range(random, 1, 3), rows = rdna__random_range(random, 1, 70);
  struct swap_args a = {.columns = rdna__random_range(random, 1, 150), .backwards = n % 2};
  a.count = (uint32_t)rdna__random_range(random, 0, rows);
  a.first = (uint32_t)rdna__random_range(random, 0, rows - a.count);
  a.skipped = rdna__random_range(random, 0, a.columns);
  a.resumed = a.skipped + rdna__random_range(random, 0, 33);
  int64_t width = a.columns + a.resumed - a.skipped;
  a.row = n % 3 ? 1 : width, a.column = n % 3 ? rows : 1, a.stride = rows * width + rdna__random_range(random, 0, 3);
  a.pivots_stride = rows, a.rows = (uint32_t)rows;
  a.parts = (uint32_t)((a.columns + SWAP_THREADS - 1) / SWAP_THREADS), a.units = a.parts * (uint32_t)batch;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %lld x %lld, rows %u to %u, without %lld to %lld",
           (long long)batch, (long long)rows, (long long)width, a.first, a.first + a.count, (long long)a.skipped,
           (long long)a.resumed);
  void *x = rdna__case_add(out_case, RDNA__INOUT, dtype, batch * a.stride, offsetof(struct swap_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < batch * a.stride; i++) store_double(dtype, x, i, (double)i);
  int32_t *pivots = rdna__case_add(out_case, RDNA__IN, RDNA_I32, batch * rows, offsetof(struct swap_args, pivots));
  if (!pivots) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < batch * rows; i++) pivots[i] = (int32_t)rdna__random_range(random, 0, rows + 1);
  return RDNA_OK;
}
