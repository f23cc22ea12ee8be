/* Windows put back; see fold_kernels.h. */
#include "math/common/device/doubles.h"
#include "math/pool/fold_kernels.h"

template <typename type>
RDNA_DEVICE void fold(const fold_args &a) {
  uint32_t i = group_id_x() * FOLD_THREADS + thread_id();
  if (i >= a.count) return;
  const pool_axis &z = a.axis[0], &y = a.axis[1], &x = a.axis[2];
  uint32_t row = i / (uint32_t)x.in, layer = row / (uint32_t)y.in, plane = layer / (uint32_t)z.in;
  int32_t px = (int32_t)(i - row * (uint32_t)x.in), py = (int32_t)(row - layer * (uint32_t)y.in);
  int32_t pz = (int32_t)(layer - plane * (uint32_t)z.in), tz, ty, tx;
  pool_reach rz = pool_windows_of(&z, pz), ry = pool_windows_of(&y, py), rx = pool_windows_of(&x, px);
  typename computed<type>::in sum = 0;
  for (int32_t oz = rz.begin; oz < rz.end; oz++) {
    if (!fold_tap(&z, pz, oz, &tz)) continue;
    for (int32_t oy = ry.begin; oy < ry.end; oy++) {
      if (!fold_tap(&y, py, oy, &ty)) continue;
      for (int32_t ox = rx.begin; ox < rx.end; ox++) {
        if (!fold_tap(&x, px, ox, &tx)) continue;
        uint64_t tap = (((uint64_t)plane * (uint32_t)z.window + (uint32_t)tz) * (uint32_t)y.window + (uint32_t)ty) *
                           (uint32_t)x.window +
                       (uint32_t)tx;
        sum += type::load(
            a.columns,
            ((tap * (uint32_t)z.out + (uint32_t)oz) * (uint32_t)y.out + (uint32_t)oy) * (uint32_t)x.out + (uint32_t)ox);
      }
    }
  }
  type::store(a.out, i, sum);
}

#define FOLD_KERNEL(type) \
  RDNA_KERNEL(FOLD_THREADS) fold_##type(struct fold_args a) { fold<type>(a); }
FOLD_KERNEL(f32)
FOLD_KERNEL(f16)
FOLD_KERNEL(bf16)
FOLD_KERNEL(f64)
