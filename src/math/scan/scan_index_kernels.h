/* Running extremes with where they are. Kernels are named by the bits of a value. */
#ifndef RDNA_MATH_SCAN_INDEX_KERNELS_H
#define RDNA_MATH_SCAN_INDEX_KERNELS_H

#include <stdint.h>

#include "math/sort/sort_order.h"

enum { SCAN_INDEX_THREADS = 256, SCAN_INDEX_TILE = 4 * SCAN_INDEX_THREADS };

/* values(o, i, k) is the first in the order from below, the last of equal ones, of x(o, 0, k) to x(o, i, k), and
 * indices(o, i, k) its place. inner 1: a group takes a segment of a row. With |total_values| it writes only what the
 * segment comes to; with |carry_values| it begins with what there was up to segment - 1. A thread takes a column
 * otherwise, and segments is 1. */
struct scan_index_args {
  const void *x;          /* (outer, n, inner) */
  const uint32_t *places; /* (outer, n) when inner is 1, or NULL for 0, 1, … */
  void *values;           /* (outer, n, inner) */
  void *indices;          /* (outer, n, inner) of i64, or u32 when |narrow| */
  void *total_values;     /* (outer, segments), or NULL */
  uint32_t *total_places;
  const void *carry_values; /* (outer, segments), or NULL */
  const uint32_t *carry_places;
  int64_t outer, inner;
  uint32_t n, segments, segment; /* values of each segment but the last */
  uint32_t narrow;
  uint32_t nan_last; /* the keys descend, and a NaN, whose key is 0 then, is to win nevertheless */
  struct sort_order order;
};

/* The greater wins. */
RDNA_SCALAR uint32_t scan_rank_32(const struct scan_index_args *a, uint32_t raw) {
  return sort_key_32(&a->order, raw) - a->nan_last;
}
RDNA_SCALAR uint64_t scan_rank_64(const struct scan_index_args *a, uint64_t raw) {
  return sort_key_64(&a->order, raw) - a->nan_last;
}

#define RDNA_SCAN_INDEX_KERNELS(X)                                                    \
  X(scan_index_8, struct scan_index_args, SCAN_INDEX_THREADS, rdna__scan_index_case)  \
  X(scan_index_16, struct scan_index_args, SCAN_INDEX_THREADS, rdna__scan_index_case) \
  X(scan_index_32, struct scan_index_args, SCAN_INDEX_THREADS, rdna__scan_index_case) \
  X(scan_index_64, struct scan_index_args, SCAN_INDEX_THREADS, rdna__scan_index_case)

#endif
