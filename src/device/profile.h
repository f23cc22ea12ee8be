/* Profiling, for the device layer's own files: records an event before and after each piece of work that is put into a
 * stream. */
#ifndef RDNA_DEVICE_PROFILE_H
#define RDNA_DEVICE_PROFILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/driver.h"
#include "rdna/profile.h"

typedef struct rdna__profile_entry rdna__profile_entry;

typedef struct rdna__profile {
  atomic_bool on;
  pthread_mutex_t lock; /* the rest; held while a piece of work is queued */
  rdna__profile_entry *first, *last;
  size_t count;
  rdna__driver_event *base;
} rdna__profile;

/* Before the device closes. */
void rdna__profile_forget(rdna_device *device);

/* Records the event before a piece of work. NULL unless the device is being profiled; rdna__profile_end takes it. */
rdna__profile_entry *rdna__profile_begin(rdna_stream *stream, rdna_profile_kind kind, const char *name, size_t bytes);
/* Returns |status|. */
rdna_status rdna__profile_end(rdna_stream *stream, rdna__profile_entry *entry, rdna_status status);

#endif
