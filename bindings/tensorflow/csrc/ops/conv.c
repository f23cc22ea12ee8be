/* Convolutions and pools of images: what TensorFlow has channels last is a matter of strides to librdna. */
#include "rdna/op/conv.h"

#include <string.h>

#include "activation.h"
#include "compose.h"
#include "ops.h"
#include "rdna/op/fused.h"
#include "rdna/op/index.h"
#include "rdna/op/pool.h"

/* The number that an attribute's list has for spatial dimension |i|; |otherwise| where it has none. */
static int64_t spatial(const call *c, const struct list *list, int i, int64_t otherwise) {
  int at = c->attributes->data_format[1] == 'C' ? i + 2 : i + 1;
  return list->count > at ? list->values[at] : otherwise;
}

/* (out channels, channels of a group, window…) of a filter (window…, channels, out channels), or of a depthwise one
 * (window…, channels, multiplier). */
static rdna_tensor as_weight(const call *c, const rdna_tensor *filter) {
  rdna_tensor w = *filter;
  int window = filter->rank - 2;
  if (window < 1) return w; /* which describe refuses */
  int64_t in = filter->shape[window], out = filter->shape[window + 1];
  for (int i = 0; i < window; i++) w.shape[i + 2] = filter->shape[i], w.stride[i + 2] = filter->stride[i];
  w.shape[0] = c->number == DEPTHWISE ? in * out : out;
  w.stride[0] = 1;
  w.shape[1] = c->number == DEPTHWISE ? 1 : in;
  w.stride[1] = out;
  return w;
}

/* Padding of one dimension from its size, and the number of windows. */
static rdna_status pad(call *c, int i, int64_t size, int64_t window, int64_t stride, int64_t *before, int64_t *after,
                       int64_t *count) {
  const char *padding = c->attributes->padding;
  int at = c->attributes->data_format[1] == 'C' ? i + 2 : i + 1;
  *before = *after = 0;
  if (stride < 1 || stride > INT32_MAX || window < 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "a stride of %lld, a window of %lld", (long long)stride,
                     (long long)window);
  if (strcmp(padding, "SAME") == 0) {
    int64_t steps = size / stride + (size % stride != 0), whole = 0;
    if (__builtin_add_overflow((steps - 1) * stride - size, window, &whole) || whole < 0) whole = 0;
    *before = whole / 2;
    *after = whole - whole / 2;
  } else if (strcmp(padding, "EXPLICIT") == 0) {
    if (c->attributes->explicit_paddings.count < 2 * at + 2)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "explicit_paddings has too few numbers");
    *before = c->attributes->explicit_paddings.values[2 * at];
    *after = c->attributes->explicit_paddings.values[2 * at + 1];
    if (*before < 0 || *after < 0 || *before > INT32_MAX || *after > INT32_MAX)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "explicit_paddings must be from 0 to 2**31 - 1");
  }
  int64_t room = size;
  TRY(size_plus(c, &room, *before));
  TRY(size_plus(c, &room, *after));
  room -= window;
  *count = room < 0 ? 0 : room / stride + 1;
  return RDNA_OK;
}

