/* Reductions over any dimensions. */
#ifndef RDNA_OP_REDUCE_H
#define RDNA_OP_REDUCE_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_reduction {
  RDNA_REDUCTION_SUM,  /* 0 of nothing; integers are summed in i64, which wraps */
  RDNA_REDUCTION_MEAN, /* floats; NaN of nothing */
  RDNA_REDUCTION_PROD, /* 1 of nothing; integers likewise */
  RDNA_REDUCTION_MIN,  /* a NaN wins; nothing is an error, as for the next three */
  RDNA_REDUCTION_MAX,
  RDNA_REDUCTION_ARGMIN, /* where it is, counted through the reduced dimensions in order; the first of equals */
  RDNA_REDUCTION_ARGMAX,
  RDNA_REDUCTION_NORM, /* floats; |parameter| is p >= 0 or infinity: (sum of |x|^p)^(1/p), number of x != 0, largest */
  RDNA_REDUCTION_ANY,  /* whether one is not 0; a NaN is not */
  RDNA_REDUCTION_ALL,  /* whether none is 0 */
  RDNA_REDUCTION_VAR,  /* floats; sum of squared distances from the mean over max(count - |parameter|, 0) */
  RDNA_REDUCTION_STD,  /* its square root */
  RDNA_REDUCTION_LOGSUMEXP, /* floats; -infinity of nothing */
  RDNA_REDUCTION_COUNT
} rdna_reduction;

/* "sum", "logsumexp"; "?" outside the enumeration. A binding asks for them as for the names of rdna/op/pointwise.h. */
RDNA_API const char *rdna_reduction_name(rdna_reduction reduction);

/* Reduces the dimensions of |x| whose bits are set in |dims| (bit 0 is the first; none: each value by itself). |x| is
 * f32, f16, bf16, f64, i32, i64, u8 or bool, with any strides. |out| has |x|'s shape without those dimensions, or with
 * size 1 in their place, is contiguous and does not overlap |x|. Its type is f32 or |x|'s for floats (f64 for f64), i64
 * for sums and products of integers, |x|'s for min and max, i64 or i32 for argmin and argmax (i32 of up to 2^31
 * values), bool or u8 for any and all.
 *
 * Floats are added in f32, f64 in f64. A general p is computed to about p * |log2 x| * 2^-24, for f64 as in f64; that
 * and LOGSUMEXP of f64 take several passes and memory for as many values as |x| has.
 * The result does not depend on timing, only on shape, strides, device and |x|'s address modulo 16. |parameter| is read
 * by norm, var and std.
 * RDNA_INVALID_ARGUMENT: shapes, types or |dims| that disagree, missing data, overlap, no value where there is no
 * answer. RDNA_UNSUPPORTED: another type, or 2^31 values or more that have no single stride. */
RDNA_CHECKED rdna_status rdna_op_reduce(rdna_stream *stream, rdna_reduction reduction, const rdna_tensor *x,
                                        uint32_t dims, double parameter, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
