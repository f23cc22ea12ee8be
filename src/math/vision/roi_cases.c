#include <stdio.h>

#include "math/common/case/volume.h"
#include "math/vision/roi.h"

static rdna_tensor image_tensor(rdna_dtype dtype, int64_t n, int64_t channels, int64_t rows, int64_t columns,
                                bool channels_last) {
  const int64_t shape[] = {n, channels, rows, columns};
  static char somewhere[16] __attribute__((aligned(16)));
  rdna_tensor t = rdna_tensor_contiguous(somewhere, dtype, 4, shape);
  if (channels_last) {
    t.stride[1] = 1, t.stride[3] = channels, t.stride[2] = channels * columns, t.stride[0] = t.stride[2] * rows;
  }
  return t;
}

/* Corners in and around the image; some boxes are empty, turned, far larger than the image, at a NaN or of no image. */
static void fill_boxes(rdna__random *random, rdna_dtype dtype, void *boxes, const struct roi_args *a, double scale) {
  for (int64_t k = 0; k < a->count; k++) {
    double v[5] = {(double)rdna__random_range(random, 0, a->samples - 1)};
    for (int d = 0; d < 2; d++) {
      double size = a->size[1 - d];
      v[1 + d] = (rdna__random_unit(random) * 1.4 - 0.3) * size / scale;
      v[3 + d] = v[1 + d] + rdna__random_unit(random) * size / scale;
    }
    if (k % 13 == 5) v[3] = v[1];
    if (k % 13 == 7) v[4] = v[2] - 1;
    if (k % 13 == 9) v[1] = -900, v[3] = 1200;
    if (k % 13 == 10) v[2] = NAN;
    if (k % 13 == 11) v[0] = k % 2 ? (double)a->samples : -1;
    if (k % 13 == 12) v[2] = -INFINITY, v[3] = INFINITY;
    for (int d = 0; d < 5; d++) store_double(dtype, boxes, 5 * k + d, v[d]);
  }
}

/* A random pixel of each bin that has any. */
static void fill_places(rdna__random *random, rdna_dtype dtype, const void *boxes, const struct roi_args *a,
                        int32_t *places) {
  int32_t rows = a->bins[0], columns = a->bins[1];
  for (int64_t i = 0; i < (int64_t)a->count * a->channels * rows * columns; i++) {
    float v[5];
    double v64[5];
    int64_t k = i / columns / rows / a->channels;
    int32_t row = (int32_t)(i / columns % rows), column = (int32_t)(i % columns);
    for (int d = 0; d < 5; d++) v64[d] = load_double(dtype, boxes, 5 * k + d), v[d] = (float)v64[d];
    struct roi_box_f32 box = roi_box_of_f32(a, v);
    struct roi_box_f64 box64 = roi_box_of_f64(a, v64);
    bool wide = dtype == RDNA_F64;
    struct roi_range y =
        wide ? roi_pixels_f64(&box64.span[0], row, a->size[0]) : roi_pixels_f32(&box.span[0], row, a->size[0]);
    struct roi_range x =
        wide ? roi_pixels_f64(&box64.span[1], column, a->size[1]) : roi_pixels_f32(&box.span[1], column, a->size[1]);
    bool none = box.image < 0 || y.begin == y.end || x.begin == x.end;
    places[i] = none ? -1
                     : (int32_t)rdna__random_range(random, y.begin, y.end - 1) * a->size[1] +
                           (int32_t)rdna__random_range(random, x.begin, x.end - 1);
  }
}

