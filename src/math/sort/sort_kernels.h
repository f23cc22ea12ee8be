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
  SORT_LEAST_WAVES = SORT_THREADS / 64,
  SORT_WAVE_MOST = 128,      /* of sort_wave, and sort_long_wave; those rows have no places */
  SORT_LONG_WAVE_MOST = 512, /* of at most 32 bits: those of 64 need too many registers */
  SORT_SMALL_MOST = 4 * SORT_THREADS,
  SORT_TILE = 16 * SORT_THREADS,
  SORT_SWEEP_TILE = SORT_TILE
};

/* Rows of at most SORT_RANK_MOST, SORT_WAVE_MOST and so on, or SORT_TILE values. A value comes with its place:
 * |places|, or where it stands in its row. Equal keys stand in the order of their places; with place_bits 0 those
 * ascend in each row. Of a sorted row the values from |first| on are written, |kept| of them. */
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

/* Rows of any length, by 8 bits a pass from the lowest: radix_count counts all digits of all values at once, adding to
 * what is there; each radix_sweep moves the values by one digit, tile by tile. */
struct radix_count_args {
  const void *x;    /* (rows, n) */
  uint32_t *counts; /* (digits, rows, SORT_DIGITS) */
  int64_t rows;
  uint32_t n, digits;
  uint32_t part, parts; /* values of a row that a group counts at a time, a multiple of SORT_TILE; how many those are */
  struct sort_order order;
};

/* A tile learns from those before it where its values of a digit go (Merrill and Garland, "Single-pass parallel prefix
 * scan with decoupled look-back", 2016): |states| has for each a word that is 0 at first, then 1 + how many of the
 * digit the tile has, then SWEEP_UPTO + where the next tile's go. Tiles are taken by |ticket|, so that those before are
 * done or running. */
#define SWEEP_UPTO UINT32_C(0x80000000)
struct radix_sweep_args {
  const void *x;          /* (rows, n) */
  const uint32_t *places; /* (rows, n), or NULL for 0, 1, … */
  const uint32_t *counts; /* (rows, SORT_DIGITS): of this digit */
  uint32_t *states;       /* (rows, tiles, SORT_DIGITS) */
  uint32_t *ticket;       /* 0 at first, then how many tiles there are */
  void *values;           /* (rows, n) or NULL */
  void *indices;          /* (rows, n) of places: i64, or u32 when |narrow|; or NULL */
  int64_t rows;
  uint32_t n, tiles; /* n below 2^31; tiles of SORT_SWEEP_TILE values in a row */
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
#define RDNA_SORT_KERNELS(X)                                                        \
  RDNA_SORT_SIZES_(X, sort_rank, struct sort_tile_args, rdna__sort_tile_case)       \
  RDNA_SORT_SIZES_(X, sort_wave, struct sort_tile_args, rdna__sort_tile_case)       \
  X(sort_long_wave_8, struct sort_tile_args, SORT_THREADS, rdna__sort_tile_case)    \
  X(sort_long_wave_16, struct sort_tile_args, SORT_THREADS, rdna__sort_tile_case)   \
  X(sort_long_wave_32, struct sort_tile_args, SORT_THREADS, rdna__sort_tile_case)   \
  RDNA_SORT_SIZES_(X, sort_small, struct sort_tile_args, rdna__sort_tile_case)      \
  RDNA_SORT_SIZES_(X, sort_tile, struct sort_tile_args, rdna__sort_tile_case)       \
  RDNA_SORT_SIZES_(X, radix_count, struct radix_count_args, rdna__radix_count_case) \
  RDNA_SORT_SIZES_(X, radix_sweep, struct radix_sweep_args, rdna__radix_sweep_case) \
  RDNA_SORT_SIZES_(X, search, struct search_args, rdna__search_case)

#endif
