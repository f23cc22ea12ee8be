#include "device/profile.h"

#include <stdlib.h>

#include "device/device.h"

struct rdna__profile_entry {
  rdna_profile_record record;
  rdna__driver_event *start, *end;
  rdna__profile_entry *next;
};

static _Thread_local uint64_t mark;

void rdna_profile_mark(uint64_t number) { mark = number; }

static void entry_free(rdna_device *device, rdna__profile_entry *entry) {
  if (entry->start) device->driver->event_destroy(device->handle, entry->start);
  if (entry->end) device->driver->event_destroy(device->handle, entry->end);
  free(entry);
}

/* Under the lock. */
static void forget(rdna_device *device) {
  rdna__profile *p = &device->profile;
  while (p->first) {
    rdna__profile_entry *next = p->first->next;
    entry_free(device, p->first);
    p->first = next;
  }
  if (p->base) device->driver->event_destroy(device->handle, p->base);
  p->base = NULL;
  p->last = NULL;
  p->count = 0;
}

void rdna__profile_forget(rdna_device *device) {
  atomic_store(&device->profile.on, false);
  forget(device);
}

static rdna_status event_now(rdna_stream *stream, rdna__driver_event **out_event) {
  rdna_device *device = stream->device;
  RDNA_TRY(device->driver->event_create(device->handle, true, out_event));
  rdna_status status = device->driver->event_record(device->handle, *out_event, stream->handle);
  if (status == RDNA_OK) return RDNA_OK;
  device->driver->event_destroy(device->handle, *out_event);
  *out_event = NULL;
  return status;
}

rdna__profile_entry *rdna__profile_begin(rdna_stream *stream, rdna_profile_kind kind, const char *name, size_t bytes) {
  rdna_device *device = stream->device;
  rdna__profile *p = &device->profile;
  if (!atomic_load_explicit(&p->on, memory_order_relaxed) || rdna__stream_records(stream)) return NULL;
  rdna__profile_entry *entry = calloc(1, sizeof *entry);
  if (!entry) return NULL; /* the work matters more */
  entry->record = (rdna_profile_record){.name = name, .kind = kind, .stream = stream->id, .mark = mark, .bytes = bytes};
  pthread_mutex_lock(&p->lock);
  if (!atomic_load(&p->on) || event_now(stream, &entry->start) != RDNA_OK) {
    pthread_mutex_unlock(&p->lock);
    free(entry);
    return NULL;
  }
  return entry;
}

rdna_status rdna__profile_end(rdna_stream *stream, rdna__profile_entry *entry, rdna_status status) {
  if (!entry) return status;
  rdna__profile *p = &stream->device->profile;
  if (status == RDNA_OK && event_now(stream, &entry->end) == RDNA_OK) {
    if (p->last)
      p->last->next = entry;
    else
      p->first = entry;
    p->last = entry;
    p->count++;
  } else {
    entry_free(stream->device, entry);
  }
  pthread_mutex_unlock(&p->lock);
  return status;
}

rdna_status rdna_profile_start(rdna_device *device) {
  if (!device) return rdna__fail(RDNA_INVALID_ARGUMENT, "profiling needs a device, not NULL");
  rdna__profile *p = &device->profile;
  RDNA_TRY(rdna_device_synchronize(device));
  pthread_mutex_lock(&p->lock);
  rdna_status status =
      atomic_load(&p->on)
          ? rdna__fail(RDNA_INVALID_ARGUMENT, "%s is profiled already: rdna_profile_stop ends it", device->label)
          : event_now(device->default_stream, &p->base);
  /* streams run independently: the base event must be done before any of them begins work that is timed from it */
  if (status == RDNA_OK) status = device->driver->event_synchronize(device->handle, p->base);
  if (status == RDNA_OK)
    atomic_store(&p->on, true);
  else if (!atomic_load(&p->on))
    forget(device);
  pthread_mutex_unlock(&p->lock);
  return status;
}

static rdna_status measure(rdna_device *device, rdna__profile_entry *entry) {
  float start, length;
  const rdna__driver *driver = device->driver;
  RDNA_TRY(driver->event_elapsed(device->handle, device->profile.base, entry->start, &start));
  RDNA_TRY(driver->event_elapsed(device->handle, entry->start, entry->end, &length));
  entry->record.start = (double)start;
  entry->record.length = (double)length;
  return RDNA_OK;
}

/* Under the lock. */
static rdna_status collect(rdna_device *device, rdna_profile_record **out_records, size_t *out_count) {
  rdna__profile *p = &device->profile;
  rdna_profile_record *records = calloc(p->count + 1, sizeof *records);
  if (!records) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu records of a profile", p->count);
  size_t n = 0;
  for (rdna__profile_entry *e = p->first; e; e = e->next) {
    rdna_status status = measure(device, e);
    if (status != RDNA_OK) {
      free(records);
      return status;
    }
    records[n++] = e->record;
  }
  *out_count = n;
  *out_records = records;
  return RDNA_OK;
}

rdna_status rdna_profile_stop(rdna_device *device, rdna_profile_record **out_records, size_t *out_count) {
  if (!device) return rdna__fail(RDNA_INVALID_ARGUMENT, "profiling needs a device, not NULL");
  rdna_profile_record *records = NULL;
  size_t count = 0;
  if (out_records) *out_records = NULL;
  if (out_count) *out_count = 0;
  rdna__profile *p = &device->profile;
  pthread_mutex_lock(&p->lock);
  if (!atomic_load(&p->on)) {
    pthread_mutex_unlock(&p->lock);
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is not profiled: rdna_profile_start begins it", device->label);
  }
  atomic_store(&p->on, false);
  rdna_status status = rdna_device_synchronize(device);
  if (status == RDNA_OK && out_records) status = collect(device, &records, &count);
  forget(device);
  pthread_mutex_unlock(&p->lock);
  if (status != RDNA_OK) return status;
  if (out_records) *out_records = records;
  if (out_count) *out_count = count;
  return RDNA_OK;
}
