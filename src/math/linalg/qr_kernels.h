/* QR by Householder's reflections: what is done inside of a panel of columns. */
#ifndef RDNA_MATH_LINALG_QR_KERNELS_H
#define RDNA_MATH_LINALG_QR_KERNELS_H

#include <stdint.h>

enum { QR_BLOCK = 32, QR_SMALL_ROWS = 128, QR_SMALL_THREADS = 256, QR_TALL_THREADS = 1024 };

/* A panel of n columns and m >= n rows becomes, in place, R on and above the diagonal, and below it the vectors of the
 * reflections H = 1 - tau v v^T, in whose order number j v is 0 in rows before j and 1 in row j. With |given| that is
 * what the panel is already, and it is only read. Element (i, j) of matrix b lies at b * stride + i * row + j * column.
 *
 * Of them all v is made, (batch, n, m), and t, (batch, n, n), so that their product is 1 - v^T t v with t upper
 * triangular (the compact WY form: Schreiber and Van Loan, 1989).
 *
 * A group takes matrices in turn: up to QR_SMALL_ROWS rows in group memory, more where they are. */
struct qr_args {
  void *a, *tau; /* (batch, tau_stride) */
  void *v, *t;   /* or NULL */
  int64_t stride, row, column, tau_stride;
  uint32_t m, n; /* n up to QR_BLOCK */
  uint32_t batch, given;
};

#define RDNA_QR_KERNELS(X)                                         \
  X(qr_small_f32, struct qr_args, QR_SMALL_THREADS, rdna__qr_case) \
  X(qr_small_f64, struct qr_args, QR_SMALL_THREADS, rdna__qr_case) \
  X(qr_tall_f32, struct qr_args, QR_TALL_THREADS, rdna__qr_case)   \
  X(qr_tall_f64, struct qr_args, QR_TALL_THREADS, rdna__qr_case)

#endif
