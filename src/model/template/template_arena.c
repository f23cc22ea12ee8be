/* Memory that is released all at once, and strings that grow in it. */
#include <stdlib.h>
#include <string.h>

#include "model/template/template.h"

struct tpl_block {
  tpl_block *next;
  size_t used, size; /* of |bytes| */
  _Alignas(16) char bytes[];
};

void *rdna__tpl_arena_alloc(tpl_arena *arena, size_t bytes) {
  if (bytes > arena->limit) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  tpl_block *block = arena->blocks;
  if (!block || block->size - block->used < bytes) {
    size_t size = block ? 2 * block->size : 8192;
    if (size > 1 << 20) size = 1 << 20;
    if (size < bytes) size = bytes;
    if (arena->limit - arena->used < size) size = bytes;
    if (arena->limit - arena->used < size) return NULL;
    block = malloc(sizeof *block + size);
    if (!block) return NULL;
    *block = (tpl_block){.next = arena->blocks, .size = size};
    arena->blocks = block;
    arena->used += size;
  }
  void *memory = block->bytes + block->used;
  block->used += bytes;
  return memory;
}

void rdna__tpl_arena_deinit(tpl_arena *arena) {
  while (arena->blocks) {
    tpl_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->used = 0;
}

void *rdna__tpl_alloc(tpl_run *run, size_t bytes) {
  if (run->status != RDNA_OK) return NULL;
  void *memory = rdna__tpl_arena_alloc(&run->arena, bytes);
  if (!memory)
    rdna__tpl_fail(run, RDNA_UNSUPPORTED, "the template asks for more than %d MiB of memory", TPL_MAX_MEMORY >> 20);
  return memory;
}

void rdna__tpl_append(tpl_run *run, tpl_buffer *buffer, const char *data, size_t size) {
  if (size == 0 || !rdna__tpl_spend(run, size / 64)) return;
  if (buffer->capacity - buffer->size < size) {
    size_t capacity = 2 * buffer->capacity + size + 64;
    char *grown = rdna__tpl_alloc(run, capacity);
    if (!grown) return;
    if (buffer->size) memcpy(grown, buffer->data, buffer->size);
    buffer->data = grown;
    buffer->capacity = capacity;
  }
  memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
}

void rdna__tpl_append_text(tpl_run *run, tpl_buffer *buffer, const char *text) {
  rdna__tpl_append(run, buffer, text, strlen(text));
}
