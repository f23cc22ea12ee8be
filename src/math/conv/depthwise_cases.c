/* Random cases of convolution with one channel a group. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/common/case/values.h"
#include "math/conv/depthwise.h"

/* What the kernel's name says. */
typedef struct form {
  rdna_dtype dtype;
  int32_t window; /* 0: any */
  bool last, weight, sum;
} form;

static form form_of(const char *name) {
  form f = {.dtype = case_name_dtype(name), .last = strstr(name, "last"), .weight = strstr(name, "weight")};
  f.sum = strstr(name, "weight_sum");
  for (int k = 3; k <= 7; k += 2) {
    char text[] = {'_', (char)('0' + k), '_', 0};
    if (strstr(name, text)) f.window = k;
  }
  return f;
}

static int32_t draw(rdna__random *random, int32_t least, int32_t most) {
  return (int32_t)rdna__random_range(random, least, most);
}

/* Sizes along one dimension: of a convolution with a value to write, or of the gradient of its image with steps. */
static void draw_line(rdna__random *random, const form *f, struct depthwise_args *a, int d, int32_t step) {
  a->window[d] = f->window ? f->window : draw(random, 1, 9);
  a->step[d] = f->window ? step : draw(random, 1, 3);
  a->dilation[d] = f->window || (a->spread && a->step[d] > 1) ? 1 : draw(random, 1, 3);
  a->begin[d] = draw(random, f->window || !a->spread ? -1 : 0, a->window[d]);
  int32_t reach = a->dilation[d] * (a->window[d] - 1) + 1, after = draw(random, 0, a->window[d]);
  int32_t size = draw(random, 1,
                      f->weight ? (d ? 40 : 8)
                      : d       ? 70
                                : 20),
          places = (a->begin[d] + size + after - reach) / a->step[d] + 1;
  if (places < 1) places = 1;
  a->image_size[d] = a->spread ? places : size, a->place_size[d] = a->spread ? size : places;
}

/* n, c, y, x; returns how many values there are. */
static int64_t set_layout(int32_t stride[4], const struct depthwise_args *a, const int32_t size[2], bool last) {
  int32_t plane = size[0] * size[1];
  stride[3] = last ? a->channels : 1, stride[2] = stride[3] * size[1];
  stride[1] = last ? 1 : plane, stride[0] = plane * a->channels;
  return (int64_t)a->images * stride[0];
}

static void set_windows(rdna__random *random, const struct depthwise_args *a, int32_t stride[4]) {
  bool first = rdna__random_below(random, 4); /* else windows lie with channels last */
  int32_t step = first ? 1 : a->channels;
  stride[2] = step, stride[1] = step * a->window[1];
  stride[0] = first ? a->window[0] * a->window[1] : 1, stride[3] = 0;
}

static rdna_grid grid_of(const form *f, const struct depthwise_args *a, uint32_t groups) {
  int32_t in_16 = f->dtype == RDNA_F32 ? 4 : 8, threads = DEPTHWISE_THREADS;
  int32_t values = a->images * a->channels * a->place_size[0] * a->place_size[1];
  if (f->sum)
    return (rdna_grid){(uint32_t)depthwise_tiles(a->channels * a->window[0] * a->window[1], GEMM_SUM_VALUES(a->parts)),
                       1, 1};
  uint32_t beside = (uint32_t)(f->last ? depthwise_tiles(a->channels, a->width) : 1);
  if (f->weight) return (rdna_grid){(uint32_t)a->parts, f->last ? beside : (uint32_t)a->channels, 1};
  if (!f->window) return (rdna_grid){(uint32_t)depthwise_tiles(f->last ? values / in_16 : values, threads), 1, 1};
  if (f->last) return (rdna_grid){groups, beside, 1};
  int32_t tiles = depthwise_tiles(a->place_size[0], a->down * DEPTHWISE_ROWS) *
                  depthwise_tiles(a->place_size[1], a->across * DEPTHWISE_RUN);
  return (rdna_grid){(uint32_t)(tiles * depthwise_tiles(a->images * a->channels, a->planes)), 1, 1};
}

static double add_input(rdna__kernel_case *out_case, rdna__random *random, rdna_dtype dtype, int64_t count,
                        size_t offset) {
  void *data = rdna__case_add(out_case, RDNA__IN, dtype, count, (uint32_t)offset);
  double most = 0;
  if (!data) return -1;
  case_fill(random, dtype, data, count, 1);
  for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)case_get(dtype, data, i)));
  return most;
}