/* What a convolution of |x| (n, channels, spatial…) by |weight| is, and the shape of its result as librdna has it. */
static rdna_status describe(call *c, const rdna_tensor *x, const rdna_tensor *weight, rdna_convolution *out,
                            int64_t *shape) {
  *out = (rdna_convolution){RDNA_CONVOLUTION_INIT, .spatial_dims = x->rank - 2};
  if (x->rank < 3 || x->rank > 5 || weight->rank != x->rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "a convolution of tensors of rank %d and %d", x->rank, weight->rank);
  if (weight->shape[1] < 1 || x->shape[1] < 1 || x->shape[1] % weight->shape[1] ||
      weight->shape[0] % (x->shape[1] / weight->shape[1]))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "input depth must be evenly divisible by filter depth: %lld vs %lld",
                     (long long)x->shape[1], (long long)weight->shape[1]);
  out->groups = x->shape[1] / weight->shape[1];
  shape[0] = x->shape[0];
  shape[1] = weight->shape[0];
  for (int i = 0; i < out->spatial_dims; i++) {
    out->stride[i] = spatial(c, &c->attributes->strides, i, 1);
    out->dilation[i] = spatial(c, &c->attributes->dilations, i, 1);
    int64_t reach = weight->shape[i + 2] - 1;
    if (reach < 0 || out->dilation[i] < 1)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "a dilation of %lld, a window of %lld", (long long)out->dilation[i],
                       (long long)reach + 1);
    TRY(size_times(c, &reach, out->dilation[i]));
    TRY(size_plus(c, &reach, 1));
    TRY(pad(c, i, x->shape[i + 2], reach, out->stride[i], &out->pad_before[i], &out->pad_after[i], &shape[i + 2]));
  }
  return RDNA_OK;
}

/* Output |i| of a shape that is given as (n, channels, spatial…). */
static rdna_status image_output(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out) {
  int64_t last[RDNA_MAX_RANK];
  memcpy(last, shape, sizeof last);
  if (c->attributes->data_format[1] != 'C') {
    for (int k = 1; k < rank - 1; k++) last[k] = shape[k + 1];
    last[rank - 1] = shape[1];
  }
  TRY(call_output(c, i, rank, last, out));
  *out = channels_second(c, *out);
  return RDNA_OK;
}

static rdna_status image_input(call *c, int i, rdna_tensor *out) {
  TRY(call_input(c, i, out));
  *out = channels_second(c, *out);
  return RDNA_OK;
}

/* Both operands as they are convolved, and where to. */
static rdna_status images(call *c, rdna_convolution *conv, rdna_tensor *x, rdna_tensor *weight, rdna_tensor *y) {
  rdna_tensor filter;
  int64_t shape[RDNA_MAX_RANK];
  TRY(image_input(c, 0, x));
  TRY(call_input(c, 1, &filter));
  *weight = as_weight(c, &filter);
  TRY(describe(c, x, weight, conv, shape));
  return image_output(c, 0, x->rank, shape, y);
}

rdna_status compute_conv(call *c) {
  rdna_tensor x, weight, y;
  rdna_convolution conv;
  TRY(images(c, &conv, &x, &weight, &y));
  return rdna_op_conv(c->stream, &conv, &x, &weight, NULL, &y);
}

static rdna_status conv_of_batches(call *c) {
  int front = (int)c->attributes->batch_dims;
  rdna_tensor x, filter, y;
  rdna_convolution conv;
  int64_t shape[RDNA_MAX_RANK], flat[RDNA_MAX_RANK], whole[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &filter));
  int rank = x.rank - front + 1;
  if (front < 1 || front > x.rank || (rank != 4 && rank != 5))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "The input must have 2 or 3 spatial dimensions but got %d", rank - 2);
  if (c->attributes->strides.count != rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Sliding window strides field must specify %d dimensions", rank);
  memcpy(whole, x.shape, sizeof whole);
  flat[0] = 1;
  for (int i = 0; i < front; i++) flat[0] *= x.shape[i];
  memcpy(flat + 1, x.shape + front, (size_t)(rank - 1) * sizeof *flat);
  rdna_tensor from = reshaped(&x, rank, flat);
  from = channels_second(c, from);
  rdna_tensor weight = as_weight(c, &filter);
  TRY(describe(c, &from, &weight, &conv, shape));
  if (c->attributes->groups > 1 && c->attributes->groups != conv.groups)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%lld groups by the shapes, and %lld were asked for",
                     (long long)conv.groups, (long long)c->attributes->groups);
  bool first = c->attributes->data_format[1] == 'C';
  flat[0] = shape[0];
  for (int i = 1; i < rank; i++) flat[i] = first ? shape[i] : shape[i == rank - 1 ? 1 : i + 1];
  memcpy(whole + front, flat + 1, (size_t)(rank - 1) * sizeof *flat);
  TRY(call_output(c, 0, x.rank, whole, &y));
  y = reshaped(&y, rank, flat);
  y = channels_second(c, y);
  return rdna_op_conv(c->stream, &conv, &from, &weight, NULL, &y);
}

