/* For host twins: values of any float type as doubles, for families whose twins compute every type in double. */
#ifndef RDNA_MATH_COMMON_HOST_DOUBLES_H
#define RDNA_MATH_COMMON_HOST_DOUBLES_H

#include "math/common/host/values.h"
#include "rdna/tensor.h"

/* Converts one f16. By an intrinsic, as gcc would merge a plain conversion with the one to double that follows, and
 * call a library function for both. */
static inline float f16_alone(uint16_t v) {
#ifdef __F16C__
  return _cvtsh_ss(v);
#else
  return f16_to_f32(v);
#endif
}

/* Convert |n| contiguous f16 by way of a buffer of floats, as the compiler does not vectorise f16 to double. */
static inline void load_f16_doubles(const uint16_t *p, int64_t n, double *v) {
  float buffer[RUN];
  for (int64_t i = 0, m; i < n; i += m) {
    m = run_length(n - i);
    read_f16(buffer, p + i, m);
    for (int64_t j = 0; j < m; j++) v[i + j] = (double)buffer[j];
  }
}
static inline void store_f16_doubles(uint16_t *p, int64_t n, const double *v) {
  float buffer[RUN];
  for (int64_t i = 0, m; i < n; i += m) {
    m = run_length(n - i);
    for (int64_t j = 0; j < m; j++) buffer[j] = (float)v[i + j];
    write_f16(p + i, buffer, m);
  }
}

/* Load and store |n| values: at, at + stride, at + 2 stride and so on of |p|. */
static inline void load_doubles(rdna_dtype dtype, const void *p, int64_t at, int64_t stride, int64_t n, double *v) {
  if (dtype == RDNA_F32)
    for (int64_t i = 0; i < n; i++) v[i] = (double)((const float *)p)[at + i * stride];
  else if (dtype == RDNA_F16 && stride == 1 && n > 1)
    load_f16_doubles((const uint16_t *)p + at, n, v);
  else if (dtype == RDNA_F16)
    for (int64_t i = 0; i < n; i++) v[i] = (double)f16_alone(((const uint16_t *)p)[at + i * stride]);
  else if (dtype == RDNA_BF16)
    for (int64_t i = 0; i < n; i++) v[i] = (double)bf16_to_f32(((const uint16_t *)p)[at + i * stride]);
  else
    for (int64_t i = 0; i < n; i++) v[i] = ((const double *)p)[at + i * stride];
}

static inline void store_doubles(rdna_dtype dtype, void *p, int64_t at, int64_t stride, int64_t n, const double *v) {
  if (dtype == RDNA_F32)
    for (int64_t i = 0; i < n; i++) ((float *)p)[at + i * stride] = (float)v[i];
  else if (dtype == RDNA_F16 && stride == 1 && n > 1)
    store_f16_doubles((uint16_t *)p + at, n, v);
  else if (dtype == RDNA_F16)
    for (int64_t i = 0; i < n; i++) ((uint16_t *)p)[at + i * stride] = f32_to_f16((float)v[i]);
  else if (dtype == RDNA_BF16)
    for (int64_t i = 0; i < n; i++) ((uint16_t *)p)[at + i * stride] = f32_to_bf16((float)v[i]);
  else
    for (int64_t i = 0; i < n; i++) ((double *)p)[at + i * stride] = v[i];
}

static inline double load_double(rdna_dtype dtype, const void *p, int64_t i) {
  double v = 0;
  load_doubles(dtype, p, i, 1, 1, &v);
  return v;
}
static inline void store_double(rdna_dtype dtype, void *p, int64_t i, double v) {
  store_doubles(dtype, p, i, 1, 1, &v);
}

#endif
