/* A row at any alignment as vectors of 16 bytes, with single values before the first and after the last: fewer than a
 * vector's at either end. Read by the host and by the GPU. */
#ifndef RDNA_MATH_COMMON_EDGES_H
#define RDNA_MATH_COMMON_EDGES_H

#include <stdint.h>

#include "kernel/scalar.h"

struct row_edges {
  uint64_t head, vectors, tail; /* values, vectors, values */
};

/* |in_16|: values in 16 bytes. */
RDNA_SCALAR struct row_edges row_edges_of(uint64_t address, uint64_t cols, uint32_t in_16) {
  struct row_edges e;
  e.head = ((0 - address) & 15) / (16 / in_16);
  if (e.head > cols) e.head = cols;
  e.vectors = (cols - e.head) / in_16;
  e.tail = cols - e.head - e.vectors * in_16;
  return e;
}

/* The column of the single value that thread |rank| of at least 32 has, or |cols| if it has none. */
RDNA_SCALAR uint64_t row_edges_single(const struct row_edges *e, uint64_t cols, uint32_t rank, uint32_t in_16) {
  if (rank < in_16) return rank < e->head ? rank : cols;
  return rank - in_16 < e->tail ? cols - e->tail + (rank - in_16) : cols;
}

#endif
