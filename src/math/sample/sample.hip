/* Sampling at any places; see sample_kernels.h. */
#include "kernel/arguments.h"
#include "math/common/device/channels.h"
#include "math/sample/sample_kernels.h"

template <typename acc>
struct on_axis {};
template <>
struct on_axis<float> {
  typedef sample_taps_f32 taps;
  RDNA_DEVICE taps of(const sample_grid &g, uint32_t kind, int32_t size, float v) {
    return sample_taps_of_f32(&g, kind, size, v);
  }
};
template <>
struct on_axis<double> {
  typedef sample_taps_f64 taps;
  RDNA_DEVICE taps of(const sample_grid &g, uint32_t kind, int32_t size, double v) {
    return sample_taps_of_f64(&g, kind, size, v);
  }
};

/* The taps of dimension |d| (0 z, 1 y, 2 x) of a place; of one that the image lacks, its only value. */
template <typename type, int kind>
RDNA_DEVICE typename on_axis<typename computed<type>::in>::taps find_taps(const sample_grid &g, const sample_place &p,
                                                                          int32_t d) {
  typedef typename computed<type>::in acc;
  uint64_t at = (uint64_t)sample_coordinate(g.stride, &p, d);
  if constexpr (type::BYTES == 2) {
    if (g.wide) return on_axis<acc>::of(g, kind, g.size[d], ((const float *)g.data)[at]);
  }
  return on_axis<acc>::of(g, kind, g.size[d], type::load(g.data, at));
}

/* |dims|: 2 has taps along y and x, 3 along z too. */
template <typename type, int width, int kind, int dims>
RDNA_DEVICE void sample(const sample_args &a, volume_place at) {
  typedef typename computed<type>::in acc;
  typedef typename on_axis<acc>::taps taps;
  constexpr int n = kind == SAMPLE_CUBIC ? 4 : kind == SAMPLE_LINEAR ? 2 : 1, nz = dims > 2 ? n : 1;
  constexpr int block = width == 1 ? SAMPLE_BLOCK : 1;
  sample_place p = {at.x, at.y, at.z, at.n};
  taps tz, ty = find_taps<type, kind>(a.grid, p, 1), tx = find_taps<type, kind>(a.grid, p, 2);
  if constexpr (dims > 2) tz = find_taps<type, kind>(a.grid, p, 0);
  uint32_t c = (uint32_t)at.c * a.order.channels, count = min_u32(a.order.channels, a.channels - c);
  if (width > 1) count = 1;
  int64_t from = volume_channel(&a.x, at.n, c);
  acc sum[block][width] = {};
#pragma unroll
  for (int z = 0; z < nz; z++) {
    int32_t iz = 0;
    acc wz = 1;
    if constexpr (dims > 2) iz = tz.at[z], wz = tz.weight[z];
#pragma unroll
    for (int y = 0; y < n; y++) {
#pragma unroll
      for (int x = 0; x < n; x++) {
        acc weight = wz * ty.weight[y] * tx.weight[x];
        if (iz < 0 || ty.at[y] < 0 || tx.at[x] < 0) {
          if (weight == weight || kind == SAMPLE_NEAREST) continue;
#pragma unroll
          for (uint32_t k = 0; k < block * width; k++) sum[k / width][k % width] = weight; /* a NaN place */
          continue;
        }
        int64_t value = from + volume_offset(&a.x, iz, ty.at[y], tx.at[x]);
#pragma unroll
        for (uint32_t k = 0; k < block; k++) {
          if (k >= count) break;
          acc v[width];
          load_channels<type, width>(a.x.data, value + k * a.x.stride[1], v);
#pragma unroll
          for (int l = 0; l < width; l++) sum[k][l] = kind == SAMPLE_NEAREST ? v[l] : fused(v[l], weight, sum[k][l]);
        }
      }
    }
  }
  int64_t to = volume_channel(&a.out, at.n, c) + volume_offset(&a.out, at.z, at.y, at.x);
#pragma unroll
  for (uint32_t k = 0; k < block; k++) {
    if (k < count) store_channels<type, width>(a.out.data, to + k * a.out.stride[1], sum[k]);
  }
}

template <typename type, int width, int kind>
RDNA_DEVICE void forward(const sample_args &a) {
  uint32_t i = group_id_x() * SAMPLE_THREADS + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place at = volume_place_at(&a.order, i);
  if constexpr (kind == SAMPLE_CUBIC) {
    sample<type, width, kind, 2>(a, at);
  } else if (a.grid.dims == 2) {
    sample<type, width, kind, 2>(a, at);
  } else {
    sample<type, width, kind, 3>(a, at);
  }
}

