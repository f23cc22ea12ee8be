/* Pooling over windows of one, two or three spatial dimensions, with gradients.
 *
 * |x| is (n, channels, spatial…) and |out| (n, channels, windows…), both f32, f16, bf16 or f64, with any strides:
 * channels-last is a matter of strides, and is fastest where channels are a multiple of 16 bytes. What is written has
 * no two values in one place and overlaps nothing else. Sums are in f32, in f64 for f64, in a fixed order.
 *
 * Where there is nothing to write each call is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes, types or a description that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type; sizes, planes or pieces of work from 2^31 on. */
#ifndef RDNA_OP_POOL_H
#define RDNA_OP_POOL_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entry 0 of each is for the first spatial dimension of the tensors. */
typedef struct rdna_pooling {
  size_t size;                         /* of the struct: RDNA_POOLING_INIT sets it */
  int spatial_dims;                    /* 1, 2 or 3 */
  int64_t window[3];                   /* at least 1 */
  int64_t stride[3];                   /* at least 1 */
  int64_t pad_before[3], pad_after[3]; /* positions of padding around the input, at least 0 */
  int64_t dilation[3];                 /* at least 1; 1 for averages */
  bool ceil;          /* keeps a last window that runs past the padding, if it begins before the padding after x */
  bool count_padding; /* averages count padding in the divisor too, but nothing past it */
  int64_t divisor;    /* if not 0: what averages divide by, in place of a count */
} rdna_pooling;
#define RDNA_POOLING_INIT .size = sizeof(rdna_pooling)

/* Windows along dimension |d| of an input of |size|: (pad_before + size + pad_after - dilation * (window - 1) - 1) /
 * stride + 1, rounded as |ceil| says. Negative or 0: none fits, or |pooling| has
 * no size. */
RDNA_API int64_t rdna_pooling_size(const rdna_pooling *pooling, int d, int64_t size);

/* The largest value of each window, and where it is if |indices| is not NULL: i64 of out's shape, the position within
 * x's spatial dimensions, flattened. A NaN is larger than any number; the first of equals is taken, of several NaN the
 * last. A window that holds nothing but padding gives -infinity and -1. */
RDNA_CHECKED rdna_status rdna_op_max_pool(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *x,
                                          const rdna_tensor *out, const rdna_tensor *indices);
/* |indices| are the forward's: each lies in its window. */
RDNA_CHECKED rdna_status rdna_op_max_pool_backward(rdna_stream *stream, const rdna_pooling *pooling,
                                                   const rdna_tensor *dout, const rdna_tensor *indices,
                                                   const rdna_tensor *dx);
/* The sum over each window, divided as the description says; 0 where a window holds nothing but padding. */
RDNA_CHECKED rdna_status rdna_op_average_pool(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *x,
                                              const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_average_pool_backward(rdna_stream *stream, const rdna_pooling *pooling,
                                                       const rdna_tensor *dout, const rdna_tensor *dx);

/* Window o of |out| windows over |in| positions is [floor(o * in / out), ceil((o + 1) * in / out)); the number of
 * windows is that of out's shape. No spatial size of x is 0 unless there is nothing to write. */
RDNA_CHECKED rdna_status rdna_op_adaptive_max_pool(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out,
                                                   const rdna_tensor *indices);
RDNA_CHECKED rdna_status rdna_op_adaptive_max_pool_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                            const rdna_tensor *indices, const rdna_tensor *dx);
RDNA_CHECKED rdna_status rdna_op_adaptive_average_pool(rdna_stream *stream, const rdna_tensor *x,
                                                       const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_adaptive_average_pool_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                                const rdna_tensor *dx);

/* Puts windows back where they were taken from (col2im): |columns| (n, channels * values of a window, windows) has for
 * each channel the first value of every window, then the second, and so on; |out| (n, channels, spatial…) is their sums
 * where windows overlap, 0 where there is none. |pooling| describes how windows lie in out, the last dimension counted
 * fastest. Both are contiguous. */
RDNA_CHECKED rdna_status rdna_op_fold(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *columns,
                                      const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
