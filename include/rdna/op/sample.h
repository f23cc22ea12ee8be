/* Values of images and volumes at any places, with gradients of both (grid_sample, deformable convolutions).
 *
 * |x| is (n, channels, sizes…), of two or three sizes; |grid| is (n, positions…, sizes), of one to three dimensions of
 * positions, each of which has a coordinate for every size of |x|, the last size first; |out| is
 * (n, channels, positions…). All are f32, f16, bf16 or f64, of one type, but that a grid may be f32 beside f16 and
 * bf16; with any strides, channels-last among them. What is written has no two values in one place and overlaps nothing
 * else. Places and sums are in f32, in f64 for f64, in a fixed order: no sum is made by atomic additions, so the same
 * call gives the same bits.
 *
 * Where there is nothing to write each call is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes, types or a description that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type; sizes, planes or pieces of work from 2^31 on. */
#ifndef RDNA_OP_SAMPLE_H
#define RDNA_OP_SAMPLE_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_sample_mode {
  RDNA_SAMPLE_MODE_LINEAR,  /* between the values around a place: bilinear, trilinear */
  RDNA_SAMPLE_MODE_NEAREST, /* the nearest value; of two the even one */
  RDNA_SAMPLE_MODE_CUBIC,   /* by cubic convolution with a = -3/4 of four, in each of two dimensions */
  RDNA_SAMPLE_MODE_COUNT
} rdna_sample_mode;

/* What lies outside of |x|. Nearest and linear move the place, cubic each of the values that it takes. */
typedef enum rdna_sample_padding {
  RDNA_SAMPLE_PADDING_ZEROS,
  RDNA_SAMPLE_PADDING_BORDER,     /* the outermost value; that of number 0 at a NaN */
  RDNA_SAMPLE_PADDING_REFLECTION, /* mirrored, at the outermost values with |align_corners|, at their edges without */
  RDNA_SAMPLE_PADDING_COUNT
} rdna_sample_padding;

typedef enum rdna_sample_units {
  RDNA_SAMPLE_UNITS_EDGES,   /* -1 and 1 are the outer edges of the outermost values */
  RDNA_SAMPLE_UNITS_CENTERS, /* -1 and 1 are the outermost values: align_corners */
  RDNA_SAMPLE_UNITS_NUMBERS, /* 0 is the first value, 1 the second; mirrors are at edges */
  RDNA_SAMPLE_UNITS_COUNT
} rdna_sample_units;

/* out(…, p) = x at grid(…, p). A place that is NaN or infinite makes NaN of cubic, and of linear with zeros
 * outside; nearest has 0 there. */
RDNA_CHECKED rdna_status rdna_op_sample(rdna_stream *stream, rdna_sample_mode mode, rdna_sample_padding padding,
                                        rdna_sample_units units, const rdna_tensor *x, const rdna_tensor *grid,
                                        const rdna_tensor *out);
/* Its gradients, of which one may be NULL: |dx|, of x's shape, and |dgrid|, of the grid's and its type, from |dout|, of
 * out's. |dx| is gathered: what each position takes is sorted by where it lies, which needs scratch memory of 16 bytes
 * for each value that a position takes (24 for f64): 4 of them in two dimensions for linear, 8 in three, 16 for cubic.
 * |x| may be NULL where |dgrid| is. What nearest takes does not change with the place, so that its |dgrid| is 0. */
RDNA_CHECKED rdna_status rdna_op_sample_backward(rdna_stream *stream, rdna_sample_mode mode,
                                                 rdna_sample_padding padding, rdna_sample_units units,
                                                 const rdna_tensor *dout, const rdna_tensor *x, const rdna_tensor *grid,
                                                 const rdna_tensor *dx, const rdna_tensor *dgrid);

#ifdef __cplusplus
}
#endif
#endif
