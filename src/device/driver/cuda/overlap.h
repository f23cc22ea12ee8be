/* Launches that overlap: on compute capability 9.0 and later the GPU can set a kernel up while the one queued before
 * it ends, if the kernel itself then waits for that one's stores (CUDA calls it programmatic dependent launch). */
#ifndef RDNA_DEVICE_DRIVER_CUDA_OVERLAP_H
#define RDNA_DEVICE_DRIVER_CUDA_OVERLAP_H

#include "rdna/status.h"

/* A module that has a variable of this name says by it that each of its kernels waits before anything else. */
#define RDNA__OVERLAP_MARK "rdna_kernels_wait"

/* |ptx| for compute capability 9.0, with griddepcontrol.wait as the first instruction of every kernel and the variable
 * RDNA__OVERLAP_MARK; free it with free(). Ends well with NULL where |ptx| must stay as it is: it is older than PTX
 * 7.8, the first with that instruction, or has no kernel that can be seen. The only error is RDNA_OUT_OF_MEMORY.
 * Source of the grammar: NVIDIA's PTX ISA 8.7, sections 5 and 11. */
rdna_status rdna__ptx_with_waits(const char *ptx, char **out_ptx);

#endif
