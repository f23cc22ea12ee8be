/* Sorting along a dimension, the largest and smallest values, searching in sorted rows, permutations.
 *
 * Values are of any type but the quantized ones; bool sorts false before true. A NaN is greater than any number, all
 * NaN are equal, and so are the two zeros; equal values keep their order, the lower index first, whatever the
 * direction. |dim| counts from the end when it is negative. Indices are i64. Tensors may have any strides; what is
 * not contiguous along |dim| is copied first. Outputs overlap neither the inputs nor each other. Results do not depend
 * on timing or device. RDNA_INVALID_ARGUMENT: shapes, types or |dim| that disagree, missing data, overlap.
 * RDNA_UNSUPPORTED: quantized types, 2^31 values or more in a row. */
#ifndef RDNA_OP_SORT_H
#define RDNA_OP_SORT_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |values| has x's type, |indices| says where along |dim| they were; both have x's shape, and one may be NULL. */
RDNA_CHECKED rdna_status rdna_op_sort(rdna_stream *stream, const rdna_tensor *x, int dim, bool descending,
                                      const rdna_tensor *values, const rdna_tensor *indices);

/* The k largest values along |dim|, in descending order, or the k smallest in ascending order, and where they were: the
 * first k that rdna_op_sort gives. k is size |dim| of |values| and of |indices|, whose other sizes are x's; one of the
 * two may be NULL. Rows of more than 4096 values are not sorted for a k of up to 4096: they are read about twice. */
RDNA_CHECKED rdna_status rdna_op_topk(rdna_stream *stream, const rdna_tensor *x, int dim, bool largest,
                                      const rdna_tensor *values, const rdna_tensor *indices);
/* The |k|th smallest value along |dim|, counted from 1, and where it was: as rdna_op_sort puts it. |values| and
 * |indices| have size 1 there; one of them may be NULL. */
RDNA_CHECKED rdna_status rdna_op_kth_value(rdna_stream *stream, const rdna_tensor *x, int64_t k, int dim,
                                           const rdna_tensor *values, const rdna_tensor *indices);

/* out(…, i) = how many values of a row of |sorted| are less than x(…, i), or less or equal when |right|. |sorted|
 * ascends along its last dimension, and has rank 1, for all of |x|, or x's rank and sizes but for the last. |out| is
 * i64 or i32, of x's shape. A NaN in |x| is looked for as one. */
RDNA_CHECKED rdna_status rdna_op_search_sorted(rdna_stream *stream, const rdna_tensor *sorted, const rdna_tensor *x,
                                               bool right, const rdna_tensor *out);

/* The numbers 0 to n - 1 in random order, each order as likely as any other: |out| is (n) of i64 or i32, contiguous.
 * They are sorted by random numbers of 64 bits, of which enough are looked at that two are equal with a probability
 * below 2^-8. Uses counters as rdna_op_random_integers does for n values, and depends on |seed| and |offset| alone. */
RDNA_CHECKED rdna_status rdna_op_random_permutation(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                                    const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