RDNA_CASE_MAKER(rdna__roi_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool backward = strstr(kernel->name, "backward"), last = n % 2;
  rdna_roi options = {RDNA_ROI_INIT, .mode = RDNA_ROI_MODE_ALIGN, .scale = n % 4 ? 0.5 : 1};
  if (strstr(kernel->name, "max")) options.mode = RDNA_ROI_MODE_MAX;
  if (strstr(kernel->name, "mean") || strstr(kernel->name, "ps")) options.mode = RDNA_ROI_MODE_PS_MEAN;
  bool either = strstr(kernel->name, "ps") || (strstr(kernel->name, "align") && !backward);
  if (either && n % 3 == 2) options.mode = RDNA_ROI_MODE_PS_ALIGN;
  bool ps = options.mode >= RDNA_ROI_MODE_PS_ALIGN, max = options.mode == RDNA_ROI_MODE_MAX;
  if (options.mode == RDNA_ROI_MODE_ALIGN) options.half_pixel = n % 4 >= 2;
  if (!max && options.mode != RDNA_ROI_MODE_PS_MEAN) options.grid = n % 5 < 3 ? n % 5 : 0;
  int64_t rows = rdna__random_range(random, 1, 4), columns = rdna__random_range(random, 1, 4);
  int64_t images = n == 1 && !backward ? 1 : rdna__random_range(random, 1, 2),
          count = n == 1   ? 0
                  : n == 0 ? 1
                           : rdna__random_range(random, 1, n % 7 == 6 ? 300 : 40);
  int64_t of_out = n % 6 == 5 ? 16 : rdna__random_range(random, 1, ps ? 3 : 11),
          channels = of_out * (ps ? rows * columns : 1);
  int64_t size[2] = {rdna__random_range(random, 1, n % 5 == 4 ? 37 : 12), rdna__random_range(random, 1, 20)};
  rdna_tensor x = image_tensor(dtype, images, channels, size[0], size[1], last);
  rdna_tensor out = image_tensor(dtype, count, of_out, rows, columns, n % 8 == 6 ? !last : last);
  const int64_t box_shape[] = {count, 5};
  rdna_tensor boxes = rdna_tensor_contiguous(NULL, dtype, 2, box_shape);
  struct roi_args a;
  rdna__roi_fill(&options, &x, &boxes, &out, backward, &a);
  a.x.data = a.out.data = NULL;
  if (backward) {
    out_case->grid = (rdna_grid){(uint32_t)rdna__roi_groups(&a), 1, 1};
  } else {
    RDNA_TRY(rdna__roi_order("case", &options, &x, &out, &a.order));
    volume_case_block(random, of_out, ROI_BLOCK, &a.order);
    out_case->grid = (rdna_grid){(a.order.shape.count + ROI_THREADS - 1) / ROI_THREADS, 1, 1};
  }
  memcpy(out_case->args, &a, sizeof a);
  snprintf(out_case->label, sizeof out_case->label,
           "mode %d, (%lld, %lld, %lld, %lld), %lld boxes, %lld x %lld bins%s%s", (int)options.mode, (long long)images,
           (long long)channels, (long long)size[0], (long long)size[1], (long long)count, (long long)rows,
           (long long)columns, last ? ", channels last" : "", !backward && a.order.vector ? ", vectors" : "");
  const rdna_tensor *read = backward ? &out : &x, *written = backward ? &x : &out;
  size_t x_at = offsetof(struct roi_args, x), out_at = offsetof(struct roi_args, out);
  void *data = volume_case_add(out_case, RDNA__IN, read, backward ? out_at : x_at);
  void *box = rdna__case_add(out_case, RDNA__IN, dtype, 5 * count, offsetof(struct roi_args, boxes));
  if (!data || !box) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, data, rdna_tensor_count(read), 0);
  double top = case_top(dtype, data, rdna_tensor_count(read));
  if (max && !backward && rdna_tensor_count(read) > 3) store_double(dtype, data, 3, NAN);
  fill_boxes(random, dtype, box, &a, options.scale);
  if (!volume_case_add(out_case, RDNA__OUT, written, backward ? x_at : out_at)) return rdna__case_no_memory(out_case);
  double terms = backward ? 4.0 * (double)(count * rows * columns) : 64;
  rdna__case_tolerance(out_case, max && !backward ? 0 : 8 * terms * case_unit(dtype) * top,
                       max && !backward ? 0 : case_step(dtype));
  if (max) {
    int32_t *places = rdna__case_add(out_case, backward ? RDNA__IN : RDNA__OUT, RDNA_I32,
                                     count * of_out * rows * columns, offsetof(struct roi_args, places));
    if (!places) return rdna__case_no_memory(out_case);
    if (backward) fill_places(random, dtype, box, &a, places);
  }
  if (n % 3 != 1 && !rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 1, offsetof(struct roi_args, outside)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
