/* Systems of triangular matrices: what is done inside of one block; products do the rest. */
#ifndef RDNA_MATH_LINALG_KERNELS_H
#define RDNA_MATH_LINALG_KERNELS_H

#include <stdint.h>

enum { LINALG_BLOCK = 32, THIN_THREADS = 1024 };
enum { TRIANGULAR_BLOCK = 128, TRIANGULAR_COLUMNS = 32, TRIANGULAR_THREADS = 256 };

/* A diagonal's values of these sizes have inverses that are as exact as other values; solve_triangular multiplies by
 * them. By others it divides. */
#define LINALG_LEAST_F32 0x1p-120f
#define LINALG_MOST_F32 0x1p120f
#define LINALG_LEAST_F64 0x1p-1000
#define LINALG_MOST_F64 0x1p1000

/* Element (i, j) of matrix b lies at b * stride + i * row + j * column. */

/* Solves l x' = x in place. With |flipped| rows and columns of l, and rows of x, count from the last: an upper triangle
 * is a lower one then. Groups take units in turn.
 *
 * solve_triangular has up to TRIANGULAR_BLOCK rows: a group solves TRIANGULAR_COLUMNS columns, in registers.
 *
 * solve_thin has any number of rows and few columns, with a group for each, which solves LINALG_BLOCK rows at a time:
 *
 *     by columns: l_row is 1, so that        by rows: l_column is 1
 *     a column's values are neighbours
 *       \                                      \
 *       #\    solves a block of x, then         \     subtracts from a block of x what the
 *       # \   subtracts what it contributes   ###\    rows before contribute (#), in sums
 *       #  \  to all rows below (#)               \   of every 32nd value, then solves it */
struct triangular_args {
  const void *l;
  void *x;
  int64_t l_stride, l_row, l_column;
  int64_t x_stride, x_row, x_column;
  int64_t columns;
  uint32_t n;
  uint32_t flipped, unit;
  uint32_t parts, units; /* groups that share the columns of a matrix; times the batch */
};

#define RDNA_LINALG_KERNELS(X)                                                               \
  X(solve_triangular_f32, struct triangular_args, TRIANGULAR_THREADS, rdna__triangular_case) \
  X(solve_triangular_f64, struct triangular_args, TRIANGULAR_THREADS, rdna__triangular_case) \
  X(solve_thin_f32, struct triangular_args, THIN_THREADS, rdna__thin_case)                   \
  X(solve_thin_f64, struct triangular_args, THIN_THREADS, rdna__thin_case)

#endif
