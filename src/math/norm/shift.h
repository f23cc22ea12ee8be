/* Device code: 16 bytes at any value's address in group memory. */
#ifndef RDNA_MATH_NORM_SHIFT_H
#define RDNA_MATH_NORM_SHIFT_H

#include "math/common/device/values.h"

/* Vector |i| of those that begin at value |shift|, which is the same for all lanes: from the two of |from| that it lies
 * in. There is one after the last. */
template <typename type>
RDNA_DEVICE uint4 load_shifted(const uint4 *from, uint32_t shift, uint32_t i) {
  const uint32_t first = shift / type::IN_16 + i, words = shift % type::IN_16 * type::BYTES / 4;
  const uint4 low = from[first], high = from[first + 1];
  uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  /* values, as a choice of an array's elements is one of addresses to clang 19, which then keeps it in memory */
  auto chosen = [](bool later, uint32_t a, uint32_t b) { return later ? b : a; };
#pragma unroll
  for (uint32_t k = 0; k < 7; k++) w[k] = chosen(words & 1, w[k], w[k + 1]);
#pragma unroll
  for (uint32_t k = 0; k < 5; k++) w[k] = chosen(words & 2, w[k], w[k + 2]);
  if constexpr (type::BYTES == 2) {
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) w[k] = chosen(shift & 1, w[k], w[k] >> 16 | w[k + 1] << 16);
  }
  return uint4{w[0], w[1], w[2], w[3]};
}

#endif
