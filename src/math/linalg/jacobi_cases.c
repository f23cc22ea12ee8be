#include <math.h>
#include <stdbool.h>
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

/* The arguments of a round, or of all sweeps of a single pair; without v where |n| is a multiple of 5. */
static struct jacobi_both_args both_sides(rdna_dtype dtype, rdna__random *random, int n, bool several) {
  static const uint32_t edges[] = {1, 2, 32, 33, 31, 64};
  uint32_t least = several ? 33 : 1, batch = (uint32_t)rdna__random_range(random, 1, 3);
  double epsilon = dtype == RDNA_F64 ? 0x1p-52 : 0x1p-23;
  struct jacobi_both_args a = {
      .of = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, 80), .column = 1}};
  if (a.of.n < least) a.of.n += least;
  uint32_t blocks = (a.of.n + JACOBI_BLOCK - 1) / JACOBI_BLOCK;
  a.of.m = n % 5 ? (uint32_t)rdna__random_range(random, 1, 90) : 0;
  a.of.blocks = blocks + blocks % 2, a.of.total = 20;
  a.of.round = (uint32_t)rdna__random_range(random, 0, a.of.blocks - 2);
  a.of.sweep = n % 3 == 2 ? 1 : 0, a.of.sweeps = a.of.blocks == 2 ? a.of.total - a.of.sweep : 1;
  a.of.smallest = epsilon, a.of.small = 32 * epsilon, a.of.negligible = dtype == RDNA_F64 ? 0x1p-900 : 0x1p-100;
  a.of.row = a.of.n + rdna__random_range(random, 0, 3), a.of.stride = a.of.row * a.of.n;
  a.v_row = n % 2 ? 1 : a.of.n + rdna__random_range(random, 0, 3);
  a.v_column = n % 2 ? a.of.m + rdna__random_range(random, 0, 3) : 1;
  a.v_stride = n % 2 ? a.v_column * a.of.n : a.v_row * a.of.m;
  a.of.units = batch * (several ? jacobi_tiles(a.of.blocks / 2, a.of.m) : a.of.blocks / 2);
  return a;
}

/* Symmetric matrices: normal, small integers, or graded; v normal; whether the sweep before met angles. */
static rdna_status add_both(rdna_dtype dtype, rdna__random *random, int n, const struct jacobi_both_args *a,
                            int64_t batch, rdna__kernel_case *out_case) {
  memcpy(out_case->args, a, sizeof *a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %u x %u, v of %u, round %u sweep %u", (long long)batch,
           a->of.n, a->of.n, a->of.m, a->of.round, a->of.sweep);
  void *x = rdna__case_add(out_case, RDNA__INOUT, dtype, batch * a->of.stride, offsetof(struct jacobi_both_args, of.a));
  if (!x) return rdna__case_no_memory(out_case);
  for (int64_t b = 0; b < batch; b++) {
    for (int64_t i = 0; i < a->of.n; i++) {
      for (int64_t j = 0; j <= i; j++) {
        double size = n % 4 == 3 ? exp2(-(double)(i + j) / 4) : 1;
        double v = n % 6 == 5 ? (double)rdna__random_range(random, -1, 1) : rdna__random_normal(random);
        store_double(dtype, x, b * a->of.stride + i * a->of.row + j, size * v);
        store_double(dtype, x, b * a->of.stride + j * a->of.row + i, size * v);
      }
    }
  }
  if (a->of.m) {
    void *v = rdna__case_add(out_case, RDNA__INOUT, dtype, batch * a->v_stride, offsetof(struct jacobi_both_args, v));
    if (!v) return rdna__case_no_memory(out_case);
    case_fill_doubles(random, dtype, v, batch * a->v_stride, 0);
  }
  int32_t *turned = rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, batch * a->of.total,
                                   offsetof(struct jacobi_both_args, of.turned));
  if (!turned) return rdna__case_no_memory(out_case);
  for (int64_t b = 0; b < batch && a->of.sweep; b++)
    turned[b * a->of.total] = (int32_t)rdna__random_range(random, 0, 1);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__jacobi_both_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct jacobi_both_args a = both_sides(dtype, random, n, false);
  int64_t pairs = a.of.blocks / 2, batch = a.of.units / pairs, values = 4 * JACOBI_BLOCK * JACOBI_BLOCK;
  RDNA_TRY(add_both(dtype, random, n, &a, batch, out_case));
  if (pairs == 1) return RDNA_OK;
  void *turns =
      rdna__case_add(out_case, RDNA__INOUT, dtype, batch * pairs * values, offsetof(struct jacobi_both_args, turns));
  void *moved =
      turns ? rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, batch * pairs, offsetof(struct jacobi_both_args, moved))
            : NULL;
  return moved ? RDNA_OK : rdna__case_no_memory(out_case);
}

/* Turns that are any matrices, and some pairs that have none. */
RDNA_CASE_MAKER(rdna__jacobi_across_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct jacobi_both_args a = both_sides(dtype, random, n, true);
  int64_t pairs = a.of.blocks / 2, batch = a.of.units / jacobi_tiles((uint32_t)pairs, a.of.m),
          values = 4 * JACOBI_BLOCK * JACOBI_BLOCK;
  RDNA_TRY(add_both(dtype, random, n, &a, batch, out_case));
  void *turns =
      rdna__case_add(out_case, RDNA__IN, dtype, batch * pairs * values, offsetof(struct jacobi_both_args, turns));
  if (!turns) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, turns, batch * pairs * values, 0);
  int32_t *moved =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, batch * pairs, offsetof(struct jacobi_both_args, moved));
  if (!moved) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < batch * pairs; i++) moved[i] = (int32_t)rdna__random_range(random, 0, 2) > 0;
  return RDNA_OK;
}
