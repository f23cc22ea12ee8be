/* What the tests can see inside either stand-in for a vendor's library. */
#ifndef RDNA_DEVICE_DRIVER_GPU_FAKE_GPU_H
#define RDNA_DEVICE_DRIVER_GPU_FAKE_GPU_H

#include <stddef.h>
#include <string.h>

typedef struct fake_gpu_record {
  char kernel[64];
  unsigned grid[3], block[3], shared_bytes; /* of the last launch */
  size_t args_size;
  unsigned char args[256];
  unsigned event_flags, host_alloc_flags, stream_flags;
  int stream_priority;
  int switches;  /* of the current device or context */
  int not_ready; /* 1: queries find work under way */
} fake_gpu_record;

typedef struct fake_function {
  char name[64];
} fake_function;

/* Notes a launch; 0 when its arguments are not packed as the vendor's interface wants them, with |end| last. */
static inline int fake_gpu_launch(fake_gpu_record *record, const fake_function *function, const unsigned grid[3],
                                  const unsigned block[3], unsigned shared_bytes, void **parameters, void **extra,
                                  const void *end) {
  if (parameters != NULL || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != end) return 0;
  memcpy(record->kernel, function->name, sizeof record->kernel);
  memcpy(record->grid, grid, sizeof record->grid);
  memcpy(record->block, block, sizeof record->block);
  record->shared_bytes = shared_bytes;
  record->args_size = *(size_t *)extra[3];
  memcpy(record->args, extra[1], record->args_size);
  return 1;
}

#endif
