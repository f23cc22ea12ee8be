/* A device for tests: its memory is the host's, its copies copy before they return, its kernels do nothing, and
 * any of its calls fails on demand. A call that fails has done nothing, as if it had never been made. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "device/driver.h"

enum { DEVICE_COUNT = 2, ALIGNMENT = 512, MAPPED = 1 << 20 };
#define TOTAL_MEMORY (UINT64_C(16) << 30)

typedef struct allocation {
  struct allocation *next;
  void *data;
  size_t size;
  bool pinned;
} allocation;

struct rdna__driver_device {
  pthread_mutex_t lock;
  allocation *allocations;
  uint64_t used;
};

typedef struct held_copy {
  struct held_copy *next;
  void *dst;
  const void *src;
  size_t size;
} held_copy;

struct rdna__driver_stream {
  atomic_int error; /* what a launch left for whoever waits */
  held_copy *held;  /* oldest first; of one thread at a time */
};

struct rdna__driver_event {
  _Atomic int64_t time;
  rdna__driver_stream *_Atomic stream; /* that was to be waited for, where its copies are held */
};

static atomic_ullong calls, fail_at;
static atomic_int fail_status, launch_status;
static atomic_bool copies_are_held;
static atomic_ullong live;
static _Atomic int64_t told_time = -1; /* ns; -1: the clock's */

void rdna__null_fail(uint64_t nth, rdna_status status) {
  atomic_store(&fail_status, (int)status);
  atomic_store(&calls, 0);
  atomic_store(&fail_at, nth);
}

uint64_t rdna__null_calls(void) { return atomic_load(&calls); }
void rdna__null_fail_launch(rdna_status status) { atomic_store(&launch_status, (int)status); }
void rdna__null_pass_time(double milliseconds) {
  int64_t now = atomic_load(&told_time);
  atomic_store(&told_time, (now < 0 ? 0 : now) + (int64_t)(milliseconds * 1e6));
}
void rdna__null_hold_copies(bool held) { atomic_store(&copies_are_held, held); }
uint64_t rdna__null_live(void) { return atomic_load(&live); }

/* The first thing in every entry that can fail. */
static rdna_status pass(const char *entry) {
  unsigned long long call = atomic_fetch_add(&calls, 1) + 1;
  if (call != atomic_load(&fail_at)) return RDNA_OK;
  return rdna__fail((rdna_status)atomic_load(&fail_status), "the null driver was told to fail call %llu, %s", call,
                    entry);
}

static void *make(size_t size) {
  void *object = calloc(1, size);
  if (object) atomic_fetch_add(&live, 1);
  return object;
}

static void unmake(void *object) {
  atomic_fetch_sub(&live, 1);
  free(object);
}

/* Large pieces are mapped and cost nothing until they are touched, also under sanitizers; small ones come from
 * malloc, where sanitizers see a write past their end. */
static void *get_pages(size_t size) {
  void *data = NULL;
  if (size < MAPPED) return posix_memalign(&data, ALIGNMENT, size) == 0 ? data : NULL;
  data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data != MAP_FAILED ? data : NULL;
}

static void free_pages(void *data, size_t size) {
  if (size < MAPPED)
    free(data);
  else
    munmap(data, size);
}

static rdna_status no_host_memory(void) {
  return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a null device ran out");
}

static void probe(rdna_driver_info *out_info) {
  out_info->status = RDNA_OK;
  out_info->message = "for tests: computes nothing";
  out_info->device_count = DEVICE_COUNT;
}

static rdna_status describe(int index, rdna_device_info *out_info) {
  RDNA_TRY(pass("describe"));
  *out_info = (rdna_device_info){
      .driver = "null",
      .arch = "null",
      .index = index,
      .native_index = index,
      .total_memory = TOTAL_MEMORY,
      .compute_units = 1,
      .wave_size = 32,
      .max_group_threads = 1024,
      .max_group_memory = 65536,
      .pci_domain = -1,
      .pci_bus = -1,
      .pci_device = -1,
  };
  snprintf(out_info->name, sizeof out_info->name, "null device %d (computes nothing)", index);
  return RDNA_OK;
}

static rdna_status device_open(int index, rdna__driver_device **out_device) {
  RDNA_TRY(pass("device_open"));
  rdna__driver_device *device = make(sizeof *device);
  if (!device) return no_host_memory();
  pthread_mutex_init(&device->lock, NULL);
  *out_device = device;
  return RDNA_OK;
}

/* As a vendor's context does, takes with it what was not freed. */
static void device_close(rdna__driver_device *device) {
  for (allocation *one = device->allocations, *next; one; one = next) {
    next = one->next;
    free_pages(one->data, one->size);
    unmake(one);
  }
  pthread_mutex_destroy(&device->lock);
  unmake(device);
}

static rdna_status device_synchronize(rdna__driver_device *device) { return pass("device_synchronize"); }

static rdna_status memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total) {
  RDNA_TRY(pass("memory_info"));
  pthread_mutex_lock(&device->lock);
  *out_free = TOTAL_MEMORY - device->used;
  *out_total = TOTAL_MEMORY;
  pthread_mutex_unlock(&device->lock);
  return RDNA_OK;
}

