/* Operations of complex numbers, value by value, and the matrix of reals that stands for one of complex numbers. */
#ifndef RDNA_MATH_COMPLEX_KERNELS_H
#define RDNA_MATH_COMPLEX_KERNELS_H

#include <stdint.h>

#include "math/common/strided.h"

enum { COMPLEX_THREADS = 256, COMPLEX_ZIP_VALUES = 4 };

/* Strides are in values, a pair being one. A thread takes one value; those of complex_zip COMPLEX_ZIP_VALUES, which lie
 * COMPLEX_THREADS apart. */
struct complex_args {
  struct strided_operand operand[3]; /* out, then the inputs */
  struct strided_shape shape;
  double p[2], constant[2];
  uint32_t op;        /* rdna_complex_map, _zip or _measure */
  uint32_t constants; /* bit k: operand k is |constant|, and has no pointer */
};

enum {
  COMPLEX_SCALE = 1 << 0,     /* x is multiplied by |factor| first */
  COMPLEX_CONJ = 1 << 1,      /* and conjugated */
  COMPLEX_NEGATE_LOW = 1 << 2 /* the second row of each block is negated */
};

/* Writes each value x = a + b i of a batch of matrices as two rows and columns of reals:
 *
 *      a  b          with COMPLEX_NEGATE_LOW      a  b
 *     -b  a                                       b -a
 *
 * so that a row of pairs (u, v), multiplied by it, becomes (u + v i) x, with COMPLEX_NEGATE_LOW (u - v i) x. */
struct complex_blocks_args {
  const void *x;
  void *out;                        /* (batch, 2 rows, 2 columns), contiguous */
  int64_t x_row, x_column, x_batch; /* strides, in pairs */
  double factor[2];
  uint32_t rows, columns, count; /* count: of the whole batch */
  uint32_t flags;
};

#define RDNA_COMPLEX_KERNELS(X)                                                                 \
  X(complex_map_f32, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                  \
  X(complex_map_f64, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                  \
  X(complex_zip_f32, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                  \
  X(complex_zip_f64, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                  \
  X(complex_pow_f32, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                  \
  X(complex_pow_f64, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                  \
  X(complex_measure_f32, struct complex_args, COMPLEX_THREADS, rdna__complex_case)              \
  X(complex_measure_f64, struct complex_args, COMPLEX_THREADS, rdna__complex_case)              \
  X(complex_polar_f32, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                \
  X(complex_polar_f64, struct complex_args, COMPLEX_THREADS, rdna__complex_case)                \
  X(complex_blocks_f32, struct complex_blocks_args, COMPLEX_THREADS, rdna__complex_blocks_case) \
  X(complex_blocks_f64, struct complex_blocks_args, COMPLEX_THREADS, rdna__complex_blocks_case)

#endif
