#include "rdna/memory.h"

#include "base/log.h"
#include "device/device.h"

/* A staged peer copy moves this much at a time through each half of the staging buffer. */
enum { STAGING_HALF = 4 << 20 };

static rdna_status no_device(const char *what) {
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s needs a device, not NULL", what);
}

rdna_status rdna_memory_alloc_named(rdna_device *device, size_t size, rdna_stream *stream, const char *holder,
                                    void **out_data) {
  if (!device) return no_device("allocating memory");
  if (!out_data) return rdna__fail(RDNA_INVALID_ARGUMENT, "allocating memory needs a place for the pointer, not NULL");
  *out_data = NULL;
  RDNA_TRY(rdna__stream_of(device, &stream));
  if (size == 0) return RDNA_OK;
  return rdna__allocator_alloc(device->allocator, size, stream, holder, out_data);
}

rdna_status rdna_memory_alloc(rdna_device *device, size_t size, rdna_stream *stream, void **out_data) {
  return rdna_memory_alloc_named(device, size, stream, NULL, out_data);
}

rdna_status rdna_memory_free(rdna_device *device, void *data) {
  if (!device) return no_device("freeing memory");
  return data ? rdna__allocator_free(device->allocator, data) : RDNA_OK;
}

rdna_status rdna_memory_record_stream(rdna_device *device, void *data, rdna_stream *stream) {
  if (!device) return no_device("recording a stream");
  RDNA_TRY(rdna__stream_of(device, &stream));
  return data ? rdna__allocator_record_stream(device->allocator, data, stream) : RDNA_OK;
}

rdna_status rdna_memory_empty_cache(rdna_device *device) {
  if (!device) return no_device("emptying the cache");
  return rdna__allocator_empty_cache(device->allocator);
}

rdna_status rdna_memory_set_fraction(rdna_device *device, double fraction) {
  if (!device) return no_device("capping memory");
  if (!(fraction > 0 && fraction <= 1)) /* also catches NaN */
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a memory fraction of %g was asked for; it must be above 0 and at most 1",
                      fraction);
  uint64_t total = device->info.total_memory;
  rdna__allocator_set_limit(device->allocator, fraction == 1 ? total : (uint64_t)((double)total * fraction));
  return RDNA_OK;
}

rdna_status rdna_memory_set_spare(rdna_device *device, uint64_t bytes) {
  if (!device) return no_device("keeping free memory");
  rdna__allocator_set_spare(device->allocator, bytes);
  return RDNA_OK;
}

rdna_status rdna_memory_get_info(rdna_device *device, uint64_t *out_free, uint64_t *out_total) {
  if (!device) return no_device("memory information");
  uint64_t free_bytes = 0, total = 0;
  RDNA_TRY(device->driver->memory_info(device->handle, &free_bytes, &total));
  if (out_free) *out_free = free_bytes;
  if (out_total) *out_total = total;
  return RDNA_OK;
}

void rdna_memory_get_stats(rdna_device *device, rdna_memory_stats *out_stats) {
  if (device && out_stats) rdna__allocator_get_stats(device->allocator, out_stats);
}

void rdna_memory_reset_peaks(rdna_device *device) {
  if (device) rdna__allocator_reset_peaks(device->allocator);
}

void rdna_memory_reset_counts(rdna_device *device) {
  if (device) rdna__allocator_reset_counts(device->allocator);
}

rdna_status rdna_memory_snapshot(rdna_device *device, char **out_json) {
  if (!device) return no_device("a snapshot");
  if (!out_json) return rdna__fail(RDNA_INVALID_ARGUMENT, "a snapshot needs a place for the text, not NULL");
  return rdna__allocator_snapshot(device->allocator, out_json);
}

rdna_status rdna_host_alloc(rdna_device *device, size_t size, void **out_data) {
  if (!device) return no_device("pinned host memory");
  if (!out_data) return rdna__fail(RDNA_INVALID_ARGUMENT, "pinned host memory needs a place for the pointer, not NULL");
  *out_data = NULL;
  return size ? device->driver->host_alloc(device->handle, size, out_data) : RDNA_OK;
}

void rdna_host_free(rdna_device *device, void *data) {
  if (!device || !data) return;
  if (device->driver->host_free(device->handle, data) != RDNA_OK)
    rdna__log(RDNA__LOG_WARNING, "freeing pinned host memory of %s: %s", device->label, rdna_last_error());
}

static rdna_status copy(rdna_stream *stream, rdna__copy_kind kind, void *dst, const void *src, size_t size) {
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "a copy needs a stream, not NULL");
  if (size == 0) return RDNA_OK;
  if (!dst || !src)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a copy of %zu bytes %s %s NULL was asked for", size, dst ? "from" : "to",
                      stream->device->label);
  static const struct {
    rdna_profile_kind kind;
    const char *name;
  } kinds[] = {[RDNA__COPY_TO_DEVICE] = {RDNA_PROFILE_KIND_COPY_TO_DEVICE, "copy to device"},
               [RDNA__COPY_TO_HOST] = {RDNA_PROFILE_KIND_COPY_TO_HOST, "copy to host"},
               [RDNA__COPY_ON_DEVICE] = {RDNA_PROFILE_KIND_COPY_ON_DEVICE, "copy on device"}};
  rdna__profile_entry *entry = rdna__profile_begin(stream, kinds[kind].kind, kinds[kind].name, size);
  return rdna__profile_end(stream, entry,
                           stream->device->driver->copy(stream->device->handle, stream->handle, kind, dst, src, size));
}

