/* What a driver is: one table of functions over the vendor's library, or over the host's own threads.
 *
 * The device layer above it validates arguments, counts references and keeps the caching allocator; a driver
 * does the one thing that each entry says and maps the vendor's error to a status with a sentence. A driver
 * makes its device current itself; callers never do. Entries may be called from any thread. */
#ifndef RDNA_DEVICE_DRIVER_H
#define RDNA_DEVICE_DRIVER_H

#include "base/status.h"
#include "rdna/device.h"
#include "rdna/kernel.h"

typedef struct rdna__driver_device rdna__driver_device; /* each driver defines its own */
typedef struct rdna__driver_stream rdna__driver_stream;
typedef struct rdna__driver_event rdna__driver_event;
typedef struct rdna__driver_module rdna__driver_module;
typedef struct rdna__driver_graph rdna__driver_graph;

typedef enum rdna__code_format {
  RDNA__CODE_HOST,  /* no image: a kernel is a C function */
  RDNA__CODE_HSACO, /* an AMD code object for info.arch */
  RDNA__CODE_PTX    /* NUL-terminated PTX; the image size counts the NUL */
} rdna__code_format;

/* A kernel as the drivers see it. */
typedef struct rdna__driver_function {
  const char *name;                                        /* for error sentences; lives as long as the device */
  void *handle;                                            /* hipFunction_t, CUfunction */
  void (*host_function)(const void *args, rdna_grid grid); /* host driver only */
  uint32_t group_threads;                                  /* work-group size along x */
  uint32_t group_sides[2];                                 /* along y and z; 0 is 1 */
  uint32_t dynamic_group_memory;                           /* bytes of LDS asked for at launch */
  uint32_t args_size;                                      /* bytes of the argument struct */
} rdna__driver_function;

typedef enum rdna__copy_kind { RDNA__COPY_TO_DEVICE, RDNA__COPY_TO_HOST, RDNA__COPY_ON_DEVICE } rdna__copy_kind;

typedef struct rdna__driver {
  const char *name;
  rdna__code_format code_format;

  /* Loads what the driver needs and counts its devices. Called once for the process. Fills out_info's status,
   * message, library and version also when it fails; returns nothing else. */
  void (*probe)(rdna_driver_info *out_info);
  rdna_status (*describe)(int index, rdna_device_info *out_info);
  rdna_status (*device_open)(int index, rdna__driver_device **out_device);
  void (*device_close)(rdna__driver_device *device);
  rdna_status (*device_synchronize)(rdna__driver_device *device);

  rdna_status (*memory_info)(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total);
  /* RDNA_OUT_OF_MEMORY is an expected answer. 256-byte aligned at least. */
  rdna_status (*memory_alloc)(rdna__driver_device *device, size_t size, void **out_data);
  rdna_status (*memory_free)(rdna__driver_device *device, void *data);
  rdna_status (*host_alloc)(rdna__driver_device *device, size_t size, void **out_data);
  rdna_status (*host_free)(rdna__driver_device *device, void *data);

  rdna_status (*copy)(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                      const void *src, size_t size);
  rdna_status (*fill)(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value, size_t size);
  /* *out_direct false: the devices cannot reach each other and nothing was queued. */
  rdna_status (*copy_peer)(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                           rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct);

  rdna_status (*stream_create)(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream);
  void (*stream_destroy)(rdna__driver_device *device, rdna__driver_stream *stream);
  rdna_status (*stream_synchronize)(rdna__driver_device *device, rdna__driver_stream *stream);
  rdna_status (*stream_query)(rdna__driver_device *device, rdna__driver_stream *stream);
  /* |event| may be another device's of the same driver. */
  rdna_status (*stream_wait)(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_event *event);
  rdna_status (*stream_call)(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                             void *data);

  rdna_status (*event_create)(rdna__driver_device *device, bool timing, rdna__driver_event **out_event);
  void (*event_destroy)(rdna__driver_device *device, rdna__driver_event *event);
  rdna_status (*event_record)(rdna__driver_device *device, rdna__driver_event *event, rdna__driver_stream *stream);
  rdna_status (*event_synchronize)(rdna__driver_device *device, rdna__driver_event *event);
  rdna_status (*event_query)(rdna__driver_device *device, rdna__driver_event *event);
  rdna_status (*event_elapsed)(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                               float *out_ms);

  /* NULL on the host driver. The image is copied. */
  rdna_status (*module_load)(rdna__driver_device *device, const void *image, size_t size, const char *name,
                             rdna__driver_module **out_module);
  void (*module_unload)(rdna__driver_device *device, rdna__driver_module *module);
  rdna_status (*module_function)(rdna__driver_device *device, rdna__driver_module *module, const char *name,
                                 void **out_handle);
  /* |args| is args_size bytes, copied before return. */
  rdna_status (*launch)(rdna__driver_device *device, rdna__driver_stream *stream, const rdna__driver_function *function,
                        rdna_grid grid, const void *args);
  /* The vendor's own stream; the device stays the calling thread's current one. NULL where there is no such stream. */
  rdna_status (*stream_native)(rdna__driver_device *device, rdna__driver_stream *stream, void **out_native);
  /* Runs |call| with the device current and the vendor's own stream (hipStream_t, CUstream), for vendors' libraries
   * that queue work there, and returns what it returns. |name| stands for that work in sentences about errors that
   * surface later; NULL queues none. The entry is NULL where there is no such stream. */
  rdna_status (*native_call)(rdna__driver_device *device, rdna__driver_stream *stream, const char *name,
                             rdna_status (*call)(void *native_stream, void *data), void *data);

  /* Recording and replay, NULL where there is none. graph_begin is RDNA_UNSUPPORTED where the vendor's library is too
   * old. graph_end ends the recording also when it fails. */
  rdna_status (*graph_begin)(rdna__driver_device *device, rdna__driver_stream *stream);
  rdna_status (*graph_end)(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_graph **out_graph);
  rdna_status (*graph_launch)(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_graph *graph);
  void (*graph_destroy)(rdna__driver_device *device, rdna__driver_graph *graph);
} rdna__driver;

