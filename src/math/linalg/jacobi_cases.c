#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/jacobi_kernels.h"

/* Whole matrices of one pair of blocks, and one round of larger ones, in the first sweep or a later one that a matrix
 * may have no need of; columns that are 0, equal, or much shorter than others. */
RDNA_CASE_MAKER(rdna__jacobi_case) {
  static const uint32_t edges[] = {1, 2, 32, 33, 31, 64};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  double epsilon = dtype == RDNA_F64 ? 0x1p-52 : 0x1p-23;
  struct jacobi_args a = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, 80), .total = 20};
  uint32_t blocks = (a.n + JACOBI_BLOCK - 1) / JACOBI_BLOCK,
           batch = (uint32_t)rdna__random_range(random, n == 4 ? 0 : 1, 3);
  a.m = n % 4 == 1 ? a.n : (uint32_t)rdna__random_range(random, 1, 90);
  a.blocks = blocks + blocks % 2, a.units = a.blocks / 2 * batch;
  a.round = (uint32_t)rdna__random_range(random, 0, a.blocks - 2);
  a.sweep = n % 3 == 2 ? 1 : 0, a.sweeps = a.blocks == 2 ? a.total - a.sweep : 1;
  a.smallest = epsilon, a.small = 32 * epsilon, a.negligible = n % 4 ? epsilon : 1e-9;
  a.row = n % 2 ? 1 : a.n + rdna__random_range(random, 0, 3);
  a.column = n % 2 ? a.m + rdna__random_range(random, 0, 3) : 1;
  a.stride = n % 2 ? a.column * a.n : a.row * a.m;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u x %u, rows %lld columns %lld round %u sweep %u", batch,
           a.m, a.n, (long long)a.row, (long long)a.column, a.round, a.sweep);
  void *x = rdna__case_add(out_case, RDNA__INOUT, dtype, batch * a.stride, offsetof(struct jacobi_args, a));
  if (!x) return rdna__case_no_memory(out_case);
  for (int64_t b = 0; b < batch; b++) {
    for (int64_t j = 0; j < a.n; j++) {
      double size = n % 5 == 3 ? (j % 7 == 3 ? 0 : j % 7 == 5 ? 1e-12 : 1) : 1;
      for (int64_t i = 0; i < a.m; i++) {
        double v = n % 6 == 5 ? (double)rdna__random_range(random, -1, 1) : rdna__random_normal(random);
        store_double(dtype, x, b * a.stride + i * a.row + j * a.column, size * v);
      }
    }
  }
  int32_t *turned =
      rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, batch * a.total, offsetof(struct jacobi_args, turned));
  if (!turned) return rdna__case_no_memory(out_case);
  for (int64_t b = 0; b < batch && a.sweep; b++) turned[b * a.total] = (int32_t)rdna__random_range(random, 0, 1);
  return RDNA_OK;
}
