/* Products of 8-bit floats with sums in f32: the lists of kernels.
 *
 * C(m, n) is what gemm_scaled_args.h says. Kernels are named gemm_<A>_<B>_<C>_<tile>. Of two types with the same NaN
 * and bias all pairs but that of two E5M2, which nothing that trains or infers in 8 bits asks for. */
#ifndef RDNA_MATH_GEMM_F8_KERNELS_H
#define RDNA_MATH_GEMM_F8_KERNELS_H

#include "math/gemm/gemm_scaled_args.h"

#define RDNA_GEMM_F8_OF_(X, A, B)                                \
  RDNA_GEMM_SCALED_(X, gemm_##A##_##B##_f32, rdna__gemm_f8_case) \
  RDNA_GEMM_SCALED_(X, gemm_##A##_##B##_f16, rdna__gemm_f8_case) \
  RDNA_GEMM_SCALED_(X, gemm_##A##_##B##_bf16, rdna__gemm_f8_case)
#define RDNA_GEMM_F8_KERNELS(X)             \
  RDNA_GEMM_F8_OF_(X, f8_e4m3fn, f8_e4m3fn) \
  RDNA_GEMM_F8_OF_(X, f8_e4m3fn, f8_e5m2)   \
  RDNA_GEMM_F8_OF_(X, f8_e5m2, f8_e4m3fn)
#define RDNA_GEMM_F8_FNUZ_KERNELS(X)            \
  RDNA_GEMM_F8_OF_(X, f8_e4m3fnuz, f8_e4m3fnuz) \
  RDNA_GEMM_F8_OF_(X, f8_e4m3fnuz, f8_e5m2fnuz) \
  RDNA_GEMM_F8_OF_(X, f8_e5m2fnuz, f8_e4m3fnuz)

#endif
