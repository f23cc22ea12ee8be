/* Splits a row at any address into single values up to a multiple of 16 bytes (head), aligned vectors of 16 bytes, and
 * single values (tail); see "Rows at any alignment" in src/math/README.md. Head and tail are each fewer than a vector's
 * values. For the host and for the GPU. */
#ifndef RDNA_MATH_COMMON_EDGES_H
#define RDNA_MATH_COMMON_EDGES_H

#include <stdint.h>

#include "kernel/scalar.h"

struct row_edges {
  uint64_t head, vectors, tail; /* values, vectors, values */
};

/* Splits |cols| values from |address| on. |in_16|: values in 16 bytes. */
RDNA_SCALAR struct row_edges row_edges_of(uint64_t address, uint64_t cols, uint32_t in_16) {
  struct row_edges e;
  e.head = ((0 - address) & 15) / (16 / in_16);
  if (e.head > cols) e.head = cols;
  e.vectors = (cols - e.head) / in_16;
  e.tail = cols - e.head - e.vectors * in_16;
  return e;
}

/* Returns the column of the single value of thread |rank|, or |cols| if it has none. Threads 0 to in_16 - 1 have the
 * head, the next in_16 the tail; there must be at least 32 threads. */
RDNA_SCALAR uint64_t row_edges_single(const struct row_edges *e, uint64_t cols, uint32_t rank, uint32_t in_16) {
  if (rank < in_16) return rank < e->head ? rank : cols;
  return rank - in_16 < e->tail ? cols - e->tail + (rank - in_16) : cols;
}

#endif
