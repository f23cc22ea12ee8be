#include "math/vision/roi.h"

#include <math.h>

#include "base/options.h"
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/common/plan/volume.h"

static const rdna__route routes[] = {{.name = "forward",
                                      .kernels = {"roi_{align|max|mean}_{real}"},
                                      .when = "by the mode; align has a vector of channels where these are innermost"},
                                     {.name = "backward",
                                      .kernels = {"roi_{align|max|ps}_backward_{real}"},
                                      .when = "by the mode; a thread for each pixel goes through the boxes"}};
RDNA_FIXED_ROUTES(rdna__roi_routes, "roi_pool, roi_pool_backward", routes)

enum { GRID_MOST = 1 << 20 };

/* Backward, |x| is dx and |out| dout. */
struct call {
  const char *op_name;
  rdna_stream *stream;
  const rdna_roi *options;
  const char *x_name, *out_name;
  const rdna_tensor *x, *boxes, *out, *places;
  uint32_t *outside;
  bool backward;
};

static bool position_sensitive(const rdna_roi *options) {
  return options->mode == RDNA_ROI_MODE_PS_ALIGN || options->mode == RDNA_ROI_MODE_PS_MEAN;
}

static rdna_status check_description(const struct call *c) {
  const rdna_roi *options = c->options;
  if ((unsigned)options->mode >= RDNA_ROI_MODE_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the mode is %d; modes are 0 to %d", c->op_name, (int)options->mode,
                      RDNA_ROI_MODE_COUNT - 1);
  }
  if (options->half_pixel && options->mode != RDNA_ROI_MODE_ALIGN) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: half_pixel is set and the mode is %d; it is of %d alone", c->op_name,
                      (int)options->mode, RDNA_ROI_MODE_ALIGN);
  }
  if (!isfinite(options->scale)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the scale is %g; it must be finite", c->op_name, options->scale);
  }
  bool sampled = options->mode == RDNA_ROI_MODE_ALIGN || options->mode == RDNA_ROI_MODE_PS_ALIGN;
  if (options->grid < 0 || options->grid > GRID_MOST || (options->grid > 0 && !sampled)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: the grid is %lld in mode %d; it must be 0 to %d, and 0 in modes without samples", c->op_name,
                      (long long)options->grid, (int)options->mode, GRID_MOST);
  }
  return RDNA_OK;
}

static rdna_status check_shapes(const struct call *c) {
  char text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_size(c->op_name, "boxes", c->boxes, 1, 5, "an image and the corners of a box"));
  RDNA_TRY(rdna__check_size(c->op_name, c->out_name, c->out, 0, c->boxes->shape[0], "one for each of boxes"));
  int64_t bins = position_sensitive(c->options) ? c->out->shape[2] * c->out->shape[3] : 1;
  if (c->out->shape[1] > INT32_MAX / (bins > 0 ? bins : 1) || c->out->shape[1] * bins != c->x->shape[1]) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; the channels must be %s", c->op_name,
                      c->x_name, rdna__tensor_text(c->x, text), c->out_name, rdna__tensor_text(c->out, out_text),
                      bins == 1 ? "equal" : "as many for each bin");
  }
  if (c->x->shape[2] < 1 || c->x->shape[3] < 1 || c->x->shape[2] > 1 << 24 || c->x->shape[3] > 1 << 24) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; images must have 1 to 2^24 rows and columns", c->op_name,
                      c->x_name, rdna__tensor_text(c->x, text));
  }
  return RDNA_OK;
}

static rdna_status check_places(const struct call *c) {
  if (c->options->mode != RDNA_ROI_MODE_MAX) {
    if (!c->places) return RDNA_OK;
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: places is given and the mode is %d; they are of %d alone", c->op_name,
                      (int)c->options->mode, RDNA_ROI_MODE_MAX);
  }
  if (!c->places && !c->backward) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(c->op_name, "places", c->places));
  RDNA_TRY(rdna__check_dtype(c->op_name, "places", c->places, RDNA_I32));
  RDNA_TRY(rdna__check_same_shape(c->op_name, "places", c->places, c->out_name, c->out));
  return rdna__check_contiguous(c->op_name, "places", c->places);
}

static rdna_status check(const struct call *c) {
  RDNA_TRY(rdna__check_stream(c->op_name, c->stream));
  RDNA_TRY(check_description(c));
  RDNA_TRY(rdna__check_volume(c->op_name, c->x_name, c->x, 2));
  RDNA_TRY(rdna__check_volume(c->op_name, c->out_name, c->out, 2));
  RDNA_TRY(rdna__check_same_dtype(c->op_name, c->out_name, c->out, c->x_name, c->x));
  RDNA_TRY(rdna__check_tensor(c->op_name, "boxes", c->boxes));
  RDNA_TRY(rdna__check_same_dtype(c->op_name, "boxes", c->boxes, c->x_name, c->x));
  RDNA_TRY(rdna__check_rank(c->op_name, "boxes", c->boxes, 2));
  RDNA_TRY(check_shapes(c));
  RDNA_TRY(check_places(c));
  const rdna__named x = {c->x_name, c->x}, out = {c->out_name, c->out}, boxes = {"boxes", c->boxes};
  const rdna__named places = {"places", c->places};
  const rdna__named written[] = {c->backward ? x : out, {"places", c->backward ? NULL : c->places}};
  const rdna__named read[] = {c->backward ? out : x, boxes, c->backward ? places : boxes};
  RDNA_TRY(rdna__check_written(c->op_name, written[0].name, written[0].tensor));
  return rdna__check_written_apart(c->op_name, written, 2, read, 3, 0);
}

