/* The cuda driver: NVIDIA's driver interface by dlopen. It exists so that the kernels that we ship for AMD can be
 * run, from the same sources, on a card of the other vendor; see cuda_symbols.h for the interface.
 *
 * Contexts. Each device's primary context is retained, the one that the CUDA runtime, and so PyTorch, uses: memory
 * and streams can be shared with them. Every entry makes that context current and puts the caller's back, because
 * the runtime reads "its" current device from there. CUDA keeps the current context in thread-local storage, so
 * asking costs less than any bookkeeping of ours, which would go stale whenever someone else sets it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "device/driver.h"
#include "device/driver/cuda/overlap.h"
#include "device/driver/library.h"

/* Numbers from cuda.h 12.9; they are part of the ABI and never change. */
enum {
  CODE_INVALID_VALUE = 1,
  CODE_OUT_OF_MEMORY = 2,
  CODE_DEINITIALIZED = 4,
  CODE_STUB_LIBRARY = 34,
  CODE_DEVICE_UNAVAILABLE = 46,
  CODE_NO_DEVICE = 100,
  CODE_INVALID_DEVICE = 101,
  CODE_INVALID_IMAGE = 200,
  CODE_NO_BINARY_FOR_GPU = 209,
  CODE_ECC_UNCORRECTABLE = 214,
  CODE_INVALID_PTX = 218,
  CODE_NVLINK_UNCORRECTABLE = 220,
  CODE_JIT_COMPILER_NOT_FOUND = 221,
  CODE_UNSUPPORTED_PTX_VERSION = 222,
  CODE_NOT_FOUND = 500,
  CODE_NOT_READY = 600,
  CODE_ILLEGAL_ADDRESS = 700,
  CODE_LAUNCH_OUT_OF_RESOURCES = 701,
  CODE_LAUNCH_TIMEOUT = 702,
  CODE_CONTEXT_IS_DESTROYED = 709,
  CODE_ASSERT = 710,
  CODE_HARDWARE_STACK_ERROR = 714,
  CODE_LAUNCH_FAILED = 719,
  CODE_NOT_SUPPORTED = 801,
  CODE_SYSTEM_NOT_READY = 802,
  CODE_SYSTEM_DRIVER_MISMATCH = 803,
  CODE_COMPAT_NOT_SUPPORTED = 804,

  ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  ATTRIBUTE_WARP_SIZE = 10,
  ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
  ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  ATTRIBUTE_INTEGRATED = 18,
  ATTRIBUTE_PCI_BUS_ID = 33,
  ATTRIBUTE_PCI_DEVICE_ID = 34,
  ATTRIBUTE_PCI_DOMAIN_ID = 50,
  ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

  FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8,
  STREAM_NON_BLOCKING = 1,
  EVENT_DISABLE_TIMING = 2,
  HOST_ALLOC_PORTABLE = 1,
  JIT_ERROR_LOG_BUFFER = 5,
  JIT_ERROR_LOG_BUFFER_SIZE = 6,
  LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,

  OVERLAP_VERSION = 12030, /* of the driver: the first that records such launches into graphs */
  CAPTURE_RELAXED = 2,     /* other threads, and allocations of ours, go on meanwhile */
  MAX_DEVICES = 64,
  JIT_LOG_BYTES = 1024
};

/* CUlaunchAttribute and CUlaunchConfig */
typedef struct launch_attribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int number;
  } value;
} launch_attribute;
typedef struct launch_config {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void *stream;
  launch_attribute *attributes;
  unsigned attribute_count;
} launch_config;

#define LAUNCH_BUFFER_POINTER ((void *)1)
#define LAUNCH_BUFFER_SIZE ((void *)2)
#define LAUNCH_END ((void *)0)

#define RDNA__REQUIRED(result, name, arguments) result(*name) arguments;
#define RDNA__OPTIONAL(result, name, arguments) result(*name) arguments;
static struct cuda_table {
#include "device/driver/cuda/cuda_symbols.h"
} cuda;
#undef RDNA__REQUIRED
#undef RDNA__OPTIONAL