/* Of images of two or three dimensions with several of batches in front, whose layout has words of its own. */
rdna_status compute_conv_of_any(call *c) {
  const struct attributes *own = c->attributes;
  struct attributes named = *own;
  strcpy(named.data_format, strcmp(own->data_format, "CHANNELS_FIRST") == 0 ? "NCHW" : "NHWC");
  c->attributes = &named;
  rdna_status result = conv_of_batches(c);
  c->attributes = own;
  return result;
}

/* activation(x * filter + bias) */
rdna_status compute_fused_conv(call *c) {
  rdna_tensor x, weight, bias, y;
  rdna_convolution conv;
  rdna_activation activation;
  TRY(images(c, &conv, &x, &weight, &y));
  TRY(call_input(c, 2, &bias));
  TRY(call_activation(c, &activation));
  if (bias.rank != 1 || bias.shape[0] != y.shape[1])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Must provide as many biases as the last dimension of the input tensor");
  return rdna_op_conv_activate(c->stream, &conv, &x, &weight, &bias, activation, &y);
}

/* ---- a convolution and the batch norm of inference behind it ---- */

struct folding { /* NULL: ones, zeros */
  rdna_tensor mean, variance, *scale, *offset, *bias, *residual;
};

/* A value for each channel, as a list of them. False: it is of another shape. */
static bool as_channels(rdna_tensor *x, int64_t channels) {
  bool fits = x->rank >= 1 && x->rank <= 4 && x->shape[x->rank - 1] == channels && rdna_tensor_count(x) == channels;
  if (fits) *x = reshaped(x, 1, &channels);
  return fits;
}

/* The filter times scale / sqrt(variance + epsilon), and offset + (bias - mean) times that: a launch each over the
 * filter's values, where a pass over the images would be one of theirs. */
static rdna_status fold(call *c, const struct folding *f, const rdna_tensor *filter, rdna_tensor *weight,
                        rdna_tensor *shift) {
  rdna_tensor variance = repeated(&f->variance, filter->rank, filter->shape), scale, mean = f->mean;
  rdna_fused_step steps[6] = {{.op = RDNA_MAP_AFFINE, .p = 1, .q = c->attributes->epsilon}, {.op = RDNA_MAP_RSQRT}};
  const rdna_tensor *inputs[4] = {&variance};
  int count = 2, taken = 1;
  TRY(like(c, filter, weight));
  TRY(like(c, &f->mean, shift));
  if (f->scale) {
    scale = repeated(f->scale, filter->rank, filter->shape);
    steps[count++] = (rdna_fused_step){.op = RDNA_ZIP_MUL, .is_zip = true, .input = taken};
    inputs[taken++] = &scale;
  }
  steps[count] = (rdna_fused_step){.op = RDNA_ZIP_MUL, .is_zip = true, .input = taken};
  inputs[taken] = filter;
  TRY(rdna_op_fused(c->stream, steps, count + 1, inputs, taken + 1, weight));
  if (f->bias) {
    TRY(like(c, &f->mean, &mean));
    TRY(zip(c, RDNA_ZIP_SUB, &f->mean, f->bias, &mean));
  }
  inputs[0] = &f->variance;
  if (f->scale) inputs[1] = f->scale;
  inputs[taken] = &mean;
  count++;
  if (f->offset) {
    steps[count++] = (rdna_fused_step){.op = RDNA_ZIP_SUB, .is_zip = true, .input_first = true, .input = taken + 1};
    inputs[taken + 1] = f->offset;
  } else {
    steps[count++] = (rdna_fused_step){.op = RDNA_MAP_NEG};
  }
  return rdna_op_fused(c->stream, steps, count, inputs, taken + 1 + (f->offset != NULL), shift);
}

