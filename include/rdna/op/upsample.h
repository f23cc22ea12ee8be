/* Resampling of one, two or three spatial dimensions to any size, with gradients.
 *
 * |x| is (n, channels, spatial…) and |out| has other spatial sizes, each at least 1; both f32, f16, bf16 or f64, with
 * any strides: channels-last is a matter of strides, and is fastest where channels are a multiple of 16 bytes. What is
 * written has no two values in one place and overlaps nothing else. Places and sums are in f32, in f64 for f64, in a
 * fixed order; places of nearest are in f32 always.
 *
 * Output o of a dimension lies at o * scale among the inputs with |align_corners|, where scale is (in - 1) / (out - 1),
 * and at (o + 1/2) * scale - 1/2 otherwise, where scale is 1 / factor if a factor is given, else in / out.
 *
 * Where there is nothing to write each call is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes, types or a description that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type; sizes, planes or pieces of work from 2^31 on. */
#ifndef RDNA_OP_UPSAMPLE_H
#define RDNA_OP_UPSAMPLE_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_upsample_mode {
  RDNA_UPSAMPLE_MODE_NEAREST,       /* input floor(o * scale), whatever the place */
  RDNA_UPSAMPLE_MODE_NEAREST_EXACT, /* input floor((o + 1/2) * scale), which is nearest to the place */
  RDNA_UPSAMPLE_MODE_LINEAR,        /* between the two inputs at the place: linear, bilinear, trilinear */
  RDNA_UPSAMPLE_MODE_CUBIC, /* by cubic convolution with a = -3/4 of four, in each of two dimensions: rank 4 alone */
  RDNA_UPSAMPLE_MODE_COUNT
} rdna_upsample_mode;

typedef struct rdna_upsample {
  size_t size; /* of the struct: RDNA_UPSAMPLE_INIT sets it */
  rdna_upsample_mode mode;
  bool align_corners; /* not of the nearest */
  double factor[3];   /* out over in, entry 0 of the first spatial dimension; 0: what the sizes say */
} rdna_upsample;
#define RDNA_UPSAMPLE_INIT .size = sizeof(rdna_upsample)

/* out = x, resampled to out's spatial sizes. */
RDNA_CHECKED rdna_status rdna_op_upsample(rdna_stream *stream, const rdna_upsample *options, const rdna_tensor *x,
                                          const rdna_tensor *out);
/* Its gradient: |dx|, of x's shape, is the sum of |dout|, of out's shape, with the weights that the forward used. */
RDNA_CHECKED rdna_status rdna_op_upsample_backward(rdna_stream *stream, const rdna_upsample *options,
                                                   const rdna_tensor *dout, const rdna_tensor *dx);

#ifdef __cplusplus
}
#endif
#endif