#define RDNA__REQUIRED(result, name, arguments) {#name, offsetof(struct cuda_table, name), true},
#define RDNA__OPTIONAL(result, name, arguments) {#name, offsetof(struct cuda_table, name), false},
static const rdna__symbol symbols[] = {
#include "device/driver/cuda/cuda_symbols.h"
};
#undef RDNA__REQUIRED
#undef RDNA__OPTIONAL

struct rdna__driver_device {
  rdna_device_info info;
  int ordinal; /* CUdevice */
  void *context;
  _Atomic(const char *) last_kernel; /* on any stream; NULL before the first launch */
};

struct rdna__driver_stream {
  void *handle;
  _Atomic(const char *) last_kernel;
};

/* A function lives as long as its module. */
typedef struct cuda_function {
  void *handle;  /* CUfunction */
  bool overlaps; /* its launch may begin before the kernel queued before it has ended */
  struct cuda_function *next;
} cuda_function;

struct rdna__driver_module {
  void *handle; /* CUmodule */
  bool overlaps;
  _Atomic(cuda_function *) functions;
};

/* Written by the probe, once, before any other entry runs. */
static struct {
  rdna__library library;
  char version[16];
  bool overlaps; /* the driver can overlap launches; whether the device can is another question */
  char message[2048];
  int count;
  rdna_device_info devices[MAX_DEVICES]; /* by our index: discrete first */
} state;

static const char *code_name(int code) {
  const char *name = NULL;
  return cuda.cuGetErrorName(code, &name) == 0 && name != NULL ? name : "unknown error";
}

static const char *code_text(int code) {
  const char *text = NULL;
  return cuda.cuGetErrorString(code, &text) == 0 && text != NULL ? text : "no description";
}

static rdna_status status_of(int code) {
  switch (code) {
    case CODE_INVALID_VALUE:
      return RDNA_INVALID_ARGUMENT;
    case CODE_OUT_OF_MEMORY:
      return RDNA_OUT_OF_MEMORY;
    case CODE_INVALID_DEVICE:
    case CODE_NOT_FOUND:
      return RDNA_NOT_FOUND;
    case CODE_INVALID_IMAGE:
    case CODE_INVALID_PTX:
      return RDNA_BAD_DATA;
    case CODE_NO_BINARY_FOR_GPU:
    case CODE_JIT_COMPILER_NOT_FOUND:
    case CODE_UNSUPPORTED_PTX_VERSION:
    case CODE_LAUNCH_OUT_OF_RESOURCES:
    case CODE_NOT_SUPPORTED:
      return RDNA_UNSUPPORTED;
    case CODE_DEINITIALIZED:
    case CODE_STUB_LIBRARY:
    case CODE_NO_DEVICE:
    case CODE_SYSTEM_NOT_READY:
    case CODE_SYSTEM_DRIVER_MISMATCH:
    case CODE_COMPAT_NOT_SUPPORTED:
      return RDNA_UNAVAILABLE;
    case CODE_NOT_READY:
      return RDNA_NOT_READY;
    case CODE_DEVICE_UNAVAILABLE:
    case CODE_ECC_UNCORRECTABLE:
    case CODE_NVLINK_UNCORRECTABLE:
    case CODE_CONTEXT_IS_DESTROYED:
      return RDNA_DEVICE_LOST;
    default:
      return RDNA_DEVICE_ERROR;
  }
}

/* Errors of work that was queued earlier and that only surface in a later call. They stay with the context: every
 * later call in the process gets the same answer. */
static bool is_asynchronous(int code) {
  return code == CODE_ILLEGAL_ADDRESS || code == CODE_LAUNCH_TIMEOUT || code == CODE_ASSERT ||
         (code >= CODE_HARDWARE_STACK_ERROR && code <= CODE_LAUNCH_FAILED);
}