/* |*x| becomes x op factor, broadcast. */
static rdna_status combine(call *c, rdna_zip op, rdna_tensor *x, const rdna_tensor *factor) {
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  rdna_tensor out;
  TRY(call_broadcast(c, x, factor, &rank, shape));
  TRY(call_scratch(c, x->dtype, rank, shape, &out));
  rdna_tensor from = repeated(x, rank, shape), with = repeated(factor, rank, shape);
  TRY(zip(c, op, &from, &with, &out));
  *x = out;
  return RDNA_OK;
}

/* The same step by step, for factors that are not one value for each channel. |y| has the channels last. */
static rdna_status normalize_apart(call *c, const struct folding *f, rdna_activation activation, rdna_tensor y) {
  rdna_tensor inverse, out;
  TRY(like(c, &f->variance, &inverse));
  TRY(affine(c, &f->variance, 1, (double)c->attributes->epsilon, &inverse));
  TRY(map(c, RDNA_MAP_RSQRT, &inverse, &inverse));
  if (f->scale) TRY(combine(c, RDNA_ZIP_MUL, &inverse, f->scale));
  TRY(combine(c, RDNA_ZIP_SUB, &y, &f->mean));
  TRY(combine(c, RDNA_ZIP_MUL, &y, &inverse));
  if (f->offset) TRY(combine(c, RDNA_ZIP_ADD, &y, f->offset));
  if (f->residual) TRY(combine(c, RDNA_ZIP_ADD, &y, f->residual));
  TRY(call_output(c, 0, y.rank, y.shape, &out));
  return call_activate(c, activation, &y, &out);
}

/* y = activation(y + residual) in one pass, where |y| is an image and |residual| has the channels last. */
static rdna_status add_residual(call *c, const rdna_tensor *residual, rdna_activation activation, rdna_tensor y) {
  rdna_tensor from = channels_second(c, *residual);
  rdna_fused_step steps[2] = {{.op = RDNA_ZIP_ADD, .is_zip = true, .input = 1}, {.op = RDNA_MAP_RELU}};
  if (activation == RDNA_ACTIVATION_RELU || activation == RDNA_ACTIVATION_NONE)
    return rdna_op_fused(c->stream, steps, activation == RDNA_ACTIVATION_NONE ? 1 : 2,
                         (const rdna_tensor *[]){&y, &from}, 2, &y);
  TRY(zip(c, RDNA_ZIP_ADD, &y, &from, &y));
  return call_activate(c, activation, &y, &y);
}

