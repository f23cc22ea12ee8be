#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/allocator_state.h"
#include "device/device.h"

enum { TOP_HOLDERS = 3, HOLDERS_TRACKED = 64 };

static const char *in_words(uint64_t bytes, char text[32]) {
  if (bytes >= UINT64_C(1) << 30)
    snprintf(text, 32, "%.2f GiB", (double)bytes * 0x1p-30);
  else if (bytes >= UINT64_C(1) << 20)
    snprintf(text, 32, "%.2f MiB", (double)bytes * 0x1p-20);
  else
    snprintf(text, 32, "%llu bytes", (unsigned long long)bytes);
  return text;
}

typedef struct holding {
  const char *holder;
  uint64_t bytes, blocks;
} holding;

static int by_bytes(const void *a, const void *b) {
  uint64_t x = ((const holding *)a)->bytes, y = ((const holding *)b)->bytes;
  return (x < y) - (x > y);
}

void rdna__allocator_holders(const rdna__allocator *allocator, char *text, size_t size) {
  holding holdings[HOLDERS_TRACKED];
  int count = 0;
  for (rdna__segment *segment = allocator->oldest; segment; segment = segment->next)
    for (rdna__block *block = segment->first; block; block = block->after) {
      if (block->state != RDNA__BLOCK_LIVE) continue;
      const char *holder = block->holder ? block->holder : "unnamed";
      int i = 0;
      while (i < count && strcmp(holdings[i].holder, holder) != 0) i++;
      if (i == count) {
        if (count == HOLDERS_TRACKED) continue;
        holdings[count++] = (holding){.holder = holder};
      }
      holdings[i].bytes += block->size;
      holdings[i].blocks++;
    }
  qsort(holdings, (size_t)count, sizeof *holdings, by_bytes);
  snprintf(text, size, "none");
  size_t used = 0;
  char bytes[32];
  for (int i = 0; i < count && i < TOP_HOLDERS && used < size; i++)
    used +=
        (size_t)snprintf(text + used, size - used, "%s'%.64s' %s in %llu block(s)", i ? ", " : "", holdings[i].holder,
                         in_words(holdings[i].bytes, bytes), (unsigned long long)holdings[i].blocks);
}

rdna_status rdna__allocator_out_of_memory(rdna__allocator *allocator, size_t size, const char *holder) {
  rdna_device *device = allocator->device;
  char asked[32], free_text[32], total_text[32], allocated[32], cached[32], limit[32], holders[512];
  uint64_t free_bytes = 0, total = device->info.total_memory;
  bool known = device->driver->memory_info(device->handle, &free_bytes, &total) == RDNA_OK;
  pthread_mutex_lock(&allocator->lock);
  rdna_memory_stats stats = allocator->stats;
  uint64_t cap = allocator->limit;
  rdna__allocator_holders(allocator, holders, sizeof holders);
  pthread_mutex_unlock(&allocator->lock);
  return rdna__fail(
      RDNA_OUT_OF_MEMORY,
      "tried to allocate %s for '%.64s' on %s (%s); the device has %s free of %s; this process holds %s in %llu live "
      "block(s) and %s cached, with a cap of %s; the largest holders are %s; free some of them, ask for less, "
      "or raise the cap",
      in_words(size, asked), holder ? holder : "unnamed", device->label, device->info.name,
      known ? in_words(free_bytes, free_text) : "an unknown amount", in_words(total, total_text),
      in_words(stats.allocated, allocated), (unsigned long long)stats.blocks,
      in_words(stats.reserved - stats.allocated, cached), in_words(cap, limit), holders);
}

rdna_status rdna__allocator_bad_pointer(const rdna__allocator *allocator, const void *data, const char *verb) {
  const char *label = allocator->device->label;
  for (rdna__segment *segment = allocator->oldest; segment; segment = segment->next) {
    if ((uintptr_t)data - (uintptr_t)segment->data >= segment->size) continue;
    rdna__block *block = segment->first;
    while ((uintptr_t)data - (uintptr_t)block->data >= block->size) block = block->after;
    size_t offset = (size_t)((uintptr_t)data - (uintptr_t)block->data);
    if (block->state == RDNA__BLOCK_LIVE)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%p cannot be %s: it lies %zu bytes inside a block of %s ('%.64s'); use the "
                        "block's start, %p",
                        data, verb, offset, label, block->holder ? block->holder : "unnamed", (void *)block->data);
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%p cannot be %s: it was freed already on %s", data, verb, label);
  }
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%p cannot be %s: %s never allocated it, or gave it back already", data,
                    verb, label);
}

