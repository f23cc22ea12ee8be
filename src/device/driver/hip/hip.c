/* The hip driver: AMD's HIP runtime, found by hip_library.h and bound by hip_symbols.h. With RDNA_EMULATE it is the
 * emulator that answers to the same names.
 *
 * The current device. HIP keeps one a thread, and allocation, stream, event and module calls use it. Every entry asks
 * for it (a read of thread-local storage inside HIP), switches only when it is another, and puts the caller's back. A
 * cache of ours would be stale as soon as PyTorch, in the same thread, sets its own; leaving ours behind would change
 * what PyTorch believes.
 *
 * The last error. hipGetLastError means "of the last call" before HIP 7 and "the last real one of the thread" since,
 * so it is never asked whether a call of ours worked: return codes say that. A failure of ours is taken out of that
 * slot again, and only when it is still the one there, so that PyTorch's check after its own launch does not find it
 * and an error of PyTorch's is not swallowed. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "device/driver.h"
#include "device/driver/hip/hip_library.h"
#include "device/driver/hip/hip_properties.h"
#include "device/topology.h"

/* Numbers from hip_runtime_api.h 5.2.3; unchanged through HIP 7. */
enum {
  CODE_INVALID_VALUE = 1,
  CODE_OUT_OF_MEMORY = 2,
  CODE_NOT_INITIALIZED = 3,
  CODE_DEINITIALIZED = 4,
  CODE_INSUFFICIENT_DRIVER = 35,
  CODE_NO_DEVICE = 100,
  CODE_INVALID_DEVICE = 101,
  CODE_INVALID_IMAGE = 200,
  CODE_NO_BINARY_FOR_GPU = 209,
  CODE_ECC_NOT_CORRECTABLE = 214,
  CODE_SHARED_OBJECT_INIT_FAILED = 303,
  CODE_INVALID_HANDLE = 400,
  CODE_NOT_FOUND = 500,
  CODE_NOT_READY = 600,
  CODE_ILLEGAL_ADDRESS = 700,
  CODE_LAUNCH_OUT_OF_RESOURCES = 701,
  CODE_LAUNCH_TIMEOUT = 702,
  CODE_CONTEXT_IS_DESTROYED = 709,
  CODE_ASSERT = 710,
  CODE_LAUNCH_FAILURE = 719,
  CODE_NOT_SUPPORTED = 801,
  CODE_UNKNOWN = 999,

  COPY_HOST_TO_DEVICE = 1,
  COPY_DEVICE_TO_HOST = 2,
  COPY_DEVICE_TO_DEVICE = 3,
  HOST_MALLOC_PORTABLE = 1,
  STREAM_NON_BLOCKING = 1,
  EVENT_DISABLE_TIMING = 2,

  CAPTURE_RELAXED = 2, /* other threads, and allocations of ours, go on meanwhile */
  MAX_DEVICES = 64,
  IMAGE_ALIGNMENT = 4096
};

#define LAUNCH_BUFFER_POINTER ((void *)1)
#define LAUNCH_BUFFER_SIZE ((void *)2)
#define LAUNCH_END ((void *)3)

#define RDNA__REQUIRED(result, name, arguments) result(*name) arguments;
#define RDNA__OPTIONAL(result, name, arguments) result(*name) arguments;
static struct hip_table {
#include "device/driver/hip/hip_symbols.h"
} hip;
#undef RDNA__REQUIRED
#undef RDNA__OPTIONAL

#define RDNA__REQUIRED(result, name, arguments) {#name, offsetof(struct hip_table, name), true},
#define RDNA__OPTIONAL(result, name, arguments) {#name, offsetof(struct hip_table, name), false},
static const rdna__symbol symbols[] = {
#include "device/driver/hip/hip_symbols.h"
};
#undef RDNA__REQUIRED
#undef RDNA__OPTIONAL

struct rdna__driver_device {
  rdna_device_info info;
  _Atomic(const char *) last_kernel; /* on any stream; NULL before the first launch */
};

struct rdna__driver_stream {
  void *handle;
  _Atomic(const char *) last_kernel;
};

struct rdna__driver_module {
  void *handle;
  void *image; /* our copy: HIP may read the caller's bytes until the module is unloaded */
};

/* Written by the probe, once, before any other entry runs. */
static struct {
  rdna__library library;
  bool emulated;
  char version[24];
  char message[2048];
  int count;
  rdna_device_info devices[MAX_DEVICES]; /* by our index: discrete first */
} state;

