#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "device/device.h"

rdna_status rdna__stream_create(rdna_device *device, int priority, rdna_stream **out_stream) {
  rdna_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream ran out");
  stream->device = device;
  rdna_status status = device->driver->stream_create(device->handle, priority, &stream->handle);
  if (status != RDNA_OK) {
    free(stream);
    return status;
  }
  pthread_mutex_lock(&device->lock);
  stream->id = device->next_stream_id++;
  stream->next = device->streams;
  if (stream->next) stream->next->previous = stream;
  device->streams = stream;
  pthread_mutex_unlock(&device->lock);
  *out_stream = stream;
  return RDNA_OK;
}

void rdna__stream_destroy(rdna_stream *stream) {
  rdna_device *device = stream->device;
  if (rdna__stream_records(stream)) (void)!rdna_graph_end(stream, NULL);
  if (device->driver->stream_synchronize(device->handle, stream->handle) != RDNA_OK)
    rdna__log(RDNA__LOG_WARNING, "stream %d of %s was released with an error that nobody waited for: %s", stream->id,
              device->label, rdna_last_error());
  if (device->allocator) rdna__allocator_forget_stream(device->allocator, stream);
  pthread_mutex_lock(&device->lock);
  if (stream->previous) stream->previous->next = stream->next;
  if (stream->next) stream->next->previous = stream->previous;
  if (device->streams == stream) device->streams = stream->next;
  pthread_mutex_unlock(&device->lock);
  device->driver->stream_destroy(device->handle, stream->handle);
  free(stream);
}

rdna_status rdna_stream_create(rdna_device *device, int priority, rdna_stream **out_stream) {
  if (!device || !out_stream)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "creating a stream needs a device and a place for the handle, not NULL");
  *out_stream = NULL;
  RDNA_TRY(rdna__stream_create(device, priority, out_stream));
  rdna_device_retain(device);
  return RDNA_OK;
}

void rdna_stream_release(rdna_stream *stream) {
  /* the default stream is the device's own; to release it is a harmless mistake */
  if (!stream || stream == stream->device->default_stream) return;
  rdna_device *device = stream->device;
  rdna__stream_destroy(stream);
  rdna_device_release(device);
}

rdna_device *rdna_stream_device(rdna_stream *stream) { return stream ? stream->device : NULL; }
rdna__driver_stream *rdna__stream_handle(rdna_stream *stream) { return stream->handle; }

rdna_status rdna__stream_of(rdna_device *device, rdna_stream **stream) {
  if (!*stream) *stream = device->default_stream;
  if ((*stream)->device != device)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a stream of %s was given where one of %s is needed",
                      (*stream)->device->label, device->label);
  return RDNA_OK;
}

rdna_status rdna__stream_blame(rdna_stream *stream, rdna_status status) {
  unsigned long long launched = atomic_load(&stream->launched), passed = atomic_load(&stream->passed);
  if (status == RDNA_NOT_READY) return status;
  atomic_store(&stream->passed, launched);
  if (status == RDNA_OK || launched <= passed) return status;
  char names[512];
  size_t used = 0;
  unsigned long long shown = launched - passed;
  if (shown > RDNA__RECENT_KERNELS) shown = RDNA__RECENT_KERNELS;
  for (unsigned long long i = 0; i < shown && used < sizeof names; i++) {
    const char *name = atomic_load(&stream->recent[(launched - 1 - i) % RDNA__RECENT_KERNELS]);
    used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "", name ? name : "?");
  }
  return rdna__annotate(status, "stream %d of %s, %llu kernel(s) since it was last synchronized, newest first %s",
                        stream->id, stream->device->label, launched - passed, names);
}

void rdna__stream_remember(rdna_stream *stream, const char *name) {
  unsigned long long launched = atomic_load(&stream->launched);
  atomic_store(&stream->recent[launched % RDNA__RECENT_KERNELS], name);
  atomic_store(&stream->launched, launched + 1);
}

