/* Sorting rows, stably: by counting ranks (up to 64 values), by radix within a work-group (up to 4096), by radix over
 * memory; and binary search. Kernels are named by the bits of a value. */
#ifndef RDNA_MATH_SORT_KERNELS_H
#define RDNA_MATH_SORT_KERNELS_H

#include <stdint.h>

#include "math/sort/sort_order.h"

enum {
  SORT_THREADS = 256,
  SORT_DIGITS = 256,   /* 8 bits a pass */
  SORT_RANK_MOST = 64, /* values in a row of sort_rank */
  SORT_SMALL_MOST = 4 * SORT_THREADS,
  SORT_TILE = 16 * SORT_THREADS,
  SORT_SCAN_SERIAL = 32 /* up to here a thread adds a digit's tiles alone */
};

/* Rows of at most SORT_RANK_MOST, SORT_SMALL_MOST or SORT_TILE values. A value comes with its place: |places|, or where
 * it stands in its row. Equal keys stand in the order of their places; with place_bits 0 those ascend in each row. Of a
 * sorted row the values from |first| on are written, |kept| of them. */
struct sort_tile_args {
  const void *x;          /* (rows, n) */
  const uint32_t *places; /* (rows, n) or NULL */
  void *values;           /* (rows, kept) or NULL */
  void *indices;          /* (rows, kept) of places: i64, or u32 when |narrow|; or NULL */
  int64_t rows;
  uint32_t n, first, kept;
  uint32_t bits, place_bits; /* that keys and places have at most */
  uint32_t narrow;
  struct sort_order order;
};

/* One pass over 8 bits of rows of any length, in three kernels: each tile of SORT_TILE values counts its digits, counts
 * are added up, each tile moves its values to their places. */
struct radix_args {
  const void *x;          /* (rows, n) */
  const uint32_t *places; /* (rows, n), or NULL for 0, 1, … */
  uint32_t *counts;       /* (rows, SORT_DIGITS, tiles); afterwards how many of the digit came in tiles before */
  uint32_t *totals;       /* (rows, SORT_DIGITS): of each digit */
  void *values;           /* (rows, n) or NULL */
  void *indices;          /* (rows, n) of places: i64, or u32 when |narrow|; or NULL */
  int64_t rows;
  uint32_t n, tiles; /* n below 2^31 */
  uint32_t shift;    /* of the digit */
  uint32_t narrow;
  struct sort_order order;
};

/* out = how many of a row of |sorted| are less than the value, or less or equal when |right| */
struct search_args {
  const void *sorted; /* (rows, n) */
  const void *x;      /* (rows, count) */
  void *out;          /* (rows, count) of i64, or i32 when |narrow| */
  int64_t rows, n, count;
  uint32_t shared; /* there is one row of |sorted| for all */
  uint32_t right, narrow;
  struct sort_order order;
};

#define RDNA_SORT_SIZES_(X, name, args, maker) \
  X(name##_8, args, SORT_THREADS, maker)       \
  X(name##_16, args, SORT_THREADS, maker)      \
  X(name##_32, args, SORT_THREADS, maker)      \
  X(name##_64, args, SORT_THREADS, maker)
#define RDNA_SORT_KERNELS(X)                                                   \
  RDNA_SORT_SIZES_(X, sort_rank, struct sort_tile_args, rdna__sort_tile_case)  \
  RDNA_SORT_SIZES_(X, sort_small, struct sort_tile_args, rdna__sort_tile_case) \
  RDNA_SORT_SIZES_(X, sort_tile, struct sort_tile_args, rdna__sort_tile_case)  \
  RDNA_SORT_SIZES_(X, radix_count, struct radix_args, rdna__radix_case)        \
  RDNA_SORT_SIZES_(X, radix_scatter, struct radix_args, rdna__radix_case)      \
  X(radix_scan, struct radix_args, SORT_THREADS, rdna__radix_case)             \
  RDNA_SORT_SIZES_(X, search, struct search_args, rdna__search_case)

#endif
