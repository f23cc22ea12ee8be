/* Tensors (n, channels, spatial…) with up to three spatial dimensions and any strides, as kernels see them: those that
 * a tensor lacks come first and are of size 1. Read by the host and by the GPU. */
#ifndef RDNA_MATH_COMMON_VOLUME_H
#define RDNA_MATH_COMMON_VOLUME_H

#include "math/common/strided.h"

struct volume {
  void *data;
  int64_t stride[5]; /* n, channel, z, y, x; in values */
};

/* Who takes which values of a tensor: number i has x fastest, then y, z, channels, n; or channels, x, y, z, n. */
struct volume_order {
  struct strided_shape shape; /* of rank 5, in that order; channels count numbers */
  uint32_t channels_last;
  uint32_t channels; /* of a number; the last number of a sample may have fewer */
  uint32_t vector;   /* 1: they are 16 bytes, for which every tensor here is aligned; then channels_last is 1 */
};

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

/* Where a channel of a sample begins. */
RDNA_SCALAR int64_t volume_channel(const struct volume *v, int32_t n, uint32_t channel) {
  return n * v->stride[0] + channel * v->stride[1];
}
RDNA_SCALAR int64_t volume_offset(const struct volume *v, int32_t z, int32_t y, int32_t x) {
  return z * v->stride[2] + y * v->stride[3] + x * v->stride[4];
}

#endif
