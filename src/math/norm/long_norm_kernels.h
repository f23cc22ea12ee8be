/* Norms of rows that are long and few, in parts that groups of their own take: long_norm_part, then long_norm_finish.
 * Formulas are those of norm_kernels.h. */
#ifndef RDNA_MATH_LONG_NORM_KERNELS_H
#define RDNA_MATH_LONG_NORM_KERNELS_H

#include <stdint.h>

#include "math/norm/norm_kernels.h"

/* Part p of a row is its columns p * part_cols to (p + 1) * part_cols. The parts are numbered part 0 of all rows, part
 * 1 of all rows, and so on; each group takes consecutive numbers, so any grid is right. The next part is in flight, so
 * the grid should be no larger than what runs at once. */
enum {
  LONG_NORM_THREADS = 256,
  LONG_NORM_STEP_BYTES = 16384, /* a part is one or more of them */
  LONG_NORM_MOST_PARTS = 512    /* of a row: every wave of long_norm_finish reads what is known of them all */
};

struct long_norm_part_args {
  const void *x;         /* (rows, cols) */
  void *residual;        /* (rows, cols), to which x is added first, rounded, so that the sums are of it; or NULL */
  float *mean, *squares; /* (rows, parts): mean, 0 unless centred, and the sum of squared distances from it;
                          * of a part with an infinite value the mean is not finite and, centred, the sum is NaN */
  int64_t rows, cols, parts, part_cols;
  int64_t x_stride, residual_stride;
  uint32_t centred;
};

/* out = (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance from those of the parts */
struct long_norm_finish_args {
  const void *x;               /* (rows, cols) */
  const void *weight;          /* (cols), or NULL for ones */
  const void *bias;            /* (cols), or NULL for zeros */
  const float *mean, *squares; /* (rows, parts) */
  void *out;                   /* (rows, cols); may be x */
  float *row_mean, *inverse;   /* (rows), or NULL where they are not wanted */
  int64_t rows, cols, parts, part_cols;
  int64_t x_stride, out_stride;
  float epsilon;
};

#define RDNA__LONG_NORM_FINISH(X, suffix) \
  X(long_norm_finish_##suffix, struct long_norm_finish_args, LONG_NORM_THREADS, rdna__long_norm_finish_case)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_LONG_NORM_KERNELS(X)                                                                  \
  X(long_norm_part_f32, struct long_norm_part_args, LONG_NORM_THREADS, rdna__long_norm_part_case)  \
  X(long_norm_part_f16, struct long_norm_part_args, LONG_NORM_THREADS, rdna__long_norm_part_case)  \
  X(long_norm_part_bf16, struct long_norm_part_args, LONG_NORM_THREADS, rdna__long_norm_part_case) \
  RDNA__LONG_NORM_FINISH(X, f32)                                                                   \
  RDNA__LONG_NORM_FINISH(X, f16)                                                                   \
  RDNA__LONG_NORM_FINISH(X, bf16)                                                                  \
  RDNA__LONG_NORM_FINISH(X, f16_wf32)                                                              \
  RDNA__LONG_NORM_FINISH(X, bf16_wf32)

#endif
