/* What the tests can see inside the fake libcuda. */
#ifndef RDNA_DEVICE_DRIVER_CUDA_FAKE_CUDA_H
#define RDNA_DEVICE_DRIVER_CUDA_FAKE_CUDA_H

#include <stddef.h>

typedef struct fake_cuda_record {
  char kernel[64];
  unsigned grid[3], block[3], shared_bytes, dynamic_limit;
  size_t args_size;
  unsigned char args[256];
  void *launch_context; /* current at the launch */
  unsigned event_flags, host_alloc_flags, stream_flags;
  int stream_priority;
  int retains, releases; /* of primary contexts, all devices */
  int context_switches;
  int capturing, replays; /* streams between begin and end; launches of graphs */
  int graphs;             /* live, executable ones too */
  char image[4096];       /* the last one loaded, as far as it fits */
  int overlapped;         /* the last launch was allowed to begin before the end of the one before */
  int capture_fails;      /* 1: the next end finds something that cannot be captured */
} fake_cuda_record;

#endif
