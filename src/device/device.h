/* The objects behind the public handles, for this layer's own files. */
#ifndef RDNA_DEVICE_DEVICE_H
#define RDNA_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/allocator.h"
#include "device/driver.h"
#include "device/profile.h"
#include "rdna/stream.h"

enum { RDNA__RECENT_KERNELS = 4 };

struct rdna_device {
  const rdna__driver *driver;
  rdna__driver_device *handle;
  rdna_device_info info;
  bool rehearses;
  char label[24];    /* "hip:0" */
  int references;    /* under the registry's lock */
  rdna_device *next; /* open devices, under the registry's lock */
  rdna_stream *default_stream;
  atomic_int recordings; /* streams that record: nothing waits for the whole device meanwhile */
  rdna__allocator *allocator;
  pthread_mutex_t lock; /* streams, next_stream_id, the slots for writing */
  rdna_stream *streams;
  int next_stream_id;
  struct {
    _Atomic(void *) data;
    void (*destroy)(rdna_device *, void *);
  } slots[RDNA__SLOT_COUNT];
  pthread_mutex_t staging_lock; /* one staged peer copy at a time */
  rdna__profile profile;
  void *staging; /* pinned, made at the first staged copy */
};

struct rdna_stream {
  rdna_device *device;
  rdna__driver_stream *handle;
  int id; /* 0 is the default stream */
  rdna_stream *previous, *next;
  rdna__pool *pool; /* the allocator's; under its lock */
  /* Names of the last kernels, so that an error that surfaces later can be pinned on them. Atomic, because
   * rdna_device_synchronize reads them from another thread. */
  _Atomic(const char *) recent[RDNA__RECENT_KERNELS];
  atomic_ullong launched;
  atomic_ullong passed; /* of launched, those known to have ended well */
  _Atomic(rdna_graph *) recording;
};

struct rdna_graph {
  rdna_device *device;
  rdna__driver_graph *handle;
  /* Freed to the stream's pool while it was recorded; under the allocator's lock then. */
  void **kept;
  size_t kept_count, kept_room;
};

struct rdna_event {
  rdna_device *device;
  rdna__driver_event *handle;
  bool timing;
  atomic_bool recorded;
};

/* The driver's table entry, or NULL; probes at the first call. |out_info| may be NULL. */
const rdna__driver *rdna__driver_find(const char *name, const rdna_driver_info **out_info);

/* Opens and closes without counting; device.c for registry.c. */
rdna_status rdna__device_create(const rdna__driver *driver, int index, rdna_device **out_device);
rdna_status rdna__device_create_rehearsal(const rdna_device *of, rdna_device **out_device);
void rdna__device_destroy(rdna_device *device);

/* The default stream does not hold its device, or neither would ever be released. */
rdna_status rdna__stream_create(rdna_device *device, int priority, rdna_stream **out_stream);
void rdna__stream_destroy(rdna_stream *stream);

/* For rdna_stream_last_kernel and for failures. |name| is static. */
void rdna__stream_remember(rdna_stream *stream, const char *name);

/* Adds to a failure the kernels that were under way in |stream|; after RDNA_OK forgets them. */
rdna_status rdna__stream_blame(rdna_stream *stream, rdna_status status);

/* RDNA_INVALID_ARGUMENT when |stream| is another device's; NULL becomes the default stream. */
rdna_status rdna__stream_of(rdna_device *device, rdna_stream **stream);

#endif
