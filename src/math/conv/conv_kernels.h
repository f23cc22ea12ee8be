/* Convolution as a product of matrices that are never written out: argument struct, list of kernels, and where values
 * lie.
 *
 * The image is what the window slides over: x, or for the gradient of x that of y. A position is one place (n, z, y, x)
 * of the window, a tap one value in it: (z, y, x) of the window and a channel. Of a group of channels:
 *
 *   conv_image:  out(position, channel) = sum over taps of image(position, tap) * other(channel, tap) + bias(channel)
 *                The forward pass and the gradient of x; other is the weight.
 *   conv_weight: out(channel, tap) = sum over positions of other(channel, position) * image(position, tap)
 *                The gradient of the weight; other is the gradient of y. */
#ifndef RDNA_MATH_CONV_KERNELS_H
#define RDNA_MATH_CONV_KERNELS_H

#include <stdint.h>

#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemm_kernels.h"

#define CONV_CHANNEL_FIRST 1u /* of the digits of a tap; else it is the last */
#define CONV_OUT_EVEN 2u      /* position p of |out| lies p * out_step after the first; conv_image only */
#define CONV_IMAGE_RUNS 4u    /* taps 8i to 8i + 7 are neighbours in memory, at multiples of 16 bytes from the first */
#define CONV_OTHER_EVEN 8u    /* value p of a row of |other| lies p * other_step after the first */
#define CONV_OTHER_RUNS 16u   /* and at multiples of 16 bytes for p = 8i, with a step of 1 */
#define CONV_OTHER_ROWS 32u   /* rows of |other| are neighbours in memory, rows 8i at multiples of 16 bytes */
#define CONV_OUT_RUNS 64u     /* columns 8i to 8i + 7 of |out| are neighbours, at multiples of 16 bytes */
#define CONV_OCTETS 128u      /* groups 8i to 8i + 7 of one column each are neighbours in image and out, so aligned */

/* A number of four digits, the last the fastest. n / size is n * magic >> shift for n < 2^31 (Granlund and Montgomery,
 * "Division by invariant integers using multiplication", 1994). */
struct conv_radix {
  uint32_t size[4], magic[4], shift[4];
};

struct conv_args {
  const void *image;
  const void *other;
  const void *bias; /* (groups * columns), or NULL */
  void *out;
  struct conv_radix position, tap;
  int32_t image_stride[5]; /* n, z, y, x, channel; strides are in elements */
  int32_t image_size[3];
  int32_t step[3], begin[3], dilation[3];    /* a value is at position * step - begin + tap * dilation */
  int32_t other_row, other_k[4], other_step; /* from channel to channel; by the digits of what is summed over */
  int32_t out_channel, out_digits[4], out_step;
  int32_t image_group, other_group, out_group; /* from one group of channels to the next */
  int32_t rows, columns, k, groups;
  uint32_t flags;
  uint32_t activation; /* of the sum with the bias, an rdna_activation; conv_image only */
  /* With more than one part, |part_k| values of k each, a multiple of 64, sums go to |sums| (groups, parts, rows,
   * columns) instead of |out|, and conv_image_sum or conv_weight_sum adds them up. */
  int32_t parts, part_k;
  float *sums;
};

/* (images, channels, plane) to (images, plane, channels), or back, where a plane is not a multiple of 16 bytes, so that
 * its lines cannot be moved as such. A group moves |block| channels of an image, a multiple of those in 16 bytes, which
 * in the first layout are one run of whole 16 bytes, through shared memory: it holds block / (those in 16 bytes) times
 * (plane | 1) times 16 bytes. The grid is (ceil(channels / block), images, 1). */
struct conv_turn_args {
  const void *in;
  void *out;
  int32_t images, channels, plane, block; /* channels of a group; those of the last may be fewer */
};
#define CONV_TURN_THREADS 256
#define CONV_TURN_BYTES 25216 /* 64 channels of 14 x 14, or 256 of 7 x 7, in 16 bits */

/* Tiles of the result. The large and narrow kernels, but conv_image_large_f32, want CONV_IMAGE_RUNS, CONV_OTHER_RUNS
 * (conv_image) or CONV_OTHER_ROWS, all data at multiples of 16 bytes, and a k (conv_image) or columns (conv_weight)
 * that are multiples of 8; those of 16-bit types a window of at most 32 taps. The grid is (tiles, 1, groups * parts).
 * For the depthwise kernel, which is conv_image for few channels a group, threads take one value of the result each, or
 * with CONV_OCTETS eight: (values / CONV_DEPTHWISE_THREADS, 1, 1); so do those of conv_image_sum and conv_weight_sum:
 * (values of a group / CONV_DEPTHWISE_THREADS, 1, groups). */
#define CONV_SMALL_TILE 64
#define CONV_LARGE_TILE 128
#define CONV_FLOAT_SMALL_THREADS 128
#define CONV_FLOAT_LARGE_THREADS 256
#define CONV_MMA_THREADS 128
#define CONV_DEPTHWISE_THREADS 256
#define CONV_PART_STEP 64
/* Of the sum of a few parts a thread makes 4 neighbouring columns; otherwise it is done as gemm_sum does it. */
#define CONV_SUM_QUADS(parts, columns) (!GEMM_SUM_MANY(parts) && (columns) % 4 == 0)
#define CONV_SUM_VALUES(parts, columns) (CONV_SUM_QUADS(parts, columns) ? 4 * GEMM_SUM_THREADS : GEMM_SUM_VALUES(parts))
#define CONV_WINDOW_MAX 32
/* Bytes of shared memory on NVIDIA's GPUs, 8 for each window: of a tile's rows; of the positions of the steps that are
 * in flight. */
