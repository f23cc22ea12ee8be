/* Elementary operations on f64: the list of kernels. Arguments are those of pointwise_kernels.h, of which |vectors|
 * means nothing here, and |together| that every operand that is no constant is dense, value after value. A thread has
 * RDNA__ELEMENTARY_VALUES values, RDNA__POINTWISE_THREADS apart.
 *
 * Bytes: each operand's once. FLOPs: about 35 (exp, log, sin) to 150 (gelu) a value, in f64. */
#ifndef RDNA_MATH_POINTWISE_F64_KERNELS_H
#define RDNA_MATH_POINTWISE_F64_KERNELS_H

#include "math/pointwise/pointwise_kernels.h"

enum { RDNA__ELEMENTARY_VALUES = 4 };

#define RDNA_POINTWISE_F64_KERNELS(X)                                                         \
  X(map_elementary_f64, struct pointwise_args, RDNA__POINTWISE_THREADS, rdna__pointwise_case) \
  X(zip_elementary_f64, struct pointwise_args, RDNA__POINTWISE_THREADS, rdna__pointwise_case)

#endif