extern const rdna__driver rdna__hip_driver;
extern const rdna__driver rdna__cuda_driver;
extern const rdna__driver rdna__host_driver;
extern const rdna__driver rdna__null_driver;

/* A device for rehearsals of what will be done with |of|, see driver/rehearsal/rehearsal.h. Released as any other. */
rdna_status rdna__device_rehearse(rdna_device *of, rdna_device **out_device);
bool rdna__device_is_rehearsal(const rdna_device *device);

/* For the kernel layer, which attaches its loaded modules to the device. */
const rdna__driver *rdna__device_driver(const rdna_device *device);
rdna__driver_device *rdna__device_handle(rdna_device *device);
rdna__driver_stream *rdna__stream_handle(rdna_stream *stream);
/* Queues a kernel and remembers its name, so that an error of the device that surfaces later can name it. The
 * kernel layer launches through this. */
rdna_status rdna__stream_launch(rdna_stream *stream, const rdna__driver_function *function, rdna_grid grid,
                                const void *args);
/* The same for work that a vendor's library queues; RDNA_UNSUPPORTED on a driver without a native stream. |name| is
 * static. */
rdna_status rdna__stream_native_call(rdna_stream *stream, const char *name,
                                     rdna_status (*call)(void *native_stream, void *data), void *data);

/* Work put into |stream| is being recorded: nothing may wait for it. */
bool rdna__stream_records(const rdna_stream *stream);

/* Pointers that the layers above attach to a device. |destroy| runs before the device closes, the last slot first. The
 * first setter wins and every caller gets the winner's pointer back; a loser destroys its own. */
typedef enum rdna__device_slot {
  RDNA__SLOT_KERNELS,
  RDNA__SLOT_TUNER,
  RDNA__SLOT_VENDORS,
  RDNA__SLOT_CHAINS,
  RDNA__SLOT_COUNT
} rdna__device_slot;
void *rdna__device_get_slot(rdna_device *device, rdna__device_slot slot); /* NULL before it was set */
void *rdna__device_set_slot(rdna_device *device, rdna__device_slot slot, void *data,
                            void (*destroy)(rdna_device *, void *));

/* The null driver fails on demand: the |nth| call from now (1 is the next) of any entry that can fail returns
 * |status|; 0 turns it off. rdna__null_calls counts calls that could have failed since the last setting. Its
 * memory is the host's, its kernels do nothing, its copies copy. */
void rdna__null_fail(uint64_t nth, rdna_status status);
uint64_t rdna__null_calls(void);
/* The next launch succeeds and leaves |status| in its stream, which whoever waits for the stream gets once. */
void rdna__null_fail_launch(rdna_status status);
/* From the first of these calls on, events tell a time that passes by these calls alone: a slow machine changes no
 * measurement. */
void rdna__null_pass_time(double milliseconds);
/* From here on copies to a device read their source only when their stream, or an event that was recorded there, is
 * waited for, as a slow card's do. */
void rdna__null_hold_copies(bool held);
/* Objects that were made and not destroyed: devices, memory, host memory, streams, events. */
uint64_t rdna__null_live(void);

/* The entries that every driver has, for functions of their names behind |prefix|: one that a driver lacks does not
 * compile. */
#define RDNA__DRIVER_ENTRIES(prefix)                                                                                \
  .device_close = prefix##device_close, .device_synchronize = prefix##device_synchronize,                           \
  .memory_info = prefix##memory_info, .memory_alloc = prefix##memory_alloc, .memory_free = prefix##memory_free,     \
  .host_alloc = prefix##host_alloc, .host_free = prefix##host_free, .copy = prefix##copy, .fill = prefix##fill,     \
  .copy_peer = prefix##copy_peer, .stream_create = prefix##stream_create, .stream_destroy = prefix##stream_destroy, \
  .stream_synchronize = prefix##stream_synchronize, .stream_query = prefix##stream_query,                           \
  .stream_wait = prefix##stream_wait, .stream_call = prefix##stream_call, .event_create = prefix##event_create,     \
  .event_destroy = prefix##event_destroy, .event_record = prefix##event_record,                                     \
  .event_synchronize = prefix##event_synchronize, .event_query = prefix##event_query,                               \
  .event_elapsed = prefix##event_elapsed, .launch = prefix##launch

#endif
