#include "device/driver/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same numbers in hip_runtime_api.h 5.2.3 and cuda.h 12.9, and part of both interfaces for good. */
enum {
  CODE_NOT_READY = 600,
  HOST_ALLOC_PORTABLE = 1,
  STREAM_NON_BLOCKING = 1,
  EVENT_DISABLE_TIMING = 2,
  CAPTURE_RELAXED = 2 /* other threads, and allocations of ours, go on meanwhile */
};
#define LAUNCH_BUFFER_POINTER ((void *)1)
#define LAUNCH_BUFFER_SIZE ((void *)2)

static const rdna__gpu_calls *calls_of(const rdna__driver_device *device) { return device->gpu->calls; }

rdna_status rdna__gpu_enter(rdna__gpu_scope *scope, rdna__driver_device *device, rdna__driver_stream *stream) {
  *scope = (rdna__gpu_scope){.device = device, .stream = stream};
  return device->gpu->make_current(scope);
}

rdna_status rdna__gpu_leave(rdna__gpu_scope *scope, int code, const char *format, ...) {
  const rdna__gpu_library *gpu = scope->device->gpu;
  if (code != 0 && gpu->forget_error != NULL) gpu->forget_error(code);
  if (scope->restore) {
    int put_back = gpu->put_back(scope);
    if (code == 0) code = put_back;
  }
  if (code == 0) return RDNA_OK;
  if (code == CODE_NOT_READY) return RDNA_NOT_READY; /* polled: no sentence */
  char what[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  const rdna_device_info *info = &scope->device->info;
  if (!gpu->is_asynchronous(code)) {
    return rdna__fail(gpu->status_of(code), "%s on %s:%d (%s): %s (%s, %d)", what, gpu->name, info->index, info->name,
                      gpu->code_text(code), gpu->code_name(code), code);
  }
  const char *kernel = atomic_load(scope->stream != NULL ? &scope->stream->last_kernel : &scope->device->last_kernel);
  return rdna__fail(gpu->status_of(code),
                    "%s on %s:%d (%s): %s (%s, %d). The last kernel queued on this %s was '%s'; it or one before it "
                    "failed. %s",
                    what, gpu->name, info->index, info->name, gpu->code_text(code), gpu->code_name(code), code,
                    scope->stream != NULL ? "stream" : "device", kernel == NULL ? "none" : kernel,
                    gpu->late_error_advice);
}

/* ---- probe ------------------------------------------------------------------------------------------------ */

void rdna__gpu_forget(rdna__gpu_library *gpu) {
  memset(&gpu->library, 0, sizeof gpu->library);
  memset(gpu->devices, 0, sizeof gpu->devices);
  gpu->version[0] = gpu->message[0] = '\0';
  gpu->count = 0;
}

rdna_status rdna__gpu_list_devices(rdna__gpu_library *gpu, int count) {
  rdna_device_info found[RDNA__GPU_MAX_DEVICES];
  if (count > RDNA__GPU_MAX_DEVICES) count = RDNA__GPU_MAX_DEVICES;
  for (int i = 0; i < count; i++) RDNA_TRY(gpu->read_device(i, &found[i]));
  for (int integrated = 0; integrated < 2; integrated++) {
    for (int i = 0; i < count; i++) {
      if (found[i].integrated != (integrated == 1)) continue;
      gpu->devices[gpu->count] = found[i];
      gpu->devices[gpu->count].index = gpu->count;
      gpu->count++;
    }
  }
  return RDNA_OK;
}

void rdna__gpu_report(rdna__gpu_library *gpu, rdna_status status, const char *found, rdna_driver_info *out_info) {
  if (status == RDNA_OK) {
    snprintf(gpu->message, sizeof gpu->message, "%s %s with %d device%s, from %s", found, gpu->version, gpu->count,
             gpu->count == 1 ? "" : "s", gpu->library.path);
  } else {
    gpu->count = 0;
    snprintf(gpu->message, sizeof gpu->message, "%s", rdna_last_error());
  }
  out_info->name = gpu->name;
  out_info->status = status;
  out_info->message = gpu->message;
  out_info->library = gpu->library.path;
  out_info->version = gpu->version;
  out_info->device_count = gpu->count;
}

rdna_status rdna__gpu_describe(const rdna__gpu_library *gpu, int index, rdna_device_info *out_info) {
  if (index < 0 || index >= gpu->count) {
    return rdna__fail(RDNA_NOT_FOUND, "there is no %s:%d; the %s driver has %d devices", gpu->name, index, gpu->name,
                      gpu->count);
  }
  *out_info = gpu->devices[index];
  return RDNA_OK;
}

/* ---- device and memory ------------------------------------------------------------------------------------ */

rdna_status rdna__gpu_device_open(const rdna__gpu_library *gpu, int index, rdna__driver_device **out_device) {
  rdna_device_info info;
  *out_device = NULL;
  RDNA_TRY(rdna__gpu_describe(gpu, index, &info));
  rdna__driver_device *device = calloc(1, sizeof *device);
  if (device == NULL) {
    return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the device object of %s:%d", gpu->name, index);
  }
  device->gpu = gpu;
  device->info = info;
  rdna_status status = gpu->start(device);
  if (status != RDNA_OK) {
    free(device);
    return status;
  }
  *out_device = device;
  return RDNA_OK;
}

void rdna__gpu_device_close(rdna__driver_device *device) {
  if (device->gpu->stop != NULL) device->gpu->stop(device);
  free(device);
}

rdna_status rdna__gpu_device_synchronize(rdna__driver_device *device) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, calls_of(device)->device_synchronize(), "waiting for all work");
}

