/* LU with partial pivoting of complex matrices: a group for each. */
#ifndef RDNA_MATH_LINALG_COMPLEX_LU_KERNELS_H
#define RDNA_MATH_LINALG_COMPLEX_LU_KERNELS_H

#include <stdint.h>

enum { COMPLEX_LU_THREADS = 256, COMPLEX_LU_MOST = 1024 };

/* A group takes matrices in turn, where they are. Element (i, j) of matrix b is pair (b * n + j) * m + i of a. A pivot
 * is the first of those in its column whose parts' magnitudes have the largest sum, as LAPACK's; NaN is above all. */
struct complex_lu_args {
  void *a;         /* (batch, n, m, 2): columns of pairs of reals */
  int32_t *pivots; /* (batch, min(m, n)), from 1 */
  int32_t *info;   /* (batch): the first column, from 1, without a pivot, or 0 */
  uint32_t m, n, batch;
  uint32_t in_place; /* rows stay */
};

#define RDNA_COMPLEX_LU_KERNELS(X)                                                     \
  X(complex_lu_f32, struct complex_lu_args, COMPLEX_LU_THREADS, rdna__complex_lu_case) \
  X(complex_lu_f64, struct complex_lu_args, COMPLEX_LU_THREADS, rdna__complex_lu_case)

#endif
