/* For case makers: random shapes and placements of strided operands. */
#ifndef RDNA_MATH_COMMON_CASE_STRIDED_H
#define RDNA_MATH_COMMON_CASE_STRIDED_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"
#include "kernel/manifest.h"
#include "math/common/strided.h"

/* Picks a shape of random sizes; fewer dimensions in the first cases. |values|: of a vector, by which some are
 * divisible. */
static inline void case_pick_shape(rdna__random *random, int n, int values, struct strided_shape *shape) {
  *shape = (struct strided_shape){.rank = (uint32_t)rdna__random_range(random, 1, n < 6 ? 3 : 8), .count = 1};
  if (n == 1) shape->rank = 1;
  for (uint32_t d = 0; d < shape->rank; d++) {
    int64_t size = rdna__random_range(random, 1, shape->rank > 4 ? 5 : shape->rank > 2 ? 12 : 60);
    if (d == 0 && n % 2) size = size * values;
    if (n == 1) size = 4096;
    if (shape->rank == 1 && n > 6) size = rdna__random_range(random, 1, 9000);
    strided_set_size(shape, d, (uint32_t)size);
    shape->count *= (uint32_t)size;
  }
}

/* Picks strides of an operand: contiguous, with gaps, permuted or (inputs only) broadcast. Returns the values it spans.
 */
static inline int64_t case_pick_strides(rdna__random *random, const struct strided_shape *shape, bool output,
                                        int values, int64_t *stride) {
  uint32_t order[STRIDED_RANK];
  int64_t step = 1, last = 0;
  for (uint32_t d = 0; d < shape->rank; d++) order[d] = d;
  if (rdna__random_below(random, 3) == 0) {
    for (uint32_t d = 0; d < shape->rank; d++) {
      uint32_t other = (uint32_t)rdna__random_below(random, shape->rank), held = order[d];
      order[d] = order[other];
      order[other] = held;
    }
  }
  for (uint32_t k = 0; k < shape->rank; k++) {
    uint32_t d = order[k];
    bool broadcast = !output && rdna__random_below(random, 5) == 0;
    stride[d] = broadcast ? 0 : step;
    last += (shape->size[d] - 1) * stride[d];
    if (!broadcast) step *= shape->size[d];
    if (k > 0 && rdna__random_below(random, 6) == 0) step += values;
  }
  return last + 1;
}

/* Returns whether the strides allow vectors of |values| values along the fastest dimension. */
static inline bool case_may_be_vector(const struct strided_shape *shape, const int64_t *stride, int values) {
  bool may = stride[0] == 1 && shape->size[0] % (uint32_t)values == 0;
  for (uint32_t d = 1; d < shape->rank; d++) may = may && stride[d] % values == 0;
  return may;
}

/* Marks the gaps between the values of the buffer added last, an output: they must keep their poison. */
static inline rdna_status case_mark_gaps(rdna__kernel_case *c, const struct strided_shape *shape,
                                         const struct strided_operand *out, int64_t span) {
  uint8_t *untouched = malloc((size_t)span);
  if (!untouched) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of %lld values", (long long)span);
  memset(untouched, 1, (size_t)span);
  for (uint32_t i = 0; i < shape->count; i++) {
    int64_t at;
    strided_offsets(shape, out, 1, i, &at);
    untouched[at] = 0;
  }
  c->buffers[c->buffer_count - 1].untouched = untouched;
  return RDNA_OK;
}

#endif
