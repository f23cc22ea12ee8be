/* Gradients of softmax and log-softmax, and both of them along any dimension. */
#ifndef RDNA_MATH_SOFTMAX_BACKWARD_KERNELS_H
#define RDNA_MATH_SOFTMAX_BACKWARD_KERNELS_H

#include <stdint.h>

/* Rows of up to SOFTMAX_BACKWARD_WAVE_COLS values, or of half as many that do not allow 16-byte accesses, belong to a
 * wave, longer ones to a work-group; of more than SOFTMAX_BACKWARD_HELD_COLS, to one of softmax_backward_long. Groups
 * take rows in turn, so any grid is right. Where there are too few rows for all of a GPU, the parts of a long one go to
 * groups of their own: softmax_backward_part, then softmax_backward_finish. */
enum {
  SOFTMAX_BACKWARD_THREADS = 256,
  SOFTMAX_BACKWARD_WAVE_COLS = 1024,
  SOFTMAX_BACKWARD_HELD_COLS = 4096,
  SOFTMAX_BACKWARD_PART_COLS = 8192, /* operators' parts are multiples of it */
  SOFTMAX_BACKWARD_MOST_PARTS = 1024 /* of a row: every group of softmax_backward_finish reads all their sums */
};

/* With y = out:  dx = scale * y * (dout - sum(dout * y)), or for the logarithm scale * (dout - exp(y) * sum(dout)) */
struct softmax_backward_args {
  const void *dout; /* (rows, cols) */
  const void *out;  /* (rows, cols): what the forward gave */
  void *dx;         /* (rows, cols); may be dout or out */
  int64_t rows, cols;
  int64_t dout_stride, out_stride, dx_stride; /* values from row to row */
  float scale;
  uint32_t log; /* 0 or 1 */
};

/* Part p of a row is its columns from p * part_cols on, a multiple of 8. softmax_backward_part writes sum(dout * y), or
 * sum(dout), of each; softmax_backward_finish reads them and writes dx. Groups take parts in turn, so any grid is
 * right. */
struct softmax_backward_part_args {
  const void *dout; /* (rows, cols) */
  const void *out;  /* (rows, cols) */
  void *dx;         /* (rows, cols); may be dout or out; not used by softmax_backward_part but for its alignment */
  float *sums;      /* (rows, parts) */
  int64_t rows, cols;
  int64_t dout_stride, out_stride, dx_stride;
  int64_t parts, part_cols;
  float scale;
  uint32_t log; /* 0 or 1 */
};

/* Along the middle of three dimensions; see softmax_args for the values. A thread has 16 bytes of inner, or one value;
 * groups take them in turn, so any grid is right. */
struct softmax_dim_args {
  const void *x; /* (outer, cols, inner) */
  void *out;     /* (outer, cols, inner); may be x */
  int64_t outer, cols, inner;
  float scale;
  uint32_t log; /* 0 or 1 */
};
struct softmax_dim_backward_args {
  const void *dout; /* (outer, cols, inner) */
  const void *out;  /* (outer, cols, inner) */
  void *dx;         /* (outer, cols, inner); may be dout or out */
  int64_t outer, cols, inner;
  float scale;
  uint32_t log; /* 0 or 1 */
};

#define RDNA__SOFTMAX_BACKWARD_TYPE(X, type)                                                                      \
  X(softmax_backward_##type, struct softmax_backward_args, SOFTMAX_BACKWARD_THREADS, rdna__softmax_backward_case) \
  X(softmax_backward_long_##type, struct softmax_backward_args, SOFTMAX_BACKWARD_THREADS,                         \
    rdna__softmax_backward_long_case)                                                                             \
  X(softmax_backward_part_##type, struct softmax_backward_part_args, SOFTMAX_BACKWARD_THREADS,                    \
    rdna__softmax_backward_part_case)                                                                             \
  X(softmax_backward_finish_##type, struct softmax_backward_part_args, SOFTMAX_BACKWARD_THREADS,                  \
    rdna__softmax_backward_finish_case)                                                                           \
  X(softmax_dim_##type, struct softmax_dim_args, SOFTMAX_BACKWARD_THREADS, rdna__softmax_dim_case)                \
  X(softmax_dim_backward_##type, struct softmax_dim_backward_args, SOFTMAX_BACKWARD_THREADS,                      \
    rdna__softmax_dim_backward_case)

#define RDNA_SOFTMAX_BACKWARD_KERNELS(X) \
  RDNA__SOFTMAX_BACKWARD_TYPE(X, f32)    \
  RDNA__SOFTMAX_BACKWARD_TYPE(X, f16)    \
  RDNA__SOFTMAX_BACKWARD_TYPE(X, bf16)

#endif
