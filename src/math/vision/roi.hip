/* Pooling of boxes; see roi_kernels.h. */
#include "kernel/arguments.h"
#include "math/common/device/channels.h"
#include "math/vision/roi_kernels.h"

template <typename acc>
struct on_box {};
#define ON_BOX(acc, suffix)                                                                                 \
  template <>                                                                                               \
  struct on_box<acc> {                                                                                      \
    typedef roi_box_##suffix box;                                                                           \
    typedef roi_span_##suffix span;                                                                         \
    RDNA_DEVICE box of(const roi_args &a, const acc *v) { return roi_box_of_##suffix(&a, v); }              \
    RDNA_DEVICE acc place(const span &s, int32_t bin, int32_t i) { return roi_place_##suffix(&s, bin, i); } \
    RDNA_DEVICE bool tap(acc at, int32_t size, int32_t *pixel, acc *t) {                                    \
      return roi_tap_##suffix(at, size, pixel, t);                                                          \
    }                                                                                                       \
    RDNA_DEVICE roi_range samples(const span &s, int32_t bin, acc low, acc high) {                          \
      return roi_samples_##suffix(&s, bin, low, high);                                                      \
    }                                                                                                       \
    RDNA_DEVICE roi_range pixels(const span &s, int32_t bin, int32_t size) {                                \
      return roi_pixels_##suffix(&s, bin, size);                                                            \
    }                                                                                                       \
    RDNA_DEVICE roi_range bins(const span &s, int32_t bins, int32_t begin, int32_t end) {                   \
      return roi_bins_##suffix(&s, bins, begin, end);                                                       \
    }                                                                                                       \
    RDNA_DEVICE acc share(const span &s, int32_t bin, int32_t size, int32_t pixel) {                        \
      return roi_share_##suffix(&s, bin, size, pixel);                                                      \
    }                                                                                                       \
  };
ON_BOX(float, f32)
ON_BOX(double, f64)

template <typename type>
RDNA_DEVICE typename on_box<typename computed<type>::in>::box load_box(const roi_args &a, uint32_t k) {
  typename computed<type>::in v[5];
  int64_t at = k * a.box_stride[0];
#pragma unroll
  for (int d = 0; d < 5; d++) v[d] = type::load(a.boxes, (uint64_t)(at + d * a.box_stride[1]));
  return on_box<typename computed<type>::in>::of(a, v);
}

/* How many samples a mean is of. */
template <typename box>
RDNA_DEVICE auto samples_of(const roi_args &a, const box &b) {
  auto all = (decltype(b.span[0].bin))b.span[0].grid * (decltype(b.span[0].bin))b.span[1].grid;
  return all < 1 && a.kind == ROI_ALIGN ? 1 : all;
}

/* What a thread of a forward kernel has: a bin of a box and channels [c, c + count). */
struct bin_of_box {
  volume_place p;
  uint32_t c, count;
  int64_t to;
};
RDNA_DEVICE bool find_bin(const roi_args &a, bin_of_box *b) {
  uint32_t i = group_id_x() * ROI_THREADS + thread_id();
  if (i >= a.order.shape.count) return false;
  b->p = volume_place_at(&a.order, i);
  b->c = (uint32_t)b->p.c * a.order.channels;
  b->count = min_u32(a.order.channels, a.channels - b->c);
  b->to = volume_channel(&a.out, b->p.n, b->c) + volume_offset(&a.out, 0, b->p.y, b->p.x);
  return true;
}
/* Where the image's values for the bin begin. */
RDNA_DEVICE int64_t image_of(const roi_args &a, const bin_of_box &b, int32_t image) {
  return volume_channel(&a.x, image, b.c) + (b.p.y * a.bins[1] + b.p.x) * a.bin_stride;
}
RDNA_DEVICE void report(const roi_args &a, bool outside) {
  if (outside && a.outside) atomic_or_u32(a.outside, 1);
}

template <typename type, int width>
RDNA_DEVICE void align(const roi_args &a) {
  typedef typename computed<type>::in acc;
  typedef on_box<acc> on;
  constexpr int block = width == 1 ? ROI_BLOCK : 1;
  bin_of_box b;
  if (!find_bin(a, &b)) return;
  if (width > 1) b.count = 1;
  auto box = load_box<type>(a, (uint32_t)b.p.n);
  report(a, box.image < 0);
  acc sum[block][width] = {};
  if (box.image >= 0) {
    int64_t image = image_of(a, b, box.image);
    roi_range ry = on::samples(box.span[0], b.p.y, -1, (acc)a.size[0]);
    roi_range rx = on::samples(box.span[1], b.p.x, -1, (acc)a.size[1]);
#pragma nounroll
    for (int32_t i = ry.begin; i < ry.end; i++) {
      int32_t y, x;
      acc ty, tx;
      if (!on::tap(on::place(box.span[0], b.p.y, i), a.size[0], &y, &ty)) continue;
      int64_t row = image + y * a.x.stride[3], down = y + 1 < a.size[0] ? a.x.stride[3] : 0;
#pragma nounroll
      for (int32_t j = rx.begin; j < rx.end; j++) {
        if (!on::tap(on::place(box.span[1], b.p.x, j), a.size[1], &x, &tx)) continue;
        int64_t at = row + x * a.x.stride[4], right = x + 1 < a.size[1] ? a.x.stride[4] : 0;
        acc weight[4] = {(1 - ty) * (1 - tx), (1 - ty) * tx, ty * (1 - tx), ty * tx};
#pragma unroll
        for (uint32_t k = 0; k < block; k++) {
          if (k >= b.count) break;
          acc v[4][width];
          load_channels<type, width>(a.x.data, at + k * a.x.stride[1], v[0]);
          load_channels<type, width>(a.x.data, at + k * a.x.stride[1] + right, v[1]);
          load_channels<type, width>(a.x.data, at + k * a.x.stride[1] + down, v[2]);
          load_channels<type, width>(a.x.data, at + k * a.x.stride[1] + down + right, v[3]);
#pragma unroll
          for (int l = 0; l < width; l++) {
#pragma unroll
            for (int m = 0; m < 4; m++) sum[k][l] = fused(v[m][l], weight[m], sum[k][l]);
          }
        }
      }
    }
    acc all = samples_of(a, box);
#pragma unroll
    for (uint32_t k = 0; k < block; k++) {
#pragma unroll
      for (int l = 0; l < width; l++) sum[k][l] = sum[k][l] / all;
    }
  }
#pragma unroll
  for (uint32_t k = 0; k < block; k++) {
    if (k < b.count) store_channels<type, width>(a.out.data, b.to + k * a.out.stride[1], sum[k]);
  }
}

template <typename type>
RDNA_DEVICE void max(const roi_args &a) {
  typedef typename computed<type>::in acc;
  typedef on_box<acc> on;
  bin_of_box b;
  if (!find_bin(a, &b)) return;
  auto box = load_box<type>(a, (uint32_t)b.p.n);
  report(a, box.image < 0);
  roi_range ry = on::pixels(box.span[0], b.p.y, a.size[0]), rx = on::pixels(box.span[1], b.p.x, a.size[1]);
  bool none = box.image < 0 || ry.begin == ry.end || rx.begin == rx.end;
  int64_t image = none ? 0 : image_of(a, b, box.image);
#pragma nounroll
  for (uint32_t k = 0; k < b.count; k++) {
    acc best = none ? 0 : -(acc)0x1.fffffep127f;
    int32_t place = -1;
#pragma nounroll
    for (int32_t y = none ? ry.end : ry.begin; y < ry.end; y++) {
#pragma nounroll
      for (int32_t x = rx.begin; x < rx.end; x++) {
        acc v = type::load(a.x.data, (uint64_t)(image + k * a.x.stride[1] + y * a.x.stride[3] + x * a.x.stride[4]));
        if (v > best) best = v, place = y * a.size[1] + x;
      }
    }
    type::store(a.out.data, (uint64_t)(b.to + k * a.out.stride[1]), best);
    if (a.places) {
      int64_t plane = (int64_t)b.p.n * a.channels + b.c + k;
      a.places[(plane * a.bins[0] + b.p.y) * a.bins[1] + b.p.x] = place;
    }
  }
}

template <typename type>
RDNA_DEVICE void mean(const roi_args &a) {
  typedef typename computed<type>::in acc;
  typedef on_box<acc> on;
  bin_of_box b;
  if (!find_bin(a, &b)) return;
  auto box = load_box<type>(a, (uint32_t)b.p.n);
  report(a, box.image < 0);
  roi_range ry = on::pixels(box.span[0], b.p.y, a.size[0] - 1), rx = on::pixels(box.span[1], b.p.x, a.size[1] - 1);
  bool none = box.image < 0 || ry.begin == ry.end || rx.begin == rx.end;
  int64_t image = none ? 0 : image_of(a, b, box.image);
  acc all = (acc)(ry.end - ry.begin) * (acc)(rx.end - rx.begin);
#pragma nounroll
  for (uint32_t k = 0; k < b.count; k++) {
    acc sum = 0;
#pragma nounroll
    for (int32_t y = none ? ry.end : ry.begin; y < ry.end; y++) {
#pragma nounroll
      for (int32_t x = rx.begin; x < rx.end; x++) {
        sum += type::load(a.x.data, (uint64_t)(image + k * a.x.stride[1] + y * a.x.stride[3] + x * a.x.stride[4]));
      }
    }
    type::store(a.out.data, (uint64_t)(b.to + k * a.out.stride[1]), none ? 0 : sum / all);
  }
}

/* Backward: a thread's pixel, and the channels of its group. */
struct pixel {
  int32_t image, y, x;
  uint32_t c, count;
};

/* The gradient of pixel |p| through one box is added to |sum|. */
template <typename type>
RDNA_DEVICE void add_align(const roi_args &a, uint32_t k, const pixel &p, typename computed<type>::in *sum) {
  typedef typename computed<type>::in acc;
  typedef on_box<acc> on;
  auto box = load_box<type>(a, k);
  roi_range ry = on::bins(box.span[0], a.bins[0], p.y, p.y + 1), rx = on::bins(box.span[1], a.bins[1], p.x, p.x + 1);
  acc all = samples_of(a, box);
  int64_t from = volume_channel(&a.out, (int32_t)k, p.c);
#pragma nounroll
  for (int32_t i = ry.begin; i < ry.end; i++) {
    acc wy = on::share(box.span[0], i, a.size[0], p.y);
    if (wy == 0) continue;
#pragma nounroll
    for (int32_t j = rx.begin; j < rx.end; j++) {
      acc wx = on::share(box.span[1], j, a.size[1], p.x);
      if (wx == 0) continue;
      acc weight = wy * wx / all;
      int64_t at = from + volume_offset(&a.out, 0, i, j);
#pragma unroll
      for (uint32_t c = 0; c < ROI_BLOCK; c++) {
        if (c >= p.count) break;
        sum[c] = fused(type::load(a.out.data, (uint64_t)(at + c * a.out.stride[1])), weight, sum[c]);
      }
    }
  }
}

template <typename type>
RDNA_DEVICE void add_max(const roi_args &a, uint32_t k, const pixel &p, typename computed<type>::in *sum) {
  typedef on_box<typename computed<type>::in> on;
  auto box = load_box<type>(a, k);
  roi_range ry = on::bins(box.span[0], a.bins[0], p.y, p.y + 1), rx = on::bins(box.span[1], a.bins[1], p.x, p.x + 1);
  int64_t from = volume_channel(&a.out, (int32_t)k, p.c), bins = (int64_t)a.bins[0] * a.bins[1];
  const int32_t *places = a.places + ((int64_t)k * a.channels + p.c) * bins;
  int32_t own = p.y * a.size[1] + p.x;
#pragma nounroll
  for (int32_t i = ry.begin; i < ry.end; i++) {
#pragma nounroll
    for (int32_t j = rx.begin; j < rx.end; j++) {
      int64_t at = from + volume_offset(&a.out, 0, i, j);
#pragma unroll
      for (uint32_t c = 0; c < ROI_BLOCK; c++) {
        if (c >= p.count) break;
        if (places[c * bins + i * a.bins[1] + j] == own)
          sum[c] += type::load(a.out.data, (uint64_t)(at + c * a.out.stride[1]));
      }
    }
  }
}

/* A channel of the image is of one bin. */
template <typename type>
RDNA_DEVICE void add_ps(const roi_args &a, uint32_t k, const pixel &p, typename computed<type>::in *sum) {
  typedef typename computed<type>::in acc;
  typedef on_box<acc> on;
  auto box = load_box<type>(a, k);
  uint32_t columns = (uint32_t)a.bins[1], bins = (uint32_t)a.bins[0] * columns;
#pragma unroll
  for (uint32_t c = 0; c < ROI_BLOCK; c++) {
    if (c >= p.count) break;
    uint32_t bin = (p.c + c) % bins;
    int32_t i = (int32_t)(bin / columns), j = (int32_t)(bin % columns);
    acc weight;
    if (a.kind == ROI_PS_ALIGN) {
      weight = on::share(box.span[0], i, a.size[0], p.y);
      if (weight != 0) weight *= on::share(box.span[1], j, a.size[1], p.x);
      if (weight == 0) continue;
      weight = weight / samples_of(a, box);
    } else {
      roi_range ry = on::pixels(box.span[0], i, a.size[0] - 1), rx = on::pixels(box.span[1], j, a.size[1] - 1);
      if (p.y < ry.begin || p.y >= ry.end || p.x < rx.begin || p.x >= rx.end) continue;
      weight = 1 / ((acc)(ry.end - ry.begin) * (acc)(rx.end - rx.begin));
    }
    int64_t at = volume_channel(&a.out, (int32_t)k, (p.c + c) / bins) + volume_offset(&a.out, 0, i, j);
    sum[c] = fused(type::load(a.out.data, (uint64_t)at), weight, sum[c]);
  }
}

/* |add|: the same for each group of threads, once for each box that reaches its tile, in the order of boxes. */
template <typename type, typename function>
RDNA_DEVICE void backward(const roi_args &a, function add) {
  typedef typename computed<type>::in acc;
  typedef on_box<acc> on;
  constexpr uint32_t waves = ROI_THREADS / WAVE_SIZE;
  RDNA_SHARED static uint32_t list[ROI_THREADS], counts[waves];
  uint32_t across = (uint32_t)(a.size[1] + ROI_TILE - 1) / ROI_TILE,
           down = (uint32_t)(a.size[0] + ROI_TILE - 1) / ROI_TILE;
  uint32_t blocks = (a.channels + ROI_BLOCK - 1) / ROI_BLOCK, group = group_id_x(), tile = group % (across * down);
  group /= across * down;
  int32_t top = (int32_t)(tile / across) * ROI_TILE, left = (int32_t)(tile % across) * ROI_TILE;
  pixel p;
  p.image = (int32_t)(group / blocks), p.c = group % blocks * ROI_BLOCK;
  p.count = min_u32(ROI_BLOCK, a.channels - p.c);
  p.y = top + (int32_t)(thread_id() / ROI_TILE), p.x = left + (int32_t)(thread_id() % ROI_TILE);
  bool inside = p.y < a.size[0] && p.x < a.size[1];
  acc sum[ROI_BLOCK] = {};
#pragma nounroll
  for (uint32_t first = 0; first < a.count; first += ROI_THREADS) {
    const roi_args &now = arguments_again(a);
    uint32_t k = first + thread_id();
    bool hit = false;
    if (k < now.count) {
      auto box = load_box<type>(now, k);
      report(now, box.image < 0);
      roi_range ry = on::bins(box.span[0], now.bins[0], top, top + ROI_TILE);
      roi_range rx = on::bins(box.span[1], now.bins[1], left, left + ROI_TILE);
      hit = box.image == p.image && ry.begin < ry.end && rx.begin < rx.end;
    }
    uint64_t hits = wave_ballot(hit);
    group_barrier();
    if (lane_id() == 0) counts[wave_id()] = (uint32_t)__builtin_popcountll(hits);
    group_barrier();
    uint32_t at = (uint32_t)__builtin_popcountll(hits & ((UINT64_C(1) << lane_id()) - 1)), total = 0;
#pragma unroll
    for (uint32_t w = 0; w < waves; w++) {
      if (w < wave_id()) at += counts[w];
      total += counts[w];
    }
    if (hit) list[at] = k;
    group_barrier();
    if (!inside) continue;
#pragma nounroll
    for (uint32_t i = 0; i < total; i++) add(arguments_again(a), wave_uniform_u32(list[i]), p, sum);
  }
  if (!inside) return;
  int64_t to = volume_channel(&a.x, p.image, p.c) + volume_offset(&a.x, 0, p.y, p.x);
#pragma unroll
  for (uint32_t c = 0; c < ROI_BLOCK; c++) {
    if (c < p.count) type::store(a.x.data, (uint64_t)(to + c * a.x.stride[1]), sum[c]);
  }
}

#define ROI_TYPE(type)                                                                               \
  RDNA_KERNEL(ROI_THREADS) roi_align_##type(struct roi_args a) {                                     \
    if (a.order.vector) {                                                                            \
      align<type, type::IN_16>(a);                                                                   \
    } else {                                                                                         \
      align<type, 1>(a);                                                                             \
    }                                                                                                \
  }                                                                                                  \
  RDNA_KERNEL(ROI_THREADS) roi_max_##type(struct roi_args a) { max<type>(a); }                       \
  RDNA_KERNEL(ROI_THREADS) roi_mean_##type(struct roi_args a) { mean<type>(a); }                     \
  RDNA_KERNEL(ROI_THREADS) roi_align_backward_##type(struct roi_args a) {                            \
    backward<type>(a, [](const roi_args &now, uint32_t k, const pixel &p, computed<type>::in *sum) { \
      add_align<type>(now, k, p, sum);                                                               \
    });                                                                                              \
  }                                                                                                  \
  RDNA_KERNEL(ROI_THREADS) roi_max_backward_##type(struct roi_args a) {                              \
    backward<type>(a, [](const roi_args &now, uint32_t k, const pixel &p, computed<type>::in *sum) { \
      add_max<type>(now, k, p, sum);                                                                 \
    });                                                                                              \
  }                                                                                                  \
  RDNA_KERNEL(ROI_THREADS) roi_ps_backward_##type(struct roi_args a) {                               \
    backward<type>(a, [](const roi_args &now, uint32_t k, const pixel &p, computed<type>::in *sum) { \
      add_ps<type>(now, k, p, sum);                                                                  \
    });                                                                                              \
  }
ROI_TYPE(f32)
ROI_TYPE(f16)
ROI_TYPE(bf16)
ROI_TYPE(f64)
