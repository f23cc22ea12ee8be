/* Pooling of boxes (regions of interest): bin (i, j) of a box is made of samples between pixels (align), or of whole
 * pixels (max, mean). Along each dimension of the image:
 *
 *     pixels    0     1     2     3     4     5         a box from 0.6 to 5.0, two bins, a grid of 2
 *     bins         [----- 0 ----][----- 1 -----]
 *     samples         .     .       .     .             each between two pixels: weights 1 - t and t
 *
 * The weight of a pixel in a bin is the product of what both dimensions give. So backward gathers: a thread has a
 * pixel, goes through the boxes that reach it, and adds dout of the bins that do, weighted. No sum needs atomics.
 *
 *     group     a tile of ROI_TILE x ROI_TILE pixels of an image, up to ROI_BLOCK channels
 *     boxes     ROI_THREADS at a time: a thread looks whether one reaches the tile; those that do go to a list in
 *               group memory, in their order, which all threads of the group then go through
 *
 * Forward reads 4 pixels a sample and channel, backward dout of each bin about 4 times. */
#ifndef RDNA_MATH_VISION_ROI_KERNELS_H
#define RDNA_MATH_VISION_ROI_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/volume.h"

enum { ROI_THREADS = 256, ROI_TILE = 16, ROI_BLOCK = 8 /* most channels of a thread */ };
enum roi_kind { ROI_ALIGN, ROI_MAX, ROI_PS_ALIGN, ROI_PS_MEAN }; /* as rdna_roi_mode */

struct roi_args {
  /* Backward: dx, dout. Where bins have channels of their own (ps), forward sees x with a stride from channel c to
   * channel c + 1 of out, and bin_stride from bin to bin. */
  struct volume x, out;
  int64_t bin_stride;
  struct volume_order order; /* of out; backward does not use it */
  const void *boxes;         /* (k, 5) */
  int64_t box_stride[2];
  int32_t *places; /* max: (k, channels, rows, columns), or NULL */
  uint32_t *outside;
  uint32_t kind, half_pixel;
  uint32_t count, samples;  /* boxes, images */
  uint32_t channels;        /* of out; backward: of dx */
  int32_t size[2], bins[2]; /* rows, columns of an image; of bins */
  int32_t grid;             /* 0: by the size of a bin */
  float scale;
  double scale_f64;
};

/* A box: its image, -1 if there is none, and along each dimension where its bins begin, their size and samples. Of
 * whole pixels, starts are these. */