/* One call's view: whose context was current before, and which kernel to name. */
typedef struct cuda_scope {
  rdna__driver_device *device;
  rdna__driver_stream *stream;
  void *previous;
  bool restore;
} cuda_scope;

static rdna_status enter(cuda_scope *scope, rdna__driver_device *device, rdna__driver_stream *stream) {
  *scope = (cuda_scope){.device = device, .stream = stream};
  int code = cuda.cuCtxGetCurrent(&scope->previous);
  if (code == 0 && scope->previous == device->context) return RDNA_OK;
  if (code == 0) code = cuda.cuCtxSetCurrent(device->context);
  if (code != 0) {
    return rdna__fail(status_of(code), "making cuda:%d current: %s (%d)", device->info.index, code_text(code), code);
  }
  /* The runtime would itself choose device 0's primary context on a thread that has none, so leaving that one
   * changes nothing for anyone and saves the switch on all later calls. */
  scope->restore = scope->previous != NULL || device->ordinal != 0;
  return RDNA_OK;
}

/* Puts the caller's context back and maps |code|; the sentence starts with what was being done. */
__attribute__((format(printf, 3, 4))) static rdna_status leave(cuda_scope *scope, int code, const char *format, ...) {
  if (scope->restore) {
    int put_back = cuda.cuCtxSetCurrent(scope->previous);
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
  if (!is_asynchronous(code)) {
    return rdna__fail(status_of(code), "%s on cuda:%d (%s): %s (%s, %d)", what, info->index, info->name,
                      code_text(code), code_name(code), code);
  }
  const char *kernel = atomic_load(scope->stream != NULL ? &scope->stream->last_kernel : &scope->device->last_kernel);
  return rdna__fail(status_of(code),
                    "%s on cuda:%d (%s): %s (%s, %d). The last kernel queued on this %s was '%s'; it or one before it "
                    "failed. Set CUDA_LAUNCH_BLOCKING=1 to stop at the one. The process must be restarted to use the "
                    "device again.",
                    what, info->index, info->name, code_text(code), code_name(code), code,
                    scope->stream != NULL ? "stream" : "device", kernel == NULL ? "none" : kernel);
}

/* ---- probe ------------------------------------------------------------------------------------------------ */

static rdna_status open_library(void) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_CUDA_LIBRARY);
  rdna__library *library = &state.library;
  if (chosen[0] != '\0') {
    if (!rdna__library_open(library, chosen, false)) {
      return rdna__fail(RDNA_UNAVAILABLE, "RDNA_CUDA_LIBRARY names '%s', which does not load: %s", chosen,
                        library->failure);
    }
  } else if (!rdna__library_open(library, "libcuda.so.1", true) &&
             !rdna__library_open(library, "libcuda.so.1", false)) {
    return rdna__fail(RDNA_UNAVAILABLE,
                      "NVIDIA's driver library was not found (%s); on a machine with an NVIDIA card install its "
                      "driver, or set RDNA_CUDA_LIBRARY to the file",
                      library->failure);
  }
  const char *missing = rdna__library_bind(library, symbols, sizeof symbols / sizeof *symbols, &cuda);
  if (missing != NULL) {
    return rdna__fail(RDNA_UNAVAILABLE,
                      "%s has no function %s, so it is older than CUDA 11 or not NVIDIA's driver; update the driver or "
                      "set RDNA_CUDA_LIBRARY to another file",
                      library->path, missing);
  }
  return RDNA_OK;
}

static int attribute(int device, int number, int otherwise) {
  int value = 0;
  return cuda.cuDeviceGetAttribute(&value, number, device) == 0 ? value : otherwise;
}

