/* Block-quantized weights: their layouts, argument structs and the list of kernels. The layouts are those of GGUF
 * files (ggml's block_q8_0, block_q4_0, block_q4_K, block_q6_K), little-endian, with no padding:
 *
 *   q8_0  32 values in 34 bytes: f16 d, 32 int8 q.                                        value = d q
 *   q4_0  32 values in 18 bytes: f16 d, 16 bytes; value i < 16 is the low nibble of byte i, value i + 16 the high
 *         nibble.                                                                         value = d (q - 8)
 *   q4_K  256 values in 144 bytes: f16 d, f16 dmin, 12 bytes of scales, 128 bytes of nibbles. Each run of 64 values
 *         has 32 bytes, low nibbles first. Sub-block j of 32 values has a 6-bit scale s and minimum m: the low 6
 *         bits of bytes j and j + 4 for j < 4; for the others nibbles of byte j + 4 under the top bits of bytes
 *         j - 4 and j.                                                                    value = d s q - dmin m
 *   q6_K  256 values in 210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 int8 scales s, f16 d.
 *         Within a half of 128 values, value i + 32 r has its nibble in byte i + 32 (r % 2), low for r < 2, and its
 *         pair in byte i at bit 2 r; each 16 values share a scale.                        value = d s (q - 32)
 *
 * The order of roundings is part of the format here: (d s) q - (dmin m) and (d s) (q - 32), no fused operations. */
#ifndef RDNA_MATH_QUANT_KERNELS_H
#define RDNA_MATH_QUANT_KERNELS_H

#include <stdint.h>

#include "math/gemm/gemm_kernels.h"

struct dequantize_args {
  const void *blocks; /* a multiple of 16 bytes for q4_K, of 2 bytes for the others */
  void *out;          /* (count), a multiple of 32 bytes */
  int64_t count;      /* values, a multiple of the block's */
};
/* A thread handles 8 values; grid x: ceil(count / QUANT_VALUES_PER_GROUP). */
#define QUANT_THREADS 256
#define QUANT_VALUES_PER_GROUP 2048

struct quantize_args {
  const float *x; /* (count), a multiple of 16 bytes */
  void *blocks;
  int64_t count; /* a multiple of 32 */
};
/* d = max |x| / 127 rounded to f16, q = x * (1 / (max |x| / 127)) rounded to nearest, halves away from zero; a block
 * of zeros has d = 0. 8 threads share a block; grid x: ceil(count / 32 / QUANTIZE_BLOCKS_PER_GROUP). */
#define QUANTIZE_BLOCKS_PER_GROUP 32

/* Products with a transposed quantized B use struct gemm_args with A and C in f32, k a multiple of the block, and
 * ldb in values. gemm_f32_<format>_f32_<tile> takes any m; gemv_f32_<format>_f32_m<M> takes m <= M, an A whose rows
 * are multiples of 16 bytes, and no batch. q4_K needs B to be a multiple of 16 bytes, the others of 2. */
#define RDNA_QUANT_FORMATS(F) F(q8_0) F(q4_0) F(q4_K) F(q6_K)

#define RDNA_QUANT_KERNELS_OF_(X, F)                                                       \
  X(dequantize_##F##_f32, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case)    \
  X(dequantize_##F##_f16, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case)    \
  X(gemm_f32_##F##_f32_large, struct gemm_args, GEMM_LARGE_THREADS, rdna__quant_gemm_case) \
  X(gemm_f32_##F##_f32_small, struct gemm_args, GEMM_SMALL_THREADS, rdna__quant_gemm_case) \
  X(gemv_f32_##F##_f32_m1, struct gemm_args, GEMV_THREADS, rdna__quant_gemv_case)          \
  X(gemv_f32_##F##_f32_m4, struct gemm_args, GEMV_THREADS, rdna__quant_gemv_case)          \
  X(gemv_f32_##F##_f32_m8, struct gemm_args, GEMV_THREADS, rdna__quant_gemv_case)

#define RDNA_QUANT_KERNELS(X)     \
  RDNA_QUANT_KERNELS_OF_(X, q8_0) \
  RDNA_QUANT_KERNELS_OF_(X, q4_0) \
  RDNA_QUANT_KERNELS_OF_(X, q4_K) \
  RDNA_QUANT_KERNELS_OF_(X, q6_K) \
  X(quantize_f32_q8_0, struct quantize_args, QUANT_THREADS, rdna__quantize_case)

#endif
