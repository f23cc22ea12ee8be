/* map and zip by the kernels for contiguous tensors, where there is one for the operation and the tensors allow it. */
#ifndef RDNA_MATH_CONTIGUOUS_H
#define RDNA_MATH_CONTIGUOUS_H

#include "math/common/plan/strided.h"
#include "rdna/op/pointwise.h"

/* Whether shapes and strides of |count| tensors agree, and their values fill one piece of memory each without gaps, in
 * any order of dimensions: a transposed view of a contiguous tensor does. None is empty. */
bool rdna__is_line(const rdna_tensor *const *tensors, int count);

/* The caller has checked the arguments, and nothing is empty. If |*out_launched| is false, nothing was queued, and the
 * caller is to use the strided kernels. */
rdna_status rdna__contiguous_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p, rdna_scalar q,
                                 const rdna_tensor *out, bool *out_launched);
rdna_status rdna__contiguous_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                 const rdna_tensor *out, bool *out_launched);
/* |op| of |x| and a number, which is first if |number_first|. */
rdna_status rdna__contiguous_zip_number(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, double number,
                                        bool number_first, const rdna_tensor *out, bool *out_launched);

#endif
