/* Running sums, products and extremes along a dimension. The order of operations depends on the shape, the wave's width
 * and where in 16 bytes rows begin alone. */
#ifndef RDNA_MATH_SCAN_KERNELS_H
#define RDNA_MATH_SCAN_KERNELS_H

#include <stdint.h>

enum {
  SCAN_THREADS = 256,
  SCAN_AHEAD = 3 /* vectors of a lane in flight */
};

/* out(o, i, k) = x(o, 0, k) op … op x(o, i, k). Kept in f32, f64 for f64, i64 for integers, which go around.
 * inner 1: a wave takes |rows| rows, or, when |rows| is 1, a segment of one, or with |groups| a group takes a row. With
 * |totals| it writes only what the segment comes to; with |carry| it begins with carry(o, 0) op … op carry(o, segment -
 * 1). Groups take units in turn, so any grid is right. A thread takes a column otherwise, and segments is 1. */
struct scan_args {
  const void *x;     /* (outer, n, inner) */
  void *out;         /* (outer, n, inner); may be x */
  void *totals;      /* (outer, segments) of what is kept, or NULL; with |rows| 1 */
  const void *carry; /* (outer, segments), the totals, or NULL; with |rows| 1 */
  int64_t outer, n, inner;
  int64_t segment;         /* values of each but the last; below 2^30, as are the values of |rows| rows */
  uint32_t segments, rows; /* of a row; of a wave */
  uint32_t groups;         /* 0 or 1, with |rows| and |segments| 1, without |totals| and |carry| */
  uint32_t units;          /* for inner 1: outer / rows, rounded up, times segments; 0 if n is 0 */
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
