/* Products of signed bytes with exact sums: the list of kernels.
 *
 * C(m, n) = A(m, k) B(n, k)^T modulo 2^32 into i32, or in floats what gemm_scaled_args.h says. Kernels are named
 * gemm_i8_<C>_<tile>. */
#ifndef RDNA_MATH_GEMM_I8_KERNELS_H
#define RDNA_MATH_GEMM_I8_KERNELS_H

#include "math/gemm/gemm_scaled_args.h"

#define RDNA_GEMM_I8_KERNELS(X)                         \
  RDNA_GEMM_SCALED_(X, gemm_i8_i32, rdna__gemm_i8_case) \
  RDNA_GEMM_SCALED_(X, gemm_i8_f32, rdna__gemm_i8_case) \
  RDNA_GEMM_SCALED_(X, gemm_i8_f16, rdna__gemm_i8_case) \
  RDNA_GEMM_SCALED_(X, gemm_i8_bf16, rdna__gemm_i8_case)

#endif
