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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "device/driver/gpu/gpu.h"
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

  IMAGE_ALIGNMENT = 4096
};

#define GPU_TABLE hip
#define GPU_SYMBOLS "device/driver/hip/hip_symbols.h"
#include "device/driver/gpu/gpu_table.h"

struct rdna__driver_module {
  void *handle;
  void *image; /* our copy: HIP may read the caller's bytes until the module is unloaded */
};

static rdna__gpu_library gpu;

/* Written by the probe, once, before any other entry runs. */
static bool emulated;
static struct {
  rdna__topology_gpu gpus[RDNA__GPU_MAX_DEVICES];
  int count;
} kernel_driver; /* what amdgpu says of its cards */

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

static void take_back_last_error(int code) {
  if (hip.hipPeekAtLastError() == code) (void)hip.hipGetLastError();
}

static rdna_status make_current(rdna__gpu_scope *scope) {
  const rdna__driver_device *device = scope->device;
  int previous = 0;
  int code = hip.hipGetDevice(&previous);
  scope->previous = (uintptr_t)previous;
  if (code == 0 && previous == device->number) return RDNA_OK;
  scope->restore = code == 0;
  code = hip.hipSetDevice(device->number);
  if (code == 0) return RDNA_OK;
  take_back_last_error(code);
  return rdna__fail(status_of(code), "making hip:%d (%s) current: %s (%s, %d)", device->info.index, device->info.name,
                    code_text(code), code_name(code), code);
}

static int put_back(const rdna__gpu_scope *scope) { return hip.hipSetDevice((int)scope->previous); }

/* ---- calls that are HIP's own ----------------------------------------------------------------------------- */

static int copy(void *dst, const void *src, size_t size, rdna__copy_kind kind, void *stream) {
  static const int kinds[] = {[RDNA__COPY_TO_DEVICE] = COPY_HOST_TO_DEVICE,
                              [RDNA__COPY_TO_HOST] = COPY_DEVICE_TO_HOST,
                              [RDNA__COPY_ON_DEVICE] = COPY_DEVICE_TO_DEVICE};
  return hip.hipMemcpyAsync(dst, src, size, kinds[kind], stream);
}

