/* Combines rows that go to one place (scatter with add, index_put, the gradient of an embedding), in an order that the
 * input alone decides, so that the same call gives the same bits.
 *
 * The key of a row is the place that it goes to. The keys come sorted, stably. A thread walks one column of a chunk,
 * SEGMENT_CHUNK neighbours in that order, and combines runs of equal keys. A run that begins and ends within the chunk
 * is written to dst. A run that crosses the chunk's beginning or its end becomes a part: entry 2 c of chunk c for the
 * beginning, entry 2 c + 1 for the end, the key |rows| for none. The parts, still in order, are the input of the next
 * launch, a sixteenth as many, until one chunk has all. With chunks of 4:
 *
 *     keys     0 0 1 2 | 2 2 2 2 | 2 3 3 5
 *     dst      0, 1    |         | 3, 5
 *     parts    - , 2   | 2 , 2'  | 2 , -       2': no rows, keeps the parts of key 2 neighbours
 *     launch 2 has the keys - 2 2 2' 2 -  and writes place 2
 */
#ifndef RDNA_MATH_SEGMENT_KERNELS_H
#define RDNA_MATH_SEGMENT_KERNELS_H

#include <stdint.h>

enum { SEGMENT_THREADS = 256, SEGMENT_CHUNK = 32 };

enum segment_op { SEGMENT_ADD, SEGMENT_PROD, SEGMENT_MIN, SEGMENT_MAX, SEGMENT_MEAN, SEGMENT_LAST };

/* Accumulators are f32 for f32, f16 and bf16, f64 for f64, 64-bit integers for the others. |include_self|: what dst
 * holds is combined too. MEAN divides by the number of rows, plus one with |include_self|; integers are rounded towards
 * minus infinity. A NaN stays a NaN. */
struct segment_args {
  const uint32_t *keys;   /* (n): places, ascending; entries of |rows|, which may be anywhere, are skipped */
  const uint32_t *places; /* (n): which row of src each key belongs to; NULL where src is parts */
  const void *src;        /* (outer, src_rows, inner); or parts, (n, outer * inner) of accumulators */
  const uint32_t *counts; /* (n): rows that each part combines; 0 for a link, 2' above */
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
