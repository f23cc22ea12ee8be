/* Host twins of segment_kernels.h: the same walk, chunk by chunk. */
#include "kernel/host.h"
#include "math/index/segment_walk.h"

#define FUNCTIONS(name, type, kept, from, to)                                                         \
  RDNA_SCALAR kept load_##name(const void *p, int64_t i) { return (kept)from(((const type *)p)[i]); } \
  RDNA_SCALAR void store_##name(void *p, int64_t i, kept v) { ((type *)p)[i] = (type)to(v); }
FUNCTIONS(f32, float, float, , )
FUNCTIONS(f16, uint16_t, float, f16_to_f32, f32_to_f16)
FUNCTIONS(bf16, uint16_t, float, bf16_to_f32, f32_to_bf16)
FUNCTIONS(f64, double, double, , )
FUNCTIONS(i8, int8_t, int64_t, , )
FUNCTIONS(u8, uint8_t, int64_t, , )
FUNCTIONS(i16, int16_t, int64_t, , )
FUNCTIONS(i32, int32_t, int64_t, , )
FUNCTIONS(i64, int64_t, int64_t, , )

#define SEGMENT(name, kept)                                                     \
  SEGMENT_WALK(walk_##name, kept, load_##name, store_##name)                    \
  static void name##_piece(void *context, int64_t begin, int64_t end) {         \
    const struct segment_args *a = context;                                     \
    for (int64_t unit = begin; unit < end; unit++) walk_##name##_walk(a, unit); \
  }                                                                             \
  void RDNA_HOST_KERNEL(segment_##name)(const void *args, rdna_grid grid) {     \
    struct segment_args a = *(const struct segment_args *)args;                 \
    rdna__parallel_for(a.chunks *a.outer *a.inner, 512, name##_piece, &a);      \
  }
SEGMENT(f32, float)
SEGMENT(f16, float)
SEGMENT(bf16, float)
SEGMENT(f64, double)
SEGMENT(i8, int64_t)
SEGMENT(u8, int64_t)
SEGMENT(i16, int64_t)
SEGMENT(i32, int64_t)
SEGMENT(i64, int64_t)
