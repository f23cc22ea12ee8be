/* See cast_kernels.h. Casts go through f32, which holds every value of the narrower floats, so that a cast rounds once.
 */
#include "kernel/prelude.h"

#include "kernel/float8.h"
#include "math/cast/cast_kernels.h"
#include "math/common/device/values.h"

template <rdna_dtype type>
struct f8 {
  enum { BYTES = 1, IN_16 = 16 };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return float8_to_f32(type, ((const uint8_t *)p)[i]); }
  RDNA_DEVICE void store(void *p, uint64_t i, float v) { ((uint8_t *)p)[i] = float8_from_f32(type, v); }
  RDNA_DEVICE void unpack(uint4 bits, float *v) {
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] = float8_to_f32(type, (uint8_t)(bits[i / 4] >> (i % 4 * 8)));
  }
  RDNA_DEVICE void store_16(void *p, const float *v) {
    uint4 bits = {};
#pragma unroll
    for (int i = 0; i < 16; i++) bits[i / 4] |= (uint32_t)float8_from_f32(type, v[i]) << (i % 4 * 8);
    store_as<uint4>(p, bits);
  }
};
typedef f8<RDNA_F8_E4M3FN> f8_e4m3fn;
typedef f8<RDNA_F8_E5M2> f8_e5m2;
typedef f8<RDNA_F8_E4M3FNUZ> f8_e4m3fnuz;
typedef f8<RDNA_F8_E5M2FNUZ> f8_e5m2fnuz;

/* A step is 8 values, or 16 where either type has 8 bits: at least one 16-byte access on either side. Loads all steps
 * of the thread before it converts one. Unaligned tensors, and the last values, go one by one. */
template <typename from, typename to>
RDNA_DEVICE void cast_tile(const cast_args &args) {
  constexpr uint32_t threads = RDNA__CAST_THREADS, step = from::BYTES == 1 || to::BYTES == 1 ? 16 : 8;
  int64_t start = (int64_t)group_id_x() * RDNA__CAST_TILE;
  int64_t left = args.count - start;
  uint32_t count = left >= RDNA__CAST_TILE ? (uint32_t)RDNA__CAST_TILE : left > 0 ? (uint32_t)left : 0;
  const char *x = (const char *)args.x + start * from::BYTES;
  char *out = (char *)args.out + start * to::BYTES;
  uint32_t whole = all_16(address_of(args.x) | address_of(args.out)) ? count / step * step : 0;
  constexpr uint32_t rounds = RDNA__CAST_TILE / (threads * step), loads = step / from::IN_16;
  uint4 bits[rounds][loads];
#pragma unroll
  for (uint32_t j = 0; j < rounds; j++) {
    uint32_t begin = (j * threads + thread_id()) * step;
    if (begin < whole) {
#pragma unroll
      for (uint32_t i = 0; i < loads; i++) {
        bits[j][i] = load_as<uint4>(x + (begin + i * from::IN_16) * from::BYTES);
      }
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < rounds; j++) {
    uint32_t begin = (j * threads + thread_id()) * step;
    if (begin < whole) {
      float v[step];
#pragma unroll
      for (uint32_t i = 0; i < loads; i++) from::unpack(bits[j][i], v + i * from::IN_16);
      if constexpr (to::BYTES == 1) {
#pragma unroll
        for (uint32_t i = 0; i < step; i++) v[i] = float8_limit(v[i], args.largest);
      }
#pragma unroll
      for (uint32_t i = 0; i < step; i += to::IN_16) to::store_16(out + (begin + i) * to::BYTES, v + i);
    }
  }
  for (uint32_t i = whole + thread_id(); i < count; i += threads) {
    float v = from::load(x, i);
    to::store(out, i, to::BYTES == 1 ? float8_limit(v, args.largest) : v);
  }
}

#define CAST(from, to) \
  RDNA_KERNEL(256) cast_##from##_##to(struct cast_args args) { cast_tile<from, to>(args); }
RDNA__CASTS(CAST)