/* The gradient of a place: the slopes of its corners' weights, times what dout says of their values. */
template <typename type, int kind, int dims>
RDNA_DEVICE void slope_at(const sample_slope_args &a, const sample_place &p) {
  typedef typename computed<type>::in acc;
  typedef typename on_axis<acc>::taps taps;
  constexpr int n = kind == SAMPLE_CUBIC ? 4 : 2, nz = dims > 2 ? n : 1;
  taps tz, ty = find_taps<type, kind>(a.grid, p, 1), tx = find_taps<type, kind>(a.grid, p, 2);
  if constexpr (dims > 2) tz = find_taps<type, kind>(a.grid, p, 0);
  acc by[3] = {0, 0, 0};
  int64_t from = volume_offset(&a.dout, p.z, p.y, p.x) + p.n * a.dout.stride[0], image = p.n * a.x.stride[0];
#pragma nounroll
  for (uint32_t c = 0; c < a.channels; c++) {
    acc g = type::load(a.dout.data, (uint64_t)from);
#pragma unroll
    for (int z = 0; z < nz; z++) {
      int32_t iz = 0;
      acc wz = 1, sz = 0;
      if constexpr (dims > 2) iz = tz.at[z], wz = tz.weight[z], sz = tz.slope[z];
#pragma unroll
      for (int y = 0; y < n; y++) {
#pragma unroll
        for (int x = 0; x < n; x++) {
          acc v = 0; /* of what lies outside; a NaN place makes NaN of it */
          if (iz >= 0 && ty.at[y] >= 0 && tx.at[x] >= 0)
            v = g * type::load(a.x.data, (uint64_t)(image + volume_offset(&a.x, iz, ty.at[y], tx.at[x])));
          by[1] = fused(v, wz * ty.slope[y] * tx.weight[x], by[1]);
          by[2] = fused(v, wz * ty.weight[y] * tx.slope[x], by[2]);
          if constexpr (dims > 2) by[0] = fused(v, sz * ty.weight[y] * tx.weight[x], by[0]);
        }
      }
    }
    from += a.dout.stride[1], image += a.x.stride[1];
  }
#pragma unroll
  for (int d = 3 - dims; d < 3; d++) {
    uint64_t at = (uint64_t)sample_coordinate(a.stride, &p, d);
    if (type::BYTES == 2 && a.grid.wide) {
      ((float *)a.dgrid)[at] = (float)by[d];
    } else {
      type::store(a.dgrid, at, by[d]);
    }
  }
}

template <typename type, int kind>
RDNA_DEVICE void slope(const sample_slope_args &a) {
  uint32_t i = group_id_x() * SAMPLE_THREADS + thread_id();
  if (i >= a.shape.count) return;
  sample_place p = sample_place_at(&a.shape, i);
  if constexpr (kind == SAMPLE_CUBIC) {
    slope_at<type, kind, 2>(a, p);
  } else if (a.grid.dims == 2) {
    slope_at<type, kind, 2>(a, p);
  } else {
    slope_at<type, kind, 3>(a, p);
  }
}

template <typename type, int kind, int dims>
RDNA_DEVICE void corners_of(const sample_corners_args &a, uint32_t i) {
  typedef typename computed<type>::in acc;
  typedef typename on_axis<acc>::taps taps;
  constexpr int n = kind == SAMPLE_CUBIC ? 4 : kind == SAMPLE_LINEAR ? 2 : 1, nz = dims > 2 ? n : 1;
  sample_place p = sample_place_at(&a.shape, i);
  taps tz, ty = find_taps<type, kind>(a.grid, p, 1), tx = find_taps<type, kind>(a.grid, p, 2);
  if constexpr (dims > 2) tz = find_taps<type, kind>(a.grid, p, 0);
  uint64_t to = (uint64_t)p.n * a.corners * a.positions + (i - (uint32_t)p.n * a.positions);
#pragma unroll
  for (int z = 0; z < nz; z++) {
    int32_t iz = 0;
    acc wz = 1;
    if constexpr (dims > 2) iz = tz.at[z], wz = tz.weight[z];
#pragma unroll
    for (int y = 0; y < n; y++) {
#pragma unroll
      for (int x = 0; x < n; x++) {
        bool inside = iz >= 0 && ty.at[y] >= 0 && tx.at[x] >= 0;
        int32_t value = (iz * a.grid.size[1] + ty.at[y]) * a.grid.size[2] + tx.at[x];
        a.values[to] = inside ? value : (int32_t)a.plane;
        ((acc *)a.weights)[to] = wz * ty.weight[y] * tx.weight[x];
        to += a.positions;
      }
    }
  }
}

template <typename type>
RDNA_DEVICE void corners(const sample_corners_args &a) {
  uint32_t i = group_id_x() * SAMPLE_THREADS + thread_id();
  if (i >= a.shape.count) return;
  if (a.grid.kind == SAMPLE_CUBIC) {
    corners_of<type, SAMPLE_CUBIC, 2>(a, i);
  } else if (a.grid.kind == SAMPLE_LINEAR) {
    if (a.grid.dims == 2) {
      corners_of<type, SAMPLE_LINEAR, 2>(a, i);
    } else {
      corners_of<type, SAMPLE_LINEAR, 3>(a, i);
    }
  } else if (a.grid.dims == 2) {
    corners_of<type, SAMPLE_NEAREST, 2>(a, i);
  } else {
    corners_of<type, SAMPLE_NEAREST, 3>(a, i);
  }
}

