/* LU with partial pivoting: what is done inside of a panel of columns, and rows that change places. */
#ifndef RDNA_MATH_LINALG_LU_KERNELS_H
#define RDNA_MATH_LINALG_LU_KERNELS_H

#include <stdint.h>

enum { LU_BLOCK = 32, LU_SMALL_ROWS = 128, LU_SMALL_THREADS = 256, LU_TALL_THREADS = 1024, SWAP_THREADS = 64 };

/* Factors a panel of n columns and m >= n rows in place, a column at a time: its largest value from the diagonal on
 * comes to the diagonal, as two rows of the panel change places, and divides what is below it:
 *
 *     u u u     m = 5, n = 3: U, and below it L, whose diagonal is 1 and is not stored
 *     l u u
 *     l l u
 *     l l l
 *     l l l
 *
 * Element (i, j) of matrix b lies at b * stride + i * row + j * column. A group takes matrices in turn: up to
 * LU_SMALL_ROWS rows in group memory, more where they are. */
struct lu_args {
  void *a;
  int32_t *pivots; /* (batch, pivots_stride): at first + j, which row j changed places with, counted from 1 */
  int32_t *info;   /* (batch): 0, or 1 + the first column whose diagonal is 0 */
  int64_t stride, row, column, pivots_stride;
  uint32_t m, n;  /* n up to LU_BLOCK */
  uint32_t first; /* rows and columns of the whole matrix before these; 0: |info| is set, and not read */
  uint32_t batch;
  uint32_t in_place; /* rows stay where they are */
};

/* Exchanges rows first + j and pivots[first + j] - 1, for j from 0 to count, or with |backwards| from the last on.
 * Leaves columns |skipped| to |resumed| alone, and rows where pivots name none. A thread does a column; groups take
 * units in turn. */
struct swap_args {
  void *x;
  const int32_t *pivots;
  int64_t stride, row, column, pivots_stride;
  int64_t columns, skipped, resumed; /* |columns| without those that are skipped */
  uint32_t rows, first, count, backwards;
  uint32_t parts, units; /* groups of columns; times the batch */
};

#define RDNA_LU_KERNELS(X)                                          \
  X(lu_small_f32, struct lu_args, LU_SMALL_THREADS, rdna__lu_case)  \
  X(lu_small_f64, struct lu_args, LU_SMALL_THREADS, rdna__lu_case)  \
  X(lu_tall_f32, struct lu_args, LU_TALL_THREADS, rdna__lu_case)    \
  X(lu_tall_f64, struct lu_args, LU_TALL_THREADS, rdna__lu_case)    \
  X(swap_rows_f32, struct swap_args, SWAP_THREADS, rdna__swap_case) \
  X(swap_rows_f64, struct swap_args, SWAP_THREADS, rdna__swap_case)

#endif
