/* Casts through f32, which holds every value of f16 and bf16: so a cast rounds once. */
#include "kernel/prelude.h"
#include "math/cast/cast_kernels.h"
#include "math/values.h"

struct i32 {
  enum { BYTES = 4, IN_16 = 4 };
  RDNA_DEVICE float load(const void *p, uint64_t i) { return (float)((const int32_t *)p)[i]; }
  RDNA_DEVICE void load_16(const void *p, float *v) {
    int4 bits = load_as<int4>(p);
    v[0] = (float)bits.x, v[1] = (float)bits.y, v[2] = (float)bits.z, v[3] = (float)bits.w;
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
#pragma unroll
  for (uint32_t j = 0; j < RDNA__CAST_TILE / (threads * step); j++) {
    uint32_t begin = (j * threads + thread_id()) * step;
    if (begin < whole) {
      float v[step];
#pragma unroll
      for (uint32_t i = 0; i < step; i += from::IN_16) from::load_16(x + (begin + i) * from::BYTES, v + i);
#pragma unroll
      for (uint32_t i = 0; i < step; i += to::IN_16) to::store_16(out + (begin + i) * to::BYTES, v + i);
    }
  }
  for (uint32_t i = whole + thread_id(); i < count; i += threads) to::store(out, i, from::load(x, i));
}

#define CAST(from, to) \
  RDNA_KERNEL(256) cast_##from##_##to(struct cast_args args) { cast_tile<from, to>(args); }
RDNA__CASTS(CAST)
