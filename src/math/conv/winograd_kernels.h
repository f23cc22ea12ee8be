/* Convolution in f32 with a window of 3 x 3 and no strides by Winograd's way, which takes 16 multiplications for 2 x 2
 * values of a channel instead of 36: S. Winograd, "Arithmetic Complexity of Computations", 1980; A. Lavin and S. Gray,
 * "Fast Algorithms for Convolutional Neural Networks", 2015.
 *
 * A tile is 2 x 2 values of the result, which 4 x 4 of the image make. With the matrices of that paper
 *
 *   weights(16, rows, columns) = G w G'   image(16, columns, tiles) = B' d B   sums(16) = weights(16) * image(16)
 *
 * and the result is A' sums A. Read and written are 4 values for each of the image, as many of the result, and 16 of
 * the weight for 9. What is not a number or infinite in the image reaches all values of the tiles that meet it.
 *
 * The gradient of the weight is the same with other parts: 2 x 2 values g of the gradient of y are the window, and 3 x
 * 3 of the weight's gradient the result, which is summed over tiles. At the same points, with H and D for G and A,
 *
 *   gradients(16, rows, tiles) = H g H'   sums(16, rows, columns) = gradients(16) * image(16)'   result D' sums D
 *
 * What is not a number or infinite reaches all of a window's nine. */
#ifndef RDNA_MATH_CONV_WINOGRAD_KERNELS_H
#define RDNA_MATH_CONV_WINOGRAD_KERNELS_H

#include <stdint.h>

#include "math/gemm/gemm_activation.h"

struct winograd_args {
  const float *in; /* the weight, the image, the gradient of y, or the sums */
  float *out;
  const float *bias; /* (channels), or NULL */
  int64_t stride[4]; /* of image, gradient and result: n, channel, y, x; of the weight: row, column, y, x */
  int64_t step[3];   /* of the 16 matrices: from channel, or row of the weight, to the next; tile, or column; matrix */
  int32_t channels, count;  /* of the weight rows and columns; otherwise channels and tiles of all images */
  int32_t tiles_y, tiles_x; /* of an image */
  int32_t size[2],
      pad_before[2]; /* of image, gradient or result; zeros before the image, which may be less than none */
  uint32_t turned;   /* the weight's window, as for the gradient of x */
  uint32_t last;     /* neighbours in memory are channels, or rows, and not tiles, or columns */
  uint32_t activation;
};

/* A thread makes a tile, or of the weight a window: grid (ceil(count / WINOGRAD_THREADS), channels, 1), or of |last|
 * (ceil(count * channels / WINOGRAD_THREADS), 1, 1), so that neighbouring threads meet neighbours in memory. */
#define WINOGRAD_THREADS 256
#define RDNA_WINOGRAD_KERNELS(X)                                                    \
  X(winograd_weight, struct winograd_args, WINOGRAD_THREADS, rdna__winograd_case)   \
  X(winograd_image, struct winograd_args, WINOGRAD_THREADS, rdna__winograd_case)    \
  X(winograd_result, struct winograd_args, WINOGRAD_THREADS, rdna__winograd_case)   \
  X(winograd_gradient, struct winograd_args, WINOGRAD_THREADS, rdna__winograd_case) \
  X(winograd_window, struct winograd_args, WINOGRAD_THREADS, rdna__winograd_case)

RDNA_SCALAR void winograd_weight_line(const float v[3], float out[4]) {
  float ends = v[0] + v[2];
  out[0] = v[0], out[1] = 0.5f * (ends + v[1]), out[2] = 0.5f * (ends - v[1]), out[3] = v[2];
}
RDNA_SCALAR void winograd_image_line(const float v[4], float out[4]) {
  out[0] = v[0] - v[2], out[1] = v[1] + v[2], out[2] = v[2] - v[1], out[3] = v[1] - v[3];
}
RDNA_SCALAR void winograd_sum_line(const float v[4], float out[2]) {
  out[0] = v[0] + v[1] + v[2], out[1] = v[1] - v[2] - v[3];
}
RDNA_SCALAR void winograd_gradient_line(const float v[2], float out[4]) {
  out[0] = v[0], out[1] = 0.5f * (v[0] + v[1]), out[2] = 0.5f * (v[0] - v[1]), out[3] = v[1];
}
RDNA_SCALAR void winograd_window_line(const float v[4], float out[3]) {
  float both = v[1] + v[2];
  out[0] = v[0] + both, out[1] = v[1] - v[2], out[2] = both - v[3];
}

RDNA_SCALAR void winograd_one_weight(const struct winograd_args *a, int32_t row, int32_t column) {
  const float *in = a->in + row * a->stride[0] + column * a->stride[1];
  float half[4][3], v[3], line[4];
  for (int x = 0; x < 3; x++) {
    for (int y = 0; y < 3; y++) {
      int from_y = a->turned ? 2 - y : y, from_x = a->turned ? 2 - x : x;
      v[y] = in[from_y * a->stride[2] + from_x * a->stride[3]];
    }
    winograd_weight_line(v, line);
    for (int y = 0; y < 4; y++) half[y][x] = line[y];
  }
  float *out = a->out + row * a->step[0] + column * a->step[1];
  int64_t step = a->step[2];
  for (int y = 0; y < 4; y++) {
    winograd_weight_line(half[y], line);
    for (int x = 0; x < 4; x++) out[(y * 4 + x) * step] = line[x];
  }
}

