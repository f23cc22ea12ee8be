// HIP's structs that several files read, as hip_runtime_api.h of HIP 5.2 to 6.2 lays them out.
#ifndef EMULATOR_HIP_LAYOUTS_H
#define EMULATOR_HIP_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

struct emu_dim3 {
  unsigned x, y, z;
};
struct emu_extent {
  size_t width, height, depth;
};
struct emu_position {
  size_t x, y, z;
};
// hipPitchedPtr
struct emu_pitched {
  void *at;
  size_t pitch, width, height;
};
struct emu_array;
// hipMemcpy3DParms
struct emu_copy_3d {
  struct emu_array *src_array;
  struct emu_position src_at;
  struct emu_pitched src;
  struct emu_array *dst_array;
  struct emu_position dst_at;
  struct emu_pitched dst;
  struct emu_extent extent;
  int kind;
};
// hipKernelNodeParams
struct emu_kernel_node {
  struct emu_dim3 block;
  void **extra;
  const void *function;  // the host's symbol, or what hipModuleGetFunction gave
  struct emu_dim3 grid;
  void **parameters;
  unsigned lds;
};
// hipMemsetParams: width in elements
struct emu_fill_node {
  void *dst;
  unsigned element;
  size_t height, pitch;
  unsigned value;
  size_t width;
};
// hipHostNodeParams
struct emu_host_node {
  void (*function)(void *data);
  void *data;
};
// hipMemLocation, hipMemAccessDesc, hipMemPoolProps
struct emu_location {
  int type, id;
};
struct emu_access {
  struct emu_location location;
  int flags;
};
struct emu_pool_properties {
  int kind, handles;
  struct emu_location location;
  void *security;
  uint8_t reserved[64];
};
// hipMemAllocNodeParams
struct emu_allocation_node {
  struct emu_pool_properties pool;
  const struct emu_access *access;
  size_t access_count, bytes;
  void *pointer;
};

#endif
