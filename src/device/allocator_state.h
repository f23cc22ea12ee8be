/* What allocator.c and allocator_report.c share. */
#ifndef RDNA_DEVICE_ALLOCATOR_STATE_H
#define RDNA_DEVICE_ALLOCATOR_STATE_H

#include <pthread.h>

#include "device/allocator.h"
#include "device/pool.h"

struct rdna__allocator {
  rdna_device *device;
  pthread_mutex_t lock;
  rdna__segment *oldest, *newest; /* all segments, linked in the order of their allocation */
  rdna__pool *pools;              /* one for each stream that has allocated */
  rdna__block_table live;
  rdna__block *pending;        /* freed blocks that other streams may still use */
  rdna__driver_event **events; /* idle ones, for reuse */
  int event_count, event_capacity;
  uint64_t limit;          /* bytes that may be reserved, that is: held in segments */
  uint64_t spare;          /* bytes that may be reserved beyond 5/4 of high_water */
  uint64_t high_water;     /* most bytes ever live; a reset of the statistics leaves it */
  rdna_memory_stats stats; /* all but fragmentation kept current */
};

/* Builds the out-of-memory sentence: what was asked, found, and who holds the most. Takes the lock. */
rdna_status rdna__allocator_out_of_memory(rdna__allocator *allocator, size_t size, const char *holder);
/* Why |data| cannot be freed. The lock is held. */
rdna_status rdna__allocator_bad_pointer(const rdna__allocator *allocator, const void *data, const char *verb);
/* The holders of live blocks with the most bytes, as text. The lock is held. */
void rdna__allocator_holders(const rdna__allocator *allocator, char *text, size_t size);

#endif