/* Where the tile's first value lies. */
RDNA_SCALAR void winograd_place(const struct winograd_args *a, int32_t tile, int32_t *n, int32_t *y, int32_t *x) {
  uint32_t line = (uint32_t)tile / (uint32_t)a->tiles_x;
  *x = 2 * (int32_t)((uint32_t)tile - line * (uint32_t)a->tiles_x);
  *n = (int32_t)(line / (uint32_t)a->tiles_y);
  *y = 2 * (int32_t)(line - (uint32_t)*n * (uint32_t)a->tiles_y);
}

RDNA_SCALAR void winograd_one_image(const struct winograd_args *a, int32_t channel, int32_t tile) {
  int32_t n, y0, x0;
  winograd_place(a, tile, &n, &y0, &x0);
  y0 -= a->pad_before[0], x0 -= a->pad_before[1];
  const float *in = a->in + n * a->stride[0] + channel * a->stride[1];
  float half[4][4], v[4], line[4];
  for (int x = 0; x < 4; x++) {
    int in_x = (uint32_t)(x0 + x) < (uint32_t)a->size[1];
    for (int y = 0; y < 4; y++) {
      int inside = in_x && (uint32_t)(y0 + y) < (uint32_t)a->size[0];
      v[y] = inside ? in[(y0 + y) * a->stride[2] + (x0 + x) * a->stride[3]] : 0;
    }
    winograd_image_line(v, line);
    for (int y = 0; y < 4; y++) half[y][x] = line[y];
  }
  float *out = a->out + channel * a->step[0] + tile * a->step[1];
  int64_t step = a->step[2];
  for (int y = 0; y < 4; y++) {
    winograd_image_line(half[y], line);
    for (int x = 0; x < 4; x++) out[(y * 4 + x) * step] = line[x];
  }
}

RDNA_SCALAR void winograd_one_result(const struct winograd_args *a, int32_t channel, int32_t tile) {
  int32_t n, y0, x0;
  winograd_place(a, tile, &n, &y0, &x0);
  const float *in = a->in + channel * a->step[0] + tile * a->step[1];
  int64_t step = a->step[2];
  float half[2][4], v[4], line[2], bias = a->bias ? a->bias[channel] : 0;
  for (int x = 0; x < 4; x++) {
    for (int y = 0; y < 4; y++) v[y] = in[(y * 4 + x) * step];
    winograd_sum_line(v, line);
    half[0][x] = line[0], half[1][x] = line[1];
  }
  float *out = a->out + n * a->stride[0] + channel * a->stride[1];
  for (int y = 0; y < 2; y++) {
    winograd_sum_line(half[y], line);
    for (int x = 0; x < 2; x++)
      if (y0 + y < a->size[0] && x0 + x < a->size[1])
        out[(y0 + y) * a->stride[2] + (x0 + x) * a->stride[3]] = gemm_activate(a->activation, line[x] + bias);
  }
}

RDNA_SCALAR void winograd_one_gradient(const struct winograd_args *a, int32_t channel, int32_t tile) {
  int32_t n, y0, x0;
  winograd_place(a, tile, &n, &y0, &x0);
  const float *in = a->in + n * a->stride[0] + channel * a->stride[1];
  float half[4][2], v[2], line[4];
  for (int x = 0; x < 2; x++) {
    for (int y = 0; y < 2; y++) {
      int inside = x0 + x < a->size[1] && y0 + y < a->size[0];
      v[y] = inside ? in[(y0 + y) * a->stride[2] + (x0 + x) * a->stride[3]] : 0;
    }
    winograd_gradient_line(v, line);
    for (int y = 0; y < 4; y++) half[y][x] = line[y];
  }
  float *out = a->out + channel * a->step[0] + tile * a->step[1];
  int64_t step = a->step[2];
  for (int y = 0; y < 4; y++) {
    winograd_gradient_line(half[y], line);
    for (int x = 0; x < 4; x++) out[(y * 4 + x) * step] = line[x];
  }
}

RDNA_SCALAR void winograd_one_window(const struct winograd_args *a, int32_t row, int32_t column) {
  const float *in = a->in + row * a->step[0] + column * a->step[1];
  int64_t step = a->step[2];
  float half[3][4], v[4], line[3];
  for (int x = 0; x < 4; x++) {
    for (int y = 0; y < 4; y++) v[y] = in[(y * 4 + x) * step];
    winograd_window_line(v, line);
    for (int y = 0; y < 3; y++) half[y][x] = line[y];
  }
  float *out = a->out + row * a->stride[0] + column * a->stride[1];
  for (int y = 0; y < 3; y++) {
    winograd_window_line(half[y], line);
    for (int x = 0; x < 3; x++) out[y * a->stride[2] + x * a->stride[3]] = line[x];
  }
}

#endif
