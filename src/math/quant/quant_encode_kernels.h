/* Making blocks whose codes number entries of a grid, see quant_encode.h: 32 threads have a block. */
#ifndef RDNA_MATH_QUANT_ENCODE_KERNELS_H
#define RDNA_MATH_QUANT_ENCODE_KERNELS_H

#include "math/quant/quant_kernels.h"

/* Grid x: ceil(blocks / QUANT_ENCODE_BLOCKS). */
#define QUANT_ENCODE_THREADS 64
#define QUANT_ENCODE_BLOCKS (QUANT_ENCODE_THREADS / 32)

/* F(name, dtype) for each format that is made here. */
#define RDNA_QUANT_ENCODED_(F, name, NAME, ggml, values, bytes, quantize, ...) \
  RDNA_BLOCK_GRID_IF_##quantize##_(F(name, NAME))
#define RDNA_QUANT_ENCODED(F) RDNA_BLOCK_FORMATS(RDNA_QUANT_ENCODED_, F)

#define RDNA_QUANT_ENCODE_OF_(X, F, NAME, ggml, values, bytes, quantize, ...) \
  RDNA_BLOCK_GRID_IF_##quantize##_(                                           \
      X(quantize_f32_##F, struct quantize_args, QUANT_ENCODE_THREADS, rdna__quant_encode_case))
#define RDNA_QUANT_ENCODE_KERNELS(X) RDNA_BLOCK_FORMATS(RDNA_QUANT_ENCODE_OF_, X)

#endif
