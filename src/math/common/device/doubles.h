/* Device code: f64 beside the types of values.h, and what a kernel computes each type in. */
#ifndef RDNA_MATH_COMMON_DEVICE_DOUBLES_H
#define RDNA_MATH_COMMON_DEVICE_DOUBLES_H

#include "math/common/device/values.h"
#include "rdna/tensor.h"

typedef double double2 __attribute__((ext_vector_type(2)));

struct f64 {
  typedef double stored;
  enum { BYTES = 8, IN_16 = 2 };
  RDNA_DEVICE double load(const void *p, uint64_t i) { return ((const double *)p)[i]; }
  RDNA_DEVICE void store(void *p, uint64_t i, double v) { ((double *)p)[i] = v; }
  RDNA_DEVICE void unpack(uint4 bits, double *v) {
    double2 pair = bits_as<double2>(bits);
    v[0] = pair.x, v[1] = pair.y;
  }
  RDNA_DEVICE void load_16(const void *p, double *v) { unpack(load_as<uint4>(p), v); }
  RDNA_DEVICE void store_16(void *p, const double *v) { store_as<uint4>(p, bits_as<uint4>(double2{v[0], v[1]})); }
};

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

/* Value |i| of a tensor of |type|, or of f32 if |is_f32|. */
template <typename type>
RDNA_DEVICE typename computed<type>::in load_or_f32(const void *p, uint64_t i, uint32_t is_f32) {
  return is_f32 ? f32::load(p, i) : type::load(p, i);
}
/* Where the type is known only when the kernel runs: |dtype| is an rdna_dtype, of a float. */
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
