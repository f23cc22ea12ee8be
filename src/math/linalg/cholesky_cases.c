#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/cholesky_kernels.h"

/* Diagonally dominant, but for a matrix here and there that fails, at a pivot that is negative, 0 or NaN, or failed
 * before. What is across the diagonal is NaN. */
RDNA_CASE_MAKER(rdna__cholesky_case) {
  static const uint32_t edges[] = {1, 129, 33, 290, 128, 200};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct cholesky_args a = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, 200)};
  if (a.n > CHOLESKY_BLOCK && n % 2) a.first = CHOLESKY_BLOCK;
  uint32_t left = a.n - a.first, below = left < CHOLESKY_BLOCK ? 0 : left - CHOLESKY_BLOCK;
  uint32_t batch = (uint32_t)rdna__random_range(random, n == 4 ? 0 : 1, 3);
  a.parts = (below + CHOLESKY_ROWS - 1) / CHOLESKY_ROWS + (a.first > 0) + (below == 0), a.units = a.parts * batch;
  int64_t ld = a.n + rdna__random_range(random, 0, 3);
  a.stride = ld * a.n + rdna__random_range(random, 0, 5);
  a.row = n % 4 > 1 ? 1 : ld, a.column = n % 4 > 1 ? ld : 1;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u, rows %lld columns %lld first %u", batch, a.n,
           (long long)a.row, (long long)a.column, a.first);
  void *x = rdna__case_add(out_case, RDNA__INOUT, dtype, batch * a.stride, offsetof(struct cholesky_args, a));
  int32_t *info = x ? rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, batch, offsetof(struct cholesky_args, info)) : x;
  if (!info) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < batch * a.stride; i++) store_double(dtype, x, i, NAN);
  for (int64_t b = 0; b < batch; b++) {
    info[b] = n % 4 == 3 && b == 0 ? 7 : n % 4 == 1 && b == 1 ? (int32_t)a.n : 0;
    for (int64_t i = 0; i < a.n; i++) {
      for (int64_t k = 0; k <= i; k++)
        store_double(dtype, x, b * a.stride + i * a.row + k * a.column, i == k ? a.n : rdna__random_unit(random) - 0.5);
    }
    static const double bad[] = {NAN, -1, 0};
    if (n % 3 == 2 && b % 2 == 0) {
      int64_t first = rdna__random_range(random, 0, a.n / 2);
      int64_t second = rdna__random_range(random, a.first ? a.first : a.n / 2, a.n - 1);
      store_double(dtype, x, b * a.stride + first * (ld + 1), bad[n / 3 % 3]);
      store_double(dtype, x, b * a.stride + second * (ld + 1), bad[n / 3 % 3]);
    }
  }
  return RDNA_OK;
}
