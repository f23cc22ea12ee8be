/* What the host driver tells of this machine. */
#ifndef RDNA_DEVICE_DRIVER_HOST_PROCESSOR_H
#define RDNA_DEVICE_DRIVER_HOST_PROCESSOR_H

#include "rdna/device.h"

void rdna__host_describe(rdna_device_info *out_info);
/* Bytes that this process may still take and bytes in all, as the machine and its control group allow. */
void rdna__host_memory(uint64_t *out_free, uint64_t *out_total);

#endif
