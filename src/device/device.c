#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "device/driver/rehearsal/rehearsal.h"

static rdna_device *make(void) {
  rdna_device *device = calloc(1, sizeof *device);
  if (!device) return NULL;
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->staging_lock, NULL);
  pthread_mutex_init(&device->profile.lock, NULL);
  return device;
}

/* Gives the device, whose driver was opened with |status|, a stream and a pool. */
static rdna_status finish(rdna_device *device, rdna_status status, rdna_device **out_device) {
  if (status == RDNA_OK) {
    snprintf(device->label, sizeof device->label, "%s:%d", device->driver->name, device->info.index);
    status = rdna__stream_create(device, 0, &device->default_stream);
  }
  if (status == RDNA_OK) status = rdna__allocator_create(device, &device->allocator);
  if (status != RDNA_OK) {
    rdna__device_destroy(device);
    return status;
  }
  *out_device = device;
  return RDNA_OK;
}

rdna_status rdna__device_create(const rdna__driver *driver, int index, rdna_device **out_device) {
  rdna_device *device = make();
  if (!device) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a device ran out");
  device->driver = driver;
  rdna_status status = driver->describe(index, &device->info);
  if (status == RDNA_OK) status = driver->device_open(index, &device->handle);
  return finish(device, status, out_device);
}

rdna_status rdna__device_create_rehearsal(const rdna_device *of, rdna_device **out_device) {
  rdna_device *device = make();
  if (!device) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a device ran out");
  rdna_status status = rdna__rehearsal_open(of->driver, &device->driver, &device->handle);
  if (status != RDNA_OK) {
    free(device);
    return status;
  }
  device->rehearses = true;
  device->info = of->info;
  device->info.emulated = true; /* its times say nothing, and nobody measures them */
  uint64_t free_bytes;
  status = device->driver->memory_info(device->handle, &free_bytes, &device->info.total_memory);
  return finish(device, status, out_device);
}

bool rdna__device_is_rehearsal(const rdna_device *device) { return device->rehearses; }

/* Also takes apart what rdna__device_create left half made. */
void rdna__device_destroy(rdna_device *device) {
  const rdna__driver *driver = device->driver;
  if (device->handle) {
    if (driver->device_synchronize(device->handle) != RDNA_OK)
      rdna__log(RDNA__LOG_WARNING, "closing %s with an error that nobody waited for: %s", device->label,
                rdna_last_error());
    rdna__profile_forget(device);
    for (int slot = RDNA__SLOT_COUNT - 1; slot >= 0; slot--) {
      void *data = atomic_load(&device->slots[slot].data);
      if (data) device->slots[slot].destroy(device, data);
    }
    if (device->allocator) rdna__allocator_destroy(device->allocator);
    if (device->staging && driver->host_free(device->handle, device->staging) != RDNA_OK)
      rdna__log(RDNA__LOG_WARNING, "closing %s: %s", device->label, rdna_last_error());
    device->allocator = NULL;
    if (device->default_stream) rdna__stream_destroy(device->default_stream);
    driver->device_close(device->handle);
  }
  pthread_mutex_destroy(&device->staging_lock);
  pthread_mutex_destroy(&device->profile.lock);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

const rdna_device_info *rdna_device_get_info(const rdna_device *device) { return device ? &device->info : NULL; }
rdna_stream *rdna_device_default_stream(rdna_device *device) { return device ? device->default_stream : NULL; }

rdna_status rdna_device_synchronize(rdna_device *device) {
  if (!device) return rdna__fail(RDNA_INVALID_ARGUMENT, "synchronizing needs a device, not NULL");
  /* Success clears no stream's kernel names: another thread may have launched since. Failure shows them. */
  rdna_status status = device->driver->device_synchronize(device->handle);
  pthread_mutex_lock(&device->lock);
  for (rdna_stream *stream = device->streams; stream && status != RDNA_OK; stream = stream->next)
    status = rdna__stream_blame(stream, status);
  pthread_mutex_unlock(&device->lock);
  return status;
}

const rdna__driver *rdna__device_driver(const rdna_device *device) { return device->driver; }
rdna__driver_device *rdna__device_handle(rdna_device *device) { return device->handle; }

void *rdna__device_get_slot(rdna_device *device, rdna__device_slot slot) {
  return atomic_load_explicit(&device->slots[slot].data, memory_order_acquire);
}

void *rdna__device_set_slot(rdna_device *device, rdna__device_slot slot, void *data,
                            void (*destroy)(rdna_device *, void *)) {
  pthread_mutex_lock(&device->lock);
  void *winner = atomic_load(&device->slots[slot].data);
  if (!winner) {
    device->slots[slot].destroy = destroy;
    atomic_store(&device->slots[slot].data, data);
    winner = data;
  }
  pthread_mutex_unlock(&device->lock);
  return winner;
}
