/* L D L^T of symmetric matrices that need not be definite, with the pivots of Bunch and Kaufman: a group for each. */
#ifndef RDNA_MATH_LINALG_LDL_KERNELS_H
#define RDNA_MATH_LINALG_LDL_KERNELS_H

#include <stdint.h>

enum { LDL_THREADS = 256, LDL_MOST = 1024 };

/* Between sizes of a diagonal value and of what is below it: (1 + sqrt 17) / 8 bounds best how much values grow.
 * J. R. Bunch, L. Kaufman: Some stable methods for calculating inertia and solving symmetric linear systems, 1977. */
#define LDL_ALPHA 0.64038820320220756872

/* A group takes matrices in turn, where they are: element (i, j) of matrix b, i >= j, is (b * n + j) * n + i of a. The
 * others are neither read nor written. A block of D is one value, or two by two; k is its first row:
 *
 *   one value       rows k and p changed places             pivots[k] = p + 1
 *   two by two      rows k + 1 and p changed places         pivots[k] = pivots[k + 1] = -(p + 1)
 *
 * Rows of columns before k stay, as in LAPACK. */
struct ldl_args {
  void *a;
  int32_t *pivots; /* (batch, n) */
  int32_t *info;   /* (batch): the first row, from 1, whose block of D is 0 or NaN, or 0 */
  uint32_t n, batch;
};

#define RDNA_LDL_KERNELS(X)                                \
  X(ldl_f32, struct ldl_args, LDL_THREADS, rdna__ldl_case) \
  X(ldl_f64, struct ldl_args, LDL_THREADS, rdna__ldl_case)

#endif