void rdna__roi_fill(const rdna_roi *options, const rdna_tensor *x, const rdna_tensor *boxes, const rdna_tensor *out,
                    bool backward, struct roi_args *a) {
  bool ps = position_sensitive(options);
  *a = (struct roi_args){.x = rdna__volume_of(x),
                         .out = rdna__volume_of(out),
                         .boxes = boxes->data,
                         .box_stride = {boxes->stride[0], boxes->stride[1]},
                         .kind = (uint32_t)options->mode,
                         .half_pixel = options->half_pixel,
                         .count = (uint32_t)boxes->shape[0],
                         .samples = (uint32_t)x->shape[0],
                         .channels = (uint32_t)(backward ? x : out)->shape[1],
                         .size = {(int32_t)x->shape[2], (int32_t)x->shape[3]},
                         .bins = {(int32_t)out->shape[2], (int32_t)out->shape[3]},
                         .grid = (int32_t)options->grid,
                         .scale = (float)options->scale,
                         .scale_f64 = options->scale};
  if (!ps || backward) return;
  a->bin_stride = a->x.stride[1];
  a->x.stride[1] *= out->shape[2] * out->shape[3];
}

static rdna_status forward(const struct call *c) {
  static const char *const modes[RDNA_ROI_MODE_COUNT] = {[RDNA_ROI_MODE_ALIGN] = "align",
                                                         [RDNA_ROI_MODE_MAX] = "max",
                                                         [RDNA_ROI_MODE_PS_ALIGN] = "align",
                                                         [RDNA_ROI_MODE_PS_MEAN] = "mean"};
  struct roi_args a;
  char kernel[RDNA__ROUTE_NAME];
  rdna__roi_fill(c->options, c->x, c->boxes, c->out, false, &a);
  a.places = c->places ? c->places->data : NULL, a.outside = c->outside;
  RDNA_TRY(rdna__roi_order(c->op_name, c->options, c->x, c->out, &a.order));
  const char *words[] = {modes[c->options->mode], rdna_dtype_name(c->x->dtype)};
  return rdna__volume_launch(c->stream, rdna__route_kernel(kernel, routes[0].kernels[0], words), &a.order, &a);
}

rdna_status rdna__roi_order(const char *op_name, const rdna_roi *options, const rdna_tensor *x, const rdna_tensor *out,
                            struct volume_order *order) {
  const rdna_tensor *tensors[] = {out, x};
  rdna_tensor alone = *out;
  /* Channels that are not neighbours are no vector, and neither are those of kernels that take them in turn. */
  if (options->mode != RDNA_ROI_MODE_ALIGN && alone.stride[1] == 1) alone.stride[1] = 2;
  tensors[0] = &alone;
  return rdna__volume_order(op_name, tensors, 2, ROI_BLOCK, order);
}

static rdna_status backward(const struct call *c) {
  struct roi_args a;
  rdna_grid grid = {0, 1, 1};
  if (rdna_tensor_count(c->x) == 0) return RDNA_OK;
  rdna__roi_fill(c->options, c->x, c->boxes, c->out, true, &a);
  a.places = c->places ? c->places->data : NULL, a.outside = c->outside;
  if (rdna_tensor_count(c->out) == 0) a.count = 0;
  RDNA_TRY(rdna__check_groups(c->op_name, rdna__roi_groups(&a), 1, &grid.x));
  const char *mode = position_sensitive(c->options) ? "ps" : c->options->mode == RDNA_ROI_MODE_ALIGN ? "align" : "max";
  return RDNA__ROUTE_LAUNCH(c->stream, &routes[1], 0, grid, &a, mode, rdna_dtype_name(c->x->dtype));
}

static rdna_status run(struct call call) {
  struct call *c = &call;
  rdna_roi known;
  RDNA_TRY(RDNA__OPTIONS(c->op_name, "options", c->options, &known));
  c->options = &known;
  RDNA_TRY(check(c));
  return c->backward ? backward(c) : forward(c);
}

rdna_status rdna_op_roi_pool(rdna_stream *stream, const rdna_roi *options, const rdna_tensor *x,
                             const rdna_tensor *boxes, const rdna_tensor *out, const rdna_tensor *places,
                             uint32_t *outside) {
  return run((struct call){"roi_pool", stream, options, "x", "out", x, boxes, out, places, outside, false});
}

rdna_status rdna_op_roi_pool_backward(rdna_stream *stream, const rdna_roi *options, const rdna_tensor *dout,
                                      const rdna_tensor *boxes, const rdna_tensor *places, const rdna_tensor *dx,
                                      uint32_t *outside) {
  return run((struct call){"roi_pool_backward", stream, options, "dx", "dout", dx, boxes, dout, places, outside, true});
}
