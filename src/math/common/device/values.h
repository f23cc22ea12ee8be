/* Device code: 16 bytes of memory as floats, for kernels that exist once for each of f32, f16 and bf16.
 *
 * load_16 waits where it stands, as unpacking needs the value. To have several loads in flight, load them all as
 * uint4 and unpack later. */
#ifndef RDNA_MATH_COMMON_DEVICE_VALUES_H
#define RDNA_MATH_COMMON_DEVICE_VALUES_H

#include "kernel/prelude.h"

struct f32 {
  typedef float stored;
  enum { BYTES = 4, IN_16 = 4 }; /* of a value; values in 16 bytes */
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
  RDNA_DEVICE float rounded(float v) { return v; } /* as it will be read back */
};

struct f16 {
  typedef uint16_t stored;
  enum { BYTES = 2, IN_16 = 8 };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return f16_to_f32(((const uint16_t *)p)[i]); }
  RDNA_DEVICE void store(void *p, uint64_t i, float v) { ((uint16_t *)p)[i] = f32_to_f16(v); }
  RDNA_DEVICE void unpack(uint4 bits, float *v) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 pair = f16x2_to_f32(bits[i]);
      v[2 * i] = pair.x, v[2 * i + 1] = pair.y;
    }
  }
  RDNA_DEVICE void load_16(const void *p, float *v) { unpack(load_as<uint4>(p), v); }
  RDNA_DEVICE uint4 pack(const float *v) {
    return uint4{f32_to_f16x2(v[0], v[1]), f32_to_f16x2(v[2], v[3]), f32_to_f16x2(v[4], v[5]),
                 f32_to_f16x2(v[6], v[7])};
  }
  RDNA_DEVICE void store_16(void *p, const float *v) { store_as<uint4>(p, pack(v)); }
  RDNA_DEVICE float rounded(float v) { return f16_to_f32(f32_to_f16(v)); }
};

struct bf16 {
  typedef uint16_t stored;
  enum { BYTES = 2, IN_16 = 8 };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return bf16_to_f32(((const uint16_t *)p)[i]); }
  RDNA_DEVICE void store(void *p, uint64_t i, float v) { ((uint16_t *)p)[i] = f32_to_bf16(v); }
  RDNA_DEVICE void unpack(uint4 bits, float *v) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 pair = bf16x2_to_f32(bits[i]);
      v[2 * i] = pair.x, v[2 * i + 1] = pair.y;
    }
  }
  RDNA_DEVICE void load_16(const void *p, float *v) { unpack(load_as<uint4>(p), v); }
  RDNA_DEVICE uint4 pack(const float *v) {
    return uint4{f32_to_bf16x2(v[0], v[1]), f32_to_bf16x2(v[2], v[3]), f32_to_bf16x2(v[4], v[5]),
                 f32_to_bf16x2(v[6], v[7])};
  }
  RDNA_DEVICE void store_16(void *p, const float *v) { store_as<uint4>(p, pack(v)); }
  RDNA_DEVICE float rounded(float v) { return bf16_to_f32(f32_to_bf16(v)); }
};

/* Every pointer and number of bytes is a multiple of 16; pass their bitwise or. */
RDNA_DEVICE bool all_16(uint64_t bits) { return (bits & 15) == 0; }
RDNA_DEVICE uint64_t address_of(const void *p) { return (uint64_t)(uintptr_t)p; }

#endif
