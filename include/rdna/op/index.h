/* Rows of a table by their numbers. */
#ifndef RDNA_OP_INDEX_H
#define RDNA_OP_INDEX_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out(t, :) = table(ids(t), :), as an embedding lookup. |table| is (rows, cols) of f32, f16, bf16, Q8_0, Q4_0, Q4_K or
 * Q6_K, values dense along cols; |ids| is (tokens) i32, contiguous; |out| is (tokens, cols) f32, values dense along
 * cols, apart from |table|. An id outside [0, rows) reads nothing and makes its row NaN: ids are on the device, where
 * a call cannot look at them before it returns. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data.
 * RDNA_UNSUPPORTED: another type, or gaps. */
RDNA_CHECKED rdna_status rdna_op_gather_rows(rdna_stream *stream, const rdna_tensor *table, const rdna_tensor *ids,
                                             const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
