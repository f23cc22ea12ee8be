#include "math/upsample/upsample.h"
#include "base/options.h"

#include <math.h>

#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/common/plan/volume.h"

static const rdna__route route[] = {{.name = "modes",
                                     .kernels = {"upsample_{nearest|linear|cubic}{|_backward}_{real}"},
                                     .when = "by the mode, forward and backward"}};
RDNA_FIXED_ROUTES(rdna__upsample_routes, "upsample, upsample_backward", route)

/* A checked call; backward, |x| is dx and |out| dout. */
struct call {
  const char *op_name;
  rdna_stream *stream;
  const rdna_upsample *options;
  const char *x_name, *out_name;
  const rdna_tensor *x, *out;
  bool backward;
};

struct upsample_axis rdna__upsample_axis(const rdna_upsample *options, double factor, int32_t in, int32_t out) {
  struct upsample_axis a = {.in = in, .out = out};
  if (options->align_corners) {
    a.scale = out > 1 ? (float)(in - 1) / (float)(out - 1) : 0;
    a.scale_f64 = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  } else {
    a.scale = factor > 0 ? (float)(1 / factor) : (float)in / (float)out;
    a.scale_f64 = factor > 0 ? 1 / factor : (double)in / (double)out;
  }
  a.inverse = a.scale > 0 ? 1 / a.scale : 0;
  return a;
}

static rdna_status check_description(const struct call *c) {
  const rdna_upsample *options = c->options;
  if ((unsigned)options->mode >= RDNA_UPSAMPLE_MODE_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the mode is %d; modes are 0 to %d", c->op_name, (int)options->mode,
                      RDNA_UPSAMPLE_MODE_COUNT - 1);
  }
  if (options->align_corners && options->mode != RDNA_UPSAMPLE_MODE_LINEAR &&
      options->mode != RDNA_UPSAMPLE_MODE_CUBIC) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: align_corners is set and the mode is %d; the nearest modes have none",
                      c->op_name, (int)options->mode);
  }
  return RDNA_OK;
}

static rdna_status check_sizes(const struct call *c) {
  char text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  if (c->options->mode == RDNA_UPSAMPLE_MODE_CUBIC) RDNA_TRY(rdna__check_rank(c->op_name, c->x_name, c->x, 4));
  for (int d = 0; d < c->x->rank - 2; d++) {
    double factor = c->options->factor[d];
    if (!(factor >= 0) || isinf(factor)) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: factor %d is %g; it must be 0 or a finite positive number",
                        c->op_name, d, factor);
    }
    if (c->x->shape[d + 2] < 1 || c->out->shape[d + 2] < 1) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; spatial sizes must be at least 1",
                        c->op_name, c->x_name, rdna__tensor_text(c->x, text), c->out_name,
                        rdna__tensor_text(c->out, out_text));
    }
  }
  return RDNA_OK;
}

static rdna_status run(struct call call) {
  struct call *c = &call;
  rdna_upsample known;
  RDNA_TRY(RDNA__OPTIONS(c->op_name, "options", c->options, &known));
  c->options = &known;
  RDNA_TRY(rdna__check_stream(c->op_name, c->stream));
  RDNA_TRY(check_description(c));
  RDNA_TRY(rdna__check_volume(c->op_name, c->x_name, c->x, 0));
  RDNA_TRY(rdna__check_volume(c->op_name, c->out_name, c->out, 0));
  RDNA_TRY(rdna__check_same_dtype(c->op_name, c->out_name, c->out, c->x_name, c->x));
  RDNA_TRY(rdna__check_same_planes(c->op_name, c->out_name, c->out, c->x_name, c->x));
  RDNA_TRY(check_sizes(c));
  const rdna_tensor *written = c->backward ? c->x : c->out, *read = c->backward ? c->out : c->x;
  const char *written_name = c->backward ? c->x_name : c->out_name, *read_name = c->backward ? c->out_name : c->x_name;
  RDNA_TRY(rdna__check_written(c->op_name, written_name, written));
  RDNA_TRY(rdna__check_apart(c->op_name, written_name, written, read_name, read));

  struct upsample_args a = {.x = rdna__volume_of(c->x),
                            .out = rdna__volume_of(c->out),
                            .kind = (uint32_t)c->options->mode,
                            .dims = (uint32_t)c->x->rank - 2,
                            .align_corners = c->options->align_corners,
                            .channels = (uint32_t)c->x->shape[1]};
  const rdna_tensor *tensors[] = {written, read};
  RDNA_TRY(rdna__volume_order(c->op_name, tensors, 2, UPSAMPLE_BLOCK, &a.order));
  int32_t in[3], out[3];
  rdna__volume_sizes(c->x, in);
  rdna__volume_sizes(c->out, out);
  for (int d = 0; d < 3; d++) {
    int from = d + c->x->rank - 5;
    a.axis[d] = rdna__upsample_axis(c->options, from < 0 ? 0 : c->options->factor[from], in[d], out[d]);
  }
  static const char *const modes[RDNA_UPSAMPLE_MODE_COUNT] = {[RDNA_UPSAMPLE_MODE_NEAREST] = "nearest",
                                                              [RDNA_UPSAMPLE_MODE_NEAREST_EXACT] = "nearest",
                                                              [RDNA_UPSAMPLE_MODE_LINEAR] = "linear",
                                                              [RDNA_UPSAMPLE_MODE_CUBIC] = "cubic"};
  const char *words[] = {modes[c->options->mode], c->backward ? "_backward" : "", rdna_dtype_name(c->x->dtype)};
  char kernel[RDNA__ROUTE_NAME];
  return rdna__volume_launch(c->stream, rdna__route_kernel(kernel, route->kernels[0], words), &a.order, &a);
}

rdna_status rdna_op_upsample(rdna_stream *stream, const rdna_upsample *options, const rdna_tensor *x,
                             const rdna_tensor *out) {
  return run((struct call){"upsample", stream, options, "x", "out", x, out, false});
}

rdna_status rdna_op_upsample_backward(rdna_stream *stream, const rdna_upsample *options, const rdna_tensor *dout,
                                      const rdna_tensor *dx) {
  return run((struct call){"upsample_backward", stream, options, "dx", "dout", dx, dout, true});
}
