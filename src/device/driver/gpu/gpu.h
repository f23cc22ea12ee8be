/* What the hip and the cuda driver share. The two vendors' libraries do the same things under other names, so each
 * driver describes its library in a rdna__gpu_library and lists the functions below in its table of entries. A driver
 * keeps to itself how its library is found, what its errors mean, how it makes a device current, and how it loads
 * modules and launches kernels. */
#ifndef RDNA_DEVICE_DRIVER_GPU_GPU_H
#define RDNA_DEVICE_DRIVER_GPU_GPU_H

#include <stdatomic.h>

#include "device/driver.h"
#include "device/driver/library.h"

enum { RDNA__GPU_MAX_DEVICES = 64 };

/* Calls that both libraries have with the same arguments, by our names; each returns the library's code, 0 for success.
 * A driver binds them to the library's symbols, or puts a function of its own where the library's differs. */
typedef struct rdna__gpu_calls {
  int (*device_synchronize)(void);
  int (*device_can_access_peer)(int *out_can, int device, int peer);
  int (*memory_info)(size_t *out_free, size_t *out_total);
  int (*memory_alloc)(void **out_data, size_t size);
  int (*memory_free)(void *data);
  int (*host_alloc)(void **out_data, size_t size, unsigned flags);
  int (*host_free)(void *data);
  int (*copy)(void *dst, const void *src, size_t size, rdna__copy_kind kind, void *stream);
  int (*copy_peer)(void *dst, const rdna__driver_device *dst_device, const void *src,
                   const rdna__driver_device *src_device, size_t size, void *stream);
  int (*fill)(void *dst, int value, size_t size, void *stream);
  int (*stream_priority_range)(int *out_least, int *out_greatest);
  int (*stream_create)(void **out_stream, unsigned flags, int priority);
  int (*stream_destroy)(void *stream);
  int (*stream_synchronize)(void *stream);
  int (*stream_query)(void *stream);
  int (*stream_wait)(void *stream, void *event, unsigned flags);
  int (*stream_call)(void *stream, void (*callback)(void *), void *data);
  int (*event_create)(void **out_event, unsigned flags);
  int (*event_destroy)(void *event);
  int (*event_record)(void *event, void *stream);
  int (*event_synchronize)(void *event);
  int (*event_query)(void *event);
  int (*event_elapsed)(float *out_ms, void *start, void *end);
  /* for graphs; any may be NULL, and then there are none */
  int (*capture_begin)(void *stream, int mode);
  int (*capture_end)(void *stream, void **out_graph);
  int (*graph_instantiate)(void **out_executable, void *graph);
  int (*graph_launch)(void *executable, void *stream);
  int (*graph_exec_destroy)(void *executable);
  int (*graph_destroy)(void *graph);
} rdna__gpu_calls;

/* One entry's view: which device was current before it, and which kernel to name. */
typedef struct rdna__gpu_scope {
  rdna__driver_device *device;
  rdna__driver_stream *stream;
  uintptr_t previous; /* hip: a device's number; cuda: a context */
  bool restore;
} rdna__gpu_scope;

typedef struct rdna__gpu_library {
  const char *name;              /* the driver's: "hip" */
  const char *late_error_advice; /* ends the sentence of an error that surfaces long after its kernel was queued */
  void *launch_end;              /* the last of a launch's extra arguments */
  const rdna__gpu_calls *calls;

  rdna_status (*status_of)(int code);
  const char *(*code_name)(int code);
  const char *(*code_text)(int code);
  bool (*is_asynchronous)(int code); /* of work that was queued earlier, and only surfaces in a later call */
  void (*forget_error)(int code);    /* after a call of ours failed; NULL where the library remembers none */

  rdna_status (*read_device)(int native_index, rdna_device_info *out_info); /* for the probe */
  rdna_status (*start)(rdna__driver_device *device); /* starts |native_index|; fills |number| and |context| */
  void (*stop)(rdna__driver_device *device);         /* NULL where there is nothing to undo */
  rdna_status (*make_current)(rdna__gpu_scope *scope);
  int (*put_back)(const rdna__gpu_scope *scope);
  int (*launch)(const rdna__driver_function *function, rdna_grid grid, void *stream, void **extra);

  /* Written by the probe, once, before any other entry runs. */
  rdna__library library;
  char version[24];
  char message[2048];
  int count;
  rdna_device_info devices[RDNA__GPU_MAX_DEVICES]; /* by our index: discrete first */
} rdna__gpu_library;

