// Small calls that clients make and that need little: resets, half-precision conversions of old compilers, AMD's own
// launch with a grid in work-items.
#include <string.h>

#include "hip/hip.h"

API int hipDeviceReset(void) {
  struct emu_device *device = emu_current();
  return emu_done(device ? emu_device_finish(device) : HIP_NO_DEVICE);
}
API int hipDeviceSetCacheConfig(int configuration) { return emu_done(HIP_SUCCESS); }
API int hipDeviceSetSharedMemConfig(int configuration) { return emu_done(HIP_SUCCESS); }
API int hipDeviceGetCacheConfig(int *configuration) {
  if (!configuration) return emu_done(HIP_INVALID_VALUE);
  *configuration = 0;  // hipFuncCachePreferNone
  return emu_done(HIP_SUCCESS);
}
API int hipDeviceGetSharedMemConfig(int *configuration) {
  if (!configuration) return emu_done(HIP_INVALID_VALUE);
  *configuration = 1;  // banks of four bytes
  return emu_done(HIP_SUCCESS);
}

int hipDeviceGetPCIBusId(char *text, int bytes, int index);
API int hipDeviceGetByPCIBusId(int *device, const char *text) {
  if (!device || !text) return emu_done(HIP_INVALID_VALUE);
  struct emu_state *s = emu_state();
  for (int i = 0; s && i < s->device_count; i++) {
    char own[13];
    if (hipDeviceGetPCIBusId(own, sizeof own, i) != HIP_SUCCESS || strcmp(own, text) != 0) continue;
    *device = i;
    return emu_done(HIP_SUCCESS);
  }
  return emu_done(HIP_INVALID_DEVICE);
}

API unsigned short __gnu_f2h_ieee(float value) {
  _Float16 half = (_Float16)value;
  unsigned short bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}
API float __gnu_h2f_ieee(unsigned short bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof half);
  return (float)half;
}

// AMD's extension counts the grid in work-items. HIP exports it with C++ linkage.
int emu_ext_launch(struct emu_function *function, unsigned items_x, unsigned items_y, unsigned items_z, unsigned block_x, unsigned block_y, unsigned block_z, size_t lds, void *handle, void **parameters, void **extra, void *start, void *stop, unsigned flags) __asm__(
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
int hipEventRecord(void *event, void *stream);

API int emu_ext_launch(struct emu_function *function, unsigned items_x, unsigned items_y, unsigned items_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, size_t lds, void *handle,
                       void **parameters, void **extra, void *start, void *stop, unsigned flags) {
  if (!block_x || !block_y || !block_z || lds > UINT32_MAX) return emu_done(HIP_INVALID_VALUE);
  if (items_x % block_x || items_y % block_y || items_z % block_z) {
    emu_say("hipExtModuleLaunchKernel with a grid that is no whole number of groups is not in the emulator");
    return emu_done(HIP_NOT_SUPPORTED);
  }
  struct emu_launch launch = {.function = function,
                              .groups = {items_x / block_x, items_y / block_y, items_z / block_z},
                              .threads = {block_x, block_y, block_z},
                              .lds = (unsigned)lds,
                              .parameters = parameters};
  int code = HIP_SUCCESS;
  if (extra) code = emu_launch_extra(extra, &launch.packed, &launch.packed_bytes);
  if (code == HIP_SUCCESS && start) code = hipEventRecord(start, handle);
  if (code == HIP_SUCCESS) code = emu_launch(&launch, emu_stream_of(handle));
  if (code == HIP_SUCCESS && stop) code = hipEventRecord(stop, handle);
  return emu_done(code);
}
