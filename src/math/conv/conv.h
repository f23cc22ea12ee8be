/* What the parts of the operator and the generated cases of convolution share. */
#ifndef RDNA_MATH_CONV_H
#define RDNA_MATH_CONV_H

#include "math/conv/conv_kernels.h"
#include "rdna/op/conv.h"

typedef enum rdna__conv_mode { RDNA__CONV_FORWARD, RDNA__CONV_DATA, RDNA__CONV_WEIGHT } rdna__conv_mode;

/* Fills |out_args| but for the bias. The tensors agree with each other, and offsets fit in 31 bits. For RDNA__CONV_DATA
 * strides are 1, but |before| may be negative: value x of the gradient is the sum over taps of y at x + before - tap *
 * dilation. */
void rdna__conv_args_make(rdna__conv_mode mode, const rdna_convolution *conv, const rdna_tensor *x,
                          const rdna_tensor *weight, const rdna_tensor *y, struct conv_args *out_args);

/* A checked convolution with a value to write. */
typedef struct rdna__conv_call {
  rdna__conv_mode mode;
  const rdna_convolution *conv;
  const rdna_tensor *x, *weight, *y, *bias; /* bias may be NULL */
  rdna_activation activation;
} rdna__conv_call;

/* What it writes. */
static inline const rdna_tensor *rdna__conv_out(const rdna__conv_call *call) {
  return call->mode == RDNA__CONV_FORWARD ? call->y : call->mode == RDNA__CONV_DATA ? call->x : call->weight;
}

/* Runs it by our kernels or, where that was found to be faster, by MIOpen. */
rdna_status rdna__conv_run(rdna_stream *stream, const char *op_name, const rdna__conv_call *call);
/* By our kernels, with copies of tensors in other layouts where those are read faster. */
rdna_status rdna__conv_own(rdna_stream *stream, const char *op_name, const rdna__conv_call *call);
/* By our kernels as the tensors lie. */
rdna_status rdna__conv_direct(rdna_stream *stream, const char *op_name, const rdna__conv_call *call);

/* Whether it is a product of matrices: a window of 1 x 1, stride 1, no padding. */
bool rdna__conv_is_product(const rdna__conv_call *call);
rdna_status rdna__conv_product(rdna_stream *stream, const char *op_name, const rdna__conv_call *call);

/* Whether Winograd's way is possible and the faster one on a GPU, which it is from some number of channels on, for the
 * gradient of the weight also of tiles of 2 x 2 positions; and that. */
bool rdna__conv_winograd_applies(const rdna__conv_call *call, int64_t least_channels);
rdna_status rdna__conv_winograd(rdna_stream *stream, const char *op_name, const rdna__conv_call *call);

/* Whether a gradient of the image takes less by a product of all of the window, and sums of that, than as the tensors
 * lie; and that, of so many images at a time that the product has at most |piece| values, or of one. */
bool rdna__conv_spread_applies(const rdna__conv_call *call);
rdna_status rdna__conv_spread(rdna_stream *stream, const char *op_name, const rdna__conv_call *call, int64_t piece);
/* Of |args|, the strides of a product of |columns| for each of |plane| positions of an image: positions or columns are
 * the slower ones. */
void rdna__conv_spread_strides(struct conv_args *args, int64_t plane, int64_t columns, bool positions_first);

#endif
