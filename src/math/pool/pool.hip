/* Pooling; see pool_kernels.h. */
#include "math/channels.h"
#include "math/pool/pool_kernels.h"

static constexpr uint32_t threads = POOL_THREADS;

template <int width>
RDNA_DEVICE void store_indices(const volume &indices, int64_t at, const int32_t *v) {
  int64_t *to = (int64_t *)indices.data + at;
  if constexpr (width == 1) {
    to[0] = v[0];
  } else {
#pragma unroll
    for (int k = 0; k < width; k += 2) {
      store_as<uint4>(to + k,
                      uint4{(uint32_t)v[k], (uint32_t)(v[k] >> 31), (uint32_t)v[k + 1], (uint32_t)(v[k + 1] >> 31)});
    }
  }
}
/* The low halves; planes have fewer than 2^31 values. */
template <int width>
RDNA_DEVICE void load_indices(const volume &indices, int64_t at, int32_t *v) {
  const int64_t *from = (const int64_t *)indices.data + at;
  if constexpr (width == 1) {
    v[0] = (int32_t)from[0];
  } else {
#pragma unroll
    for (int k = 0; k < width; k += 2) {
      uint4 bits = load_as<uint4>(from + k);
      v[k] = (int32_t)bits.x, v[k + 1] = (int32_t)bits.z;
    }
  }
}

/* Windows of at most FEW positions along a dimension, as most are. */
enum { FEW = 3 };
RDNA_DEVICE bool few_positions(const pool_axis &axis) { return axis.window != 0 && axis.window <= FEW; }

template <typename type, int width>
RDNA_DEVICE void max_pool(const pool_args &a) {
  typedef typename computed<type>::in acc;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  pool_window wz = pool_window_at(&a.axis[0], p.z), wy = pool_window_at(&a.axis[1], p.y);
  pool_window wx = pool_window_at(&a.axis[2], p.x);
  int64_t plane = volume_plane(&a.x, p, width);
  bool some = wz.begin < wz.end && wy.begin < wy.end && wx.begin < wx.end;
  int32_t first = some ? (wz.begin * a.axis[1].in + wy.begin) * a.axis[2].in + wx.begin : -1, best_at[width];
  acc best[width], v[width];
#pragma unroll
  for (int k = 0; k < width; k++) best[k] = -infinity_f32(), best_at[k] = first;
  auto look_at = [&](const acc *found, int32_t number) {
#pragma unroll
    for (int k = 0; k < width; k++) {
      bool larger = found[k] > best[k] || found[k] != found[k];
      best[k] = larger ? found[k] : best[k];
      best_at[k] = larger ? number : best_at[k];
    }
  };
  if (few_positions(a.axis[1]) && few_positions(a.axis[2])) { /* a plane's loads are under way together */
    for (int32_t z = wz.begin; z < wz.end; z += a.axis[0].dilation) {
      acc found[FEW * FEW][width];
#pragma unroll
      for (int j = 0; j < FEW * FEW; j++) {
        int32_t y = wy.begin + j / FEW * a.axis[1].dilation, x = wx.begin + j % FEW * a.axis[2].dilation;
#pragma unroll
        for (int k = 0; k < width; k++) found[j][k] = -infinity_f32();
        if (y < wy.end && x < wx.end) {
          load_channels<type, width>(a.x.data, plane + volume_offset(&a.x, z, y, x), found[j]);
        }
      }
#pragma unroll
      for (int j = 0; j < FEW * FEW; j++) { /* what is not there is -infinity, which is larger than nothing */
        int32_t y = wy.begin + j / FEW * a.axis[1].dilation, x = wx.begin + j % FEW * a.axis[2].dilation;
        look_at(found[j], (z * a.axis[1].in + y) * a.axis[2].in + x);
      }
    }
  } else {
    for (int32_t z = wz.begin; z < wz.end; z += a.axis[0].dilation) {
      for (int32_t y = wy.begin; y < wy.end; y += a.axis[1].dilation) {
        int64_t row = plane + volume_offset(&a.x, z, y, 0);
        int32_t number = (z * a.axis[1].in + y) * a.axis[2].in;
#pragma unroll 2
        for (int32_t x = wx.begin; x < wx.end; x += a.axis[2].dilation) {
          load_channels<type, width>(a.x.data, row + x * a.x.stride[4], v);
          look_at(v, number + x);
        }
      }
    }
  }
  store_channels<type, width>(a.out.data, volume_plane(&a.out, p, width) + volume_offset(&a.out, p.z, p.y, p.x), best);
  if (a.indices.data) {
    store_indices<width>(a.indices, volume_plane(&a.indices, p, width) + volume_offset(&a.indices, p.z, p.y, p.x),
                         best_at);
  }
}

