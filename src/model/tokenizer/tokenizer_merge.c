#include <stdlib.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

void rdna__merger_deinit(rdna__merger *merger) {
  free(merger->symbols);
  free(merger->heap);
  free(merger->unused_split);
  *merger = (rdna__merger){0};
}

rdna_status rdna__merger_add_symbol(rdna__merger *merger, uint32_t start, uint32_t size, int32_t id) {
  if (merger->symbol_count == merger->symbol_capacity) {
    size_t capacity = merger->symbol_capacity ? merger->symbol_capacity * 2 : 64;
    rdna__symbol *grown = realloc(merger->symbols, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu symbols of a text", capacity);
    merger->symbols = grown;
    merger->symbol_capacity = capacity;
  }
  int32_t index = (int32_t)merger->symbol_count++;
  merger->symbols[index] = (rdna__symbol){start, size, index - 1, -1, id};
  if (index > 0) merger->symbols[index - 1].next = index;
  return RDNA_OK;
}

static rdna_status push(rdna__merger *merger, rdna__merge_candidate candidate) {
  if (merger->heap_count == merger->heap_capacity) {
    size_t capacity = merger->heap_capacity ? merger->heap_capacity * 2 : 64;
    rdna__merge_candidate *grown = realloc(merger->heap, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu merges of a text", capacity);
    merger->heap = grown;
    merger->heap_capacity = capacity;
  }
  rdna__merge_candidate *heap = merger->heap;
  size_t i = merger->heap_count++;
  for (; i > 0 && heap[(i - 1) / 2].order > candidate.order; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = candidate;
  return RDNA_OK;
}

static rdna__merge_candidate pop(rdna__merger *merger) {
  rdna__merge_candidate *heap = merger->heap, best = heap[0], last = heap[--merger->heap_count];
  size_t count = merger->heap_count, i = 0;
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= count) break;
    if (child + 1 < count && heap[child + 1].order < heap[child].order) child++;
    if (heap[child].order >= last.order) break;
    heap[i] = heap[child];
    i = child;
  }
  if (count) heap[i] = last;
  return best;
}

/* Puts the pair of |left| and its right neighbour on the heap when the rule takes it. */
static rdna_status consider(rdna__merger *merger, rdna__merge_rule rule, int32_t left) {
  if (left < 0 || merger->symbols[left].next < 0) return RDNA_OK;
  const rdna__symbol *a = &merger->symbols[left], *b = &merger->symbols[a->next];
  uint32_t priority;
  int32_t id;
  if (!rule(merger, a, b, &priority, &id)) return RDNA_OK;
  return push(merger, (rdna__merge_candidate){(uint64_t)priority << 32 | (uint32_t)left, a->size, b->size, id});
}

rdna_status rdna__merger_run(rdna__merger *merger, rdna__merge_rule rule) {
  merger->heap_count = 0;
  for (size_t i = 0; i < merger->symbol_count; i++) RDNA_TRY(consider(merger, rule, (int32_t)i));
  while (merger->heap_count) {
    rdna__merge_candidate best = pop(merger);
    rdna__symbol *left = &merger->symbols[(uint32_t)best.order];
    if (left->size != best.left_size || left->next < 0) continue; /* the pair was since torn apart */
    rdna__symbol *right = &merger->symbols[left->next];
    if (right->size != best.right_size) continue;
    if (merger->unused_split && merger->tokenizer->types[best.id] == RDNA_TOKEN_TYPE_UNUSED)
      merger->unused_split[best.id] = left->size;
    left->size += right->size;
    left->id = best.id;
    left->next = right->next;
    right->size = 0;
    right->next = -1;
    int32_t index = (int32_t)(left - merger->symbols);
    if (left->next >= 0) merger->symbols[left->next].previous = index;
    RDNA_TRY(consider(merger, rule, left->previous));
    RDNA_TRY(consider(merger, rule, index));
  }
  return RDNA_OK;
}
