/* Weights of 8-bit or 4-bit integers, as AWQ, GPTQ and torchao make them. 32 to 256 neighbouring values of a row are a
 * group here, a quantization group: they share a scale, perhaps a zero point, perhaps an offset.
 *
 *   value = scale * (code - zero) + offset          rounded once, as code - zero is exact
 *
 * i8: codes are int8; zero points are int8, or without any 0.
 * u4: codes are unsigned nibbles; zero points are a byte each, or without any 8. 32 codes take 16 bytes, as in q4_0:
 *
 *     byte           0          1         ...   15
 *     low nibble     value 0    value 1   ...   value 15
 *     high nibble    value 16   value 17  ...   value 31 */
#ifndef RDNA_MATH_QUANT_GROUP_KERNELS_H
#define RDNA_MATH_QUANT_GROUP_KERNELS_H

#include "math/quant/quant_kernels.h"

struct group_weights_args {
  const void *codes;   /* (n, k) or (n, k / 2) bytes; pointer and rows at multiples of 16 bytes */
  const void *scales;  /* (n, k / group) of |type| */
  const void *zeros;   /* (n, k / group) int8 or uint8 as the codes are, or NULL */
  const void *offsets; /* (n, k / group) of |type|, or NULL */
  int64_t n, k;        /* k a multiple of the quantization group */
  int64_t scale_row, scale_group, offset_row, offset_group; /* strides in values */
  int32_t shift;                                            /* log2 of the values in a quantization group: 5 to 8 */
  int32_t type;                                             /* of scales and offsets: RDNA_F32, RDNA_F16 or RDNA_BF16 */
};

/* A thread decodes 8 neighbouring values; grid x: ceil(n * k / QUANT_VALUES_PER_GROUP). */
struct dequantize_group_args {
  struct group_weights_args weights;
  void *out; /* (n, k), at a multiple of 32 bytes */
};

/* A thread makes one quantization group; grid x: ceil(n * k / size / QUANT_THREADS) for groups of |size| values.
 * With zeros: scale = (max(x, 0) - min(x, 0)) / 255 (i8) or 15 (u4), zero = the integer nearest to the code of 0.
 * Without: scale = max |x| / 127 (i8), or the value of the largest magnitude / -8 (u4), as in q4_0.
 * Scales are rounded to f16, their only type here, then codes to the nearest for the scale as stored. There are no
 * offsets, and scales are contiguous. */
struct quantize_group_args {
  struct group_weights_args weights;
  const float *x; /* (n, k), at a multiple of 16 bytes */
};

/* A product as in quant_kernels.h: A and C in f32, B transposed, no batch. product.b is not used. */
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
