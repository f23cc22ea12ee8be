/* For operators: how a type's values order, and sorting of contiguous rows. */
#ifndef RDNA_MATH_SORT_PLAN_H
#define RDNA_MATH_SORT_PLAN_H

#include <stdbool.h>

#include "math/common/plan/scratch.h"
#include "math/sort/sort_order.h"
#include "rdna/tensor.h"

/* Not of the quantized types. */
struct sort_order rdna__sort_order(rdna_dtype dtype, bool descending);

/* Rows of n values each, n below 2^31. What is NULL is not wanted. */
typedef struct rdna__sort_rows {
  const void *x;          /* (rows, n) */
  const uint32_t *places; /* (rows, n) and at most SORT_TILE values, or NULL: see struct sort_tile_args */
  void *values;           /* (rows, n) */
  void *indices;          /* (rows, n) of i64, or u32 when |narrow| */
  int64_t rows, n;
  uint32_t first, kept; /* what is written of a sorted row of at most SORT_TILE values; longer ones: all */
  uint32_t place_bits;
  int value_bytes;
  uint32_t bits; /* that keys have at most */
  bool narrow;
  struct sort_order order;
} rdna__sort_rows;
/* Stable. The caller releases |scratch|. */
rdna_status rdna__sort_rows_queue(rdna__scratch *scratch, const rdna__sort_rows *sort);

#endif
