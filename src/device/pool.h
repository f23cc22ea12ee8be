/* Segments, blocks and pools: the allocator's bookkeeping, without a call to a driver and without a lock.
 *
 * A segment is one piece of driver memory, cut into blocks without gaps. A pool belongs to a stream and has a set of
 * bins, lists of free blocks by size, for each kind of segment: so one small long-lived block does not keep a large
 * segment from being reused or returned.
 *
 *     segment   | block 0 | block 1 | block 2 |    neighbours are linked by before and after
 *                 cached     live      cached
 *     bin k     heads[k] -> block 0 <-> block 2    by next and previous: free blocks of about one size, from all
 *                                                  segments of that kind that belong to the pool's stream */
#ifndef RDNA_DEVICE_POOL_H
#define RDNA_DEVICE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/driver.h"

enum {
  RDNA__BLOCK_ROUND = 512, /* bytes: sizes of blocks are multiples of this unit */
  RDNA__BIN_COUNT = 640,   /* 16 for each power of two of units: sizes below 2^52 bytes; the last has larger ones too */
};

/* By the size of the requests that a segment serves. */
typedef enum rdna__segment_kind { RDNA__SMALL, RDNA__MEDIUM, RDNA__LARGE, RDNA__SEGMENT_KINDS } rdna__segment_kind;

typedef enum rdna__block_state {
  RDNA__BLOCK_LIVE,    /* a caller's */
  RDNA__BLOCK_CACHED,  /* in a bin */
  RDNA__BLOCK_PENDING, /* freed, waits for the streams that used it */
  RDNA__BLOCK_TAKEN,   /* out of its bin, about to become live or to be returned to the driver */
} rdna__block_state;

/* A stream other than the segment's that uses a block. |event| is NULL until the block is freed, then recorded in the
 * stream. */
typedef struct rdna__block_use {
  rdna_stream *stream;
  rdna__driver_event *event;
} rdna__block_use;

typedef struct rdna__segment rdna__segment;
typedef struct rdna__block rdna__block;

struct rdna__block {
  rdna__segment *segment;
  char *data;
  size_t size;
  size_t requested;   /* what the caller asked for, while live */
  const char *holder; /* who asked for it, for reports; static text, or NULL */
  rdna__block_state state;
  rdna__block *before, *after;  /* neighbours in the segment */
  rdna__block *next, *previous; /* in a bin, in the pending list, or in a hash chain of live blocks */
  rdna__block_use *uses;
  int use_count;
};

struct rdna__segment {
  rdna_stream *stream; /* whose pool its free blocks lie in */
  char *data;
  size_t size;
  rdna__segment_kind kind;
  rdna__block *first;
  rdna__segment *next, *previous; /* all segments of the device, oldest first */
};

typedef struct rdna__bins {
  uint64_t used[RDNA__BIN_COUNT / 64]; /* which heads are not NULL */
  rdna__block *heads[RDNA__BIN_COUNT];
} rdna__bins;

struct rdna__pool {
  rdna_stream *stream;
  struct rdna__pool *next;
  rdna__bins bins[RDNA__SEGMENT_KINDS];
};

/* The smallest free block of at least |size| bytes (nearly: a bin is searched to a fixed depth), or NULL. It
 * stays where it is. */
rdna__block *rdna__bins_find(const rdna__bins *bins, size_t size);
void rdna__bins_insert(rdna__bins *bins, rdna__block *block); /* makes it CACHED */
void rdna__bins_remove(rdna__bins *bins, rdna__block *block); /* makes it TAKEN */
rdna__block *rdna__bins_largest(const rdna__bins *bins);

/* Cuts |block|, which is in no bin, to |size| bytes and returns the rest, in no bin; NULL when there is no rest
 * or no host memory for it, and the block stays whole. */
rdna__block *rdna__block_split(rdna__block *block, size_t size);
/* Joins |block|, in no bin, with its CACHED neighbours, which leave |bins|; returns the whole. */
rdna__block *rdna__block_join(rdna__bins *bins, rdna__block *block);

/* A segment over |data| with one TAKEN block; NULL when out of host memory. */
rdna__segment *rdna__segment_create(void *data, size_t size, rdna__segment_kind kind, rdna_stream *stream);
/* Frees the bookkeeping of the segment and its blocks, not the memory. */
void rdna__segment_destroy(rdna__segment *segment);

/* Live blocks by address. */
typedef struct rdna__block_table {
  rdna__block **heads;
  size_t capacity; /* a power of two */
  size_t count;
} rdna__block_table;

bool rdna__block_table_init(rdna__block_table *table); /* false: out of host memory */
void rdna__block_table_deinit(rdna__block_table *table);
void rdna__block_table_insert(rdna__block_table *table, rdna__block *block);
rdna__block *rdna__block_table_find(const rdna__block_table *table, const void *data);
void rdna__block_table_remove(rdna__block_table *table, rdna__block *block);

#endif
