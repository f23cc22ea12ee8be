/* Pooling; see pool_kernels.h. */
#include "kernel/arguments.h"
#include "math/common/device/channels.h"
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

/* How many positions a window has along a dimension. */
RDNA_DEVICE int32_t tap_count(const pool_axis &a, pool_window w) {
  int32_t reach = w.end - w.begin;
  return reach <= 0 ? 0 : a.dilation == 1 ? reach : (reach + a.dilation - 1) / a.dilation;
}

/* Loads values of |rows| times |columns| positions, all in flight together. Past the window's end the last position is
 * loaded again. */
template <typename type, int width, int rows, int columns>
struct pool_patch {
  typedef typename computed<type>::in acc;
  uint4 bits[rows][columns];
  acc values[rows][columns];
  RDNA_DEVICE void load(pool_patch &p, const char *x, const int64_t *row, const int64_t *column) {
#pragma unroll
    for (int j = 0; j < rows; j++) {
#pragma unroll
      for (int k = 0; k < columns; k++) {
        if constexpr (width == 1) {
          p.values[j][k] = type::load(x, (uint64_t)(row[j] + column[k]));
        } else {
          p.bits[j][k] = load_as<uint4>(x + (row[j] + column[k]) * type::BYTES);
        }
      }
    }
  }
  RDNA_DEVICE void get(const pool_patch &p, int j, int k, acc *v) {
    if constexpr (width == 1) {
      v[0] = p.values[j][k];
    } else {
      type::unpack(p.bits[j][k], v);
    }
  }
};

template <typename acc, int width>
struct largest_of {
  acc best[width];
  int32_t at[width];
  RDNA_DEVICE void begin(largest_of &s, int32_t first) {
#pragma unroll
    for (int k = 0; k < width; k++) s.best[k] = -infinity_f32(), s.at[k] = first;
  }
  /* Taking a position twice changes nothing. */
  RDNA_DEVICE void take(largest_of &s, const acc *v, int32_t number, bool again) {
#pragma unroll
    for (int k = 0; k < width; k++) {
      acc value = v[k];
      /* one after the other, or their masks, of two registers each, would not fit */
      if constexpr (width > 4 && WAVE_SIZE == 64) value = ::again(value);
      bool larger = value > s.best[k] || value != value;
      s.best[k] = larger ? value : s.best[k];
      s.at[k] = larger ? number : s.at[k];
    }
  }
};
template <typename acc, int width>
struct sum_of {
  acc sum[width];
  RDNA_DEVICE void begin(sum_of &s, int32_t first) {
#pragma unroll
    for (int k = 0; k < width; k++) s.sum[k] = 0;
  }
  RDNA_DEVICE void take(sum_of &s, const acc *v, int32_t number, bool again) {
#pragma unroll
    for (int k = 0; k < width; k++) s.sum[k] += again ? 0 : v[k];
  }
};

struct pool_windows {
  pool_window z, y, x;
  int32_t nz, ny, nx; /* positions of each; all 0 if one is */
  RDNA_DEVICE pool_windows at(const pool_args &a, volume_place p) {
    pool_windows w = {
        pool_window_at(&a.axis[0], p.z), pool_window_at(&a.axis[1], p.y), pool_window_at(&a.axis[2], p.x), 0, 0, 0};
    w.nz = tap_count(a.axis[0], w.z), w.ny = tap_count(a.axis[1], w.y), w.nx = tap_count(a.axis[2], w.x);
    if (w.ny == 0 || w.nx == 0) w.nz = 0;
    return w;
  }
};

