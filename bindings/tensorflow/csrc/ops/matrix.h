/* Matrices as librdna's factorizations take them: three dimensions, the first a batch. */
#ifndef RDNA_TENSORFLOW_MATRIX_H
#define RDNA_TENSORFLOW_MATRIX_H

#include "kernel.h"

/* Input |i|, of rank 2 at least. */
rdna_status call_matrices(call *c, int i, bool square, rdna_tensor *out_tensor);
/* The dimensions before the last two as one. */
rdna_tensor batch_of(const rdna_tensor *x);
/* A copy without gaps in scratch memory. */
rdna_status copy_of(call *c, const rdna_tensor *x, rdna_tensor *out_tensor);
/* A view of the diagonal, in the last dimension, that begins in column |first| or in row -|first|. */
rdna_tensor diagonal_of(const rdna_tensor *x, int64_t first);
/* a (batch, m, n) = q r; |q| is (batch, m, m or min(m, n)), |r| (batch, as many, n). Either may be NULL. */
rdna_status factor_qr(call *c, const rdna_tensor *a, const rdna_tensor *q, const rdna_tensor *r);

#endif
