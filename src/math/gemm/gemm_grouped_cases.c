#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/gemm/gemm_grouped_kernels.h"

/* Values from one row to the next, of rows of |columns|. */
static int64_t apart(rdna__random *random, int64_t columns) {
  int64_t multiple = rdna__random_below(random, 2) ? 8 : 1;
  return (columns + multiple - 1) / multiple * multiple + multiple * rdna__random_range(random, 0, 1);
}

RDNA_CASE_MAKER(rdna__gemm_grouped_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct gemm_grouped_args a = {.cut = (uint32_t)(n % 3), .groups = (int32_t)rdna__random_range(random, 1, 5)};
  struct gemm_args *p = &a.product;
  p->batch = 1, p->alpha = 1;
  p->m = (int32_t)rdna__random_range(random, 1, 90), p->n = (int32_t)rdna__random_range(random, 1, 90);
  p->k = n == 3 ? 0 : (int32_t)rdna__random_range(random, 1, 70);
  if (n > 4 && rdna__random_below(random, 2)) p->m = (p->m + 7) / 8 * 8, p->n = (p->n + 7) / 8 * 8;
  p->flags = (rdna__random_below(random, 2) ? GEMM_A_TRANSPOSED : 0) | (n % 2 ? GEMM_B_TRANSPOSED : 0);
  int64_t rows_a = p->flags & GEMM_A_TRANSPOSED ? p->k : p->m, columns_a = rows_a == p->k ? p->m : p->k;
  int64_t rows_b = p->flags & GEMM_B_TRANSPOSED ? p->n : p->k;
  columns_a = p->flags & GEMM_A_TRANSPOSED ? p->m : p->k;
  int64_t columns_b = p->flags & GEMM_B_TRANSPOSED ? p->k : p->n;
  p->lda = apart(random, columns_a), p->ldb = apart(random, columns_b), p->ldc = apart(random, p->n);
  p->stride_a = rows_a * p->lda, p->stride_b = rows_b * p->ldb, p->stride_c = p->m * p->ldc;
  int64_t count_a = p->stride_a * (a.cut == GEMM_GROUPED_COLUMNS ? a.groups : 1);
  int64_t count_b = p->stride_b * (a.cut == GEMM_GROUPED_ROWS ? a.groups : 1);
  int64_t count_c = p->stride_c * (a.cut == GEMM_GROUPED_SUMS ? a.groups : 1);
  uint32_t down = (uint32_t)(p->m + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE;
  uint32_t across = (uint32_t)(p->n + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE;
  uint32_t more = (uint32_t)a.groups + 1;
  out_case->grid = a.cut == GEMM_GROUPED_SUMS
                       ? (rdna_grid){down * across, 1, (uint32_t)a.groups}
                       : (rdna_grid){a.cut == GEMM_GROUPED_ROWS ? ((uint32_t)p->m / GEMM_SMALL_TILE + more) * across
                                                                : ((uint32_t)p->n / GEMM_SMALL_TILE + more) * down,
                                     1, 1};
  memcpy(out_case->args, &a, sizeof a);
  snprintf(out_case->label, sizeof out_case->label, "m %d n %d k %d, %d groups of %s, ld %lld %lld %lld flags %u", p->m,
           p->n, p->k, a.groups,
           a.cut == GEMM_GROUPED_SUMS   ? "sums"
           : a.cut == GEMM_GROUPED_ROWS ? "rows"
                                        : "columns",
           (long long)p->lda, (long long)p->ldb, (long long)p->ldc, p->flags);
  int32_t *ends = rdna__case_add(out_case, RDNA__IN, RDNA_I32, a.groups, offsetof(struct gemm_grouped_args, ends));
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count_a, offsetof(struct gemm_grouped_args, product.a));
  void *w = rdna__case_add(out_case, RDNA__IN, dtype, count_b, offsetof(struct gemm_grouped_args, product.b));
  void *c = rdna__case_add(out_case, RDNA__INOUT, dtype, count_c, offsetof(struct gemm_grouped_args, product.c));
  if (!ends || !x || !w || !c) return rdna__case_no_memory(out_case);
  int32_t size = a.cut == GEMM_GROUPED_ROWS ? p->m : a.cut == GEMM_GROUPED_COLUMNS ? p->n : p->k, end = 0;
  for (int32_t g = 0; g < a.groups; g++) {
    end += (int32_t)rdna__random_range(random, 0, 2 * size / a.groups + 1);
    ends[g] = n % 7 == 6 && g == 1 ? end - 40 : end; /* wrong ones too: one before the last, and past the end */
  }
  if (n % 4 && a.groups > 1) ends[a.groups - 1] = size;
  case_fill_doubles(random, dtype, x, count_a, 0);
  case_fill_doubles(random, dtype, w, count_b, 0);
  case_fill_doubles(random, dtype, c, count_c, 0);
  double top = case_top(dtype, x, count_a) * case_top(dtype, w, count_b);
  rdna__case_tolerance(out_case, 0x1p-23 * (p->k + 8) * top, case_step(dtype));
  return RDNA_OK;
}
