/* Normalization of each row: the last dimension of a tensor of any rank.
 *
 * Types are f32, f16 and bf16; sums are in f32. A row is contiguous, with one stride, of any size, between rows.
 * |weight| and |bias| are one contiguous row (cols) of |x|'s type or of f32, both of the same; NULL means ones and
 * zeros. |out| may be |x|, or must overlap no input. Empty tensors are RDNA_OK. RDNA_INVALID_ARGUMENT: shapes
 * or types that disagree, missing data, partial overlap, an epsilon that is negative or not finite in f32.
 * RDNA_UNSUPPORTED: another type or layout. */
#ifndef RDNA_OP_NORM_H
#define RDNA_OP_NORM_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019). |x| and |weight| of f32 may have an |out| of f16
 * or bf16, which overlaps neither. */
RDNA_CHECKED rdna_status rdna_op_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                          double epsilon, const rdna_tensor *out);
/* residual = residual + x, rounded to its type, then out = rms_norm(residual), in one pass. |residual| has |x|'s
 * shape and type, is written, and overlaps neither |x| nor |out|. |out| may be |x|. With |residual| and |weight| of f32
 * |out| may be f16 or bf16, and |x| then is f32 or of |out|'s type. */
RDNA_CHECKED rdna_status rdna_op_add_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *residual,
                                              const rdna_tensor *weight, double epsilon, const rdna_tensor *out);
/* (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias, with the variance over cols (Ba et al., 2016).
 * |mean| and |inverse|, (rows) of f32, receive mean(x) and 1 / sqrt(variance(x) + epsilon), which the gradient takes;
 * each may be NULL. They overlap nothing else; of rows without values they are not written. */
RDNA_CHECKED rdna_status rdna_op_layer_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                            const rdna_tensor *bias, double epsilon, const rdna_tensor *out,
                                            const rdna_tensor *mean, const rdna_tensor *inverse);

/* Gradients. |dout| and |dx| have |x|'s shape and type; |weight| is what the forward took. |dx| may be |dout| or |x|.
 * |dweight| and |dbias| are (cols), of |x|'s type or f32, or NULL when they are not wanted; no written tensor
 * overlaps another. Sums over rows have a fixed order. Partial sums are taken from the device's memory pool for
 * the time of the call: at most 2 * 512 rows of f32. */
RDNA_CHECKED rdna_status rdna_op_rms_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                                   const rdna_tensor *weight, double epsilon, const rdna_tensor *dx,
                                                   const rdna_tensor *dweight);
/* |mean| and |inverse|, (rows) of f32, are what the forward found: mean(x) and 1 / sqrt(variance(x) + epsilon). Both
 * may be NULL: then they are found again, which is what |epsilon| is for. */
RDNA_CHECKED rdna_status rdna_op_layer_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                                     const rdna_tensor *weight, double epsilon, const rdna_tensor *mean,
                                                     const rdna_tensor *inverse, const rdna_tensor *dx,
                                                     const rdna_tensor *dweight, const rdna_tensor *dbias);

#ifdef __cplusplus
}
#endif
#endif
