/* Conversion between types. */
#ifndef RDNA_OP_CAST_H
#define RDNA_OP_CAST_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Converts between f32, f16 and bf16, either way, and from i32 to f32, to the nearest value, ties to even; too
 * large becomes infinite, a NaN stays a NaN, denormals are kept. Equal types copy. Both tensors are contiguous and of
 * one shape; |out| may be |x| when their values are of one size, or must be apart from it. RDNA_INVALID_ARGUMENT:
 * shapes that disagree, missing data, partial overlap. RDNA_UNSUPPORTED: another pair of types, or gaps. */
RDNA_CHECKED rdna_status rdna_op_cast(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
