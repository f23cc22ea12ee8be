/* Device code: loads part of a vector of 16 bytes, where the rest is outside of the tensor. */
#ifndef RDNA_MATH_COMMON_DEVICE_PARTIAL_H
#define RDNA_MATH_COMMON_DEVICE_PARTIAL_H

#include "kernel/prelude.h"

/* Loads values [from, to) of the vector at |p|, which may have any alignment; the others are 0. Loads one by one, in
 * few registers: for the few vectors at the ends of a tensor. */
template <typename value>
RDNA_DEVICE uint4 load_partial(const value *p, int32_t from, int32_t to) {
  uint4 bits = {0, 0, 0, 0};
#pragma nounroll
  for (int32_t i = 16 / (int32_t)sizeof(value) - 1; i >= 0; i--) {
    value one = {};
    if (i >= from && i < to) one = p[i];
    if constexpr (sizeof(value) == 8) {
      uint2 two = bits_as<uint2>(one);
      bits = uint4{two.x, two.y, bits.x, bits.y};
    } else if constexpr (sizeof(value) == 4) {
      bits = uint4{bits_as<uint32_t>(one), bits.x, bits.y, bits.z};
    } else {
      constexpr uint32_t up = 8 * sizeof(value), down = 32 - up;
      bits = uint4{bits.x << up | one, bits.y << up | bits.x >> down, bits.z << up | bits.y >> down,
                   bits.w << up | bits.z >> down};
    }
  }
  return bits;
}

#endif
