/* Gradients of layer_norm and rms_norm. */
#ifndef RDNA_MATH_NORM_BACKWARD_KERNELS_H
#define RDNA_MATH_NORM_BACKWARD_KERNELS_H

#include <stdint.h>

/* With y = (x - mean) / deviation, where the mean is 0 for rms_norm, and g = dout * weight:
 *     dx = (g - mean(g) - y * mean(g * y)) / deviation, without mean(g) for rms_norm.
 * Mean and deviation are found again from x, which is read anyway.
 *
 * Row r belongs to slice r % slices, and a group does slices in turn, so any grid is right. Columns are summed within
 * a slice here and over the slices by column_sum, so the result depends on |slices| and the wave's width alone. */
enum {
  NORM_BACKWARD_THREADS = 256,
  NORM_BACKWARD_WAVE_COLS = 512,
  NORM_BACKWARD_HELD_COLS = 4096,
  NORM_BACKWARD_LONG_COLS = 8192
};

struct norm_backward_args {
  const void *dout;   /* (rows, cols) */
  const void *x;      /* (rows, cols) */
  const void *weight; /* (cols), or NULL for ones */
  void *dx;           /* (rows, cols), rows dx_stride apart; may be dout or x */
  float *partial;     /* (2, slices, cols): sums of dout * y, then of dout */
  int64_t rows, cols, slices;
  int64_t dout_stride, x_stride, dx_stride;
  float epsilon;
  uint32_t centred; /* 1: layer_norm, 0: rms_norm */
};

/* out[m][c] = sum over r of partial[m][r][c], where m is the group's y; nothing for an |out| that is NULL. 32 columns a
 * group. */
enum { COLUMN_SUM_THREADS = 256, COLUMN_SUM_COLS = 32 };
struct column_sum_args {
  const float *partial; /* (2, rows, cols) */
  void *out[2];         /* (cols) */
  int64_t rows, cols;
  uint32_t dtype[2]; /* of out: an rdna_dtype, f32, f16 or bf16 */
};

/* suffix of the name, type of the values, type of the weights */
#define RDNA__NORM_BACKWARD_TYPES(TYPE) \
  TYPE(f32, f32, f32)                   \
  TYPE(f16, f16, f16)                   \
  TYPE(bf16, bf16, bf16)                \
  TYPE(f16_wf32, f16, f32)              \
  TYPE(bf16_wf32, bf16, f32)

/* name, argument struct, threads of a group, maker of random cases; rows of more than NORM_BACKWARD_HELD_COLS values
 * are for norm_backward_long */
#define RDNA_NORM_BACKWARD_KERNELS(X)                                                                         \
  X(norm_backward_f32, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)            \
  X(norm_backward_f16, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)            \
  X(norm_backward_bf16, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)           \
  X(norm_backward_f16_wf32, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)       \
  X(norm_backward_bf16_wf32, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)      \
  X(norm_backward_long_f32, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)       \
  X(norm_backward_long_f16, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)       \
  X(norm_backward_long_bf16, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)      \
  X(norm_backward_long_f16_wf32, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)  \
  X(norm_backward_long_bf16_wf32, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case) \
  X(column_sum, struct column_sum_args, COLUMN_SUM_THREADS, rdna__column_sum_case)

#endif
