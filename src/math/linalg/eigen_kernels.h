/* Eigenvalues and eigenvectors of matrices that need not be symmetric: a group for each. */
#ifndef RDNA_MATH_LINALG_EIGEN_KERNELS_H
#define RDNA_MATH_LINALG_EIGEN_KERNELS_H

#include <stdint.h>

enum {
  EIGEN_SMALL = 64, /* rows of which a matrix fits into group memory */
  EIGEN_MOST = 256, /* rows at all: a step's latency times the square of their number is what a matrix takes */
  EIGEN_SMALL_THREADS = 64,
  EIGEN_LARGE_THREADS = 256,
};

/* A group takes matrices in turn: up to EIGEN_SMALL rows in group memory, more in h. Element (i, j) of matrix
 * b lies at b * stride + i * row + j * column. What is done to a matrix is in eigen_core.h. */
struct eigen_args {
  const void *a;
  void *h;       /* (batch, n, n) to work in, of eigen_large */
  void *z, *x;   /* (batch, n, n) and (batch, n, n, 2) to work in; or NULL, where no vectors are wanted */
  void *values;  /* (batch, n, 2): pairs of reals */
  void *vectors; /* (batch, n, n, 2): the vector of value j is row j; or NULL */
  int32_t *info; /* (batch): 0, or how many values were not found */
  int64_t stride, row, column;
  uint32_t n, batch;
};

#define RDNA_EIGEN_KERNELS(X)                                                  \
  X(eigen_small_f32, struct eigen_args, EIGEN_SMALL_THREADS, rdna__eigen_case) \
  X(eigen_small_f64, struct eigen_args, EIGEN_SMALL_THREADS, rdna__eigen_case) \
  X(eigen_large_f32, struct eigen_args, EIGEN_LARGE_THREADS, rdna__eigen_case) \
  X(eigen_large_f64, struct eigen_args, EIGEN_LARGE_THREADS, rdna__eigen_case)

#endif
