/* For case makers: sequences of random lengths in a batch of tokens, and outputs that have a row for each token. */
#ifndef RDNA_MATH_RECURRENT_SEQUENCES_CASE_H
#define RDNA_MATH_RECURRENT_SEQUENCES_CASE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/recurrent/sequences.h"

/* Picks a batch: 0 a prompt, 1 a step of decoding, 2 nothing, later ones mixed, with sequences of no tokens and rows of
 * no sequence. Lengths are up to |longest|. */
static inline struct sequences case_sequences(rdna__random *random, int n, int32_t longest) {
  struct sequences s = {.count = (int32_t)rdna__random_range(random, 1, 5)};
  if (n == 0) s.count = 1;
  if (n == 2) s.count = 0;
  s.tokens = n == 0 ? longest : n == 1 ? s.count : 2 + (int32_t)rdna__random_below(random, (uint64_t)longest * 2);
  s.slot_count = s.count + (int32_t)rdna__random_below(random, 3);
  return s;
}

/* Adds the sequences' starts and slots, of which one in six does not exist. |offset|: of struct sequences in the
 * arguments. Returns the starts, or NULL without memory. */
static inline const int32_t *case_add_sequences(rdna__kernel_case *c, rdna__random *random, int n,
                                                const struct sequences *s, int32_t longest, size_t offset) {
  int32_t *starts =
      rdna__case_add(c, RDNA__IN, RDNA_I32, s->count + 1, (uint32_t)(offset + offsetof(struct sequences, starts)));
  int32_t *slots =
      rdna__case_add(c, RDNA__IN, RDNA_I32, s->count, (uint32_t)(offset + offsetof(struct sequences, slots)));
  if (!starts || !slots) return NULL;
  starts[0] = n > 2 ? (int32_t)rdna__random_below(random, 2) : 0;
  for (int32_t i = 0; i < s->count; i++) {
    int32_t length = n == 1 ? 1 : n == 0 ? longest : (int32_t)rdna__random_below(random, (uint64_t)longest);
    if (rdna__random_below(random, 8) == 0 && n > 2) length = 0;
    starts[i + 1] = starts[i] + length > s->tokens ? s->tokens : starts[i] + length;
    slots[i] = s->slot_count - 1 - i;
    if (n > 2 && rdna__random_below(random, 6) == 0) slots[i] = rdna__random_below(random, 2) ? -1 : s->slot_count;
  }
  return starts;
}

/* Adds an output of |span| values of which nothing may be written but for what case_written says. */
static inline rdna__case_buffer *case_add_unwritten(rdna__kernel_case *c, rdna_dtype dtype, int64_t span,
                                                    size_t offset) {
  if (!rdna__case_add(c, RDNA__OUT, dtype, span, (uint32_t)offset)) return NULL;
  rdna__case_buffer *buffer = &c->buffers[c->buffer_count - 1];
  buffer->untouched = malloc((size_t)span + 1);
  if (!buffer->untouched) return NULL;
  memset(buffer->untouched, 1, (size_t)span);
  return buffer;
}
static inline void case_written(rdna__case_buffer *buffer, int64_t at, int64_t count) {
  memset(buffer->untouched + at, 0, (size_t)count);
}

#endif
