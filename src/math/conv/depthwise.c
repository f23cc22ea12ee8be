/* Convolutions with one channel a group: which kernel, and how the work is cut. */
#include "math/conv/depthwise.h"

#include <string.h>

#include "device/traits.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"

/* Groups for each compute unit: of windows that are staged for a group's channels; of parts of a gradient. The least
 * that a part has to do: tiles, or turns of a group's threads. */
enum { LAST_GROUPS = 16, WEIGHT_GROUPS = 6, LEAST_WORK = 4 };

typedef struct problem {
  const struct depthwise_args *args;
  bool of_weight;
  int32_t in_16; /* values of 16 bytes */
} problem;

/* ---- what fits which kernel ---- */

static bool multiples(const int32_t stride[4], const void *data, int32_t of) {
  return stride[1] == 1 && stride[0] % of == 0 && stride[2] % of == 0 && stride[3] % of == 0 &&
         (uintptr_t)data % 16 == 0;
}

/* The image, and beside it what has a value for each place, are runs of channels of 16 bytes. */
static bool is_last(const problem *p) {
  const struct depthwise_args *a = p->args;
  return a->channels % p->in_16 == 0 && multiples(a->image_stride, a->image, p->in_16) &&
         multiples(p->of_weight ? a->other_stride : a->out_stride, p->of_weight ? a->other : a->out, p->in_16);
}

static bool has_kernel(const problem *p) {
  const struct depthwise_args *a = p->args;
  int32_t k = a->window[0];
  return k == a->window[1] && (k == 3 || k == 5 || k == 7) && a->dilation[0] == 1 && a->dilation[1] == 1 &&
         !a->spread && a->step[0] == a->step[1] && a->step[0] <= 2 && DEPTHWISE_ACTIVATES(a->activation);
}

static bool is_last_of_window(const rdna__route *of, const void *which) {
  const problem *p = which;
  return !p->of_weight && has_kernel(p) && is_last(p);
}
static bool is_planes_of_window(const rdna__route *of, const void *which) {
  const problem *p = which;
  return !p->of_weight && has_kernel(p) && p->args->image_stride[3] <= 1 && p->args->out_stride[3] <= 1;
}
static bool is_any_last(const rdna__route *of, const void *which) {
  const problem *p = which;
  return !p->of_weight && is_last(p);
}
static bool is_any(const rdna__route *of, const void *which) { return !((const problem *)which)->of_weight; }
static bool is_weight_last(const rdna__route *of, const void *which) { return is_last(which); }

enum { LAST, PLANES, ANY_LAST, ANY, WEIGHT_LAST, WEIGHT };
static const rdna__route routes[] = {
    [LAST] = {.name = "channels last",
              .kernels = {"depthwise_last_{3|5|7}_{float}"},
              .when = "windows of 3, 5 or 7, steps of 1 or 2, no dilation, channels in runs of 16 bytes",
              .applies = is_last_of_window},
    [PLANES] = {.name = "planes",
                .kernels = {"depthwise_planes_{3|5|7}_{float}"},
                .when = "the same windows, rows of an image in one run",
                .applies = is_planes_of_window},
    [ANY_LAST] = {.name = "any window, channels last",
                  .kernels = {"depthwise_any_last_{float}"},
                  .when = "other windows, channels in runs of 16 bytes",
                  .applies = is_any_last},
    [ANY] = {.name = "any window",
             .kernels = {"depthwise_any_{float}"},
             .when = "other windows and layouts: value by value",
             .applies = is_any},
    [WEIGHT_LAST] = {.name = "weight, channels last",
                     .kernels = {"depthwise_weight_last_{3|5|7}_{float}", "depthwise_weight_sum_{float}"},
                     .when = "the gradient of the weight, channels in runs of 16 bytes",
                     .applies = is_weight_last},
    [WEIGHT] = {.name = "weight, planes",
                .kernels = {"depthwise_weight_{3|5|7}_{float}", "depthwise_weight_sum_{float}"},
                .when = "the gradient of the weight in other layouts"},
};
RDNA_ROUTES(rdna__conv_depthwise_routes, "conv with one channel a group", routes)

/* ---- from tensors to arguments ---- */

/* n, c, y, x of a tensor of one or two spatial dimensions. */
static void set_strides(int32_t out[4], const rdna_tensor *t) {
  int missing = 4 - t->rank;
  for (int d = 0; d < 4; d++) out[d] = 0;
  for (int d = 0; d < t->rank; d++) out[d < 2 ? d : d + missing] = t->shape[d] > 1 ? (int32_t)t->stride[d] : 0;
}
static void set_size(int32_t out[2], const rdna_tensor *t) {
  out[0] = t->rank == 4 ? (int32_t)t->shape[2] : 1;
  out[1] = (int32_t)t->shape[t->rank - 1];
}
/* c, y, x of the windows. */
static void set_window(int32_t out[4], const rdna_tensor *weight) {
  int32_t all[4];
  set_strides(all, weight);
  out[0] = all[0], out[1] = all[2], out[2] = all[3], out[3] = 0;
}

