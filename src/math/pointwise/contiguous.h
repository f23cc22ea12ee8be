/* map and zip by the kernels for contiguous tensors, where there is one for the operation and the tensors allow it. */
#ifndef RDNA_MATH_CONTIGUOUS_H
#define RDNA_MATH_CONTIGUOUS_H

#include "math/common/plan/strided.h"
#include "rdna/op/pointwise.h"

/* The caller has checked the arguments, and nothing is empty. If |*out_launched| is false, nothing was queued, and the
 * caller is to use the strided kernels. */
rdna_status rdna__contiguous_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p, rdna_scalar q,
                                 const rdna_tensor *out, bool *out_launched);
rdna_status rdna__contiguous_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                 const rdna_tensor *out, bool *out_launched);

#endif
