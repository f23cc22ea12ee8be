/* Products of groups of rows, of columns, or of what is summed, whose sizes lie on the device: the list of kernels.
 *
 *     rows      C(i, :) = A(i, :) B[g]       rows [ends[g - 1], ends[g]) of A and C are group g's
 *     columns   C(:, j) = A[g] B(:, j)       columns of B and C are
 *     sums      C[g] = A(:, p) B(p, :)       columns of A and rows of B are
 *
 * A group of threads makes a tile of C, as gemm_<…>_small does. It counts ends until it finds its tile, so that there
 * are as many tiles launched as there may be: one more for each group than rows alone have, and those left over end at
 * once. Rows or columns behind the last end become 0. */
#ifndef RDNA_MATH_GEMM_GROUPED_KERNELS_H
#define RDNA_MATH_GEMM_GROUPED_KERNELS_H

#include "kernel/scalar.h"
#include "math/gemm/gemm_kernels.h"

enum { GEMM_GROUPED_ROWS, GEMM_GROUPED_COLUMNS, GEMM_GROUPED_SUMS };

/* |product| is that of all rows (columns, sums) with group 0: alpha 1, beta 0 and nothing more. Grid: rows (columns):
 * ((m (n) / tile + groups + 1) * ceil(n (m) / tile)); sums: (ceil(m / tile) * ceil(n / tile), 1, groups). */
struct gemm_grouped_args {
  struct gemm_args product;
  const int32_t *ends; /* (groups), where each group ends; one that is less than the one before is taken for that */
  int32_t groups;
  uint32_t cut;
};

/* The part [begin, end) of |size| that is group |group|'s, or behind the last group's, which is number |groups|. */
struct gemm_group {
  int32_t group, begin, end;
};
RDNA_SCALAR struct gemm_group gemm_group_next(const struct gemm_grouped_args *a, struct gemm_group now, int32_t size) {
  int32_t end = ++now.group < a->groups ? a->ends[now.group] : size;
  now.begin = now.end;
  now.end = end < now.begin ? now.begin : end > size ? size : end;
  return now;
}

#define RDNA_GEMM_GROUPED_KERNELS(X)                                                         \
  X(gemm_grouped_f32, struct gemm_grouped_args, GEMM_SMALL_THREADS, rdna__gemm_grouped_case) \
  X(gemm_grouped_f16, struct gemm_grouped_args, GEMM_SMALL_THREADS, rdna__gemm_grouped_case) \
  X(gemm_grouped_bf16, struct gemm_grouped_args, GEMM_SMALL_THREADS, rdna__gemm_grouped_case)

#endif
