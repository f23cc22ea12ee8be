// hipDeviceProp_t in its two layouts, and hipDeviceGetAttribute.
#include <stdio.h>
#include <string.h>

#include "hip/hip.h"

// What both layouts and the attributes are filled from.
enum {
  THREADS_PER_BLOCK = 1024,
  THREADS_PER_WGP = 2048,
  REGISTERS_PER_BLOCK = 65536,
  GRID_MAX = 0x7fffffff,
  GRID_YZ_MAX = 65535,
  CONSTANT_CLOCK_KHZ = 100000
};

// HIP 5, and what plain hipGetDeviceProperties fills to this day.
struct properties_r0000 {
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
  int integrated, cooperativeLaunch, cooperativeMultiDeviceLaunch, maxTexture1DLinear, maxTexture1D, maxTexture2D[2];
  int maxTexture3D[3];
  unsigned *hdpMemFlushCntl, *hdpRegFlushCntl;
  size_t memPitch, textureAlignment, texturePitchAlignment;
  int kernelExecTimeoutEnabled, ECCEnabled, tccDriver, cooperativeMultiDeviceUnmatched[4], isLargeBar, asicRevision;
  int managedMemory, directManagedMemAccessFromHost, concurrentManagedAccess, pageableMemoryAccess;
  int pageableMemoryAccessUsesHostPageTables;
};
_Static_assert(sizeof(struct properties_r0000) == 792, "hip_runtime_api.h 5.2.3");
_Static_assert(offsetof(struct properties_r0000, gcnArchName) == 396, "hip_runtime_api.h 5.2.3");
_Static_assert(offsetof(struct properties_r0000, asicRevision) == 768, "hip_runtime_api.h 5.2.3");

// HIP 6 and later.
struct properties_r0600 {
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
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
  int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
  int canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
  int reserved[63], hipReserved[32];
  char gcnArchName[256];
  size_t maxSharedMemoryPerMultiProcessor;
  int clockInstructionRate;
  unsigned arch;
  unsigned *hdpMemFlushCntl, *hdpRegFlushCntl;
  int cooperativeMultiDeviceUnmatched[4], isLargeBar, asicRevision;
};
_Static_assert(sizeof(struct properties_r0600) == 1472, "HIP 6's sizeof(hipDeviceProp_t)");
_Static_assert(offsetof(struct properties_r0600, gcnArchName) == 1160, "as in llvm-project#167695");

// hipDeviceArch_t: every feature that HIP has a bit for but surface functions (bit 15), which need images.
static const unsigned arch_bits = 0x7ffff & ~(1u << 14);

static int arch_number(const char *arch) {  // gfx1030: 1030; gfx90a: 910, the last digit is one of sixteen
  int number = 0;
  for (const char *c = arch + 3; *c; c++) number = 10 * number + (*c >= 'a' ? *c - 'a' + 10 : *c - '0');
  return number;
}
// What images may have, on a card that has them.
enum { IMAGE_MAX = 16384, IMAGE_DEPTH_MAX = 8192 };
static int images_of(const struct emu_card *card, int most) { return card->target->image.format.bits ? most : 0; }
static int major_of(const struct emu_card *card) { return arch_number(card->arch) / 100; }
static int minor_of(const struct emu_card *card) { return card->arch[strlen(card->arch) - 2] - '0'; }