rdna_status rdna__gpu_memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total) {
  rdna__gpu_scope scope;
  size_t available = 0, total = 0;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  int code = calls_of(device)->memory_info(&available, &total);
  *out_free = available;
  *out_total = total;
  return rdna__gpu_leave(&scope, code, "asking for free memory");
}

rdna_status rdna__gpu_memory_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  rdna__gpu_scope scope;
  void *data = NULL;
  *out_data = NULL;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  int code = calls_of(device)->memory_alloc(&data, size);
  if (code == 0) *out_data = data;
  return rdna__gpu_leave(&scope, code, "allocating %zu bytes of device memory", size);
}

rdna_status rdna__gpu_memory_free(rdna__driver_device *device, void *data) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, calls_of(device)->memory_free(data), "freeing device memory at %p", data);
}

rdna_status rdna__gpu_host_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  rdna__gpu_scope scope;
  void *data = NULL;
  *out_data = NULL;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  int code = calls_of(device)->host_alloc(&data, size, HOST_ALLOC_PORTABLE);
  if (code == 0) *out_data = data;
  return rdna__gpu_leave(&scope, code, "allocating %zu bytes of pinned host memory", size);
}

rdna_status rdna__gpu_host_free(rdna__driver_device *device, void *data) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, calls_of(device)->host_free(data), "freeing pinned host memory at %p", data);
}

/* ---- streams ---------------------------------------------------------------------------------------------- */

static void *handle_of(const rdna__driver_stream *stream) { return stream == NULL ? NULL : stream->handle; }

rdna_status rdna__gpu_copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                           const void *src, size_t size) {
  static const char *const where[] = {[RDNA__COPY_TO_DEVICE] = "to the device",
                                      [RDNA__COPY_TO_HOST] = "to the host",
                                      [RDNA__COPY_ON_DEVICE] = "on the device"};
  if (size == 0) return RDNA_OK;
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  int code = calls_of(device)->copy(dst, src, size, kind, handle_of(stream));
  return rdna__gpu_leave(&scope, code, "copying %zu bytes %s", size, where[kind]);
}

rdna_status rdna__gpu_fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                           size_t size) {
  if (size == 0) return RDNA_OK;
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->fill(dst, value, size, handle_of(stream)), "filling %zu bytes",
                         size);
}

