#include "device/allocator.h"

#include <stdlib.h>

#include "base/log.h"
#include "device/allocator_state.h"
#include "device/device.h"

/* Sizes in bytes. Small requests share segments of 2 MiB; medium ones share segments that grow with what is live, up to
 * 20 MiB; a large one has a segment to itself.
 *
 *     request   0 … 1 MiB          small    | a | b | c | … |    2 MiB
 *               1 … 10 MiB         medium   |  a  |   b   | … |  2 to 20 MiB
 *               above              large    |       a       |    the request, rounded up to 2 MiB
 *
 * A large segment is never split, only reused whole for a request of nearly its size: a medium block in a part of it
 * could keep all of it from being returned, and what is reserved could no longer be held near what is live. */
enum {
  SMALL_LIMIT = 1 << 20,
  MEDIUM_LIMIT = 10 << 20,
  SEGMENT_ROUND = 2 << 20,
  MEDIUM_SEGMENT = 20 << 20, /* the largest that is shared */
  LARGE_SLACK = 8,           /* a large segment may be an eighth and 2 MiB larger than the request */
};

static rdna__segment_kind kind_of(size_t size) {
  return size <= SMALL_LIMIT ? RDNA__SMALL : size <= MEDIUM_LIMIT ? RDNA__MEDIUM : RDNA__LARGE;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

static void lift(uint64_t *peak, uint64_t value) {
  if (value > *peak) *peak = value;
}

rdna_status rdna__allocator_create(rdna_device *device, rdna__allocator **out_allocator) {
  rdna__allocator *allocator = calloc(1, sizeof *allocator);
  rdna__pool *pool = calloc(1, sizeof *pool);
  if (!allocator || !pool || !rdna__block_table_init(&allocator->live)) {
    free(allocator);
    free(pool);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the allocator of %s ran out", device->label);
  }
  allocator->device = device;
  allocator->limit = device->info.total_memory;
  pthread_mutex_init(&allocator->lock, NULL);
  /* the default stream's pool inherits from streams that go away, so it must be there */
  pool->stream = device->default_stream;
  device->default_stream->pool = pool;
  allocator->pools = pool;
  *out_allocator = allocator;
  return RDNA_OK;
}

void rdna__allocator_destroy(rdna__allocator *allocator) {
  rdna_device *device = allocator->device;
  if (allocator->live.count) {
    char holders[256];
    rdna__allocator_holders(allocator, holders, sizeof holders);
    rdna__log(RDNA__LOG_WARNING, "%s closes with %zu block(s) that were never freed: %s", device->label,
              allocator->live.count, holders);
  }
  for (rdna__segment *segment = allocator->oldest, *next; segment; segment = next) {
    next = segment->next;
    for (rdna__block *block = segment->first; block; block = block->after)
      for (int i = 0; i < block->use_count; i++)
        if (block->uses[i].event) device->driver->event_destroy(device->handle, block->uses[i].event);
    if (device->driver->memory_free(device->handle, segment->data) != RDNA_OK)
      rdna__log(RDNA__LOG_WARNING, "closing %s: %s", device->label, rdna_last_error());
    rdna__segment_destroy(segment);
  }
  for (int i = 0; i < allocator->event_count; i++) device->driver->event_destroy(device->handle, allocator->events[i]);
  free(allocator->events);
  for (rdna__pool *pool = allocator->pools, *next; pool; pool = next) {
    next = pool->next;
    pool->stream->pool = NULL;
    free(pool);
  }
  rdna__block_table_deinit(&allocator->live);
  pthread_mutex_destroy(&allocator->lock);
  free(allocator);
}

/* ---- events: kept for reuse, because a vendor's event costs microseconds to make ---- */

static rdna__driver_event *get_event(rdna__allocator *allocator) {
  rdna_device *device = allocator->device;
  if (allocator->event_count) return allocator->events[--allocator->event_count];
  rdna__driver_event *event = NULL;
  return device->driver->event_create(device->handle, false, &event) == RDNA_OK ? event : NULL;
}

static void put_event(rdna__allocator *allocator, rdna__driver_event *event) {
  if (allocator->event_count == allocator->event_capacity) {
    int capacity = allocator->event_capacity ? allocator->event_capacity * 2 : 16;
    rdna__driver_event **events = realloc(allocator->events, (size_t)capacity * sizeof *events);
    if (!events) {
      allocator->device->driver->event_destroy(allocator->device->handle, event);
      return;
    }
    allocator->events = events;
    allocator->event_capacity = capacity;
  }
  allocator->events[allocator->event_count++] = event;
}

/* ---- pools; from here on the lock is held, and functions that release it for a while say so ---- */

static rdna__pool *pool_of(rdna__allocator *allocator, rdna_stream *stream) {
  if (stream->pool) return stream->pool;
  rdna__pool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->stream = stream;
  pool->next = allocator->pools;
  allocator->pools = pool;
  return stream->pool = pool;
}

static rdna__bins *bins_of_segment(const rdna__segment *segment) { return &segment->stream->pool->bins[segment->kind]; }

/* Puts a block that no stream uses any more into its pool, joined with its free neighbours. */
static void give_back(rdna__block *block) {
  free(block->uses);
  block->uses = NULL;
  rdna__bins *bins = bins_of_segment(block->segment);
  rdna__bins_insert(bins, rdna__block_join(bins, block));
}

/* Returns a free block of |pool| for |size| bytes, or NULL; leaves it in its bin. */
static rdna__block *find(const rdna__pool *pool, size_t size) {
  rdna__segment_kind kind = kind_of(size);
  rdna__block *block = rdna__bins_find(&pool->bins[kind], size);
  if (block && kind == RDNA__LARGE && block->size > size + size / LARGE_SLACK + SEGMENT_ROUND) return NULL;
  return block;
}

/* The same, and removes it from its bin. */
static rdna__block *take(rdna__pool *pool, size_t size) {
  rdna__block *block = find(pool, size);
  if (block) rdna__bins_remove(bins_of_segment(block->segment), block);
  return block;
}

/* Notes that |stream|, which is not the segment's, uses the block. False: out of host memory. */
static bool add_use(rdna__block *block, rdna_stream *stream) {
  for (int i = 0; i < block->use_count; i++)
    if (block->uses[i].stream == stream) return true;
  rdna__block_use *uses = realloc(block->uses, (size_t)(block->use_count + 1) * sizeof *uses);
  if (!uses) return false;
  block->uses = uses;
  uses[block->use_count++] = (rdna__block_use){.stream = stream};
  return true;
}

/* Records an event in each stream that uses the freed block: once it is done, that stream has finished with the block.
 * A record that fails is tried again by the next call. */
static void mark_uses(rdna__allocator *allocator, rdna__block *block) {
  rdna_device *device = allocator->device;
  for (int i = 0; i < block->use_count; i++) {
    rdna__block_use *use = &block->uses[i];
    if (use->event) continue;
    rdna__driver_event *event = get_event(allocator);
    if (event && device->driver->event_record(device->handle, event, use->stream->handle) == RDNA_OK)
      use->event = event;
    else if (event)
      put_event(allocator, event);
  }
}

static void drop_use(rdna__allocator *allocator, rdna__block *block, int i) {
  if (block->uses[i].event) put_event(allocator, block->uses[i].event);
  block->uses[i] = block->uses[--block->use_count];
}

/* Returns to their pools the pending blocks whose events are all done. */
static void reap(rdna__allocator *allocator) {
  rdna_device *device = allocator->device;
  rdna__block **link = &allocator->pending;
  while (*link) {
    rdna__block *block = *link;
    mark_uses(allocator, block);
    for (int i = block->use_count - 1; i >= 0; i--)
      if (block->uses[i].event && device->driver->event_query(device->handle, block->uses[i].event) == RDNA_OK)
        drop_use(allocator, block, i);
    if (block->use_count) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    block->next = NULL;
    give_back(block);
  }
}

/* Takes the smallest fitting free block of another stream, or returns NULL. Makes |stream| wait for what the other
 * stream has queued so far, which may still use the block. A block that is a whole segment moves to |stream| with it.
 * Part of a segment stays the other stream's, with a use by |stream|: when it is freed it is pending until |stream| has
 * finished with it, then returns to the other's pool. */
static rdna__block *borrow(rdna__allocator *allocator, rdna_stream *stream, size_t size) {
  rdna_device *device = allocator->device;
  rdna__block *best = NULL;
  /* what is recorded cannot wait for what is not, nor the other way round */
  if (rdna__stream_records(stream)) return NULL;
  for (rdna__pool *pool = allocator->pools; pool; pool = pool->next) {
    if (pool->stream == stream || rdna__stream_records(pool->stream)) continue;
    rdna__block *block = find(pool, size);
    if (block && (!best || block->size < best->size)) best = block;
  }
  rdna__driver_event *event = best ? get_event(allocator) : NULL;
  if (!event) return NULL;
  rdna_status status = device->driver->event_record(device->handle, event, best->segment->stream->handle);
  if (status == RDNA_OK) status = device->driver->stream_wait(device->handle, stream->handle, event);
  put_event(allocator, event);
  bool whole = !best->before && !best->after;
  if (status != RDNA_OK || (!whole && !add_use(best, stream))) return NULL;
  rdna__bins_remove(bins_of_segment(best->segment), best);
  if (whole) best->segment->stream = stream;
  return best;
}

/* ---- segments ---- */

static void unlink_segment(rdna__allocator *allocator, rdna__segment *segment) {
  *(segment->previous ? &segment->previous->next : &allocator->oldest) = segment->next;
  *(segment->next ? &segment->next->previous : &allocator->newest) = segment->previous;
  allocator->stats.segment_count--;
  allocator->stats.reserved -= segment->size;
}

/* Returns wholly free segments to the driver, oldest first, until at most |goal| bytes are reserved. Releases the lock
 * while it waits for the device and calls the driver: the segments leave their pools before, so that nothing that is
 * queued meanwhile can use them. While a stream records, the device cannot be waited for, and they stay. */
static rdna_status trim(rdna__allocator *allocator, uint64_t goal) {
  rdna_device *device = allocator->device;
  if (atomic_load(&device->recordings) > 0) return RDNA_OK;
  rdna__block *taken = NULL;
  uint64_t left = allocator->stats.reserved;
  for (rdna__segment *segment = allocator->oldest; segment && left > goal; segment = segment->next) {
    rdna__block *block = segment->first;
    if (block->state != RDNA__BLOCK_CACHED || block->after) continue;
    rdna__bins_remove(bins_of_segment(segment), block);
    block->next = taken;
    taken = block;
    left -= segment->size;
  }
  if (!taken) return RDNA_OK;

  pthread_mutex_unlock(&allocator->lock);
  rdna_status status = rdna_device_synchronize(device);
  uint64_t calls = 0;
  rdna__block *kept = taken; /* segments before it in the chain have been freed */
  while (kept && status == RDNA_OK) {
    calls++;
    status = device->driver->memory_free(device->handle, kept->data);
    if (status == RDNA_OK) kept = kept->next;
  }
  pthread_mutex_lock(&allocator->lock);

  allocator->stats.driver_frees += calls;
  while (taken != kept) {
    rdna__segment *segment = taken->segment;
    taken = taken->next;
    unlink_segment(allocator, segment);
    rdna__segment_destroy(segment);
  }
  for (rdna__block *next; taken; taken = next) {
    next = taken->next;
    give_back(taken);
  }
  return status;
}

/* Allocates a segment of |wanted| bytes from the driver, or of |least| where |wanted| would pass the limit. Its one
 * block is TAKEN. Releases the lock during the driver's call. */
static rdna_status add_segment(rdna__allocator *allocator, rdna_stream *stream, rdna__segment_kind kind,
                               uint64_t wanted, uint64_t least, rdna__block **out_block) {
  rdna_device *device = allocator->device;
  rdna_memory_stats *stats = &allocator->stats;
  if (stats->reserved + wanted > allocator->limit) wanted = least;
  if (stats->reserved + wanted > allocator->limit) return RDNA_OUT_OF_MEMORY;
  stats->reserved += wanted; /* before the call, so that two threads cannot pass the limit together */
  stats->driver_allocs++;

  pthread_mutex_unlock(&allocator->lock);
  void *data = NULL;
  rdna__segment *segment = NULL;
  rdna_status status = device->driver->memory_alloc(device->handle, wanted, &data);
  if (status == RDNA_OK && !(segment = rdna__segment_create(data, wanted, kind, stream))) {
    if (device->driver->memory_free(device->handle, data) != RDNA_OK)
      rdna__log(RDNA__LOG_WARNING, "%s keeps %llu bytes: %s", device->label, (unsigned long long)wanted,
                rdna_last_error());
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the allocator of %s ran out", device->label);
  }
  pthread_mutex_lock(&allocator->lock);

  if (status != RDNA_OK) {
    stats->reserved -= wanted;
    return status;
  }
  segment->previous = allocator->newest;
  *(allocator->newest ? &allocator->newest->next : &allocator->oldest) = segment;
  allocator->newest = segment;
  stats->segment_count++;
  lift(&stats->peak_segment_count, stats->segment_count);
  lift(&stats->peak_reserved, stats->reserved);
  *out_block = segment->first;
  return RDNA_OK;
}

/* Bytes of a new segment for a request of |size|. Medium requests share one of a sixteenth of what is live, within
 * MEDIUM_SEGMENT, so that a small process stays small. */
static uint64_t segment_size(const rdna__allocator *allocator, size_t size) {
  uint64_t least = round_up(size, SEGMENT_ROUND);
  if (kind_of(size) != RDNA__MEDIUM) return least;
  uint64_t shared = round_up(allocator->stats.allocated / 16, SEGMENT_ROUND);
  if (shared > MEDIUM_SEGMENT) shared = MEDIUM_SEGMENT;
  return shared > least ? shared : least;
}

/* Finds |size| bytes where the stream's own pool has none, and releases the lock at times. What is reserved should stay
 * within |goal|, 5/4 of the most bytes that were ever live at once and what may be spare. In this order:
 *   1. a new segment, if that stays within the goal;
 *   2. otherwise a block of another stream;
 *   3. otherwise the smallest new segment that holds the request, after free segments went back to the driver as far as
 *      the goal asks;
 *   4. where that runs out of memory: waits for the device, then looks for a block of the stream or of another again,
 *      and at last returns all free segments and allocates. */
static rdna_status grow(rdna__allocator *allocator, rdna_stream *stream, size_t size, rdna__block **out_block) {
  rdna_memory_stats *stats = &allocator->stats;
  rdna__segment_kind kind = kind_of(size);
  uint64_t wanted = segment_size(allocator, size);
  uint64_t least = round_up(size, SEGMENT_ROUND);
  uint64_t live = stats->allocated + size > allocator->high_water ? stats->allocated + size : allocator->high_water;
  uint64_t goal = live + live / 4;
  goal = allocator->spare < allocator->limit ? goal + allocator->spare : allocator->limit;
  if (stats->reserved + wanted > goal) {
    if ((*out_block = borrow(allocator, stream, size))) return RDNA_OK;
    wanted = least;
    RDNA_TRY(trim(allocator, goal > least ? goal - least : 0));
  }
  rdna_status status = add_segment(allocator, stream, kind, wanted, least, out_block);
  if (status != RDNA_OUT_OF_MEMORY || atomic_load(&allocator->device->recordings) > 0) return status;

  stats->retries++;
  pthread_mutex_unlock(&allocator->lock);
  status = rdna_device_synchronize(allocator->device);
  pthread_mutex_lock(&allocator->lock);
  RDNA_TRY(status);
  reap(allocator);
  if ((*out_block = take(stream->pool, size)) || (*out_block = borrow(allocator, stream, size))) return RDNA_OK;
  RDNA_TRY(trim(allocator, 0));
  return add_segment(allocator, stream, kind, least, least, out_block);
}

/* ---- what the device layer calls ---- */

static rdna_status alloc_locked(rdna__allocator *allocator, size_t rounded, rdna_stream *stream,
                                rdna__block **out_block) {
  rdna__pool *pool = pool_of(allocator, stream);
  if (!pool) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a pool ran out");
  if ((*out_block = take(pool, rounded))) return RDNA_OK;
  if (allocator->pending) {
    reap(allocator);
    if ((*out_block = take(pool, rounded))) return RDNA_OK;
  }
  return grow(allocator, stream, rounded, out_block);
}

rdna_status rdna__allocator_alloc(rdna__allocator *allocator, size_t size, rdna_stream *stream, const char *holder,
                                  void **out_data) {
  rdna_memory_stats *stats = &allocator->stats;
  rdna__block *block = NULL;
  pthread_mutex_lock(&allocator->lock);
  rdna_status status = RDNA_OUT_OF_MEMORY;
  size_t rounded = 0;
  if (size <= allocator->limit) { /* no cache can help a larger one, and its rounding might overflow */
    rounded = round_up(size, RDNA__BLOCK_ROUND);
    status = alloc_locked(allocator, rounded, stream, &block);
  }
  if (status != RDNA_OK) {
    stats->ooms += status == RDNA_OUT_OF_MEMORY;
    pthread_mutex_unlock(&allocator->lock);
    return status == RDNA_OUT_OF_MEMORY ? rdna__allocator_out_of_memory(allocator, size, holder) : status;
  }
  rdna__block *rest = block->segment->kind == RDNA__LARGE ? NULL : rdna__block_split(block, rounded);
  if (rest) rdna__bins_insert(bins_of_segment(rest->segment), rest);
  block->state = RDNA__BLOCK_LIVE;
  block->requested = size;
  block->holder = holder;
  rdna__block_table_insert(&allocator->live, block);
  stats->alloc_count++;
  stats->blocks++;
  stats->requested += size;
  stats->allocated += block->size;
  stats->alloc_bytes += block->size;
  lift(&stats->peak_blocks, stats->blocks);
  lift(&stats->peak_requested, stats->requested);
  lift(&stats->peak_allocated, stats->allocated);
  lift(&allocator->high_water, stats->allocated);
  *out_data = block->data;
  pthread_mutex_unlock(&allocator->lock);
  return RDNA_OK;
}

/* True if a stream of the freed block records a graph: that reads and writes the block at every replay, so the graph
 * keeps it, live, until it is destroyed. Where host memory to note that runs out the block leaks, rather than be used
 * by two. */
static bool keep_for_recording(rdna__block *block) {
  rdna_graph *graph = atomic_load(&block->segment->stream->recording);
  for (int i = 0; i < block->use_count && !graph; i++) graph = atomic_load(&block->uses[i].stream->recording);
  if (!graph) return false;
  for (size_t i = 0; i < graph->kept_count; i++)
    if (graph->kept[i] == block->data) return true;
  if (graph->kept_count == graph->kept_room) {
    size_t room = graph->kept_room ? 2 * graph->kept_room : 16;
    void **kept = realloc(graph->kept, room * sizeof *kept);
    if (!kept) return true;
    graph->kept = kept;
    graph->kept_room = room;
  }
  graph->kept[graph->kept_count++] = block->data;
  return true;
}

rdna_status rdna__allocator_free(rdna__allocator *allocator, void *data) {
  rdna_memory_stats *stats = &allocator->stats;
  pthread_mutex_lock(&allocator->lock);
  rdna__block *block = rdna__block_table_find(&allocator->live, data);
  if (!block) {
    rdna_status status = rdna__allocator_bad_pointer(allocator, data, "freed");
    pthread_mutex_unlock(&allocator->lock);
    return status;
  }
  if (keep_for_recording(block)) {
    pthread_mutex_unlock(&allocator->lock);
    return RDNA_OK;
  }
  rdna__block_table_remove(&allocator->live, block);
  stats->free_count++;
  stats->blocks--;
  stats->requested -= block->requested;
  stats->allocated -= block->size;
  stats->free_bytes += block->size;
  if (block->use_count) {
    block->state = RDNA__BLOCK_PENDING;
    block->next = allocator->pending;
    allocator->pending = block;
    mark_uses(allocator, block);
  } else {
    block->state = RDNA__BLOCK_TAKEN;
    give_back(block);
  }
  pthread_mutex_unlock(&allocator->lock);
  return RDNA_OK;
}

rdna_status rdna__allocator_record_stream(rdna__allocator *allocator, void *data, rdna_stream *stream) {
  pthread_mutex_lock(&allocator->lock);
  rdna__block *block = rdna__block_table_find(&allocator->live, data);
  rdna_status status = RDNA_OK;
  if (!block)
    status = rdna__allocator_bad_pointer(allocator, data, "recorded as used by a stream");
  else if (stream != block->segment->stream && !add_use(block, stream))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for recording a stream ran out");
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

rdna_status rdna__allocator_empty_cache(rdna__allocator *allocator) {
  /* waiting first, so that blocks which other streams still use come back too */
  RDNA_TRY(rdna_device_synchronize(allocator->device));
  pthread_mutex_lock(&allocator->lock);
  reap(allocator);
  rdna_status status = trim(allocator, 0);
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

void rdna__allocator_set_limit(rdna__allocator *allocator, uint64_t bytes) {
  pthread_mutex_lock(&allocator->lock);
  allocator->limit = bytes;
  pthread_mutex_unlock(&allocator->lock);
}

void rdna__allocator_set_spare(rdna__allocator *allocator, uint64_t bytes) {
  pthread_mutex_lock(&allocator->lock);
  allocator->spare = bytes;
  pthread_mutex_unlock(&allocator->lock);
}

void rdna__allocator_forget_stream(rdna__allocator *allocator, rdna_stream *stream) {
  pthread_mutex_lock(&allocator->lock);
  rdna_stream *heir = allocator->device->default_stream;
  for (rdna__segment *segment = allocator->oldest; segment; segment = segment->next) {
    bool moves = segment->stream == stream;
    for (rdna__block *block = segment->first; block; block = block->after) {
      for (int i = block->use_count - 1; i >= 0; i--)
        if (block->uses[i].stream == stream) drop_use(allocator, block, i);
      if (!moves || block->state != RDNA__BLOCK_CACHED) continue;
      rdna__bins_remove(bins_of_segment(segment), block);
      rdna__bins_insert(&heir->pool->bins[segment->kind], block);
    }
    if (moves) segment->stream = heir;
  }
  for (rdna__pool **link = &allocator->pools; stream->pool && *link; link = &(*link)->next)
    if (*link == stream->pool) {
      *link = stream->pool->next;
      free(stream->pool);
      stream->pool = NULL;
      break;
    }
  pthread_mutex_unlock(&allocator->lock);
}