/* (x, filter, mean, variance, scale or none, offset or none, bias or none, residual or none) */
rdna_status compute_conv_batch_norm(call *c) {
  const struct attributes *a = c->attributes;
  rdna_tensor x, filter, folded, weight, y, shift, given[4];
  struct folding f = {0};
  rdna_convolution conv;
  rdna_activation activation;
  int64_t shape[RDNA_MAX_RANK];
  int count = 4;
  TRY(image_input(c, 0, &x));
  TRY(call_input(c, 1, &filter));
  TRY(call_input(c, 2, &f.mean));
  TRY(call_input(c, 3, &f.variance));
  if (a->scale_count) TRY(call_input(c, count++, f.scale = &given[0]));
  if (a->offset_count) TRY(call_input(c, count++, f.offset = &given[1]));
  if (a->bias_count) TRY(call_input(c, count++, f.bias = &given[2]));
  if (a->residual_count) TRY(call_input(c, count++, f.residual = &given[3]));
  TRY(call_activation(c, &activation));
  weight = as_weight(c, &filter);
  TRY(describe(c, &x, &weight, &conv, shape));
  if (f.bias && (f.bias->rank != 1 || f.bias->shape[0] != shape[1]))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Must provide as many biases as the last dimension of the input tensor");
  struct folding listed = f;
  int64_t last[] = {shape[0], shape[2], shape[3], shape[1]};
  if (as_channels(&listed.mean, shape[1]) && as_channels(&listed.variance, shape[1]) &&
      (!f.scale || as_channels(f.scale, shape[1])) && (!f.offset || as_channels(f.offset, shape[1])) &&
      (!f.residual || same_shape(f.residual, 4, last))) {
    TRY(image_output(c, 0, x.rank, shape, &y));
    TRY(fold(c, &listed, &filter, &folded, &shift));
    weight = as_weight(c, &folded);
    TRY(rdna_op_conv_activate(c->stream, &conv, &x, &weight, &shift, f.residual ? RDNA_ACTIVATION_NONE : activation,
                              &y));
    return f.residual ? add_residual(c, f.residual, activation, y) : RDNA_OK;
  }
  rdna_tensor images;
  TRY(call_scratch(c, x.dtype, 4, last, &images));
  y = channels_second(c, images);
  TRY(rdna_op_conv(c->stream, &conv, &x, &weight, f.bias, &y));
  return normalize_apart(c, &f, activation, images);
}

