/* Softmax along the last dimension. */
#ifndef RDNA_OP_SOFTMAX_H
#define RDNA_OP_SOFTMAX_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = softmax(scale * x) of each row, in f32, f16 or bf16; computed in f32. Rows of any length; their values lie
 * densely and rows lie evenly. A row that holds a NaN or an infinity of the scaled sign +, or nothing but -inf, gives
 * NaN. |out| has |x|'s shape and type and may be |x|, or must be apart from it. RDNA_INVALID_ARGUMENT: shapes or types
 * that disagree, missing data, partial overlap, rows of |out| in each other. RDNA_UNSUPPORTED: another type, or uneven
 * rows. */
RDNA_CHECKED rdna_status rdna_op_softmax(rdna_stream *stream, const rdna_tensor *x, float scale,
                                         const rdna_tensor *out);
/* The logarithm of the above, without its loss of small probabilities. */
RDNA_CHECKED rdna_status rdna_op_log_softmax(rdna_stream *stream, const rdna_tensor *x, float scale,
                                             const rdna_tensor *out);

/* The same along |dim|, which counts from the end when it is negative. Along any but the last, tensors are
 * contiguous: RDNA_UNSUPPORTED otherwise. f64 too, computed in it, of any strides, in several passes; so are its
 * gradients. */
RDNA_CHECKED rdna_status rdna_op_softmax_along(rdna_stream *stream, const rdna_tensor *x, int dim, float scale,
                                               const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_log_softmax_along(rdna_stream *stream, const rdna_tensor *x, int dim, float scale,
                                                   const rdna_tensor *out);
/* Gradients, from |out| as the forward gave it. |dx| has |dout|'s shape and type, and may be |dout| or |out|. */
RDNA_CHECKED rdna_status rdna_op_softmax_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *out,
                                                  int dim, float scale, const rdna_tensor *dx);
RDNA_CHECKED rdna_status rdna_op_log_softmax_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                      const rdna_tensor *out, int dim, float scale,
                                                      const rdna_tensor *dx);

#ifdef __cplusplus
}
#endif
#endif
