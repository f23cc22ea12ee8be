/* Fills memory with a 32-bit value. */
#ifndef RDNA_MATH_FILL_KERNELS_H
#define RDNA_MATH_FILL_KERNELS_H

#include <stdint.h>

/* out[i] = value for i < count; grid x: ceil(count / 256) groups, or fewer, as each group strides over the rest. */
struct fill_args {
  uint32_t *out; /* (count) */
  uint64_t count;
  uint32_t value;
};

#define RDNA_FILL_KERNELS(X) X(fill_u32, struct fill_args, 256, rdna__fill_u32_case)

#endif