/* The gradient of the image without steps is the forward form over the windows turned round. */
static void turn_window(struct depthwise_args *a, rdna_dtype dtype) {
  int64_t last = 0;
  for (int d = 0; d < 2; d++) {
    a->begin[d] = a->dilation[d] * (a->window[d] - 1) - a->begin[d];
    last += (int64_t)(a->window[d] - 1) * a->other_stride[1 + d];
    a->other_stride[1 + d] = -a->other_stride[1 + d];
  }
  a->other = (const char *)a->other + last * (int64_t)rdna_dtype_block_bytes(dtype);
}

static void make_args(const rdna__conv_call *call, struct depthwise_args *a) {
  const rdna_convolution *conv = call->conv;
  bool data = call->mode == RDNA__CONV_DATA, of_weight = call->mode == RDNA__CONV_WEIGHT;
  const rdna_tensor *image = data ? call->y : call->x, *places = data ? call->x : call->y;
  *a = (struct depthwise_args){.image = image->data, .activation = (uint32_t)call->activation, .parts = 1};
  if (call->bias) a->bias = call->bias->data;
  a->images = (int32_t)image->shape[0], a->channels = (int32_t)image->shape[1];
  set_size(a->image_size, image), set_size(a->place_size, places), set_size(a->window, call->weight);
  set_strides(a->image_stride, image);
  for (int d = 0; d < 2; d++) {
    int from = d - (2 - conv->spatial_dims);
    a->step[d] = from < 0 ? 1 : (int32_t)conv->stride[from];
    a->dilation[d] = from < 0 ? 1 : (int32_t)conv->dilation[from];
    a->begin[d] = from < 0 ? 0 : (int32_t)conv->pad_before[from];
  }
  if (of_weight) {
    a->other = call->y->data, a->out = call->weight->data;
    set_strides(a->other_stride, call->y), set_window(a->out_stride, call->weight);
    return;
  }
  a->other = call->weight->data, a->out = places->data;
  set_window(a->other_stride, call->weight), set_strides(a->out_stride, places);
  a->spread = data && (a->step[0] > 1 || a->step[1] > 1);
  if (data && !a->spread) turn_window(a, call->x->dtype);
  size_t bytes = rdna_dtype_block_bytes(call->x->dtype);
  a->vectors = a->out_stride[3] == 1 && a->out_stride[0] % 4 == 0 && a->out_stride[1] % 4 == 0 &&
               a->out_stride[2] % 4 == 0 && (uintptr_t)a->out % (4 * bytes) == 0;
}

bool rdna__conv_depthwise_applies(const rdna__conv_call *call) {
  const rdna_convolution *conv = call->conv;
  const int64_t *w = call->weight->shape;
  bool of_weight = call->mode == RDNA__CONV_WEIGHT;
  if (conv->spatial_dims > 2 || conv->groups < 2 || w[1] != 1 || w[0] != conv->groups) return false;
  for (int d = 0; d < conv->spatial_dims; d++) {
    if (call->mode == RDNA__CONV_DATA && conv->stride[d] > 1 && conv->dilation[d] > 1) return false;
    if (conv->pad_before[d] > INT32_MAX / 4 || conv->dilation[d] * w[2 + d] > INT32_MAX / 4) return false;
  }
  if (!of_weight) return true;
  struct depthwise_args a;
  make_args(call, &a);
  return has_kernel(&(problem){&a, true, 0});
}

/* ---- cutting the work ---- */

/* Returns the size of the parts if |all| is cut into as few as |most| allows, all about as large. */
static int32_t even(int32_t all, int32_t most) {
  int32_t parts = depthwise_tiles(all, most);
  return parts > 0 ? depthwise_tiles(all, parts) : 1;
}

void rdna__depthwise_tile(struct depthwise_args *a, int32_t rows_each, int64_t count) {
  enum { ACROSS = 32 };
  a->across = even(depthwise_tiles(a->place_size[1], DEPTHWISE_RUN), ACROSS);
  a->planes = 1;
  for (int32_t most = DEPTHWISE_THREADS / a->across;; most--) {
    a->down = even(depthwise_tiles(a->place_size[0], rows_each), most);
    if (depthwise_floats(a, rows_each) <= DEPTHWISE_FLOATS) break; /* one row does */
  }
  int64_t planes = DEPTHWISE_THREADS / (a->across * a->down), most = DEPTHWISE_FLOATS / depthwise_floats(a, rows_each);
  if (planes > most) planes = most;
  a->planes = (int32_t)(planes < count ? planes : count > 0 ? count : 1);
}

