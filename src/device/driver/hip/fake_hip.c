/* A libamdhip64 for tests, in the flavour FAKE_HIP=5, 6 or 7: three devices whose memory is the host's and whose
 * streams finish at once. The property structs are declared here field by field from AMD's headers, where the driver
 * has offsets, so that a slip in one of the two shows. FAKE_HIP_NO_LAUNCH leaves hipModuleLaunchKernel out;
 * FAKE_HIP_ABORTS ends the process that loads it. */
#include "device/driver/hip/fake_hip.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int
/* every entry starts by declaring itself */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* hipDeviceProp_t of HIP 5 (the fields up to the last that matters, then padding to 792 bytes) */
typedef struct old_properties {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate, memoryClockRate;
  int memoryBusWidth;
  size_t totalConstMem;
  int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode;
  int clockInstructionRate;
  unsigned arch;
  int concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
  size_t maxSharedMemoryPerMultiProcessor;
  int isMultiGpuBoard, canMapHostMemory, gcnArch;
  char gcnArchName[256];
  int integrated;
  char rest[136];
} old_properties;
_Static_assert(sizeof(old_properties) == 792, "HIP 5.2.3's sizeof(hipDeviceProp_t)");

/* hipDeviceProp_tR0600 */
typedef struct new_properties {
  char name[256], uuid[16], luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
  int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2];
  int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
  int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];
  int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID;
  char between[1160 - 596]; /* up to gcnArchName, whose place AMD's own static checks give */
  char gcnArchName[256];
  char rest[1472 - 1160 - 256];
} new_properties;
_Static_assert(sizeof(new_properties) == 1472, "HIP 6's sizeof(hipDeviceProp_t)");
_Static_assert(offsetof(new_properties, gcnArchName) == 1160, "as in llvm-project#167695");

static const struct {
  const char *name, *arch;
  int multiprocessors, wave, integrated, bus;
  size_t memory;
} devices[3] = {
    {"AMD Radeon Graphics", "gfx1036", 1, 32, 1, 0x7b, (size_t)512 << 20},
    {"AMD Radeon RX 7900 XTX", "gfx1100", 48, 32, 0, 3, (size_t)24 << 30},
    {"", "gfx90a:sramecc+:xnack-", 104, 64, 0, 0xc1, (size_t)64 << 30},
};

static _Thread_local int current, last_error;
static int sticky;
static fake_function functions[16];
static int function_count;
__attribute__((visibility("default"))) fake_hip_record fake_hip;

/* What hipGetLastError will say: of the last call before HIP 7, the last real error since. */
static int done(int code) {
#if FAKE_HIP >= 7
  if (code != 0 && code != 600) last_error = code;
#else
  last_error = code;
#endif
  return code;
}

static int broken(void) { return sticky; }

API hipGetDeviceCount(int *count) {
  int none = getenv("FAKE_HIP_NO_DEVICE") != NULL;
  *count = none ? 0 : 3;
  return done(none ? 100 : 0);
}
API hipGetDevice(int *device) {
  *device = current;
  return 0;
}
API hipSetDevice(int device) {
  if (device < 0 || device >= 3) return done(101);
  current = device;
  fake_hip.gpu.switches++;
  return done(0);
}
API hipRuntimeGetVersion(int *version) {
  *version = FAKE_HIP == 5 ? 50221153 : FAKE_HIP == 6 ? 60443484 : 71526333;
  return 0;
}
__attribute__((visibility("default"))) const char *hipGetErrorName(int code) {
  return code == 2     ? "hipErrorOutOfMemory"
         : code == 101 ? "hipErrorInvalidDevice"
         : code == 209 ? "hipErrorNoBinaryForGpu"
         : code == 500 ? "hipErrorNotFound"
         : code == 700 ? "hipErrorIllegalAddress"
                       : "hipErrorUnknown";
}
__attribute__((visibility("default"))) const char *hipGetErrorString(int code) {
  return code == 2     ? "out of memory"
         : code == 101 ? "invalid device ordinal"
         : code == 209 ? "no kernel image is available for execution on the device"
         : code == 500 ? "named symbol not found"
         : code == 700 ? "an illegal memory access was encountered"
                       : "unknown error";
}
API hipGetLastError(void) {
  int code = last_error;
  last_error = 0;
  return code;
}
API hipPeekAtLastError(void) { return last_error; }

