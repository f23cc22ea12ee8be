/* Convolution with one channel a group: each channel of the image has a window of its own. Argument struct and list of
 * kernels. They are limited by memory, not by products, so they read each value of the image from memory once and
 * reuse it from group memory or registers.
 *
 *   forward   out(n, c, place)   = activation(bias(c) + sum over taps of other(c, tap) * image(n, c, place * step -
 * begin
 *                                  + tap * dilation))
 *   weight    out(c, tap)        = sum over n and places of other(n, c, place) * image(n, c, the same place)
 *
 * The gradient of x is the forward form with the window turned round (a tap's strides are negative), or, where y had
 * steps, with |spread|: value x of the gradient meets only the taps for which x + begin - tap is a multiple of the
 * step.
 *
 * There are two layouts. In planes (channels first) a row of an image is a run of memory:
 *
 *      a group has tiles of |planes| images of channels; a thread makes 4 x 4 neighbouring values of one:
 *
 *      image in group memory          out
 *      + - - - - - - - - - +          +----+----+----+
 *      |  halo             |          | t0 | t1 | t2 |  4 rows each
 *      |   +----+----+     |          +----+----+----+
 *      |   |    |    |     |   ->     | t3 | t4 | t5 |
 *      |   +----+----+     |          +----+----+----+
 *      + - - - - - - - - - +            4 columns each
 *
 * With channels last 16 bytes of channels are a run; a thread makes them for 4 neighbouring x and one or two y, and
 * neighbouring threads have neighbouring channels. */
#ifndef RDNA_MATH_CONV_DEPTHWISE_KERNELS_H
#define RDNA_MATH_CONV_DEPTHWISE_KERNELS_H

#include <stdint.h>

#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemm_kernels.h"

/* Strides are in values; digits of places and windows are y and x. */
struct depthwise_args {
  const void *image;
  const void *other; /* windows (c, tap y, tap x), at the first tap; for the weight's gradient that of y */
  const void *bias;  /* (channels), or NULL */
  void *out;         /* of the weight's gradient: windows */
  float *sums;       /* weight: (parts, taps, channels) */
  int32_t image_stride[4], out_stride[4]; /* n, c, y, x; of windows: c, y, x */
  int32_t other_stride[4];                /* of windows: c, y, x; of the gradient of y: n, c, y, x */
  int32_t images, channels;
  int32_t image_size[2], place_size[2]; /* places: values of a plane of y; forward: of out */
  int32_t window[2], step[2], begin[2], dilation[2];
  uint32_t spread; /* the gradient of x with steps */
  uint32_t activation;
  uint32_t vectors; /* 4 neighbours in a row of places lie at multiples of 4 values, in |out| or the gradient of y */
  int32_t across, down, planes; /* threads of a tile in planes: columns of 4, rows of DEPTHWISE_ROWS or 1, images */
  int32_t width;                /* channels of a group, with channels last: runs of 16 bytes */
  int32_t parts;                /* weight: of what is summed over */
};

#define DEPTHWISE_THREADS 256
#define DEPTHWISE_RUN 4       /* values across that a thread makes */
#define DEPTHWISE_ROWS 4      /* and down, in planes, forward */
#define DEPTHWISE_FLOATS 8192 /* of group memory */
#define DEPTHWISE_WIDTH 128   /* the most of them */
#define DEPTHWISE_ROWS_LAST 2 /* values down that a thread makes, with channels last */

/* Rows and columns of the part of an image that |rows| x |columns| places meet; columns are padded to 16 bytes. */
RDNA_SCALAR int32_t depthwise_reach(int32_t places, int32_t step, int32_t window) {
  return (places - 1) * step + window;
}
RDNA_SCALAR int32_t depthwise_pitch(int32_t across, int32_t step, int32_t window) {
  return (depthwise_reach(across * DEPTHWISE_RUN, step, window) + 3) / 4 * 4;
}
/* Floats of group memory for a tile of |planes| images; windows lie behind it. */
RDNA_SCALAR int32_t depthwise_floats(const struct depthwise_args *a, int32_t rows_each) {
  int32_t rows = depthwise_reach(a->down * rows_each, a->step[0], a->window[0]);
  return a->planes * (rows * depthwise_pitch(a->across, a->step[1], a->window[1]) + a->window[0] * a->window[1]);
}
RDNA_SCALAR int32_t depthwise_tiles(int32_t places, int32_t each) { return (places + each - 1) / each; }

