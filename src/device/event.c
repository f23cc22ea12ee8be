#include <stdlib.h>

#include "device/device.h"

static rdna_status no_event(void) { return rdna__fail(RDNA_INVALID_ARGUMENT, "an event is needed, not NULL"); }

rdna_status rdna_event_create(rdna_device *device, bool timing, rdna_event **out_event) {
  if (!device || !out_event)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "creating an event needs a device and a place for the handle, not NULL");
  *out_event = NULL;
  rdna_event *event = calloc(1, sizeof *event);
  if (!event) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for an event ran out");
  event->timing = timing;
  rdna_status status = device->driver->event_create(device->handle, timing, &event->handle);
  if (status != RDNA_OK) {
    free(event);
    return status;
  }
  event->device = rdna_device_retain(device);
  *out_event = event;
  return RDNA_OK;
}

void rdna_event_release(rdna_event *event) {
  if (!event) return;
  event->device->driver->event_destroy(event->device->handle, event->handle);
  rdna_device_release(event->device);
  free(event);
}

rdna_status rdna_event_record(rdna_event *event, rdna_stream *stream) {
  if (!event) return no_event();
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "recording an event needs a stream, not NULL");
  RDNA_TRY(rdna__stream_of(event->device, &stream));
  RDNA_TRY(event->device->driver->event_record(event->device->handle, event->handle, stream->handle));
  atomic_store(&event->recorded, true);
  return RDNA_OK;
}

rdna_status rdna_event_synchronize(rdna_event *event) {
  if (!event) return no_event();
  if (!atomic_load(&event->recorded)) return RDNA_OK;
  return event->device->driver->event_synchronize(event->device->handle, event->handle);
}

rdna_status rdna_event_query(rdna_event *event) {
  if (!event) return no_event();
  if (!atomic_load(&event->recorded)) return RDNA_OK;
  return event->device->driver->event_query(event->device->handle, event->handle);
}

rdna_status rdna_event_elapsed(rdna_event *start, rdna_event *end, float *out_ms) {
  if (!start || !end || !out_ms)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "elapsed time needs two events and a place for the answer, not NULL");
  if (start->device != end->device)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "elapsed time needs two events of one device, not of %s and %s",
                      start->device->label, end->device->label);
  if (!start->timing || !end->timing)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "elapsed time needs events that were created with timing");
  if (!atomic_load(&start->recorded) || !atomic_load(&end->recorded))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "elapsed time needs events that were recorded");
  return start->device->driver->event_elapsed(start->device->handle, start->handle, end->handle, out_ms);
}
