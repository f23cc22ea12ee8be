/* What the tests can see inside the fake libamdhip64. */
#ifndef RDNA_DEVICE_DRIVER_HIP_FAKE_HIP_H
#define RDNA_DEVICE_DRIVER_HIP_FAKE_HIP_H

#include <stddef.h>

typedef struct fake_hip_record {
  char kernel[64];
  unsigned grid[3], block[3], shared_bytes;
  size_t args_size;
  unsigned char args[256];
  int launch_device; /* current at the launch */
  unsigned event_flags, host_malloc_flags, stream_flags;
  int stream_priority;
  int device_switches;
  int copy_kind;
  const void *image; /* of the last module */
  int modules;       /* live */
  int not_ready;     /* 1: queries find work under way */
  int host_func_calls, add_callback_calls;
} fake_hip_record;

#endif