rdna_status rdna__stream_launch(rdna_stream *stream, const rdna__driver_function *function, rdna_grid grid,
                                const void *args) {
  rdna_device *device = stream->device;
  rdna__profile_entry *entry = rdna__profile_begin(stream, RDNA_PROFILE_KIND_KERNEL, function->name, 0);
  rdna_status status =
      rdna__profile_end(stream, entry, device->driver->launch(device->handle, stream->handle, function, grid, args));
  if (status != RDNA_OK) return rdna__annotate(status, "launching kernel '%s' on %s", function->name, device->label);
  rdna__stream_remember(stream, function->name);
  return RDNA_OK;
}

rdna_status rdna__stream_native_call(rdna_stream *stream, const char *name,
                                     rdna_status (*call)(void *native_stream, void *data), void *data) {
  rdna_device *device = stream->device;
  if (!device->driver->native_call)
    return rdna__fail(RDNA_UNSUPPORTED, "%s cannot run %s: the %s driver has no stream of a vendor's", device->label,
                      name, device->driver->name);
  rdna__profile_entry *entry = rdna__profile_begin(stream, RDNA_PROFILE_KIND_LIBRARY, name, 0);
  RDNA_TRY(
      rdna__profile_end(stream, entry, device->driver->native_call(device->handle, stream->handle, name, call, data)));
  rdna__stream_remember(stream, name);
  return RDNA_OK;
}

rdna_status rdna_stream_native(rdna_stream *stream, void **out_native) {
  if (!stream || !out_native)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "the vendor's own stream of a stream needs both and a place for it, not NULL");
  *out_native = NULL;
  rdna_device *device = stream->device;
  if (!device->driver->stream_native)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s has no stream that another library could put kernels into: the %s driver has "
                      "no vendor's library, those of GPUs have",
                      device->label, device->driver->name);
  return device->driver->stream_native(device->handle, stream->handle, out_native);
}

const char *rdna_stream_last_kernel(rdna_stream *stream) {
  unsigned long long launched = stream ? atomic_load(&stream->launched) : 0;
  return launched ? atomic_load(&stream->recent[(launched - 1) % RDNA__RECENT_KERNELS]) : "";
}

static rdna_status no_stream(void) { return rdna__fail(RDNA_INVALID_ARGUMENT, "a stream is needed, not NULL"); }

static rdna_status records(const rdna_stream *stream, const char *what) {
  return rdna__fail(RDNA_INVALID_ARGUMENT, "stream %d of %s records a graph, so it cannot be %s before rdna_graph_end",
                    stream->id, stream->device->label, what);
}

rdna_status rdna_stream_synchronize(rdna_stream *stream) {
  if (!stream) return no_stream();
  if (rdna__stream_records(stream)) return records(stream, "waited for");
  return rdna__stream_blame(stream, stream->device->driver->stream_synchronize(stream->device->handle, stream->handle));
}

rdna_status rdna_stream_query(rdna_stream *stream) {
  if (!stream) return no_stream();
  if (rdna__stream_records(stream)) return records(stream, "asked after");
  return rdna__stream_blame(stream, stream->device->driver->stream_query(stream->device->handle, stream->handle));
}

rdna_status rdna_stream_wait(rdna_stream *stream, rdna_event *event) {
  if (!stream || !event) return rdna__fail(RDNA_INVALID_ARGUMENT, "waiting needs a stream and an event, not NULL");
  if (!atomic_load(&event->recorded)) return RDNA_OK;
  const rdna__driver *driver = stream->device->driver;
  /* two vendors' queues cannot wait for each other, so the calling thread does */
  if (driver != event->device->driver)
    return event->device->driver->event_synchronize(event->device->handle, event->handle);
  return driver->stream_wait(stream->device->handle, stream->handle, event->handle);
}

rdna_status rdna_stream_call(rdna_stream *stream, void (*callback)(void *), void *data) {
  if (!stream || !callback)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a callback needs a stream and a function, not NULL");
  return stream->device->driver->stream_call(stream->device->handle, stream->handle, callback, data);
}
