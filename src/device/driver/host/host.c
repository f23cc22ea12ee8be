/* The host's own processor as a device. Its streams are real queues with a thread each, so that a missing
 * synchronization fails here as it would on a card. Priorities are accepted and have no effect: to raise a
 * thread's priority needs a privilege that a program seldom has. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver/host/processor.h"
#include "device/driver/host/queue.h"

enum { ALIGNMENT = 256 };

typedef struct allocation {
  struct allocation *next;
  char *data;
  size_t size;
  bool pinned;
} allocation;

typedef struct stream_list {
  struct stream_list *next;
  rdna__host_queue *queue;
} stream_list;

struct rdna__driver_device {
  pthread_mutex_t lock; /* the lists and |used| */
  allocation *allocations;
  stream_list *streams;
  uint64_t used, total;
};

struct rdna__driver_event {
  pthread_mutex_t lock;
  rdna__host_mark *mark; /* of the last record, or NULL */
};

static void probe(rdna_driver_info *out_info) {
  out_info->status = RDNA_OK;
  out_info->message = "this machine's processor";
  out_info->device_count = 1;
}

static rdna_status describe(int index, rdna_device_info *out_info) {
  rdna__host_describe(out_info);
  return RDNA_OK;
}

static rdna_status device_open(int index, rdna__driver_device **out_device) {
  rdna__driver_device *device = calloc(1, sizeof *device);
  if (!device) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a device ran out");
  uint64_t unused;
  rdna__host_memory(&unused, &device->total);
  pthread_mutex_init(&device->lock, NULL);
  *out_device = device;
  return RDNA_OK;
}

static void device_close(rdna__driver_device *device) {
  for (allocation *one = device->allocations, *next; one; one = next) {
    next = one->next;
    free(one->data);
    free(one);
  }
  pthread_mutex_destroy(&device->lock);
  free(device);
}

/* ---- memory ---- */

static rdna_status memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total) {
  rdna__host_memory(out_free, out_total);
  return RDNA_OK;
}

static rdna_status allocate(rdna__driver_device *device, size_t size, bool pinned, void **out_data) {
  allocation *one = calloc(1, sizeof *one);
  pthread_mutex_lock(&device->lock);
  /* Linux promises more than it has, so the bound must be ours: past it lies the out-of-memory killer. */
  bool fits = one && size <= device->total - device->used;
  void *data = NULL;
  if (fits && posix_memalign(&data, ALIGNMENT, size) != 0) fits = false;
  if (fits) {
    *one = (allocation){.next = device->allocations, .data = data, .size = size, .pinned = pinned};
    device->allocations = one;
    device->used += size;
  }
  uint64_t used = device->used;
  pthread_mutex_unlock(&device->lock);
  if (!fits) {
    free(one);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "%zu bytes of host memory were asked for; %llu of %llu are in use here", size,
                      (unsigned long long)used, (unsigned long long)device->total);
  }
  *out_data = data;
  return RDNA_OK;
}

static rdna_status release(rdna__driver_device *device, void *data, bool pinned) {
  pthread_mutex_lock(&device->lock);
  allocation **link = &device->allocations;
  while (*link && ((*link)->data != data || (*link)->pinned != pinned)) link = &(*link)->next;
  allocation *one = *link;
  if (one) {
    *link = one->next;
    device->used -= one->size;
  }
  pthread_mutex_unlock(&device->lock);
  if (!one) return rdna__fail(RDNA_INVALID_ARGUMENT, "%p is no memory that the host driver gave", data);
  free(one->data);
  free(one);
  return RDNA_OK;
}

static rdna_status memory_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  return allocate(device, size, false, out_data);
}
static rdna_status memory_free(rdna__driver_device *device, void *data) { return release(device, data, false); }
static rdna_status host_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  return allocate(device, size, true, out_data);
}
static rdna_status host_free(rdna__driver_device *device, void *data) { return release(device, data, true); }

static bool is_pinned(rdna__driver_device *device, const void *data, size_t size) {
  pthread_mutex_lock(&device->lock);
  const allocation *one = device->allocations;
  uintptr_t at = (uintptr_t)data;
  while (one && !(one->pinned && at >= (uintptr_t)one->data && at - (uintptr_t)one->data + size <= one->size))
    one = one->next;
  pthread_mutex_unlock(&device->lock);
  return one != NULL;
}

static rdna_status copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                        const void *src, size_t size) {
  /* pageable memory is read before the call returns: little through the task, much by waiting for the copy */
  enum { COPIED_AT_ONCE = 64 << 10 };
  bool pageable = kind == RDNA__COPY_TO_DEVICE && !is_pinned(device, src, size);
  if (pageable && size <= COPIED_AT_ONCE) return rdna__host_queue_copy_now(stream, dst, src, size);
  rdna__host_queue_copy(stream, dst, src, size);
  if (pageable) rdna__host_queue_wait(stream);
  return RDNA_OK;
}

static rdna_status fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                        size_t size) {
  rdna__host_queue_fill(stream, dst, value, size);
  return RDNA_OK;
}

static rdna_status copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                             rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct) {
  rdna__host_queue_copy(stream, dst, src, size);
  *out_direct = true;
  return RDNA_OK;
}

/* ---- streams and events ---- */

