#include <math.h>

#include "math/common/host/values.h"
#include "math/norm/narrow_norm_kernels.h"

/* Rows that a thread takes at least, so that a piece is worth its start. */
static int64_t row_grain(int64_t cols) { return cols < 16384 ? 16384 / (cols + 1) + 1 : 1; }

/* Sums of a run in f32, lane by lane; the caller adds runs in double. */
SIMD_INLINE float run_sum(const float *v, int64_t n) {
  simd_float sum = {0};
  float rest = 0;
  int64_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) sum += simd_load(v + i);
  for (; i < n; i++) rest += v[i];
  return simd_sum(sum) + rest;
}
SIMD_INLINE float run_square_sum(const float *v, int64_t n, float mean) {
  simd_float sum = {0}, means = simd_set(mean);
  float rest = 0;
  int64_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) {
    simd_float d = simd_load(v + i) - means;
    sum += d * d;
  }
  for (; i < n; i++) rest += (v[i] - mean) * (v[i] - mean);
  return simd_sum(sum) + rest;
}

/* residual += x, rounded */
#define ADD_ROW(suffix, from, type)                                                                  \
  SIMD_INLINE void add_row_##suffix(const STORED_##from *x, STORED_##type *residual, int64_t cols) { \
    float left[RUN], right[RUN];                                                                     \
    for (int64_t n, at = 0; at < cols; at += n) {                                                    \
      n = run_length(cols - at);                                                                     \
      float *to = room_##type(left, residual + at);                                                  \
      const float *a = read_##type(left, residual + at, n), *b = read_##from(right, x + at, n);      \
      EACH_APART                                                                                     \
      for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];                                           \
      write_##type(residual + at, to, n);                                                            \
    }                                                                                                \
  }

#define ROW_FUNCTIONS(type)                                                                             \
  ADD_ROW(type, type, type)                                                                             \
  SIMD_INLINE float row_mean_##type(const STORED_##type *x, int64_t cols) {                             \
    float buffer[RUN];                                                                                  \
    double sum = 0;                                                                                     \
    for (int64_t n, at = 0; at < cols; at += n) {                                                       \
      n = run_length(cols - at);                                                                        \
      sum += run_sum(read_##type(buffer, x + at, n), n);                                                \
    }                                                                                                   \
    return (float)(sum / (double)cols);                                                                 \
  }                                                                                                     \
  /* 1 / sqrt of the mean square about |mean| plus |epsilon| */                                         \
  SIMD_INLINE float row_scale_##type(const STORED_##type *x, int64_t cols, float mean, float epsilon) { \
    float buffer[RUN];                                                                                  \
    double sum = 0;                                                                                     \
    for (int64_t n, at = 0; at < cols; at += n) {                                                       \
      n = run_length(cols - at);                                                                        \
      sum += run_square_sum(read_##type(buffer, x + at, n), n, mean);                                   \
    }                                                                                                   \
    return 1.0f / sqrtf((float)(sum / (double)cols) + epsilon);                                         \
  }

/* (x - mean) * scale * weight + bias; weight and bias may be NULL. */
#define WRITE_ROW(suffix, from_type, type, weights)                                                               \
  SIMD_INLINE void write_row_##suffix(const STORED_##from_type *x, const STORED_##weights *weight,                \
                                      const STORED_##weights *bias, STORED_##type *out, int64_t cols, float mean, \
                                      float scale) {                                                              \
    float values[RUN], factors[RUN];                                                                              \
    for (int64_t n, at = 0; at < cols; at += n) {                                                                 \
      n = run_length(cols - at);                                                                                  \
      float *to = room_##type(values, out + at);                                                                  \
      const float *from = read_##from_type(values, x + at, n);                                                    \
      EACH_APART                                                                                                  \
      for (int64_t i = 0; i < n; i++) to[i] = (from[i] - mean) * scale;                                           \
      if (weight) {                                                                                               \
        const float *w = read_##weights(factors, weight + at, n);                                                 \
        EACH_APART                                                                                                \
        for (int64_t i = 0; i < n; i++) to[i] *= w[i];                                                            \
      }                                                                                                           \
      if (bias) {                                                                                                 \
        const float *b = read_##weights(factors, bias + at, n);                                                   \
        EACH_APART                                                                                                \
        for (int64_t i = 0; i < n; i++) to[i] += b[i];                                                            \
      }                                                                                                           \
      write_##type(out + at, to, n);                                                                              \
    }                                                                                                             \
  }

