/* Products with one row of A, and what a network has around them: the norm before, the gate behind. */
#ifndef RDNA_MATH_GEMV_KERNELS_H
#define RDNA_MATH_GEMV_KERNELS_H

#include "math/gemm/gemm_kernels.h"

/* All zero: none. */
struct gemv_steps {
  const float *norm; /* (k), at a multiple of 16 bytes: A's row is divided by its root mean square and multiplied by
                        these, value by value; NULL: it is not */
  float epsilon;     /* added to the mean square */
  uint32_t gated; /* 1: B has 2 n rows, and C = activation(A G^T) * A U^T, of which the first n are G. alpha 1, beta 0,
                     no bias, and no GEMM_MORE */
};
struct gemv_args {
  struct gemm_args product;
  struct gemv_steps steps;
};
#define GEMV_NORM_MOST_K 32768 /* where there is a norm */

#endif
