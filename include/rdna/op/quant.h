/* Into and out of block-quantized types. */
#ifndef RDNA_OP_QUANT_H
#define RDNA_OP_QUANT_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |out|, f32 or f16, = the values of |blocks|, which is Q8_0, Q4_0, Q4_K or Q6_K. The same shape, both contiguous and
 * apart; the last size is a whole number of blocks. The data of |blocks| lies at a multiple of 16 bytes for Q4_K and
 * of 2 bytes for the others, that of |out| at a multiple of 32 bytes. Empty is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes
 * that disagree, broken blocks, missing data, overlap. RDNA_UNSUPPORTED: another type, layout or alignment. */
RDNA_CHECKED rdna_status rdna_op_dequantize(rdna_stream *stream, const rdna_tensor *blocks, const rdna_tensor *out);

/* |blocks|, Q8_0, = |x|, f32, rounded: in each block of 32 the scale is max |x| / 127 and a value is the nearest
 * multiple of it, halves away from zero. Shapes and failures as above; |x| lies at a multiple of 16 bytes. */
RDNA_CHECKED rdna_status rdna_op_quantize(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *blocks);

#ifdef __cplusplus
}
#endif
#endif
