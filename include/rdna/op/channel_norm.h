/* Batch norm (Ioffe and Szegedy, 2015) and group norm (Wu and He, 2018), with gradients. Instance norm (Ulyanov et al.,
 * 2016) is group norm with as many channel groups as channels.
 *
 * |x| is (n, channels, spatial…) of any rank from 2, f32, f16, bf16 or f64, contiguous or channels-last: dense with the
 * channels innermost. Every tensor of its shape is of its type and lies as it does. |weight| and |bias| are (channels),
 * contiguous, of x's type or of f32, both of the same; NULL means ones and zeros. Sums are in f32, in f64 for f64, and
 * have a fixed order.
 *
 *     out = (x - mean) * inverse * weight + bias,  inverse = 1 / sqrt(variance + epsilon)
 *
 * with the mean and the biased variance of a channel (batch norm), or of a sample's group of neighbouring channels.
 * Saved means and inverses are contiguous, of f32, of f64 for f64. Of nothing the mean is 0 and the inverse NaN; with
 * an infinity both may be NaN.
 *
 * |out| may be x (backward: |dx| may be dout or x); every other written tensor overlaps no other. Partial
 * sums are taken from the device's memory pool for the time of the call. RDNA_INVALID_ARGUMENT: shapes or types that
 * disagree, missing data, partial overlap, an epsilon that is negative or not finite in f32. RDNA_UNSUPPORTED: another
 * type or layout, 2^31 values of a kind to count or more. */
#ifndef RDNA_OP_CHANNEL_NORM_H
#define RDNA_OP_CHANNEL_NORM_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By the statistics of x, which are saved (channels). |running_mean| and |running_var|, each (channels) of x's type or
 * f32, both of the same, or NULL, become (1 - momentum) * running + momentum * new, where the new variance is the
 * unbiased one; they are left as they are when x is empty. */
RDNA_CHECKED rdna_status rdna_op_batch_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                            const rdna_tensor *bias, const rdna_tensor *running_mean,
                                            const rdna_tensor *running_var, double momentum, double epsilon,
                                            const rdna_tensor *out, const rdna_tensor *saved_mean,
                                            const rdna_tensor *saved_inverse);
/* dx, dweight and dbias are each NULL when not wanted; dweight and dbias are (channels), of x's type or f32, both of
 * the same. |saved_mean| and |saved_inverse| are the forward's. */
RDNA_CHECKED rdna_status rdna_op_batch_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                                     const rdna_tensor *weight, const rdna_tensor *saved_mean,
                                                     const rdna_tensor *saved_inverse, const rdna_tensor *dx,
                                                     const rdna_tensor *dweight, const rdna_tensor *dbias);

/* By |mean| and |variance| (channels), of x's type or f32, both of the same. |residual|, of x's shape, or NULL, is
 * added before what is negative becomes 0 if |relu|; |out| may be it too. */
RDNA_CHECKED rdna_status rdna_op_batch_norm_inference(rdna_stream *stream, const rdna_tensor *x,
                                                      const rdna_tensor *weight, const rdna_tensor *bias,
                                                      const rdna_tensor *mean, const rdna_tensor *variance,
                                                      double epsilon, const rdna_tensor *residual, bool relu,
                                                      const rdna_tensor *out);
/* Of inference without residual and relu: mean and variance are constants. */
RDNA_CHECKED rdna_status rdna_op_batch_norm_inference_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                               const rdna_tensor *x, const rdna_tensor *weight,
                                                               const rdna_tensor *mean, const rdna_tensor *variance,
                                                               double epsilon, const rdna_tensor *dx,
                                                               const rdna_tensor *dweight, const rdna_tensor *dbias);

/* |channel_groups| divides the channels. |saved_mean| and |saved_inverse| are (n, channel_groups). */
RDNA_CHECKED rdna_status rdna_op_group_norm(rdna_stream *stream, const rdna_tensor *x, int64_t channel_groups,
                                            const rdna_tensor *weight, const rdna_tensor *bias, double epsilon,
                                            const rdna_tensor *out, const rdna_tensor *saved_mean,
                                            const rdna_tensor *saved_inverse);
/* As the backward of batch norm. */
RDNA_CHECKED rdna_status rdna_op_group_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                                     int64_t channel_groups, const rdna_tensor *weight,
                                                     const rdna_tensor *saved_mean, const rdna_tensor *saved_inverse,
                                                     const rdna_tensor *dx, const rdna_tensor *dweight,
                                                     const rdna_tensor *dbias);

#ifdef __cplusplus
}
#endif
#endif
