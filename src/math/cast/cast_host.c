#include "math/cast/cast_kernels.h"
#include "math/values_host.h"

#define STORED_i32 int32_t
SIMD_INLINE const float *read_i32(float *buffer, const int32_t *p, int64_t n) {
  for (int64_t i = 0; i < n; i++) buffer[i] = (float)p[i];
  return buffer;
}

#define CAST(from, to)                                                                                           \
  static void cast_##from##_##to##_piece(void *context, int64_t begin, int64_t end) {                            \
    const struct cast_args *a = context;                                                                         \
    float buffer[RUN];                                                                                           \
    for (int64_t n; begin < end; begin += n) {                                                                   \
      n = run_length(end - begin);                                                                               \
      store_##to((STORED_##to *)a->out + begin, read_##from(buffer, (const STORED_##from *)a->x + begin, n), n); \
    }                                                                                                            \
  }                                                                                                              \
  void RDNA_HOST_KERNEL(cast_##from##_##to)(const void *args, rdna_grid grid) {                                  \
    struct cast_args a = *(const struct cast_args *)args;                                                        \
    rdna__parallel_for(a.count, 16384, cast_##from##_##to##_piece, &a);                                          \
  }
RDNA__CASTS(CAST)