rdna_status rdna__gpu_copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                                rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct) {
  const rdna__gpu_calls *calls = calls_of(dst_device);
  int can = dst_device->number == src_device->number;
  rdna__gpu_scope scope;
  *out_direct = false;
  RDNA_TRY(rdna__gpu_enter(&scope, dst_device, stream));
  int code = can ? 0 : calls->device_can_access_peer(&can, dst_device->number, src_device->number);
  if (code == 0 && can && size > 0) {
    code = calls->copy_peer(dst, dst_device, src, src_device, size, handle_of(stream));
  }
  *out_direct = code == 0 && can;
  return rdna__gpu_leave(&scope, code, "copying %zu bytes from %s:%d", size, src_device->gpu->name,
                         src_device->info.index);
}

rdna_status rdna__gpu_stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream) {
  *out_stream = NULL;
  rdna__driver_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream object");
  rdna__gpu_scope scope;
  rdna_status status = rdna__gpu_enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int least = 0, greatest = 0; /* greatest is the smaller number */
    int code = calls_of(device)->stream_priority_range(&least, &greatest);
    if (priority > least) priority = least;
    if (priority < greatest) priority = greatest;
    if (code == 0) code = calls_of(device)->stream_create(&stream->handle, STREAM_NON_BLOCKING, priority);
    status = rdna__gpu_leave(&scope, code, "creating a stream of priority %d", priority);
  }
  if (status != RDNA_OK) {
    free(stream);
    return status;
  }
  *out_stream = stream;
  return RDNA_OK;
}

void rdna__gpu_stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream) {
  rdna__gpu_scope scope;
  if (rdna__gpu_enter(&scope, device, stream) == RDNA_OK) {
    (void)rdna__gpu_leave(&scope, calls_of(device)->stream_destroy(stream->handle), "destroying a stream");
  }
  free(stream);
}

rdna_status rdna__gpu_stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->stream_synchronize(handle_of(stream)), "waiting for a stream");
}

rdna_status rdna__gpu_stream_query(rdna__driver_device *device, rdna__driver_stream *stream) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->stream_query(handle_of(stream)), "asking whether a stream is idle");
}

rdna_status rdna__gpu_stream_wait(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_event *event) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->stream_wait(handle_of(stream), event, 0),
                         "making a stream wait for an event");
}

rdna_status rdna__gpu_stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                                  void *data) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->stream_call(handle_of(stream), callback, data),
                         "queueing a host callback");
}

/* ---- events: a rdna__driver_event pointer is the hipEvent_t or CUevent itself ------------------------------ */

rdna_status rdna__gpu_event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event) {
  rdna__gpu_scope scope;
  void *event = NULL;
  *out_event = NULL;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  int code = calls_of(device)->event_create(&event, timing ? 0 : EVENT_DISABLE_TIMING);
  if (code == 0) *out_event = event;
  return rdna__gpu_leave(&scope, code, "creating an event");
}

void rdna__gpu_event_destroy(rdna__driver_device *device, rdna__driver_event *event) {
  rdna__gpu_scope scope;
  if (rdna__gpu_enter(&scope, device, NULL) == RDNA_OK) {
    (void)rdna__gpu_leave(&scope, calls_of(device)->event_destroy(event), "destroying an event");
  }
}

rdna_status rdna__gpu_event_record(rdna__driver_device *device, rdna__driver_event *event,
                                   rdna__driver_stream *stream) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->event_record(event, handle_of(stream)), "recording an event");
}

rdna_status rdna__gpu_event_synchronize(rdna__driver_device *device, rdna__driver_event *event) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, calls_of(device)->event_synchronize(event), "waiting for an event");
}

rdna_status rdna__gpu_event_query(rdna__driver_device *device, rdna__driver_event *event) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, calls_of(device)->event_query(event), "asking whether an event has passed");
}

rdna_status rdna__gpu_event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                    float *out_ms) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, calls_of(device)->event_elapsed(out_ms, start, end),
                         "measuring the time between two events");
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

