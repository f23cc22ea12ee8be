/* What both sides of an attention kernel compute for one query and one key, on the device and on the host. */
#ifndef RDNA_MATH_FLASH_MATH_H
#define RDNA_MATH_FLASH_MATH_H

#include "kernel/scalar.h"
#include "math/attention/flash_kernels.h"
#include "math/random/random_math.h"

#define FLASH_LOG2_E 1.4426950408889634f
#define FLASH_LN_2 0.6931471805599453f

/* One sequence and one head of it. */
struct flash_sequence {
  int32_t q_row, k_row; /* first rows */
  int32_t sq, sk, shift;
};

RDNA_SCALAR struct flash_sequence flash_sequence_of(const struct flash_args *a, int32_t batch) {
  struct flash_sequence s = {0, 0, a->sq, a->sk, 0};
  if (a->q_starts) {
    s.q_row = a->q_starts[batch];
    s.k_row = a->k_starts[batch];
    s.sq = a->q_starts[batch + 1] - a->q_starts[batch];
    s.sk = a->k_starts[batch + 1] - a->k_starts[batch];
  }
  s.shift = a->bottom_right ? s.sk - s.sq : 0;
  return s;
}

/* The first and last key that query |i| sees; none when last < first. */
RDNA_SCALAR int32_t flash_first_key(const struct flash_args *a, const struct flash_sequence *s, int32_t i) {
  int64_t first = (int64_t)i + s->shift - a->left;
  return a->left == FLASH_UNLIMITED || first < 0 ? 0 : first > s->sk ? s->sk : (int32_t)first;
}
RDNA_SCALAR int32_t flash_last_key(const struct flash_args *a, const struct flash_sequence *s, int32_t i) {
  int64_t last = (int64_t)i + s->shift + a->right;
  return a->right == FLASH_UNLIMITED || last >= s->sk ? s->sk - 1 : last < -1 ? -1 : (int32_t)last;
}
/* The first and last query that sees key |j|. */
RDNA_SCALAR int32_t flash_first_query(const struct flash_args *a, const struct flash_sequence *s, int32_t j) {
  int64_t first = (int64_t)j - s->shift - a->right;
  return a->right == FLASH_UNLIMITED || first < 0 ? 0 : first > s->sq ? s->sq : (int32_t)first;
}
RDNA_SCALAR int32_t flash_last_query(const struct flash_args *a, const struct flash_sequence *s, int32_t j) {
  int64_t last = (int64_t)j - s->shift + a->left;
  return a->left == FLASH_UNLIMITED || last >= s->sq ? s->sq - 1 : last < -1 ? -1 : (int32_t)last;
}

/* The words of the numbers for keys 4 |quad| .. + 3 of a query. */
RDNA_SCALAR struct random_words flash_dropout_words(const struct flash_args *a, int32_t batch, int32_t head, int32_t i,
                                                    int32_t quad) {
  uint64_t row = ((uint64_t)batch * (uint64_t)a->heads + (uint64_t)head) * (uint64_t)a->sq + (uint64_t)i;
  uint64_t quads = ((uint64_t)a->sk + 3) / 4;
  return random_block(a->seed, a->offset, row * quads + (uint64_t)quad);
}

#endif
