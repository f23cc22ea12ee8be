/* Elementary operations on f64: the list of kernels. Arguments are those of pointwise_kernels.h, except that |vectors|
 * is ignored, and |together| means that all operands but constants are contiguous. A thread takes
 * RDNA__ELEMENTARY_VALUES values that lie RDNA__POINTWISE_THREADS apart.
 *
 * Bytes: each operand once. FLOPs: about 35 (exp, log, sin) to 150 (gelu) a value, in f64. */
#ifndef RDNA_MATH_POINTWISE_F64_KERNELS_H
#define RDNA_MATH_POINTWISE_F64_KERNELS_H

#include "math/pointwise/pointwise_kernels.h"

enum { RDNA__ELEMENTARY_VALUES = 4 };

#define RDNA_POINTWISE_F64_KERNELS(X)                                                         \
  X(map_elementary_f64, struct pointwise_args, RDNA__POINTWISE_THREADS, rdna__pointwise_case) \
  X(zip_elementary_f64, struct pointwise_args, RDNA__POINTWISE_THREADS, rdna__pointwise_case)

#endif
