/* Device code that the kernels of depthwise convolution share: an image's tile in group memory, and rows of taps. */
#ifndef RDNA_MATH_CONV_DEPTHWISE_DEVICE_H
#define RDNA_MATH_CONV_DEPTHWISE_DEVICE_H

#include "math/common/device/values.h"
#include "math/conv/depthwise_kernels.h"

/* Divides by a number that is the same for many dividends: n / size for n * size < 2^32. */
struct depthwise_divisor {
  uint32_t size, magic;
  RDNA_MEMBER explicit depthwise_divisor(int of) : size((uint32_t)of), magic(0xffffffffu / (uint32_t)of + 1) {}
  RDNA_MEMBER int divide(int n, int &rest) const { /* |size| of at least 2 */
    uint32_t quotient = (uint32_t)(((uint64_t)magic * (uint32_t)n) >> 32);
    rest = n - (int)(quotient * size);
    return (int)quotient;
  }
};

/* Fills group memory with |planes| tiles of the image, each |rows| x |pitch| from (first_y, first_x) on; plane_at(i) is
 * where plane i begins, or -1 if there is none. What lies outside is zero. The tiles are one run of values, of which a
 * thread takes every DEPTHWISE_THREADSth, some at a time so that their loads are in flight together. */
template <typename type, typename place_of_plane>
RDNA_DEVICE void depthwise_fill(const depthwise_args &args, float *tile, int planes, int rows, int pitch, int first_y,
                                int first_x, place_of_plane plane_at) {
  enum { TOGETHER = 8 };
  typedef typename type::stored value;
  const value *image = (const value *)args.image;
  int count = planes * rows * pitch;
  depthwise_divisor by_pitch(pitch), by_rows(rows);
  for (int first = (int)thread_id(); first < count; first += TOGETHER * DEPTHWISE_THREADS) {
    value raw[TOGETHER];
#pragma unroll
    for (int u = 0; u < TOGETHER; ++u) {
      int at = first + u * DEPTHWISE_THREADS, x, y, row = by_pitch.divide(at < count ? at : 0, x);
      int plane = plane_at(by_rows.divide(row, y));
      x += first_x, y += first_y;
      bool inside =
          plane >= 0 && (uint32_t)y < (uint32_t)args.image_size[0] && (uint32_t)x < (uint32_t)args.image_size[1];
      raw[u] = 0;
      if (inside) raw[u] = *global(image + plane + y * args.image_stride[2] + x * args.image_stride[3]);
    }
#pragma unroll
    for (int u = 0; u < TOGETHER; ++u) {
      int at = first + u * DEPTHWISE_THREADS;
      if (at < count) tile[at] = type::load(&raw[u], 0);
    }
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
