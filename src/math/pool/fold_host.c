/* Host twins of fold_kernels.h: sums in double. */
#include "math/common/host/doubles.h"
#include "math/pool/fold_kernels.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void fold(const struct fold_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  const struct pool_axis *z = &a->axis[0], *y = &a->axis[1], *x = &a->axis[2];
  for (int64_t i = begin; i < end; i++) {
    int64_t row = i / x->in, layer = row / y->in, plane = layer / z->in;
    int32_t px = (int32_t)(i % x->in), py = (int32_t)(row % y->in), pz = (int32_t)(layer % z->in), tz, ty, tx;
    struct pool_reach rz = pool_windows_of(z, pz), ry = pool_windows_of(y, py), rx = pool_windows_of(x, px);
    double sum = 0;
    for (int32_t oz = rz.begin; oz < rz.end; oz++) {
      if (!fold_tap(z, pz, oz, &tz)) continue;
      for (int32_t oy = ry.begin; oy < ry.end; oy++) {
        if (!fold_tap(y, py, oy, &ty)) continue;
        for (int32_t ox = rx.begin; ox < rx.end; ox++) {
          if (!fold_tap(x, px, ox, &tx)) continue;
          int64_t tap = ((plane * z->window + tz) * y->window + ty) * x->window + tx;
          sum += load_double(dtype, a->columns, ((tap * z->out + oz) * y->out + oy) * x->out + ox);
        }
      }
    }
    store_double(dtype, a->out, i, sum);
  }
}

#define FOLD_TWIN(type, dtype)                                                                             \
  static void part_##type(void *context, int64_t begin, int64_t end) { fold(context, dtype, begin, end); } \
  void RDNA_HOST_KERNEL(fold_##type)(const void *args, rdna_grid grid) {                                   \
    struct fold_args a = *(const struct fold_args *)args;                                                  \
    rdna__parallel_for((int64_t)a.count, 1 << 9, part_##type, &a);                                         \
  }
FOLD_TWIN(f32, RDNA_F32)
FOLD_TWIN(f16, RDNA_F16)
FOLD_TWIN(bf16, RDNA_BF16)
FOLD_TWIN(f64, RDNA_F64)
