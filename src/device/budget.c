#include "device/budget.h"

#include "device/driver.h"
#include "rdna/memory.h"

#define MOST_FOR_DRIVERS (UINT64_C(512) << 20)

rdna_status rdna__device_budget(rdna_device *device, rdna__budget *out) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  RDNA_TRY(rdna_memory_get_info(device, &out->free, &out->total));
  out->free += stats.reserved - stats.allocated;
  if (out->free > out->total) out->free = out->total;
  const rdna_device_info *info = rdna_device_get_info(device);
  bool shared = info->integrated || rdna__device_driver(device)->code_format == RDNA__CODE_HOST;
  uint64_t some = out->total / 32 < MOST_FOR_DRIVERS ? out->total / 32 : MOST_FOR_DRIVERS;
  if (shared) some = out->free / 4;
  out->most = out->free > some ? out->free - some : 0;
  return RDNA_OK;
}
