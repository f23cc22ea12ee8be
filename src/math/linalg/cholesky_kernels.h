/* Cholesky's factors: a block of columns on and below the diagonal. */
#ifndef RDNA_MATH_LINALG_CHOLESKY_KERNELS_H
#define RDNA_MATH_LINALG_CHOLESKY_KERNELS_H

#include <stdint.h>

enum { CHOLESKY_BLOCK = 128, CHOLESKY_ROWS = 32, CHOLESKY_THREADS = 256 };

/* Factors columns |first| to |first| + CHOLESKY_BLOCK of matrices (n, n), from which a product has subtracted what the
 * columns before contribute. Element (i, j) of matrix b lies at b * stride + i * row + j * column.
 *
 *     first
 *       \                     Each group factors the block on the diagonal (D) for itself. It solves CHOLESKY_ROWS of
 *       D\    0 0 0 0         the rows below (x) with it, and writes them and the zeros across the diagonal, where
 *       DD\   0 0 0 0         nothing is read. D stays as it is, as other groups may not have read it yet: a part of
 *       xxx\                  the next launch writes its factor, when nobody needs D. The last block has no rows below,
 *       xxx \                 and its factor is written at once.
 *
 * A part is one group's: rows below, in order; then the block itself, where it is the last; then the block before,
 * unless |first| is 0. Groups take units, parts of all matrices, in turn. */
struct cholesky_args {
  void *a;
  int32_t *info; /* (batch): the first leading minor that fails, or 0; set with blocks that are written */
  int64_t stride, row, column;
  uint32_t n;
  uint32_t first; /* 0: |info| is not read */
  uint32_t parts, units;
};

#define RDNA_CHOLESKY_KERNELS(X)                                               \
  X(cholesky_f32, struct cholesky_args, CHOLESKY_THREADS, rdna__cholesky_case) \
  X(cholesky_f64, struct cholesky_args, CHOLESKY_THREADS, rdna__cholesky_case)

#endif