void rdna__depthwise_width(struct depthwise_args *a, int32_t in_16) {
  a->width = even(a->channels / in_16, DEPTHWISE_WIDTH / in_16) * in_16;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* How many parts there are of |work|, if |groups| beside them share the card: none smaller than LEAST_WORK, as its sums
 * are written and read again. */
static int32_t parts_of(const rdna_device_info *info, int64_t groups, int64_t work) {
  if (info->compute_units <= 0 || rdna__device_traits_of(info)->divides_work) return 1;
  int64_t parts = least(rdna__divide_up((int64_t)info->compute_units * WEIGHT_GROUPS, groups), work / LEAST_WORK);
  return (int32_t)(parts > 1 ? parts : 1);
}

static rdna_status run_weight(rdna_stream *stream, const char *op_name, const rdna__route *route,
                              struct depthwise_args *a, int32_t in_16, const char *window, const char *type) {
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  int64_t groups = a->channels, work, values = (int64_t)a->channels * a->window[0] * a->window[1];
  if (route == &routes[WEIGHT_LAST]) {
    rdna__depthwise_width(a, in_16);
    groups = rdna__divide_up(a->channels, a->width);
    int64_t slices = DEPTHWISE_THREADS / (a->width / in_16 * a->window[0]);
    work = rdna__divide_up((int64_t)a->images * a->place_size[0] * depthwise_tiles(a->place_size[1], DEPTHWISE_RUN),
                           slices);
  } else {
    rdna__depthwise_tile(a, 1, a->images);
    work = (int64_t)depthwise_tiles(a->images, a->planes) * depthwise_tiles(a->place_size[0], a->down) *
           depthwise_tiles(a->place_size[1], a->across * DEPTHWISE_RUN);
  }
  a->parts = parts_of(info, groups, work);
  rdna_grid grid = {(uint32_t)a->parts, (uint32_t)groups, 1}, sum_grid = {0, 1, 1};
  void *sums;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(values * a->parts) * sizeof(float), &sums));
  a->sums = sums;
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, route, 0, grid, a, window, type);
  if (status == RDNA_OK) status = rdna__check_groups(op_name, values, GEMM_SUM_VALUES(a->parts), &sum_grid.x);
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, route, 1, sum_grid, a, type);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status run_window(rdna_stream *stream, const char *op_name, const rdna__route *route,
                              struct depthwise_args *a, int32_t in_16, const char *window, const char *type) {
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  rdna_grid grid = {0, 1, 1};
  if (route == &routes[LAST]) {
    rdna__depthwise_width(a, in_16);
    int64_t runs = (int64_t)a->images * depthwise_tiles(a->place_size[0], DEPTHWISE_ROWS_LAST) *
                   depthwise_tiles(a->place_size[1], DEPTHWISE_RUN);
    int64_t beside = rdna__divide_up(a->channels, a->width), units = info->compute_units;
    RDNA_TRY(rdna__check_groups(op_name, runs, DEPTHWISE_THREADS / (a->width / in_16), &grid.x));
    int64_t enough = rdna__divide_up((units > 0 ? units : 1) * LAST_GROUPS, beside);
    grid.x = (uint32_t)least(grid.x, enough), grid.y = (uint32_t)beside;
  } else {
    rdna__depthwise_tile(a, DEPTHWISE_ROWS, (int64_t)a->images * a->channels);
    int64_t tiles = (int64_t)depthwise_tiles(a->place_size[0], a->down * DEPTHWISE_ROWS) *
                    depthwise_tiles(a->place_size[1], a->across * DEPTHWISE_RUN);
    RDNA_TRY(
        rdna__check_groups(op_name, tiles * rdna__divide_up((int64_t)a->images * a->channels, a->planes), 1, &grid.x));
  }
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, a, window, type);
}

rdna_status rdna__conv_depthwise(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  static const char *const windows[] = {[3] = "3", [5] = "5", [7] = "7"};
  struct depthwise_args a;
  make_args(call, &a);
  int32_t in_16 = 16 / (int32_t)rdna_dtype_block_bytes(call->x->dtype);
  problem p = {&a, call->mode == RDNA__CONV_WEIGHT, in_16};
  const rdna__route *route = rdna__route_choose(&rdna__conv_depthwise_routes, &p);
  const char *type = rdna_dtype_name(call->x->dtype);
  if (p.of_weight) return run_weight(stream, op_name, route, &a, in_16, windows[a.window[0]], type);
  if (route == &routes[LAST] || route == &routes[PLANES])
    return run_window(stream, op_name, route, &a, in_16, windows[a.window[0]], type);
  int64_t values = (int64_t)a.images * a.channels * a.place_size[0] * a.place_size[1];
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(
      rdna__check_groups(op_name, route == &routes[ANY_LAST] ? values / in_16 : values, DEPTHWISE_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &a, type);
}
