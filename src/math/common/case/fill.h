/* For case makers and tests: buffers of f32, f16 or bf16. */
#ifndef RDNA_MATH_COMMON_CASE_FILL_H
#define RDNA_MATH_COMMON_CASE_FILL_H

#include "base/random.h"
#include "kernel/host.h"
#include "rdna/tensor.h"

static inline void case_set(rdna_dtype dtype, void *data, int64_t i, float value) {
  if (dtype == RDNA_F32) ((float *)data)[i] = value;
  if (dtype == RDNA_F16) ((uint16_t *)data)[i] = f32_to_f16(value);
  if (dtype == RDNA_BF16) ((uint16_t *)data)[i] = f32_to_bf16(value);
}

static inline float case_get(rdna_dtype dtype, const void *data, int64_t i) {
  if (dtype == RDNA_F16) return f16_to_f32(((const uint16_t *)data)[i]);
  if (dtype == RDNA_BF16) return bf16_to_f32(((const uint16_t *)data)[i]);
  return ((const float *)data)[i];
}

/* Normal numbers of the given standard deviation. */
static inline void case_fill(rdna__random *random, rdna_dtype dtype, void *data, int64_t count, double deviation) {
  for (int64_t i = 0; i < count; i++) case_set(dtype, data, i, (float)(deviation * rdna__random_normal(random)));
}

/* How far apart, in proportion, two neighbouring values of the type may be. */
static inline double case_spacing(rdna_dtype dtype) {
  return dtype == RDNA_F32 ? 0x1p-23 : dtype == RDNA_F16 ? 0x1p-10 : 0x1p-7;
}
/* The distance of its smallest values. */
static inline double case_smallest(rdna_dtype dtype) {
  return dtype == RDNA_F16 ? 0x1p-24 : 0x1p-126; /* an f32 subnormal may become zero on a GPU */
}

#endif
