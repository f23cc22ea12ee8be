/* What ran on the devices while TensorFlow's profiler is on, with the operators that asked for it. */
#ifndef RDNA_TENSORFLOW_PROFILER_H
#define RDNA_TENSORFLOW_PROFILER_H

#include <stdatomic.h>

#include "functions.h"

/* Whether it is on: kernels name themselves by profiler_enter then. */
extern atomic_bool profiler_on;

/* What this thread queues from now on belongs to |op| of this call. |mark| is the kernel's own place, zero at first. */
void profiler_enter(_Atomic uint64_t *mark, const char *op, TF_OpKernelContext *ctx);
void profiler_leave(void);

#endif