static const char *or_unknown(const char *text) { return text == NULL ? "unknown" : text; }
static const char *code_text(int code) { return or_unknown(hip.hipGetErrorString(code)); }
static const char *code_name(int code) { return or_unknown(hip.hipGetErrorName(code)); }

static rdna_status status_of(int code) {
  switch (code) {
    case CODE_INVALID_VALUE:
    case CODE_INVALID_HANDLE:
      return RDNA_INVALID_ARGUMENT;
    case CODE_OUT_OF_MEMORY:
      return RDNA_OUT_OF_MEMORY;
    case CODE_INVALID_DEVICE:
    case CODE_NOT_FOUND:
      return RDNA_NOT_FOUND;
    case CODE_INVALID_IMAGE:
      return RDNA_BAD_DATA;
    case CODE_NO_BINARY_FOR_GPU:
    case CODE_SHARED_OBJECT_INIT_FAILED: /* HIP's other word for a code object of another target */
    case CODE_LAUNCH_OUT_OF_RESOURCES:
    case CODE_NOT_SUPPORTED:
      return RDNA_UNSUPPORTED;
    case CODE_NOT_INITIALIZED:
    case CODE_DEINITIALIZED:
    case CODE_INSUFFICIENT_DRIVER:
    case CODE_NO_DEVICE:
      return RDNA_UNAVAILABLE;
    case CODE_NOT_READY:
      return RDNA_NOT_READY;
    case CODE_ECC_NOT_CORRECTABLE:
    case CODE_CONTEXT_IS_DESTROYED:
      return RDNA_DEVICE_LOST;
    default:
      return RDNA_DEVICE_ERROR;
  }
}

/* Errors of work that was queued earlier and that only surface in a later call. */
static bool is_asynchronous(int code) {
  return code == CODE_ILLEGAL_ADDRESS || code == CODE_LAUNCH_TIMEOUT || code == CODE_ASSERT ||
         code == CODE_LAUNCH_FAILURE || code == CODE_UNKNOWN;
}

/* One call's view: which device was current before, and which kernel to name. */
typedef struct hip_scope {
  rdna__driver_device *device;
  rdna__driver_stream *stream;
  int previous;
  bool restore;
} hip_scope;

static void take_back_last_error(int code) {
  if (hip.hipPeekAtLastError() == code) (void)hip.hipGetLastError();
}

static rdna_status enter(hip_scope *scope, rdna__driver_device *device, rdna__driver_stream *stream) {
  *scope = (hip_scope){.device = device, .stream = stream};
  int code = hip.hipGetDevice(&scope->previous);
  if (code == 0 && scope->previous == device->info.native_index) return RDNA_OK;
  scope->restore = code == 0;
  code = hip.hipSetDevice(device->info.native_index);
  if (code == 0) return RDNA_OK;
  take_back_last_error(code);
  return rdna__fail(status_of(code), "making hip:%d (%s) current: %s (%s, %d)", device->info.index, device->info.name,
                    code_text(code), code_name(code), code);
}

