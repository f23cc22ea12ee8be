/* Device memory from a caching, stream-ordered allocator; pinned host memory; copies.
 *
 * Freed memory stays in the device's pool and is handed out again without a call to the vendor's library.
 * A block belongs to the stream that it was allocated for: reuse on that stream needs no synchronization.
 * A block that another stream also used must be named with rdna_memory_record_stream before it is freed. */
#ifndef RDNA_MEMORY_H
#define RDNA_MEMORY_H

#include "rdna/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 256-byte aligned. |size| 0 gives NULL and RDNA_OK. |stream| NULL is the default stream.
 * RDNA_OUT_OF_MEMORY after the cache was emptied and the allocation tried again; the sentence says what was
 * asked, what is free, what is cached and who holds the most. */
RDNA_CHECKED rdna_status rdna_memory_alloc(rdna_device *device, size_t size, rdna_stream *stream, void **out_data);
/* As above, with a static string that snapshots and out-of-memory reports show as the holder. */
RDNA_CHECKED rdna_status rdna_memory_alloc_named(rdna_device *device, size_t size, rdna_stream *stream,
                                                 const char *holder, void **out_data);
/* Returns the block to the pool at once. NULL is fine. A pointer that is not the start of a live block is
 * RDNA_INVALID_ARGUMENT and changes nothing. */
RDNA_CHECKED rdna_status rdna_memory_free(rdna_device *device, void *data);
RDNA_CHECKED rdna_status rdna_memory_record_stream(rdna_device *device, void *data, rdna_stream *stream);

/* Gives cached, unused memory back to the vendor's library. */
RDNA_CHECKED rdna_status rdna_memory_empty_cache(rdna_device *device);
/* Caps what the pool may take, as a share of the device's memory in (0, 1]. Below what it holds already, the cap
 * only stops it from taking more. */
RDNA_CHECKED rdna_status rdna_memory_set_fraction(rdna_device *device, double fraction);
/* Free memory is kept for the next allocation as long as what is reserved stays within 5/4 of the most that was ever
 * live, and |bytes| more, 0 when the device is opened; beyond, the driver gets it back, which waits for the device.
 * Programs whose steps repeat allocations of many sizes want more, so that none of their steps asks the driver. Memory
 * that runs out takes it back all the same. */
RDNA_CHECKED rdna_status rdna_memory_set_spare(rdna_device *device, uint64_t bytes);
/* What the driver says of the whole device, other processes included. */
RDNA_CHECKED rdna_status rdna_memory_get_info(rdna_device *device, uint64_t *out_free, uint64_t *out_total);

typedef struct rdna_memory_stats {
  uint64_t allocated; /* bytes in live blocks, rounded as the allocator rounds */
  uint64_t requested; /* bytes that callers asked for in those blocks */
  uint64_t reserved;  /* bytes held from the driver, live or cached */
  uint64_t peak_allocated, peak_requested, peak_reserved;
  uint64_t blocks, peak_blocks; /* live blocks */
  uint64_t alloc_count, free_count;
  uint64_t alloc_bytes, free_bytes;           /* of those calls, rounded as the allocator rounds */
  uint64_t segment_count, peak_segment_count; /* segments held from the driver */
  uint64_t driver_allocs, driver_frees;       /* calls that reached the vendor's library */
  uint64_t retries;                           /* times the cache was emptied to satisfy a request */
  uint64_t ooms;
  double fragmentation; /* 1 - largest cached block / cached bytes; 0 when nothing is cached */
} rdna_memory_stats;

/* What the device's pool holds and has done until now. */
RDNA_API void rdna_memory_get_stats(rdna_device *device, rdna_memory_stats *out_stats);
/* Every peak becomes what is current. */
RDNA_API void rdna_memory_reset_peaks(rdna_device *device);
/* What is counted from call to call (allocations, frees and their bytes, calls that reached the driver, retries, ooms)
 * begins at 0 again. */
RDNA_API void rdna_memory_reset_counts(rdna_device *device);
/* Every segment and block as JSON. Free the string with free(). */
RDNA_CHECKED rdna_status rdna_memory_snapshot(rdna_device *device, char **out_json);

/* Page-locked host memory that copies can use without a staging buffer. */
RDNA_CHECKED rdna_status rdna_host_alloc(rdna_device *device, size_t size, void **out_data);
RDNA_API void rdna_host_free(rdna_device *device, void *data);

/* Asynchronous, in stream order. Host memory must stay as it is until the stream has passed the copy, unless
 * it is pageable: then the call returns after it was read. */
RDNA_CHECKED rdna_status rdna_copy_to_device(rdna_stream *stream, void *device_dst, const void *host_src, size_t size);
RDNA_CHECKED rdna_status rdna_copy_to_host(rdna_stream *stream, void *host_dst, const void *device_src, size_t size);
/* The two must not overlap: RDNA_INVALID_ARGUMENT. */
RDNA_CHECKED rdna_status rdna_copy_on_device(rdna_stream *stream, void *dst, const void *src, size_t size);
/* From another device: directly when both are one driver's and can reach each other, otherwise through pinned
 * host memory, and then the call returns when all has arrived. In order with |stream|, which belongs to the
 * device of |dst|; the writer of |src| must have been waited for. */
RDNA_CHECKED rdna_status rdna_copy_peer(rdna_stream *stream, void *dst, rdna_device *src_device, const void *src,
                                        size_t size);
RDNA_CHECKED rdna_status rdna_fill_bytes(rdna_stream *stream, void *device_dst, uint8_t value, size_t size);

#ifdef __cplusplus
}
#endif
#endif
