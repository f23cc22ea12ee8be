// Questions about kernels: attributes, occupancy, names.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"

enum { SIMDS_PER_WGP = 4 };

static int lds_per_group(const struct emu_function *f) { return (int)f->module->device->card->target->group_lds; }

struct function_attributes {
  int binaryVersion, cacheModeCA;
  size_t constSizeBytes, localSizeBytes;
  int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout, ptxVersion;
  size_t sharedSizeBytes;
};

API int hipFuncGetAttributes(struct function_attributes *out, const void *symbol) {
  struct emu_function *f;
  if (!out) return emu_done(HIP_INVALID_VALUE);
  int code = emu_registered_function(symbol, &f);
  if (code != HIP_SUCCESS) return emu_done(code);
  *out = (struct function_attributes){
      .localSizeBytes = f->kernel.scratch_bytes,
      .maxDynamicSharedSizeBytes = lds_per_group(f) - (int)f->kernel.lds_bytes,
      .maxThreadsPerBlock = (int)f->source->max_threads,
      .numRegs = (int)emu_kernel_counted_vgprs(f->module->device->card->target, &f->kernel),
      .sharedSizeBytes = f->kernel.lds_bytes,
  };
  return emu_done(HIP_SUCCESS);
}

API int hipFuncGetAttribute(int *value, int attribute, struct emu_function *f) {
  // hipFunction_attribute
  enum { MAX_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY, CACHE, MAX_DYNAMIC, CARVEOUT };
  if (!value) return emu_done(HIP_INVALID_VALUE);
  if (!f) return emu_done(HIP_INVALID_HANDLE);
  switch (attribute) {
    case MAX_THREADS:
      *value = (int)f->source->max_threads;
      break;
    case SHARED:
      *value = (int)f->kernel.lds_bytes;
      break;
    case LOCAL:
      *value = (int)f->kernel.scratch_bytes;
      break;
    case REGISTERS:
      *value = (int)emu_kernel_counted_vgprs(f->module->device->card->target, &f->kernel);
      break;
    case MAX_DYNAMIC:
      *value = lds_per_group(f) - (int)f->kernel.lds_bytes;
      break;
    case CONSTANT:
    case PTX:
    case BINARY:
    case CACHE:
    case CARVEOUT:
      *value = 0;
      break;
    default:
      return emu_done(HIP_INVALID_VALUE);
  }
  return emu_done(HIP_SUCCESS);
}

// Every group may have all of it, so that raising the limit is nothing to do.
API int hipFuncSetAttribute(const void *symbol, int attribute, int value) {
  struct emu_function *f;
  enum { MAX_DYNAMIC = 8 };
  int code = emu_registered_function(symbol, &f);
  if (code == HIP_SUCCESS && attribute == MAX_DYNAMIC && (value < 0 || value > lds_per_group(f)))
    code = HIP_INVALID_VALUE;
  return emu_done(code);
}
API int hipFuncSetCacheConfig(const void *symbol, int configuration) {
  struct emu_function *f;
  return emu_done(emu_registered_function(symbol, &f));
}
API int hipFuncSetSharedMemConfig(const void *symbol, int configuration) {
  return hipFuncSetCacheConfig(symbol, configuration);
}

int emu_groups_per_wgp(const struct emu_function *f, int threads, size_t lds, int *out) {
  if (threads <= 0 || threads > 1024 || lds + f->kernel.lds_bytes > (size_t)lds_per_group(f)) return HIP_INVALID_VALUE;
  unsigned wave = emu_kernel_wave(&f->kernel), waves = ((unsigned)threads + wave - 1) / wave;
  unsigned bytes = f->kernel.lds_bytes + (unsigned)lds;
  unsigned on_simd = emu_kernel_occupancy(f->module->device->card->target, &f->kernel, (unsigned)threads, bytes);
  unsigned groups = on_simd * SIMDS_PER_WGP / waves;
  unsigned lds_per_wgp = f->module->device->card->target->simd_lds;
  if (bytes && groups > lds_per_wgp / bytes) groups = lds_per_wgp / bytes;
  *out = (int)groups;
  return HIP_SUCCESS;
}