/* Puts the caller's device back and maps |code|; the sentence starts with what was being done. */
__attribute__((format(printf, 3, 4))) static rdna_status leave(hip_scope *scope, int code, const char *format, ...) {
  if (code != 0) take_back_last_error(code);
  if (scope->restore) {
    int put_back = hip.hipSetDevice(scope->previous);
    if (code == 0) code = put_back;
  }
  if (code == 0) return RDNA_OK;
  if (code == CODE_NOT_READY) return RDNA_NOT_READY; /* polled: no sentence */
  char what[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  const rdna_device_info *info = &scope->device->info;
  if (!is_asynchronous(code)) {
    return rdna__fail(status_of(code), "%s on hip:%d (%s): %s (%s, %d)", what, info->index, info->name, code_text(code),
                      code_name(code), code);
  }
  const char *kernel = atomic_load(scope->stream != NULL ? &scope->stream->last_kernel : &scope->device->last_kernel);
  return rdna__fail(status_of(code),
                    "%s on hip:%d (%s): %s (%s, %d). The last kernel queued on this %s was '%s'; it or one before it "
                    "failed. Set AMD_SERIALIZE_KERNEL=3 to stop at the one; dmesg tells what the kernel driver saw.",
                    what, info->index, info->name, code_text(code), code_name(code), code,
                    scope->stream != NULL ? "stream" : "device", kernel == NULL ? "none" : kernel);
}

/* ---- probe ------------------------------------------------------------------------------------------------ */

static rdna_status open_library(void) {
  RDNA_TRY(rdna__hip_library_open(&state.library));
  const char *missing = rdna__library_bind(&state.library, symbols, sizeof symbols / sizeof *symbols, &hip);
  if (missing == NULL && hip.hipGetDevicePropertiesR0600 == NULL && hip.hipGetDevicePropertiesR0000 == NULL &&
      hip.hipGetDeviceProperties == NULL) {
    missing = "hipGetDeviceProperties";
  }
  if (missing == NULL) return RDNA_OK;
  return rdna__fail(RDNA_UNAVAILABLE,
                    "%s has no function %s, so it is older than HIP 5.2 or not AMD's runtime; install a current one or "
                    "set RDNA_HIP_LIBRARY to another file",
                    state.library.path, missing);
}

/* Why HIP, which only says "no device", has none: the usual causes in the order in which they stop it. */
static const char *why_no_device(void) {
  static char text[256];
  const char *mask = getenv("ROCR_VISIBLE_DEVICES");
  if (mask == NULL) mask = getenv("HIP_VISIBLE_DEVICES");
  if (access("/dev/kfd", F_OK) != 0) {
    return access("/dev/dxg", F_OK) == 0
               ? "/dev/kfd is missing because this is WSL: install AMD's WSL runtime (librocdxg) and a current driver "
                 "in Windows"
               : "/dev/kfd is missing: the amdgpu kernel driver is not loaded, or a container was started without "
                 "--device=/dev/kfd --device=/dev/dri";
  }
  if (access("/dev/kfd", R_OK | W_OK) != 0) {
    snprintf(text, sizeof text, "/dev/kfd cannot be opened (%s): add your user to the group that owns it (render)",
             strerror(errno));
    return text;
  }
  if (mask != NULL) {
    snprintf(text, sizeof text, "ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES is '%.100s', which may hide every card",
             mask);
    return text;
  }
  return "/dev/kfd is there, so this runtime may not support the card: 'rdna doctor' looks further";
}

static int read_properties(int native_index, rdna_device_info *info) {
  const struct {
    int (*get)(void *, int);
    rdna__hip_layout layout;
  } sources[] = {
      {hip.hipGetDevicePropertiesR0600, RDNA__HIP_R0600},
      {hip.hipGetDevicePropertiesR0000, RDNA__HIP_R0000},
      {hip.hipGetDeviceProperties, RDNA__HIP_R0000}, /* keeps the old layout in HIP 6 and 7 */
  };
  int code = CODE_UNKNOWN;
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    _Alignas(16) unsigned char properties[RDNA__HIP_PROPERTIES_BYTES] = {0};
    if (sources[i].get == NULL) continue;
    code = sources[i].get(properties, native_index);
    if (code == 0 && rdna__hip_properties_read(properties, sources[i].layout, info)) return 0;
    if (code == 0) code = CODE_UNKNOWN;
  }
  return code;
}

static void complete_description(rdna_device_info *info, int native_index, const rdna__topology_gpu *gpus, int count) {
  info->native_index = native_index;
  int kernel_driver_units = 0;
  if (state.emulated) {
    info->emulated = true;
    size_t used = strlen(info->name);
    snprintf(info->name + used, sizeof info->name - used, " (emulated)");
  } else {
    for (int i = 0; i < count; i++) {
      if (gpus[i].pci_domain == info->pci_domain && gpus[i].pci_bus == info->pci_bus &&
          gpus[i].pci_device == info->pci_device && strcmp(gpus[i].arch, info->arch) == 0) {
        kernel_driver_units = gpus[i].compute_units;
        info->integrated = info->integrated || gpus[i].integrated;
      }
    }
  }
  const char *wgp_mode = getenv("GPU_ENABLE_WGP_MODE");
  info->compute_units = rdna__hip_compute_units(info->arch, info->compute_units,
                                                wgp_mode == NULL || strcmp(wgp_mode, "0") != 0, kernel_driver_units);
}

