/* Softmax along a dimension. */
#ifndef RDNA_OP_SOFTMAX_H
#define RDNA_OP_SOFTMAX_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = softmax(scale * x) along |dim|, which counts from the end when it is negative. In f32, f16 or bf16, computed in
 * f32, of any length; along the last dimension rows are contiguous, with one stride between them; along another the
 * tensors are contiguous. f64 too, computed in it, of any strides, in several passes. Values along |dim| that hold a
 * NaN or, once scaled, +inf, or nothing but -inf, give NaN. |out| has |x|'s shape and type and may be |x|, or must not
 * overlap it. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, partial overlap, rows of |out| that
 * overlap. RDNA_UNSUPPORTED: another type, or other strides. */
RDNA_CHECKED rdna_status rdna_op_softmax(rdna_stream *stream, const rdna_tensor *x, int dim, float scale,
                                         const rdna_tensor *out);
/* The logarithm of the above, without its loss of small probabilities. */
RDNA_CHECKED rdna_status rdna_op_log_softmax(rdna_stream *stream, const rdna_tensor *x, int dim, float scale,
                                             const rdna_tensor *out);
/* Gradients, from |out| as the forward gave it, of the same types and layouts. |dx| has |dout|'s shape and type, and
 * may be |dout| or |out|. */
RDNA_CHECKED rdna_status rdna_op_softmax_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *out,
                                                  int dim, float scale, const rdna_tensor *dx);
RDNA_CHECKED rdna_status rdna_op_log_softmax_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                      const rdna_tensor *out, int dim, float scale,
                                                      const rdna_tensor *dx);

#ifdef __cplusplus
}
#endif
#endif
