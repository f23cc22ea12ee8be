/* Jacobi's rotations from one side: columns are turned into each other, two blocks of them at a time, until all are
 * orthogonal (Hestenes, 1958). */
#ifndef RDNA_MATH_LINALG_JACOBI_KERNELS_H
#define RDNA_MATH_LINALG_JACOBI_KERNELS_H

#include <stdint.h>

enum { JACOBI_BLOCK = 16, JACOBI_THREADS = 256 };

/* Blocks of JACOBI_BLOCK columns meet in pairs; in |blocks| - 1 rounds, which are a sweep, each meets each once. What a
 * pair's rotations are is found from the products of its columns, which are 32 x 32, by one cyclic sweep over them.
 * Element (i, j) of matrix b lies at b * stride + i * row + j * column. A group takes pairs in turn. */
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

#define RDNA_JACOBI_KERNELS(X)                                         \
  X(jacobi_f32, struct jacobi_args, JACOBI_THREADS, rdna__jacobi_case) \
  X(jacobi_f64, struct jacobi_args, JACOBI_THREADS, rdna__jacobi_case)

/* Who meets whom in a round: all |count| in pairs, number |pair| of them *out_first < *out_second (the circle method of
 * tournaments). count is even. */
#ifdef RDNA_KERNEL_PRELUDE_H
RDNA_DEVICE
#else
static inline
#endif
void jacobi_pair(uint32_t count, uint32_t round, uint32_t pair, uint32_t *out_first, uint32_t *out_second) {
  uint32_t last = count - 1;
  uint32_t x = pair ? (round + pair) % last : last, y = pair ? (round + last - pair) % last : round;
  *out_first = x < y ? x : y, *out_second = x < y ? y : x;
}

#endif