#define NORMS(suffix, type, weights)                                                       \
  WRITE_ROW(suffix, type, type, weights)                                                   \
  static void rms_norm_##suffix##_rows(void *context, int64_t begin, int64_t end) {        \
    const struct rms_norm_args *a = context;                                               \
    for (int64_t r = begin; r < end; r++) {                                                \
      const STORED_##type *x = (const STORED_##type *)a->x + r * a->x_stride;              \
      STORED_##type *out = (STORED_##type *)a->out + r * a->out_stride;                    \
      float scale = row_scale_##type(x, a->cols, 0, a->epsilon);                           \
      write_row_##suffix(x, a->weight, NULL, out, a->cols, 0, scale);                      \
    }                                                                                      \
  }                                                                                        \
  void RDNA_HOST_KERNEL(rms_norm_##suffix)(const void *args, rdna_grid grid) {             \
    struct rms_norm_args a = *(const struct rms_norm_args *)args;                          \
    rdna__parallel_for(a.rows, row_grain(a.cols), rms_norm_##suffix##_rows, &a);           \
  }                                                                                        \
  void RDNA_HOST_KERNEL(rms_norm_shifted_##suffix)(const void *args, rdna_grid grid) {     \
    RDNA_HOST_KERNEL(rms_norm_##suffix)(args, grid);                                       \
  }                                                                                        \
  void RDNA_HOST_KERNEL(rms_norm_waves_##suffix)(const void *args, rdna_grid grid) {       \
    RDNA_HOST_KERNEL(rms_norm_##suffix)(args, grid);                                       \
  }                                                                                        \
  static void add_rms_norm_##suffix##_rows(void *context, int64_t begin, int64_t end) {    \
    const struct add_rms_norm_args *a = context;                                           \
    for (int64_t r = begin; r < end; r++) {                                                \
      const STORED_##type *x = (const STORED_##type *)a->x + r * a->x_stride;              \
      STORED_##type *residual = (STORED_##type *)a->residual + r * a->residual_stride;     \
      STORED_##type *out = (STORED_##type *)a->out + r * a->out_stride;                    \
      add_row_##type(x, residual, a->cols);                                                \
      float scale = row_scale_##type(residual, a->cols, 0, a->epsilon);                    \
      write_row_##suffix(residual, a->weight, NULL, out, a->cols, 0, scale);               \
    }                                                                                      \
  }                                                                                        \
  void RDNA_HOST_KERNEL(add_rms_norm_##suffix)(const void *args, rdna_grid grid) {         \
    struct add_rms_norm_args a = *(const struct add_rms_norm_args *)args;                  \
    rdna__parallel_for(a.rows, row_grain(a.cols), add_rms_norm_##suffix##_rows, &a);       \
  }                                                                                        \
  void RDNA_HOST_KERNEL(add_rms_norm_shifted_##suffix)(const void *args, rdna_grid grid) { \
    RDNA_HOST_KERNEL(add_rms_norm_##suffix)(args, grid);                                   \
  }                                                                                        \
  void RDNA_HOST_KERNEL(add_rms_norm_waves_##suffix)(const void *args, rdna_grid grid) {   \
    RDNA_HOST_KERNEL(add_rms_norm_##suffix)(args, grid);                                   \
  }                                                                                        \
  static void layer_norm_##suffix##_rows(void *context, int64_t begin, int64_t end) {      \
    const struct layer_norm_args *a = context;                                             \
    for (int64_t r = begin; r < end; r++) {                                                \
      const STORED_##type *x = (const STORED_##type *)a->x + r * a->x_stride;              \
      STORED_##type *out = (STORED_##type *)a->out + r * a->out_stride;                    \
      float mean = row_mean_##type(x, a->cols);                                            \
      float scale = row_scale_##type(x, a->cols, mean, a->epsilon);                        \
      if (a->mean) a->mean[r] = mean;                                                      \
      if (a->inverse) a->inverse[r] = scale;                                               \
      write_row_##suffix(x, a->weight, a->bias, out, a->cols, mean, scale);                \
    }                                                                                      \
  }                                                                                        \
  void RDNA_HOST_KERNEL(layer_norm_##suffix)(const void *args, rdna_grid grid) {           \
    struct layer_norm_args a = *(const struct layer_norm_args *)args;                      \
    rdna__parallel_for(a.rows, row_grain(a.cols), layer_norm_##suffix##_rows, &a);         \
  }                                                                                        \
  void RDNA_HOST_KERNEL(layer_norm_shifted_##suffix)(const void *args, rdna_grid grid) {   \
    RDNA_HOST_KERNEL(layer_norm_##suffix)(args, grid);                                     \
  }                                                                                        \
  void RDNA_HOST_KERNEL(layer_norm_waves_##suffix)(const void *args, rdna_grid grid) {     \
    RDNA_HOST_KERNEL(layer_norm_##suffix)(args, grid);                                     \
  }

ROW_FUNCTIONS(f32)
ROW_FUNCTIONS(f16)
ROW_FUNCTIONS(bf16)
RDNA__NORM_TYPES(NORMS)

/* Rows of f32 to rows of another type. */
#define NARROW_NORM(to)                                                                                        \
  WRITE_ROW(narrow_##to, f32, to, f32)                                                                         \
  static void rms_norm_narrow_##to##_rows(void *context, int64_t begin, int64_t end) {                         \
    const struct rms_norm_args *a = context;                                                                   \
    for (int64_t r = begin; r < end; r++) {                                                                    \
      const float *x = (const float *)a->x + r * a->x_stride;                                                  \
      float scale = row_scale_f32(x, a->cols, 0, a->epsilon);                                                  \
      write_row_narrow_##to(x, a->weight, NULL, (STORED_##to *)a->out + r * a->out_stride, a->cols, 0, scale); \
    }                                                                                                          \
  }                                                                                                            \
  void RDNA_HOST_KERNEL(rms_norm_narrow_f32_##to)(const void *args, rdna_grid grid) {                          \
    struct rms_norm_args a = *(const struct rms_norm_args *)args;                                              \
    rdna__parallel_for(a.rows, row_grain(a.cols), rms_norm_narrow_##to##_rows, &a);                            \
  }
#define ADD_NARROW_NORM(from, to)                                                                                     \
  static void add_rms_norm_narrow_##from##_##to##_rows(void *context, int64_t begin, int64_t end) {                   \
    const struct add_rms_norm_args *a = context;                                                                      \
    for (int64_t r = begin; r < end; r++) {                                                                           \
      float *residual = (float *)a->residual + r * a->residual_stride;                                                \
      add_row_##from##_to_f32((const STORED_##from *)a->x + r * a->x_stride, residual, a->cols);                      \
      float scale = row_scale_f32(residual, a->cols, 0, a->epsilon);                                                  \
      write_row_narrow_##to(residual, a->weight, NULL, (STORED_##to *)a->out + r * a->out_stride, a->cols, 0, scale); \
    }                                                                                                                 \
  }                                                                                                                   \
  void RDNA_HOST_KERNEL(add_rms_norm_narrow_##from##_##to)(const void *args, rdna_grid grid) {                        \
    struct add_rms_norm_args a = *(const struct add_rms_norm_args *)args;                                             \
    rdna__parallel_for(a.rows, row_grain(a.cols), add_rms_norm_narrow_##from##_##to##_rows, &a);                      \
  }

ADD_ROW(f32_to_f32, f32, f32)
ADD_ROW(f16_to_f32, f16, f32)
ADD_ROW(bf16_to_f32, bf16, f32)
NARROW_NORM(f16)
NARROW_NORM(bf16)
ADD_NARROW_NORM(f32, f16)
ADD_NARROW_NORM(f32, bf16)
ADD_NARROW_NORM(f16, f16)
ADD_NARROW_NORM(bf16, bf16)
