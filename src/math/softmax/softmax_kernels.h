/* Softmax of rows: out = exp(scale x - top) / sum, or with |log| scale x - top - log(sum). As PyTorch: a NaN or a
 * +inf in a row, or nothing but -inf, makes the row NaN. */
#ifndef RDNA_MATH_SOFTMAX_KERNELS_H
#define RDNA_MATH_SOFTMAX_KERNELS_H

#include <stdint.h>

/* A row belongs to a wave if |waves|, else to a work-group; groups take rows in turn, so any grid is right. Rows of up
 * to SOFTMAX_SHORT_BYTES may be a wave's of softmax, those of up to SOFTMAX_WAVE_BYTES a wave's of softmax_held, which
 * else has rows of up to SOFTMAX_HELD_BYTES. Where there are too few rows for all of a GPU, the parts of a longer one
 * go to groups of their own: softmax_part, then softmax_finish. */
enum {
  SOFTMAX_THREADS = 256,
  SOFTMAX_SHORT_BYTES = 2048,
  SOFTMAX_WAVE_BYTES = 8192,
  SOFTMAX_GROUP_BYTES = 16384, /* what a group's threads hold in few registers */
  SOFTMAX_HELD_BYTES = 65536,  /* in many */
  SOFTMAX_PART_VECTORS = 1024, /* of 16 bytes, that a group has at once; operators' parts are multiples of it */
  SOFTMAX_MOST_PARTS = 512     /* of a row: every group of softmax_finish reads all their states */
};

struct softmax_args {
  const void *x; /* (rows, cols) */
  void *out;     /* (rows, cols) */
  int64_t rows, cols;
  int64_t x_stride, out_stride; /* values from row to row */
  float scale;
  uint32_t log;   /* 0 or 1 */
  uint32_t waves; /* 0 or 1 */
};

/* Part p of a row has |part_vectors| of its vectors of 16 bytes from p * part_vectors on, as row_edges_of sees x, or
 * fewer; part 0 has the single values before and after them too. Groups take parts in turn, so any grid is right. */
struct softmax_part_args {
  const void *x; /* (rows, cols) */
  float *states; /* (rows, parts, 2): maximum of scale x, and the sum of exp(scale x - maximum), 0 where all are -inf */
  int64_t rows, cols, x_stride;
  int64_t parts, part_vectors;
  float scale;
};
struct softmax_finish_args {
  const void *x;       /* (rows, cols) */
  const float *states; /* (rows, parts, 2) */
  void *out;           /* (rows, cols) */
  int64_t rows, cols, x_stride, out_stride;
  int64_t parts, part_vectors;
  float scale;
  uint32_t log; /* 0 or 1 */
};

#define RDNA__SOFTMAX_TYPE(X, type)                                                          \
  X(softmax_##type, struct softmax_args, SOFTMAX_THREADS, rdna__softmax_case)                \
  X(softmax_held_##type, struct softmax_args, SOFTMAX_THREADS, rdna__softmax_held_case)      \
  X(softmax_part_##type, struct softmax_part_args, SOFTMAX_THREADS, rdna__softmax_part_case) \
  X(softmax_finish_##type, struct softmax_finish_args, SOFTMAX_THREADS, rdna__softmax_finish_case)

#define RDNA_SOFTMAX_KERNELS(X) \
  RDNA__SOFTMAX_TYPE(X, f32)    \
  RDNA__SOFTMAX_TYPE(X, f16)    \
  RDNA__SOFTMAX_TYPE(X, bf16)

#endif
