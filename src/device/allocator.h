/* The caching allocator: takes memory from the driver in segments, cuts these into blocks, and keeps freed blocks in
 * one pool for each stream, since a driver's own allocation and free are slow and wait for the device.
 *
 *     stream 0's pool   | live | cached |    live    | cached |     a segment: blocks without gaps
 *     stream 1's pool   | live |        cached        |             cached: free, in a bin of the pool
 *
 *     driver -> taken -> live -> cached -> taken -> live …          a block that only its segment's stream used
 *                        live -> pending -> cached                  one that other streams used too
 *                                           cached -> taken -> driver
 *
 * The stream of the segment reuses a free block at once, because work in a stream runs in order. Another stream may
 * borrow it: that stream first waits for an event recorded in the first. A freed block that other streams used stays
 * pending until events recorded in them are done. Thread-safe: one lock, which is never held while the driver
 * allocates, frees or waits. */
#ifndef RDNA_DEVICE_ALLOCATOR_H
#define RDNA_DEVICE_ALLOCATOR_H

#include "base/status.h"
#include "rdna/memory.h"

typedef struct rdna__allocator rdna__allocator;
typedef struct rdna__pool rdna__pool;

rdna_status rdna__allocator_create(rdna_device *device, rdna__allocator **out_allocator);
/* Gives everything back, live blocks too, of which it warns. No work may be under way. */
void rdna__allocator_destroy(rdna__allocator *allocator);

/* |stream| is not NULL; |size| is not 0. */
rdna_status rdna__allocator_alloc(rdna__allocator *allocator, size_t size, rdna_stream *stream, const char *holder,
                                  void **out_data);
rdna_status rdna__allocator_free(rdna__allocator *allocator, void *data);
rdna_status rdna__allocator_record_stream(rdna__allocator *allocator, void *data, rdna_stream *stream);
rdna_status rdna__allocator_empty_cache(rdna__allocator *allocator);
void rdna__allocator_set_limit(rdna__allocator *allocator, uint64_t bytes);
void rdna__allocator_set_spare(rdna__allocator *allocator, uint64_t bytes);
void rdna__allocator_get_stats(rdna__allocator *allocator, rdna_memory_stats *out_stats);
void rdna__allocator_reset_peaks(rdna__allocator *allocator);
void rdna__allocator_reset_counts(rdna__allocator *allocator);
rdna_status rdna__allocator_snapshot(rdna__allocator *allocator, char **out_json);

/* |stream|, whose work is done, is about to be destroyed: moves its segments and their free blocks to the default
 * stream's pool. */
void rdna__allocator_forget_stream(rdna__allocator *allocator, rdna_stream *stream);

#endif