static rdna_status allocate(rdna__driver_device *device, size_t size, bool pinned, void **out_data) {
  pthread_mutex_lock(&device->lock);
  bool fits = size <= TOTAL_MEMORY - device->used;
  allocation *one = fits ? make(sizeof *one) : NULL;
  void *data = one ? get_pages(size) : NULL;
  if (data) {
    *one = (allocation){.next = device->allocations, .data = data, .size = size, .pinned = pinned};
    device->allocations = one;
    if (!pinned) device->used += size;
  }
  pthread_mutex_unlock(&device->lock);
  if (!data) {
    if (one) unmake(one);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "%zu bytes do not fit into a null device", size);
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
    if (!pinned) device->used -= one->size;
  }
  pthread_mutex_unlock(&device->lock);
  if (!one) return rdna__fail(RDNA_INVALID_ARGUMENT, "%p is no memory that the null driver gave", data);
  free_pages(one->data, one->size);
  unmake(one);
  return RDNA_OK;
}

static rdna_status memory_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  RDNA_TRY(pass("memory_alloc"));
  return allocate(device, size, false, out_data);
}

static rdna_status memory_free(rdna__driver_device *device, void *data) {
  RDNA_TRY(pass("memory_free"));
  return release(device, data, false);
}

static rdna_status host_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  RDNA_TRY(pass("host_alloc"));
  return allocate(device, size, true, out_data);
}

static rdna_status host_free(rdna__driver_device *device, void *data) {
  RDNA_TRY(pass("host_free"));
  return release(device, data, true);
}

static rdna_status copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                        const void *src, size_t size) {
  RDNA_TRY(pass("copy"));
  if (kind != RDNA__COPY_TO_DEVICE || !atomic_load(&copies_are_held)) {
    memcpy(dst, src, size);
    return RDNA_OK;
  }
  held_copy *one = make(sizeof *one), **link = &stream->held;
  if (!one) return no_host_memory();
  *one = (held_copy){.dst = dst, .src = src, .size = size};
  while (*link) link = &(*link)->next;
  *link = one;
  return RDNA_OK;
}

static void let_go(rdna__driver_stream *stream) {
  for (held_copy *one = stream->held, *next; one; one = next) {
    next = one->next;
    memcpy(one->dst, one->src, one->size);
    unmake(one);
  }
  stream->held = NULL;
}

static rdna_status fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                        size_t size) {
  RDNA_TRY(pass("fill"));
  memset(dst, value, size);
  return RDNA_OK;
}

/* Two null devices cannot reach each other, so that the way through host memory is tested. */
static rdna_status copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                             rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct) {
  RDNA_TRY(pass("copy_peer"));
  *out_direct = false;
  return RDNA_OK;
}

static rdna_status stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream) {
  RDNA_TRY(pass("stream_create"));
  *out_stream = make(sizeof **out_stream);
  return *out_stream ? RDNA_OK : no_host_memory();
}

static void stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream) {
  let_go(stream);
  unmake(stream);
}

static rdna_status surface(rdna__driver_stream *stream) {
  rdna_status status = (rdna_status)atomic_exchange(&stream->error, RDNA_OK);
  return status == RDNA_OK ? RDNA_OK : rdna__fail(status, "the null driver was told to fail a launch");
}

static rdna_status stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream) {
  RDNA_TRY(pass("stream_synchronize"));
  let_go(stream);
  return surface(stream);
}

static rdna_status stream_query(rdna__driver_device *device, rdna__driver_stream *stream) {
  RDNA_TRY(pass("stream_query"));
  return surface(stream);
}

static rdna_status stream_wait(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_event *event) {
  return pass("stream_wait");
}

static rdna_status stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                               void *data) {
  RDNA_TRY(pass("stream_call"));
  callback(data);
  return RDNA_OK;
}

static rdna_status event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event) {
  RDNA_TRY(pass("event_create"));
  *out_event = make(sizeof **out_event);
  return *out_event ? RDNA_OK : no_host_memory();
}

static void event_destroy(rdna__driver_device *device, rdna__driver_event *event) { unmake(event); }

static rdna_status event_record(rdna__driver_device *device, rdna__driver_event *event, rdna__driver_stream *stream) {
  RDNA_TRY(pass("event_record"));
  atomic_store(&event->stream, stream);
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  int64_t told = atomic_load(&told_time);
  atomic_store(&event->time, told >= 0 ? told : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
  return RDNA_OK;
}

static rdna_status event_synchronize(rdna__driver_device *device, rdna__driver_event *event) {
  RDNA_TRY(pass("event_synchronize"));
  rdna__driver_stream *stream = atomic_load(&event->stream);
  if (stream && atomic_load(&copies_are_held)) let_go(stream);
  return RDNA_OK;
}

static rdna_status event_query(rdna__driver_device *device, rdna__driver_event *event) { return pass("event_query"); }

static rdna_status event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                 float *out_ms) {
  RDNA_TRY(pass("event_elapsed"));
  *out_ms = (float)((double)(atomic_load(&end->time) - atomic_load(&start->time)) * 1e-6);
  return RDNA_OK;
}

static rdna_status launch(rdna__driver_device *device, rdna__driver_stream *stream,
                          const rdna__driver_function *function, rdna_grid grid, const void *args) {
  RDNA_TRY(pass("launch"));
  int status = atomic_exchange(&launch_status, RDNA_OK);
  if (status != RDNA_OK) atomic_store(&stream->error, status);
  return RDNA_OK;
}

const rdna__driver rdna__null_driver = {
    .name = "null",
    .code_format = RDNA__CODE_HOST,
    .probe = probe,
    .describe = describe,
    .device_open = device_open,
    RDNA__DRIVER_ENTRIES(),
};