RDNA_KERNEL(SAMPLE_THREADS) sample_starts(struct sample_starts_args a) {
  uint64_t i = (uint64_t)group_id_x() * SAMPLE_THREADS + thread_id();
  if (i >= (uint64_t)a.samples * (a.plane + 1)) return;
  uint32_t n = (uint32_t)(i / (a.plane + 1)), value = (uint32_t)(i % (a.plane + 1));
  const int32_t *row = a.values + (uint64_t)n * a.entries;
  uint32_t low = 0, high = a.entries; /* the first that is not below |value| is in [low, high] */
#pragma nounroll
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if ((uint32_t)row[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  a.starts[i] = low;
}

template <typename type, int width>
RDNA_DEVICE void gather(const sample_gather_args &a) {
  typedef typename computed<type>::in acc;
  constexpr int block = width == 1 ? SAMPLE_BLOCK : 1;
  uint32_t i = group_id_x() * SAMPLE_THREADS + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place at = volume_place_at(&a.order, i);
  uint32_t c = (uint32_t)at.c * a.order.channels, count = min_u32(a.order.channels, a.channels - c);
  if (width > 1) count = 1;
  uint32_t plane = (uint32_t)(a.size[0] * a.size[1] * a.size[2]);
  uint32_t value = (uint32_t)((at.z * a.size[1] + at.y) * a.size[2] + at.x);
  uint64_t row = (uint64_t)at.n * a.entries;
  const uint32_t *starts = a.starts + (uint64_t)at.n * (plane + 1) + value;
  int64_t from = volume_channel(&a.dout, at.n, c);
  acc sum[block][width] = {};
  uint32_t end = starts[1];
#pragma nounroll
  for (uint32_t e = starts[0]; e < end; e++) {
    const sample_gather_args &now = arguments_again_wide(a);
    uint32_t entry = now.places[row + e];
    acc weight = ((const acc *)now.weights)[row + entry];
    sample_place p = sample_place_at(&now.shape, entry);
    int64_t of = from + volume_offset(&now.dout, p.z, p.y, p.x);
#pragma unroll
    for (uint32_t k = 0; k < block; k++) {
      if (k >= count) break;
      acc v[width];
      load_channels<type, width>(now.dout.data, of + k * now.dout.stride[1], v);
#pragma unroll
      for (int l = 0; l < width; l++) sum[k][l] = fused(v[l], weight, sum[k][l]);
    }
  }
  int64_t to = volume_channel(&a.dx, at.n, c) + volume_offset(&a.dx, at.z, at.y, at.x);
#pragma unroll
  for (uint32_t k = 0; k < block; k++) {
    if (k < count) store_channels<type, width>(a.dx.data, to + k * a.dx.stride[1], sum[k]);
  }
}

#define SAMPLE_BY_WIDTH(name, call, args, type, ...)         \
  RDNA_KERNEL(SAMPLE_THREADS) name##_##type(struct args a) { \
    if (a.order.vector) {                                    \
      call<type, type::IN_16 __VA_ARGS__>(a);                \
    } else {                                                 \
      call<type, 1 __VA_ARGS__>(a);                          \
    }                                                        \
  }
#define COMMA ,
#define SAMPLE_TYPE(type)                                                                                             \
  SAMPLE_BY_WIDTH(sample_linear, forward, sample_args, type, COMMA SAMPLE_LINEAR)                                     \
  SAMPLE_BY_WIDTH(sample_nearest, forward, sample_args, type, COMMA SAMPLE_NEAREST)                                   \
  SAMPLE_BY_WIDTH(sample_cubic, forward, sample_args, type, COMMA SAMPLE_CUBIC)                                       \
  SAMPLE_BY_WIDTH(sample_gather, gather, sample_gather_args, type, )                                                  \
  RDNA_KERNEL(SAMPLE_THREADS) sample_slope_linear_##type(struct sample_slope_args a) {                                \
    slope<type, SAMPLE_LINEAR>(a);                                                                                    \
  }                                                                                                                   \
  RDNA_KERNEL(SAMPLE_THREADS) sample_slope_cubic_##type(struct sample_slope_args a) { slope<type, SAMPLE_CUBIC>(a); } \
  RDNA_KERNEL(SAMPLE_THREADS) sample_corners_##type(struct sample_corners_args a) { corners<type>(a); }
SAMPLE_TYPE(f32)
SAMPLE_TYPE(f16)
SAMPLE_TYPE(bf16)
SAMPLE_TYPE(f64)