API int hipGetDevicePropertiesR0000(void *out, int index) {
  struct emu_device *device = emu_device(index);
  if (!out) return emu_done(HIP_INVALID_VALUE);
  if (!device) return emu_done(emu_state() ? HIP_INVALID_DEVICE : HIP_NO_DEVICE);
  const struct emu_card *card = device->card;
  struct properties_r0000 p = {
      .totalGlobalMem = device->total,
      .sharedMemPerBlock = card->target->group_lds,
      .regsPerBlock = REGISTERS_PER_BLOCK,
      .warpSize = card->target->lanes,
      .maxThreadsPerBlock = THREADS_PER_BLOCK,
      .maxThreadsDim = {THREADS_PER_BLOCK, THREADS_PER_BLOCK, THREADS_PER_BLOCK},
      .maxGridSize = {GRID_MAX, GRID_YZ_MAX, GRID_YZ_MAX},
      .clockRate = card->clock_khz,
      .memoryClockRate = card->memory_khz,
      .memoryBusWidth = card->bus_bits,
      .totalConstMem = 0x7fffffff,
      .major = major_of(card),
      .minor = minor_of(card),
      .multiProcessorCount = card->wgps,
      .l2CacheSize = card->l2_bytes,
      .maxThreadsPerMultiProcessor = THREADS_PER_WGP,
      .clockInstructionRate = CONSTANT_CLOCK_KHZ,
      .arch = arch_bits,
      .concurrentKernels = 1,
      .cooperativeLaunch = 1,
      .pciBusID = index + 3,
      .maxSharedMemoryPerMultiProcessor = card->target->group_lds,
      .canMapHostMemory = 1,
      .gcnArch = arch_number(card->arch),
      .memPitch = 0x7fffffff,
      .maxTexture1DLinear = images_of(card, IMAGE_MAX),
      .maxTexture1D = images_of(card, IMAGE_MAX),
      .maxTexture2D = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX)},
      .maxTexture3D = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .textureAlignment = 256,
      .texturePitchAlignment = 256,
      .isLargeBar = 1,
      .managedMemory = 1,
  };
  snprintf(p.name, sizeof p.name, "%s", card->name);
  snprintf(p.gcnArchName, sizeof p.gcnArchName, "%s", card->arch);
  memcpy(out, &p, sizeof p);
  return emu_done(HIP_SUCCESS);
}
API int hipGetDeviceProperties(void *out, int index) { return hipGetDevicePropertiesR0000(out, index); }

API int hipGetDevicePropertiesR0600(void *out, int index) {
  struct emu_device *device = emu_device(index);
  if (!out) return emu_done(HIP_INVALID_VALUE);
  if (!device) return emu_done(emu_state() ? HIP_INVALID_DEVICE : HIP_NO_DEVICE);
  const struct emu_card *card = device->card;
  struct properties_r0600 p = {
      .totalGlobalMem = device->total,
      .sharedMemPerBlock = card->target->group_lds,
      .regsPerBlock = REGISTERS_PER_BLOCK,
      .warpSize = card->target->lanes,
      .memPitch = 0x7fffffff,
      .maxThreadsPerBlock = THREADS_PER_BLOCK,
      .maxThreadsDim = {THREADS_PER_BLOCK, THREADS_PER_BLOCK, THREADS_PER_BLOCK},
      .maxGridSize = {GRID_MAX, GRID_YZ_MAX, GRID_YZ_MAX},
      .clockRate = card->clock_khz,
      .totalConstMem = 0x7fffffff,
      .major = major_of(card),
      .minor = minor_of(card),
      .maxTexture1D = images_of(card, IMAGE_MAX),
      .maxTexture1DLinear = images_of(card, IMAGE_MAX),
      .maxTexture2D = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX)},
      .maxTexture3D = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .maxTexture1DLayered = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .maxTexture2DLayered = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .maxSurface1D = images_of(card, IMAGE_MAX),
      .maxSurface2D = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX)},
      .maxSurface3D = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .maxSurface1DLayered = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .maxSurface2DLayered = {images_of(card, IMAGE_MAX), images_of(card, IMAGE_MAX), images_of(card, IMAGE_DEPTH_MAX)},
      .textureAlignment = 256,
      .texturePitchAlignment = 256,
      .deviceOverlap = 1,
      .multiProcessorCount = card->wgps,
      .canMapHostMemory = 1,
      .concurrentKernels = 1,
      .cooperativeLaunch = 1,
      .pciBusID = index + 3,
      .asyncEngineCount = 1,
      .unifiedAddressing = 1,
      .memoryClockRate = card->memory_khz,
      .memoryBusWidth = card->bus_bits,
      .l2CacheSize = card->l2_bytes,
      .maxThreadsPerMultiProcessor = THREADS_PER_WGP,
      .streamPrioritiesSupported = 1,
      .sharedMemPerMultiprocessor = card->target->group_lds,
      .regsPerMultiprocessor = REGISTERS_PER_BLOCK,
      .managedMemory = 1,
      .canUseHostPointerForRegisteredMem = 1,
      .sharedMemPerBlockOptin = card->target->group_lds,
      .maxBlocksPerMultiProcessor = 32,
      .hostRegisterSupported = 1,
      .memoryPoolsSupported = 1,
      .maxSharedMemoryPerMultiProcessor = card->target->group_lds,
      .clockInstructionRate = CONSTANT_CLOCK_KHZ,
      .arch = arch_bits,
      .isLargeBar = 1,
  };
  snprintf(p.name, sizeof p.name, "%s", card->name);
  snprintf(p.gcnArchName, sizeof p.gcnArchName, "%s", card->arch);
  snprintf(p.uuid, sizeof p.uuid, "emulated-%d", index);
  memcpy(out, &p, sizeof p);
  return emu_done(HIP_SUCCESS);
}

