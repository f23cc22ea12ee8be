/* Making blocks out of f32, see quant_pack.h: a thread for each sub-block. */
#ifndef RDNA_MATH_QUANT_PACK_KERNELS_H
#define RDNA_MATH_QUANT_PACK_KERNELS_H

#include "math/quant/quant_kernels.h"

/* Values of a work-group; grid x: ceil(count / that). Sub-blocks have 16 values, or 32. */
#define QUANT_PACK_VALUES(part_values) (QUANT_THREADS * (part_values))

#define RDNA_QUANT_PACK_KERNELS(X)                                                 \
  X(quantize_f32_q4_0, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q4_1, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q5_0, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q5_1, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q2_K, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q3_K, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q4_K, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q5_K, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case) \
  X(quantize_f32_q6_K, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case)

#endif
