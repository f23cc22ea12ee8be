/* A kernel is a name and an argument struct. Each driver brings its own code for that name. */
#ifndef RDNA_KERNEL_H
#define RDNA_KERNEL_H

#include "rdna/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_kernel rdna_kernel;

typedef struct rdna_grid {
  uint32_t x, y, z; /* work-groups; the group's size belongs to the kernel */
} rdna_grid;

/* Finds |name| for |device|, loading its family's code object on first use. Borrowed; lives as long as the
 * device. RDNA_NOT_FOUND: no such name in the manifest. RDNA_UNSUPPORTED: no pack for this GPU, with the
 * targets that there are and what to do. Thread-safe. */
RDNA_CHECKED rdna_status rdna_kernel_get(rdna_device *device, const char *name, const rdna_kernel **out_kernel);

/* Queues the kernel. |args| points to its argument struct and is copied before the call returns. A grid with
 * a zero is no work and RDNA_OK. */
RDNA_CHECKED rdna_status rdna_launch(rdna_stream *stream, const rdna_kernel *kernel, rdna_grid grid, const void *args);

#ifdef __cplusplus
}
#endif
#endif