/* Takes window |w| of the plane that begins at value |plane| into |state|. */
template <typename type, int width, int rows, int columns, typename state>
RDNA_DEVICE void take_window(const pool_args &a, const pool_windows &w, int64_t plane, state &s) {
  typedef typename computed<type>::in acc;
  const char *x = (const char *)a.x.data;
#pragma nounroll
  for (int32_t z = 0; z < w.nz; z++) {
    int32_t z_at = w.z.begin + z * a.axis[0].dilation;
#pragma nounroll
    for (int32_t y = 0; y < w.ny; y += rows) {
#pragma nounroll
      for (int32_t x_first = 0; x_first < w.nx; x_first += columns) {
        int32_t y_at[rows], x_at[columns];
        int64_t row[rows], column[columns];
#pragma unroll
        for (int j = 0; j < rows; j++) {
          y_at[j] = w.y.begin + (y + j < w.ny ? y + j : w.ny - 1) * a.axis[1].dilation;
          row[j] = plane + volume_offset(&a.x, z_at, y_at[j], 0);
        }
#pragma unroll
        for (int k = 0; k < columns; k++) {
          x_at[k] = w.x.begin + (x_first + k < w.nx ? x_first + k : w.nx - 1) * a.axis[2].dilation;
          column[k] = x_at[k] * a.x.stride[4];
        }
        pool_patch<type, width, rows, columns> patch;
        pool_patch<type, width, rows, columns>::load(patch, x, row, column);
#pragma unroll
        for (int j = 0; j < rows; j++) {
#pragma unroll
          for (int k = 0; k < columns; k++) {
            acc v[width];
            pool_patch<type, width, rows, columns>::get(patch, j, k, v);
            state::take(s, v, (z_at * a.axis[1].in + y_at[j]) * a.axis[2].in + x_at[k],
                        y + j >= w.ny || x_first + k >= w.nx);
          }
        }
      }
    }
  }
}

/* Takes the usual windows at once, others a few positions at a time; of vectors, row by row. */
template <typename type, int width, typename state>
RDNA_DEVICE void take_any_window(const pool_args &a, const pool_windows &w, int64_t plane, state &s) {
  if constexpr (width > 4) {
    take_window<type, width, 1, 2>(a, w, plane, s); /* comparisons of more would not fit scalar registers */
  } else if constexpr (width > 1) {
    if (a.axis[2].window == 3) {
      take_window<type, width, 1, 3>(a, w, plane, s);
    } else {
      take_window<type, width, 1, 2>(a, w, plane, s);
    }
  } else if (a.axis[1].window == 3 && a.axis[2].window == 3) {
    take_window<type, width, 3, 3>(a, w, plane, s);
  } else if (a.axis[1].window == 2 && a.axis[2].window == 2) {
    take_window<type, width, 2, 2>(a, w, plane, s);
  } else {
    take_window<type, width, 1, 4>(a, w, plane, s);
  }
}

template <typename type, int width>
RDNA_DEVICE void max_pool(const pool_args &a) {
  typedef largest_of<typename computed<type>::in, width> state;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  pool_windows w = pool_windows::at(a, p);
  int32_t first = w.nz ? (w.z.begin * a.axis[1].in + w.y.begin) * a.axis[2].in + w.x.begin : -1;
  uint32_t c = (uint32_t)p.c * a.order.channels, end = min_u32(c + a.order.channels, a.channels);
  int64_t from = volume_channel(&a.x, p.n, c);
  int64_t to = volume_channel(&a.out, p.n, c) + volume_offset(&a.out, p.z, p.y, p.x);
  int64_t number = volume_channel(&a.indices, p.n, c) + volume_offset(&a.indices, p.z, p.y, p.x);
  do {
    state s;
    state::begin(s, first);
    take_any_window<type, width>(a, w, from, s);
    const pool_args &now = arguments_again_wide(a);
    store_channels<type, width>(now.out.data, to, s.best);
    if (now.indices.data) store_indices<width>(now.indices, number, s.at);
    from += now.x.stride[1], to += now.out.stride[1], number += now.indices.stride[1];
  } while (width == 1 && ++c < end);
}