static rdna_status probe_devices(void) {
  int count = 0;
  int code = hip.hipGetDeviceCount(&count);
  if (code == CODE_NO_DEVICE || code == CODE_INVALID_DEVICE || (code == 0 && count == 0)) {
    if (code != 0) take_back_last_error(code);
    return rdna__fail(RDNA_UNAVAILABLE, "HIP %s is there (%s) but finds no device: %s", state.version,
                      state.library.path, state.emulated ? "RDNA_EMULATE names none that it knows" : why_no_device());
  }
  if (code != 0) {
    take_back_last_error(code);
    return rdna__fail(RDNA_UNAVAILABLE, "HIP %s (%s) does not start: %s (%s, %d)", state.version, state.library.path,
                      code_text(code), code_name(code), code);
  }
  if (count > MAX_DEVICES) count = MAX_DEVICES;
  rdna__topology_gpu gpus[MAX_DEVICES];
  int known = rdna__topology_read("", gpus, MAX_DEVICES);
  if (known > MAX_DEVICES) known = MAX_DEVICES;
  for (int integrated = 0; integrated < 2; integrated++) {
    for (int i = 0; i < count; i++) {
      rdna_device_info *info = &state.devices[state.count];
      code = read_properties(i, info);
      if (code != 0) {
        take_back_last_error(code);
        return rdna__fail(RDNA_UNAVAILABLE,
                          "HIP %s (%s) describes its device %d in no layout that we know: %s (%s, %d); please report "
                          "this version",
                          state.version, state.library.path, i, code_text(code), code_name(code), code);
      }
      complete_description(info, i, gpus, known);
      if (info->integrated == (integrated == 1)) {
        info->index = state.count;
        state.count++;
      }
    }
  }
  return RDNA_OK;
}

static void hip_probe(rdna_driver_info *out_info) {
  memset(&state, 0, sizeof state);
  state.emulated = rdna__config_text(RDNA__CONFIG_EMULATE)[0] != '\0';
  rdna_status status = open_library();
  int version = 0;
  if (status == RDNA_OK && hip.hipRuntimeGetVersion(&version) == 0) {
    /* HIP_VERSION = major * 10^7 + minor * 10^5 + patch */
    snprintf(state.version, sizeof state.version, "%d.%d.%d", version / 10000000, version / 100000 % 100,
             version % 100000);
  }
  if (status == RDNA_OK) status = probe_devices();
  if (status == RDNA_OK) {
    snprintf(state.message, sizeof state.message, "%s HIP %s with %d device%s, from %s",
             state.emulated ? "emulated" : "AMD's", state.version, state.count, state.count == 1 ? "" : "s",
             state.library.path);
  } else {
    state.count = 0;
    snprintf(state.message, sizeof state.message, "%s", rdna_last_error());
  }
  out_info->name = "hip";
  out_info->status = status;
  out_info->message = state.message;
  out_info->library = state.library.path;
  out_info->version = state.version;
  out_info->device_count = state.count;
}

static rdna_status hip_describe(int index, rdna_device_info *out_info) {
  if (index < 0 || index >= state.count) {
    return rdna__fail(RDNA_NOT_FOUND, "there is no hip:%d; the hip driver has %d devices", index, state.count);
  }
  *out_info = state.devices[index];
  return RDNA_OK;
}

/* ---- device and memory ------------------------------------------------------------------------------------ */

static rdna_status hip_device_open(int index, rdna__driver_device **out_device) {
  rdna_device_info info;
  *out_device = NULL;
  RDNA_TRY(hip_describe(index, &info));
  rdna__driver_device *device = calloc(1, sizeof *device);
  if (device == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the device object of hip:%d", index);
  device->info = info;
  /* HIP starts a device at the first call that uses it; better a failure here than in an allocation */
  hip_scope scope;
  size_t available = 0, total = 0;
  rdna_status status = enter(&scope, device, NULL);
  if (status == RDNA_OK) status = leave(&scope, hip.hipMemGetInfo(&available, &total), "starting the device");
  if (status != RDNA_OK) {
    free(device);
    return status;
  }
  *out_device = device;
  return RDNA_OK;
}

static void hip_device_close(rdna__driver_device *device) { free(device); }

static rdna_status hip_device_synchronize(rdna__driver_device *device) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipDeviceSynchronize(), "waiting for all work");
}

static rdna_status hip_memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total) {
  hip_scope scope;
  size_t available = 0, total = 0;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = hip.hipMemGetInfo(&available, &total);
  *out_free = available;
  *out_total = total;
  return leave(&scope, code, "asking for free memory");
}

