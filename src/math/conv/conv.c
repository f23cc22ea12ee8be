#include "rdna/op/conv.h"

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/conv/conv.h"
#include "math/gemm/gemm.h"

typedef struct operands {
  const char *op_name;
  const rdna_tensor *x, *weight, *y;
} operands;

static rdna_status check_description(const char *op_name, const rdna_convolution *conv) {
  if (conv->spatial_dims < 1 || conv->spatial_dims > 3) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: conv has spatial_dims %d; it must be 1, 2 or 3", op_name,
                      conv->spatial_dims);
  }
  for (int d = 0; d < conv->spatial_dims; d++) {
    bool small = conv->stride[d] <= INT32_MAX && conv->dilation[d] <= INT32_MAX && conv->pad_before[d] <= INT32_MAX &&
                 conv->pad_after[d] <= INT32_MAX;
    if (conv->stride[d] < 1 || conv->dilation[d] < 1 || conv->pad_before[d] < 0 || conv->pad_after[d] < 0 || !small) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: dimension %d has stride %lld, dilation %lld, padding %lld and %lld; stride and dilation "
                        "must be at least 1, padding at least 0, and each fit in 31 bits",
                        op_name, d, (long long)conv->stride[d], (long long)conv->dilation[d],
                        (long long)conv->pad_before[d], (long long)conv->pad_after[d]);
    }
  }
  if (conv->groups < 1 || conv->groups > RDNA__GRID_YZ_MAX) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: there are %lld groups; there must be 1 to %d", op_name,
                      (long long)conv->groups, (int)RDNA__GRID_YZ_MAX);
  }
  return RDNA_OK;
}

/* Every offset fits in 31 bits and is not negative. */
static rdna_status check_strides(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  int64_t last = 0;
  for (int d = 0; d < tensor->rank; d++) {
    int64_t stride = tensor->shape[d] > 1 ? tensor->stride[d] : 0;
    if (stride < 0 || stride > INT32_MAX || tensor->shape[d] > INT32_MAX ||
        (tensor->shape[d] > 1 && (tensor->shape[d] - 1) * stride > INT32_MAX - last)) {
      return rdna__fail(RDNA_UNSUPPORTED,
                        "%s: %s is %s with a stride of %lld in dimension %d; strides must be at least 0, and the whole "
                        "tensor fit in 31 bits",
                        op_name, argument, rdna__tensor_text(tensor, text), (long long)stride, d);
    }
    if (tensor->shape[d] > 1) last += (tensor->shape[d] - 1) * stride;
  }
  return RDNA_OK;
}

/* No element twice: sorted by stride, each dimension steps over all of those before it. */
static rdna_status check_written(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  int64_t reach = 1;
  bool done[RDNA_MAX_RANK] = {false};
  if (rdna_tensor_count(tensor) == 0) return RDNA_OK;
  for (int step = 0; step < tensor->rank; step++) {
    int next = -1;
    for (int d = 0; d < tensor->rank; d++)
      if (!done[d] && tensor->shape[d] > 1 && (next < 0 || tensor->stride[d] < tensor->stride[next])) next = d;
    if (next < 0) break;
    done[next] = true;
    if (tensor->stride[next] < reach) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: %s is %s with a stride of %lld in dimension %d, less than %lld; values would overlap",
                        op_name, argument, rdna__tensor_text(tensor, text), (long long)tensor->stride[next], next,
                        (long long)reach);
    }
    reach += (tensor->shape[next] - 1) * tensor->stride[next];
  }
  return RDNA_OK;
}

static rdna_status check_shapes(const operands *o, const rdna_convolution *conv) {
  const int64_t *x = o->x->shape, *w = o->weight->shape, *y = o->y->shape;
  if (conv->groups * w[1] != x[1] || w[0] % conv->groups != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: x has %lld channels and weight is (%lld, %lld, ...) with %lld groups; the first must be "
                      "groups times the weight's second size, and groups divide its first",
                      o->op_name, (long long)x[1], (long long)w[0], (long long)w[1], (long long)conv->groups);
  }
  if (y[1] != w[0] || y[0] != x[0]) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: y is (%lld, %lld, ...); it must be (%lld, %lld, ...), by x and weight", o->op_name,
                      (long long)y[0], (long long)y[1], (long long)x[0], (long long)w[0]);
  }
  for (int d = 0; d < conv->spatial_dims; d++) {
    int64_t window = w[2 + d] > 0 ? conv->dilation[d] * (w[2 + d] - 1) + 1 : 0;
    int64_t room = conv->pad_before[d] + x[2 + d] + conv->pad_after[d] - window;
    int64_t want = w[2 + d] > 0 && room >= 0 ? room / conv->stride[d] + 1 : 0;
    if (y[2 + d] != want || w[2 + d] == 0) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: spatial size %d of y is %lld; size %lld of x, a window of %lld and the description make "
                        "%lld",
                        o->op_name, d, (long long)y[2 + d], (long long)x[2 + d], (long long)w[2 + d], (long long)want);
    }
  }
  return RDNA_OK;
}