template <typename type, int width>
RDNA_DEVICE void average_pool(const pool_args &a) {
  typedef typename computed<type>::in acc;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  pool_window wz = pool_window_at(&a.axis[0], p.z), wy = pool_window_at(&a.axis[1], p.y);
  pool_window wx = pool_window_at(&a.axis[2], p.x);
  int64_t plane = volume_plane(&a.x, p, width);
  bool some = wz.begin < wz.end && wy.begin < wy.end && wx.begin < wx.end;
  acc sum[width] = {}, v[width];
  for (int32_t z = wz.begin; z < wz.end; z++) {
    for (int32_t y = wy.begin; y < wy.end; y++) {
      int64_t row = plane + volume_offset(&a.x, z, y, 0);
#pragma unroll 2
      for (int32_t x = wx.begin; x < wx.end; x++) {
        load_channels<type, width>(a.x.data, row + x * a.x.stride[4], v);
#pragma unroll
        for (int k = 0; k < width; k++) sum[k] += v[k];
      }
    }
  }
  acc divisor = (acc)(a.divisor ? a.divisor : some ? pool_count(wz, wy, wx, a.padding) : 1);
#pragma unroll
  for (int k = 0; k < width; k++) sum[k] /= divisor;
  store_channels<type, width>(a.out.data, volume_plane(&a.out, p, width) + volume_offset(&a.out, p.z, p.y, p.x), sum);
}

template <typename type, int width, bool largest>
RDNA_DEVICE void pool_backward(const pool_backward_args &a) {
  typedef typename computed<type>::in acc;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  pool_reach rz = pool_windows_of(&a.axis[0], p.z), ry = pool_windows_of(&a.axis[1], p.y);
  pool_reach rx = pool_windows_of(&a.axis[2], p.x);
  int64_t plane = volume_plane(&a.dout, p, width), index_plane = largest ? volume_plane(&a.indices, p, width) : 0;
  int32_t number = (p.z * a.axis[1].in + p.y) * a.axis[2].in + p.x;
  acc sum[width] = {}, v[width];
  for (int32_t z = rz.begin; z < rz.end; z++) {
    pool_window wz = pool_window_at(&a.axis[0], z);
    for (int32_t y = ry.begin; y < ry.end; y++) {
      pool_window wy = pool_window_at(&a.axis[1], y);
      for (int32_t x = rx.begin; x < rx.end; x++) {
        load_channels<type, width>(a.dout.data, plane + volume_offset(&a.dout, z, y, x), v);
        if constexpr (largest) {
          int32_t from[width];
          load_indices<width>(a.indices, index_plane + volume_offset(&a.indices, z, y, x), from);
#pragma unroll
          for (int k = 0; k < width; k++) sum[k] += from[k] == number ? v[k] : 0;
        } else {
          acc divisor = (acc)(a.divisor ? a.divisor : pool_count(wz, wy, pool_window_at(&a.axis[2], x), a.padding));
#pragma unroll
          for (int k = 0; k < width; k++) sum[k] += v[k] / divisor;
        }
      }
    }
  }
  store_channels<type, width>(a.dx.data, volume_plane(&a.dx, p, width) + volume_offset(&a.dx, p.z, p.y, p.x), sum);
}

#define POOL(name, args, type)                             \
  RDNA_KERNEL(POOL_THREADS) name##_##type(struct args a) { \
    if (a.order.vector) {                                  \
      name<type, type::IN_16>(a);                          \
    } else {                                               \
      name<type, 1>(a);                                    \
    }                                                      \
  }
template <typename type, int width>
RDNA_DEVICE void max_pool_backward(const pool_backward_args &a) {
  pool_backward<type, width, true>(a);
}
template <typename type, int width>
RDNA_DEVICE void average_pool_backward(const pool_backward_args &a) {
  pool_backward<type, width, false>(a);
}
#define POOL_TYPE(type)                             \
  POOL(max_pool, pool_args, type)                   \
  POOL(average_pool, pool_args, type)               \
  POOL(max_pool_backward, pool_backward_args, type) \
  POOL(average_pool_backward, pool_backward_args, type)
POOL_TYPE(f32)
POOL_TYPE(f16)
POOL_TYPE(bf16)
POOL_TYPE(f64)