// Numbers of hipDeviceAttribute_t; those that are 0 on an emulated device have no row of their own.
static bool attribute(const struct emu_device *device, int which, int *out) {
  const struct emu_card *card = device->card;
  const struct {
    int which, value;
  } rows[] = {
      {2, 1},                                  // AsyncEngineCount
      {3, 1},                                  // CanMapHostMemory
      {4, 1},                                  // CanUseHostPointerForRegisteredMem
      {5, card->clock_khz},                    // ClockRate
      {8, 1},                                  // ConcurrentKernels
      {10, 1},                                 // CooperativeLaunch
      {12, 1},                                 // DeviceOverlap
      {19, card->l2_bytes},                    // L2CacheSize
      {23, major_of(card)},                    // ComputeCapabilityMajor
      {24, 1},                                 // ManagedMemory
      {25, 32},                                // MaxBlocksPerMultiProcessor
      {26, THREADS_PER_BLOCK},                 // MaxBlockDimX
      {27, THREADS_PER_BLOCK},                 // MaxBlockDimY
      {28, THREADS_PER_BLOCK},                 // MaxBlockDimZ
      {29, GRID_MAX},                          // MaxGridDimX
      {30, GRID_YZ_MAX},                       // MaxGridDimY
      {31, GRID_YZ_MAX},                       // MaxGridDimZ
      {56, THREADS_PER_BLOCK},                 // MaxThreadsPerBlock
      {57, THREADS_PER_WGP},                   // MaxThreadsPerMultiProcessor
      {58, 0x7fffffff},                        // MaxPitch
      {59, card->bus_bits},                    // MemoryBusWidth
      {60, card->memory_khz},                  // MemoryClockRate
      {61, minor_of(card)},                    // ComputeCapabilityMinor
      {63, card->wgps},                        // MultiprocessorCount
      {67, device->index + 3},                 // PciBusId
      {71, REGISTERS_PER_BLOCK},               // MaxRegistersPerBlock
      {72, REGISTERS_PER_BLOCK},               // MaxRegistersPerMultiprocessor
      {74, (int)card->target->group_lds},      // MaxSharedMemoryPerBlock
      {75, (int)card->target->group_lds},      // SharedMemPerBlockOptin
      {76, (int)card->target->group_lds},      // SharedMemPerMultiprocessor
      {78, 1},                                 // StreamPrioritiesSupported
      {81, 256},                               // TextureAlignment
      {82, 256},                               // TexturePitchAlignment
      {83, 0x7fffffff},                        // TotalConstantMemory
      {85, 1},                                 // UnifiedAddressing
      {87, card->target->lanes},               // WarpSize
      {88, 1},                                 // MemoryPoolsSupported
      {89, 1},                                 // VirtualMemoryManagementSupported
      {90, 1},                                 // HostRegisterSupported
      {10000, CONSTANT_CLOCK_KHZ},             // ClockInstructionRate
      {10002, (int)card->target->group_lds},   // MaxSharedMemoryPerMultiprocessor
      {10003, arch_number(card->arch)},        // GcnArch
      {32, images_of(card, IMAGE_MAX)},        // MaxSurface1D
      {34, images_of(card, IMAGE_MAX)},        // MaxSurface2D
      {36, images_of(card, IMAGE_MAX)},        // MaxSurface3D
      {39, images_of(card, IMAGE_MAX)},        // MaxTexture1DWidth
      {41, images_of(card, IMAGE_MAX)},        // MaxTexture1DLinear
      {43, images_of(card, IMAGE_MAX)},        // MaxTexture2DWidth
      {44, images_of(card, IMAGE_MAX)},        // MaxTexture2DHeight
      {49, images_of(card, IMAGE_MAX)},        // MaxTexture3DWidth
      {50, images_of(card, IMAGE_MAX)},        // MaxTexture3DHeight
      {51, images_of(card, IMAGE_DEPTH_MAX)},  // MaxTexture3DDepth
      {10011, 1},                              // IsLargeBar
      {10014, images_of(card, 1)},             // ImageSupport
      {10013, 1},                              // CanUseStreamWaitValue
      {10015, card->wgps},                     // PhysicalMultiProcessorCount
  };
  static const int zeros[] = {0,  6,  7,  9,  11, 13, 14, 15, 16, 17,    18,    20,    22,    62,    65,
                              66, 68, 69, 70, 73, 77, 79, 80, 91, 10007, 10008, 10009, 10010, 10012, 10016};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].which == which) return *out = rows[i].value, true;
  for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
    if (zeros[i] == which) return *out = 0, true;
  return false;
}

