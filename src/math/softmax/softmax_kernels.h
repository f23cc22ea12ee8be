/* Softmax of rows: out = exp(scale x - top) / sum, or with |log| scale x - top - log(sum). As PyTorch: a NaN or a
 * +inf in a row, or nothing but -inf, makes the row NaN. */
#ifndef RDNA_MATH_SOFTMAX_KERNELS_H
#define RDNA_MATH_SOFTMAX_KERNELS_H

#include <stdint.h>

/* Rows of up to SOFTMAX_WAVE_BYTES, or of SOFTMAX_WAVE_COLS values where they do not allow 16-byte accesses, belong to
 * a wave, longer ones to a work-group. Groups take rows in turn, so any grid is right. */
enum { SOFTMAX_THREADS = 256, SOFTMAX_WAVE_COLS = 512, SOFTMAX_WAVE_BYTES = 8192 };

struct softmax_args {
  const void *x; /* (rows, cols) */
  void *out;     /* (rows, cols) */
  int64_t rows, cols;
  int64_t x_stride, out_stride; /* values from row to row */
  float scale;
  uint32_t log; /* 0 or 1 */
};

#define RDNA_SOFTMAX_KERNELS(X)                                            \
  X(softmax_f32, struct softmax_args, SOFTMAX_THREADS, rdna__softmax_case) \
  X(softmax_f16, struct softmax_args, SOFTMAX_THREADS, rdna__softmax_case) \
  X(softmax_bf16, struct softmax_args, SOFTMAX_THREADS, rdna__softmax_case)

#endif
