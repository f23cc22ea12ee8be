/* Block-quantized weights: their layouts, argument structs and the list of kernels. The layouts are those of GGUF
 * files (ggml's block_q8_0 and so on), little-endian, with no padding. d, m and dmin are f16; "nibbles of 32" are 16
 * bytes whose low nibbles are values 0 to 15 and whose high nibbles values 16 to 31; l is a value's place among 32.
 *
 *   32 values
 *   q8_0    34 bytes: d, 32 int8 q.                                                       value = d q
 *   q4_0    18 bytes: d, nibbles of 32.                                                   value = d (q - 8)
 *   q4_1    20 bytes: d, m, nibbles of 32.                                                value = d q + m
 *   q5_0    22 bytes: d, 32 bits, bit i the fifth of value i, nibbles of 32.              value = d (q - 16)
 *   q5_1    24 bytes: d, m, 32 bits, nibbles of 32.                                       value = d q + m
 *   iq4_nl  18 bytes: d, nibbles of 32, which number 16 values of a table t.              value = d t[q]
 *   mxfp4   17 bytes: a byte e, nibbles of 32, of e2m1: sign, 2 bits of exponent, 1 of fraction (OCP Microscaling
 *           Formats 1.0). e 255, a NaN there, counts as 2^128 here as in GGUF.            value = 2^(e - 127) q
 *
 *   256 values
 *   q2_K    84 bytes: 16 bytes of a 4-bit scale s with a 4-bit minimum m above it, one for 16 values; 64 bytes of
 *           pairs; d, dmin. Each half of 128 values has 32 bytes, value l + 32 r at bit 2 r of byte l.
 *                                                                                         value = d s q - dmin m
 *   q3_K    110 bytes: 32 bytes of third bits, value l + 32 r at bit r of byte l; 64 bytes of pairs as in q2_K; 12
 *           bytes of 16 6-bit scales s: low nibbles first of scales 0 to 7, then 8 to 15 in bytes 0 to 7, the top
 *           pair of scale i at bit 2 (i / 4) of byte 8 + i % 4; d.                        value = d (s - 32) (q - 4)
 *   q4_K    144 bytes: d, dmin, 12 bytes of scales, 128 bytes of nibbles. Each run of 64 values has 32 bytes, low
 *           nibbles first. Sub-block j of 32 values has a 6-bit scale s and minimum m: the low 6 bits of bytes j and
 *           j + 4 for j < 4; for the others nibbles of byte j + 4 under the top bits of bytes j - 4 and j.
 *                                                                                         value = d s q - dmin m
 *   q5_K    176 bytes: d, dmin and scales as in q4_K, 32 bytes of fifth bits, value l + 32 r at bit r of byte l; 128
 *           bytes of nibbles as in q4_K.                                                  value = d s q - dmin m
 *   q6_K    210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 int8 scales s, d. Within a half of 128
 *           values, value l + 32 r has its nibble in byte l + 32 (r % 2), low for r < 2, and its pair in byte l at bit
 *           2 r; each 16 values share a scale.                                            value = d s (q - 32)
 *   iq4_xs  136 bytes: d, 8 high pairs and 8 low nibbles of 6-bit scales s of 32 values, nibbles of 32, eight times.
 *                                                                                         value = d (s - 32) t[q]
 *
 * The order of roundings is part of the format here: (d s) q - (dmin m) and (d s) (q - 32), no fused operations. */
#ifndef RDNA_MATH_QUANT_KERNELS_H
#define RDNA_MATH_QUANT_KERNELS_H

#include <stdint.h>

#include "math/gemm/gemm_kernels.h"

