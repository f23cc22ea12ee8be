/* Jacobi's rotations. From one side: columns are turned into each other, two blocks of them at a time, until all are
 * orthogonal (Hestenes, 1958). From both: rows and columns of a symmetric matrix, until it is diagonal (Jacobi, 1846).
 */
#ifndef RDNA_MATH_LINALG_JACOBI_KERNELS_H
#define RDNA_MATH_LINALG_JACOBI_KERNELS_H

#include <stdint.h>

enum { JACOBI_BLOCK = 16, JACOBI_THREADS = 256 };

/* Turns the columns of two blocks of JACOBI_BLOCK columns into each other. A sweep is |blocks| - 1 rounds, in each of
 * which every block is in one pair, and after which each has met each; one launch is a round:
 *
 *     round 0    blocks 0 3   1 2
 *     round 1           1 3   0 2
 *     round 2           2 3   0 1
 *
 * A group takes pairs in turn. It forms the 32 x 32 products of the pair's columns with each other, finds the rotations
 * by one sweep over these, and then applies them to the columns. Element (i, j) of matrix b lies at
 * b * stride + i * row + j * column. */
struct jacobi_args {
  void *a;
  int32_t *turned; /* (batch, total): becomes 1 where sweep number |sweep| met an angle that is not small */
  int64_t stride, row, column;
  double small, smallest; /* cosines: above |small| another sweep is needed, below |smallest| nothing is turned */
  double negligible;      /* columns not longer than that are left alone */
  uint32_t m, n;
  uint32_t blocks, round;        /* blocks is even: the last may have no columns */
  uint32_t sweep, sweeps, total; /* sweeps that one launch does: 1, or of a single pair more */
  uint32_t units;                /* pairs, times the batch */
};

/* A round from both sides is two launches. jacobi_both: a group for each pair finds the rotations by one sweep over the
 * 32 x 32 values where the pair's rows and columns cross, which are then what they become, and leaves their product,
 * the pair's turn. jacobi_across: all other tiles of 32 x 32, where the rows of one pair cross the columns of another,
 * are turned by both; and so are the columns of v, by one:
 *
 *          pair 0   pair 1   pair 2
 *         +--------+--------+--------+
 *     0   | both   | U0^T A U1 …     |     and v U0, v U1, v U2
 *     1   | mirror | both   | …      |
 *     2   | mirror | mirror | both   |
 *         +--------+--------+--------+
 *
 * Of a single pair the first launch does all sweeps, and v too. */
struct jacobi_both_args {
  struct jacobi_args
      of;         /* symmetric matrices of n rows, |column| 1; values not larger than |negligible| are nothing, and
                     |small| and |smallest| count beside the root of the product of two values on the diagonal */
  void *v;        /* m rows and n columns, which are turned as a's are; or NULL */
  void *turns;    /* (batch, pairs, 32, 32), where there are several pairs */
  int32_t *moved; /* (batch, pairs): 0 where the turn is none */
  int64_t v_stride, v_row, v_column;
};

#define RDNA_JACOBI_KERNELS(X)                                                            \
  X(jacobi_f32, struct jacobi_args, JACOBI_THREADS, rdna__jacobi_case)                    \
  X(jacobi_f64, struct jacobi_args, JACOBI_THREADS, rdna__jacobi_case)                    \
  X(jacobi_both_f32, struct jacobi_both_args, JACOBI_THREADS, rdna__jacobi_both_case)     \
  X(jacobi_both_f64, struct jacobi_both_args, JACOBI_THREADS, rdna__jacobi_both_case)     \
  X(jacobi_across_f32, struct jacobi_both_args, JACOBI_THREADS, rdna__jacobi_across_case) \
  X(jacobi_across_f64, struct jacobi_both_args, JACOBI_THREADS, rdna__jacobi_across_case)

/* Gives pair number |pair| of a round of |count| blocks, an even number: the circle method of tournaments.
 * *out_first < *out_second. */
#ifdef RDNA_KERNEL_PRELUDE_H
#define JACOBI_SHARED RDNA_DEVICE
#else
#define JACOBI_SHARED static inline
#endif
JACOBI_SHARED void jacobi_pair(uint32_t count, uint32_t round, uint32_t pair, uint32_t *out_first,
                               uint32_t *out_second) {
  uint32_t last = count - 1;
  uint32_t x = pair ? (round + pair) % last : last, y = pair ? (round + last - pair) % last : round;
  *out_first = x < y ? x : y, *out_second = x < y ? y : x;
}

/* The units of jacobi_across in a matrix: tile |i| of a row of |pairs| is unit i * pairs + j, that of v comes after. */
JACOBI_SHARED uint32_t jacobi_tiles(uint32_t pairs, uint32_t m) {
  return pairs * (pairs + (m + 2 * JACOBI_BLOCK - 1) / (2 * JACOBI_BLOCK));
}
#undef JACOBI_SHARED

#endif
