/* Operations value by value on strided operands: one kernel for each kind and type. The operation is an argument, which
 * costs nothing, as memory bounds these kernels.
 *
 * A thread takes v values: as many as 16 bytes hold, in the integer, f64 and where kernels 4, and 8 in where_strided_8
 * and _16. The grid's x covers the count, 256 v values to a work-group, in one of two orders (v = 4, numbers are
 * threads):
 *
 *     together        | 0 0 0 0 | 1 1 1 1 | 2 2 2 2 | ...
 *     not together    | 0 1 2 ... 255 | 0 1 2 ... 255 | ...
 *
 * They are together where a row is a whole number of v values, so that a thread's values lie in one row. */
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
  /* vectors: bit k: operand k is read or written in whole vectors, of which a row has a whole number;
   * together: 1 or 0, see above */
  uint32_t vectors, together;
  uint32_t constants; /* bit k: operand k is |constant|, and has no pointer */
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