struct dequantize_args {
  const void *blocks; /* aligned as quant_alignment says */
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

/* Rows of B that 32 lanes of a gemv make at once, and a work-group. */
#define QUANT_GEMV_THREADS 256
#define QUANT_GEMV_ROWS 2
#define QUANT_GEMV_GROUP_ROWS (QUANT_GEMV_THREADS / 32 * QUANT_GEMV_ROWS)
/* On GPUs of compute capability 9.0 the m1 of some formats asks for shared memory, of which two groups find room: those
 * that quant_gemv_mma.h was faster for on an H200, q8_0, q4_0 and q4_K with weights that are in no cache, q6_K, q5_K
 * and q3_K with one matrix again and again. */
#define QUANT_GEMV_SHARED (112 * 1024)
#define QUANT_GEMV_SHARED_q8_0 QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_q4_0 QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_q4_K QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_q6_K QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_q4_1 0
#define QUANT_GEMV_SHARED_q5_0 0
#define QUANT_GEMV_SHARED_q5_1 0
#define QUANT_GEMV_SHARED_q2_K 0
#define QUANT_GEMV_SHARED_q3_K QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_q5_K QUANT_GEMV_SHARED
#define QUANT_GEMV_SHARED_iq4_nl 0
#define QUANT_GEMV_SHARED_iq4_xs 0
#define QUANT_GEMV_SHARED_mxfp4 0
/* Products with a transposed quantized B use struct gemm_args with A and C in f32, k a multiple of the block, and
 * ldb in values. gemm_f32_<format>_f32_<tile> takes any m; gemv_f32_<format>_f32_m<M> takes m <= M, an A whose rows
 * are multiples of 16 bytes, and no batch; grid x: ceil(n / QUANT_GEMV_GROUP_ROWS), or fewer groups, which take
 * turns. B is aligned as quant_alignment says. */
#define RDNA_QUANT_DEQUANTIZE_OF_(X, F)                                                 \
  X(dequantize_##F##_f32, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case) \
  X(dequantize_##F##_f16, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case) \
  X(dequantize_##F##_bf16, struct dequantize_args, QUANT_THREADS, rdna__dequantize_case)
#define RDNA_QUANT_GEMM_OF_(X, F)                                                          \
  X(gemm_f32_##F##_f32_large, struct gemm_args, GEMM_LARGE_THREADS, rdna__quant_gemm_case) \
  X(gemm_f32_##F##_f32_small, struct gemm_args, GEMM_SMALL_THREADS, rdna__quant_gemm_case)
#define RDNA_QUANT_GEMV_OF_(X, F)                                                                                 \
  X(gemv_f32_##F##_f32_m1, struct gemm_args, QUANT_GEMV_THREADS, rdna__quant_gemv_case, 0, QUANT_GEMV_SHARED_##F) \
  X(gemv_f32_##F##_f32_m4, struct gemm_args, QUANT_GEMV_THREADS, rdna__quant_gemv_case)                           \
  X(gemv_f32_##F##_f32_m8, struct gemm_args, QUANT_GEMV_THREADS, rdna__quant_gemv_case)

#define RDNA_QUANT_EACH_(X, OF) \
  OF(X, q8_0)                   \
  OF(X, q4_0)                   \
  OF(X, q4_K)                   \
  OF(X, q6_K)                   \
  OF(X, q4_1)                   \
  OF(X, q5_0)                   \
  OF(X, q5_1)                   \
  OF(X, q2_K)                   \
  OF(X, q3_K)                   \
  OF(X, q5_K)                   \
  OF(X, iq4_nl)                 \
  OF(X, iq4_xs)                 \
  OF(X, mxfp4)

#define RDNA_QUANT_KERNELS(X)                    \
  RDNA_QUANT_EACH_(X, RDNA_QUANT_DEQUANTIZE_OF_) \
  X(quantize_f32_q8_0, struct quantize_args, QUANT_THREADS, rdna__quantize_case)
#define RDNA_QUANT_GEMM_KERNELS(X) RDNA_QUANT_EACH_(X, RDNA_QUANT_GEMM_OF_)
#define RDNA_QUANT_GEMV_KERNELS(X) RDNA_QUANT_EACH_(X, RDNA_QUANT_GEMV_OF_)

#endif
