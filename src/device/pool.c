#include "device/pool.h"

#include <stdlib.h>

/* Up to 31 units of 512 bytes each size has a bin of its own; above, a power of two has 16 bins, by the four bits that
 * follow the size's leading one:
 *
 *     units   1   2 … 31   32-33   34-35 … 62-63   64-67 …
 *     bin     1   2 … 31     32      33  …   47      48  … */
static int bin_of(size_t size) {
  uint64_t units = size / RDNA__BLOCK_ROUND;
  if (units < 16) return (int)units;
  int exponent = 63 - __builtin_clzll(units);
  int bin = (exponent - 3) * 16 + (int)(units >> (exponent - 4) & 15);
  return bin < RDNA__BIN_COUNT ? bin : RDNA__BIN_COUNT - 1;
}

static rdna__block *smallest_fit(rdna__block *head, size_t size) {
  /* the depth bounds the time; a bin's sizes differ by a sixteenth at most, so a missed best fit costs little */
  enum { DEPTH = 64 };
  rdna__block *best = NULL;
  int seen = 0;
  for (rdna__block *block = head; block && (seen < DEPTH || !best); block = block->next, seen++) {
    if (block->size < size || (best && block->size >= best->size)) continue;
    best = block;
    if (block->size == size) break;
  }
  return best;
}

rdna__block *rdna__bins_find(const rdna__bins *bins, size_t size) {
  int bin = bin_of(size);
  rdna__block *block = smallest_fit(bins->heads[bin], size);
  if (block) return block;
  int word = ++bin / 64;
  uint64_t bits = bin < RDNA__BIN_COUNT ? bins->used[word] & ~UINT64_C(0) << bin % 64 : 0;
  while (!bits && ++word < RDNA__BIN_COUNT / 64) bits = bins->used[word];
  return bits ? smallest_fit(bins->heads[word * 64 + __builtin_ctzll(bits)], size) : NULL;
}

void rdna__bins_insert(rdna__bins *bins, rdna__block *block) {
  int bin = bin_of(block->size);
  block->state = RDNA__BLOCK_CACHED;
  block->previous = NULL;
  block->next = bins->heads[bin];
  if (block->next) block->next->previous = block;
  bins->heads[bin] = block;
  bins->used[bin / 64] |= UINT64_C(1) << bin % 64;
}

void rdna__bins_remove(rdna__bins *bins, rdna__block *block) {
  int bin = bin_of(block->size);
  block->state = RDNA__BLOCK_TAKEN;
  if (block->next) block->next->previous = block->previous;
  if (block->previous)
    block->previous->next = block->next;
  else if (!(bins->heads[bin] = block->next))
    bins->used[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  block->next = block->previous = NULL;
}

rdna__block *rdna__bins_largest(const rdna__bins *bins) {
  for (int word = RDNA__BIN_COUNT / 64 - 1; word >= 0; word--) {
    if (!bins->used[word]) continue;
    rdna__block *best = bins->heads[word * 64 + 63 - __builtin_clzll(bins->used[word])];
    for (rdna__block *block = best->next; block; block = block->next)
      if (block->size > best->size) best = block;
    return best;
  }
  return NULL;
}

rdna__block *rdna__block_split(rdna__block *block, size_t size) {
  if (block->size <= size) return NULL;
  rdna__block *rest = calloc(1, sizeof *rest);
  if (!rest) return NULL;
  *rest = (rdna__block){.segment = block->segment,
                        .data = block->data + size,
                        .size = block->size - size,
                        .state = RDNA__BLOCK_TAKEN,
                        .before = block,
                        .after = block->after};
  if (rest->after) rest->after->before = rest;
  block->after = rest;
  block->size = size;
  return rest;
}

static void absorb_after(rdna__block *block) {
  rdna__block *gone = block->after;
  block->size += gone->size;
  block->after = gone->after;
  if (block->after) block->after->before = block;
  free(gone);
}

rdna__block *rdna__block_join(rdna__bins *bins, rdna__block *block) {
  if (block->after && block->after->state == RDNA__BLOCK_CACHED) {
    rdna__bins_remove(bins, block->after);
    absorb_after(block);
  }
  if (block->before && block->before->state == RDNA__BLOCK_CACHED) {
    block = block->before;
    rdna__bins_remove(bins, block);
    absorb_after(block);
  }
  return block;
}

rdna__segment *rdna__segment_create(void *data, size_t size, rdna__segment_kind kind, rdna_stream *stream) {
  rdna__segment *segment = calloc(1, sizeof *segment);
  rdna__block *block = calloc(1, sizeof *block);
  if (!segment || !block) {
    free(segment);
    free(block);
    return NULL;
  }
  *block = (rdna__block){.segment = segment, .data = data, .size = size, .state = RDNA__BLOCK_TAKEN};
  *segment = (rdna__segment){.stream = stream, .data = data, .size = size, .kind = kind, .first = block};
  return segment;
}

void rdna__segment_destroy(rdna__segment *segment) {
  for (rdna__block *block = segment->first, *after; block; block = after) {
    after = block->after;
    free(block->uses);
    free(block);
  }
  free(segment);
}

static size_t slot_of(const rdna__block_table *table, const void *data) {
  /* the low 9 bits of a block's address are 0; Fibonacci hashing spreads the rest */
  return (size_t)((uint64_t)(uintptr_t)data * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (table->capacity - 1);
}

bool rdna__block_table_init(rdna__block_table *table) {
  *table = (rdna__block_table){.capacity = 256};
  table->heads = calloc(table->capacity, sizeof *table->heads);
  return table->heads != NULL;
}

void rdna__block_table_deinit(rdna__block_table *table) { free(table->heads); }

static void link_block(rdna__block_table *table, rdna__block *block) {
  size_t slot = slot_of(table, block->data);
  block->next = table->heads[slot];
  table->heads[slot] = block;
}

void rdna__block_table_insert(rdna__block_table *table, rdna__block *block) {
  if (++table->count > table->capacity) {
    rdna__block_table larger = {.capacity = table->capacity * 2, .count = table->count};
    larger.heads = calloc(larger.capacity, sizeof *larger.heads);
    if (larger.heads) { /* without host memory the chains only grow longer */
      for (size_t i = 0; i < table->capacity; i++)
        for (rdna__block *moved = table->heads[i], *next; moved; moved = next) {
          next = moved->next;
          link_block(&larger, moved);
        }
      free(table->heads);
      *table = larger;
    }
  }
  link_block(table, block);
}

rdna__block *rdna__block_table_find(const rdna__block_table *table, const void *data) {
  rdna__block *block = table->heads[slot_of(table, data)];
  while (block && block->data != data) block = block->next;
  return block;
}

void rdna__block_table_remove(rdna__block_table *table, rdna__block *block) {
  rdna__block **link = &table->heads[slot_of(table, block->data)];
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  block->next = NULL;
  table->count--;
}
