/* Device code: the element types as kernels that exist once for each of them see them. A value in memory is a |stored|;
 * f32, f16 and bf16 are computed in float, the others in their own type or a wider one.
 *
 *     load, store          one value: number i of those at p
 *     load_16, store_16    16 bytes, IN_16 values, at a multiple of 16 bytes
 *     unpack, pack         the same of 16 bytes in registers
 *
 * load_16 waits where it stands, as unpacking needs the value. To have several loads in flight, load them all as
 * uint4 and unpack later. The products of gemm, conv and quant fetch 8 values at a time in each type, a raw8. */
#ifndef RDNA_MATH_COMMON_DEVICE_VALUES_H
#define RDNA_MATH_COMMON_DEVICE_VALUES_H

#include "kernel/prelude.h"
#include "rdna/tensor.h"

struct f32 {
  typedef float stored;
  enum { BYTES = 4, IN_16 = 4 }; /* bytes of a value; values in 16 bytes */
  struct raw8 {
    uint4 low, high;
  };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return ((const float *)p)[i]; }
  RDNA_DEVICE void store(void *p, uint64_t i, float v) { ((float *)p)[i] = v; }
  RDNA_DEVICE void unpack(uint4 bits, float *v) {
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = bits_as<float>(bits[i]);
  }
  RDNA_DEVICE void load_16(const void *p, float *v) { unpack(load_as<uint4>(p), v); }
  RDNA_DEVICE uint4 pack(const float *v) {
    return uint4{bits_as<uint32_t>(v[0]), bits_as<uint32_t>(v[1]), bits_as<uint32_t>(v[2]), bits_as<uint32_t>(v[3])};
  }
  RDNA_DEVICE void store_16(void *p, const float *v) { store_as<uint4>(p, pack(v)); }
  RDNA_DEVICE float rounded(float v) { return v; } /* as it would be read back after a store */

  RDNA_DEVICE float load_global(const stored *p) { return *global(p); }
  RDNA_DEVICE void store_global(stored *p, float v) { *global(p) = v; }
  RDNA_DEVICE void store4(stored *p, float4 v) { store_f32x4(p, v); }
  RDNA_DEVICE raw8 load_raw8(const stored *p) { return {load_u32x4(p), load_u32x4(p + 4)}; }
  RDNA_DEVICE void set_raw8(raw8 &raw, int i, stored v) {
    if (i < 4)
      raw.low[i] = bits_as<uint32_t>(v);
    else
      raw.high[i - 4] = bits_as<uint32_t>(v);
  }
  RDNA_DEVICE void decode8(const raw8 &raw, float v[8]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[i] = bits_as<float>((uint32_t)raw.low[i]);
      v[i + 4] = bits_as<float>((uint32_t)raw.high[i]);
    }
  }
};

/* What f16 and bf16 have in common. |self| converts one value (decode, encode) and a 32-bit word of two (decode2,
 * encode2), the first in the low half. */
