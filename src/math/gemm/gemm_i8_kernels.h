/* Products of signed bytes with exact sums: argument struct and the list of kernels.
 *
 * C(m, n) = A(m, k) B(n, k)^T modulo 2^32 into i32, or in floats what gemm_kernels.h says of scale_a(m) scale_b(n)
 * times that. Kernels are named gemm_i8_<C>_<tile>. */
#ifndef RDNA_MATH_GEMM_I8_KERNELS_H
#define RDNA_MATH_GEMM_I8_KERNELS_H

#include "math/gemm/gemm_kernels.h"

struct gemm_i8_args {
  /* Rows of A and B are contiguous and lie, as do their matrices, at multiples of 16 bytes; k is even. Of the flags,
   * those of the bias and of what follows count; no parts. */
  struct gemm_args of;
  const float *scale_a, *scale_b; /* not for i32 */
  int32_t each_a, each_b;         /* 1: a scale for each row of A (column of C); 0: one for all */
};

#define RDNA_GEMM_I8_OF_(X, C)                                                                                    \
  X(gemm_i8_##C##_large, struct gemm_i8_args, GEMM_MMA_THREADS, rdna__gemm_i8_case, GEMM_PIPE_BYTES(128, 128, 3)) \
  X(gemm_i8_##C##_small, struct gemm_i8_args, GEMM_MMA_THREADS, rdna__gemm_i8_case, GEMM_PIPE_BYTES(64, 64, 4))
#define RDNA_GEMM_I8_KERNELS(X) \
  RDNA_GEMM_I8_OF_(X, i32)      \
  RDNA_GEMM_I8_OF_(X, f32)      \
  RDNA_GEMM_I8_OF_(X, f16)      \
  RDNA_GEMM_I8_OF_(X, bf16)

#endif
