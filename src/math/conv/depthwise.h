/* Convolution with one channel a group: what the operator, the generated cases and tests share. */
#ifndef RDNA_MATH_CONV_DEPTHWISE_H
#define RDNA_MATH_CONV_DEPTHWISE_H

#include "math/conv/conv.h"
#include "math/conv/depthwise_kernels.h"

/* Whether there are kernels for it: one channel a group in and out, at most two dimensions; of the gradient of the
 * image dilation or steps along a dimension, not both; of the weight's windows of 3, 5 or 7 without dilation. */
bool rdna__conv_depthwise_applies(const rdna__conv_call *call);
rdna_status rdna__conv_depthwise(rdna_stream *stream, const char *op_name, const rdna__conv_call *call);

/* Chooses the tile in planes: as many threads as there are, with values of |rows_each| rows, whose image fits into
 * group memory. Each of |count| planes is an image. */
void rdna__depthwise_tile(struct depthwise_args *args, int32_t rows_each, int64_t count);
/* Chooses how many channels a group has, with channels last: as even a share as there is. */
void rdna__depthwise_width(struct depthwise_args *args, int32_t in_16);

#endif
