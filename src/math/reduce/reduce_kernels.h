/* Reductions of rows to one value each. Groups take rows in turn, so any grid is right; the order of additions
 * depends on the number of columns and the wave's width alone. */
#ifndef RDNA_MATH_REDUCE_KERNELS_H
#define RDNA_MATH_REDUCE_KERNELS_H

#include <stdint.h>

enum { REDUCE_THREADS = 1024 };
/* A wave takes a row that is short or one of many; otherwise a work-group does. */
#define REDUCE_BY_WAVE(rows, cols) ((cols) <= 2048 || ((rows) >= 1024 && (cols) <= 65536))

/* out = index of the largest value; the first of equals; a NaN is larger than any number */
struct argmax_args {
  const void *x; /* (rows, cols), cols in 1..2^31-1 */
  int32_t *out;  /* (rows) */
  int64_t rows, cols, x_stride;
};

/* sum: out = scale * sum of the row, 0 when cols is 0. max: out = scale * the largest value, NaN if there is
 * one; cols > 0. */
struct reduce_args {
  const void *x; /* (rows, cols) */
  float *out;    /* (rows) */
  int64_t rows, cols, x_stride;
  float scale;
};

#define RDNA_REDUCE_KERNELS(X)                                              \
  X(argmax_rows_f32, struct argmax_args, REDUCE_THREADS, rdna__argmax_case) \
  X(sum_rows_f32, struct reduce_args, REDUCE_THREADS, rdna__reduce_case)    \
  X(sum_rows_f16, struct reduce_args, REDUCE_THREADS, rdna__reduce_case)    \
  X(sum_rows_bf16, struct reduce_args, REDUCE_THREADS, rdna__reduce_case)   \
  X(max_rows_f32, struct reduce_args, REDUCE_THREADS, rdna__reduce_case)    \
  X(max_rows_f16, struct reduce_args, REDUCE_THREADS, rdna__reduce_case)    \
  X(max_rows_bf16, struct reduce_args, REDUCE_THREADS, rdna__reduce_case)

#endif
