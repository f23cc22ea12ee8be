/* Quantizing weights to integers in groups, on the host and on the GPU alike. A group here is a quantization group: the
 * neighbouring values of a row that share a scale. See group_kernels.h. */
#ifndef RDNA_MATH_QUANT_GROUP_H
#define RDNA_MATH_QUANT_GROUP_H

#include <stdbool.h>

#include "kernel/scalar.h"
#include "math/quant/group_kernels.h"

/* Number |at| of scales or offsets of |type|. */
RDNA_SCALAR float group_number(const void *numbers, int64_t at, int32_t type) {
  if (type == RDNA_F32) return ((const float *)numbers)[at];
  uint16_t half = ((const uint16_t *)numbers)[at];
  return type == RDNA_F16 ? f16_to_f32(half) : bf16_to_f32(half);
}

/* The smallest and the largest of a quantization group's values and 0. NaN is ignored. */
struct group_range {
  float low, high;
};
RDNA_SCALAR void group_see(struct group_range *range, float x) {
  range->low = x < range->low ? x : range->low;
  range->high = x > range->high ? x : range->high;
}

/* How the values of one quantization group become codes. */
struct group_coding {
  uint16_t scale; /* f16 */
  int zero;       /* the code of 0 */
  float inverse;  /* 1 / scale, of the scale as stored; 0 if that is 0 */
  int low, high;  /* the smallest and the largest code */
};
RDNA_SCALAR int group_nearest(float v, int low, int high) {
  return v > (float)low ? (v < (float)high ? (int)__builtin_rintf(v) : high) : low;
}
RDNA_SCALAR struct group_coding group_coding_of(bool is_u4, bool has_zeros, struct group_range range) {
  struct group_coding c = {0, is_u4 && !has_zeros ? 8 : 0, 0, is_u4 ? 0 : has_zeros ? -128 : -127, is_u4 ? 15 : 127};
  float scale;
  if (has_zeros) {
    scale = (range.high - range.low) / (is_u4 ? 15.0f : 255.0f);
  } else if (is_u4) {
    scale = (-range.low > range.high ? range.low : range.high) / -8.0f;
  } else {
    scale = (-range.low > range.high ? -range.low : range.high) / 127.0f;
  }
  c.scale = f32_to_f16(scale + 0.0f);
  float stored = f16_to_f32(c.scale);
  c.inverse = stored != 0 ? 1.0f / stored : 0;
  if (has_zeros) c.zero = group_nearest((float)c.low - range.low * c.inverse, c.low, c.high);
  return c;
}
RDNA_SCALAR int group_code_of(const struct group_coding *c, float x) {
  return group_nearest(x * c->inverse, c->low - c->zero, c->high - c->zero) + c->zero;
}
/* Byte |i| of the 16 that hold the 4-bit codes of 32 values: i in the low nibble, i + 16 in the high one. */
RDNA_SCALAR uint8_t group_byte_of(const struct group_coding *c, const float *x, int i) {
  return (uint8_t)(group_code_of(c, x[i]) | group_code_of(c, x[i + 16]) << 4);
}

#endif
