/* Elementary operations on f64: the list of kernels. Arguments are those of pointwise_kernels.h, whose |vectors| and
 * |together| mean nothing here: a thread has one value. */
#ifndef RDNA_MATH_POINTWISE_F64_KERNELS_H
#define RDNA_MATH_POINTWISE_F64_KERNELS_H

#include "math/pointwise/pointwise_kernels.h"

#define RDNA_POINTWISE_F64_KERNELS(X)                                                         \
  X(map_elementary_f64, struct pointwise_args, RDNA__POINTWISE_THREADS, rdna__pointwise_case) \
  X(zip_elementary_f64, struct pointwise_args, RDNA__POINTWISE_THREADS, rdna__pointwise_case)

#endif
