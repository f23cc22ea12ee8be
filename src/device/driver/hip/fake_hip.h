/* What the tests can see inside the fake libamdhip64. */
#ifndef RDNA_DEVICE_DRIVER_HIP_FAKE_HIP_H
#define RDNA_DEVICE_DRIVER_HIP_FAKE_HIP_H

#include "device/driver/gpu/fake_gpu.h"

typedef struct fake_hip_record {
  fake_gpu_record gpu;
  int launch_device; /* current at the launch */
  int copy_kind;
  const void *image; /* of the last module */
  int modules;       /* live */
  int host_func_calls, add_callback_calls;
} fake_hip_record;

#endif
