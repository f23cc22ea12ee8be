/* Resampling; see upsample_kernels.h. A thread has one position and up to UPSAMPLE_BLOCK channels or one vector of them
 * (struct volume_order), and finds the taps of the position once for all of them. */
#include "kernel/arguments.h"
#include "math/common/device/channels.h"
#include "math/upsample/upsample_kernels.h"

static constexpr uint32_t threads = UPSAMPLE_THREADS;

template <typename acc>
struct on_axis {};
template <>
struct on_axis<float> {
  RDNA_DEVICE int32_t place(const upsample_axis *a, uint32_t kind, bool align, int32_t o, float *t) {
    return upsample_place_f32(a, kind, align, o, t);
  }
  RDNA_DEVICE float weight(uint32_t kind, float t, int32_t tap) { return upsample_weight_f32(kind, t, tap); }
  RDNA_DEVICE float share(const upsample_axis *a, uint32_t kind, bool align, int32_t o, int32_t i) {
    return upsample_share_f32(a, kind, align, o, i);
  }
  RDNA_DEVICE upsample_reach outputs(const upsample_axis *a, uint32_t kind, bool align, int32_t i) {
    return upsample_outputs_f32(a, kind, align, i);
  }
};
template <>
struct on_axis<double> {
  RDNA_DEVICE int32_t place(const upsample_axis *a, uint32_t kind, bool align, int32_t o, double *t) {
    return upsample_place_f64(a, kind, align, o, t);
  }
  RDNA_DEVICE double weight(uint32_t kind, double t, int32_t tap) { return upsample_weight_f64(kind, t, tap); }
  RDNA_DEVICE double share(const upsample_axis *a, uint32_t kind, bool align, int32_t o, int32_t i) {
    return upsample_share_f64(a, kind, align, o, i);
  }
  RDNA_DEVICE upsample_reach outputs(const upsample_axis *a, uint32_t kind, bool align, int32_t i) {
    return upsample_outputs_f64(a, kind, align, i);
  }
};

/* Finds the taps of output |o| along a dimension: |offset| in values from the channel's first, and the weight. */
template <int taps, typename acc>
RDNA_DEVICE void find_taps(const upsample_axis *a, uint32_t kind, bool align, int32_t o, int64_t stride,
                           int64_t *offset, acc *weight) {
  acc t;
  int32_t low = on_axis<acc>::place(a, kind, align, o, &t);
#pragma unroll
  for (int k = 0; k < taps; k++) {
    offset[k] = upsample_input(a, kind, low, k) * stride;
    weight[k] = on_axis<acc>::weight(kind, t, k);
  }
}

/* Forward. |dims|: 1 has several taps along x alone, 2 along y and x, 3 along z, y and x. */
template <typename type, int width, int kind, int dims>
RDNA_DEVICE void resample(const upsample_args &a, volume_place p) {
  typedef typename computed<type>::in acc;
  constexpr int taps = kind == UPSAMPLE_CUBIC ? 4 : kind == UPSAMPLE_LINEAR ? 2 : 1;
  constexpr int tz = dims > 2 ? taps : 1, ty = dims > 1 ? taps : 1, tx = taps;
  constexpr bool weighted = taps > 1;
  uint32_t of = weighted ? (uint32_t)kind : a.kind;
  bool align = a.align_corners;
  int64_t z_at[tz], y_at[ty], x_at[tx];
  acc z_weight[tz], y_weight[ty], x_weight[tx];
  if constexpr (dims > 2 || !weighted) {
    find_taps<tz>(&a.axis[0], of, align, p.z, a.x.stride[2], z_at, z_weight);
  } else {
    z_at[0] = 0, z_weight[0] = 1;
  }
  if constexpr (dims > 1 || !weighted) {
    find_taps<ty>(&a.axis[1], of, align, p.y, a.x.stride[3], y_at, y_weight);
  } else {
    y_at[0] = 0, y_weight[0] = 1;
  }
  find_taps<tx>(&a.axis[2], of, align, p.x, a.x.stride[4], x_at, x_weight);
  uint32_t c = (uint32_t)p.c * a.order.channels, end = min_u32(c + a.order.channels, a.channels);
  int64_t from = volume_channel(&a.x, p.n, c);
  int64_t to = volume_channel(&a.out, p.n, c) + volume_offset(&a.out, p.z, p.y, p.x);
#pragma unroll(taps == 4 ? 1 : taps == 2 ? 2 : 4)
  for (; c < end; c += width) {
    acc sum[width] = {}, v[width];
#pragma unroll
    for (int z = 0; z < tz; z++) {
#pragma unroll
      for (int y = 0; y < ty; y++) {
        acc row[width] = {};
#pragma unroll
        for (int x = 0; x < tx; x++) {
          load_channels<type, width>(a.x.data, from + z_at[z] + y_at[y] + x_at[x], v);
#pragma unroll
          for (int k = 0; k < width; k++) row[k] = weighted ? fused(v[k], x_weight[x], row[k]) : v[k];
        }
#pragma unroll
        for (int k = 0; k < width; k++) {
          sum[k] = weighted ? fused(row[k], z_weight[z] * y_weight[y], sum[k]) : row[k];
        }
      }
    }
    store_channels<type, width>(a.out.data, to, sum);
    from += width * a.x.stride[1], to += width * a.out.stride[1];
  }
}

