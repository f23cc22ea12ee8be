/* Device code: loads of 16 bytes from any value's address in group memory, which are two aligned loads and a shift. */
#ifndef RDNA_MATH_NORM_SHIFT_H
#define RDNA_MATH_NORM_SHIFT_H

#include "math/common/device/values.h"

/* Returns vector |i| of those that begin at value |shift| of |from|. |shift| is the same in all lanes, and |from| has
 * one vector more than is asked for.
 *
 *     from   | 0 1 2 3 | 4 5 6 7 | 8 9 . . |          shift 1, IN_16 4
 *     vector   | 1 2 3   4 | 5 6 7   8 |              vector 0 lies in from[0] and from[1] */
template <typename type>
RDNA_DEVICE uint4 load_shifted(const uint4 *from, uint32_t shift, uint32_t i) {
  const uint32_t first = shift / type::IN_16 + i, words = shift % type::IN_16 * type::BYTES / 4;
  const uint4 low = from[first], high = from[first + 1];
  uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  /* A function of values: a choice between elements of an array is one of addresses to clang 19, which then keeps the
   * array in memory. */
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
