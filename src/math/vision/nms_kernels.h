/* Non-maximum suppression of n boxes, which the host sorted by their scores. It goes in chunks, since each box decides
 * on all behind it, of which there may be many:
 *
 *     nms_boxes    once: the boxes in their order, in the type that is computed in
 *     nms_pairs    which boxes of a chunk overlap which: a bit for each pair, 2 MB
 *     nms_choose   one group goes through the chunk's bits, 32 boxes at a time, and says which are kept
 *     nms_later    boxes behind the chunk that overlap one it kept are marked
 *
 * Bit b of word (w, i) says that box i covers box 32 w + b. nms_choose goes through tiles of 32 boxes in order, with a
 * thread for each word w; at tile t
 *
 *     w < t     is decided
 *     w = t     the tile's boxes decide on each other: one thread goes through them in order
 *     w > t     loses the boxes that the kept ones of the tile cover
 *
 * Work is n * chunk / 2 pairs in chunks, and n for each box that is kept. */
#ifndef RDNA_MATH_VISION_NMS_KERNELS_H
#define RDNA_MATH_VISION_NMS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/scalar.h"

enum {
  NMS_THREADS = 256,
  NMS_TILE = 32,
  NMS_CHUNK = 4096,
  NMS_WORDS = NMS_CHUNK / NMS_TILE /* of a box of a chunk: the threads of nms_choose */
};

struct nms_boxes_args {
  const void *boxes;    /* (n, 4) */
  const int64_t *order; /* (n): the box with the highest score first */
  void *sorted;         /* (n, 4) of f32, or f64 from f64 */
  int64_t stride[2];
  uint32_t n;
};

struct nms_pairs_args {
  const void *sorted;
  uint32_t *pairs;       /* (words, NMS_CHUNK) */
  uint32_t first, count; /* the chunk */
  float threshold;       /* the largest that is not above threshold_f64 */
  double threshold_f64;
};

struct nms_choose_args {
  const uint32_t *pairs;
  const uint8_t *covered; /* (n): 1 where an earlier chunk decided so */
  const int64_t *order;   /* (n) */
  int64_t *kept;          /* (n) */
  uint32_t *places;       /* (n): where the kept ones are in the order */
  uint32_t *range;        /* 2: of |kept|, from where to where are this chunk's; the second is where it begins */
  int64_t *total;         /* range[1] */
  uint32_t first, count;
};

struct nms_later_args {
  const void *sorted;
  const uint32_t *places, *range;
  uint8_t *covered;
  uint32_t first, n; /* boxes to look at: [first, n) */
  float threshold;
  double threshold_f64;
};

#define NMS_IN_(real, suffix)                                                             \
  RDNA_SCALAR real nms_most_##suffix(real a, real b) { return a > b || a != a ? a : b; }  \
  RDNA_SCALAR real nms_least_##suffix(real a, real b) { return a < b || a != a ? a : b; } \
  /* Whether the intersection of two boxes is more than |threshold| of their union. */    \
  RDNA_SCALAR bool nms_covers_##suffix(const real *a, const real *b, real threshold) {    \
    real wide = nms_least_##suffix(a[2], b[2]) - nms_most_##suffix(a[0], b[0]);           \
    real high = nms_least_##suffix(a[3], b[3]) - nms_most_##suffix(a[1], b[1]);           \
    real both = nms_most_##suffix(wide, 0) * nms_most_##suffix(high, 0);                  \
    real all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;      \
    return both / all > threshold;                                                        \
  }
NMS_IN_(float, f32)
NMS_IN_(double, f64)

#define RDNA_NMS_KERNELS(X)                                                   \
  X(nms_boxes_f32, struct nms_boxes_args, NMS_THREADS, rdna__nms_boxes_case)  \
  X(nms_boxes_f16, struct nms_boxes_args, NMS_THREADS, rdna__nms_boxes_case)  \
  X(nms_boxes_bf16, struct nms_boxes_args, NMS_THREADS, rdna__nms_boxes_case) \
  X(nms_boxes_f64, struct nms_boxes_args, NMS_THREADS, rdna__nms_boxes_case)  \
  X(nms_pairs_f32, struct nms_pairs_args, NMS_THREADS, rdna__nms_pairs_case)  \
  X(nms_pairs_f64, struct nms_pairs_args, NMS_THREADS, rdna__nms_pairs_case)  \
  X(nms_choose, struct nms_choose_args, NMS_WORDS, rdna__nms_choose_case)     \
  X(nms_later_f32, struct nms_later_args, NMS_THREADS, rdna__nms_later_case)  \
  X(nms_later_f64, struct nms_later_args, NMS_THREADS, rdna__nms_later_case)

#endif
