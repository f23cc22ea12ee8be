/* Reductions of f64 that are made of elementary functions, of other operators: they have no kernels of their own. */
#ifndef RDNA_MATH_REDUCE_F64_H
#define RDNA_MATH_REDUCE_F64_H

#include "base/status.h"
#include "rdna/op/reduce.h"

/* RDNA_REDUCTION_LOGSUMEXP, or RDNA_REDUCTION_NORM of any finite p above 0. Arguments were checked; |out| is not empty.
 */
rdna_status rdna__reduce_f64(const char *op_name, rdna_stream *stream, rdna_reduction reduction, uint32_t dims,
                             double parameter, const rdna_tensor *x, const rdna_tensor *out);

#endif
