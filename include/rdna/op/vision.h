/* What detectors do with boxes: choosing among boxes that overlap, and pooling what a box holds of an image, with
 * gradients.
 *
 * A box is its corners x0, y0, x1, y1, with x0 <= x1 and y0 <= y1 where it is one. Tensors are f32, f16, bf16 or f64,
 * all of a call of one type, with any strides. Places and sums are in f32, in f64 for f64, in a fixed order, so that
 * the same call gives the same bits.
 *
 * Where there is nothing to write each call is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes, types or a description that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type; sizes or pieces of work from 2^31 on. */
#ifndef RDNA_OP_VISION_H
#define RDNA_OP_VISION_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Non-maximum suppression: goes through |boxes|, (n, 4), from the highest of |scores|, (n), to the lowest, and keeps
 * each whose intersection with every box kept before is at most |threshold| of their union. |kept|, i64 of (n) and
 * contiguous, receives the numbers of those in that order, and |count|, one i64 on the device, how many they are; what
 * lies behind them in |kept| is not written. Equal scores keep their order, and a NaN is the highest. A box with a NaN,
 * or two boxes without area, overlap nothing. */
RDNA_CHECKED rdna_status rdna_op_nms(rdna_stream *stream, const rdna_tensor *boxes, const rdna_tensor *scores,
                                     double threshold, const rdna_tensor *kept, const rdna_tensor *count);

/* How a box is pooled. It is scaled, and cut into as many bins, of equal size, as |out| has rows and columns. Modes
 * differ in what a bin is:
 *
 *     ALIGN    the mean of samples, grid by grid in each bin, each linear between the four pixels around it. A pixel's
 *              value is at its number. A sample more than 1 outside of the image, or at a NaN, counts as 0
 *     MAX      the largest of the pixels that the bin reaches into, from a box that is rounded to whole pixels, its far
 *              corner included; 0 where there are none. A NaN is not larger than anything: where all pixels are NaN or
 *              minus infinity the maximum is the lowest finite f32, in f16 minus infinity, and its place -1
 *
 * The position-sensitive ones take another channel for each bin: |out| has channels / (rows * columns) of them, and bin
 * (i, j) of channel c is from channel (c * rows + i) * columns + j:
 *
 *     PS_ALIGN the same samples as ALIGN, from corners half a pixel less; NaN where |grid| 0 makes none
 *     PS_MEAN  the mean of the pixels that the bin reaches into, from a box rounded to whole pixels, its far corner not
 *              included, of an image without its last row and column; 0 where there are none */
typedef enum rdna_roi_mode {
  RDNA_ROI_MODE_ALIGN,
  RDNA_ROI_MODE_MAX,
  RDNA_ROI_MODE_PS_ALIGN,
  RDNA_ROI_MODE_PS_MEAN,
  RDNA_ROI_MODE_COUNT
} rdna_roi_mode;

typedef struct rdna_roi {
  size_t size; /* of the struct: RDNA_ROI_INIT sets it */
  rdna_roi_mode mode;
  bool half_pixel; /* of ALIGN: corners are half a pixel less. Without, a box is at least one pixel long and wide */
  double scale;    /* of the boxes: pixels of |x| for each unit */
  int64_t grid;    /* of ALIGN and PS_ALIGN: samples of a bin in each direction; 0: one for each pixel begun */
} rdna_roi;
#define RDNA_ROI_INIT .size = sizeof(rdna_roi)

/* |x| is (n, channels, height, width), |boxes| (k, 5), each with the number of its image before its corners, |out|
 * (k, channels, rows, columns). |places|, or NULL, is of MAX alone: i32 of out's shape and contiguous, it receives
 * which pixel of its plane, row * width + column, each maximum is, -1 where there is none.
 *
 * An image that there is not makes zeros, places of -1, and 1 of |outside|, a word of device memory or NULL, which is
 * never made 0. */
RDNA_CHECKED rdna_status rdna_op_roi_pool(rdna_stream *stream, const rdna_roi *options, const rdna_tensor *x,
                                          const rdna_tensor *boxes, const rdna_tensor *out, const rdna_tensor *places,
                                          uint32_t *outside);
/* Its gradient: |dx|, of x's shape, from |dout|, of out's. |places|, of MAX alone, is what the forward wrote. */
RDNA_CHECKED rdna_status rdna_op_roi_pool_backward(rdna_stream *stream, const rdna_roi *options,
                                                   const rdna_tensor *dout, const rdna_tensor *boxes,
                                                   const rdna_tensor *places, const rdna_tensor *dx, uint32_t *outside);

#ifdef __cplusplus
}
#endif
#endif
