#include "math/cast/cast_kernels.h"

#include "kernel/float8.h"
#include "math/common/host/values.h"

#define STORED_i32 int32_t
SIMD_INLINE const float *read_i32(float *buffer, const int32_t *p, int64_t n) {
  for (int64_t i = 0; i < n; i++) buffer[i] = (float)p[i];
  return buffer;
}

#define FLOAT8(name, NAME)                                                           \
  SIMD_INLINE const float *read_##name(float *buffer, const uint8_t *p, int64_t n) { \
    for (int64_t i = 0; i < n; i++) buffer[i] = float8_to_f32(RDNA_##NAME, p[i]);    \
    return buffer;                                                                   \
  }                                                                                  \
  SIMD_INLINE void store_##name(uint8_t *p, const float *values, int64_t n) {        \
    for (int64_t i = 0; i < n; i++) p[i] = float8_from_f32(RDNA_##NAME, values[i]);  \
  }
FLOAT8(f8_e4m3fn, F8_E4M3FN)
FLOAT8(f8_e5m2, F8_E5M2)
FLOAT8(f8_e4m3fnuz, F8_E4M3FNUZ)
FLOAT8(f8_e5m2fnuz, F8_E5M2FNUZ)
#define STORED_f8_e4m3fn uint8_t
#define STORED_f8_e5m2 uint8_t
#define STORED_f8_e4m3fnuz uint8_t
#define STORED_f8_e5m2fnuz uint8_t

/* Clamps |values| to magnitudes up to |largest|, into |buffer|, which may be |values| itself. */
SIMD_INLINE const float *limited(const float *values, float *buffer, int64_t n, float largest) {
  for (int64_t i = 0; i < n; i++) buffer[i] = float8_limit(values[i], largest);
  return buffer;
}

#define CAST(from, to)                                                                   \
  static void cast_##from##_##to##_piece(void *context, int64_t begin, int64_t end) {    \
    const struct cast_args *a = context;                                                 \
    float buffer[RUN];                                                                   \
    for (int64_t n; begin < end; begin += n) {                                           \
      n = run_length(end - begin);                                                       \
      const float *values = read_##from(buffer, (const STORED_##from *)a->x + begin, n); \
      if (sizeof(STORED_##to) == 1) values = limited(values, buffer, n, a->largest);     \
      store_##to((STORED_##to *)a->out + begin, values, n);                              \
    }                                                                                    \
  }                                                                                      \
  void RDNA_HOST_KERNEL(cast_##from##_##to)(const void *args, rdna_grid grid) {          \
    struct cast_args a = *(const struct cast_args *)args;                                \
    rdna__parallel_for(a.count, 16384, cast_##from##_##to##_piece, &a);                  \
  }
RDNA__CASTS(CAST)
