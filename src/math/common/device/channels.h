/* Device code: loads and stores one value, or (width above 1) 16 bytes of neighbouring channels, converted to the type
 * that they are computed in. */
#ifndef RDNA_MATH_COMMON_DEVICE_CHANNELS_H
#define RDNA_MATH_COMMON_DEVICE_CHANNELS_H

#include "math/common/device/doubles.h"

template <typename type, int width, typename acc>
RDNA_DEVICE void load_channels(const void *p, int64_t at, acc *v) {
  if constexpr (width == 1) {
    v[0] = type::load(p, (uint64_t)at);
  } else {
    type::load_16((const char *)p + at * type::BYTES, v);
  }
}
template <typename type, int width, typename acc>
RDNA_DEVICE void store_channels(void *p, int64_t at, const acc *v) {
  if constexpr (width == 1) {
    type::store(p, (uint64_t)at, v[0]);
  } else {
    type::store_16((char *)p + at * type::BYTES, v);
  }
}

#endif