API int hipDeviceGetAttribute(int *value, int which, int index) {
  enum { TOTAL_GLOBAL_MEMORY = 84 };
  struct emu_device *device = emu_device(index);
  if (!value) return emu_done(HIP_INVALID_VALUE);
  if (!device) return emu_done(HIP_INVALID_DEVICE);
  if (which == TOTAL_GLOBAL_MEMORY) {
    *value = device->total > 0x7fffffff ? 0x7fffffff : (int)device->total;
    return emu_done(HIP_SUCCESS);
  }
  if (attribute(device, which, value)) return emu_done(HIP_SUCCESS);
  emu_say("hipDeviceGetAttribute %d is not in the emulator", which);
  return emu_done(HIP_INVALID_VALUE);
}

API int hipDeviceGetName(char *name, int bytes, int index) {
  struct emu_device *device = emu_device(index);
  if (!device) return emu_done(HIP_INVALID_DEVICE);
  if (!name || bytes <= 0) return emu_done(HIP_INVALID_VALUE);
  snprintf(name, (size_t)bytes, "%s", device->card->name);
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceComputeCapability(int *major, int *minor, int index) {
  struct emu_device *device = emu_device(index);
  if (!device || !major || !minor) return emu_done(device ? HIP_INVALID_VALUE : HIP_INVALID_DEVICE);
  *major = major_of(device->card);
  *minor = minor_of(device->card);
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceGetPCIBusId(char *text, int bytes, int index) {
  if (!emu_device(index)) return emu_done(HIP_INVALID_DEVICE);
  if (!text || bytes < 13) return emu_done(HIP_INVALID_VALUE);
  snprintf(text, (size_t)bytes, "0000:%02x:00.0", (unsigned)index + 3);
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceGetUuid(char uuid[16], int index) {
  if (!emu_device(index) || !uuid) return emu_done(HIP_INVALID_DEVICE);
  memset(uuid, 0, 16);
  snprintf(uuid, 16, "emulated-%d", index);
  return emu_done(HIP_SUCCESS);
}

enum { LIMIT_STACK = 0, LIMIT_PRINTF = 1, LIMIT_HEAP = 2 };

API int hipDeviceGetLimit(size_t *value, int limit) {
  struct emu_device *device = emu_current();
  if (!device) return emu_done(HIP_NO_DEVICE);
  if (!value || limit < LIMIT_STACK || limit > LIMIT_HEAP)
    return emu_done(value ? HIP_UNSUPPORTED_LIMIT : HIP_INVALID_VALUE);
  *value = limit == LIMIT_STACK ? device->stack : 0;
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceSetLimit(int limit, size_t value) {
  enum { STACK_MAX = 131056 };  // what the register of its size can say
  struct emu_device *device = emu_current();
  if (!device) return emu_done(HIP_NO_DEVICE);
  if (limit != LIMIT_STACK) return emu_done(HIP_UNSUPPORTED_LIMIT);
  if (value > STACK_MAX) return emu_done(HIP_INVALID_VALUE);
  device->stack = (uint32_t)value;
  return emu_done(HIP_SUCCESS);
}