template <typename type, int width>
RDNA_DEVICE void average_pool(const pool_args &a) {
  typedef typename computed<type>::in acc;
  typedef sum_of<acc, width> state;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  pool_windows w = pool_windows::at(a, p);
  acc divisor = (acc)(a.divisor ? a.divisor : w.nz ? pool_count(w.z, w.y, w.x, a.padding) : 1);
  uint32_t c = (uint32_t)p.c * a.order.channels, end = min_u32(c + a.order.channels, a.channels);
  int64_t from = volume_channel(&a.x, p.n, c);
  int64_t to = volume_channel(&a.out, p.n, c) + volume_offset(&a.out, p.z, p.y, p.x);
  do {
    state s;
    state::begin(s, 0);
    take_any_window<type, width>(a, w, from, s);
#pragma unroll
    for (int k = 0; k < width; k++) s.sum[k] /= divisor;
    store_channels<type, width>(a.out.data, to, s.sum);
    from += a.x.stride[1], to += a.out.stride[1];
  } while (width == 1 && ++c < end);
}

template <typename type, int width, bool largest>
RDNA_DEVICE void pool_backward(const pool_backward_args &a) {
  typedef typename computed<type>::in acc;
  constexpr uint32_t block = width == 1 ? POOL_BLOCK : 1;
  uint32_t i = group_id_x() * threads + thread_id();
  if (i >= a.order.shape.count) return;
  volume_place p = volume_place_at(&a.order, i);
  pool_reach rz = pool_windows_of(&a.axis[0], p.z), ry = pool_windows_of(&a.axis[1], p.y);
  pool_reach rx = pool_windows_of(&a.axis[2], p.x);
  uint32_t c = (uint32_t)p.c * a.order.channels, count = min_u32(a.order.channels, a.channels - c);
  if (width > 1) count = 1;
  int64_t plane = volume_channel(&a.dout, p.n, c), index_plane = largest ? volume_channel(&a.indices, p.n, c) : 0;
  int32_t number = (p.z * a.axis[1].in + p.y) * a.axis[2].in + p.x;
  acc sum[block][width] = {};
#pragma nounroll
  for (int32_t z = rz.begin; z < rz.end; z++) {
    pool_window wz = pool_window_at(&a.axis[0], z);
#pragma nounroll
    for (int32_t y = ry.begin; y < ry.end; y++) {
      pool_window wy = pool_window_at(&a.axis[1], y);
#pragma nounroll
      for (int32_t x = rx.begin; x < rx.end; x++) {
        int64_t at = plane + volume_offset(&a.dout, z, y, x);
        int64_t index_at = largest ? index_plane + volume_offset(&a.indices, z, y, x) : 0;
        acc share = 1;
        if (!largest)
          share /= (acc)(a.divisor ? a.divisor : pool_count(wz, wy, pool_window_at(&a.axis[2], x), a.padding));
#pragma unroll
        for (uint32_t j = 0; j < block; j++) {
          if (j >= count) break;
          acc v[width];
          load_channels<type, width>(a.dout.data, at + j * a.dout.stride[1], v);
          if constexpr (largest) {
            int32_t from[width];
            load_indices<width>(a.indices, index_at + j * a.indices.stride[1], from);
#pragma unroll
            for (int k = 0; k < width; k++) sum[j][k] += from[k] == number ? v[k] : 0;
          } else {
#pragma unroll
            for (int k = 0; k < width; k++) sum[j][k] = fused(v[k], share, sum[j][k]);
          }
        }
      }
    }
  }
  int64_t to = volume_channel(&a.dx, p.n, c) + volume_offset(&a.dx, p.z, p.y, p.x);
#pragma unroll
  for (uint32_t j = 0; j < block; j++) {
    if (j < count) store_channels<type, width>(a.dx.data, to + j * a.dx.stride[1], sum[j]);
  }
}
template <typename type, int width>
RDNA_DEVICE void max_pool_backward(const pool_backward_args &a) {
  pool_backward<type, width, true>(a);
}
template <typename type, int width>
RDNA_DEVICE void average_pool_backward(const pool_backward_args &a) {
  pool_backward<type, width, false>(a);
}

