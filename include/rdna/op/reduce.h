/* Reductions along the last dimension. */
#ifndef RDNA_OP_REDUCE_H
#define RDNA_OP_REDUCE_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |x| is (…, cols): its values lie densely along cols and rows lie evenly. |out| is contiguous, of |x|'s shape without
 * the last dimension, and apart from |x|. The result does not depend on timing, only on shape and device.
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, overlap, or cols 0 where there is no answer.
 * RDNA_UNSUPPORTED: another type, or uneven rows. */

/* Index of the largest value of each row, from 0; the first of equals; a NaN counts as the largest. |x| f32 with at
 * most 2^31-1 columns, |out| i32. */
RDNA_CHECKED rdna_status rdna_op_argmax_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

/* |x| f32, f16 or bf16, |out| f32. Added in f32. The sum of no columns is 0, their mean NaN, and their largest an
 * error. The largest value is NaN when the row has one. */
RDNA_CHECKED rdna_status rdna_op_sum_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_mean_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_max_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
