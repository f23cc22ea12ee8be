/* What the tests can see inside the fake libcuda. */
#ifndef RDNA_DEVICE_DRIVER_CUDA_FAKE_CUDA_H
#define RDNA_DEVICE_DRIVER_CUDA_FAKE_CUDA_H

#include "device/driver/gpu/fake_gpu.h"

typedef struct fake_cuda_record {
  fake_gpu_record gpu;
  unsigned dynamic_limit;
  int retains, releases;  /* of primary contexts, all devices */
  int capturing, replays; /* streams between begin and end; launches of graphs */
  int graphs;             /* live, executable ones too */
  char image[4096];       /* the last one loaded, as far as it fits */
  int overlapped;         /* the last launch was allowed to begin before the end of the one before */
  int capture_fails;      /* 1: the next end finds something that cannot be captured */
} fake_cuda_record;

#endif