API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *out, struct emu_function *f, int threads, size_t lds) {
  if (!out || !f) return emu_done(f ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  return emu_done(emu_groups_per_wgp(f, threads, lds, out));
}
API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, struct emu_function *f, int threads,
                                                                    size_t lds, unsigned flags) {
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(out, f, threads, lds);
}
API int hipOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *symbol, int threads, size_t lds) {
  struct emu_function *f;
  if (!out) return emu_done(HIP_INVALID_VALUE);
  int code = emu_registered_function(symbol, &f);
  return emu_done(code == HIP_SUCCESS ? emu_groups_per_wgp(f, threads, lds, out) : code);
}
API int hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *symbol, int threads, size_t lds,
                                                              unsigned flags) {
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(out, symbol, threads, lds);
}

static int potential(const struct emu_function *f, int *grid, int *block, size_t lds, int limit) {
  int most = (int)f->source->max_threads, best = 0, best_threads = 0;
  if (limit > 0 && limit < most) most = limit;
  for (int threads = most / 32 * 32; threads >= 32; threads -= 32) {
    int groups = 0;
    if (emu_groups_per_wgp(f, threads, lds, &groups) == HIP_SUCCESS && groups * threads > best * best_threads) {
      best = groups;
      best_threads = threads;
    }
  }
  if (best == 0) return HIP_INVALID_VALUE;
  *block = best_threads;
  *grid = best * f->module->device->card->wgps;
  return HIP_SUCCESS;
}
API int hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *symbol, size_t lds, int limit) {
  struct emu_function *f;
  if (!grid || !block) return emu_done(HIP_INVALID_VALUE);
  int code = emu_registered_function(symbol, &f);
  return emu_done(code == HIP_SUCCESS ? potential(f, grid, block, lds, limit) : code);
}
API int hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, struct emu_function *f, size_t lds, int limit) {
  if (!grid || !block || !f) return emu_done(HIP_INVALID_VALUE);
  return emu_done(potential(f, grid, block, lds, limit));
}

API const char *hipKernelNameRef(const struct emu_function *f) { return f ? f->source->name : NULL; }
API const char *hipKernelNameRefByPtr(const void *symbol, void *stream) {
  struct emu_function *f;
  return emu_registered_function(symbol, &f) == HIP_SUCCESS ? f->source->name : NULL;
}

// hipLaunchConfig_t of the driver-like interface.
struct launch_configuration {
  unsigned grid[3], block[3], lds;
  void *stream, *attributes;
  unsigned attribute_count;
};
API int hipDrvLaunchKernelEx(const struct launch_configuration *c, struct emu_function *f, void **parameters,
                             void **extra) {
  if (!c) return emu_done(HIP_INVALID_VALUE);
  struct emu_launch launch = {.function = f,
                              .groups = {c->grid[0], c->grid[1], c->grid[2]},
                              .threads = {c->block[0], c->block[1], c->block[2]},
                              .lds = c->lds,
                              .parameters = parameters,
                              .cooperative = emu_launch_cooperates(c->attributes, c->attribute_count)};
  int code = extra ? emu_launch_extra(extra, &launch.packed, &launch.packed_bytes) : HIP_SUCCESS;
  return emu_done(code == HIP_SUCCESS ? emu_launch(&launch, emu_stream_of(c->stream)) : code);
}

// Symbols by name; from version 6 on the device's properties have their new layout.
API int hipGetProcAddress(const char *name, void **out, int version, uint64_t flags, int *status) {
  enum { FOUND = 0, MISSING = 1 };
  Dl_info self;
  if (!name || !out) return emu_done(HIP_INVALID_VALUE);
  if (version >= 600 && strcmp(name, "hipGetDeviceProperties") == 0) name = "hipGetDevicePropertiesR0600";
  if (version >= 600 && strcmp(name, "hipChooseDevice") == 0) name = "hipChooseDeviceR0600";
  void *library = dladdr((void *)(uintptr_t)hipGetProcAddress, &self)
                      ? dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL)
                      : NULL;
  *out = library && !emu_is_stub(name) ? dlsym(library, name) : NULL;
  if (library) dlclose(library);
  if (status) *status = *out ? FOUND : MISSING;
  return emu_done(*out ? HIP_SUCCESS : HIP_NOT_FOUND);
}
API int hipGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status) {
  return hipGetProcAddress(name, out, 700, flags, status);
}
