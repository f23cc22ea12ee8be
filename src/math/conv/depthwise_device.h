/* Device code that the kernels of depthwise convolution share: an image's tile in group memory, and rows of taps. */
#ifndef RDNA_MATH_CONV_DEPTHWISE_DEVICE_H
#define RDNA_MATH_CONV_DEPTHWISE_DEVICE_H

#include "math/common/device/values.h"
#include "math/conv/depthwise_kernels.h"

/* A value of the image, zero outside. |at| is where its row begins, which need not be in the image if |y| is not. */
template <typename type>
RDNA_DEVICE float depthwise_value(const depthwise_args &args, const typename type::stored *image, int at, int y,
                                  int x) {
  bool inside = (uint32_t)y < (uint32_t)args.image_size[0] && (uint32_t)x < (uint32_t)args.image_size[1];
  return inside ? type::load_global(image + at + x * args.image_stride[3]) : 0;
}

/* Fills group memory with |planes| tiles of the image, each |rows| x |pitch| from (first_y, first_x) on; the first is
 * image |first|, of |images| that follow each other by |plane_at|. A team of 16 threads takes a row:
 *
 *     plane 0, row 0 | row 1 | ... | plane 1, row 0 | ...        team t takes rows t, t + 16, ...   */
template <typename type, typename place_of_plane>
RDNA_DEVICE void depthwise_fill(const depthwise_args &args, float *tile, int planes, int rows, int pitch, int first_y,
                                int first_x, place_of_plane plane_at) {
  enum { TEAM = 16 };
  typedef typename type::stored value;
  const value *image = (const value *)args.image;
  int column = (int)thread_id() % TEAM;
  for (int row = (int)thread_id() / TEAM; row < planes * rows; row += DEPTHWISE_THREADS / TEAM) {
    int plane = row / rows, y = first_y + row - plane * rows, at = plane_at(plane);
    bool inside = at >= 0 && (uint32_t)y < (uint32_t)args.image_size[0];
    for (int x = column; x < pitch; x += TEAM)
      tile[row * pitch + x] =
          inside ? depthwise_value<type>(args, image, at + y * args.image_stride[2], y, first_x + x) : 0;
  }
}

/* The image that a run of places of one row meets in a row of its tile: |count| values, a multiple of 4 of them. */
template <int count>
RDNA_DEVICE void depthwise_row(const float *tile, float v[(count + 3) / 4 * 4]) {
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    float4 four = load_as<float4>(tile + i);
    v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
  }
}

/* The same of channels last: 16 bytes of channels for each of |count| values of the row that begins at |at|. */
template <typename type, int count>
RDNA_DEVICE void depthwise_row_last(const depthwise_args &args, int at, int y, int first_x, uint4 v[count]) {
  const char *image = (const char *)args.image;
  bool inside = (uint32_t)y < (uint32_t)args.image_size[0];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    int x = first_x + i;
    v[i] = uint4{0, 0, 0, 0};
    if (inside && (uint32_t)x < (uint32_t)args.image_size[1])
      v[i] = load_global<uint4>(image + ((int64_t)at + x * args.image_stride[3]) * type::BYTES);
  }
}

#endif
