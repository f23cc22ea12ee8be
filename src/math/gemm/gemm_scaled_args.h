/* What products of 8-bit operands take: signed bytes (gemm_i8_kernels.h) and 8-bit floats (gemm_f8_kernels.h).
 *
 * C(m, n) is what gemm_kernels.h says of scale_a(m) scale_b(n) times the sum over k of A(m, k) B(n, k)^T. */
#ifndef RDNA_MATH_GEMM_SCALED_ARGS_H
#define RDNA_MATH_GEMM_SCALED_ARGS_H

#include "math/gemm/gemm_kernels.h"

struct gemm_scaled_args {
  /* Rows of A and B are contiguous and lie, as do their matrices, at multiples of 16 bytes; k is even. Of the flags,
   * those of the bias and of what follows count; no parts. */
  struct gemm_args of;
  const float *scale_a, *scale_b; /* not for a C of i32 */
  int32_t each_a, each_b;         /* 1: a scale for each row of A (column of C); 0: one for all */
};

#define RDNA_GEMM_SCALED_(X, product, maker)                                                         \
  X(product##_large, struct gemm_scaled_args, GEMM_MMA_THREADS, maker, GEMM_PIPE_BYTES(128, 128, 3)) \
  X(product##_small, struct gemm_scaled_args, GEMM_MMA_THREADS, maker, GEMM_PIPE_BYTES(64, 64, 4))

#endif
