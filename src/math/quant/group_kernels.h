/* Weights of 8-bit or 4-bit integers with a scale, and perhaps a zero point, for each group of neighbours of a row:
 * what AWQ and GPTQ make.
 *
 *   value = scale * (code - zero)          rounded once, code - zero being exact
 *
 * i8: int8 codes, zero points int8, or 0. u4: unsigned nibbles, zero points in a byte each, or 8; in each 16 bytes, 32
 * values, byte i has value i in its low nibble and value i + 16 in its high one, as in q4_0. */
#ifndef RDNA_MATH_QUANT_GROUP_KERNELS_H
#define RDNA_MATH_QUANT_GROUP_KERNELS_H

#include "math/quant/quant_kernels.h"

struct group_weights_args {
  const void *codes;      /* (n, k) or (n, k / 2) bytes, a multiple of 16 bytes, as are its rows */
  const uint16_t *scales; /* (n, k / group) f16 */
  const void *zeros;      /* (n, k / group) bytes of the codes' sign, or NULL */
  int64_t n, k;           /* k a multiple of the group */
  int32_t shift;          /* log2 of the group: 5 to 8 */
};

/* Threads take 8 values; grid x: ceil(n * k / QUANT_VALUES_PER_GROUP). */
struct dequantize_group_args {
  struct group_weights_args weights;
  void *out; /* (n, k), a multiple of 32 bytes */
};

/* A thread makes a group; grid x: ceil(n * k / group / QUANT_THREADS). With zeros: scale = (max(x, 0) - min(x, 0)) /
 * 255 or 15, zero = the code of 0 to nearest; without: max |x| / 127, or the value of the largest magnitude / -8, as
 * in q4_0. Scales are rounded to f16, codes are the nearest for the scale as stored. */
struct quantize_group_args {
  struct group_weights_args weights;
  const float *x; /* (n, k), a multiple of 16 bytes */
};

/* As of gemm_f32_<format>_f32_<tile> and gemv: A and C in f32, B transposed, its pointer not used; no batch. */
struct group_gemm_args {
  struct gemm_args product;
  struct group_weights_args weights;
};

#define RDNA_QUANT_GROUP_OF_(X, F)                                                                    \
  X(dequantize_group_##F##_f32, struct dequantize_group_args, QUANT_THREADS, rdna__quant_group_case)  \
  X(dequantize_group_##F##_f16, struct dequantize_group_args, QUANT_THREADS, rdna__quant_group_case)  \
  X(dequantize_group_##F##_bf16, struct dequantize_group_args, QUANT_THREADS, rdna__quant_group_case) \
  X(quantize_group_f32_##F, struct quantize_group_args, QUANT_THREADS, rdna__quant_group_case)        \
  X(gemm_group_##F##_large, struct group_gemm_args, GEMM_LARGE_THREADS, rdna__quant_group_case)       \
  X(gemm_group_##F##_small, struct group_gemm_args, GEMM_SMALL_THREADS, rdna__quant_group_case)       \
  X(gemv_group_##F##_m1, struct group_gemm_args, QUANT_GEMV_THREADS, rdna__quant_group_case)          \
  X(gemv_group_##F##_m4, struct group_gemm_args, QUANT_GEMV_THREADS, rdna__quant_group_case)          \
  X(gemv_group_##F##_m8, struct group_gemm_args, QUANT_GEMV_THREADS, rdna__quant_group_case)
#define RDNA_QUANT_GROUP_KERNELS(X) RDNA_QUANT_GROUP_OF_(X, i8) RDNA_QUANT_GROUP_OF_(X, u4)

#endif