static int read_device(int ordinal, rdna_device_info *info) {
  int device = 0;
  size_t total = 0;
  *info = (rdna_device_info){.driver = "cuda", .native_index = ordinal};
  int code = cuda.cuDeviceGet(&device, ordinal);
  if (code == 0) code = cuda.cuDeviceGetName(info->name, (int)sizeof info->name, device);
  if (code == 0) code = cuda.cuDeviceTotalMem_v2(&total, device);
  if (code != 0) return code;
  info->name[sizeof info->name - 1] = '\0';
  info->total_memory = total;
  snprintf(info->arch, sizeof info->arch, "sm_%d%d", attribute(device, ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
           attribute(device, ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  info->integrated = attribute(device, ATTRIBUTE_INTEGRATED, 0) != 0;
  info->compute_units = attribute(device, ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  info->wave_size = attribute(device, ATTRIBUTE_WARP_SIZE, 32);
  info->max_group_threads = attribute(device, ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
  int shared = attribute(device, ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0);
  info->max_group_memory = (uint32_t)attribute(device, ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared);
  info->clock_mhz = attribute(device, ATTRIBUTE_CLOCK_RATE, 0) / 1000;
  info->pci_domain = attribute(device, ATTRIBUTE_PCI_DOMAIN_ID, -1);
  info->pci_bus = attribute(device, ATTRIBUTE_PCI_BUS_ID, -1);
  info->pci_device = attribute(device, ATTRIBUTE_PCI_DEVICE_ID, -1);
  return 0;
}

static rdna_status probe_devices(void) {
  int code = cuda.cuInit(0);
  int count = 0;
  if (code == 0) code = cuda.cuDeviceGetCount(&count);
  if (code != 0) {
    return rdna__fail(RDNA_UNAVAILABLE, "%s is there but offers no device: %s (%s, %d); see what nvidia-smi says",
                      state.library.path, code_text(code), code_name(code), code);
  }
  if (count == 0) return rdna__fail(RDNA_UNAVAILABLE, "%s is there but has no device", state.library.path);
  if (count > MAX_DEVICES) count = MAX_DEVICES;
  for (int integrated = 0; integrated < 2; integrated++) {
    for (int ordinal = 0; ordinal < count; ordinal++) {
      rdna_device_info *info = &state.devices[state.count];
      code = read_device(ordinal, info);
      if (code != 0) {
        return rdna__fail(RDNA_UNAVAILABLE, "asking %s about its device %d: %s (%s, %d)", state.library.path, ordinal,
                          code_text(code), code_name(code), code);
      }
      if (info->integrated == (integrated == 1)) info->index = state.count++;
    }
  }
  return RDNA_OK;
}

static void cuda_probe(rdna_driver_info *out_info) {
  memset(&state, 0, sizeof state);
  rdna_status status = open_library();
  int version = 0;
  if (status == RDNA_OK && cuda.cuDriverGetVersion(&version) == 0) {
    /* 1000 * major + 10 * minor */
    snprintf(state.version, sizeof state.version, "%d.%d", version / 1000, version % 1000 / 10);
    state.overlaps = version >= OVERLAP_VERSION && cuda.cuLaunchKernelEx != NULL && cuda.cuModuleGetGlobal_v2 != NULL;
  }
  if (status == RDNA_OK) status = probe_devices();
  if (status == RDNA_OK) {
    snprintf(state.message, sizeof state.message, "CUDA driver %s with %d device%s, from %s", state.version,
             state.count, state.count == 1 ? "" : "s", state.library.path);
  } else {
    state.count = 0;
    snprintf(state.message, sizeof state.message, "%s", rdna_last_error());
  }
  out_info->name = "cuda";
  out_info->status = status;
  out_info->message = state.message;
  out_info->library = state.library.path;
  out_info->version = state.version;
  out_info->device_count = state.count;
}

static rdna_status cuda_describe(int index, rdna_device_info *out_info) {
  if (index < 0 || index >= state.count) {
    return rdna__fail(RDNA_NOT_FOUND, "there is no cuda:%d; the cuda driver has %d devices", index, state.count);
  }
  *out_info = state.devices[index];
  return RDNA_OK;
}

/* ---- device and memory ------------------------------------------------------------------------------------ */

static rdna_status cuda_device_open(int index, rdna__driver_device **out_device) {
  rdna_device_info info;
  RDNA_TRY(cuda_describe(index, &info));
  rdna__driver_device *device = calloc(1, sizeof *device);
  if (device == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the device object of cuda:%d", index);
  device->info = info;
  int code = cuda.cuDeviceGet(&device->ordinal, info.native_index);
  if (code == 0) code = cuda.cuDevicePrimaryCtxRetain(&device->context, device->ordinal);
  if (code != 0) {
    free(device);
    return rdna__fail(status_of(code), "opening cuda:%d (%s): %s (%s, %d)", index, info.name, code_text(code),
                      code_name(code), code);
  }
  *out_device = device;
  return RDNA_OK;
}

static void cuda_device_close(rdna__driver_device *device) {
  /* a context that is about to be destroyed must not stay current on this thread */
  void *current = NULL;
  if (cuda.cuCtxGetCurrent(&current) == 0 && current == device->context) cuda.cuCtxSetCurrent(NULL);
  cuda.cuDevicePrimaryCtxRelease_v2(device->ordinal);
  free(device);
}

static rdna_status cuda_device_synchronize(rdna__driver_device *device) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuCtxSynchronize(), "waiting for all work");
}

static rdna_status cuda_memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total) {
  cuda_scope scope;
  size_t available = 0, total = 0;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = cuda.cuMemGetInfo_v2(&available, &total);
  *out_free = available;
  *out_total = total;
  return leave(&scope, code, "asking for free memory");
}

static rdna_status cuda_memory_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  cuda_scope scope;
  uint64_t pointer = 0;
  *out_data = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = cuda.cuMemAlloc_v2(&pointer, size);
  if (code == 0) *out_data = (void *)(uintptr_t)pointer;
  return leave(&scope, code, "allocating %zu bytes of device memory", size);
}

static rdna_status cuda_memory_free(rdna__driver_device *device, void *data) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuMemFree_v2((uintptr_t)data), "freeing device memory at %p", data);
}