#define ROI_IN_(real, suffix, floor_of, ceil_of, round_of, scale_of)                                                   \
  struct roi_span_##suffix {                                                                                           \
    real start, bin;                                                                                                   \
    int32_t grid;                                                                                                      \
  };                                                                                                                   \
  struct roi_box_##suffix {                                                                                            \
    int32_t image;                                                                                                     \
    struct roi_span_##suffix span[2]; /* y, x */                                                                       \
  };                                                                                                                   \
  /* |v| within what an int32 holds with room to add; a NaN is 0 */                                                    \
  RDNA_SCALAR real roi_bounded_##suffix(real v) {                                                                      \
    real most = (real)(1 << 26);                                                                                       \
    return v > most ? most : v < -most ? -most : v == v ? v : 0;                                                       \
  }                                                                                                                    \
  RDNA_SCALAR struct roi_span_##suffix roi_span_of_##suffix(const struct roi_args *a, real low, real high, int d) {    \
    struct roi_span_##suffix s = {0, 0, 0};                                                                            \
    low *= a->scale_of, high *= a->scale_of;                                                                           \
    real bins = (real)a->bins[d];                                                                                      \
    if (a->kind == ROI_ALIGN || a->kind == ROI_PS_ALIGN) {                                                             \
      bool half = a->half_pixel || a->kind == ROI_PS_ALIGN;                                                            \
      if (half) low -= (real)0.5, high -= (real)0.5;                                                                   \
      real size = high - low;                                                                                          \
      if (!half && !(size > 1)) size = size == size ? 1 : size;                                                        \
      s.start = low, s.bin = size / bins;                                                                              \
      s.grid = a->grid > 0 ? a->grid : (int32_t)roi_bounded_##suffix(ceil_of(s.bin));                                  \
      if (s.grid < 0) s.grid = 0;                                                                                      \
      return s;                                                                                                        \
    }                                                                                                                  \
    real first = roi_bounded_##suffix(round_of(low)), last = roi_bounded_##suffix(round_of(high));                     \
    real size = last - first + (a->kind == ROI_MAX ? 1 : 0);                                                           \
    s.start = first, s.bin = (size > 1 ? size : 1) / bins;                                                             \
    return s;                                                                                                          \
  }                                                                                                                    \
  RDNA_SCALAR struct roi_box_##suffix roi_box_of_##suffix(const struct roi_args *a, const real v[5]) {                 \
    struct roi_box_##suffix b = {-1, {{0, 0, 0}, {0, 0, 0}}};                                                          \
    if (v[0] > -1 && v[0] < (real)a->samples) b.image = (int32_t)v[0];                                                 \
    b.span[0] = roi_span_of_##suffix(a, v[2], v[4], 0);                                                                \
    b.span[1] = roi_span_of_##suffix(a, v[1], v[3], 1);                                                                \
    return b;                                                                                                          \
  }                                                                                                                    \
  /* Where sample i of a bin lies. */                                                                                  \
  RDNA_SCALAR real roi_place_##suffix(const struct roi_span_##suffix *s, int32_t bin, int32_t i) {                     \
    return s->start + (real)bin * s->bin + ((real)i + (real)0.5) * s->bin / (real)s->grid;                             \
  }                                                                                                                    \
  /* The samples of a bin that may lie from |low| to |high|: at most one or two more on either side, so that a box far \
   * larger than the image costs no more than one of its size. */                                                      \
  RDNA_SCALAR struct roi_range roi_samples_##suffix(const struct roi_span_##suffix *s, int32_t bin, real low,          \
                                                    real high) {                                                       \
    struct roi_range r = {0, s->grid};                                                                                 \
    real step = s->bin / (real)s->grid, from = s->start + (real)bin * s->bin;                                          \
    if (!(step > 0)) return r;                                                                                         \
    real begin = floor_of((low - from) / step - 2), end = ceil_of((high - from) / step + 2);                           \
    if (!(begin <= end)) r.end = 0; /* places are NaN */                                                               \
    if (begin > 0) r.begin = begin < (real)s->grid ? (int32_t)begin : s->grid;                                         \
    if (end < (real)s->grid) r.end = end > 0 ? (int32_t)end : 0;                                                       \
    return r;                                                                                                          \
  }                                                                                                                    \
  /* The pixel before a place, and how far it lies beyond; false where it is outside. */                               \
  RDNA_SCALAR bool roi_tap_##suffix(real place, int32_t size, int32_t *pixel, real *beyond) {                          \
    if (!(place >= -1 && place <= (real)size)) return false;                                                           \
    real v = place > 0 ? place : 0;                                                                                    \
    int32_t low = (int32_t)v;                                                                                          \
    bool last = low >= size - 1;                                                                                       \
    *pixel = last ? size - 1 : low;                                                                                    \
    *beyond = last ? 0 : v - (real)low;                                                                                \
    return true;                                                                                                       \
  }                                                                                                                    \
  /* The whole pixels that a bin reaches into, of |size|. */                                                           \
  RDNA_SCALAR struct roi_range roi_pixels_##suffix(const struct roi_span_##suffix *s, int32_t bin, int32_t size) {     \
    int32_t first = (int32_t)s->start;                                                                                 \
    struct roi_range r = {first + (int32_t)floor_of((real)bin * s->bin),                                               \
                          first + (int32_t)ceil_of((real)(bin + 1) * s->bin)};                                         \
    r.begin = r.begin < 0 ? 0 : r.begin > size ? size : r.begin;                                                       \
    r.end = r.end < r.begin ? r.begin : r.end > size ? size : r.end;                                                   \
    return r;                                                                                                          \
  }                                                                                                                    \
  /* Whether a box may reach pixels [begin, end), and which of its bins. */                                            \
  RDNA_SCALAR struct roi_range roi_bins_##suffix(const struct roi_span_##suffix *s, int32_t bins, int32_t begin,       \
                                                 int32_t end) {                                                        \
    struct roi_range r = {0, bins};                                                                                    \
    real low = (real)begin - 2, high = (real)end + 1; /* two: a pixel of samples, which may be 1 outside */            \
    if (!(s->bin > 0)) return r;                                                                                       \
    real first = floor_of((low - s->start) / s->bin - (real)0.5),                                                      \
         last = ceil_of((high - s->start) / s->bin + (real)0.5);                                                       \
    if (first > 0) r.begin = first < (real)bins ? (int32_t)first : bins;                                               \
    if (last < (real)bins) r.end = last > 0 ? (int32_t)last : 0;                                                       \
    return r;                                                                                                          \
  }                                                                                                                    \
  /* The weight of a pixel in a bin of samples. */                                                                     \
  RDNA_SCALAR real roi_share_##suffix(const struct roi_span_##suffix *s, int32_t bin, int32_t size, int32_t pixel) {   \
    struct roi_range r = roi_samples_##suffix(s, bin, (real)(pixel - 1), (real)(pixel + 1));                           \
    real share = 0, t = 0;                                                                                             \
    int32_t low = 0;                                                                                                   \
    for (int32_t i = r.begin; i < r.end; i++) {                                                                        \
      if (!roi_tap_##suffix(roi_place_##suffix(s, bin, i), size, &low, &t)) continue;                                  \
      share += low == pixel ? 1 - t : low + 1 == pixel ? t : 0;                                                        \
    }                                                                                                                  \
    return share;                                                                                                      \
  }

struct roi_range {
  int32_t begin, end;
};
ROI_IN_(float, f32, __builtin_floorf, __builtin_ceilf, __builtin_roundf, scale)
ROI_IN_(double, f64, __builtin_floor, __builtin_ceil, __builtin_round, scale_f64)

#define RDNA_ROI_TYPE_(X, type)                                              \
  X(roi_align_##type, struct roi_args, ROI_THREADS, rdna__roi_case)          \
  X(roi_max_##type, struct roi_args, ROI_THREADS, rdna__roi_case)            \
  X(roi_mean_##type, struct roi_args, ROI_THREADS, rdna__roi_case)           \
  X(roi_align_backward_##type, struct roi_args, ROI_THREADS, rdna__roi_case) \
  X(roi_max_backward_##type, struct roi_args, ROI_THREADS, rdna__roi_case)   \
  X(roi_ps_backward_##type, struct roi_args, ROI_THREADS, rdna__roi_case)
#define RDNA_ROI_KERNELS(X) \
  RDNA_ROI_TYPE_(X, f32)    \
  RDNA_ROI_TYPE_(X, f16)    \
  RDNA_ROI_TYPE_(X, bf16)   \
  RDNA_ROI_TYPE_(X, f64)

#endif
