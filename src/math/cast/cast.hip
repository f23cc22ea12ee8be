/* Casts through f32, which holds every value of f16 and bf16: so a cast rounds once. */
#include "kernel/prelude.h"
#include "math/cast/cast_kernels.h"
#include "math/values.h"

struct i32 {
  enum { BYTES = 4, IN_16 = 4 };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return (float)((const int32_t *)p)[i]; }
  RDNA_DEVICE void unpack(uint4 bits, float *v) {
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = (float)(int32_t)bits[i];
  }
};

/* Eight values a thread and step: one 16-byte access on the 2-byte side, two on the 4-byte side. */
template <typename from, typename to>
RDNA_DEVICE void cast_tile(const cast_args &args) {
  constexpr uint32_t threads = RDNA__CAST_THREADS, step = 8;
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
#pragma unroll
      for (uint32_t i = 0; i < step; i += to::IN_16) to::store_16(out + (begin + i) * to::BYTES, v + i);
    }
  }
  for (uint32_t i = whole + thread_id(); i < count; i += threads) to::store(out, i, from::load(x, i));
}

#define CAST(from, to) \
  RDNA_KERNEL(256) cast_##from##_##to(struct cast_args args) { cast_tile<from, to>(args); }
RDNA__CASTS(CAST)