template <typename self>
struct value_16_bits {
  typedef uint16_t stored;
  typedef uint4 raw8;
  enum { BYTES = 2, IN_16 = 8 };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return self::decode(((const uint16_t *)p)[i]); }
  RDNA_DEVICE void store(void *p, uint64_t i, float v) { ((uint16_t *)p)[i] = self::encode(v); }
  RDNA_DEVICE void unpack(uint4 bits, float *v) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 pair = self::decode2(bits[i]);
      v[2 * i] = pair.x, v[2 * i + 1] = pair.y;
    }
  }
  RDNA_DEVICE void load_16(const void *p, float *v) { unpack(load_as<uint4>(p), v); }
  RDNA_DEVICE uint4 pack(const float *v) {
    return uint4{self::encode2(v[0], v[1]), self::encode2(v[2], v[3]), self::encode2(v[4], v[5]),
                 self::encode2(v[6], v[7])};
  }
  RDNA_DEVICE void store_16(void *p, const float *v) { store_as<uint4>(p, pack(v)); }
  RDNA_DEVICE float rounded(float v) { return self::decode(self::encode(v)); }

  RDNA_DEVICE float load_global(const stored *p) { return self::decode(*global(p)); }
  RDNA_DEVICE void store_global(stored *p, float v) { *global(p) = self::encode(v); }
  RDNA_DEVICE void store4(stored *p, float4 v) {
    store_as<uint2>(p, uint2{self::encode2(v.x, v.y), self::encode2(v.z, v.w)});
  }
  RDNA_DEVICE raw8 load_raw8(const stored *p) { return load_u32x4(p); }
  RDNA_DEVICE void set_raw8(raw8 &raw, int i, stored v) { raw[i / 2] |= (uint32_t)v << (i % 2 * 16); }
  RDNA_DEVICE void decode8(const raw8 &raw, float v[8]) { unpack(raw, v); }
};
struct f16 : value_16_bits<f16> {
  RDNA_DEVICE float decode(uint16_t v) { return f16_to_f32(v); }
  RDNA_DEVICE uint16_t encode(float v) { return f32_to_f16(v); }
  RDNA_DEVICE float2 decode2(uint32_t v) { return f16x2_to_f32(v); }
  RDNA_DEVICE uint32_t encode2(float low, float high) { return f32_to_f16x2(low, high); }
};
struct bf16 : value_16_bits<bf16> {
  RDNA_DEVICE float decode(uint16_t v) { return bf16_to_f32(v); }
  RDNA_DEVICE uint16_t encode(float v) { return f32_to_bf16(v); }
  RDNA_DEVICE float2 decode2(uint32_t v) { return bf16x2_to_f32(v); }
  RDNA_DEVICE uint32_t encode2(float low, float high) { return f32_to_bf16x2(low, high); }
};

/* The types that are stored as the number that they are. unpack and store_16 convert to and from any type |acc|. */
template <typename number>
struct plain_value {
  typedef number stored;
  enum { BYTES = sizeof(number), IN_16 = 16 / sizeof(number) };
  RDNA_DEVICE number load(const void *p, uint64_t i) { return ((const number *)p)[i]; }
  RDNA_DEVICE void store(void *p, uint64_t i, number v) { ((number *)p)[i] = v; }
  typedef number vector __attribute__((ext_vector_type(16 / sizeof(number))));
  template <typename acc>
  RDNA_DEVICE void unpack(uint4 bits, acc *v) {
    vector all = bits_as<vector>(bits);
#pragma unroll
    for (int i = 0; i < IN_16; i++) v[i] = all[i];
  }
  template <typename acc>
  RDNA_DEVICE void load_16(const void *p, acc *v) {
    unpack(load_as<uint4>(p), v);
  }
  template <typename acc>
  RDNA_DEVICE void store_16(void *p, const acc *v) {
    vector all;
#pragma unroll
    for (int i = 0; i < IN_16; i++) all[i] = (number)v[i];
    store_as<uint4>(p, bits_as<uint4>(all));
  }
};
typedef plain_value<double> f64;
typedef plain_value<int32_t> i32;
typedef plain_value<int64_t> i64;
typedef plain_value<uint8_t> u8;

/* Stores value |i| where the type is known only when the kernel runs: |dtype| is RDNA_F32, RDNA_F16 or RDNA_BF16. */
RDNA_DEVICE void store_float(void *p, uint64_t i, uint32_t dtype, float v) {
  if (dtype == RDNA_F16) {
    f16::store(p, i, v);
  } else if (dtype == RDNA_BF16) {
    bf16::store(p, i, v);
  } else {
    f32::store(p, i, v);
  }
}

/* Returns whether several addresses and byte counts are all multiples of 16; pass their bitwise or. */
RDNA_DEVICE bool all_16(uint64_t bits) { return (bits & 15) == 0; }
RDNA_DEVICE uint64_t address_of(const void *p) { return (uint64_t)(uintptr_t)p; }
/* Returns the address of row |row| of a matrix at |p| whose rows are |stride| values from one another. */
template <typename type>
RDNA_DEVICE char *row_at(const void *p, int64_t row, int64_t stride) {
  return (char *)p + row * stride * type::BYTES;
}

#endif
