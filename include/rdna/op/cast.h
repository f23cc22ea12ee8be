/* Conversion between types. */
#ifndef RDNA_OP_CAST_H
#define RDNA_OP_CAST_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |out| = |x| in its type: any pair of those that are not quantized, or of one type. Between f32, f16, bf16 and the
 * 8-bit floats, and from i32 to f32, to the nearest value, ties to even; too large becomes infinite, or NaN in an 8-bit
 * type without infinities, a NaN stays a NaN, denormals are kept; there |out| may be |x| when their values are of one
 * size. Other pairs convert as rdna_op_copy does, and |out| does not overlap |x|. Equal types copy. Both tensors are
 * contiguous and of one shape. RDNA_INVALID_ARGUMENT: shapes that disagree, missing data, partial overlap.
 * RDNA_UNSUPPORTED: quantized types that differ, or gaps. */
RDNA_CHECKED rdna_status rdna_op_cast(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

/* From f32, f16 or bf16 to an 8-bit float, what is too large, infinities with it, becoming the largest finite value. */
RDNA_CHECKED rdna_status rdna_op_cast_saturating(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
