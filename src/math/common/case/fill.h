/* For case makers and tests: a kernel's type from its name, and buffers of f32, f16 or bf16. */
#ifndef RDNA_MATH_COMMON_CASE_FILL_H
#define RDNA_MATH_COMMON_CASE_FILL_H

#include <string.h>

#include "base/random.h"
#include "kernel/host.h"
#include "rdna/tensor.h"

/* Returns the type that a kernel's name ends in, as "add_row_bf16" does; RDNA_DTYPE_COUNT if it ends in none. */
static inline rdna_dtype case_name_dtype(const char *kernel_name) {
  size_t length = strlen(kernel_name);
  int dtype = 0;
  for (; dtype < RDNA_DTYPE_COUNT; dtype++) {
    const char *name = rdna_dtype_name((rdna_dtype)dtype);
    size_t own = strlen(name);
    if (own < length && kernel_name[length - own - 1] == '_' && !strcmp(kernel_name + length - own, name)) break;
  }
  return (rdna_dtype)dtype;
}
/* Returns f16 or bf16 if the name has it anywhere, as "rms_norm_f16_wf32" does, else f32. */
static inline rdna_dtype case_name_float(const char *kernel_name) {
  return strstr(kernel_name, "_bf16") ? RDNA_BF16 : strstr(kernel_name, "_f16") ? RDNA_F16 : RDNA_F32;
}

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

/* Fills with normally distributed numbers of mean 0 and standard deviation |deviation|. */
static inline void case_fill(rdna__random *random, rdna_dtype dtype, void *data, int64_t count, double deviation) {
  for (int64_t i = 0; i < count; i++) case_set(dtype, data, i, (float)(deviation * rdna__random_normal(random)));
}

/* Returns the largest relative distance of two neighbouring normal values of the type. */
static inline double case_spacing(rdna_dtype dtype) {
  return dtype == RDNA_F32 ? 0x1p-23 : dtype == RDNA_F16 ? 0x1p-10 : 0x1p-7;
}
/* Returns the distance of its smallest values. */
static inline double case_smallest(rdna_dtype dtype) {
  return dtype == RDNA_F16 ? 0x1p-24 : 0x1p-126; /* an f32 subnormal may become zero on a GPU */
}

#endif
