/* Batch norm with TensorFlow's outputs. What the gradient needs are the mean and the inverse deviation in training, the
 * given mean and variance else. */
#include "ops.h"
#include "rdna/op/channel_norm.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"

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