static rdna_status cuda_host_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  cuda_scope scope;
  *out_data = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuMemHostAlloc(out_data, size, HOST_ALLOC_PORTABLE),
               "allocating %zu bytes of pinned host memory", size);
}

static rdna_status cuda_host_free(rdna__driver_device *device, void *data) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuMemFreeHost(data), "freeing pinned host memory at %p", data);
}

/* ---- streams ---------------------------------------------------------------------------------------------- */

static void *handle_of(const rdna__driver_stream *stream) { return stream == NULL ? NULL : stream->handle; }

static rdna_status cuda_copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                             const void *src, size_t size) {
  if (size == 0) return RDNA_OK;
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  int code = CODE_INVALID_VALUE;
  switch (kind) {
    case RDNA__COPY_TO_DEVICE:
      code = cuda.cuMemcpyHtoDAsync_v2((uintptr_t)dst, src, size, handle_of(stream));
      break;
    case RDNA__COPY_TO_HOST:
      code = cuda.cuMemcpyDtoHAsync_v2(dst, (uintptr_t)src, size, handle_of(stream));
      break;
    case RDNA__COPY_ON_DEVICE:
      code = cuda.cuMemcpyDtoDAsync_v2((uintptr_t)dst, (uintptr_t)src, size, handle_of(stream));
      break;
  }
  return leave(&scope, code, "copying %zu bytes %s", size,
               kind == RDNA__COPY_TO_DEVICE ? "to the device"
               : kind == RDNA__COPY_TO_HOST ? "to the host"
                                            : "on the device");
}

static rdna_status cuda_fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                             size_t size) {
  if (size == 0) return RDNA_OK;
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuMemsetD8Async((uintptr_t)dst, value, size, handle_of(stream)), "filling %zu bytes", size);
}

