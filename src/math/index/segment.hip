/* See segment_kernels.h. Memory traffic: each row is read once, in the order of the sorted keys, with its key and its
 * number; the parts are a sixteenth of that. The lanes of a wave have neighbouring columns of one chunk, if there are
 * as many columns. */
#include "kernel/arguments.h"
#include "math/common/device/values.h"
#include "math/index/segment_walk.h"

#define HALF_FUNCTIONS(type)                                                                     \
  RDNA_SCALAR float load_##type(const void *p, int64_t i) { return type::load(p, (uint64_t)i); } \
  RDNA_SCALAR void store_##type(void *p, int64_t i, float v) { type::store(p, (uint64_t)i, v); }
HALF_FUNCTIONS(f32)
HALF_FUNCTIONS(f16)
HALF_FUNCTIONS(bf16)
#define PLAIN_FUNCTIONS(name, type, kept)                                                       \
  RDNA_SCALAR kept load_##name(const void *p, int64_t i) { return (kept)((const type *)p)[i]; } \
  RDNA_SCALAR void store_##name(void *p, int64_t i, kept v) { ((type *)p)[i] = (type)v; }
PLAIN_FUNCTIONS(f64, double, double)
PLAIN_FUNCTIONS(i8, int8_t, int64_t)
PLAIN_FUNCTIONS(u8, uint8_t, int64_t)
PLAIN_FUNCTIONS(i16, int16_t, int64_t)
PLAIN_FUNCTIONS(i32, int32_t, int64_t)
PLAIN_FUNCTIONS(i64, int64_t, int64_t)

#define SEGMENT(name, kept)                                                                                   \
  SEGMENT_WALK(walk_##name, kept, load_##name, store_##name)                                                  \
  RDNA_KERNEL(SEGMENT_THREADS) segment_##name(struct segment_args a) {                                        \
    int64_t units = (int64_t)a.chunks * a.outer * a.inner, step = (int64_t)group_count_x() * SEGMENT_THREADS; \
    for (int64_t unit = (int64_t)group_id_x() * SEGMENT_THREADS + thread_id(); unit < units; unit += step)    \
      walk_##name##_walk(&arguments_again_wide(a), unit);                                                     \
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
