/* A layer of weights applied to activations. */
#ifndef RDNA_OP_LINEAR_H
#define RDNA_OP_LINEAR_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out (m, n) = x (m, k) weight (n, k)^T + bias (n). Leading dimensions of |x| and |out| fold into m; their rows are
 * contiguous, with one stride between them. |weight| is f32, f16, bf16 or a type of blocks with contiguous rows,
 * quantized ones without gaps between them and aligned as rdna/op/quant.h says. |x| is f32, f16 or bf16; |out| is f32
 * or, where that is f16 or bf16, of |x|'s type. |bias| has the type of |out| and is contiguous, or is NULL. Sums are in
 * f32. For few rows of |x| the weights are streamed from memory once; for many, tiles of them are shared among the
 * rows. |out| overlaps no input. m or n 0 is RDNA_OK; k 0 gives the bias.
 *
 *     x            | weight         | rows of x | products
 *     f32          | any            | any       | of the values as they are, in f32
 *     f16 or bf16  | of that type   | any       | of the values as they are, on matrix units
 *     f16 or bf16  | blocks         | over 8    | of weights rounded to x's type, on matrix units
 *     f16 or bf16  | blocks         | up to 8   | of the values as they are, in f32
 *     f16 or bf16  | another float  | any       | of the values as they are, in f32
 *
 * In the last three cases memory comes from the device's pool for the time of the call: up to 64 MiB of unpacked
 * weights, or f32 copies of x and of an out that is not f32.
 *
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, a k that is no whole number of the weight's blocks, missing
 * data, overlap. RDNA_UNSUPPORTED: another type, layout or alignment. */
RDNA_CHECKED rdna_status rdna_op_linear(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                        const rdna_tensor *bias, const rdna_tensor *out);
/* The same added to what |out| holds, as a residual connection does. */
RDNA_CHECKED rdna_status rdna_op_linear_add(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                            const rdna_tensor *bias, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
