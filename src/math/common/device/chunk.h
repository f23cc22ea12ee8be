/* Device code: loops that are written once for 16 bytes at a time and for one value at a time. */
#ifndef RDNA_MATH_COMMON_DEVICE_CHUNK_H
#define RDNA_MATH_COMMON_DEVICE_CHUNK_H

#include "math/common/device/values.h"

/* Returns |v|, which is the same in all lanes. Where waves have 64 lanes the compiler takes the result for another
 * value, so it repeats comparisons with it rather than keep their masks, of two scalar registers each. See "Values
 * again" in src/math/README.md. */
RDNA_DEVICE uint32_t again_uniform(uint32_t v) {
#if WAVE_SIZE == 64
  asm volatile("" : "+s"(v));
#endif
  return v;
}

/* Returns |v| as it is stored, rounded as pack rounds. */
template <typename type>
RDNA_DEVICE typename type::stored stored_of(float v) {
  float values[type::IN_16] = {v};
  if constexpr (type::BYTES == 4) {
    return v;
  } else {
    return (uint16_t)type::pack(values).x;
  }
}

/* What one iteration of a loop loads and stores, from value |i| of a row on: COUNT values, which are 16 bytes of |type|
 * if |wide|, else one value. load may read COUNT values of another type, |stored|. */
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
      ((typename type::stored *)row)[i] = stored_of<type>(v[0]);
    }
  }
};

/* The same, kept in registers as it is in memory, packed, for kernels that use a row more than once. */
template <typename type, bool wide>
struct piece {
  enum { COUNT = wide ? (int)type::IN_16 : 1 };
  uint4 bits;
  RDNA_DEVICE piece load(const void *row, uint32_t i) { return {load_as<uint4>((const char *)row + i * type::BYTES)}; }
  /* Unpacks anew each time (see "Values again" in src/math/README.md). */
  RDNA_DEVICE void unpack(piece &p, float *v) { type::unpack(p.bits = again(p.bits), v); }
  RDNA_DEVICE piece pack(const float *v) { return {type::pack(v)}; }
  RDNA_DEVICE void store(void *row, uint32_t i, const piece &p) {
    store_as<uint4>((char *)row + i * type::BYTES, p.bits);
  }
};
/* One value, which unpack converts. Conversion in load would wait for the value there, so loads would not be in flight
 * together. */
template <typename type>
struct piece<type, false> {
  enum { COUNT = 1 };
  typename type::stored value;
  RDNA_DEVICE piece load(const void *row, uint32_t i) { return {((const typename type::stored *)row)[i]}; }
  RDNA_DEVICE void unpack(piece &p, float *v) { v[0] = type::load(&p.value, 0); }
  RDNA_DEVICE piece pack(const float *v) { return {stored_of<type>(v[0])}; }
  RDNA_DEVICE void store(void *row, uint32_t i, const piece &p) { ((typename type::stored *)row)[i] = p.value; }
};

#endif
