/* The gradient of an image from a product, where the image has few channels: all that each position of y gives its
 * window is one product, whose columns are the window's values of all channels, and every value of the image adds up
 * what it was given. Of a window of 4 along one dimension with stride 2:
 *
 *     position of y        0        1            each gives window values 0 1 2 3
 *     image            0 1 2 3  ·  ·             value 2 adds value 2 of position 0 and value 0 of position 1
 *                          2 3 4 5
 *
 * Tiles of the phases of conv_direct.c would have a column for each channel: of 3 channels 61 of 64 are empty, here of
 * 48 (a window of 4 x 4) 16 are. Read and written are besides 4 bytes for each column of a position. */
#ifndef RDNA_MATH_CONV_SPREAD_KERNELS_H
#define RDNA_MATH_CONV_SPREAD_KERNELS_H

#include "math/conv/conv_kernels.h"

/* Of conv_args as a gradient of the image makes them, with steps: |image| is the product, in f32; |image_stride| its
 * n, z, y, x of y and from a value of a channel's window to the next; the first channel's come first. A thread makes a
 * value: the grid is (ceil(rows / SPREAD_THREADS), channels, 1). */
#define SPREAD_THREADS 256
#define RDNA_SPREAD_KERNELS(X)                                            \
  X(conv_spread_f32, struct conv_args, SPREAD_THREADS, rdna__spread_case) \
  X(conv_spread_f16, struct conv_args, SPREAD_THREADS, rdna__spread_case) \
  X(conv_spread_bf16, struct conv_args, SPREAD_THREADS, rdna__spread_case)

/* Which position of y gives dimension |d| of a place of the image the window's value |tap|, or -1. */
RDNA_SCALAR int32_t spread_from(const struct conv_args *a, int32_t d, int32_t place, int32_t tap) {
  int32_t reach = place - a->begin[d] + tap * a->dilation[d];
  int32_t from = reach < 0 ? -1 : (int32_t)((uint32_t)reach / (uint32_t)a->step[d]);
  return from * a->step[d] == reach && from < a->image_size[d] ? from : -1;
}

/* The sum for a position (n, z, y, x) of the image. */
RDNA_SCALAR float spread_sum(const struct conv_args *a, const int32_t at[4], int32_t channel) {
  const uint32_t *window = a->tap.size + (a->flags & CONV_CHANNEL_FIRST ? 1 : 0);
  int32_t size[3] = {(int32_t)window[0], (int32_t)window[1], (int32_t)window[2]};
  const float *product = (const float *)a->image + (int64_t)at[0] * a->image_stride[0] +
                         (int64_t)channel * size[0] * size[1] * size[2] * a->image_stride[4];
  float sum = 0;
  for (int32_t z = 0; z < size[0]; z++) {
    int32_t from_z = spread_from(a, 0, at[1], z);
    if (from_z < 0) continue;
    for (int32_t y = 0; y < size[1]; y++) {
      int32_t from_y = spread_from(a, 1, at[2], y);
      if (from_y < 0) continue;
      for (int32_t x = 0; x < size[2]; x++) {
        int32_t from_x = spread_from(a, 2, at[3], x);
        if (from_x < 0) continue;
        sum += product[from_z * a->image_stride[1] + from_y * a->image_stride[2] + from_x * a->image_stride[3] +
                       ((z * size[1] + y) * size[2] + x) * a->image_stride[4]];
      }
    }
  }
  return sum;
}

#endif