rdna_status rdna_copy_to_device(rdna_stream *stream, void *device_dst, const void *host_src, size_t size) {
  return copy(stream, RDNA__COPY_TO_DEVICE, device_dst, host_src, size);
}

rdna_status rdna_copy_to_host(rdna_stream *stream, void *host_dst, const void *device_src, size_t size) {
  return copy(stream, RDNA__COPY_TO_HOST, host_dst, device_src, size);
}

rdna_status rdna_copy_on_device(rdna_stream *stream, void *dst, const void *src, size_t size) {
  uintptr_t a = (uintptr_t)dst, b = (uintptr_t)src;
  if (dst && src && (a < b ? b - a : a - b) < size)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a copy of %zu bytes overlaps itself: its ends are only %zu bytes apart",
                      size, (size_t)(a < b ? b - a : a - b));
  return copy(stream, RDNA__COPY_ON_DEVICE, dst, src, size);
}

rdna_status rdna_fill_bytes(rdna_stream *stream, void *device_dst, uint8_t value, size_t size) {
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "a fill needs a stream, not NULL");
  if (size == 0) return RDNA_OK;
  if (!device_dst) return rdna__fail(RDNA_INVALID_ARGUMENT, "a fill of %zu bytes at NULL was asked for", size);
  rdna__profile_entry *entry = rdna__profile_begin(stream, RDNA_PROFILE_KIND_FILL, "fill", size);
  return rdna__profile_end(
      stream, entry, stream->device->driver->fill(stream->device->handle, stream->handle, device_dst, value, size));
}

/* Copies through the staging buffer, half by half: while the copy of one half to |dst| is in flight, the other is
 * filled. Returns when all has arrived, so that the buffer is free for the next call.
 *
 *     half 0   fill 0 | send 0 | fill 2 | send 2 | …
 *     half 1          | fill 1 | send 1 | fill 3 | … */
static rdna_status copy_staged(rdna_stream *stream, char *dst, rdna_device *src_device, const char *src, size_t size) {
  rdna_device *dst_device = stream->device;
  const rdna__driver *from = src_device->driver, *to = dst_device->driver;
  rdna__driver_stream *reader = src_device->default_stream->handle;
  if (!src_device->staging) RDNA_TRY(from->host_alloc(src_device->handle, 2 * STAGING_HALF, &src_device->staging));
  rdna_status status = RDNA_OK;
  size_t done = 0;
  for (int half = 0; done < size && status == RDNA_OK; half = !half) {
    char *buffer = (char *)src_device->staging + half * STAGING_HALF;
    size_t part = size - done < STAGING_HALF ? size - done : STAGING_HALF;
    status = from->copy(src_device->handle, reader, RDNA__COPY_TO_HOST, buffer, src + done, part);
    if (status == RDNA_OK) status = from->stream_synchronize(src_device->handle, reader);
    /* before the other half is overwritten in the next turn, its bytes must have left */
    if (status == RDNA_OK && done) status = to->stream_synchronize(dst_device->handle, stream->handle);
    if (status == RDNA_OK)
      status = to->copy(dst_device->handle, stream->handle, RDNA__COPY_TO_DEVICE, dst + done, buffer, part);
    done += part;
  }
  rdna_status last = to->stream_synchronize(dst_device->handle, stream->handle);
  return status != RDNA_OK ? status : last;
}

rdna_status rdna_copy_peer(rdna_stream *stream, void *dst, rdna_device *src_device, const void *src, size_t size) {
  if (!stream || !src_device)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a peer copy needs a stream and a source device, not NULL");
  rdna_device *dst_device = stream->device;
  if (src_device == dst_device) return rdna_copy_on_device(stream, dst, src, size);
  if (size == 0) return RDNA_OK;
  if (!dst || !src) return rdna__fail(RDNA_INVALID_ARGUMENT, "a peer copy of %zu bytes with NULL was asked for", size);
  bool direct = false;
  rdna_status status = RDNA_OK;
  rdna__profile_entry *entry = rdna__profile_begin(stream, RDNA_PROFILE_KIND_COPY_PEER, "copy from peer", size);
  if (src_device->driver == dst_device->driver)
    status =
        dst_device->driver->copy_peer(dst_device->handle, stream->handle, dst, src_device->handle, src, size, &direct);
  if (status != RDNA_OK || direct) return rdna__profile_end(stream, entry, status);
  pthread_mutex_lock(&src_device->staging_lock);
  status = copy_staged(stream, dst, src_device, src, size);
  pthread_mutex_unlock(&src_device->staging_lock);
  status = rdna__profile_end(stream, entry, status);
  if (status == RDNA_OK) return RDNA_OK;
  return rdna__annotate(status, "copying %zu bytes from %s to %s through host memory", size, src_device->label,
                        dst_device->label);
}