static rdna_status cuda_copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                                  rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct) {
  cuda_scope scope;
  int can = dst_device->ordinal == src_device->ordinal;
  *out_direct = false;
  RDNA_TRY(enter(&scope, dst_device, stream));
  int code = can ? 0 : cuda.cuDeviceCanAccessPeer(&can, dst_device->ordinal, src_device->ordinal);
  if (code == 0 && can && size > 0) {
    code = cuda.cuMemcpyPeerAsync((uintptr_t)dst, dst_device->context, (uintptr_t)src, src_device->context, size,
                                  handle_of(stream));
  }
  *out_direct = code == 0 && can;
  return leave(&scope, code, "copying %zu bytes from cuda:%d", size, src_device->info.index);
}

static rdna_status cuda_stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream) {
  cuda_scope scope;
  rdna__driver_stream *stream = calloc(1, sizeof *stream);
  *out_stream = NULL;
  if (stream == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream object");
  rdna_status status = enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int least = 0, greatest = 0; /* greatest is the smaller number */
    int code = cuda.cuCtxGetStreamPriorityRange(&least, &greatest);
    if (priority > least) priority = least;
    if (priority < greatest) priority = greatest;
    if (code == 0) code = cuda.cuStreamCreateWithPriority(&stream->handle, STREAM_NON_BLOCKING, priority);
    status = leave(&scope, code, "creating a stream of priority %d", priority);
  }
  if (status != RDNA_OK) {
    free(stream);
    return status;
  }
  *out_stream = stream;
  return RDNA_OK;
}

static void cuda_stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream) {
  cuda_scope scope;
  if (enter(&scope, device, stream) == RDNA_OK) {
    (void)leave(&scope, cuda.cuStreamDestroy_v2(stream->handle), "destroying a stream");
  }
  free(stream);
}

static rdna_status cuda_stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuStreamSynchronize(handle_of(stream)), "waiting for a stream");
}

static rdna_status cuda_stream_query(rdna__driver_device *device, rdna__driver_stream *stream) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuStreamQuery(handle_of(stream)), "asking whether a stream is idle");
}

static rdna_status cuda_stream_wait(rdna__driver_device *device, rdna__driver_stream *stream,
                                    rdna__driver_event *event) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuStreamWaitEvent(handle_of(stream), event, 0), "making a stream wait for an event");
}

static rdna_status cuda_stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                                    void *data) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuLaunchHostFunc(handle_of(stream), callback, data), "queueing a host callback");
}

/* ---- events: a rdna__driver_event pointer is the CUevent itself ------------------------------------------- */

static rdna_status cuda_event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event) {
  cuda_scope scope;
  void *event = NULL;
  RDNA_TRY(enter(&scope, device, NULL));
  int code = cuda.cuEventCreate(&event, timing ? 0 : EVENT_DISABLE_TIMING);
  *out_event = event;
  return leave(&scope, code, "creating an event");
}

static void cuda_event_destroy(rdna__driver_device *device, rdna__driver_event *event) {
  cuda_scope scope;
  if (enter(&scope, device, NULL) == RDNA_OK) {
    (void)leave(&scope, cuda.cuEventDestroy_v2(event), "destroying an event");
  }
}

static rdna_status cuda_event_record(rdna__driver_device *device, rdna__driver_event *event,
                                     rdna__driver_stream *stream) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuEventRecord(event, handle_of(stream)), "recording an event");
}

static rdna_status cuda_event_synchronize(rdna__driver_device *device, rdna__driver_event *event) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuEventSynchronize(event), "waiting for an event");
}

static rdna_status cuda_event_query(rdna__driver_device *device, rdna__driver_event *event) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuEventQuery(event), "asking whether an event has passed");
}

static rdna_status cuda_event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                      float *out_ms) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, NULL));
  return leave(&scope, cuda.cuEventElapsedTime(out_ms, start, end), "measuring the time between two events");
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

/* The image for this device: the text that kernels of it may overlap with, *out_text, where they can. */
static rdna_status overlapping_image(rdna__driver_device *device, const void *image, char **out_text) {
  *out_text = NULL;
  bool can = state.overlaps && attribute(device->ordinal, ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) >= 9;
  return can ? rdna__ptx_with_waits(image, out_text) : RDNA_OK;
}

