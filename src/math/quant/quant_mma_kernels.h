/* Products of up to some dozen rows of f16 with weights in blocks, on matrix units: what steps of many sequences need.
 *
 *   gemm_f16_<format>_<f32|f16>_rows<M>   struct gemm_args with B transposed and in blocks, no batch, rows of A at
 *                                         multiples of 16 bytes and less than 2^23 values apart; tiles of M rows and
 *                                         QUANT_MMA_COLUMNS(M) columns of C, grid (tiles, 1, 1)
 *
 * Weights are rounded to f16, sums are in f32, in an order that depends on k and the GPU alone: a row's values have the
 * same bits however many other rows there are. */
#ifndef RDNA_MATH_QUANT_MMA_KERNELS_H
#define RDNA_MATH_QUANT_MMA_KERNELS_H

#include "math/quant/quant_kernels.h"

#define QUANT_MMA_THREADS 256
#define QUANT_MMA_COLUMNS(rows) ((rows) > 16 ? 32 : 16)
#define QUANT_MMA_MOST_ROWS 64

#define RDNA_QUANT_MMA_ROWS_(X, F, C)                                                       \
  X(gemm_f16_##F##_##C##_rows16, struct gemm_args, QUANT_MMA_THREADS, rdna__quant_mma_case) \
  X(gemm_f16_##F##_##C##_rows32, struct gemm_args, QUANT_MMA_THREADS, rdna__quant_mma_case) \
  X(gemm_f16_##F##_##C##_rows64, struct gemm_args, QUANT_MMA_THREADS, rdna__quant_mma_case)
#define RDNA_QUANT_MMA_OF_(X, F, ...) RDNA_QUANT_MMA_ROWS_(X, F, f32) RDNA_QUANT_MMA_ROWS_(X, F, f16)
#define RDNA_QUANT_MMA_KERNELS(X) RDNA_BLOCK_FORMATS(RDNA_QUANT_MMA_OF_, X)

#endif
