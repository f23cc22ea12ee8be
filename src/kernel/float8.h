/* 8-bit floats to and from f32, the same bits on the host and on the GPU. To nearest, ties to even.
 *
 *   e4m3fn    bias 7, no infinities, NaN 0x7f and 0xff, largest 448     (OCP 8-bit Floating Point Specification 1.0)
 *   e5m2      bias 15, as f16 cut short: infinities, NaN; largest 57344 (the same)
 *   e4m3fnuz  bias 8, no infinities, no -0, NaN 0x80, largest 240       (Noune et al., 2022)
 *   e5m2fnuz  bias 16, no infinities, no -0, NaN 0x80, largest 57344    (the same)
 *
 * Noune et al. is "8-bit Numerical Formats for Deep Neural Networks". What rounds beyond the largest becomes infinite,
 * or NaN where there is no infinity. */
#ifndef RDNA_KERNEL_FLOAT8_H
#define RDNA_KERNEL_FLOAT8_H

#include <stdbool.h>

#include "kernel/scalar.h"
#include "rdna/tensor.h"

/* |type| is a constant in every call. */
RDNA_SCALAR bool float8_is(rdna_dtype type) {
  return type == RDNA_F8_E4M3FN || type == RDNA_F8_E5M2 || type == RDNA_F8_E4M3FNUZ || type == RDNA_F8_E5M2FNUZ;
}
RDNA_SCALAR int float8_mantissa_bits_(rdna_dtype type) {
  return type == RDNA_F8_E4M3FN || type == RDNA_F8_E4M3FNUZ ? 3 : 2;
}
RDNA_SCALAR int float8_bias_(rdna_dtype type) {
  return type == RDNA_F8_E4M3FN ? 7 : type == RDNA_F8_E5M2 ? 15 : type == RDNA_F8_E4M3FNUZ ? 8 : 16;
}
RDNA_SCALAR bool float8_is_unsigned_zero_(rdna_dtype type) {
  return type == RDNA_F8_E4M3FNUZ || type == RDNA_F8_E5M2FNUZ;
}
RDNA_SCALAR uint32_t float8_largest_code_(rdna_dtype type) {
  return type == RDNA_F8_E4M3FN ? 0x7e : type == RDNA_F8_E5M2 ? 0x7b : 0x7f;
}
RDNA_SCALAR float float8_largest(rdna_dtype type) {
  return type == RDNA_F8_E4M3FN ? 448.0f : type == RDNA_F8_E4M3FNUZ ? 240.0f : 57344.0f;
}

RDNA_SCALAR float float8_to_f32(rdna_dtype type, uint8_t code) {
  uint32_t magnitude = code & 0x7fu, sign = (uint32_t)(code & 0x80) << 24;
  /* moved to a float's fields, the exponent is too small by the difference of the biases; the product corrects that,
   * and normalises subnormals */
  float scale = scalar_from_bits((uint32_t)(254 - float8_bias_(type)) << 23);
  float v = scalar_from_bits(magnitude << (23 - float8_mantissa_bits_(type))) * scale;
  uint32_t bits = scalar_bits(v) | sign;
  if (float8_is_unsigned_zero_(type)) return code == 0x80 ? __builtin_nanf("") : scalar_from_bits(bits);
  if (type == RDNA_F8_E5M2 && magnitude == 0x7c) bits = sign | 0x7f800000u;
  return magnitude > (type == RDNA_F8_E5M2 ? 0x7cu : 0x7eu) ? __builtin_nanf("") : scalar_from_bits(bits);
}

RDNA_SCALAR uint8_t float8_from_f32(rdna_dtype type, float v) {
  const int dropped = 23 - float8_mantissa_bits_(type), bias = float8_bias_(type);
  uint32_t u = scalar_bits(v), magnitude = u & 0x7fffffffu, sign = u >> 24 & 0x80;
  /* subnormals: adding |unit| rounds to multiples of the smallest; normals: adds half a step less one bit, or half a
   * step to an odd code, and truncates */
  uint32_t unit = (uint32_t)(128 - bias + dropped) << 23; /* the float whose last bit is that unit */
  uint32_t small = scalar_bits(scalar_from_bits(magnitude) + scalar_from_bits(unit)) - unit;
  uint32_t rounded = (magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) >> dropped;
  uint32_t normal = rounded - ((uint32_t)(127 - bias) << float8_mantissa_bits_(type));
  uint32_t code = magnitude < (uint32_t)(128 - bias) << 23 ? small : normal;
  uint32_t beyond = type == RDNA_F8_E5M2 ? 0x7c : float8_is_unsigned_zero_(type) ? 0x80 : 0x7f;
  if (magnitude >= 0x7f800000u || code > float8_largest_code_(type)) code = beyond;
  if (type == RDNA_F8_E5M2 && magnitude > 0x7f800000u) code = 0x7f;
  if (float8_is_unsigned_zero_(type) && (code == 0 || code == 0x80)) sign = 0;
  return (uint8_t)(code | sign);
}

/* Clamps |v|, infinities too, to magnitudes up to |largest|; a NaN stays one. */
RDNA_SCALAR float float8_limit(float v, float largest) { return v > largest ? largest : v < -largest ? -largest : v; }

#endif
