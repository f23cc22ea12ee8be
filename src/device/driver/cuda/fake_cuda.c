/* A libcuda for tests: three devices whose memory is the host's and whose streams finish at once. It insists on what
 * the real one insists on: initialization first, and the right context current. Declared here from NVIDIA's driver
 * API reference, separately from the driver's own table, so that a slip in one of the two shows.
 * FAKE_CUDA_NO_LAUNCH leaves cuLaunchKernel out; the environment's FAKE_CUDA_VERSION replaces the driver's version. */
#include "device/driver/cuda/fake_cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define API EXPORT int
/* every entry starts by declaring itself */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef unsigned long long deviceptr;
typedef struct fake_context {
  int device;
} fake_context;
static fake_context contexts[3] = {{0}, {1}, {2}};
static _Thread_local fake_context *current;
static int initialized, sticky;
static fake_function functions[64];
static int function_count;
EXPORT fake_cuda_record fake_cuda;

static const struct {
  const char *name;
  int major, minor, integrated, sms, bus;
  size_t memory;
} devices[3] = {
    {"Fake Orin", 8, 7, 1, 16, 0, (size_t)8 << 30},
    {"Fake A100", 8, 0, 0, 108, 65, (size_t)40 << 30},
    {"Fake H200", 9, 0, 0, 132, 129, (size_t)141 << 30},
};

#define NEED_CONTEXT                 \
  do {                               \
    if (!initialized) return 3;      \
    if (current == NULL) return 201; \
    if (sticky != 0) return sticky;  \
  } while (0)