/* |count| values of 8 bytes together. */
template <typename type, int count>
RDNA_DEVICE void store_8(void *p, const float *v) {
  float all[type::IN_16];
#pragma unroll
  for (int k = 0; k < type::IN_16; k++) all[k] = v[k % count];
  uint4 bits = type::pack(all);
  store_as<uint2>(p, uint2{bits.x, bits.y});
}

template <typename type, int window>
RDNA_DEVICE void max_pool_strip(const pool_strip_args &a, uint32_t i) {
  constexpr int windows = type::IN_16 / 2;
  int32_t digit[3];
#pragma unroll
  for (int d = 0; d < 3; d++) {
    uint32_t quotient = (uint32_t)(((uint64_t)a.shape.magic[d] * i) >> a.shape.shift[d]);
    digit[d] = (int32_t)(i - quotient * a.shape.size[d]);
    i = quotient;
  }
  int32_t first = digit[0] * type::IN_16, side = first > 0 ? first - 1 : 0;
  const char *plane = (const char *)a.x + (int64_t)digit[2] * a.in_h * a.in_w * type::BYTES;
  uint4 bits[window];
  typename type::stored beside[window];
  int32_t row[window]; /* number of its first value; rows and columns outside are their neighbours, taken twice */
#pragma unroll
  for (int j = 0; j < window; j++) {
    int32_t y = 2 * digit[1] - a.pad_before + j;
    row[j] = (y < 0 ? 0 : y < a.in_h ? y : a.in_h - 1) * a.in_w;
    bits[j] = load_as<uint4>(plane + (row[j] + first) * (int64_t)type::BYTES);
    if (window == 3) beside[j] = ((const typename type::stored *)plane)[row[j] + side];
  }
  largest_of<float, 1> s[windows];
#pragma unroll
  for (int j = 0; j < window; j++) {
    float v[type::IN_16], before = 0;
    type::unpack(bits[j], v);
    if (window == 3) before = type::load(&beside[j], 0);
#pragma unroll
    for (int k = 0; k < windows; k++) {
      const float *left = k == 0 ? &before : &v[2 * k - 1];
      int32_t left_at = row[j] + (k == 0 ? side : first + 2 * k - 1), at = row[j] + first + 2 * k;
      if (j == 0) {
        s[k].best[0] = window == 3 ? *left : v[2 * k], s[k].at[0] = window == 3 ? left_at : at;
      } else if (window == 3) {
        largest_of<float, 1>::take(s[k], left, left_at, false);
      }
      if (j > 0 || window == 3) largest_of<float, 1>::take(s[k], &v[2 * k], at, false);
      largest_of<float, 1>::take(s[k], &v[2 * k + 1], at + 1, false);
    }
  }
  float best[windows];
  int32_t at[windows];
#pragma unroll
  for (int k = 0; k < windows; k++) best[k] = s[k].best[0], at[k] = s[k].at[0];
  int64_t to = ((int64_t)digit[2] * a.shape.size[1] + digit[1]) * (a.in_w / 2) + first / 2;
  store_8<type, windows>((char *)a.out + to * type::BYTES, best);
  if (a.indices) store_indices<windows>(volume{a.indices, {}}, to, at);
}

#define POOL_STRIP(type)                                                      \
  RDNA_KERNEL(POOL_THREADS) max_pool_strip_##type(struct pool_strip_args a) { \
    uint32_t i = group_id_x() * threads + thread_id();                        \
    if (i >= a.shape.count) return;                                           \
    if (a.window == 3) {                                                      \
      max_pool_strip<type, 3>(a, i);                                          \
    } else {                                                                  \
      max_pool_strip<type, 2>(a, i);                                          \
    }                                                                         \
  }
POOL_STRIP(f32)
POOL_STRIP(f16)
POOL_STRIP(bf16)

#define POOL(name, args, type)                             \
  RDNA_KERNEL(POOL_THREADS) name##_##type(struct args a) { \
    if (a.order.vector) {                                  \
      name<type, type::IN_16>(a);                          \
    } else {                                               \
      name<type, 1>(a);                                    \
    }                                                      \
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