static rdna_status cuda_module_load(rdna__driver_device *device, const void *image, size_t size, const char *name,
                                    rdna__driver_module **out_module) {
  *out_module = NULL;
  if (size == 0 || ((const char *)image)[size - 1] != '\0') {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the PTX image '%s' of %zu bytes does not end in a NUL", name, size);
  }
  rdna__driver_module *module = calloc(1, sizeof *module);
  if (module == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the module '%s'", name);
  char *text = NULL;
  char log[JIT_LOG_BYTES] = "";
  int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  cuda_scope scope;
  rdna_status status = overlapping_image(device, image, &text);
  if (status == RDNA_OK) status = enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int code = cuda.cuModuleLoadDataEx(&module->handle, text != NULL ? text : image, 2, options, values);
    log[sizeof log - 1] = '\0';
    if (code == 0 && state.overlaps) {
      uint64_t variable = 0;
      module->overlaps = cuda.cuModuleGetGlobal_v2(&variable, &size, module->handle, RDNA__OVERLAP_MARK) == 0;
    }
    status = leave(&scope, code, "compiling the PTX '%s' for %s%s%.700s", name, device->info.arch,
                   log[0] == '\0' ? "" : ": ", log);
  }
  free(text);
  if (status == RDNA_OK) {
    *out_module = module;
  } else {
    free(module);
  }
  return status;
}

static void cuda_module_unload(rdna__driver_device *device, rdna__driver_module *module) {
  cuda_scope scope;
  if (enter(&scope, device, NULL) == RDNA_OK) {
    (void)leave(&scope, cuda.cuModuleUnload(module->handle), "unloading a module");
  }
  for (cuda_function *function = atomic_load(&module->functions), *next; function != NULL; function = next) {
    next = function->next;
    free(function);
  }
  free(module);
}

static rdna_status cuda_module_function(rdna__driver_device *device, rdna__driver_module *module, const char *name,
                                        void **out_handle) {
  cuda_scope scope;
  *out_handle = NULL;
  cuda_function *function = calloc(1, sizeof *function);
  if (function == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the kernel '%s'", name);
  rdna_status status = enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int code = cuda.cuModuleGetFunction(&function->handle, module->handle, name);
    status = leave(&scope, code, "looking for the kernel '%s'", name);
  }
  if (status != RDNA_OK) {
    free(function);
    return status;
  }
  function->overlaps = module->overlaps;
  function->next = atomic_load(&module->functions);
  while (!atomic_compare_exchange_weak(&module->functions, &function->next, function)) continue;
  *out_handle = function;
  return RDNA_OK;
}

static int launch(const cuda_function *kernel, const rdna__driver_function *function, rdna_grid grid, void *stream,
                  void **extra) {
  if (!kernel->overlaps) {
    return cuda.cuLaunchKernel(kernel->handle, grid.x, grid.y, grid.z, function->group_threads, 1, 1,
                               function->dynamic_group_memory, stream, NULL, extra);
  }
  launch_attribute attribute = {.id = LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.number = 1};
  launch_config config = {
      .grid_x = grid.x,
      .grid_y = grid.y,
      .grid_z = grid.z,
      .block_x = function->group_threads,
      .block_y = 1,
      .block_z = 1,
      .shared_bytes = function->dynamic_group_memory,
      .stream = stream,
      .attributes = &attribute,
      .attribute_count = 1,
  };
  return cuda.cuLaunchKernelEx(&config, kernel->handle, NULL, extra);
}

