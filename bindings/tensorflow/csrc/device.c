/* TensorFlow may ask from any thread. What it never does is free a device: at exit the process takes all. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/memory.h"
#include "rdna/op/movement.h"

/* What the device of one ordinal is: its name, and once TensorFlow has made it, the device. */
static struct {
  char name[192], pci[32];
  rdna_device *device;
} devices[MAX_DEVICES];

static struct {
  bool asked;             /* tf_rdna has chosen */
  int count;              /* how many devices it left */
  int index[MAX_DEVICES]; /* which */
} visible;

static char why_none[512]; /* why there is no device, for tf_rdna */

TF_Code status_code(rdna_status result) {
  switch (result) {
    case RDNA_OK:
      return TF_OK;
    case RDNA_INVALID_ARGUMENT:
      return TF_INVALID_ARGUMENT;
    case RDNA_OUT_OF_MEMORY:
      return TF_RESOURCE_EXHAUSTED;
    case RDNA_NOT_FOUND:
      return TF_NOT_FOUND;
    case RDNA_UNSUPPORTED:
      return TF_UNIMPLEMENTED;
    case RDNA_UNAVAILABLE:
      return TF_UNAVAILABLE;
    default:
      return TF_INTERNAL;
  }
}

void report_status(rdna_status result, TF_Status *status) {
  if (result != RDNA_OK) tf.SetStatus(status, status_code(result), rdna_last_error());
}

rdna_device *device_of_ordinal(int ordinal) {
  return ordinal >= 0 && ordinal < MAX_DEVICES ? devices[ordinal].device : NULL;
}

static rdna_device *device_of(const SP_Device *device) { return device->device_handle; }

/* ---- memory ---- */

/* What TensorFlow has of all devices: a copy between two devices does not say which they are. */
static struct region {
  struct region *next;
  rdna_device *device;
  char *data;
  uint64_t size;
} *regions;
static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_region(struct region *region) {
  pthread_mutex_lock(&regions_lock);
  region->next = regions;
  regions = region;
  pthread_mutex_unlock(&regions_lock);
}

static void remove_region(const void *data) {
  pthread_mutex_lock(&regions_lock);
  struct region **at = &regions;
  while (*at && (*at)->data != data) at = &(*at)->next;
  struct region *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&regions_lock);
  free(found);
}

static rdna_device *owner(const void *data, rdna_device *otherwise) {
  pthread_mutex_lock(&regions_lock);
  struct region *at = regions;
  while (at && !((char *)data >= at->data && (char *)data < at->data + at->size)) at = at->next;
  pthread_mutex_unlock(&regions_lock);
  return at ? at->device : otherwise;
}

/* TensorFlow divides what it gets here among tensors itself, in the order of its one stream of kernels. */
static void allocate(const SP_Device *device, uint64_t size, int64_t memory_space, SP_DeviceMemoryBase *memory) {
  (void)memory_space;
  void *data = NULL;
  memory->struct_size = TF_END_OF(SP_DeviceMemoryBase, payload);
  memory->size = 0;
  memory->opaque = NULL;
  struct region *region = malloc(sizeof *region);
  if (!region || rdna_memory_alloc_named(device_of(device), size, NULL, "tensorflow", &data) != RDNA_OK || !data) {
    free(region);
    return;
  }
  *region = (struct region){.device = device_of(device), .data = data, .size = size};
  add_region(region);
  memory->opaque = data;
  memory->size = size;
}

static void deallocate(const SP_Device *device, SP_DeviceMemoryBase *memory) {
  remove_region(memory->opaque);
  /* All streams may have used it. */
  if (rdna_device_synchronize(device_of(device)) == RDNA_OK &&
      rdna_memory_free(device_of(device), memory->opaque) == RDNA_OK) {
    memory->opaque = NULL;
    memory->size = 0;
  }
}

static void *host_memory_allocate(const SP_Device *device, uint64_t size) {
  void *data = NULL;
  return rdna_host_alloc(device_of(device), size, &data) == RDNA_OK ? data : NULL;
}

static void host_memory_deallocate(const SP_Device *device, void *memory) { rdna_host_free(device_of(device), memory); }