/* The parts of a sum, added up. */
static rdna_status make_sum(rdna__random *random, const form *f, struct depthwise_args *a,
                            rdna__kernel_case *out_case) {
  int64_t values = (int64_t)a->channels * a->window[0] * a->window[1];
  set_windows(random, a, a->out_stride);
  memcpy(out_case->args, a, sizeof *a);
  double most = add_input(out_case, random, RDNA_F32, values * a->parts, offsetof(struct depthwise_args, sums));
  if (most < 0 || !rdna__case_add(out_case, RDNA__OUT, f->dtype, values, offsetof(struct depthwise_args, out)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 0x1p-24 * 2 * a->parts * a->parts * most + case_smallest(f->dtype),
                       case_spacing(f->dtype));
  return RDNA_OK;
}

/* Each side rounds a sum of k products k times at most, by 2^-24 of the sum of magnitudes at most. The parts of a
 * gradient are known only as their sum, which is why weights have one, and few places, so that the bound stays below a
 * product. */
RDNA_CASE_MAKER(rdna__depthwise_case) {
  form f = form_of(kernel->name);
  struct depthwise_args a = {.images = draw(random, n == 1 ? 0 : 1, 3), .parts = 1};
  a.spread = !f.window && !f.weight && rdna__random_below(random, 2);
  a.channels = f.last ? draw(random, 1, n == 2 ? 20 : 5) * (f.dtype == RDNA_F32 ? 4 : 8) : draw(random, 1, 9);
  int32_t step = draw(random, 1, 2);
  for (int d = 0; d < 2; d++) draw_line(random, &f, &a, d, step);
  if (f.sum) a.parts = draw(random, 1, n == 2 ? 300 : 30);
  snprintf(out_case->label, sizeof out_case->label,
           "images %d channels %d size %d x %d places %d x %d step %d spread %u", a.images, a.channels, a.image_size[0],
           a.image_size[1], a.place_size[0], a.place_size[1], a.step[1], a.spread);
  if (f.sum) {
    out_case->grid = grid_of(&f, &a, 0);
    return make_sum(random, &f, &a, out_case);
  }
  if (f.last) rdna__depthwise_width(&a, f.dtype == RDNA_F32 ? 4 : 8);
  int64_t image = set_layout(a.image_stride, &a, a.image_size, f.last), taps = (int64_t)a.window[0] * a.window[1];
  int64_t places = set_layout(f.weight ? a.other_stride : a.out_stride, &a, a.place_size, f.last), k = taps;
  int64_t windows = a.channels * taps;
  if (f.weight) {
    rdna__depthwise_tile(&a, 1, a.images), k = (int64_t)a.images * a.place_size[0] * a.place_size[1];
  } else {
    set_windows(random, &a, a.other_stride);
    if (f.window && !f.last) rdna__depthwise_tile(&a, DEPTHWISE_ROWS, (int64_t)a.images * a.channels);
    bool aligned = a.out_stride[3] == 1 && a.place_size[1] % 4 == 0;
    a.vectors = aligned && rdna__random_below(random, 4);
    a.activation = rdna__random_below(random, 2)   ? RDNA_ACTIVATION_NONE
                   : rdna__random_below(random, 2) ? RDNA_ACTIVATION_SILU
                                                   : RDNA_ACTIVATION_RELU;
    if (!f.window) a.activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_GELU_ERF + 1);
  }
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = grid_of(&f, &a, (uint32_t)draw(random, 1, 8));
  double most_bias = 0,
         most_image = add_input(out_case, random, f.dtype, image, offsetof(struct depthwise_args, image));
  double most_other =
      add_input(out_case, random, f.dtype, f.weight ? places : windows, offsetof(struct depthwise_args, other));
  if (!f.weight && rdna__random_below(random, 2))
    most_bias = add_input(out_case, random, f.dtype, a.channels, offsetof(struct depthwise_args, bias));
  if (most_image < 0 || most_other < 0 || most_bias < 0) return rdna__case_no_memory(out_case);
  rdna_dtype written = f.weight ? RDNA_F32 : f.dtype;
  size_t offset = f.weight ? offsetof(struct depthwise_args, sums) : offsetof(struct depthwise_args, out);
  if (!rdna__case_add(out_case, RDNA__OUT, written, f.weight ? windows : places, (uint32_t)offset))
    return rdna__case_no_memory(out_case);
  double sum = (double)k * most_image * most_other;
  rdna__case_tolerance(out_case, 0x1p-24 * (2 * (double)(k + 2) * sum + 8 * (sum + most_bias)) + case_smallest(written),
                       case_spacing(written));
  return RDNA_OK;
}
