/* What the operators over matrix products share. */
#ifndef RDNA_MATH_GEMM_H
#define RDNA_MATH_GEMM_H

#include <stdbool.h>

#include "base/status.h"
#include "math/gemm/gemm_kernels.h"
#include "rdna/kernel.h"
#include "rdna/tensor.h"

/* A matrix, or a batch of them, as the kernels see it. */
typedef struct rdna__matrix {
  int64_t rows, columns, batch;
  int64_t ld, stride; /* elements between rows as stored, and between matrices */
  bool turned;        /* element (i, j) lies at j * ld + i instead of i * ld + j */
} rdna__matrix;

/* Reads the last two dimensions of |tensor|, of rank 2 or 3. RDNA_UNSUPPORTED when neither is contiguous. */
rdna_status rdna__matrix_view(const char *operator, const char * argument, const rdna_tensor *tensor,
                              rdna__matrix *out_matrix);

/* The matrix that is written: not turned, and no element twice. */
rdna_status rdna__matrix_check_written(const char *operator, const char * argument, const rdna_tensor *tensor,
                                       const rdna__matrix *matrix);

/* |bias|, unless it is NULL, is a contiguous (n) of |out|'s type and apart from it. */
rdna_status rdna__check_bias(const char *operator, const rdna_tensor * bias, const rdna_tensor *out, int64_t n);

/* Picks the kernel for the types and the shape and queues it; |args| is complete but for m, n, k and batch.
 * RDNA_UNSUPPORTED: no kernel for these types, or a size past 31 bits. */
rdna_status rdna__gemm_launch(rdna_stream *stream, const char *operator, const rdna_dtype types[3],
                              struct gemm_args args, int64_t m, int64_t n, int64_t k, int64_t batch);

#endif
