/* Block-quantized weights: argument structs and the list of kernels. The formats are in base/block_formats.h. */
#ifndef RDNA_MATH_QUANT_KERNELS_H
#define RDNA_MATH_QUANT_KERNELS_H

#include <stdint.h>

#include "base/block_formats.h"
#include "math/gemm/gemv_kernels.h"

struct dequantize_args {
  const void *blocks; /* aligned as quant_alignment says */
  void *out;          /* (count), at a multiple of 32 bytes */
  int64_t count;      /* values, a multiple of the block's */
};
/* A thread decodes 8 neighbouring values; grid x: ceil(count / QUANT_VALUES_PER_GROUP). */
#define QUANT_THREADS 256
#define QUANT_VALUES_PER_GROUP 2048

struct quantize_args {
  const float *x; /* (count), at a multiple of 16 bytes */
  void *blocks;
  int64_t count;        /* values, a multiple of the block's */
  const float *weights; /* (columns): what errors count; NULL: all the same, and quant_pack.h's formats do not search */
  int64_t columns;      /* a multiple of the block's, by which count is one of them */
};
/* quantize_f32_q8_0: d = max |x| / 127 rounded to f16, q = x * (1 / (max |x| / 127)) rounded to nearest, halves away
 * from zero; a block of zeros has d = 0. 8 threads share a block, 4 values each; grid x: ceil(count / 32 /
 * QUANTIZE_BLOCKS_PER_GROUP). */
#define QUANTIZE_BLOCKS_PER_GROUP 32

/* A gemv's work-group has QUANT_GEMV_THREADS / 32 sets of 32 lanes. A set multiplies QUANT_GEMV_ROWS rows of B at once,
 * so a work-group QUANT_GEMV_GROUP_ROWS. */
#define QUANT_GEMV_THREADS 256
#define QUANT_GEMV_ROWS 2
#define QUANT_GEMV_GROUP_ROWS (QUANT_GEMV_THREADS / 32 * QUANT_GEMV_ROWS)
/* Bytes of shared memory of kernel m1 on GPUs of compute capability 9.0, for the formats whose column |vector| is
 * TILED: two work-groups fit a multiprocessor. */
#define QUANT_GEMV_SHARED (112 * 1024)
#define QUANT_GEMV_SHARED_TILED_ QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_PLAIN_ 0
#define QUANT_GEMV_SHARED_OF_(X, F, NAME, ggml, values, bytes, quantize, vector, ...) \
  QUANT_GEMV_SHARED_##F = QUANT_GEMV_SHARED_##vector##_,
enum quant_gemv_shared { RDNA_BLOCK_FORMATS(QUANT_GEMV_SHARED_OF_, ) };
/* C (m, n) = A (m, k) B^T, with A and C in f32 and B (n, k) in blocks: struct gemm_args, with k a multiple of the
 * block, ldb in values, and B aligned as quant_alignment says.
 *
 *   gemm_f32_<format>_f32_<tile>   any m
 *   gemv_f32_<format>_f32_m<M>     m <= M, rows of A at multiples of 16 bytes, no batch; grid x: at most
 *                                  ceil(rows of B / QUANT_GEMV_GROUP_ROWS) work-groups; fewer take several turns.
 *                                  m1 takes struct gemv_args */
#define RDNA_QUANT_DEQUANTIZE_OF_(X, F, ...)                                            \
  X(dequantize_##F##_f32, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case) \
  X(dequantize_##F##_f16, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case) \
  X(dequantize_##F##_bf16, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case)
#define RDNA_QUANT_GEMM_OF_(X, F, ...)                                                     \
  X(gemm_f32_##F##_f32_large, struct gemm_args, GEMM_LARGE_THREADS, rdna__quant_gemm_case) \
  X(gemm_f32_##F##_f32_small, struct gemm_args, GEMM_SMALL_THREADS, rdna__quant_gemm_case)
#define RDNA_QUANT_GEMV_OF_(X, F, ...)                                                                            \
  X(gemv_f32_##F##_f32_m1, struct gemv_args, QUANT_GEMV_THREADS, rdna__quant_gemv_case, 0, QUANT_GEMV_SHARED_##F) \
  X(gemv_f32_##F##_f32_m4, struct gemm_args, QUANT_GEMV_THREADS, rdna__quant_gemv_case)                           \
  X(gemv_f32_##F##_f32_m8, struct gemm_args, QUANT_GEMV_THREADS, rdna__quant_gemv_case)

#define RDNA_QUANT_KERNELS(X)                      \
  RDNA_BLOCK_FORMATS(RDNA_QUANT_DEQUANTIZE_OF_, X) \
  X(quantize_f32_q8_0, struct quantize_args, QUANT_THREADS, rdna__quantize_case)
#define RDNA_QUANT_GEMM_KERNELS(X) RDNA_BLOCK_FORMATS(RDNA_QUANT_GEMM_OF_, X)
#define RDNA_QUANT_GEMV_KERNELS(X) RDNA_BLOCK_FORMATS(RDNA_QUANT_GEMV_OF_, X)

#endif
