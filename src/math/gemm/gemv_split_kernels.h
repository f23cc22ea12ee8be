/* Products of a matrix with a vector where a device has room for more waves than the matrix has rows: several waves
 * share rows, so that more bytes are in flight. */
#ifndef RDNA_MATH_GEMM_GEMV_SPLIT_KERNELS_H
#define RDNA_MATH_GEMM_GEMV_SPLIT_KERNELS_H

#include "math/gemm/gemv_kernels.h"

/* As gemv_f32_<B>_f32_m1, with steps; |shares| sets of 32 lanes, 1, 2, 4 or 8, have a part of k each. Grid x: ceil(rows
 * of B / GEMV_SPLIT_GROUP_ROWS(shares)). */
struct gemv_split_args {
  struct gemv_args of;
  int32_t shares;
};
#define GEMV_SPLIT_THREADS 256
#define GEMV_SPLIT_ROWS 4 /* of B for a set of lanes */
#define GEMV_SPLIT_GROUP_ROWS(shares) (GEMV_SPLIT_THREADS / 32 / (shares) * GEMV_SPLIT_ROWS)

#define RDNA_GEMV_SPLIT_KERNELS(X)                                                     \
  X(gemv_split_f32, struct gemv_split_args, GEMV_SPLIT_THREADS, rdna__gemv_split_case) \
  X(gemv_split_f16, struct gemv_split_args, GEMV_SPLIT_THREADS, rdna__gemv_split_case) \
  X(gemv_split_bf16, struct gemv_split_args, GEMV_SPLIT_THREADS, rdna__gemv_split_case)

#endif
