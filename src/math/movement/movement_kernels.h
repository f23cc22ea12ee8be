/* Moving values. Kernels are named by the bits of what they move, which may be several neighbours at once. A
 * work-group along x takes RDNA__MOVEMENT_TILE of them, a thread's values lying RDNA__MOVEMENT_THREADS apart. */
#ifndef RDNA_MATH_MOVEMENT_KERNELS_H
#define RDNA_MATH_MOVEMENT_KERNELS_H

#include <stdint.h>

#include "math/common/strided.h"
#include "rdna/op/movement.h"

enum {
  RDNA__MOVEMENT_THREADS = 256,
  RDNA__MOVEMENT_TILE = 1024,
  /* A transposition moves tiles of this many rows by this many bytes, through shared memory. Many small groups: twice
   * the rows and threads reach half of the rate on an H200. */
  RDNA__TRANSPOSE_THREADS = 128,
  RDNA__TRANSPOSE_ROWS = 64,
  RDNA__TRANSPOSE_BYTES = 128
};

/* out = in */
struct move_args {
  struct strided_operand operand[2]; /* out, in */
  struct strided_shape shape;
  uint32_t from, to; /* rdna_dtype: for convert */
};

/* out = value; arange: start + i * step */
struct set_args {
  struct strided_operand operand[1];
  struct strided_shape shape;
  uint64_t value[2]; /* the bits, repeated to 16 bytes */
  rdna_scalar start, step;
  uint32_t dtype; /* for arange */
};

/* out[i] = in[i - before], the dimensions as in |shape|, which is out's */
struct pad_args {
  struct strided_operand operand[2];
  struct strided_shape shape;
  int64_t before[STRIDED_RANK], size[STRIDED_RANK]; /* of in */
  uint64_t value;
  uint32_t mode;
};

/* Dimension 0 of |shape| is the column and dimension 1 the row. */
struct triangle_args {
  struct strided_operand operand[2];
  struct strided_shape shape;
  int64_t diagonal;
  uint32_t upper;
};

/* out[column * out_stride + row] = in[row * in_stride + column], for each of the other dimensions. |shape| counts
 * tiles: dimension 0 along rows, 1 along columns, then the others, in which operands have strides. Each value is read
 * once and written once. transpose_* wants all lines of both at multiples of 16 bytes; for transpose_ragged_* they
 * begin anywhere, and where out's do not begin there, tiles along rows are as many as for 16 bytes less a value more of
 * them. */
struct transpose_args {
  struct strided_operand operand[2]; /* out, in */
  struct strided_shape shape;
  uint32_t rows, columns;
  int64_t in_stride, out_stride;
};

/* Lines of |bytes| that begin anywhere in out and in: out's are written in chunks of 16 bytes from a multiple of 16 on,
 * of which the first and the last may be parts. |shape| counts chunks, (bytes + 30) / 16 a line, and its other
 * dimensions are the lines'; strides are in bytes. */
struct lines_args {
  struct strided_operand operand[2]; /* out, in */
  struct strided_shape shape;
  uint32_t bytes;
};
enum { RDNA__LINES_LEAST = 256 }; /* bytes of a line from which on it is worth it */

#define RDNA__MOVEMENT_THREAD_SIZES(X, name, args, threads, maker) \
  X(name##_8, args, threads, maker)                                \
  X(name##_16, args, threads, maker)                               \
  X(name##_32, args, threads, maker)                               \
  X(name##_64, args, threads, maker)
#define RDNA__MOVEMENT_SIZES(X, name, args, maker) RDNA__MOVEMENT_THREAD_SIZES(X, name, args, 256, maker)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_MOVEMENT_KERNELS(X)                                                                                  \
  RDNA__MOVEMENT_SIZES(X, copy_strided, struct move_args, rdna__move_case)                                        \
  X(copy_strided_128, struct move_args, 256, rdna__move_case)                                                     \
  X(copy_lines, struct lines_args, 256, rdna__lines_case)                                                         \
  X(convert_strided, struct move_args, 256, rdna__convert_case)                                                   \
  RDNA__MOVEMENT_SIZES(X, set_strided, struct set_args, rdna__set_case)                                           \
  X(set_strided_128, struct set_args, 256, rdna__set_case)                                                        \
  X(arange, struct set_args, 256, rdna__set_case)                                                                 \
  RDNA__MOVEMENT_SIZES(X, pad_strided, struct pad_args, rdna__pad_case)                                           \
  RDNA__MOVEMENT_SIZES(X, triangle_strided, struct triangle_args, rdna__triangle_case)                            \
  RDNA__MOVEMENT_THREAD_SIZES(X, transpose, struct transpose_args, RDNA__TRANSPOSE_THREADS, rdna__transpose_case) \
  RDNA__MOVEMENT_THREAD_SIZES(X, transpose_ragged, struct transpose_args, RDNA__TRANSPOSE_THREADS, rdna__transpose_case)

#endif
