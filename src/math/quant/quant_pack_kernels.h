/* Making blocks of f32 values, see quant_pack.h: a thread has a sub-block of 16 or 32 values. */
#ifndef RDNA_MATH_QUANT_PACK_KERNELS_H
#define RDNA_MATH_QUANT_PACK_KERNELS_H

#include "math/quant/quant_kernels.h"

/* Values of a work-group, where sub-blocks have |part_values|; grid x: ceil(count / that). */
#define QUANT_PACK_VALUES(part_values) (QUANT_THREADS * (part_values))

#define RDNA_QUANT_PACK_OF_(X, F, NAME, ggml, values, bytes, quantize, ...) \
  RDNA_BLOCK_IF_##quantize##_(X(quantize_f32_##F, struct quantize_args, QUANT_THREADS, rdna__quant_pack_case))
#define RDNA_QUANT_PACK_KERNELS(X) RDNA_BLOCK_FORMATS(RDNA_QUANT_PACK_OF_, X)

#endif
