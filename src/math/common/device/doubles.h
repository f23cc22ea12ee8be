/* Device code: for kernels that also exist for f64: the type that each type of values.h is computed in, computed<>::in,
 * and arithmetic that is overloaded for float and double. */
#ifndef RDNA_MATH_COMMON_DEVICE_DOUBLES_H
#define RDNA_MATH_COMMON_DEVICE_DOUBLES_H

#include "math/common/device/values.h"

template <typename type>
struct computed {
  typedef float in;
};
template <>
struct computed<f64> {
  typedef double in;
};

RDNA_DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_DEVICE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
RDNA_DEVICE float root(float v) { return __builtin_sqrtf(v); } /* correctly rounded, as is the next */
RDNA_DEVICE double root(double v) { return __builtin_sqrt(v); }

/* Loads value |i| of a tensor of |type|, or of f32 if |is_f32|. */
template <typename type>
RDNA_DEVICE typename computed<type>::in load_or_f32(const void *p, uint64_t i, uint32_t is_f32) {
  return is_f32 ? f32::load(p, i) : type::load(p, i);
}
/* Loads, and stores, where the type is known only when the kernel runs: |dtype| is RDNA_F32, _F16, _BF16 or _F64. */
template <typename acc>
RDNA_DEVICE acc load_any(const void *p, uint64_t i, uint32_t dtype) {
  if (dtype == RDNA_F32) return (acc)f32::load(p, i);
  if (dtype == RDNA_F16) return (acc)f16::load(p, i);
  if (dtype == RDNA_BF16) return (acc)bf16::load(p, i);
  return (acc)f64::load(p, i);
}
template <typename acc>
RDNA_DEVICE void store_any(void *p, uint64_t i, uint32_t dtype, acc v) {
  if (dtype == RDNA_F32) {
    f32::store(p, i, (float)v);
  } else if (dtype == RDNA_F16) {
    f16::store(p, i, (float)v);
  } else if (dtype == RDNA_BF16) {
    bf16::store(p, i, (float)v);
  } else {
    f64::store(p, i, (double)v);
  }
}

#endif
