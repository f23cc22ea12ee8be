/* Convolution over one, two or three spatial dimensions, forward and backward, in f32, f16 and bf16, summed in f32. */
#ifndef RDNA_OP_CONV_H
#define RDNA_OP_CONV_H

#include "rdna/op/activation.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entry 0 of each is for the first spatial dimension of the tensors. */
typedef struct rdna_convolution {
  size_t size;                         /* of the struct: RDNA_CONVOLUTION_INIT sets it */
  int spatial_dims;                    /* 1, 2 or 3 */
  int64_t stride[3];                   /* at least 1 */
  int64_t pad_before[3], pad_after[3]; /* zeros around the input, at least 0 */
  int64_t dilation[3];                 /* at least 1 */
  int64_t groups;                      /* of channels: divides both numbers of them */
} rdna_convolution;
#define RDNA_CONVOLUTION_INIT .size = sizeof(rdna_convolution)

/* Tensors are of one type: |x| (n, channels, spatial…), |weight| (out channels, channels / groups, window…), |y| (n,
 * out channels, spatial…), each with any strides of at least 0 that fit in 31 bits with all of the tensor:
 * channels-last is a matter of strides. No two elements of what is written share a place. Every spatial size of |y| is
 * (pad_before + size + pad_after - dilation * (window - 1) - 1) / stride + 1, rounded down. |bias| is contiguous and of
 * the same type, or NULL. What is written overlaps nothing else. Where there is nothing to write each call is RDNA_OK;
 * a sum of nothing is 0 or the bias. RDNA_INVALID_ARGUMENT: shapes, types or a description that disagree, missing data,
 * overlap. RDNA_UNSUPPORTED: another type, a negative stride, a size past 31 bits.
 *
 * Windows of 3 x 3 in f32 are computed by Winograd's algorithm on a GPU where channels are many: a NaN or an infinity
 * then reaches all values of the 2 x 2 tile of results that reads it and all nine of a window's gradient, and an
 * infinity may become NaN.
 */

/* y = x * weight + bias (out channels). */
RDNA_CHECKED rdna_status rdna_op_conv(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *x,
                                      const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *y);
/* y = activation(x * weight + bias), rounded to the type once. RDNA_INVALID_ARGUMENT: no such activation. */
RDNA_CHECKED rdna_status rdna_op_conv_activate(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *x,
                                               const rdna_tensor *weight, const rdna_tensor *bias,
                                               rdna_activation activation, const rdna_tensor *y);
/* The gradient of x from that of y; or, with a |bias| (channels of x), a transposed convolution from y to x. */
RDNA_CHECKED rdna_status rdna_op_conv_backward_data(rdna_stream *stream, const rdna_convolution *conv,
                                                    const rdna_tensor *y, const rdna_tensor *weight,
                                                    const rdna_tensor *bias, const rdna_tensor *x);
/* The gradient of the weight from x and the gradient of y. */
RDNA_CHECKED rdna_status rdna_op_conv_backward_weight(rdna_stream *stream, const rdna_convolution *conv,
                                                      const rdna_tensor *y, const rdna_tensor *x,
                                                      const rdna_tensor *weight);

#ifdef __cplusplus
}
#endif
#endif
