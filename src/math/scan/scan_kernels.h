/* Running sums, products and extremes along a dimension. The order of operations depends on the shape and the wave's
 * width alone. */
#ifndef RDNA_MATH_SCAN_KERNELS_H
#define RDNA_MATH_SCAN_KERNELS_H

#include <stdint.h>

enum { SCAN_THREADS = 256 };

/* out(o, i, k) = x(o, 0, k) op … op x(o, i, k). Kept in f32, f64 for f64, i64 for integers, which go around.
 * inner 1: a group takes a segment of a row. With |totals| it writes only what the segment comes to; with |carry| it
 * begins with carry(o, segment - 1). A thread takes a column otherwise, and segments is 1. */
struct scan_args {
  const void *x;     /* (outer, n, inner) */
  void *out;         /* (outer, n, inner) */
  void *totals;      /* (outer, segments) of what is kept, or NULL */
  const void *carry; /* (outer, segments), inclusive, or NULL */
  int64_t outer, n, inner;
  int64_t segments, segment; /* values of each but the last, a multiple of 8 */
};

#define RDNA_SCAN_TYPES_(X, op)                                        \
  X(scan_##op##_f32, struct scan_args, SCAN_THREADS, rdna__scan_case)  \
  X(scan_##op##_f16, struct scan_args, SCAN_THREADS, rdna__scan_case)  \
  X(scan_##op##_bf16, struct scan_args, SCAN_THREADS, rdna__scan_case) \
  X(scan_##op##_f64, struct scan_args, SCAN_THREADS, rdna__scan_case)  \
  X(scan_##op##_i32, struct scan_args, SCAN_THREADS, rdna__scan_case)  \
  X(scan_##op##_i64, struct scan_args, SCAN_THREADS, rdna__scan_case)
#define RDNA_SCAN_KERNELS(X)                                             \
  RDNA_SCAN_TYPES_(X, sum)                                               \
  RDNA_SCAN_TYPES_(X, prod)                                              \
  RDNA_SCAN_TYPES_(X, max)                                               \
  RDNA_SCAN_TYPES_(X, min)                                               \
  X(scan_logsumexp_f32, struct scan_args, SCAN_THREADS, rdna__scan_case) \
  X(scan_logsumexp_f16, struct scan_args, SCAN_THREADS, rdna__scan_case) \
  X(scan_logsumexp_bf16, struct scan_args, SCAN_THREADS, rdna__scan_case)

#endif