static int copy_peer(void *dst, const rdna__driver_device *dst_device, const void *src,
                     const rdna__driver_device *src_device, size_t size, void *stream) {
  return hip.hipMemcpyPeerAsync(dst, dst_device->number, src, src_device->number, size, stream);
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

static int add_callback(void *stream, void (*callback)(void *), void *data) {
  old_callback *call = malloc(sizeof *call);
  if (call == NULL) return CODE_OUT_OF_MEMORY;
  *call = (old_callback){callback, data};
  int code = hip.hipStreamAddCallback(stream, run_old_callback, call, 0);
  if (code != 0) free(call);
  return code;
}

static int graph_instantiate(void **out_executable, void *graph) {
  return hip.hipGraphInstantiate(out_executable, graph, NULL, NULL, 0);
}

static void add_own_calls(rdna__gpu_calls *calls) {
  calls->copy = copy;
  calls->copy_peer = copy_peer;
  if (calls->stream_call == NULL) calls->stream_call = add_callback;
  calls->graph_instantiate = hip.hipGraphInstantiate == NULL ? NULL : graph_instantiate;
}

/* ---- probe ------------------------------------------------------------------------------------------------ */

static rdna_status open_library(void) {
  RDNA_TRY(rdna__hip_library_open(&gpu.library));
  const char *missing = rdna__library_bind(&gpu.library, symbols, sizeof symbols / sizeof *symbols, &hip);
  if (missing == NULL && hip.hipGetDevicePropertiesR0600 == NULL && hip.hipGetDevicePropertiesR0000 == NULL &&
      hip.hipGetDeviceProperties == NULL) {
    missing = "hipGetDeviceProperties";
  }
  if (missing == NULL) {
    add_own_calls(&hip.shared);
    return RDNA_OK;
  }
  return rdna__fail(RDNA_UNAVAILABLE,
                    "%s has no function %s, so it is older than HIP 5.2 or not AMD's runtime; install a current one or "
                    "set RDNA_HIP_LIBRARY to another file",
                    gpu.library.path, missing);
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

static void complete_description(rdna_device_info *info, int native_index) {
  info->native_index = native_index;
  int kernel_driver_units = 0;
  if (emulated) {
    info->emulated = true;
    size_t used = strlen(info->name);
    snprintf(info->name + used, sizeof info->name - used, " (emulated)");
  } else {
    for (int i = 0; i < kernel_driver.count; i++) {
      const rdna__topology_gpu *card = &kernel_driver.gpus[i];
      if (card->pci_domain == info->pci_domain && card->pci_bus == info->pci_bus &&
          card->pci_device == info->pci_device && strcmp(card->arch, info->arch) == 0) {
        kernel_driver_units = card->compute_units;
        info->integrated = info->integrated || card->integrated;
      }
    }
  }
  const char *wgp_mode = getenv("GPU_ENABLE_WGP_MODE");
  info->compute_units = rdna__hip_compute_units(info->arch, info->compute_units,
                                                wgp_mode == NULL || strcmp(wgp_mode, "0") != 0, kernel_driver_units);
}

static rdna_status read_device(int native_index, rdna_device_info *out_info) {
  int code = read_properties(native_index, out_info);
  if (code == 0) {
    complete_description(out_info, native_index);
    return RDNA_OK;
  }
  take_back_last_error(code);
  return rdna__fail(RDNA_UNAVAILABLE,
                    "HIP %s (%s) describes its device %d in no layout that we know: %s (%s, %d); please report this "
                    "version",
                    gpu.version, gpu.library.path, native_index, code_text(code), code_name(code), code);
}

static rdna_status probe_devices(void) {
  int count = 0;
  int code = hip.hipGetDeviceCount(&count);
  if (code == CODE_NO_DEVICE || code == CODE_INVALID_DEVICE || (code == 0 && count == 0)) {
    if (code != 0) take_back_last_error(code);
    return rdna__fail(RDNA_UNAVAILABLE, "HIP %s is there (%s) but finds no device: %s", gpu.version, gpu.library.path,
                      emulated ? "RDNA_EMULATE names none that it knows" : why_no_device());
  }
  if (code != 0) {
    take_back_last_error(code);
    return rdna__fail(RDNA_UNAVAILABLE, "HIP %s (%s) does not start: %s (%s, %d)", gpu.version, gpu.library.path,
                      code_text(code), code_name(code), code);
  }
  kernel_driver.count = rdna__topology_read("", kernel_driver.gpus, RDNA__GPU_MAX_DEVICES);
  if (kernel_driver.count > RDNA__GPU_MAX_DEVICES) kernel_driver.count = RDNA__GPU_MAX_DEVICES;
  return rdna__gpu_list_devices(&gpu, count);
}

static void hip_probe(rdna_driver_info *out_info) {
  rdna__gpu_forget(&gpu);
  emulated = rdna__config_text(RDNA__CONFIG_EMULATE)[0] != '\0';
  rdna_status status = open_library();
  int version = 0;
  if (status == RDNA_OK && hip.hipRuntimeGetVersion(&version) == 0) {
    /* HIP_VERSION = major * 10^7 + minor * 10^5 + patch */
    snprintf(gpu.version, sizeof gpu.version, "%d.%d.%d", version / 10000000, version / 100000 % 100, version % 100000);
  }
  if (status == RDNA_OK) status = probe_devices();
  rdna__gpu_report(&gpu, status, emulated ? "emulated HIP" : "AMD's HIP", out_info);
}

static rdna_status hip_describe(int index, rdna_device_info *out_info) {
  return rdna__gpu_describe(&gpu, index, out_info);
}

/* ---- devices ---------------------------------------------------------------------------------------------- */

/* HIP starts a device at the first call that uses it; better a failure here than in an allocation. */
static rdna_status start(rdna__driver_device *device) {
  rdna__gpu_scope scope;
  size_t available = 0, total = 0;
  device->number = device->info.native_index;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, hip.shared.memory_info(&available, &total), "starting the device");
}

static rdna_status hip_device_open(int index, rdna__driver_device **out_device) {
  return rdna__gpu_device_open(&gpu, index, out_device);
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
  rdna__gpu_scope scope;
  rdna_status status = rdna__gpu_enter(&scope, device, NULL);
  if (status == RDNA_OK) {
    status = rdna__gpu_leave(&scope, hip.hipModuleLoadData(&module->handle, module->image),
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
  rdna__gpu_scope scope;
  if (rdna__gpu_enter(&scope, device, NULL) == RDNA_OK) {
    (void)rdna__gpu_leave(&scope, hip.hipModuleUnload(module->handle), "unloading a module");
  }
  free(module->image);
  free(module);
}

static rdna_status hip_module_function(rdna__driver_device *device, rdna__driver_module *module, const char *name,
                                       void **out_handle) {
  rdna__gpu_scope scope;
  *out_handle = NULL;
  RDNA_TRY(rdna__gpu_enter(&scope, device, NULL));
  return rdna__gpu_leave(&scope, hip.hipModuleGetFunction(out_handle, module->handle, name),
                         "looking for the kernel '%s'", name);
}

static int launch(const rdna__driver_function *function, rdna_grid grid, void *stream, void **extra) {
  const uint32_t *sides = function->group_sides;
  return hip.hipModuleLaunchKernel(function->handle, grid.x, grid.y, grid.z, function->group_threads,
                                   sides[0] ? sides[0] : 1, sides[1] ? sides[1] : 1,
                                   function->dynamic_group_memory, stream, NULL, extra);
}

static rdna__gpu_library gpu = {
    .name = "hip",
    .late_error_advice = "Set AMD_SERIALIZE_KERNEL=3 to stop at the one; dmesg tells what the kernel driver saw.",
    .launch_end = (void *)3, /* HIP_LAUNCH_PARAM_END */
    .calls = &hip.shared,
    .status_of = status_of,
    .code_name = code_name,
    .code_text = code_text,
    .is_asynchronous = is_asynchronous,
    .forget_error = take_back_last_error,
    .read_device = read_device,
    .start = start,
    .make_current = make_current,
    .put_back = put_back,
    .launch = launch,
};

const rdna__driver rdna__hip_driver = {
    .name = "hip",
    .code_format = RDNA__CODE_HSACO,
    .probe = hip_probe,
    .describe = hip_describe,
    .device_open = hip_device_open,
    RDNA__GPU_ENTRIES,
    .module_load = hip_module_load,
    .module_unload = hip_module_unload,
    .module_function = hip_module_function,
};
