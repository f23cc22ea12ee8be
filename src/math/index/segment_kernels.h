/* Rows that go to one place, brought together in an order that the input alone decides.
 *
 * The rows' places are keys that were sorted, stably. A thread takes a column of |chunk| neighbours in that order. What
 * begins and ends within its chunk it joins to the output; what reaches over an end is a part, of which a chunk has at
 * most two, and the parts, still in order, are the input of the next launch. */
#ifndef RDNA_MATH_SEGMENT_KERNELS_H
#define RDNA_MATH_SEGMENT_KERNELS_H

#include <stdint.h>

enum { SEGMENT_THREADS = 256, SEGMENT_CHUNK = 32 };

enum segment_op { SEGMENT_ADD, SEGMENT_PROD, SEGMENT_MIN, SEGMENT_MAX, SEGMENT_MEAN, SEGMENT_LAST };

/* Kept in f32 for f32, f16 and bf16, in f64 for f64, in 64-bit integers for the others. MEAN divides by the number of
 * rows, and one more with |include_self|; integers are divided towards minus infinity. A NaN stays. */
struct segment_args {
  const uint32_t *keys;   /* (n), ascending but for those that are |rows|, which are skipped */
  const uint32_t *places; /* (n): the row of each in |src|; NULL for parts */
  const void *src;        /* (outer, src_rows, inner); parts: (n, outer * inner) of what is kept */
  const uint32_t *counts; /* (n): rows in each part */
  void *dst;              /* (outer, rows, inner) */
  uint32_t *part_keys;    /* (2 * chunks); NULL when there is one chunk */
  void *part_values;      /* (2 * chunks, outer * inner) */
  uint32_t *part_counts;  /* (2 * chunks) */
  int64_t outer, inner, src_rows;
  uint32_t n, chunks, rows;
  uint32_t op, include_self;
};

#define RDNA_SEGMENT_KERNELS(X)                                             \
  X(segment_f32, struct segment_args, SEGMENT_THREADS, rdna__segment_case)  \
  X(segment_f16, struct segment_args, SEGMENT_THREADS, rdna__segment_case)  \
  X(segment_bf16, struct segment_args, SEGMENT_THREADS, rdna__segment_case) \
  X(segment_f64, struct segment_args, SEGMENT_THREADS, rdna__segment_case)  \
  X(segment_i8, struct segment_args, SEGMENT_THREADS, rdna__segment_case)   \
  X(segment_u8, struct segment_args, SEGMENT_THREADS, rdna__segment_case)   \
  X(segment_i16, struct segment_args, SEGMENT_THREADS, rdna__segment_case)  \
  X(segment_i32, struct segment_args, SEGMENT_THREADS, rdna__segment_case)  \
  X(segment_i64, struct segment_args, SEGMENT_THREADS, rdna__segment_case)

#endif
