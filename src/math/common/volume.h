/* Tensors (n, channels, spatial…) of any strides, as kernels see them: always with three spatial dimensions z, y, x, of
 * which the first have size 1 where a tensor has fewer. For the host and for the GPU. */
#ifndef RDNA_MATH_COMMON_VOLUME_H
#define RDNA_MATH_COMMON_VOLUME_H

#include "math/common/strided.h"

struct volume {
  void *data;
  int64_t stride[5]; /* n, channel, z, y, x; in values */
};

/* How a tensor is divided among threads. A work item, one for each thread, is |channels| neighbouring channels at one
 * position. Items are numbered with x fastest, then y, z, channels, n; if |channels_last| with channels fastest, then
 * x, y, z, n. Of 2 items along x and 6 channels, 4 for an item (the last has 2):
 *
 *     item      0           1           2           3
 *     covers    x 0, c 0-3  x 1, c 0-3  x 0, c 4-5  x 1, c 4-5
 */
struct volume_order {
  struct strided_shape shape; /* of rank 5, in that order; its size for channels counts items */
  uint32_t channels_last;
  uint32_t channels; /* of an item; the last items of a sample may have fewer */
  uint32_t vector;   /* 1: the channels of an item are one vector of 16 bytes, and every tensor is aligned to it;
                        channels_last is 1 */
};

/* Where work item i lies; c counts items, so its first channel is c * channels. */
struct volume_place {
  int32_t n, c, z, y, x;
};

RDNA_SCALAR struct volume_place volume_place_at(const struct volume_order *order, uint32_t i) {
  uint32_t digit[5];
  STRIDED_UNROLL
  for (uint32_t d = 0; d < 5; d++) {
    uint32_t quotient = (uint32_t)(((uint64_t)order->shape.magic[d] * i) >> order->shape.shift[d]);
    digit[d] = i - quotient * order->shape.size[d];
    i = quotient;
  }
  bool last = order->channels_last;
  struct volume_place p;
  p.x = (int32_t)(last ? digit[1] : digit[0]);
  p.y = (int32_t)(last ? digit[2] : digit[1]);
  p.z = (int32_t)(last ? digit[3] : digit[2]);
  p.c = (int32_t)(last ? digit[0] : digit[3]);
  p.n = (int32_t)digit[4];
  return p;
}

/* Returns where a channel of a sample begins, in values; volume_offset is added to it. */
RDNA_SCALAR int64_t volume_channel(const struct volume *v, int32_t n, uint32_t channel) {
  return n * v->stride[0] + channel * v->stride[1];
}
RDNA_SCALAR int64_t volume_offset(const struct volume *v, int32_t z, int32_t y, int32_t x) {
  return z * v->stride[2] + y * v->stride[3] + x * v->stride[4];
}

#endif
