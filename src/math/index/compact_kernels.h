/* Stream compaction: the values that a mask keeps, and the coordinates of values that are not 0. Three launches over
 * tiles of COMPACT_TILE values:
 *
 *     tile                    0   1   2   3
 *     compact_count_*         3   0   2   4        how many values count in each tile
 *     compact_scan            0   3   3   5   9    exclusive prefix sums, the total last
 *     nonzero_*, masked_*     tile i writes from its sum on
 *
 * A kernel's name ends in the bits of a value. */
#ifndef RDNA_MATH_COMPACT_KERNELS_H
#define RDNA_MATH_COMPACT_KERNELS_H

#include <stdint.h>

#include "math/common/strided.h"

enum { COMPACT_THREADS = 256, COMPACT_TILE = 16 * COMPACT_THREADS };

struct compact_args {
  const void *x; /* (n): a value counts when a bit of it is set that is not in |ignored| (the sign, so that -0 is 0) */
  int64_t *offsets;   /* (tiles + 1): counts of each tile; after compact_scan their prefix sums */
  const void *values; /* masked_select: (n); masked_scatter: (limit) */
  void *out;          /* nonzero: (limit, rank) of i64 coordinates; masked_select: (limit); masked_scatter: (n) */
  int64_t n, limit;   /* n below 2^31; only the first |limit| values that count are used */
  uint64_t ignored;
  uint32_t tiles;
  struct strided_shape shape; /* of x, for nonzero: the fastest dimension first */
};

/* masked_select and masked_scatter take a mask of bytes. */
#define RDNA_COMPACT_SIZES_(X, name)                                     \
  X(name##_8, struct compact_args, COMPACT_THREADS, rdna__compact_case)  \
  X(name##_16, struct compact_args, COMPACT_THREADS, rdna__compact_case) \
  X(name##_32, struct compact_args, COMPACT_THREADS, rdna__compact_case) \
  X(name##_64, struct compact_args, COMPACT_THREADS, rdna__compact_case)
#define RDNA_COMPACT_KERNELS(X)                                             \
  RDNA_COMPACT_SIZES_(X, compact_count)                                     \
  X(compact_scan, struct compact_args, COMPACT_THREADS, rdna__compact_case) \
  RDNA_COMPACT_SIZES_(X, nonzero)                                           \
  RDNA_COMPACT_SIZES_(X, masked_select)                                     \
  RDNA_COMPACT_SIZES_(X, masked_scatter)

/* Writes the coordinates of value |i|, the slowest dimension first. */
RDNA_SCALAR void compact_coordinates(const struct strided_shape *shape, uint32_t i, int64_t *out) {
  for (uint32_t d = 0; d < shape->rank; d++) {
    uint32_t quotient = (uint32_t)(((uint64_t)shape->magic[d] * i) >> shape->shift[d]);
    out[shape->rank - 1 - d] = (int64_t)(i - quotient * shape->size[d]);
    i = quotient;
  }
}

#endif
