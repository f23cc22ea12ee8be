/* How much of a device's memory a plan may count on. */
#ifndef RDNA_DEVICE_BUDGET_H
#define RDNA_DEVICE_BUDGET_H

#include "rdna/device.h"

typedef struct rdna__budget {
  uint64_t free, total; /* what the driver says, and of the pool what nobody holds */
  uint64_t most;        /* of that, what a plan may take: some is left to the driver, for code and graphs, and of memory
                           that the host shares a quarter to others */
} rdna__budget;
rdna_status rdna__device_budget(rdna_device *device, rdna__budget *out_budget);

#endif
