/* Tensors joined along a dimension, many in one launch. Each, and the joined one, is seen as rows: what lies before the
 * dimension in memory is the row, what lies from it on is within the row.
 *
 *     part 0 (rows, 3)   part 1 (rows, 2)      out (rows, 5)
 *     a a a              b b                   a a a b b
 *     a a a              b b                   a a a b b
 *
 * Kernels are named by the bits of what they move, which may be several neighbours at once. */
#ifndef RDNA_MATH_CAT_KERNELS_H
#define RDNA_MATH_CAT_KERNELS_H

#include <stdint.h>

enum {
  CAT_THREADS = 256,
  CAT_TILE = 1024, /* values of a group, each thread's CAT_THREADS apart */
  CAT_PARTS = 16   /* the most of a launch */
};

struct cat_part {
  const void *data;      /* (rows, width), dense */
  uint32_t count, width; /* rows * width values; not 0 */
  uint32_t column;       /* of out, at which the part begins */
  uint32_t group;        /* the part's first group */
};

struct cat_args {
  void *out; /* rows, stride values apart */
  int64_t stride;
  uint32_t parts, groups; /* of all parts */
  struct cat_part part[CAT_PARTS];
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_CAT_KERNELS(X)                                    \
  X(cat_rows_8, struct cat_args, CAT_THREADS, rdna__cat_case)  \
  X(cat_rows_16, struct cat_args, CAT_THREADS, rdna__cat_case) \
  X(cat_rows_32, struct cat_args, CAT_THREADS, rdna__cat_case) \
  X(cat_rows_64, struct cat_args, CAT_THREADS, rdna__cat_case) \
  X(cat_rows_128, struct cat_args, CAT_THREADS, rdna__cat_case)

#endif
