/* Read by host and GPU: which rows of a batch of tokens are one sequence, and which slot its state has. */
#ifndef RDNA_MATH_RECURRENT_SEQUENCES_H
#define RDNA_MATH_RECURRENT_SEQUENCES_H

#include <stdint.h>

#include "kernel/scalar.h"

/* rdna_sequences of rdna/op/recurrent.h, as kernels get them. */
struct sequences {
  const int32_t *starts; /* (count + 1) */
  const int32_t *slots;  /* (count) */
  int32_t count, slot_count, tokens;
};

/* Tokens begin to end of a batch; |slot| is -1 for padding. */
struct sequence {
  int64_t begin, end, slot;
};

/* Returns sequence number |i|. Starts that are not as they must be give fewer tokens, never some that do not exist. */
RDNA_SCALAR struct sequence sequence_at(const struct sequences *s, int64_t i) {
  int32_t begin = s->starts[i], end = s->starts[i + 1], slot = s->slots[i];
  struct sequence one;
  one.begin = begin < 0 ? 0 : begin;
  one.end = end > s->tokens ? s->tokens : end;
  one.slot = slot < 0 || slot >= s->slot_count ? -1 : slot;
  return one;
}

#endif
