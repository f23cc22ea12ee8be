/* Running sums, products and extremes along a dimension. */
#ifndef RDNA_OP_SCAN_H
#define RDNA_OP_SCAN_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out(…, i, …) is what x(…, 0, …) to x(…, i, …) come to along dimension |dim|, which counts from the end when it is
 * negative. |x| and |out| are contiguous, of one shape and one type of f32, f16, bf16, f64, i32 and i64, and the same
 * or without overlap. Floats are added in f32 and rounded once, f64 in f64, integers in 64 bits and cut to the type.
 * Once a NaN has come, the rest of its row is NaN. The result does not depend on timing, only on shape, device and
 * where in 16 bytes |x| begins. RDNA_INVALID_ARGUMENT: shapes, types or |dim| that disagree, missing data, partial
 * overlap. RDNA_UNSUPPORTED: another type, or gaps. */
RDNA_CHECKED rdna_status rdna_op_cumsum(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_cumprod(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_cummax(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_cummin(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out);
/* log(exp(x(…, 0, …)) + … + exp(x(…, i, …))), of f32, f16 or bf16. */
RDNA_CHECKED rdna_status rdna_op_logcumsumexp(rdna_stream *stream, const rdna_tensor *x, int dim,
                                              const rdna_tensor *out);

/* The same with where each extreme is, the last of equal ones, into |indices|, i64 of x's shape. Of any type but the
 * quantized ones, at most 2^31 - 1 values along |dim|. A NaN wins over any number, and a later NaN
 * over an earlier one. */
RDNA_CHECKED rdna_status rdna_op_cummax_indices(rdna_stream *stream, const rdna_tensor *x, int dim,
                                                const rdna_tensor *values, const rdna_tensor *indices);
RDNA_CHECKED rdna_status rdna_op_cummin_indices(rdna_stream *stream, const rdna_tensor *x, int dim,
                                                const rdna_tensor *values, const rdna_tensor *indices);

#ifdef __cplusplus
}
#endif
#endif