#define CONV_IMAGE_TABLE 1024
#define CONV_WEIGHT_TABLE(stages) (2 * ((stages) - 1) * GEMM_PIPE_STEP * 8)

#define RDNA_CONV_VALUES_(X, T)                                                    \
  X(conv_depthwise_##T, struct conv_args, CONV_DEPTHWISE_THREADS, rdna__conv_case) \
  X(conv_image_sum_##T, struct conv_args, GEMM_SUM_THREADS, rdna__conv_sum_case)   \
  X(conv_weight_sum_##T, struct conv_args, GEMM_SUM_THREADS, rdna__conv_sum_case)
#define RDNA_CONV_TURNS_(X, bits)                                                        \
  X(conv_to_last_##bits, struct conv_turn_args, CONV_TURN_THREADS, rdna__conv_turn_case) \
  X(conv_to_first_##bits, struct conv_turn_args, CONV_TURN_THREADS, rdna__conv_turn_case)
#define RDNA_CONV_KERNELS(X)                                                            \
  X(conv_image_small_f32, struct conv_args, CONV_FLOAT_SMALL_THREADS, rdna__conv_case)  \
  X(conv_image_large_f32, struct conv_args, CONV_FLOAT_LARGE_THREADS, rdna__conv_case)  \
  X(conv_weight_small_f32, struct conv_args, CONV_FLOAT_SMALL_THREADS, rdna__conv_case) \
  X(conv_weight_large_f32, struct conv_args, CONV_FLOAT_LARGE_THREADS, rdna__conv_case) \
  RDNA_CONV_VALUES_(X, f32)                                                             \
  RDNA_CONV_VALUES_(X, f16)                                                             \
  RDNA_CONV_VALUES_(X, bf16)                                                            \
  RDNA_CONV_TURNS_(X, 16)                                                               \
  RDNA_CONV_TURNS_(X, 32)
#define RDNA_CONV_MMA_OF_(X, name, rows, columns, stages, more) \
  X(name, struct conv_args, CONV_MMA_THREADS, rdna__conv_case, GEMM_PIPE_BYTES(rows, columns, stages) + (more))
#define RDNA_CONV_MMA_(X, T)                                                     \
  RDNA_CONV_MMA_OF_(X, conv_image_small_##T, 64, 64, 3, 0)                       \
  RDNA_CONV_MMA_OF_(X, conv_image_large_##T, 128, 128, 3, CONV_IMAGE_TABLE)      \
  RDNA_CONV_MMA_OF_(X, conv_image_narrow_##T, 128, 64, 3, CONV_IMAGE_TABLE)      \
  RDNA_CONV_MMA_OF_(X, conv_weight_small_##T, 64, 64, 3, 0)                      \
  RDNA_CONV_MMA_OF_(X, conv_weight_large_##T, 128, 128, 3, CONV_WEIGHT_TABLE(3)) \
  RDNA_CONV_MMA_OF_(X, conv_weight_narrow_##T, 64, 128, 3, CONV_WEIGHT_TABLE(3))
#define RDNA_CONV_F16_KERNELS(X) RDNA_CONV_MMA_(X, f16)
#define RDNA_CONV_BF16_KERNELS(X) RDNA_CONV_MMA_(X, bf16)

RDNA_SCALAR void conv_digits(const struct conv_radix *radix, int32_t number, int32_t out_digits[4]) {
  uint32_t rest = (uint32_t)number;
  for (int d = 3; d > 0; d--) {
    uint32_t quotient = (uint32_t)(((uint64_t)radix->magic[d] * rest) >> radix->shift[d]);
    out_digits[d] = (int32_t)(rest - quotient * radix->size[d]);
    rest = quotient;
  }
  out_digits[0] = (int32_t)rest;
}

RDNA_SCALAR int32_t conv_digits_offset(const struct conv_radix *radix, int32_t number, const int32_t stride[4]) {
  int32_t d[4];
  conv_digits(radix, number, d);
  return d[0] * stride[0] + d[1] * stride[1] + d[2] * stride[2] + d[3] * stride[3];
}

/* What a position or a tap adds to where a value of the image is; add two. */
struct conv_place {
  int32_t offset, z, y, x;
};

RDNA_SCALAR struct conv_place conv_position(const struct conv_args *a, int32_t position) {
  int32_t d[4];
  conv_digits(&a->position, position, d);
  struct conv_place place = {d[0] * a->image_stride[0], d[1] * a->step[0] - a->begin[0],
                             d[2] * a->step[1] - a->begin[1], d[3] * a->step[2] - a->begin[2]};
  return place;
}

RDNA_SCALAR struct conv_place conv_tap(const struct conv_args *a, int32_t tap) {
  int32_t d[4];
  conv_digits(&a->tap, tap, d);
  int first = a->flags & CONV_CHANNEL_FIRST ? 1 : 0;
  int32_t channel = first ? d[0] : d[3], z = first ? d[1] : d[0], y = first ? d[2] : d[1], x = first ? d[3] : d[2];
  struct conv_place place = {channel * a->image_stride[4], z * a->dilation[0], y * a->dilation[1], x * a->dilation[2]};
  return place;
}

/* Where the value lies in the image, or -1: outside, where it is zero. */
RDNA_SCALAR int32_t conv_offset(const struct conv_args *a, struct conv_place position, struct conv_place tap) {
  int32_t z = position.z + tap.z, y = position.y + tap.y, x = position.x + tap.x;
  if ((uint32_t)z >= (uint32_t)a->image_size[0] || (uint32_t)y >= (uint32_t)a->image_size[1] ||
      (uint32_t)x >= (uint32_t)a->image_size[2])
    return -1;
  return position.offset + tap.offset + z * a->image_stride[1] + y * a->image_stride[2] + x * a->image_stride[3];
}

#endif