/* What the kernels of one window can do to a sum; those of any window have every activation. */
#define DEPTHWISE_ACTIVATES(activation) \
  ((activation) == RDNA_ACTIVATION_NONE || (activation) == RDNA_ACTIVATION_RELU || (activation) == RDNA_ACTIVATION_SILU)

/* Kernels, and their grids along x and y:
 *
 *   planes; a window of K x K, dilation 1, the same step of 1 or 2 along y and x
 *   - depthwise_planes_K: tiles across * tiles down * ceil(images * channels / planes)
 *   - depthwise_weight_K: parts; channels. A part is a share of a channel's tiles.
 *
 *   channels last in runs of 16 bytes; the same windows
 *   - depthwise_last_K: groups that share the runs of places; ceil(channels / width)
 *   - depthwise_weight_last_K: parts; ceil(channels / width). A part is a share of the runs of places.
 *
 *   any window, step and dilation, a thread for each value
 *   - depthwise_any: ceil(values / DEPTHWISE_THREADS)
 *   - depthwise_any_last: the same of 16 bytes of channels
 *
 *   depthwise_weight_sum adds up the parts: ceil(channels * taps / GEMM_SUM_VALUES(parts)) */
#define RDNA_DEPTHWISE_OF_(X, name, T) X(name##_##T, struct depthwise_args, DEPTHWISE_THREADS, rdna__depthwise_case)
#define RDNA_DEPTHWISE_(X, T)                  \
  RDNA_DEPTHWISE_OF_(X, depthwise_planes_3, T) \
  RDNA_DEPTHWISE_OF_(X, depthwise_planes_5, T) \
  RDNA_DEPTHWISE_OF_(X, depthwise_planes_7, T) \
  RDNA_DEPTHWISE_OF_(X, depthwise_last_3, T)   \
  RDNA_DEPTHWISE_OF_(X, depthwise_last_5, T)   \
  RDNA_DEPTHWISE_OF_(X, depthwise_last_7, T)   \
  RDNA_DEPTHWISE_OF_(X, depthwise_any, T)      \
  RDNA_DEPTHWISE_OF_(X, depthwise_any_last, T)
#define RDNA_DEPTHWISE_WEIGHT_(X, T)                \
  RDNA_DEPTHWISE_OF_(X, depthwise_weight_3, T)      \
  RDNA_DEPTHWISE_OF_(X, depthwise_weight_5, T)      \
  RDNA_DEPTHWISE_OF_(X, depthwise_weight_7, T)      \
  RDNA_DEPTHWISE_OF_(X, depthwise_weight_last_3, T) \
  RDNA_DEPTHWISE_OF_(X, depthwise_weight_last_5, T) \
  RDNA_DEPTHWISE_OF_(X, depthwise_weight_last_7, T) \
  X(depthwise_weight_sum_##T, struct depthwise_args, GEMM_SUM_THREADS, rdna__depthwise_case)
#define RDNA_DEPTHWISE_KERNELS(X) RDNA_DEPTHWISE_(X, f32) RDNA_DEPTHWISE_(X, f16) RDNA_DEPTHWISE_(X, bf16)
#define RDNA_DEPTHWISE_WEIGHT_KERNELS(X) \
  RDNA_DEPTHWISE_WEIGHT_(X, f32) RDNA_DEPTHWISE_WEIGHT_(X, f16) RDNA_DEPTHWISE_WEIGHT_(X, bf16)

/* The taps along one dimension that a place meets, and where: tap |tap| at image coordinate |at|, the next ones
 * |tap_step| and |at_step| on. */
struct depthwise_line {
  int32_t tap, tap_step, at, at_step;
};
RDNA_SCALAR struct depthwise_line depthwise_line_of(const struct depthwise_args *a, int32_t d, int32_t place) {
  struct depthwise_line line = {0, 1, place * a->step[d] - a->begin[d], a->dilation[d]};
  if (a->spread) {
    uint32_t from = (uint32_t)(place + a->begin[d]), step = (uint32_t)a->step[d];
    line.tap = (int32_t)(from % step), line.tap_step = (int32_t)step;
    line.at = (int32_t)(from / step), line.at_step = step > 1 ? -1 : -a->dilation[d];
  }
  return line;
}

#endif