static TF_Bool get_allocator_stats(const SP_Device *device, SP_AllocatorStats *stats) {
  rdna_memory_stats ours;
  rdna_memory_get_stats(device_of(device), &ours);
  stats->struct_size = TF_END_OF(SP_AllocatorStats, largest_free_block_bytes);
  stats->num_allocs = (int64_t)ours.alloc_count;
  stats->bytes_in_use = (int64_t)ours.allocated;
  stats->peak_bytes_in_use = (int64_t)ours.peak_allocated;
  stats->bytes_reserved = (int64_t)ours.reserved;
  stats->peak_bytes_reserved = (int64_t)ours.peak_reserved;
  return 1;
}

static TF_Bool device_memory_usage(const SP_Device *device, int64_t *out_free, int64_t *out_total) {
  uint64_t free_bytes, total;
  if (rdna_memory_get_info(device_of(device), &free_bytes, &total) != RDNA_OK) return 0;
  *out_free = (int64_t)free_bytes;
  *out_total = (int64_t)total;
  return 1;
}

/* ---- streams and events ---- */

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct SP_Stream_st *streams; /* all that there are */

static void create_stream(const SP_Device *device, SP_Stream *out_stream, TF_Status *status) {
  SP_Stream stream = calloc(1, sizeof *stream);
  if (!stream) {
    tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a stream");
    return;
  }
  rdna_status result = rdna_stream_create(device_of(device), 0, &stream->stream);
  if (result != RDNA_OK) {
    report_status(result, status);
    free(stream);
    return;
  }
  pthread_mutex_init(&stream->lock, NULL);
  pthread_mutex_lock(&streams_lock);
  stream->next = streams;
  streams = stream;
  pthread_mutex_unlock(&streams_lock);
  *out_stream = stream;
}

static void destroy_stream(const SP_Device *device, SP_Stream stream) {
  (void)device;
  pthread_mutex_lock(&streams_lock);
  struct SP_Stream_st **at = &streams;
  while (*at != stream) at = &(*at)->next;
  *at = stream->next;
  pthread_mutex_unlock(&streams_lock);
  rdna_stream_release(stream->stream);
  pthread_mutex_destroy(&stream->lock);
  free(stream);
}

struct SP_Event_st {
  rdna_event *event;
  pthread_mutex_t lock;
};

static rdna_status record(SP_Stream stream, rdna_event *event) {
  pthread_mutex_lock(&stream->lock);
  rdna_status result = rdna_event_record(event, stream->stream);
  pthread_mutex_unlock(&stream->lock);
  return result;
}

static rdna_status wait(SP_Stream stream, rdna_event *event) {
  pthread_mutex_lock(&stream->lock);
  rdna_status result = rdna_stream_wait(stream->stream, event);
  pthread_mutex_unlock(&stream->lock);
  return result;
}

/* The two may be of two devices: the event is the other's, which records it. */
static rdna_status wait_for_stream(SP_Stream dependent, SP_Stream other) {
  rdna_event *event;
  rdna_status result = rdna_event_create(rdna_stream_device(other->stream), false, &event);
  if (result != RDNA_OK) return result;
  result = record(other, event);
  if (result == RDNA_OK) result = wait(dependent, event);
  rdna_event_release(event);
  return result;
}

static void create_stream_dependency(const SP_Device *device, SP_Stream dependent, SP_Stream other, TF_Status *status) {
  (void)device;
  report_status(wait_for_stream(dependent, other), status);
}

static void get_stream_status(const SP_Device *device, SP_Stream stream, TF_Status *status) {
  (void)device;
  pthread_mutex_lock(&stream->lock);
  rdna_status result = rdna_stream_query(stream->stream);
  pthread_mutex_unlock(&stream->lock);
  if (result != RDNA_NOT_READY) report_status(result, status);
}

static void create_event(const SP_Device *device, SP_Event *out_event, TF_Status *status) {
  SP_Event event = calloc(1, sizeof *event);
  if (!event) {
    tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for an event");
    return;
  }
  rdna_status result = rdna_event_create(device_of(device), false, &event->event);
  if (result != RDNA_OK) {
    report_status(result, status);
    free(event);
    return;
  }
  pthread_mutex_init(&event->lock, NULL);
  *out_event = event;
}

