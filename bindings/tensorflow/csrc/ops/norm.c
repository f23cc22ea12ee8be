/* Batch norm with TensorFlow's outputs. What the gradient needs are the mean and the inverse deviation in training, the
 * given mean and variance else. */
#include "rdna/op/norm.h"
#include "compose.h"
#include "ops.h"
#include "rdna/op/channel_norm.h"
#include "rdna/op/pool.h"

/* (x, scale, offset, mean, variance) to (y, mean, variance, what the gradient needs in three parts). */
rdna_status compute_batch_norm(call *c) {
  const struct attributes *a = c->attributes;
  rdna_tensor x, in[4], y, out[4], rest; /* scale, offset, mean, variance; mean, variance, reserved */
  TRY(call_input(c, 0, &x));
  for (int i = 0; i < 4; i++) TRY(call_input(c, i + 1, &in[i]));
  if (x.rank < 4 || x.rank > 5 || in[0].rank != 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "FusedBatchNorm of tensors of rank %d and %d", x.rank, in[0].rank);
  TRY(call_output(c, 0, x.rank, x.shape, &y));
  for (int i = 0; i < 4; i++) TRY(call_output(c, i + 1, 1, in[0].shape, &out[i]));
  if (tf.NumOutputs(c->ctx) > 5) { /* since version 3 */
    TRY(call_output(c, 5, 0, NULL, &rest));
    TRY(rdna_op_fill(c->stream, rdna_scalar_integer(0), &rest));
  }
  x = channels_second(c, x);
  y = channels_second(c, y);
  double epsilon = (double)a->epsilon, factor = (double)a->exponential_avg_factor;
  for (int i = 0; i < 2; i++) {
    bool has_old = rdna_tensor_count(&in[2 + i]) > 0 && !(a->is_training && factor == 1);
    TRY(has_old ? rdna_op_copy(c->stream, &in[2 + i], &out[i])
                : rdna_op_fill(c->stream, rdna_scalar_integer(0), &out[i]));
    if (!a->is_training) TRY(rdna_op_copy(c->stream, &in[2 + i], &out[2 + i]));
  }
  if (a->is_training) {
    TRY(rdna_op_batch_norm(c->stream, &x, &in[0], &in[1], &out[0], &out[1], factor, epsilon, &y, &out[2], &out[3]));
    if (rdna_tensor_count(&x) != x.shape[1]) return RDNA_OK;
    /* One value has no unbiased variance; to TensorFlow it is 0. */
    if (rdna_tensor_count(&in[3]) == 0 || factor == 1) return rdna_op_fill(c->stream, rdna_scalar_integer(0), &out[1]);
    return rdna_op_map(c->stream, RDNA_MAP_AFFINE, &in[3], rdna_scalar_real(1 - factor), rdna_scalar_real(0), &out[1]);
  }
  return rdna_op_batch_norm_inference(c->stream, &x, &in[0], &in[1], &in[2], &in[3], epsilon, NULL, false, &y);
}

/* (dy, x, scale, reserved, reserved, reserved) to (dx, dscale, doffset, nothing, nothing). */
rdna_status compute_batch_norm_gradient(call *c) {
  rdna_tensor dy, x, scale, mean, spread, dx, dscale, doffset, none;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  TRY(call_input(c, 2, &scale));
  TRY(call_input(c, 3, &mean));
  TRY(call_input(c, 4, &spread));
  TRY(call_output(c, 0, x.rank, x.shape, &dx));
  TRY(call_output(c, 1, 1, scale.shape, &dscale));
  TRY(call_output(c, 2, 1, scale.shape, &doffset));
  TRY(call_output(c, 3, 1, (int64_t[]){0}, &none));
  TRY(call_output(c, 4, 1, (int64_t[]){0}, &none));
  dy = channels_second(c, dy);
  x = channels_second(c, x);
  dx = channels_second(c, dx);
  if (c->attributes->is_training)
    return rdna_op_batch_norm_backward(c->stream, &dy, &x, &scale, &mean, &spread, &dx, &dscale, &doffset);
  return rdna_op_batch_norm_inference_backward(c->stream, &dy, &x, &scale, &mean, &spread,
                                               (double)c->attributes->epsilon, &dx, &dscale, &doffset);
}

/* ---- layer norm: what the graph pass makes of means, differences and products ---- */

/* Whether a factor is one row of |cols| values. */
static bool is_row(const rdna_tensor *x, int64_t cols) {
  return x->rank >= 1 && x->shape[x->rank - 1] == cols && rdna_tensor_count(x) == cols;
}