static int fill_old(void *out, int device) {
  old_properties properties = {
      .totalGlobalMem = devices[device].memory,
      .sharedMemPerBlock = 65536,
      .warpSize = devices[device].wave,
      .maxThreadsPerBlock = 1024,
      .clockRate = FAKE_HIP == 5 ? 2500000 : 1000, /* so that a test sees which struct was read */
      .multiProcessorCount = devices[device].multiprocessors,
      .pciDomainID = 0,
      .pciBusID = devices[device].bus,
      .pciDeviceID = 0,
      .integrated = FAKE_HIP == 5 ? 0 : devices[device].integrated};
  snprintf(properties.name, sizeof properties.name, "%s", devices[device].name);
  snprintf(properties.gcnArchName, sizeof properties.gcnArchName, "%s", devices[device].arch);
  if (getenv("FAKE_HIP_ODD_LAYOUT") != NULL) memset(properties.gcnArchName, 'x', sizeof properties.gcnArchName);
  memcpy(out, &properties, sizeof properties);
  return done(0);
}
API hipGetDeviceProperties(void *out, int device) { return fill_old(out, device); }
#if FAKE_HIP >= 6
API hipGetDevicePropertiesR0000(void *out, int device) { return fill_old(out, device); }
API hipGetDevicePropertiesR0600(void *out, int device) {
  new_properties properties = {.totalGlobalMem = devices[device].memory,
                               .sharedMemPerBlock = 65536,
                               .warpSize = devices[device].wave,
                               .maxThreadsPerBlock = 1024,
                               .clockRate = 2500000,
                               .multiProcessorCount = devices[device].multiprocessors,
                               .pciDomainID = 0,
                               .pciBusID = devices[device].bus,
                               .pciDeviceID = 0,
                               .integrated = devices[device].integrated};
  snprintf(properties.name, sizeof properties.name, "%s", devices[device].name);
  snprintf(properties.gcnArchName, sizeof properties.gcnArchName, "%s", devices[device].arch);
  if (getenv("FAKE_HIP_ODD_LAYOUT") != NULL) memset(properties.gcnArchName, 'x', sizeof properties.gcnArchName);
  memcpy(out, &properties, sizeof properties);
  return done(0);
}
#endif

API hipDeviceSynchronize(void) { return done(broken()); }
API hipDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != 0 && peer != 0;
  return done(0);
}
API hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 1;
  *greatest = -1;
  return done(0);
}
API hipMemGetInfo(size_t *available, size_t *total) {
  *total = devices[current].memory;
  *available = *total - 4096;
  return done(0);
}
API hipMalloc(void **pointer, size_t size) {
  if (size > (size_t)1 << 30) return done(2);
  *pointer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return done(*pointer == NULL ? 2 : 0);
}
API hipFree(void *pointer) {
  free(pointer);
  return done(0);
}
API hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  fake_hip.gpu.host_alloc_flags = flags;
  *pointer = malloc(size);
  return done(*pointer == NULL ? 2 : 0);
}
API hipHostFree(void *pointer) {
  free(pointer);
  return done(0);
}
API hipMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream) {
  fake_hip.copy_kind = kind;
  memcpy(dst, src, size);
  return done(0);
}
API hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t size, void *stream) {
  if (dst_device == 0 || src_device == 0) return done(1);
  memcpy(dst, src, size);
  return done(0);
}
API hipMemsetAsync(void *dst, int value, size_t size, void *stream) {
  memset(dst, value, size);
  return done(0);
}
API hipStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  fake_hip.gpu.stream_flags = flags;
  fake_hip.gpu.stream_priority = priority;
  *stream = malloc(1);
  return done(0);
}
API hipStreamDestroy(void *stream) {
  free(stream);
  return done(0);
}
API hipStreamSynchronize(void *stream) { return done(broken()); }
API hipStreamQuery(void *stream) { return done(fake_hip.gpu.not_ready ? 600 : broken()); }
API hipStreamWaitEvent(void *stream, void *event, unsigned flags) { return done(flags == 0 ? 0 : 1); }
API hipStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data, unsigned flags) {
  if (flags != 0) return done(1);
  fake_hip.add_callback_calls++;
  callback(stream, 0, data);
  return done(0);
}
#if FAKE_HIP >= 6
API hipLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
  fake_hip.host_func_calls++;
  function(data);
  return done(0);
}
#endif
API hipEventCreateWithFlags(void **event, unsigned flags) {
  fake_hip.gpu.event_flags = flags;
  *event = malloc(1);
  return done(0);
}
API hipEventDestroy(void *event) {
  free(event);
  return done(0);
}
API hipEventRecord(void *event, void *stream) { return done(0); }
API hipEventSynchronize(void *event) { return done(broken()); }
API hipEventQuery(void *event) { return done(fake_hip.gpu.not_ready ? 600 : broken()); }
API hipEventElapsedTime(float *ms, void *start, void *end) {
  *ms = 0.25f;
  return done(0);
}
API hipModuleLoadData(void **module, const void *image) {
  if (memcmp(image, "\177ELF", 4) != 0) return done(209);
  fake_hip.image = image;
  fake_hip.modules++;
  *module = malloc(1);
  return done(0);
}
API hipModuleUnload(void *module) {
  fake_hip.modules--;
  free(module);
  return done(0);
}
API hipModuleGetFunction(fake_function **function, void *module, const char *name) {
  if (strncmp(name, "missing", 7) == 0) return done(500);
  *function = &functions[function_count++];
  snprintf((*function)->name, sizeof(*function)->name, "%s", name);
  return done(0);
}
#ifdef FAKE_HIP_ABORTS
__attribute__((constructor)) static void end_process(void) { abort(); }
#endif
#ifndef FAKE_HIP_NO_LAUNCH
API hipModuleLaunchKernel(fake_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                          void **extra) {
  if (!fake_gpu_launch(&fake_hip.gpu, function, (unsigned[]){grid_x, grid_y, grid_z},
                       (unsigned[]){block_x, block_y, block_z}, shared_bytes, parameters, extra, (void *)3)) {
    return done(1);
  }
  fake_hip.launch_device = current;
  if (strcmp(function->name, "crash_f32") == 0) sticky = 700;
  return done(0);
}
#endif
