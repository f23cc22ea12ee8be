/* Products with experts that have few rows each: moe_few_<blocks> is moe_gemm_<blocks> (moe_kernels.h) for an x of f16,
 * rows of it at multiples of 16 bytes, of which the last begins below 2^32 bytes, and tiles of MOE_FEW_ROWS rows; grid
 * x: most_tiles * ceil(n / MOE_FEW_COLUMNS). Weights are rounded to f16, sums are in f32, in an order that depends on k
 * and the GPU alone. */
#ifndef RDNA_MATH_MOE_FEW_KERNELS_H
#define RDNA_MATH_MOE_FEW_KERNELS_H

#include "math/moe/moe_kernels.h"
#include "math/quant/quant_mma_kernels.h"

#define MOE_FEW_ROWS 16
#define MOE_FEW_COLUMNS 32

#define RDNA_MOE_FEW_OF_(X, F, ...) X(moe_few_##F, struct moe_product_args, QUANT_MMA_THREADS, rdna__moe_product_case)
#define RDNA_MOE_FEW_KERNELS(X) RDNA_BLOCK_FORMATS(RDNA_MOE_FEW_OF_, X)

#endif
