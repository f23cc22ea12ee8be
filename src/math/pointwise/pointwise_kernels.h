/* Operations value by value on strided operands: one kernel for each kind and type, the operation chosen at run time,
 * as memory is what they wait for.
 *
 * A work-group along x takes RDNA__POINTWISE_THREADS times as many values as 16 bytes hold of its type; the integer
 * and f64 kernels take 4 values a thread. */
#ifndef RDNA_MATH_POINTWISE_KERNELS_H
#define RDNA_MATH_POINTWISE_KERNELS_H

#include <stdint.h>

#include "math/common/strided.h"
#include "rdna/op/pointwise.h"

enum { RDNA__POINTWISE_THREADS = 256 };

struct pointwise_args {
  struct strided_operand operand[4]; /* out, then the inputs */
  struct strided_shape shape;
  rdna_scalar p, q, constant;
  uint32_t op;    /* rdna_map, rdna_zip, rdna_zip3 or rdna_compare */
  uint32_t dtype; /* rdna_dtype of the values: for integer kernels */
  /* Bit k: operand k is read or written in whole vectors, which the fastest size is a multiple of. Without
   * |together| a thread's values lie RDNA__POINTWISE_THREADS apart. */
  uint32_t vectors, together;
  uint32_t constants; /* bit k: operand k is |constant| */
};

#define RDNA__POINTWISE_KIND(X, kind)                                      \
  X(kind##_strided_f32, struct pointwise_args, 256, rdna__pointwise_case)  \
  X(kind##_strided_f16, struct pointwise_args, 256, rdna__pointwise_case)  \
  X(kind##_strided_bf16, struct pointwise_args, 256, rdna__pointwise_case) \
  X(kind##_strided_f64, struct pointwise_args, 256, rdna__pointwise_case)  \
  X(kind##_strided_int, struct pointwise_args, 256, rdna__pointwise_case)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_POINTWISE_KERNELS(X)                                       \
  RDNA__POINTWISE_KIND(X, map)                                          \
  RDNA__POINTWISE_KIND(X, zip)                                          \
  RDNA__POINTWISE_KIND(X, zip3)                                         \
  RDNA__POINTWISE_KIND(X, compare)                                      \
  X(where_strided_8, struct pointwise_args, 256, rdna__pointwise_case)  \
  X(where_strided_16, struct pointwise_args, 256, rdna__pointwise_case) \
  X(where_strided_32, struct pointwise_args, 256, rdna__pointwise_case) \
  X(where_strided_64, struct pointwise_args, 256, rdna__pointwise_case)

#endif
