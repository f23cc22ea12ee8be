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
#include "device/driver/cuda/overlap.h"
#include "device/driver/gpu/gpu.h"

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
  JIT_ERROR_LOG_BUFFER = 5,
  JIT_ERROR_LOG_BUFFER_SIZE = 6,
  LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,

  OVERLAP_VERSION = 12030, /* of the driver: the first that records such launches into graphs */
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

#define GPU_TABLE cuda
#define GPU_SYMBOLS "device/driver/cuda/cuda_symbols.h"
#include "device/driver/gpu/gpu_table.h"

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

static rdna__gpu_library gpu;

/* Written by the probe: the driver can overlap launches; whether the device can is another question. */
static bool launches_overlap;

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

static rdna_status make_current(rdna__gpu_scope *scope) {
  const rdna__driver_device *device = scope->device;
  void *previous = NULL;
  int code = cuda.cuCtxGetCurrent(&previous);
  scope->previous = (uintptr_t)previous;
  if (code == 0 && previous == device->context) return RDNA_OK;
  if (code == 0) code = cuda.cuCtxSetCurrent(device->context);
  if (code != 0) {
    return rdna__fail(status_of(code), "making cuda:%d current: %s (%d)", device->info.index, code_text(code), code);
  }
  /* The runtime would itself choose device 0's primary context on a thread that has none, so leaving that one
   * changes nothing for anyone and saves the switch on all later calls. */
  scope->restore = previous != NULL || device->number != 0;
  return RDNA_OK;
}

static int put_back(const rdna__gpu_scope *scope) { return cuda.cuCtxSetCurrent((void *)scope->previous); }

/* ---- calls that are CUDA's own: its device pointers are numbers ------------------------------------------- */

static int memory_alloc(void **out_data, size_t size) {
  uint64_t pointer = 0;
  int code = cuda.cuMemAlloc_v2(&pointer, size);
  *out_data = (void *)(uintptr_t)pointer;
  return code;
}

static int memory_free(void *data) { return cuda.cuMemFree_v2((uintptr_t)data); }

static int copy(void *dst, const void *src, size_t size, rdna__copy_kind kind, void *stream) {
  switch (kind) {
    case RDNA__COPY_TO_DEVICE:
      return cuda.cuMemcpyHtoDAsync_v2((uintptr_t)dst, src, size, stream);
    case RDNA__COPY_TO_HOST:
      return cuda.cuMemcpyDtoHAsync_v2(dst, (uintptr_t)src, size, stream);
    case RDNA__COPY_ON_DEVICE:
      return cuda.cuMemcpyDtoDAsync_v2((uintptr_t)dst, (uintptr_t)src, size, stream);
  }
  return CODE_INVALID_VALUE;
}

static int copy_peer(void *dst, const rdna__driver_device *dst_device, const void *src,
                     const rdna__driver_device *src_device, size_t size, void *stream) {
  return cuda.cuMemcpyPeerAsync((uintptr_t)dst, dst_device->context, (uintptr_t)src, src_device->context, size, stream);
}

static int fill(void *dst, int value, size_t size, void *stream) {
  return cuda.cuMemsetD8Async((uintptr_t)dst, (unsigned char)value, size, stream);
}

static int graph_instantiate(void **out_executable, void *graph) {
  return cuda.cuGraphInstantiateWithFlags(out_executable, graph, 0);
}

static void add_own_calls(rdna__gpu_calls *calls) {
  calls->memory_alloc = memory_alloc;
  calls->memory_free = memory_free;
  calls->copy = copy;
  calls->copy_peer = copy_peer;
  calls->fill = fill;
  calls->graph_instantiate = cuda.cuGraphInstantiateWithFlags == NULL ? NULL : graph_instantiate;
}

/* ---- probe ------------------------------------------------------------------------------------------------ */

static rdna_status open_library(void) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_CUDA_LIBRARY);
  rdna__library *library = &gpu.library;
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
  add_own_calls(&cuda.shared);
  return RDNA_OK;
}

static int attribute(int device, int number, int otherwise) {
  int value = 0;
  return cuda.cuDeviceGetAttribute(&value, number, device) == 0 ? value : otherwise;
}

