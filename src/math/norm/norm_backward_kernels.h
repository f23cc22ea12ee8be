/* Gradients of layer_norm and rms_norm. */
#ifndef RDNA_MATH_NORM_BACKWARD_KERNELS_H
#define RDNA_MATH_NORM_BACKWARD_KERNELS_H

#include <stdint.h>

/* With y = (x - mean) / deviation, where the mean is 0 for rms_norm, and g = dout * weight:
 *     dx = (g - mean(g) - y * mean(g * y)) / deviation, without mean(g) for rms_norm.
 * Mean and deviation are found again from x, which is read anyway, unless they are given.
 *
 * dweight and dbias are sums over rows: a slice is some of the rows, whose columns one group sums, and column_sum adds
 * up the slices. Row r belongs to slice r % slices; but norm_backward_short's slice s is rows s * rows / slices to (s +
 * 1) * rows / slices. Groups take slices in turn, so any grid is right, and the result depends on |slices| and the
 * wave's width alone.
 *
 * "Aligned": pointers and strides of rows are multiples of 16 bytes.
 *
 *     kernel                  | columns up to            | rows
 *     norm_backward_short     | NORM_BACKWARD_WAVE_COLS  | aligned
 *     norm_backward           | NORM_BACKWARD_WAVE_COLS  | any
 *     norm_backward           | NORM_BACKWARD_HELD_COLS  | aligned
 *     norm_backward_long      | NORM_BACKWARD_LONG_COLS  | aligned, 16-bit values
 *     norm_backward_edged     | NORM_BACKWARD_HELD_COLS  | of a slice all as far from 16 bytes, in x, dout and dx
 *     norm_backward_shifted   | NORM_BACKWARD_HELD_COLS  | any, 16-bit values
 *     norm_parts, norm_join, norm_columns: any
 */
enum {
  NORM_BACKWARD_THREADS = 256,
  NORM_BACKWARD_WAVE_COLS = 512,
  NORM_BACKWARD_HELD_COLS = 4096,
  NORM_BACKWARD_LONG_COLS = 8192,
  NORM_BACKWARD_PART_COLS = 4096,
  NORM_JOIN_WAVE_PARTS = 64,
  NORM_BACKWARD_SINGLES = 4 /* columns of a thread of norm_columns where it has no 16-byte accesses */
};

struct norm_backward_args {
  const void *dout;   /* (rows, cols) */
  const void *x;      /* (rows, cols) */
  const void *weight; /* (cols), or NULL for ones */
  void *dx;           /* (rows, cols), rows dx_stride apart; may be dout or x */
  float *partial;     /* (2, slices, cols): sums of dout * y, then of dout */
  const float *mean;  /* (rows), and 1 / deviation likewise; or both NULL */
  const float *inverse;
  int64_t rows, cols, slices;
  int64_t dout_stride, x_stride, dx_stride;
  float epsilon;
  uint32_t centred; /* 1: layer_norm, 0: rms_norm */
};

/* Part p of a row is its columns p * NORM_BACKWARD_PART_COLS to (p + 1) * NORM_BACKWARD_PART_COLS. Of each part of each
 * row: the mean (0 unless centred) and, with y = x - mean, the sums of y^2, g y and g. The parts are numbered part 0 of
 * all rows, part 1 of all rows, and so on; each group takes consecutive numbers, the next in flight, so the grid should
 * be no larger than what runs at once. */
struct norm_parts_args {
  const void *dout;               /* (rows, cols) */
  const void *x;                  /* (rows, cols) */
  const void *weight;             /* (cols), or NULL for ones */
  float *mean, *squares, *gy, *g; /* (rows, parts) */
  int64_t rows, cols, parts;
  int64_t dout_stride, x_stride;
  uint32_t centred;
};
/* Joins the parts of each row to what dx takes of it. Waves take rows in turn, or groups do where a row has more than
 * NORM_JOIN_WAVE_PARTS parts. */
struct norm_join_args {
  const float *mean, *squares, *gy, *g;    /* (rows, parts) */
  const float *given_mean, *given_inverse; /* (rows), or both NULL */
  float *statistics; /* (rows, 4): mean, i = 1 / deviation, -mean(g) i or 0 unless centred, -mean(g * y) i */
  int64_t rows, cols, parts;
  float epsilon;
  uint32_t centred;
};
/* Computes dx and the slices' column sums. Groups take slabs of columns in turn. Row rows - 1 - r belongs to slice r %
 * slices. */
struct norm_columns_args {
  const void *dout;        /* (rows, cols) */
  const void *x;           /* (rows, cols) */
  const void *weight;      /* (cols), or NULL for ones */
  const float *statistics; /* (rows, 4) */
  void *dx;                /* (rows, cols); may be dout or x */
  float *partial;          /* (2, slices, cols): sums of dout * y, then of dout; or NULL where there is one slice */
  void *sums[2];           /* (cols): where |partial| is NULL, the same, each unless it is NULL */
  int64_t rows, cols, slices;
  int64_t dout_stride, x_stride, dx_stride;
  uint32_t sums_f32[2]; /* 0: of x's type, 1: f32 */
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
#define RDNA__NORM_BACKWARD_TYPES_16(TYPE) \
  TYPE(f16, f16, f16)                      \
  TYPE(bf16, bf16, bf16)                   \
  TYPE(f16_wf32, f16, f32)                 \
  TYPE(bf16_wf32, bf16, f32)
#define RDNA__NORM_BACKWARD_TYPES(TYPE) \
  TYPE(f32, f32, f32)                   \
  RDNA__NORM_BACKWARD_TYPES_16(TYPE)

#define RDNA__NORM_BACKWARD_TYPE(X, suffix)                                                                   \
  X(norm_backward_##suffix, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)       \
  X(norm_backward_edged_##suffix, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case) \
  X(norm_backward_short_##suffix, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case) \
  X(norm_parts_##suffix, struct norm_parts_args, NORM_BACKWARD_THREADS, rdna__norm_parts_case)                \
  X(norm_columns_##suffix, struct norm_columns_args, NORM_BACKWARD_THREADS, rdna__norm_columns_case)
#define RDNA__NORM_BACKWARD_16(X, suffix)                                                                       \
  X(norm_backward_shifted_##suffix, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case) \
  X(norm_backward_long_##suffix, struct norm_backward_args, NORM_BACKWARD_THREADS, rdna__norm_backward_case)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_NORM_BACKWARD_KERNELS(X)                                              \
  RDNA__NORM_BACKWARD_TYPE(X, f32)                                                 \
  RDNA__NORM_BACKWARD_TYPE(X, f16)                                                 \
  RDNA__NORM_BACKWARD_TYPE(X, bf16)                                                \
  RDNA__NORM_BACKWARD_TYPE(X, f16_wf32)                                            \
  RDNA__NORM_BACKWARD_TYPE(X, bf16_wf32)                                           \
  RDNA__NORM_BACKWARD_16(X, f16)                                                   \
  RDNA__NORM_BACKWARD_16(X, bf16)                                                  \
  RDNA__NORM_BACKWARD_16(X, f16_wf32)                                              \
  RDNA__NORM_BACKWARD_16(X, bf16_wf32)                                             \
  X(norm_join, struct norm_join_args, NORM_BACKWARD_THREADS, rdna__norm_join_case) \
  X(column_sum, struct column_sum_args, COLUMN_SUM_THREADS, rdna__column_sum_case)

#endif
