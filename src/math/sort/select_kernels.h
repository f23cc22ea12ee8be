/* The k values of each row that come first in an order, without sorting the row: by radix, from the highest digit down.
 *
 * A value's digits are those of its key and then those of its place, so that no two are equal. Launch r reads the
 * digits that launch r - 1 counted, finds in which of them the k-th value is, takes what comes before it, and counts
 * the next digit of what has this one. As soon as few enough are left they are copied, and later launches read the
 * copy: commonly x is read twice. What is taken lies in any order. */
#ifndef RDNA_MATH_SELECT_KERNELS_H
#define RDNA_MATH_SELECT_KERNELS_H

#include <stdint.h>

#include "math/sort/sort_order.h"

enum { SELECT_THREADS = 256, SELECT_DIGITS = 256, SELECT_TILE = 8 * SELECT_THREADS };

/* What is known of the k-th value after some digits. */
struct select_state {
  uint64_t key;   /* the digits of its key */
  uint32_t place; /* the digits of its place */
  uint32_t need;  /* how many values with these digits are among the k */
  uint32_t left;  /* how many values with these digits were copied; 0 when none, as there are too many */
  uint32_t unused;
};

struct select_args {
  const void *x;               /* (rows, n) */
  uint32_t *counts;            /* (digits, rows, SELECT_DIGITS), 0 before the first launch */
  struct select_state *states; /* (digits, rows): after so many digits; the first row of them is not used */
  uint32_t *taken;             /* (rows, 2): values taken, values copied; 0 before the first launch */
  void *left_values;           /* (rows, room) */
  uint32_t *left_places;       /* (rows, room) */
  void *values;                /* (rows, k); (rows, 1) when |only_kth| */
  uint32_t *places;            /* likewise */
  int64_t rows;
  uint32_t n, k, room; /* n below 2^31 */
  uint32_t parts;      /* work-groups for each row */
  uint32_t digit, digits,
      key_digits;    /* the launch, 0 for select_begin, else to |digits|; of 8 bits each; those of keys */
  uint32_t only_kth; /* take the last of the k alone */
  struct sort_order order;
};

#define RDNA_SELECT_BEGIN_KERNELS_(X)                                       \
  X(select_begin_8, struct select_args, SELECT_THREADS, rdna__select_case)  \
  X(select_begin_16, struct select_args, SELECT_THREADS, rdna__select_case) \
  X(select_begin_32, struct select_args, SELECT_THREADS, rdna__select_case) \
  X(select_begin_64, struct select_args, SELECT_THREADS, rdna__select_case)
#define RDNA_SELECT_KERNELS(X)                                        \
  RDNA_SELECT_BEGIN_KERNELS_(X)                                       \
  X(select_8, struct select_args, SELECT_THREADS, rdna__select_case)  \
  X(select_16, struct select_args, SELECT_THREADS, rdna__select_case) \
  X(select_32, struct select_args, SELECT_THREADS, rdna__select_case) \
  X(select_64, struct select_args, SELECT_THREADS, rdna__select_case)

enum select_class { SELECT_NOT, SELECT_TAKE, SELECT_LEFT };
/* What the value with this key and place is after a->digit digits, given the state then. */
RDNA_SCALAR enum select_class select_classify(const struct select_args *a, const struct select_state *s, uint64_t key,
                                              uint32_t place) {
  uint64_t mine, wanted;
  if (a->digit == 0) return SELECT_LEFT;
  if (a->digit <= a->key_digits) {
    mine = key >> 8 * (a->key_digits - a->digit), wanted = s->key;
  } else {
    mine = place >> 8 * (a->digits - a->digit), wanted = s->place;
    if (key != s->key) return SELECT_NOT;
  }
  if (mine == wanted) return a->digit == a->digits ? SELECT_TAKE : SELECT_LEFT;
  return mine >> 8 == wanted >> 8 && mine < wanted && !a->only_kth ? SELECT_TAKE : SELECT_NOT;
}
/* The digit that this launch counts. */
RDNA_SCALAR uint32_t select_digit(const struct select_args *a, uint64_t key, uint32_t place) {
  if (a->digit < a->key_digits) return (uint32_t)(key >> 8 * (a->key_digits - 1 - a->digit)) & 0xff;
  return place >> 8 * (a->digits - 1 - a->digit) & 0xff;
}
/* The state after one digit more, |of_digit| values having it and |before| a lower one. */
RDNA_SCALAR struct select_state select_next(const struct select_args *a, struct select_state s, uint32_t digit,
                                            uint32_t of_digit, uint32_t before) {
  if (a->digit <= a->key_digits) {
    s.key = s.key << 8 | digit;
  } else {
    s.place = s.place << 8 | digit;
  }
  s.need -= before;
  if (s.left == 0 && of_digit <= a->room) s.left = of_digit;
  return s;
}

#endif
