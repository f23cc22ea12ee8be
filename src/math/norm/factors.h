/* Device code: the weights and biases of norms. */
#ifndef RDNA_MATH_NORM_FACTORS_H
#define RDNA_MATH_NORM_FACTORS_H

#include "math/common/device/values.h"

/* Weights or biases that belong to 16 bytes of a row if |wide|, else to one value, as they lie in memory. */
template <typename type, typename weights, bool wide>
struct factors {
  enum { COUNT = wide ? (int)type::IN_16 : 1, LOADS = wide ? (int)type::IN_16 / (int)weights::IN_16 : 1 };
  uint4 bits[LOADS];
  typename weights::stored single;
  RDNA_DEVICE void load(factors &f, const void *p, uint64_t i) {
    if constexpr (wide) {
#pragma unroll
      for (int k = 0; k < LOADS; k++) f.bits[k] = load_as<uint4>((const char *)p + i * weights::BYTES + k * 16);
    } else {
      f.single = ((const typename weights::stored *)p)[i];
    }
  }
  RDNA_DEVICE void unpack(const factors &f, float *v) {
    if constexpr (wide) {
#pragma unroll
      for (int k = 0; k < LOADS; k++) weights::unpack(f.bits[k], v + k * weights::IN_16);
    } else {
      v[0] = weights::load(&f.single, 0);
    }
  }
};

#endif