/* (sizes of x, filter, dy); as many samples as dy has where the sizes say -1 */
rdna_status compute_conv_gradient_of_x(call *c) {
  rdna_tensor filter, dy, dx;
  rdna_convolution conv;
  int64_t sizes[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int count;
  TRY(call_integers(c, 0, RDNA_MAX_RANK, sizes, &count));
  TRY(call_input(c, 1, &filter));
  TRY(image_input(c, 2, &dy));
  if (count != dy.rank) return call_fail(c, RDNA_UNSUPPORTED, "input_sizes has %d numbers, not %d", count, dy.rank);
  if (sizes[0] == -1) sizes[0] = dy.shape[0];
  rdna_tensor weight = as_weight(c, &filter);
  TRY(call_output(c, 0, count, sizes, &dx));
  dx = channels_second(c, dx);
  TRY(describe(c, &dx, &weight, &conv, shape));
  return rdna_op_conv_backward_data(c->stream, &conv, &dy, &weight, NULL, &dx);
}

/* (x, sizes of the filter, dy) */
rdna_status compute_conv_gradient_of_filter(call *c) {
  rdna_tensor x, dy, dfilter;
  rdna_convolution conv;
  int64_t sizes[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int count;
  TRY(image_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, sizes, &count));
  TRY(image_input(c, 2, &dy));
  TRY(call_output(c, 0, count, sizes, &dfilter));
  rdna_tensor weight = as_weight(c, &dfilter);
  TRY(describe(c, &x, &weight, &conv, shape));
  return rdna_op_conv_backward_weight(c->stream, &conv, &dy, &x, &weight);
}

/* ---- pools ---- */

static rdna_status describe_pool(call *c, const rdna_tensor *x, rdna_pooling *out, int64_t *shape) {
  const struct attributes *a = c->attributes;
  int channels = a->data_format[1] == 'C' ? 1 : x->rank - 1;
  *out = (rdna_pooling){RDNA_POOLING_INIT, .spatial_dims = x->rank - 2};
  if (x->rank < 3 || x->rank > 5) return call_fail(c, RDNA_INVALID_ARGUMENT, "a pool of a tensor of rank %d", x->rank);
  if (a->ksize.count != x->rank || a->ksize.values[0] != 1 || a->ksize.values[channels] != 1)
    return call_fail(c, RDNA_UNSUPPORTED, "pools are over spatial dimensions, not over samples or channels");
  shape[0] = x->shape[0];
  shape[1] = x->shape[1];
  for (int i = 0; i < out->spatial_dims; i++) {
    out->window[i] = spatial(c, &a->ksize, i, 1);
    out->stride[i] = spatial(c, &a->strides, i, 1);
    out->dilation[i] = 1;
    TRY(pad(c, i, x->shape[i + 2], out->window[i], out->stride[i], &out->pad_before[i], &out->pad_after[i],
            &shape[i + 2]));
  }
  return RDNA_OK;
}

rdna_status compute_pool(call *c) {
  rdna_tensor x, out;
  rdna_pooling pool;
  int64_t shape[RDNA_MAX_RANK];
  TRY(image_input(c, 0, &x));
  TRY(describe_pool(c, &x, &pool, shape));
  TRY(image_output(c, 0, x.rank, shape, &out));
  return c->number == LARGEST ? rdna_op_max_pool(c->stream, &pool, &x, &out, NULL)
                              : rdna_op_average_pool(c->stream, &pool, &x, &out);
}

/* (x, y, dy): where the largest values are is found again. */
rdna_status compute_max_pool_gradient(call *c) {
  rdna_tensor x, dy, dx, again, places;
  rdna_pooling pool;
  int64_t shape[RDNA_MAX_RANK];
  TRY(image_input(c, 0, &x));
  TRY(image_input(c, 2, &dy));
  TRY(describe_pool(c, &x, &pool, shape));
  TRY(image_output(c, 0, x.rank, x.shape, &dx));
  TRY(call_scratch(c, x.dtype, x.rank, shape, &again));
  TRY(call_scratch(c, RDNA_I64, x.rank, shape, &places));
  TRY(rdna_op_max_pool(c->stream, &pool, &x, &again, &places));
  return rdna_op_max_pool_backward(c->stream, &pool, &dy, &places, &dx);
}

/* (sizes of x, dy) */
rdna_status compute_average_pool_gradient(call *c) {
  rdna_tensor dy, dx;
  rdna_pooling pool;
  int64_t sizes[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int count;
  TRY(call_integers(c, 0, RDNA_MAX_RANK, sizes, &count));
  TRY(image_input(c, 1, &dy));
  TRY(call_output(c, 0, count, sizes, &dx));
  dx = channels_second(c, dx);
  TRY(describe_pool(c, &dx, &pool, shape));
  return rdna_op_average_pool_backward(c->stream, &pool, &dy, &dx);
}

/* ---- the largest of each window: what operators do with where they are ---- */

/* An image, as channels_second gives it, with its places in one dimension: (n, channels, places). */
static rdna_tensor with_places(const rdna_tensor *x) {
  rdna_tensor view = *x;
  for (int i = 3; i < x->rank; i++) view.shape[2] *= x->shape[i];
  view.stride[2] = x->stride[x->rank - 1];
  view.rank = 3;
  return view;
}

/* (x, y, d): the gradient of the gradient, d where the largest values are. */
rdna_status compute_max_pool_second_gradient(call *c) {
  rdna_tensor x, d, out, again, places;
  rdna_pooling pool;
  int64_t shape[RDNA_MAX_RANK];
  TRY(image_input(c, 0, &x));
  TRY(image_input(c, 2, &d));
  TRY(describe_pool(c, &x, &pool, shape));
  TRY(image_output(c, 0, x.rank, shape, &out));
  TRY(call_scratch(c, x.dtype, x.rank, shape, &again));
  TRY(call_scratch(c, RDNA_I64, x.rank, shape, &places));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(rdna_op_max_pool(c->stream, &pool, &x, &again, &places));
  rdna_tensor from = with_places(&d), list = with_places(&places), to = with_places(&out);
  return rdna_op_gather(c->stream, &from, 2, &list, &to, NULL);
}

/* The same where the window and its steps are the last two inputs. */
static rdna_status with_window_inputs(call *c, int first, rdna_status (*compute)(call *)) {
  struct attributes own = *c->attributes;
  TRY(call_integers(c, first, LIST_SIZE, own.ksize.values, &own.ksize.count));
  TRY(call_integers(c, first + 1, LIST_SIZE, own.strides.values, &own.strides.count));
  const struct attributes *attributes = c->attributes;
  c->attributes = &own;
  rdna_status result = compute(c);
  c->attributes = attributes;
  return result;
}

rdna_status compute_pool_of_inputs(call *c) { return with_window_inputs(c, 1, compute_pool); }

rdna_status compute_max_pool_gradient_of_inputs(call *c) { return with_window_inputs(c, 3, compute_max_pool_gradient); }

rdna_status compute_max_pool_second_gradient_of_inputs(call *c) {
  return with_window_inputs(c, 3, compute_max_pool_second_gradient);
}

/* |list| += step times the number of each of the |count| places along its dimension |dim| */
static rdna_status add_numbers(call *c, const rdna_tensor *list, int dim, int64_t count, int64_t step) {
  rdna_tensor numbers;
  int64_t shape[] = {1, 1, 1};
  TRY(call_scratch(c, RDNA_I64, 1, &count, &numbers));
  TRY(rdna_op_arange(c->stream, zero, rdna_scalar_integer(step), &numbers));
  shape[dim] = count;
  numbers = reshaped(&numbers, 3, shape);
  return zip(c, RDNA_ZIP_ADD, list, &numbers, list);
}

/* To (y, where each value was): place * channels + channel within a sample, or within all of them. */
rdna_status compute_max_pool_with_places(call *c) {
  rdna_tensor x, y, where, places;
  rdna_pooling pool;
  int64_t shape[RDNA_MAX_RANK];
  TRY(image_input(c, 0, &x));
  TRY(describe_pool(c, &x, &pool, shape));
  TRY(image_output(c, 0, x.rank, shape, &y));
  TRY(image_output(c, 1, x.rank, shape, &where));
  if (rdna_tensor_count(&y) == 0) return RDNA_OK;
  TRY(call_scratch(c, RDNA_I64, x.rank, shape, &places));
  TRY(rdna_op_max_pool(c->stream, &pool, &x, &y, &places));
  rdna_tensor to = with_places(&where), from = with_places(&places);
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &from, rdna_scalar_integer(x.shape[1]), zero, &to));
  TRY(add_numbers(c, &to, 1, x.shape[1], 1));
  if (!c->attributes->include_batch_in_index) return RDNA_OK;
  return add_numbers(c, &to, 0, x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]);
}