static void remember_kernel(rdna__driver_device *device, rdna__driver_stream *stream, const char *name) {
  atomic_store_explicit(&device->last_kernel, name, memory_order_relaxed);
  if (stream != NULL) atomic_store_explicit(&stream->last_kernel, name, memory_order_relaxed);
}

rdna_status rdna__gpu_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                             const rdna__driver_function *function, rdna_grid grid, const void *args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return RDNA_OK;
  const rdna__gpu_library *gpu = device->gpu;
  size_t size = function->args_size;
  void *extra[] = {LAUNCH_BUFFER_POINTER, (void *)(uintptr_t)args, LAUNCH_BUFFER_SIZE, &size, gpu->launch_end};
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  int code = gpu->launch(function, grid, handle_of(stream), extra);
  if (code == 0) remember_kernel(device, stream, function->name);
  return rdna__gpu_leave(&scope, code, "launching '%s' with %u x %u x %u groups of %u threads", function->name, grid.x,
                         grid.y, grid.z, function->group_threads);
}

rdna_status rdna__gpu_native_call(rdna__driver_device *device, rdna__driver_stream *stream, const char *name,
                                  rdna_status (*call)(void *native_stream, void *data), void *data) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  rdna_status status = call(handle_of(stream), data);
  if (status == RDNA_OK && name != NULL) remember_kernel(device, stream, name);
  rdna_status left = rdna__gpu_leave(&scope, 0, "calling %s", name == NULL ? "a vendor's library" : name);
  return status != RDNA_OK ? status : left;
}

rdna_status rdna__gpu_stream_native(rdna__driver_device *device, rdna__driver_stream *stream, void **out_native) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream)); /* and nobody leaves: the device is to stay current */
  *out_native = handle_of(stream);
  return RDNA_OK;
}

/* ---- graphs: a rdna__driver_graph pointer is the executable one itself ------------------------------------- */

rdna_status rdna__gpu_graph_begin(rdna__driver_device *device, rdna__driver_stream *stream) {
  const rdna__gpu_calls *calls = calls_of(device);
  if (calls->capture_begin == NULL || calls->capture_end == NULL || calls->graph_instantiate == NULL ||
      calls->graph_launch == NULL || calls->graph_exec_destroy == NULL || calls->graph_destroy == NULL) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s %s cannot record a graph; queue the work itself", device->gpu->library.path,
                      device->gpu->version);
  }
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls->capture_begin(handle_of(stream), CAPTURE_RELAXED),
                         "beginning to record a stream");
}

rdna_status rdna__gpu_graph_end(rdna__driver_device *device, rdna__driver_stream *stream,
                                rdna__driver_graph **out_graph) {
  const rdna__gpu_calls *calls = calls_of(device);
  rdna__gpu_scope scope;
  void *graph = NULL, *executable = NULL;
  *out_graph = NULL;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  int code = calls->capture_end(handle_of(stream), &graph);
  if (code == 0) code = calls->graph_instantiate(&executable, graph);
  if (graph != NULL) calls->graph_destroy(graph);
  if (code == 0) *out_graph = executable;
  return rdna__gpu_leave(&scope, code, "recording a stream");
}

rdna_status rdna__gpu_graph_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                                   rdna__driver_graph *graph) {
  rdna__gpu_scope scope;
  RDNA_TRY(rdna__gpu_enter(&scope, device, stream));
  return rdna__gpu_leave(&scope, calls_of(device)->graph_launch(graph, handle_of(stream)),
                         "replaying a recorded stream");
}

void rdna__gpu_graph_destroy(rdna__driver_device *device, rdna__driver_graph *graph) {
  rdna__gpu_scope scope;
  if (rdna__gpu_enter(&scope, device, NULL) == RDNA_OK) {
    (void)rdna__gpu_leave(&scope, calls_of(device)->graph_exec_destroy(graph), "destroying a recorded stream");
  }
}