static rdna_status hip_memory_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  hip_scope scope;
  void *data = NULL;
  *out_data = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = hip.hipMalloc(&data, size);
  if (code == 0) *out_data = data;
  return leave(&scope, code, "allocating %zu bytes of device memory", size);
}

static rdna_status hip_memory_free(rdna__driver_device *device, void *data) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipFree(data), "freeing device memory at %p", data);
}

static rdna_status hip_host_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  hip_scope scope;
  void *data = NULL;
  *out_data = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = hip.hipHostMalloc(&data, size, HOST_MALLOC_PORTABLE);
  if (code == 0) *out_data = data;
  return leave(&scope, code, "allocating %zu bytes of pinned host memory", size);
}

static rdna_status hip_host_free(rdna__driver_device *device, void *data) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipHostFree(data), "freeing pinned host memory at %p", data);
}

/* ---- streams ---------------------------------------------------------------------------------------------- */

static void *handle_of(const rdna__driver_stream *stream) { return stream == NULL ? NULL : stream->handle; }

static rdna_status hip_copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                            const void *src, size_t size) {
  static const struct {
    int code;
    const char *where;
  } kinds[] = {[RDNA__COPY_TO_DEVICE] = {COPY_HOST_TO_DEVICE, "to the device"},
               [RDNA__COPY_TO_HOST] = {COPY_DEVICE_TO_HOST, "to the host"},
               [RDNA__COPY_ON_DEVICE] = {COPY_DEVICE_TO_DEVICE, "on the device"}};
  if (size == 0) return RDNA_OK;
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipMemcpyAsync(dst, src, size, kinds[kind].code, handle_of(stream)), "copying %zu bytes %s",
               size, kinds[kind].where);
}

static rdna_status hip_fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                            size_t size) {
  if (size == 0) return RDNA_OK;
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipMemsetAsync(dst, value, size, handle_of(stream)), "filling %zu bytes", size);
}

static rdna_status hip_copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                                 rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct) {
  int to = dst_device->info.native_index, from = src_device->info.native_index;
  int can = to == from;
  hip_scope scope;
  *out_direct = false;
  RDNA_TRY(enter(&scope, dst_device, stream));
  int code = can ? 0 : hip.hipDeviceCanAccessPeer(&can, to, from);
  if (code == 0 && can && size > 0) code = hip.hipMemcpyPeerAsync(dst, to, src, from, size, handle_of(stream));
  *out_direct = code == 0 && can;
  return leave(&scope, code, "copying %zu bytes from hip:%d", size, src_device->info.index);
}

static rdna_status hip_stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream) {
  *out_stream = NULL;
  rdna__driver_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream object");
  hip_scope scope;
  rdna_status status = enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int least = 0, greatest = 0; /* greatest is the smaller number */
    int code = hip.hipDeviceGetStreamPriorityRange(&least, &greatest);
    if (priority > least) priority = least;
    if (priority < greatest) priority = greatest;
    if (code == 0) code = hip.hipStreamCreateWithPriority(&stream->handle, STREAM_NON_BLOCKING, priority);
    status = leave(&scope, code, "creating a stream of priority %d", priority);
  }
  if (status != RDNA_OK) {
    free(stream);
    return status;
  }
  *out_stream = stream;
  return RDNA_OK;
}

static void hip_stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream) {
  hip_scope scope;
  if (enter(&scope, device, stream) == RDNA_OK) {
    (void)leave(&scope, hip.hipStreamDestroy(stream->handle), "destroying a stream");
  }
  free(stream);
}

static rdna_status hip_stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipStreamSynchronize(handle_of(stream)), "waiting for a stream");
}

static rdna_status hip_stream_query(rdna__driver_device *device, rdna__driver_stream *stream) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipStreamQuery(handle_of(stream)), "asking whether a stream is idle");
}

static rdna_status hip_stream_wait(rdna__driver_device *device, rdna__driver_stream *stream,
                                   rdna__driver_event *event) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipStreamWaitEvent(handle_of(stream), event, 0), "making a stream wait for an event");
}

/* hipStreamAddCallback passes more than our callback takes. */
typedef struct old_callback {
  void (*callback)(void *);
  void *data;
} old_callback;

static void run_old_callback(void *stream, int status, void *data) {
  old_callback call = *(old_callback *)data;
  free(data);
  call.callback(call.data);
}