static rdna_status check(const operands *o, const rdna_convolution *conv, rdna__conv_mode mode) {
  const char *op_name = o->op_name;
  const struct {
    const char *name;
    const rdna_tensor *tensor;
  } all[3] = {{"y", o->y}, {"x", o->x}, {"weight", o->weight}};
  RDNA_TRY(check_description(op_name, conv));
  for (int i = 0; i < 3; i++) {
    RDNA_TRY(rdna__check_float(op_name, all[i].name, all[i].tensor));
    RDNA_TRY(rdna__check_rank(op_name, all[i].name, all[i].tensor, conv->spatial_dims + 2));
    RDNA_TRY(check_strides(op_name, all[i].name, all[i].tensor));
    if (i > 0) RDNA_TRY(rdna__check_same_dtype(op_name, all[i].name, all[i].tensor, "y", o->y));
  }
  RDNA_TRY(check_shapes(o, conv));
  int out = mode == RDNA__CONV_FORWARD ? 0 : mode == RDNA__CONV_DATA ? 1 : 2;
  RDNA_TRY(check_written(op_name, all[out].name, all[out].tensor));
  for (int i = 0; i < 3; i++)
    if (i != out) RDNA_TRY(rdna__check_apart(op_name, all[out].name, all[out].tensor, all[i].name, all[i].tensor));
  return RDNA_OK;
}

static rdna_status check_bias(const operands *o, const rdna_tensor *bias, const char *name, const rdna_tensor *out) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(o->op_name, "bias", bias));
  RDNA_TRY(rdna__check_same_dtype(o->op_name, "bias", bias, name, out));
  RDNA_TRY(rdna__check_rank(o->op_name, "bias", bias, 1));
  RDNA_TRY(rdna__check_size(o->op_name, "bias", bias, 0, out->shape[1], "the channels of the result"));
  RDNA_TRY(rdna__check_contiguous(o->op_name, "bias", bias));
  return rdna__check_apart(o->op_name, name, out, "bias", bias);
}

static rdna_status run(rdna_stream *stream, const operands *o, const rdna_convolution *conv, rdna__conv_mode mode,
                       const rdna_tensor *bias, rdna_activation activation) {
  const rdna_tensor *out = mode == RDNA__CONV_FORWARD ? o->y : mode == RDNA__CONV_DATA ? o->x : o->weight;
  rdna_convolution known;
  RDNA_TRY(RDNA__OPTIONS(o->op_name, "conv", conv, &known));
  conv = &known;
  RDNA_TRY(check(o, conv, mode));
  RDNA_TRY(check_bias(o, bias, mode == RDNA__CONV_FORWARD ? "y" : "x", out));
  RDNA_TRY(rdna__check_stream(o->op_name, stream));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__conv_call call = {mode, conv, o->x, o->weight, o->y, bias, activation};
  if (rdna__conv_is_product(&call)) return rdna__conv_product(stream, o->op_name, &call);
  int64_t positions = 1, places = 1, taps = 1;
  const rdna_tensor *over = mode == RDNA__CONV_DATA ? o->x : o->y;
  for (int d = 0; d < conv->spatial_dims + 2; d++) {
    if (d != 1) positions *= over->shape[d];
    if (d != 0) taps *= o->weight->shape[d];
    if (d > 1) places *= o->weight->shape[d];
  }
  if (mode == RDNA__CONV_DATA) taps = places * (o->weight->shape[0] / conv->groups);
  if (positions > INT32_MAX / 2 || taps > INT32_MAX / 2) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld positions and %lld taps; each must fit in 30 bits: split the batch",
                      o->op_name, (long long)positions, (long long)taps);
  }
  return rdna__conv_run(stream, o->op_name, &call);
}

rdna_status rdna_op_conv(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *x,
                         const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *y) {
  operands o = {"conv", x, weight, y};
  return run(stream, &o, conv, RDNA__CONV_FORWARD, bias, RDNA_ACTIVATION_NONE);
}

rdna_status rdna_op_conv_activate(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *x,
                                  const rdna_tensor *weight, const rdna_tensor *bias, rdna_activation activation,
                                  const rdna_tensor *y) {
  operands o = {"conv_activate", x, weight, y};
  RDNA_TRY(rdna__check_activation(o.op_name, activation));
  return run(stream, &o, conv, RDNA__CONV_FORWARD, bias, activation);
}

rdna_status rdna_op_conv_backward_data(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *y,
                                       const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *x) {
  operands o = {"conv_backward_data", x, weight, y};
  return run(stream, &o, conv, RDNA__CONV_DATA, bias, RDNA_ACTIVATION_NONE);
}

rdna_status rdna_op_conv_backward_weight(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *y,
                                         const rdna_tensor *x, const rdna_tensor *weight) {
  operands o = {"conv_backward_weight", x, weight, y};
  return run(stream, &o, conv, RDNA__CONV_WEIGHT, NULL, RDNA_ACTIVATION_NONE);
}
