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
/* The map of the same values as |op| of x and a number, which is first if |number_first|; false: there is none. */
bool rdna__zip_number_as_map(rdna_zip op, double number, bool number_first, rdna_map *out_map, double *out_p,
                             double *out_q);
/* |op| of |x| and a number by the kernels for one input. By those for any strides 148 products with a number, of
 * GPT-2's gradients, took 1.02 ms on an H200, where their bytes take 0.25. */
rdna_status rdna__contiguous_zip_number(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, double number,
                                        bool number_first, const rdna_tensor *out, bool *out_launched);

#endif