static rdna_status cuda_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                               const rdna__driver_function *function, rdna_grid grid, const void *args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return RDNA_OK;
  const cuda_function *kernel = function->handle;
  size_t size = function->args_size;
  void *extra[] = {LAUNCH_BUFFER_POINTER, (void *)(uintptr_t)args, LAUNCH_BUFFER_SIZE, &size, LAUNCH_END};
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  int code = 0;
  /* Static and dynamic shared memory above 48 KiB together must be asked for beforehand, and only the driver knows
   * the static part. */
  if (function->dynamic_group_memory > 0) {
    code =
        cuda.cuFuncSetAttribute(kernel->handle, FUNCTION_MAX_DYNAMIC_SHARED_BYTES, (int)function->dynamic_group_memory);
  }
  if (code == 0) code = launch(kernel, function, grid, handle_of(stream), extra);
  if (code == 0) {
    atomic_store_explicit(&device->last_kernel, function->name, memory_order_relaxed);
    if (stream != NULL) atomic_store_explicit(&stream->last_kernel, function->name, memory_order_relaxed);
  }
  return leave(&scope, code, "launching '%s' with %u x %u x %u groups of %u threads", function->name, grid.x, grid.y,
               grid.z, function->group_threads);
}

static rdna_status cuda_native_call(rdna__driver_device *device, rdna__driver_stream *stream, const char *name,
                                    rdna_status (*call)(void *native_stream, void *data), void *data) {
  cuda_scope scope;
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

static rdna_status cuda_graph_begin(rdna__driver_device *device, rdna__driver_stream *stream) {
  if (cuda.cuStreamBeginCapture_v2 == NULL || cuda.cuStreamEndCapture == NULL ||
      cuda.cuGraphInstantiateWithFlags == NULL || cuda.cuGraphLaunch == NULL || cuda.cuGraphExecDestroy == NULL ||
      cuda.cuGraphDestroy == NULL) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s %s cannot record a graph; queue the work itself", state.library.path,
                      state.version);
  }
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuStreamBeginCapture_v2(handle_of(stream), CAPTURE_RELAXED),
               "beginning to record a stream");
}

static rdna_status cuda_graph_end(rdna__driver_device *device, rdna__driver_stream *stream,
                                  rdna__driver_graph **out_graph) {
  cuda_scope scope;
  void *graph = NULL, *executable = NULL;
  *out_graph = NULL;
  RDNA_TRY(enter(&scope, device, stream));
  int code = cuda.cuStreamEndCapture(handle_of(stream), &graph);
  if (code == 0) code = cuda.cuGraphInstantiateWithFlags(&executable, graph, 0);
  if (graph != NULL) cuda.cuGraphDestroy(graph);
  if (code == 0) *out_graph = executable;
  return leave(&scope, code, "recording a stream");
}

static rdna_status cuda_graph_launch(rdna__driver_device *device, rdna__driver_stream *stream,
                                     rdna__driver_graph *graph) {
  cuda_scope scope;
  RDNA_TRY(enter(&scope, device, stream));
  return leave(&scope, cuda.cuGraphLaunch(graph, handle_of(stream)), "replaying a recorded stream");
}

static void cuda_graph_destroy(rdna__driver_device *device, rdna__driver_graph *graph) {
  cuda_scope scope;
  if (enter(&scope, device, NULL) == RDNA_OK) {
    (void)leave(&scope, cuda.cuGraphExecDestroy(graph), "destroying a recorded stream");
  }
}

const rdna__driver rdna__cuda_driver = {
    .name = "cuda",
    .code_format = RDNA__CODE_PTX,
    .probe = cuda_probe,
    .describe = cuda_describe,
    .device_open = cuda_device_open,
    .device_close = cuda_device_close,
    .device_synchronize = cuda_device_synchronize,
    .memory_info = cuda_memory_info,
    .memory_alloc = cuda_memory_alloc,
    .memory_free = cuda_memory_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .copy_peer = cuda_copy_peer,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_query = cuda_stream_query,
    .stream_wait = cuda_stream_wait,
    .stream_call = cuda_stream_call,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_synchronize = cuda_event_synchronize,
    .event_query = cuda_event_query,
    .event_elapsed = cuda_event_elapsed,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .module_function = cuda_module_function,
    .launch = cuda_launch,
    .native_call = cuda_native_call,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
};