static void destroy_event(const SP_Device *device, SP_Event event) {
  (void)device;
  rdna_event_release(event->event);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

static SE_EventStatus get_event_status(const SP_Device *device, SP_Event event) {
  (void)device;
  pthread_mutex_lock(&event->lock);
  rdna_status result = rdna_event_query(event->event);
  pthread_mutex_unlock(&event->lock);
  if (result == RDNA_OK) return SE_EVENT_COMPLETE;
  return result == RDNA_NOT_READY ? SE_EVENT_PENDING : SE_EVENT_ERROR;
}

static void record_event(const SP_Device *device, SP_Stream stream, SP_Event event, TF_Status *status) {
  (void)device;
  pthread_mutex_lock(&event->lock);
  report_status(record(stream, event->event), status);
  pthread_mutex_unlock(&event->lock);
}

static void wait_for_event(const SP_Device *device, SP_Stream stream, SP_Event event, TF_Status *status) {
  (void)device;
  pthread_mutex_lock(&event->lock);
  report_status(wait(stream, event->event), status);
  pthread_mutex_unlock(&event->lock);
}

static void block_host_for_event(const SP_Device *device, SP_Event event, TF_Status *status) {
  (void)device;
  report_status(rdna_event_synchronize(event->event), status);
}

static void block_host_until_done(const SP_Device *device, SP_Stream stream, TF_Status *status) {
  (void)device;
  pthread_mutex_lock(&stream->lock);
  report_status(rdna_stream_synchronize(stream->stream), status);
  pthread_mutex_unlock(&stream->lock);
}

static void synchronize_all_activity(const SP_Device *device, TF_Status *status) {
  report_status(rdna_device_synchronize(device_of(device)), status);
}

struct SP_Timer_st {
  rdna_event *start, *stop;
};

static void destroy_timer(const SP_Device *device, SP_Timer timer) {
  (void)device;
  rdna_event_release(timer->start);
  rdna_event_release(timer->stop);
  free(timer);
}

static void create_timer(const SP_Device *device, SP_Timer *out_timer, TF_Status *status) {
  SP_Timer timer = calloc(1, sizeof *timer);
  if (!timer) {
    tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a timer");
    return;
  }
  rdna_status result = rdna_event_create(device_of(device), true, &timer->start);
  if (result == RDNA_OK) result = rdna_event_create(device_of(device), true, &timer->stop);
  if (result != RDNA_OK) {
    report_status(result, status);
    destroy_timer(device, timer);
    return;
  }
  *out_timer = timer;
}

static void start_timer(const SP_Device *device, SP_Stream stream, SP_Timer timer, TF_Status *status) {
  (void)device;
  report_status(record(stream, timer->start), status);
}

static void stop_timer(const SP_Device *device, SP_Stream stream, SP_Timer timer, TF_Status *status) {
  (void)device;
  report_status(record(stream, timer->stop), status);
}

static uint64_t nanoseconds(SP_Timer timer) {
  float milliseconds = 0;
  if (rdna_event_synchronize(timer->stop) != RDNA_OK ||
      rdna_event_elapsed(timer->start, timer->stop, &milliseconds) != RDNA_OK)
    return 0;
  return (uint64_t)((double)milliseconds * 1e6);
}

/* ---- copies ---- */

static void memcpy_dtoh(const SP_Device *device, SP_Stream stream, void *host, const SP_DeviceMemoryBase *memory,
                        uint64_t size, TF_Status *status) {
  (void)device;
  pthread_mutex_lock(&stream->lock);
  report_status(rdna_copy_to_host(stream->stream, host, memory->opaque, size), status);
  pthread_mutex_unlock(&stream->lock);
}

/* |stream| waits for what kernels are queued on its device. TensorFlow gives memory away again in the order of the
 * kernels, and lets copies wait for them, but for the values of constants (Device::MakeTensorFromProto): a kernel that
 * was queued before would write over them. */
static rdna_status wait_for_kernels(SP_Stream stream) {
  rdna_status result = RDNA_OK;
  pthread_mutex_lock(&streams_lock);
  for (struct SP_Stream_st *other = streams; other && result == RDNA_OK; other = other->next)
    if (other != stream && atomic_load_explicit(&other->computes, memory_order_acquire) &&
        rdna_stream_device(other->stream) == rdna_stream_device(stream->stream))
      result = wait_for_stream(stream, other);
  pthread_mutex_unlock(&streams_lock);
  return result;
}

static void memcpy_htod(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, const void *host,
                        uint64_t size, TF_Status *status) {
  (void)device;
  rdna_status result = wait_for_kernels(stream);
  pthread_mutex_lock(&stream->lock);
  if (result == RDNA_OK) result = rdna_copy_to_device(stream->stream, memory->opaque, host, size);
  report_status(result, status);
  pthread_mutex_unlock(&stream->lock);
}

/* The stream is the source's. Between devices the host waits: librdna's copies are in the order of the receiver. */
static rdna_status copy_between(rdna_stream *stream, rdna_device *to, void *dst, rdna_device *from, const void *src,
                                uint64_t size) {
  if (to == from) return rdna_copy_on_device(stream, dst, src, size);
  rdna_status result = rdna_stream_synchronize(stream);
  rdna_stream *receiver = rdna_device_default_stream(to);
  if (result == RDNA_OK) result = rdna_copy_peer(receiver, dst, from, src, size);
  return result == RDNA_OK ? rdna_stream_synchronize(receiver) : result;
}

static void memcpy_dtod(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
                        const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status) {
  rdna_device *receiver = owner(to->opaque, device_of(device)), *sender = owner(from->opaque, device_of(device));
  pthread_mutex_lock(&stream->lock);
  report_status(copy_between(stream->stream, receiver, to->opaque, sender, from->opaque, size), status);
  pthread_mutex_unlock(&stream->lock);
}

static rdna_stream *default_stream(const SP_Device *device) { return rdna_device_default_stream(device_of(device)); }

static void finish(const SP_Device *device, rdna_status result, TF_Status *status) {
  if (result == RDNA_OK) result = rdna_stream_synchronize(default_stream(device));
  report_status(result, status);
}

static void sync_memcpy_dtoh(const SP_Device *device, void *host, const SP_DeviceMemoryBase *memory, uint64_t size,
                             TF_Status *status) {
  finish(device, rdna_copy_to_host(default_stream(device), host, memory->opaque, size), status);
}

static void sync_memcpy_htod(const SP_Device *device, SP_DeviceMemoryBase *memory, const void *host, uint64_t size,
                             TF_Status *status) {
  finish(device, rdna_copy_to_device(default_stream(device), memory->opaque, host, size), status);
}

static void sync_memcpy_dtod(const SP_Device *device, SP_DeviceMemoryBase *to, const SP_DeviceMemoryBase *from,
                             uint64_t size, TF_Status *status) {
  finish(device, rdna_copy_on_device(default_stream(device), to->opaque, from->opaque, size), status);
}

static void set_bytes(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint8_t value,
                      uint64_t size, TF_Status *status) {
  (void)device;
  pthread_mutex_lock(&stream->lock);
  report_status(rdna_fill_bytes(stream->stream, memory->opaque, value, size), status);
  pthread_mutex_unlock(&stream->lock);
}

static void mem_zero(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint64_t size,
                     TF_Status *status) {
  set_bytes(device, stream, memory, 0, size, status);
}

static void set_words(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint32_t value,
                      uint64_t size, TF_Status *status) {
  (void)device;
  int64_t count = (int64_t)(size / sizeof value);
  rdna_tensor words = rdna_tensor_contiguous(memory->opaque, RDNA_I32, 1, &count);
  pthread_mutex_lock(&stream->lock);
  report_status(rdna_op_fill(stream->stream, rdna_scalar_integer((int32_t)value), &words), status);
  pthread_mutex_unlock(&stream->lock);
}

struct callback {
  SE_StatusCallbackFn function;
  void *argument;
};

static void call_back(void *data) {
  struct callback *callback = data;
  TF_Status *status = tf.NewStatus();
  callback->function(callback->argument, status);
  tf.DeleteStatus(status);
  free(callback);
}

static TF_Bool host_callback(const SP_Device *device, SP_Stream stream, SE_StatusCallbackFn function, void *argument) {
  (void)device;
  struct callback *callback = malloc(sizeof *callback);
  if (!callback) return 0;
  *callback = (struct callback){function, argument};
  pthread_mutex_lock(&stream->lock);
  rdna_status result = rdna_stream_call(stream->stream, call_back, callback);
  pthread_mutex_unlock(&stream->lock);
  if (result != RDNA_OK) free(callback);
  return result == RDNA_OK;
}

/* ---- the platform ---- */

/* The driver whose devices are TensorFlow's: a GPU's, or the one that a person asked for. */
static rdna_status find_driver(rdna_driver_info *out_driver) {
  bool asked;
  rdna_status result = rdna_driver_default(out_driver, &asked);
  if (result != RDNA_OK || out_driver->status != RDNA_OK) {
    snprintf(why_none, sizeof why_none, "%s", result != RDNA_OK ? rdna_last_error() : out_driver->message);
    return result != RDNA_OK ? result : out_driver->status;
  }
  if (!asked && strcmp(out_driver->name, "host") == 0) {
    snprintf(why_none, sizeof why_none,
             "no GPU was found (rdna doctor says why); RDNA_DRIVER=host computes on the processor");
    return RDNA_UNAVAILABLE;
  }
  return RDNA_OK;
}

static int all_devices(void) {
  rdna_driver_info driver;
  if (find_driver(&driver) != RDNA_OK) return 0;
  return driver.device_count < MAX_DEVICES ? driver.device_count : MAX_DEVICES;
}

static void get_device_count(const SP_Platform *platform, int *count, TF_Status *status) {
  (void)platform;
  (void)status;
  *count = visible.asked ? visible.count : all_devices();
}

static void create_device(const SP_Platform *platform, SE_CreateDeviceParams *params, TF_Status *status) {
  (void)platform;
  rdna_driver_info driver;
  rdna_status result = find_driver(&driver);
  int ordinal = params->ordinal;
  if (result != RDNA_OK || ordinal < 0 || ordinal >= (visible.asked ? visible.count : MAX_DEVICES)) {
    tf.SetStatus(status, TF_NOT_FOUND, result == RDNA_OK ? "there is no device of this number" : why_none);
    return;
  }
  char name[32];
  snprintf(name, sizeof name, "%s:%d", driver.name, visible.asked ? visible.index[ordinal] : ordinal);
  rdna_device *device;
  result = rdna_device_open(name, &device);
  if (result != RDNA_OK) {
    report_status(result, status);
    return;
  }
  const rdna_device_info *info = rdna_device_get_info(device);
  snprintf(devices[ordinal].name, sizeof devices[ordinal].name, "%s (%s)", info->name, info->arch);
  snprintf(devices[ordinal].pci, sizeof devices[ordinal].pci, "%04x:%02x:%02x.0",
           info->pci_domain < 0 ? 0u : (unsigned)info->pci_domain, info->pci_bus < 0 ? 0u : (unsigned)info->pci_bus,
           info->pci_device < 0 ? 0u : (unsigned)info->pci_device);
  devices[ordinal].device = device;
  params->device->struct_size = TF_END_OF(SP_Device, pci_bus_id);
  params->device->ordinal = ordinal;
  params->device->device_handle = device;
  params->device->hardware_name = devices[ordinal].name;
  params->device->device_vendor = strcmp(driver.name, "hip") == 0 ? "AMD" : driver.name;
  params->device->pci_bus_id = devices[ordinal].pci;
}

static void destroy_device(const SP_Platform *platform, SP_Device *device) {
  (void)platform;
  rdna_device_release(device->device_handle);
  device->device_handle = NULL;
}

static void create_device_fns(const SP_Platform *platform, SE_CreateDeviceFnsParams *params, TF_Status *status) {
  (void)platform;
  (void)status;
  params->device_fns->struct_size = TF_END_OF(SP_DeviceFns, get_gflops);
}

static void destroy_device_fns(const SP_Platform *platform, SP_DeviceFns *functions) {
  (void)platform;
  (void)functions;
}

static void create_stream_executor(const SP_Platform *platform, SE_CreateStreamExecutorParams *params,
                                   TF_Status *status) {
  (void)platform;
  (void)status;
  *params->stream_executor = (SP_StreamExecutor){
      .struct_size = TF_END_OF(SP_StreamExecutor, host_callback),
      .allocate = allocate,
      .deallocate = deallocate,
      .host_memory_allocate = host_memory_allocate,
      .host_memory_deallocate = host_memory_deallocate,
      .get_allocator_stats = get_allocator_stats,
      .device_memory_usage = device_memory_usage,
      .create_stream = create_stream,
      .destroy_stream = destroy_stream,
      .create_stream_dependency = create_stream_dependency,
      .get_stream_status = get_stream_status,
      .create_event = create_event,
      .destroy_event = destroy_event,
      .get_event_status = get_event_status,
      .record_event = record_event,
      .wait_for_event = wait_for_event,
      .create_timer = create_timer,
      .destroy_timer = destroy_timer,
      .start_timer = start_timer,
      .stop_timer = stop_timer,
      .memcpy_dtoh = memcpy_dtoh,
      .memcpy_htod = memcpy_htod,
      .memcpy_dtod = memcpy_dtod,
      .sync_memcpy_dtoh = sync_memcpy_dtoh,
      .sync_memcpy_htod = sync_memcpy_htod,
      .sync_memcpy_dtod = sync_memcpy_dtod,
      .block_host_for_event = block_host_for_event,
      .block_host_until_done = block_host_until_done,
      .synchronize_all_activity = synchronize_all_activity,
      .mem_zero = mem_zero,
      .memset = set_bytes,
      .memset32 = set_words,
      .host_callback = host_callback,
  };
}

static void destroy_stream_executor(const SP_Platform *platform, SP_StreamExecutor *executor) {
  (void)platform;
  (void)executor;
}

static void create_timer_fns(const SP_Platform *platform, SP_TimerFns *timer, TF_Status *status) {
  (void)platform;
  (void)status;
  timer->struct_size = TF_END_OF(SP_TimerFns, nanoseconds);
  timer->nanoseconds = nanoseconds;
}

static void destroy_timer_fns(const SP_Platform *platform, SP_TimerFns *timer) {
  (void)platform;
  (void)timer;
}

static void destroy_platform(SP_Platform *platform) { (void)platform; }

static void destroy_platform_fns(SP_PlatformFns *functions) { (void)functions; }

static bool without_tensorflow; /* a function is missing: there are no devices and no kernels */

/* TensorFlow ends the process where a plugin's beginning fails, so it never does: without devices it says why. */
RDNA_API void SE_InitPlugin(SE_PlatformRegistrationParams *params, TF_Status *status) {
  (void)status;
  const char *missing = find_functions();
  if (missing) {
    snprintf(why_none, sizeof why_none, "this TensorFlow has no %s; the plugin knows 2.16 to 2.21", missing);
    visible.asked = true;
    without_tensorflow = true;
  }
  params->struct_size = TF_END_OF(SE_PlatformRegistrationParams, destroy_platform_fns);
  params->major_version = 0;
  params->minor_version = 0;
  params->patch_version = 1;
  *params->platform = (SP_Platform){
      .struct_size = TF_END_OF(SP_Platform, force_memory_growth),
      .name = "RDNA",
      .type = "RDNA",
      .use_bfc_allocator = 1, /* tensors are freed before the work on them is done, which only it allows */
      .force_memory_growth = 1,
  };
  *params->platform_fns = (SP_PlatformFns){
      .struct_size = TF_END_OF(SP_PlatformFns, destroy_timer_fns),
      .get_device_count = get_device_count,
      .create_device = create_device,
      .destroy_device = destroy_device,
      .create_device_fns = create_device_fns,
      .destroy_device_fns = destroy_device_fns,
      .create_stream_executor = create_stream_executor,
      .destroy_stream_executor = destroy_stream_executor,
      .create_timer_fns = create_timer_fns,
      .destroy_timer_fns = destroy_timer_fns,
  };
  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
}

bool have_tensorflow(void) { return !without_tensorflow; }

/* ---- the processor as a device ---- */

pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;

rdna_stream *host_stream(void) {
  static rdna_stream *stream; /* of a device that is never closed */
  rdna_device *device;
  if (!stream && rdna_device_open("host", &device) == RDNA_OK && rdna_stream_create(device, 0, &stream) != RDNA_OK)
    rdna_device_release(device);
  return stream;
}

/* ---- what tf_rdna asks for, by ctypes ---- */

/* How many devices there are, whichever of them are visible. */
RDNA_API int rdna_tensorflow_device_count(void) { return all_devices(); }

/* Leaves |count| of them, which become RDNA:0, RDNA:1, …; to be called before TensorFlow has made its devices. False: a
 * number that there is not, and nothing was changed. */
RDNA_API bool rdna_tensorflow_set_visible(const int *indices, int count) {
  if (without_tensorflow || count < 0 || count > MAX_DEVICES) return false;
  int all = all_devices();
  for (int i = 0; i < count; i++)
    if (indices[i] < 0 || indices[i] >= all) return false;
  for (int i = 0; i < count; i++) visible.index[i] = indices[i];
  visible.count = count;
  visible.asked = true;
  return true;
}

/* Why there are no devices, or "". Lives as long as the process. */
RDNA_API const char *rdna_tensorflow_why_none(void) { return why_none; }

/* What the pool of RDNA:|ordinal| holds: every tensor of TensorFlow and of others in this process, with scratch memory.
 * False before TensorFlow has made that device. */
RDNA_API bool rdna_tensorflow_memory(int ordinal, rdna_memory_stats *out_stats) {
  if (!device_of_ordinal(ordinal)) return false;
  rdna_memory_get_stats(device_of_ordinal(ordinal), out_stats);
  return true;
}