void rdna__allocator_get_stats(rdna__allocator *allocator, rdna_memory_stats *out_stats) {
  pthread_mutex_lock(&allocator->lock);
  *out_stats = allocator->stats;
  uint64_t largest = 0, cached = 0;
  for (rdna__segment *segment = allocator->oldest; segment; segment = segment->next)
    for (rdna__block *block = segment->first; block; block = block->after) {
      if (block->state != RDNA__BLOCK_CACHED) continue;
      cached += block->size;
      if (block->size > largest) largest = block->size;
    }
  pthread_mutex_unlock(&allocator->lock);
  out_stats->fragmentation = cached ? 1 - (double)largest / (double)cached : 0;
}

void rdna__allocator_reset_peaks(rdna__allocator *allocator) {
  rdna_memory_stats *stats = &allocator->stats;
  pthread_mutex_lock(&allocator->lock);
  stats->peak_allocated = stats->allocated;
  stats->peak_requested = stats->requested;
  stats->peak_reserved = stats->reserved;
  stats->peak_blocks = stats->blocks;
  stats->peak_segment_count = stats->segment_count;
  pthread_mutex_unlock(&allocator->lock);
}

void rdna__allocator_reset_counts(rdna__allocator *allocator) {
  rdna_memory_stats *stats = &allocator->stats;
  pthread_mutex_lock(&allocator->lock);
  stats->alloc_count = stats->free_count = 0;
  stats->alloc_bytes = stats->free_bytes = 0;
  stats->driver_allocs = stats->driver_frees = 0;
  stats->retries = stats->ooms = 0;
  pthread_mutex_unlock(&allocator->lock);
}

static json_t *describe_block(const rdna__block *block) {
  static const char *const states[] = {"live", "cached", "pending", "taken"};
  json_t *object = json_pack("{s:I, s:I, s:s}", "address", (json_int_t)(uintptr_t)block->data, "size",
                             (json_int_t)block->size, "state", states[block->state]);
  if (!object || block->state != RDNA__BLOCK_LIVE) return object;
  int failed = json_object_set_new(object, "requested", json_integer((json_int_t)block->requested));
  /* a holder that is not UTF-8 is left out */
  if (block->holder && json_object_set_new(object, "holder", json_string(block->holder)) != 0) return object;
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static json_t *describe_segment(const rdna__segment *segment) {
  static const char *const kinds[RDNA__SEGMENT_KINDS] = {"small", "medium", "large"};
  json_t *blocks = json_array();
  for (const rdna__block *block = segment->first; block && blocks; block = block->after)
    if (json_array_append_new(blocks, describe_block(block)) != 0) {
      json_decref(blocks);
      blocks = NULL;
    }
  if (!blocks) return NULL;
  return json_pack("{s:I, s:I, s:i, s:s, s:o}", "address", (json_int_t)(uintptr_t)segment->data, "size",
                   (json_int_t)segment->size, "stream", segment->stream->id, "kind", kinds[segment->kind], "blocks",
                   blocks);
}

rdna_status rdna__allocator_snapshot(rdna__allocator *allocator, char **out_json) {
  pthread_mutex_lock(&allocator->lock);
  const rdna_memory_stats *stats = &allocator->stats;
  json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "device", allocator->device->label, "name",
                           allocator->device->info.name, "allocated", (json_int_t)stats->allocated, "requested",
                           (json_int_t)stats->requested, "reserved", (json_int_t)stats->reserved, "limit",
                           (json_int_t)allocator->limit);
  json_t *segments = root ? json_array() : NULL;
  int failed = !root || !segments || json_object_set_new(root, "segments", segments) != 0;
  for (rdna__segment *segment = allocator->oldest; segment && !failed; segment = segment->next)
    failed = json_array_append_new(segments, describe_segment(segment));
  pthread_mutex_unlock(&allocator->lock);
  *out_json = failed ? NULL : json_dumps(root, JSON_INDENT(1));
  json_decref(root);
  return *out_json ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a snapshot ran out");
}