/* (x, d, places as above): number 0: d goes back to where the values came from; 1: d is taken from there. */
rdna_status compute_max_pool_by_places(call *c) {
  rdna_tensor x, d, where, out;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &d));
  TRY(call_input(c, 2, &where));
  bool back = c->number == 0;
  int64_t rows = c->attributes->include_batch_in_index ? 1 : x.rank ? x.shape[0] : 1, count = rdna_tensor_count(&where);
  const rdna_tensor *pooled = back ? &d : &where;
  if (rows == 0 ? count != 0 : count % rows != 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%lld places of %lld samples", (long long)count, (long long)rows);
  if (rdna_tensor_count(back ? &d : &x) != (back ? count : rdna_tensor_count(&d)))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "the gradient and argmax must have the shapes of the pool");
  TRY(call_output(c, 0, back ? x.rank : pooled->rank, back ? x.shape : pooled->shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  int64_t wide[] = {rows, rdna_tensor_count(&x) / rows}, pools[] = {rows, count / rows};
  rdna_tensor list = reshaped(&where, 2, pools);
  if (back) {
    rdna_tensor to = reshaped(&out, 2, wide), from = reshaped(&d, 2, pools);
    TRY(fill(c, 0, &out));
    return rdna_op_scatter(c->stream, &to, 1, &list, &from, RDNA_SCATTER_ADD, true, NULL);
  }
  rdna_tensor from = reshaped(&d, 2, wide), to = reshaped(&out, 2, pools);
  return rdna_op_gather(c->stream, &from, 1, &list, &to, NULL);
}