static rdna_status hip_stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                                   void *data) {
  hip_scope scope;
  if (hip.hipLaunchHostFunc != NULL) {
    RDNA_TRY(enter(&scope, device, stream));
    return leave(&scope, hip.hipLaunchHostFunc(handle_of(stream), callback, data), "queueing a host callback");
  }
  old_callback *call = malloc(sizeof *call);
  if (call == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a callback");
  *call = (old_callback){callback, data};
  rdna_status status = enter(&scope, device, stream);
  if (status == RDNA_OK) {
    status = leave(&scope, hip.hipStreamAddCallback(handle_of(stream), run_old_callback, call, 0),
                   "queueing a host callback");
  }
  if (status != RDNA_OK) free(call);
  return status;
}

/* ---- events: a rdna__driver_event pointer is the hipEvent_t itself ---------------------------------------- */

static rdna_status hip_event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event) {
  hip_scope scope;
  void *event = NULL;
  *out_event = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = hip.hipEventCreateWithFlags(&event, timing ? 0 : EVENT_DISABLE_TIMING);
  if (code == 0) *out_event = event;
  return leave(&scope, code, "creating an event");
}

static void hip_event_destroy(rdna__driver_device *device, rdna__driver_event *event) {
  hip_scope scope;
  if (enter(&scope, device, NULL) == RDNA_OK) {
    (void)leave(&scope, hip.hipEventDestroy(event), "destroying an event");
  }
}

static rdna_status hip_event_record(rdna__driver_device *device, rdna__driver_event *event,
                                    rdna__driver_stream *stream) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipEventRecord(event, handle_of(stream)), "recording an event");
}

static rdna_status hip_event_synchronize(rdna__driver_device *device, rdna__driver_event *event) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipEventSynchronize(event), "waiting for an event");
}

static rdna_status hip_event_query(rdna__driver_device *device, rdna__driver_event *event) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipEventQuery(event), "asking whether an event has passed");
}

static rdna_status hip_event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                     float *out_ms) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipEventElapsedTime(out_ms, start, end), "measuring the time between two events");
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

static rdna_status hip_module_load(rdna__driver_device *device, const void *image, size_t size, const char *name,
                                   rdna__driver_module **out_module) {
  *out_module = NULL;
  if (size == 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "the code object '%s' is empty", name);
  rdna__driver_module *module = calloc(1, sizeof *module);
  size_t rounded = (size + IMAGE_ALIGNMENT - 1) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
  if (module != NULL) module->image = aligned_alloc(IMAGE_ALIGNMENT, rounded);
  if (module == NULL || module->image == NULL) {
    free(module);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "%zu bytes of host memory for the code object '%s'", rounded, name);
  }
  memcpy(module->image, image, size);
  memset((char *)module->image + size, 0, rounded - size);
  hip_scope scope;
  rdna_status status = enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    status = leave(&scope, hip.hipModuleLoadData(&module->handle, module->image),
                   "loading the code object '%s' of %zu bytes for %s", name, size, device->info.arch);
  }
  if (status != RDNA_OK) {
    free(module->image);
    free(module);
    return status;
  }
  *out_module = module;
  return RDNA_OK;
}

static void hip_module_unload(rdna__driver_device *device, rdna__driver_module *module) {
  hip_scope scope;
  if (enter(&scope, device, NULL) == RDNA_OK) {
    (void)leave(&scope, hip.hipModuleUnload(module->handle), "unloading a module");
  }
  free(module->image);
  free(module);
}

static rdna_status hip_module_function(rdna__driver_device *device, rdna__driver_module *module, const char *name,
                                       void **out_handle) {
  hip_scope scope;
  *out_handle = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, hip.hipModuleGetFunction(out_handle, module->handle, name), "looking for the kernel '%s'", name);
}

static rdna_status hip_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                              const rdna__driver_function *function, rdna_grid grid, const void *args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return RDNA_OK;
  size_t size = function->args_size;
  void *extra[] = {LAUNCH_BUFFER_POINTER, (void *)(uintptr_t)args, LAUNCH_BUFFER_SIZE, &size, LAUNCH_END};
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  int code = hip.hipModuleLaunchKernel(function->handle, grid.x, grid.y, grid.z, function->group_threads, 1, 1,
                                       function->dynamic_group_memory, handle_of(stream), NULL, extra);
  if (code == 0) {
    atomic_store_explicit(&device->last_kernel, function->name, memory_order_relaxed);
    if (stream != NULL) atomic_store_explicit(&stream->last_kernel, function->name, memory_order_relaxed);
  }
  return leave(&scope, code, "launching '%s' with %u x %u x %u groups of %u threads", function->name, grid.x, grid.y,
               grid.z, function->group_threads);
}