static int describe(int ordinal, rdna_device_info *info) {
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

static rdna_status read_device(int ordinal, rdna_device_info *out_info) {
  int code = describe(ordinal, out_info);
  if (code == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNAVAILABLE, "asking %s about its device %d: %s (%s, %d)", gpu.library.path, ordinal,
                    code_text(code), code_name(code), code);
}

static rdna_status probe_devices(void) {
  int code = cuda.cuInit(0);
  int count = 0;
  if (code == 0) code = cuda.cuDeviceGetCount(&count);
  if (code != 0) {
    return rdna__fail(RDNA_UNAVAILABLE, "%s is there but offers no device: %s (%s, %d); see what nvidia-smi says",
                      gpu.library.path, code_text(code), code_name(code), code);
  }
  if (count == 0) return rdna__fail(RDNA_UNAVAILABLE, "%s is there but has no device", gpu.library.path);
  return rdna__gpu_list_devices(&gpu, count);
}

static void cuda_probe(rdna_driver_info *out_info) {
  rdna__gpu_forget(&gpu);
  launches_overlap = false;
  rdna_status status = open_library();
  int version = 0;
  if (status == RDNA_OK && cuda.cuDriverGetVersion(&version) == 0) {
    /* 1000 * major + 10 * minor */
    snprintf(gpu.version, sizeof gpu.version, "%d.%d", version / 1000, version % 1000 / 10);
    launches_overlap = version >= OVERLAP_VERSION && cuda.cuLaunchKernelEx != NULL && cuda.cuModuleGetGlobal_v2 != NULL;
  }
  if (status == RDNA_OK) status = probe_devices();
  rdna__gpu_report(&gpu, status, "CUDA driver", out_info);
}

static rdna_status cuda_describe(int index, rdna_device_info *out_info) {
  return rdna__gpu_describe(&gpu, index, out_info);
}

/* ---- devices ---------------------------------------------------------------------------------------------- */

static rdna_status start(rdna__driver_device *device) {
  const rdna_device_info *info = &device->info;
  int code = cuda.cuDeviceGet(&device->number, info->native_index);
  if (code == 0) code = cuda.cuDevicePrimaryCtxRetain(&device->context, device->number);
  if (code == 0) return RDNA_OK;
  return rdna__fail(status_of(code), "opening cuda:%d (%s): %s (%s, %d)", info->index, info->name, code_text(code),
                    code_name(code), code);
}

static void stop(rdna__driver_device *device) {
  /* a context that is about to be destroyed must not stay current on this thread */
  void *current = NULL;
  if (cuda.cuCtxGetCurrent(&current) == 0 && current == device->context) cuda.cuCtxSetCurrent(NULL);
  cuda.cuDevicePrimaryCtxRelease_v2(device->number);
}

static rdna_status cuda_device_open(int index, rdna__driver_device **out_device) {
  return rdna__gpu_device_open(&gpu, index, out_device);
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

/* Where launches on this device may overlap, rewrites the PTX so that each kernel waits for the one before it
 * (overlap.h); *out_text is NULL where the image is to be loaded as it is. */
static rdna_status overlapping_image(rdna__driver_device *device, const void *image, char **out_text) {
  *out_text = NULL;
  bool can = launches_overlap && attribute(device->number, ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) >= 9;
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
  rdna__gpu_scope scope;
  rdna_status status = overlapping_image(device, image, &text);
  if (status == RDNA_OK) status = rdna__gpu_enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int code = cuda.cuModuleLoadDataEx(&module->handle, text != NULL ? text : image, 2, options, values);
    log[sizeof log - 1] = '\0';
    if (code == 0 && launches_overlap) {
      uint64_t variable = 0;
      module->overlaps = cuda.cuModuleGetGlobal_v2(&variable, &size, module->handle, RDNA__OVERLAP_MARK) == 0;
    }
    status = rdna__gpu_leave(&scope, code, "compiling the PTX '%s' for %s%s%.700s", name, device->info.arch,
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
  rdna__gpu_scope scope;
  if (rdna__gpu_enter(&scope, device, NULL) == RDNA_OK) {
    (void)rdna__gpu_leave(&scope, cuda.cuModuleUnload(module->handle), "unloading a module");
  }
  for (cuda_function *function = atomic_load(&module->functions), *next; function != NULL; function = next) {
    next = function->next;
    free(function);
  }
  free(module);
}

static rdna_status cuda_module_function(rdna__driver_device *device, rdna__driver_module *module, const char *name,
                                        void **out_handle) {
  rdna__gpu_scope scope;
  *out_handle = NULL;
  cuda_function *function = calloc(1, sizeof *function);
  if (function == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for the kernel '%s'", name);
  rdna_status status = rdna__gpu_enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    int code = cuda.cuModuleGetFunction(&function->handle, module->handle, name);
    status = rdna__gpu_leave(&scope, code, "looking for the kernel '%s'", name);
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

static int launch(const rdna__driver_function *function, rdna_grid grid, void *stream, void **extra) {
  const cuda_function *kernel = function->handle;
  /* Static and dynamic shared memory above 48 KiB together must be asked for beforehand, and only the driver knows
   * the static part. */
  if (function->dynamic_group_memory > 0) {
    int code =
        cuda.cuFuncSetAttribute(kernel->handle, FUNCTION_MAX_DYNAMIC_SHARED_BYTES, (int)function->dynamic_group_memory);
    if (code != 0) return code;
  }
  uint32_t y = function->group_sides[0] ? function->group_sides[0] : 1;
  uint32_t z = function->group_sides[1] ? function->group_sides[1] : 1;
  if (!kernel->overlaps) {
    return cuda.cuLaunchKernel(kernel->handle, grid.x, grid.y, grid.z, function->group_threads, y, z,
                               function->dynamic_group_memory, stream, NULL, extra);
  }
  launch_attribute attribute = {.id = LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.number = 1};
  launch_config config = {
      .grid_x = grid.x,
      .grid_y = grid.y,
      .grid_z = grid.z,
      .block_x = function->group_threads,
      .block_y = y,
      .block_z = z,
      .shared_bytes = function->dynamic_group_memory,
      .stream = stream,
      .attributes = &attribute,
      .attribute_count = 1,
  };
  return cuda.cuLaunchKernelEx(&config, kernel->handle, NULL, extra);
}

static rdna__gpu_library gpu = {
    .name = "cuda",
    .late_error_advice =
        "Set CUDA_LAUNCH_BLOCKING=1 to stop at the one. The process must be restarted to use the "
        "device again.",
    .launch_end = NULL, /* CU_LAUNCH_PARAM_END */
    .calls = &cuda.shared,
    .status_of = status_of,
    .code_name = code_name,
    .code_text = code_text,
    .is_asynchronous = is_asynchronous,
    .read_device = read_device,
    .start = start,
    .stop = stop,
    .make_current = make_current,
    .put_back = put_back,
    .launch = launch,
};

const rdna__driver rdna__cuda_driver = {
    .name = "cuda",
    .code_format = RDNA__CODE_PTX,
    .probe = cuda_probe,
    .describe = cuda_describe,
    .device_open = cuda_device_open,
    RDNA__GPU_ENTRIES,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .module_function = cuda_module_function,
};
