/* QR by Householder's reflections: what is done inside of a panel of columns. */
#ifndef RDNA_MATH_LINALG_QR_KERNELS_H
#define RDNA_MATH_LINALG_QR_KERNELS_H

#include <stdint.h>

enum { QR_BLOCK = 32, QR_SMALL_ROWS = 128, QR_SMALL_THREADS = 256, QR_TALL_THREADS = 1024 };

/* Factors a panel of n columns and m >= n rows in place. Reflection j is 1 - tau[j] v v^T; its vector v is 0 in rows
 * before j, 1 in row j, which is not stored, and stands below the diagonal in column j:
 *
 *     r r r     m = 5, n = 3
 *     v r r
 *     v v r
 *     v v v
 *     v v v
 *
 * With |given| the panel is factored already, and is only read. Element (i, j) of matrix b lies at b * stride + i * row
 * + j * column.
 *
 * Also writes the vectors as rows, v (batch, n, m), and an upper triangular t (batch, n, n), so that the product of all
 * reflections is 1 - v^T t v (the compact WY form: Schreiber and Van Loan, 1989).
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
