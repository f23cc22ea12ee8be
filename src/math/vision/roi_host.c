/* Host twins of roi_kernels.h: places are found in the same arithmetic as on a GPU, sums are in double. */
#include "math/common/host/doubles.h"
#include "math/vision/roi_kernels.h"

#define INLINE static inline __attribute__((always_inline))

enum { ACROSS = 256 }; /* pixels of a row that are summed at once */

INLINE void report(const struct roi_args *a, bool outside) {
  if (outside && a->outside) __atomic_fetch_or(a->outside, 1, __ATOMIC_RELAXED);
}

/* What one box has: |real| is float, or double for f64. */
#define ROI_HOST(suffix, real)                                                                                         \
  INLINE struct roi_box_##suffix box_##suffix(const struct roi_args *a, rdna_dtype dtype, int64_t k) {                 \
    real v[5];                                                                                                         \
    for (int d = 0; d < 5; d++)                                                                                        \
      v[d] = (real)load_double(dtype, a->boxes, k * a->box_stride[0] + d * a->box_stride[1]);                          \
    return roi_box_of_##suffix(a, v);                                                                                  \
  }                                                                                                                    \
  INLINE double samples_##suffix(const struct roi_args *a, const struct roi_box_##suffix *box) {                       \
    double all = (double)box->span[0].grid * (double)box->span[1].grid;                                                \
    return all < 1 && a->kind == ROI_ALIGN ? 1 : all;                                                                  \
  }                                                                                                                    \
  INLINE double align_bin_##suffix(const struct roi_args *a, rdna_dtype dtype, const struct roi_box_##suffix *box,     \
                                   int32_t i, int32_t j, int64_t plane) {                                              \
    struct roi_range ry = roi_samples_##suffix(&box->span[0], i, -1, (real)a->size[0]);                                \
    struct roi_range rx = roi_samples_##suffix(&box->span[1], j, -1, (real)a->size[1]);                                \
    double sum = 0;                                                                                                    \
    for (int32_t k = ry.begin; k < ry.end; k++) {                                                                      \
      int32_t y, x;                                                                                                    \
      real ty, tx;                                                                                                     \
      if (!roi_tap_##suffix(roi_place_##suffix(&box->span[0], i, k), a->size[0], &y, &ty)) continue;                   \
      int64_t down = y + 1 < a->size[0] ? a->x.stride[3] : 0;                                                          \
      for (int32_t l = rx.begin; l < rx.end; l++) {                                                                    \
        if (!roi_tap_##suffix(roi_place_##suffix(&box->span[1], j, l), a->size[1], &x, &tx)) continue;                 \
        int64_t right = x + 1 < a->size[1] ? a->x.stride[4] : 0, at = plane + volume_offset(&a->x, 0, y, x);           \
        sum += (double)((1 - ty) * (1 - tx)) * load_double(dtype, a->x.data, at);                                      \
        sum += (double)((1 - ty) * tx) * load_double(dtype, a->x.data, at + right);                                    \
        sum += (double)(ty * (1 - tx)) * load_double(dtype, a->x.data, at + down);                                     \
        sum += (double)(ty * tx) * load_double(dtype, a->x.data, at + down + right);                                   \
      }                                                                                                                \
    }                                                                                                                  \
    return sum / samples_##suffix(a, box);                                                                             \
  }                                                                                                                    \
  INLINE void forward_##suffix(const struct roi_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {               \
    for (int64_t item = begin; item < end; item++) {                                                                   \
      struct volume_place p = volume_place_at(&a->order, (uint32_t)item);                                              \
      struct roi_box_##suffix box = box_##suffix(a, dtype, p.n);                                                       \
      int32_t less = a->kind == ROI_PS_MEAN;                                                                           \
      const bool sampled = a->kind == ROI_ALIGN || a->kind == ROI_PS_ALIGN; /* at places of any size */                \
      struct roi_range ry = {0, 0}, rx = {0, 0};                                                                       \
      if (!sampled) ry = roi_pixels_##suffix(&box.span[0], p.y, a->size[0] - less);                                    \
      if (!sampled) rx = roi_pixels_##suffix(&box.span[1], p.x, a->size[1] - less);                                    \
      uint32_t c = (uint32_t)p.c * a->order.channels, last = c + a->order.channels;                                    \
      report(a, box.image < 0);                                                                                        \
      for (; c < last && c < a->channels; c++) {                                                                       \
        int64_t plane = volume_channel(&a->x, box.image, c) + (p.y * a->bins[1] + p.x) * a->bin_stride;                \
        double v = 0;                                                                                                  \
        int32_t place = -1;                                                                                            \
        if (box.image >= 0 && sampled) {                                                                               \
          v = align_bin_##suffix(a, dtype, &box, p.y, p.x, plane);                                                     \
        } else if (box.image >= 0) {                                                                                   \
          v = pool_pixels(a, dtype, ry, rx, plane, &place);                                                            \
        }                                                                                                              \
        store_double(dtype, a->out.data, volume_channel(&a->out, p.n, c) + volume_offset(&a->out, 0, p.y, p.x), v);    \
        if (a->kind == ROI_MAX && a->places)                                                                           \
          a->places[(((int64_t)p.n * a->channels + c) * a->bins[0] + p.y) * a->bins[1] + p.x] = place;                 \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  /* Adds to pixels [x, x + count) of row y of a plane what bin (i, j) of box k gives them. */                         \
  INLINE void add_bin_##suffix(const struct roi_args *a, const struct roi_box_##suffix *box, int32_t i, int32_t j,     \
                               int32_t y, int32_t x, int32_t count, double g, double *sum) {                           \
    if (a->kind == ROI_PS_MEAN) {                                                                                      \
      struct roi_range ry = roi_pixels_##suffix(&box->span[0], i, a->size[0] - 1);                                     \
      struct roi_range rx = roi_pixels_##suffix(&box->span[1], j, a->size[1] - 1);                                     \
      double area = (double)(ry.end - ry.begin) * (double)(rx.end - rx.begin);                                         \
      if (y < ry.begin || y >= ry.end) return;                                                                         \
      for (int32_t l = 0; l < count; l++) {                                                                            \
        if (x + l >= rx.begin && x + l < rx.end) sum[l] += g / area;                                                   \
      }                                                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    real wy = roi_share_##suffix(&box->span[0], i, a->size[0], y);                                                     \
    struct roi_range rx = roi_samples_##suffix(&box->span[1], j, (real)(x - 1), (real)(x + count));                    \
    int32_t low;                                                                                                       \
    real t;                                                                                                            \
    for (int32_t s = rx.begin; wy != 0 && s < rx.end; s++) {                                                           \
      if (!roi_tap_##suffix(roi_place_##suffix(&box->span[1], j, s), a->size[1], &low, &t)) continue;                  \
      double by = (double)wy / samples_##suffix(a, box) * g;                                                           \
      if (low >= x && low < x + count) sum[low - x] += by * (double)(1 - t);                                           \
      if (t != 0 && low + 1 >= x && low + 1 < x + count) sum[low + 1 - x] += by * (double)t;                           \
    }                                                                                                                  \
  }                                                                                                                    \
  /* A piece of work is a row of a plane of dx. */                                                                     \
  INLINE void backward_##suffix(const struct roi_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {              \
    int32_t bins = a->bins[0] * a->bins[1];                                                                            \
    bool ps = a->kind == ROI_PS_ALIGN || a->kind == ROI_PS_MEAN;                                                       \
    for (int64_t item = begin; item < end; item++) {                                                                   \
      int32_t y = (int32_t)(item % a->size[0]);                                                                        \
      uint32_t c = (uint32_t)(item / a->size[0] % a->channels), of = ps ? c / (uint32_t)bins : c;                      \
      int32_t image = (int32_t)(item / a->size[0] / a->channels);                                                      \
      for (int32_t x = 0; x < a->size[1]; x += ACROSS) {                                                               \
        int32_t count = a->size[1] - x < ACROSS ? a->size[1] - x : ACROSS;                                             \
        double sum[ACROSS] = {0};                                                                                      \
        for (uint32_t k = 0; k < a->count; k++) {                                                                      \
          struct roi_box_##suffix box = box_##suffix(a, dtype, k);                                                     \
          report(a, box.image < 0);                                                                                    \
          if (box.image != image) continue;                                                                            \
          struct roi_range ry = roi_bins_##suffix(&box.span[0], a->bins[0], y, y + 1);                                 \
          struct roi_range rx = roi_bins_##suffix(&box.span[1], a->bins[1], x, x + count);                             \
          for (int32_t i = ry.begin; i < ry.end; i++) {                                                                \
            for (int32_t j = rx.begin; j < rx.end; j++) {                                                              \
              int32_t bin = i * a->bins[1] + j;                                                                        \
              if (ps && (int32_t)(c % (uint32_t)bins) != bin) continue;                                                \
              double g = load_double(dtype, a->out.data,                                                               \
                                     volume_channel(&a->out, (int32_t)k, of) + volume_offset(&a->out, 0, i, j));       \
              if (a->kind == ROI_MAX) {                                                                                \
                int32_t at = a->places[((int64_t)k * a->channels + c) * bins + bin] - y * a->size[1] - x;              \
                if (at >= 0 && at < count) sum[at] += g;                                                               \
              } else {                                                                                                 \
                add_bin_##suffix(a, &box, i, j, y, x, count, g, sum);                                                  \
              }                                                                                                        \
            }                                                                                                          \
          }                                                                                                            \
        }                                                                                                              \
        for (int32_t l = 0; l < count; l++)                                                                            \
          store_double(dtype, a->x.data, volume_channel(&a->x, image, c) + volume_offset(&a->x, 0, y, x + l), sum[l]); \
      }                                                                                                                \
    }                                                                                                                  \
  }

INLINE double pool_pixels(const struct roi_args *a, rdna_dtype dtype, struct roi_range ry, struct roi_range rx,
                          int64_t plane, int32_t *place) {
  if (ry.begin == ry.end || rx.begin == rx.end) return 0;
  double best = -(double)0x1.fffffep127f, sum = 0;
  for (int32_t y = ry.begin; y < ry.end; y++) {
    for (int32_t x = rx.begin; x < rx.end; x++) {
      double v = load_double(dtype, a->x.data, plane + volume_offset(&a->x, 0, y, x));
      sum += v;
      if (v > best) best = v, *place = y * a->size[1] + x;
    }
  }
  return a->kind == ROI_MAX ? best : sum / ((double)(ry.end - ry.begin) * (double)(rx.end - rx.begin));
}
ROI_HOST(f32, float)
ROI_HOST(f64, double)

#define ROI_RANGES(type, suffix, dtype)                                       \
  static void forward_of_##type(void *context, int64_t begin, int64_t end) {  \
    forward_##suffix(context, dtype, begin, end);                             \
  }                                                                           \
  static void backward_of_##type(void *context, int64_t begin, int64_t end) { \
    backward_##suffix(context, dtype, begin, end);                            \
  }
#define ROI_FORWARD(name, type)                                            \
  void RDNA_HOST_KERNEL(name##_##type)(const void *args, rdna_grid grid) { \
    struct roi_args a = *(const struct roi_args *)args;                    \
    rdna__parallel_for(a.order.shape.count, 64, forward_of_##type, &a);    \
  }
#define ROI_BACKWARD(name, type)                                                              \
  void RDNA_HOST_KERNEL(name##_backward_##type)(const void *args, rdna_grid grid) {           \
    struct roi_args a = *(const struct roi_args *)args;                                       \
    rdna__parallel_for((int64_t)a.samples *a.channels *a.size[0], 8, backward_of_##type, &a); \
  }
#define ROI_TWINS(type, suffix, dtype) \
  ROI_RANGES(type, suffix, dtype)      \
  ROI_FORWARD(roi_align, type)         \
  ROI_FORWARD(roi_max, type)           \
  ROI_FORWARD(roi_mean, type)          \
  ROI_BACKWARD(roi_align, type)        \
  ROI_BACKWARD(roi_max, type)          \
  ROI_BACKWARD(roi_ps, type)
ROI_TWINS(f32, f32, RDNA_F32)
ROI_TWINS(f16, f32, RDNA_F16)
ROI_TWINS(bf16, f32, RDNA_BF16)
ROI_TWINS(f64, f64, RDNA_F64)
