/* Products with experts on matrix units: moe_mma_<x>_<weights> is moe_gemm_<weights> (moe_kernels.h) for an x of 16
 * bits, weights of the same type, or in blocks, which are rounded to x's type. c and biases stay f32. */
#ifndef RDNA_MATH_MOE_MMA_KERNELS_H
#define RDNA_MATH_MOE_MMA_KERNELS_H

#include "math/moe/moe_kernels.h"

#define RDNA_MOE_MMA_OF_(X, F, ...) \
  X(moe_mma_f16_##F, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case)
#define RDNA_MOE_MMA_KERNELS(X)                                                           \
  X(moe_mma_f16_f16, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case)   \
  X(moe_mma_bf16_bf16, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case) \
  RDNA_BLOCK_FORMATS(RDNA_MOE_MMA_OF_, X)

#endif