API cuInit(unsigned flags) {
  if (getenv("FAKE_CUDA_NO_DEVICE") != NULL) return 100;
  initialized = flags == 0;
  return flags == 0 ? 0 : 1;
}
API cuDriverGetVersion(int *version) {
  const char *chosen = getenv("FAKE_CUDA_VERSION");
  *version = chosen == NULL ? 12090 : atoi(chosen);
  return 0;
}
API cuGetErrorName(int code, const char **name) {
  *name = code == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 218 ? "CUDA_ERROR_INVALID_PTX"
          : code == 500 ? "CUDA_ERROR_NOT_FOUND"
          : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                        : NULL;
  return *name == NULL ? 1 : 0;
}
API cuGetErrorString(int code, const char **text) {
  *text = code == 2     ? "out of memory"
          : code == 100 ? "no CUDA-capable device is detected"
          : code == 218 ? "a PTX JIT compilation failed"
          : code == 500 ? "named symbol not found"
          : code == 700 ? "an illegal memory access was encountered"
                        : NULL;
  return *text == NULL ? 1 : 0;
}
API cuDeviceGetCount(int *count) {
  *count = 3;
  return initialized ? 0 : 3;
}
API cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < 3 ? 0 : 101;
}
API cuDeviceGetName(char *name, int length, int device) {
  strncpy(name, devices[device].name, (size_t)length);
  return 0;
}
API cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = devices[device].memory;
  return 0;
}
API cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 1:
      *value = 1024;
      return 0;
    case 8:
      *value = 49152;
      return 0;
    case 10:
      *value = 32;
      return 0;
    case 13:
      *value = 1980000;
      return 0;
    case 16:
      *value = devices[device].sms;
      return 0;
    case 18:
      *value = devices[device].integrated;
      return 0;
    case 33:
      *value = devices[device].bus;
      return 0;
    case 34:
      *value = 0;
      return 0;
    case 50:
      *value = 4;
      return 0;
    case 75:
      *value = devices[device].major;
      return 0;
    case 76:
      *value = devices[device].minor;
      return 0;
    case 97:
      *value = 232448;
      return 0;
    default:
      return 1;
  }
}
API cuDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != 0 && peer != 0;
  return 0;
}
API cuDevicePrimaryCtxRetain(fake_context **context, int device) {
  *context = &contexts[device];
  fake_cuda.retains++;
  return 0;
}
API cuDevicePrimaryCtxRelease_v2(int device) {
  fake_cuda.releases++;
  return 0;
}
API cuCtxGetCurrent(fake_context **context) {
  *context = current;
  return initialized ? 0 : 3;
}
API cuCtxSetCurrent(fake_context *context) {
  current = context;
  fake_cuda.gpu.switches++;
  return 0;
}
API cuCtxSynchronize(void) {
  NEED_CONTEXT;
  return fake_cuda.capturing ? 900 : 0;
}
API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  NEED_CONTEXT;
  *least = 0;
  *greatest = -5;
  return 0;
}
API cuMemGetInfo_v2(size_t *available, size_t *total) {
  NEED_CONTEXT;
  *total = devices[current->device].memory;
  *available = *total - 12345;
  return 0;
}
API cuMemAlloc_v2(deviceptr *pointer, size_t size) {
  NEED_CONTEXT;
  if (size > (size_t)1 << 30) return 2;
  *pointer = (uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
  return *pointer == 0 ? 2 : 0;
}
API cuMemFree_v2(deviceptr pointer) {
  NEED_CONTEXT;
  free((void *)(uintptr_t)pointer);
  return 0;
}
API cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
  NEED_CONTEXT;
  fake_cuda.gpu.host_alloc_flags = flags;
  *pointer = malloc(size);
  return *pointer == NULL ? 2 : 0;
}
API cuMemFreeHost(void *pointer) {
  NEED_CONTEXT;
  free(pointer);
  return 0;
}
API cuMemcpyHtoDAsync_v2(deviceptr dst, const void *src, size_t size, void *stream) {
  NEED_CONTEXT;
  memcpy((void *)(uintptr_t)dst, src, size);
  return 0;
}
API cuMemcpyDtoHAsync_v2(void *dst, deviceptr src, size_t size, void *stream) {
  NEED_CONTEXT;
  memcpy(dst, (void *)(uintptr_t)src, size);
  return 0;
}
API cuMemcpyDtoDAsync_v2(deviceptr dst, deviceptr src, size_t size, void *stream) {
  NEED_CONTEXT;
  memcpy((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
  return 0;
}
API cuMemcpyPeerAsync(deviceptr dst, fake_context *dst_context, deviceptr src, fake_context *src_context, size_t size,
                      void *stream) {
  NEED_CONTEXT;
  if (dst_context != &contexts[dst_context->device] || src_context != &contexts[src_context->device]) return 201;
  memcpy((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
  return 0;
}
API cuMemsetD8Async(deviceptr dst, unsigned char value, size_t count, void *stream) {
  NEED_CONTEXT;
  memset((void *)(uintptr_t)dst, value, count);
  return 0;
}
API cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  NEED_CONTEXT;
  fake_cuda.gpu.stream_flags = flags;
  fake_cuda.gpu.stream_priority = priority;
  *stream = malloc(1);
  return 0;
}
API cuStreamDestroy_v2(void *stream) {
  free(stream);
  return 0;
}
API cuStreamSynchronize(void *stream) {
  NEED_CONTEXT;
  return 0;
}
API cuStreamQuery(void *stream) {
  NEED_CONTEXT;
  return fake_cuda.gpu.not_ready ? 600 : 0;
}
API cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  NEED_CONTEXT;
  return flags == 0 ? 0 : 1;
}
API cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
  NEED_CONTEXT;
  function(data);
  return 0;
}
API cuStreamBeginCapture_v2(void *stream, int mode) {
  NEED_CONTEXT;
  if (stream == NULL || mode != 2) return 1; /* the tests want it relaxed */
  fake_cuda.capturing++;
  return 0;
}
API cuStreamEndCapture(void *stream, void **graph) {
  NEED_CONTEXT;
  if (fake_cuda.capturing == 0) return 1;
  fake_cuda.capturing--;
  *graph = NULL;
  if (fake_cuda.capture_fails) return fake_cuda.capture_fails = 0, 901;
  *graph = malloc(1);
  fake_cuda.graphs++;
  return 0;
}
API cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  NEED_CONTEXT;
  if (graph == NULL || flags != 0) return 1;
  *executable = malloc(1);
  fake_cuda.graphs++;
  return 0;
}
API cuGraphLaunch(void *executable, void *stream) {
  NEED_CONTEXT;
  if (executable == NULL || stream == NULL) return 1;
  fake_cuda.replays++;
  return 0;
}
API cuGraphExecDestroy(void *executable) {
  free(executable);
  fake_cuda.graphs--;
  return 0;
}
API cuGraphDestroy(void *graph) {
  free(graph);
  fake_cuda.graphs--;
  return 0;
}
API cuEventCreate(void **event, unsigned flags) {
  NEED_CONTEXT;
  fake_cuda.gpu.event_flags = flags;
  *event = malloc(1);
  return 0;
}
API cuEventDestroy_v2(void *event) {
  free(event);
  return 0;
}
API cuEventRecord(void *event, void *stream) {
  NEED_CONTEXT;
  return 0;
}
API cuEventSynchronize(void *event) {
  NEED_CONTEXT;
  return 0;
}
API cuEventQuery(void *event) {
  NEED_CONTEXT;
  return fake_cuda.gpu.not_ready ? 600 : 0;
}
API cuEventElapsedTime(float *ms, void *start, void *end) {
  NEED_CONTEXT;
  *ms = 1.5f;
  return 0;
}
API cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  NEED_CONTEXT;
  if (strstr(image, ".version") == NULL) {
    for (unsigned i = 0; i + 1 < count; i++) {
      if (options[i] == 5 && options[i + 1] == 6) {
        strncpy(values[i], "ptxas application ptx input, line 1; fatal : Missing .version directive",
                (size_t)(uintptr_t)values[i + 1]);
      }
    }
    return 218;
  }
  strncpy(fake_cuda.image, image, sizeof fake_cuda.image - 1);
  *module = calloc(1, 1);
  *(char *)*module = strstr(image, ".visible .global .align 4 .u32 rdna_kernels_wait = 1;") != NULL;
  return 0;
}
API cuModuleUnload(void *module) {
  free(module);
  NEED_CONTEXT;
  return 0;
}
API cuModuleGetGlobal_v2(deviceptr *pointer, size_t *size, void *module, const char *name) {
  NEED_CONTEXT;
  if (*(char *)module == 0 || strcmp(name, "rdna_kernels_wait") != 0) return 500;
  *pointer = 4096;
  *size = 4;
  return 0;
}
API cuModuleGetFunction(fake_function **function, void *module, const char *name) {
  NEED_CONTEXT;
  if (strncmp(name, "missing", 7) == 0) return 500;
  if (function_count == 64) return 2;
  *function = &functions[function_count++];
  strncpy((*function)->name, name, sizeof(*function)->name - 1);
  return 0;
}
API cuFuncSetAttribute(fake_function *function, int attribute, int value) {
  NEED_CONTEXT;
  if (attribute != 8) return 1;
  fake_cuda.dynamic_limit = (unsigned)value;
  return 0;
}
#ifndef FAKE_CUDA_NO_LAUNCH
API cuLaunchKernel(fake_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                   void **extra) {
  NEED_CONTEXT;
  if (!fake_gpu_launch(&fake_cuda.gpu, function, (unsigned[]){grid_x, grid_y, grid_z},
                       (unsigned[]){block_x, block_y, block_z}, shared_bytes, parameters, extra, NULL)) {
    return 1;
  }
  fake_cuda.overlapped = 0;
  if (strcmp(function->name, "crash_f32") == 0) sticky = 700;
  return 0;
}
typedef struct fake_config {
  unsigned grid[3], block[3], shared_bytes;
  void *stream;
  const struct {
    int id, padding, value[16];
  } *attributes;
  unsigned attribute_count;
} fake_config;
API cuLaunchKernelEx(const fake_config *config, fake_function *function, void **parameters, void **extra) {
  if (config->attribute_count != 1 || config->attributes[0].id != 6 || config->attributes[0].value[0] != 1) return 1;
  int code =
      cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2], config->block[0], config->block[1],
                     config->block[2], config->shared_bytes, config->stream, parameters, extra);
  fake_cuda.overlapped = 1;
  return code;
}
#endif
