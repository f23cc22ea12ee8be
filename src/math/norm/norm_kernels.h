/* Norms of rows. Groups take rows in turn, so any grid is right. Who takes a row depends on its length; "aligned" rows
 * begin at multiples of 16 bytes and have whole vectors of 16 bytes:
 *
 *     kernel     | rows of up to                | a row belongs to
 *     norm       | NORM_LANES_BYTES, aligned    | some lanes of a wave, the next rows in flight
 *                | NORM_SHORT_BYTES, aligned    | a wave
 *                | NORM_WAVE_COLS, unaligned    | a wave, value by value
 *                | NORM_AHEAD_BYTES, aligned    | a group, the next row in flight
 *                | NORM_KEPT_COLS, aligned      | a group, in registers
 *                | any length, aligned          | a group, read again for the second pass
 *     _waves     | NORM_WAVE_BYTES, aligned     | a wave: for many rows
 *     _shifted   | NORM_SHIFTED_BYTES           | a group, at any alignment, the next row in flight
 *
 * Where the next row is in flight the grid should be no larger than what runs at once. */
#ifndef RDNA_MATH_NORM_KERNELS_H
#define RDNA_MATH_NORM_KERNELS_H

#include <stdint.h>

enum {
  NORM_THREADS = 256,
  NORM_WAVE_COLS = 512,
  NORM_LANES_BYTES = 1536, /* three vectors of 16 bytes for each of 32 lanes, or fewer lanes */
  NORM_SHORT_BYTES = 2048,
  NORM_AHEAD_BYTES = 8192,
  NORM_WAVE_BYTES = 8192,
  NORM_SHIFTED_BYTES = 8192,
  NORM_KEPT_COLS = 8192 /* values of a row that a group's registers hold */
};

/* out = x / sqrt(mean(x^2) + epsilon) * weight */
struct rms_norm_args {
  const void *x;      /* (rows, cols), rows x_stride elements apart */
  const void *weight; /* (cols), or NULL for ones */
  void *out;          /* (rows, cols), rows out_stride elements apart */
  int64_t rows, cols;
  int64_t x_stride, out_stride;
  float epsilon;
};

/* residual += x, rounded; out = residual / sqrt(mean(residual^2) + epsilon) * weight */
struct add_rms_norm_args {
  const void *x;      /* (rows, cols) */
  void *residual;     /* (rows, cols) */
  const void *weight; /* (cols), or NULL for ones */
  void *out;          /* (rows, cols) */
  int64_t rows, cols;
  int64_t x_stride, residual_stride, out_stride;
  float epsilon;
};

/* out = (x - mean) * inverse * weight + bias with mean(x) and inverse = 1 / sqrt(variance(x) + epsilon) */
struct layer_norm_args {
  const void *x;         /* (rows, cols) */
  const void *weight;    /* (cols), or NULL for ones */
  const void *bias;      /* (cols), or NULL for zeros */
  void *out;             /* (rows, cols) */
  float *mean, *inverse; /* (rows), or NULL where they are not wanted */
  int64_t rows, cols;
  int64_t x_stride, out_stride;
  float epsilon;
};

/* suffix of the name, type of the values, type of the weights */
#define RDNA__NORM_TYPES(TYPE) \
  TYPE(f32, f32, f32)          \
  TYPE(f16, f16, f16)          \
  TYPE(bf16, bf16, bf16)       \
  TYPE(f16_wf32, f16, f32)     \
  TYPE(bf16_wf32, bf16, f32)

#define RDNA__NORM_TYPE_KERNELS(X, suffix)                                               \
  X(rms_norm_##suffix, struct rms_norm_args, 256, rdna__rms_norm_case)                   \
  X(rms_norm_waves_##suffix, struct rms_norm_args, 256, rdna__rms_norm_case)             \
  X(add_rms_norm_##suffix, struct add_rms_norm_args, 256, rdna__add_rms_norm_case)       \
  X(add_rms_norm_waves_##suffix, struct add_rms_norm_args, 256, rdna__add_rms_norm_case) \
  X(layer_norm_##suffix, struct layer_norm_args, 256, rdna__layer_norm_case)             \
  X(layer_norm_waves_##suffix, struct layer_norm_args, 256, rdna__layer_norm_case)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_NORM_KERNELS(X)           \
  RDNA__NORM_TYPE_KERNELS(X, f32)      \
  RDNA__NORM_TYPE_KERNELS(X, f16)      \
  RDNA__NORM_TYPE_KERNELS(X, bf16)     \
  RDNA__NORM_TYPE_KERNELS(X, f16_wf32) \
  RDNA__NORM_TYPE_KERNELS(X, bf16_wf32)

#define RDNA__SHIFTED_NORM(X, suffix)                                                      \
  X(rms_norm_shifted_##suffix, struct rms_norm_args, 256, rdna__rms_norm_case)             \
  X(add_rms_norm_shifted_##suffix, struct add_rms_norm_args, 256, rdna__add_rms_norm_case) \
  X(layer_norm_shifted_##suffix, struct layer_norm_args, 256, rdna__layer_norm_case)
#define RDNA_SHIFTED_NORM_KERNELS(X) \
  RDNA__SHIFTED_NORM(X, f32)         \
  RDNA__SHIFTED_NORM(X, f16)         \
  RDNA__SHIFTED_NORM(X, bf16)        \
  RDNA__SHIFTED_NORM(X, f16_wf32)    \
  RDNA__SHIFTED_NORM(X, bf16_wf32)

#endif