static rdna_status stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream) {
  stream_list *entry = calloc(1, sizeof *entry);
  if (!entry) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream ran out");
  rdna_status status = rdna__host_queue_create(&entry->queue);
  if (status != RDNA_OK) {
    free(entry);
    return status;
  }
  *out_stream = entry->queue;
  pthread_mutex_lock(&device->lock);
  entry->next = device->streams;
  device->streams = entry;
  pthread_mutex_unlock(&device->lock);
  return RDNA_OK;
}

static void stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream) {
  pthread_mutex_lock(&device->lock);
  stream_list **link = &device->streams;
  while ((*link)->queue != stream) link = &(*link)->next;
  stream_list *entry = *link;
  *link = entry->next;
  pthread_mutex_unlock(&device->lock);
  free(entry);
  rdna__host_queue_destroy(stream);
}

static rdna_status device_synchronize(rdna__driver_device *device) {
  /* Marks first and waiting after, without the lock: a callback under way may depend on a thread that makes or
   * destroys a stream. */
  rdna_status status = RDNA_OK;
  size_t streams = 0, count = 0;
  pthread_mutex_lock(&device->lock);
  for (stream_list *entry = device->streams; entry; entry = entry->next) streams++;
  rdna__host_mark **marks = calloc(streams + 1, sizeof *marks);
  if (!marks) status = rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for waiting on %zu streams ran out", streams);
  for (stream_list *entry = device->streams; entry && status == RDNA_OK; entry = entry->next) {
    status = rdna__host_queue_mark(entry->queue, &marks[count]);
    if (status == RDNA_OK) count++;
  }
  pthread_mutex_unlock(&device->lock);
  for (size_t i = 0; i < count; i++) {
    rdna__host_mark_wait(marks[i]);
    rdna__host_mark_release(marks[i]);
  }
  free(marks);
  return status;
}

static rdna_status stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream) {
  rdna__host_queue_wait(stream);
  return RDNA_OK;
}

static rdna_status stream_query(rdna__driver_device *device, rdna__driver_stream *stream) {
  return rdna__host_queue_idle(stream) ? RDNA_OK : RDNA_NOT_READY;
}

static rdna_status stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                               void *data) {
  rdna__host_queue_call(stream, callback, data);
  return RDNA_OK;
}

static rdna_status event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event) {
  rdna__driver_event *event = calloc(1, sizeof *event);
  if (!event) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for an event ran out");
  pthread_mutex_init(&event->lock, NULL);
  *out_event = event;
  return RDNA_OK;
}

static void event_destroy(rdna__driver_device *device, rdna__driver_event *event) {
  rdna__host_mark_release(event->mark);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

static rdna__host_mark *mark_of(rdna__driver_event *event) {
  pthread_mutex_lock(&event->lock);
  rdna__host_mark *mark = event->mark ? rdna__host_mark_retain(event->mark) : NULL;
  pthread_mutex_unlock(&event->lock);
  return mark;
}

static rdna_status event_record(rdna__driver_device *device, rdna__driver_event *event, rdna__driver_stream *stream) {
  rdna__host_mark *mark;
  RDNA_TRY(rdna__host_queue_mark(stream, &mark));
  pthread_mutex_lock(&event->lock);
  rdna__host_mark *old = event->mark;
  event->mark = mark;
  pthread_mutex_unlock(&event->lock);
  rdna__host_mark_release(old);
  return RDNA_OK;
}

static rdna_status stream_wait(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_event *event) {
  rdna__host_mark *mark = mark_of(event);
  if (mark) rdna__host_queue_wait_mark(stream, mark);
  rdna__host_mark_release(mark);
  return RDNA_OK;
}

static rdna_status event_synchronize(rdna__driver_device *device, rdna__driver_event *event) {
  rdna__host_mark *mark = mark_of(event);
  if (mark) rdna__host_mark_wait(mark);
  rdna__host_mark_release(mark);
  return RDNA_OK;
}

static int64_t time_of(rdna__driver_event *event) {
  rdna__host_mark *mark = mark_of(event);
  int64_t time = mark ? rdna__host_mark_time(mark) : 0;
  rdna__host_mark_release(mark);
  return time;
}

static rdna_status event_query(rdna__driver_device *device, rdna__driver_event *event) {
  rdna__host_mark *mark = mark_of(event);
  bool ready = !mark || rdna__host_mark_time(mark);
  rdna__host_mark_release(mark);
  return ready ? RDNA_OK : RDNA_NOT_READY;
}

static rdna_status event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                 float *out_ms) {
  int64_t from = time_of(start), to = time_of(end);
  if (!from || !to) return rdna__fail(RDNA_NOT_READY, "elapsed time was asked of an event that is not reached yet");
  *out_ms = (float)((double)(to - from) * 1e-6);
  return RDNA_OK;
}

/* ---- kernels: C functions, which need no module ---- */

static rdna_status launch(rdna__driver_device *device, rdna__driver_stream *stream,
                          const rdna__driver_function *function, rdna_grid grid, const void *args) {
  if (!function->host_function) return rdna__fail(RDNA_UNSUPPORTED, "kernel '%s' has no host function", function->name);
  return rdna__host_queue_launch(stream, function->host_function, grid, args, function->args_size);
}

const rdna__driver rdna__host_driver = {
    .name = "host",
    .code_format = RDNA__CODE_HOST,
    .probe = probe,
    .describe = describe,
    .device_open = device_open,
    RDNA__DRIVER_ENTRIES(),
};