struct rdna__driver_device {
  const rdna__gpu_library *gpu;
  rdna_device_info info;
  int number;                        /* the library's: hipDevice_t, CUdevice */
  void *context;                     /* cuda alone: CUcontext */
  _Atomic(const char *) last_kernel; /* on any stream; NULL before the first launch */
};

struct rdna__driver_stream {
  void *handle; /* hipStream_t, CUstream */
  _Atomic(const char *) last_kernel;
};

/* Makes |device| current until rdna__gpu_leave; |stream| may be NULL. */
rdna_status rdna__gpu_enter(rdna__gpu_scope *scope, rdna__driver_device *device, rdna__driver_stream *stream);
/* Puts the caller's device back and maps |code|; the sentence starts with what was being done. */
__attribute__((format(printf, 3, 4))) rdna_status rdna__gpu_leave(rdna__gpu_scope *scope, int code, const char *format,
                                                                  ...);

/* For a driver's probe: forgets what an earlier one found; describes |count| devices, discrete ones first; tells the
 * result, whose message is |found| or the sentence of the failure. */
void rdna__gpu_forget(rdna__gpu_library *gpu);
rdna_status rdna__gpu_list_devices(rdna__gpu_library *gpu, int count);
void rdna__gpu_report(rdna__gpu_library *gpu, rdna_status status, const char *found, rdna_driver_info *out_info);

rdna_status rdna__gpu_describe(const rdna__gpu_library *gpu, int index, rdna_device_info *out_info);
rdna_status rdna__gpu_device_open(const rdna__gpu_library *gpu, int index, rdna__driver_device **out_device);

/* Entries of rdna__driver: see device/driver.h. Events and graphs are the library's own handles. */
void rdna__gpu_device_close(rdna__driver_device *device);
rdna_status rdna__gpu_device_synchronize(rdna__driver_device *device);
rdna_status rdna__gpu_memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total);
rdna_status rdna__gpu_memory_alloc(rdna__driver_device *device, size_t size, void **out_data);
rdna_status rdna__gpu_memory_free(rdna__driver_device *device, void *data);
rdna_status rdna__gpu_host_alloc(rdna__driver_device *device, size_t size, void **out_data);
rdna_status rdna__gpu_host_free(rdna__driver_device *device, void *data);
rdna_status rdna__gpu_copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                           const void *src, size_t size);
rdna_status rdna__gpu_fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                           size_t size);
rdna_status rdna__gpu_copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                                rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct);
rdna_status rdna__gpu_stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream);
void rdna__gpu_stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream);
rdna_status rdna__gpu_stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream);
rdna_status rdna__gpu_stream_query(rdna__driver_device *device, rdna__driver_stream *stream);
rdna_status rdna__gpu_stream_wait(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_event *event);
rdna_status rdna__gpu_stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                                  void *data);
rdna_status rdna__gpu_event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event);
void rdna__gpu_event_destroy(rdna__driver_device *device, rdna__driver_event *event);
rdna_status rdna__gpu_event_record(rdna__driver_device *device, rdna__driver_event *event, rdna__driver_stream *stream);
rdna_status rdna__gpu_event_synchronize(rdna__driver_device *device, rdna__driver_event *event);
rdna_status rdna__gpu_event_query(rdna__driver_device *device, rdna__driver_event *event);
rdna_status rdna__gpu_event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                    float *out_ms);
rdna_status rdna__gpu_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                             const rdna__driver_function *function, rdna_grid grid, const void *args);
rdna_status rdna__gpu_stream_native(rdna__driver_device *device, rdna__driver_stream *stream, void **out_native);
rdna_status rdna__gpu_native_call(rdna__driver_device *device, rdna__driver_stream *stream, const char *name,
                                  rdna_status (*call)(void *native_stream, void *data), void *data);
rdna_status rdna__gpu_graph_begin(rdna__driver_device *device, rdna__driver_stream *stream);
rdna_status rdna__gpu_graph_end(rdna__driver_device *device, rdna__driver_stream *stream,
                                rdna__driver_graph **out_graph);
rdna_status rdna__gpu_graph_launch(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_graph *graph);
void rdna__gpu_graph_destroy(rdna__driver_device *device, rdna__driver_graph *graph);

/* The same list as initializers of a rdna__driver. */
#define RDNA__GPU_ENTRIES                                                                                             \
  RDNA__DRIVER_ENTRIES(rdna__gpu_), .stream_native = rdna__gpu_stream_native, .native_call = rdna__gpu_native_call,   \
      .graph_begin = rdna__gpu_graph_begin, .graph_end = rdna__gpu_graph_end, .graph_launch = rdna__gpu_graph_launch, \
      .graph_destroy = rdna__gpu_graph_destroy

#endif
