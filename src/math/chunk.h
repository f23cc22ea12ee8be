/* Device code: loops that are written once for 16 bytes at a time and for one value at a time. */
#ifndef RDNA_MATH_CHUNK_H
#define RDNA_MATH_CHUNK_H

#include "math/values.h"

/* Values |i| onwards: 16 bytes of |type|, or one. */
template <typename type, bool wide>
struct chunk {
  enum { COUNT = wide ? (int)type::IN_16 : 1 };

  template <typename stored>
  RDNA_DEVICE void load(const void *row, uint64_t i, float *v) {
    if constexpr (wide) {
#pragma unroll
      for (int k = 0; k < COUNT; k += stored::IN_16)
        stored::load_16((const char *)row + (i + k) * stored::BYTES, v + k);
    } else {
      v[0] = stored::load(row, i);
    }
  }
  RDNA_DEVICE void store(void *row, uint64_t i, const float *v) {
    if constexpr (wide) {
      type::store_16((char *)row + i * type::BYTES, v);
    } else {
      type::store(row, i, v[0]);
    }
  }
};

#endif
