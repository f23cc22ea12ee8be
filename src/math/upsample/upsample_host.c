/* Host twins of upsample_kernels.h: taps are found in the same arithmetic as on a GPU, sums are in double. |dtype| is a
 * compile-time constant wherever a function is inlined. */
#include "math/common/host/doubles.h"
#include "math/upsample/upsample_kernels.h"

#define INLINE static inline __attribute__((always_inline))

struct taps {
  int count;
  int64_t offset[4];
  double weight[4];
};

INLINE struct taps taps_of(const struct upsample_args *a, rdna_dtype dtype, int d, int32_t o) {
  const struct upsample_axis *axis = &a->axis[d];
  struct taps taps = {1, {0}, {1}};
  bool nearest = a->kind <= UPSAMPLE_NEAREST_EXACT;
  if (!nearest && d < 3 - (int)a->dims) return taps;
  taps.count = upsample_taps(a->kind);
  float t_f32 = 0;
  double t_f64 = 0;
  int32_t low = dtype == RDNA_F64 ? upsample_place_f64(axis, a->kind, a->align_corners, o, &t_f64)
                                  : upsample_place_f32(axis, a->kind, a->align_corners, o, &t_f32);
  for (int k = 0; k < taps.count; k++) {
    taps.offset[k] = upsample_input(axis, a->kind, low, k) * a->x.stride[2 + d];
    taps.weight[k] =
        dtype == RDNA_F64 ? upsample_weight_f64(a->kind, t_f64, k) : (double)upsample_weight_f32(a->kind, t_f32, k);
  }
  return taps;
}

INLINE void forward_range(const struct upsample_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    struct volume_place p = volume_place_at(&a->order, (uint32_t)i);
    struct taps z = taps_of(a, dtype, 0, p.z), y = taps_of(a, dtype, 1, p.y), x = taps_of(a, dtype, 2, p.x);
    uint32_t c = (uint32_t)p.c * a->order.channels, last = c + a->order.channels;
    for (; c < last && c < a->channels; c++) {
      int64_t plane = volume_channel(&a->x, p.n, c);
      double sum = 0;
      for (int j = 0; j < z.count; j++) {
        for (int k = 0; k < y.count; k++) {
          double row = 0;
          for (int l = 0; l < x.count; l++) {
            row += x.weight[l] * load_double(dtype, a->x.data, plane + z.offset[j] + y.offset[k] + x.offset[l]);
          }
          sum += z.weight[j] * y.weight[k] * row;
        }
      }
      store_double(dtype, a->out.data, volume_channel(&a->out, p.n, c) + volume_offset(&a->out, p.z, p.y, p.x), sum);
    }
  }
}

INLINE uint32_t kind_of(const struct upsample_args *a, int d) {
  return a->kind <= UPSAMPLE_NEAREST_EXACT || d >= 3 - (int)a->dims ? a->kind : (uint32_t)UPSAMPLE_NEAREST;
}
INLINE struct upsample_reach outputs_of(const struct upsample_args *a, rdna_dtype dtype, int d, int32_t i) {
  if (dtype == RDNA_F64) return upsample_outputs_f64(&a->axis[d], kind_of(a, d), a->align_corners, i);
  return upsample_outputs_f32(&a->axis[d], kind_of(a, d), a->align_corners, i);
}
INLINE double share_of(const struct upsample_args *a, rdna_dtype dtype, int d, int32_t o, int32_t i) {
  if (dtype == RDNA_F64) return upsample_share_f64(&a->axis[d], kind_of(a, d), a->align_corners, o, i);
  return (double)upsample_share_f32(&a->axis[d], kind_of(a, d), a->align_corners, o, i);
}

INLINE void backward_range(const struct upsample_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    struct volume_place p = volume_place_at(&a->order, (uint32_t)i);
    struct upsample_reach rz = outputs_of(a, dtype, 0, p.z), ry = outputs_of(a, dtype, 1, p.y);
    struct upsample_reach rx = outputs_of(a, dtype, 2, p.x);
    uint32_t c = (uint32_t)p.c * a->order.channels, count = a->channels - c;
    if (count > a->order.channels) count = a->order.channels;
    double sum[UPSAMPLE_BLOCK] = {0};
    for (int32_t z = rz.begin; z < rz.end; z++) {
      double z_share = share_of(a, dtype, 0, z, p.z);
      for (int32_t y = ry.begin; y < ry.end; y++) {
        double zy_share = z_share * share_of(a, dtype, 1, y, p.y);
        for (int32_t x = rx.begin; x < rx.end; x++) {
          double share = zy_share * share_of(a, dtype, 2, x, p.x);
          int64_t at = volume_channel(&a->out, p.n, c) + volume_offset(&a->out, z, y, x);
          for (uint32_t j = 0; j < count; j++) {
            sum[j] += share * load_double(dtype, a->out.data, at + j * a->out.stride[1]);
          }
        }
      }
    }
    int64_t to = volume_channel(&a->x, p.n, c) + volume_offset(&a->x, p.z, p.y, p.x);
    for (uint32_t j = 0; j < count; j++) store_double(dtype, a->x.data, to + j * a->x.stride[1], sum[j]);
  }
}

#define UPSAMPLE_RANGES(type, dtype)                                          \
  static void forward_##type(void *context, int64_t begin, int64_t end) {     \
    forward_range((const struct upsample_args *)context, dtype, begin, end);  \
  }                                                                           \
  static void backward_##type(void *context, int64_t begin, int64_t end) {    \
    backward_range((const struct upsample_args *)context, dtype, begin, end); \
  }
#define UPSAMPLE_TWIN(name, range)                                \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { \
    struct upsample_args a = *(const struct upsample_args *)args; \
    rdna__parallel_for(a.order.shape.count, 256, range, &a);      \
  }
#define UPSAMPLE_TWINS(type, dtype)                                \
  UPSAMPLE_RANGES(type, dtype)                                     \
  UPSAMPLE_TWIN(upsample_nearest_##type, forward_##type)           \
  UPSAMPLE_TWIN(upsample_linear_##type, forward_##type)            \
  UPSAMPLE_TWIN(upsample_cubic_##type, forward_##type)             \
  UPSAMPLE_TWIN(upsample_nearest_backward_##type, backward_##type) \
  UPSAMPLE_TWIN(upsample_linear_backward_##type, backward_##type)  \
  UPSAMPLE_TWIN(upsample_cubic_backward_##type, backward_##type)
UPSAMPLE_TWINS(f32, RDNA_F32)
UPSAMPLE_TWINS(f16, RDNA_F16)
UPSAMPLE_TWINS(bf16, RDNA_BF16)
UPSAMPLE_TWINS(f64, RDNA_F64)