/* (x, scale or none, offset or none) */
rdna_status compute_layer_norm(call *c) {
  const struct attributes *a = c->attributes;
  rdna_tensor x, y, normal, factors[2];
  rdna_tensor *scale = a->scale_count ? &factors[0] : NULL, *offset = a->offset_count ? &factors[1] : NULL;
  int count = 1, rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  if (x.rank < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "a layer norm of a number; at least one dimension");
  if (scale) TRY(call_input(c, count++, scale));
  if (offset) TRY(call_input(c, count++, offset));
  int64_t cols = x.shape[x.rank - 1];
  if ((!scale || (is_row(scale, cols) && scale->rank <= x.rank)) &&
      (!offset || (is_row(offset, cols) && offset->rank <= x.rank))) {
    TRY(call_output_over(c, 1, 0, x.rank, x.shape, &y));
    if (scale) *scale = reshaped(scale, 1, &cols);
    if (offset) *offset = reshaped(offset, 1, &cols);
    return rdna_op_layer_norm(c->stream, &x, scale, offset, (double)a->epsilon, &y, NULL, NULL);
  }
  TRY(like(c, &x, &normal)); /* factors of another shape: they are broadcast */
  TRY(rdna_op_layer_norm(c->stream, &x, NULL, NULL, (double)a->epsilon, &normal, NULL, NULL));
  for (int i = 0; i < 2; i++) {
    const rdna_tensor *factor = i ? offset : scale;
    if (!factor) continue;
    TRY(call_broadcast(c, &normal, factor, &rank, shape));
    TRY(call_scratch(c, x.dtype, rank, shape, &y));
    rdna_tensor from = repeated(&normal, rank, shape), with = repeated(factor, rank, shape);
    TRY(zip(c, i ? RDNA_ZIP_ADD : RDNA_ZIP_MUL, &from, &with, &y));
    normal = y;
  }
  TRY(call_output(c, 0, normal.rank, normal.shape, &y));
  return rdna_op_copy(c->stream, &normal, &y);
}

/* ---- local response normalization (Krizhevsky et al., 2012), along the last dimension ---- */

/* Each value's sum with its neighbours. */
static rdna_status window_sum(call *c, const rdna_tensor *x, const rdna_tensor *out) {
  int64_t reach = c->attributes->depth_radius, channels = x->shape[x->rank - 1],
          flat[] = {rdna_tensor_count(x) / channels, 1, channels};
  if (reach < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "a depth_radius of %lld", (long long)reach);
  if (reach > channels) reach = channels; /* further away there is nothing */
  rdna_pooling pool = {RDNA_POOLING_INIT, .spatial_dims = 1, .divisor = 1, .count_padding = true};
  pool.window[0] = 2 * reach + 1;
  pool.stride[0] = pool.dilation[0] = 1;
  pool.pad_before[0] = pool.pad_after[0] = reach;
  rdna_tensor from = reshaped(x, 3, flat), to = reshaped(out, 3, flat);
  return rdna_op_average_pool(c->stream, &pool, &from, &to);
}

/* bias + alpha times the sum of squares around */
static rdna_status local_size(call *c, const rdna_tensor *x, rdna_tensor *out) {
  rdna_tensor squares;
  TRY(like(c, x, &squares));
  TRY(like(c, x, out));
  TRY(map(c, RDNA_MAP_SQUARE, x, &squares));
  TRY(window_sum(c, &squares, out));
  return affine(c, out, (double)c->attributes->alpha, (double)c->attributes->bias, out);
}

/* x / size^beta */
rdna_status compute_lrn(call *c) {
  rdna_tensor x, out, y, size;
  TRY(call_wide_input(c, 0, &x));
  if (x.rank != 4) return call_fail(c, RDNA_INVALID_ARGUMENT, "in must be 4-dimensional");
  TRY(call_wide_output(c, 0, x.rank, x.shape, &out, &y));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(local_size(c, &x, &size));
  TRY(zip_number(c, RDNA_ZIP_POW, &size, -(double)c->attributes->beta, &size));
  TRY(zip(c, RDNA_ZIP_MUL, &x, &size, &y));
  return call_round(c, &y, &out);
}

/* (dy, x, y): dy / size^beta - 2 alpha beta x times the sum around of dy y / size */
rdna_status compute_lrn_gradient(call *c) {
  rdna_tensor dy, x, y, out, dx, size, part, around;
  TRY(call_wide_input(c, 0, &dy));
  TRY(call_wide_input(c, 1, &x));
  TRY(call_wide_input(c, 2, &y));
  if (x.rank != 4 || !same_shape(&x, dy.rank, dy.shape) || !same_shape(&x, y.rank, y.shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "input_grads, input_image and output_image must be 4-D of one shape");
  TRY(call_wide_output(c, 0, x.rank, x.shape, &out, &dx));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  const struct attributes *a = c->attributes;
  TRY(local_size(c, &x, &size));
  TRY(like(c, &x, &part));
  TRY(like(c, &x, &around));
  TRY(zip(c, RDNA_ZIP_MUL, &dy, &y, &part));
  TRY(zip(c, RDNA_ZIP_DIV, &part, &size, &part));
  TRY(window_sum(c, &part, &around));
  TRY(zip(c, RDNA_ZIP_MUL, &around, &x, &around));
  TRY(affine(c, &around, 2 * (double)a->alpha * (double)a->beta, 0, &around));
  TRY(zip_number(c, RDNA_ZIP_POW, &size, -(double)a->beta, &size));
  TRY(zip(c, RDNA_ZIP_MUL, &dy, &size, &part));
  TRY(zip(c, RDNA_ZIP_SUB, &part, &around, &dx));
  return call_round(c, &dx, &out);
}