static rdna_status hip_native_call(rdna__driver_device *device, rdna__driver_stream *stream, const char *name,
                                   rdna_status (*call)(void *native_stream, void *data), void *data) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  rdna_status status = call(handle_of(stream), data);
  if (status == RDNA_OK && name != NULL) {
    atomic_store_explicit(&device->last_kernel, name, memory_order_relaxed);
    if (stream != NULL) atomic_store_explicit(&stream->last_kernel, name, memory_order_relaxed);
  }
  rdna_status left = leave(&scope, 0, "calling %s", name == NULL ? "a vendor's library" : name);
  return status != RDNA_OK ? status : left;
}

/* ---- graphs: a rdna__driver_graph pointer is the executable one itself ------------------------------------- */

static rdna_status hip_graph_begin(rdna__driver_device *device, rdna__driver_stream *stream) {
  if (hip.hipStreamBeginCapture == NULL || hip.hipStreamEndCapture == NULL || hip.hipGraphInstantiate == NULL ||
      hip.hipGraphLaunch == NULL || hip.hipGraphExecDestroy == NULL || hip.hipGraphDestroy == NULL) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s %s cannot record a graph; queue the work itself", state.library.path,
                      state.version);
  }
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipStreamBeginCapture(handle_of(stream), CAPTURE_RELAXED), "beginning to record a stream");
}

static rdna_status hip_graph_end(rdna__driver_device *device, rdna__driver_stream *stream,
                                 rdna__driver_graph **out_graph) {
  hip_scope scope;
  void *graph = NULL, *executable = NULL;
  *out_graph = NULL;
  RDNA_TRY(enter(&scope, device, stream));
  int code = hip.hipStreamEndCapture(handle_of(stream), &graph);
  if (code == 0) code = hip.hipGraphInstantiate(&executable, graph, NULL, NULL, 0);
  if (graph != NULL) hip.hipGraphDestroy(graph);
  if (code == 0) *out_graph = executable;
  return leave(&scope, code, "recording a stream");
}

static rdna_status hip_graph_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                                    rdna__driver_graph *graph) {
  hip_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, hip.hipGraphLaunch(graph, handle_of(stream)), "replaying a recorded stream");
}

static void hip_graph_destroy(rdna__driver_device *device, rdna__driver_graph *graph) {
  hip_scope scope;
  if (enter(&scope, device, NULL) == RDNA_OK) {
    (void)leave(&scope, hip.hipGraphExecDestroy(graph), "destroying a recorded stream");
  }
}

const rdna__driver rdna__hip_driver = {
    .name = "hip",
    .code_format = RDNA__CODE_HSACO,
    .probe = hip_probe,
    .describe = hip_describe,
    .device_open = hip_device_open,
    .device_close = hip_device_close,
    .device_synchronize = hip_device_synchronize,
    .memory_info = hip_memory_info,
    .memory_alloc = hip_memory_alloc,
    .memory_free = hip_memory_free,
    .host_alloc = hip_host_alloc,
    .host_free = hip_host_free,
    .copy = hip_copy,
    .fill = hip_fill,
    .copy_peer = hip_copy_peer,
    .stream_create = hip_stream_create,
    .stream_destroy = hip_stream_destroy,
    .stream_synchronize = hip_stream_synchronize,
    .stream_query = hip_stream_query,
    .stream_wait = hip_stream_wait,
    .stream_call = hip_stream_call,
    .event_create = hip_event_create,
    .event_destroy = hip_event_destroy,
    .event_record = hip_event_record,
    .event_synchronize = hip_event_synchronize,
    .event_query = hip_event_query,
    .event_elapsed = hip_event_elapsed,
    .module_load = hip_module_load,
    .module_unload = hip_module_unload,
    .module_function = hip_module_function,
    .launch = hip_launch,
    .native_call = hip_native_call,
    .graph_begin = hip_graph_begin,
    .graph_end = hip_graph_end,
    .graph_launch = hip_graph_launch,
    .graph_destroy = hip_graph_destroy,
};