template <typename type, int width, int kind>
RDNA_DEVICE void upsample(const upsample_args &a) {
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  if constexpr (kind != UPSAMPLE_LINEAR) {
    resample<type, width, kind, kind == UPSAMPLE_CUBIC ? 2 : 3>(a, p);
  } else if (a.dims == 1) {
    resample<type, width, kind, 1>(a, p);
  } else if (a.dims == 2) {
    resample<type, width, kind, 2>(a, p);
  } else {
    resample<type, width, kind, 3>(a, p);
  }
}

/* Backward: a.x is dx and a.out dout. */
template <typename type, int width, int family>
RDNA_DEVICE void upsample_backward(const upsample_args &a) {
  typedef typename computed<type>::in acc;
  constexpr int block = width == 1 ? UPSAMPLE_BLOCK : 1;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  bool align = a.align_corners;
  uint32_t kind = family == UPSAMPLE_NEAREST ? a.kind : (uint32_t)family;
  /* dimensions that are missing have one input and one output */
  uint32_t z_kind = a.dims > 2 || family == UPSAMPLE_NEAREST ? kind : (uint32_t)UPSAMPLE_NEAREST;
  uint32_t y_kind = a.dims > 1 || family == UPSAMPLE_NEAREST ? kind : (uint32_t)UPSAMPLE_NEAREST;
  upsample_reach rz = on_axis<acc>::outputs(&a.axis[0], z_kind, align, p.z);
  upsample_reach ry = on_axis<acc>::outputs(&a.axis[1], y_kind, align, p.y);
  upsample_reach rx = on_axis<acc>::outputs(&a.axis[2], kind, align, p.x);
  uint32_t c = (uint32_t)p.c * a.order.channels, count = min_u32(a.order.channels, a.channels - c);
  if (width > 1) count = 1;
  int64_t plane = volume_channel(&a.out, p.n, c);
  acc sum[block][width] = {};
#pragma nounroll
  for (int32_t z = rz.begin; z < rz.end; z++) {
    const upsample_args &now = arguments_again_wide(a);
    acc z_weight = on_axis<acc>::share(&now.axis[0], z_kind, align, z, p.z);
#pragma nounroll
    for (int32_t y = ry.begin; y < ry.end; y++) {
      acc zy_weight = z_weight * on_axis<acc>::share(&now.axis[1], y_kind, align, y, p.y);
#pragma nounroll
      for (int32_t x = rx.begin; x < rx.end; x++) {
        acc weight = zy_weight * on_axis<acc>::share(&now.axis[2], kind, align, x, p.x);
        int64_t at = plane + volume_offset(&now.out, z, y, x);
#pragma unroll
        for (uint32_t j = 0; j < block; j++) {
          if (j >= count) break;
          acc v[width];
          load_channels<type, width>(now.out.data, at + j * now.out.stride[1], v);
#pragma unroll
          for (int k = 0; k < width; k++) sum[j][k] = fused(v[k], weight, sum[j][k]);
        }
      }
    }
  }
  int64_t to = volume_channel(&a.x, p.n, c) + volume_offset(&a.x, p.z, p.y, p.x);
#pragma unroll
  for (uint32_t j = 0; j < block; j++) {
    if (j < count) store_channels<type, width>(a.x.data, to + j * a.x.stride[1], sum[j]);
  }
}

#define UPSAMPLE(name, call, kind, type)                                \
  RDNA_KERNEL(UPSAMPLE_THREADS) name##_##type(struct upsample_args a) { \
    if (a.order.vector) {                                               \
      call<type, type::IN_16, kind>(a);                                 \
    } else {                                                            \
      call<type, 1, kind>(a);                                           \
    }                                                                   \
  }
#define UPSAMPLE_TYPE(type)                                                      \
  UPSAMPLE(upsample_nearest, upsample, UPSAMPLE_NEAREST, type)                   \
  UPSAMPLE(upsample_linear, upsample, UPSAMPLE_LINEAR, type)                     \
  UPSAMPLE(upsample_cubic, upsample, UPSAMPLE_CUBIC, type)                       \
  UPSAMPLE(upsample_nearest_backward, upsample_backward, UPSAMPLE_NEAREST, type) \
  UPSAMPLE(upsample_linear_backward, upsample_backward, UPSAMPLE_LINEAR, type)   \
  UPSAMPLE(upsample_cubic_backward, upsample_backward, UPSAMPLE_CUBIC, type)
UPSAMPLE_TYPE(f32)
UPSAMPLE_TYPE(f16)
UPSAMPLE_TYPE(bf16)
UPSAMPLE_TYPE(f64)
