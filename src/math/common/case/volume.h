/* For case makers: tensors (n, channels, spatial…) in random layouts. */
#ifndef RDNA_MATH_COMMON_CASE_VOLUME_H
#define RDNA_MATH_COMMON_CASE_VOLUME_H

#include <stddef.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/common/plan/volume.h"

/* Returns a tensor of rank 5, contiguous or channels-last, whose data points to no real values. |size|: z, y, x. */
static inline rdna_tensor volume_case_tensor(rdna_dtype dtype, int64_t n, int64_t channels, const int32_t size[3],
                                             bool channels_last) {
  const int64_t shape[] = {n, channels, size[0], size[1], size[2]};
  static char somewhere[16] __attribute__((aligned(16)));
  rdna_tensor t = rdna_tensor_contiguous(somewhere, dtype, 5, shape);
  if (channels_last) {
    t.stride[1] = 1, t.stride[4] = channels, t.stride[3] = channels * size[2];
    t.stride[2] = t.stride[3] * size[1], t.stride[0] = t.stride[2] * size[0];
  }
  return t;
}

/* Adds the tensor's buffer; its pointer goes into the struct volume at |offset| of the arguments. */
static inline void *volume_case_add(rdna__kernel_case *c, rdna__buffer_role role, const rdna_tensor *t, size_t offset) {
  return rdna__case_add(c, role, t->dtype, rdna_tensor_count(t), (uint32_t)(offset + offsetof(struct volume, data)));
}

/* Gives work items several channels at random, as rdna__volume_order does only for large tensors. */
static inline void volume_case_block(rdna__random *random, int64_t channels, uint32_t most,
                                     struct volume_order *order) {
  if (order->channels_last || channels == 0) return;
  while (order->channels < most && rdna__random_below(random, 2)) order->channels *= 2;
  uint32_t blocks = ((uint32_t)channels + order->channels - 1) / order->channels;
  strided_set_size(&order->shape, 3, blocks);
  order->shape.count = order->shape.count / (uint32_t)channels * blocks;
}

static inline struct volume volume_case_of(const rdna_tensor *t) {
  struct volume v = rdna__volume_of(t);
  v.data = NULL;
  return v;
}

#endif
