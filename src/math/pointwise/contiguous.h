/* The way of map and zip for tensors that fill a piece of memory, if a contiguous kernel has the operation. */
#ifndef RDNA_MATH_CONTIGUOUS_H
#define RDNA_MATH_CONTIGUOUS_H

#include "math/common/plan/strided.h"
#include "rdna/op/pointwise.h"

/* Arguments were checked, and nothing is empty. Without |*out_launched| nothing was queued, and the strided kernels are
 * to do it. */
rdna_status rdna__contiguous_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p, rdna_scalar q,
                                 const rdna_tensor *out, bool *out_launched);
rdna_status rdna__contiguous_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                 const rdna_tensor *out, bool *out_launched);

#endif
