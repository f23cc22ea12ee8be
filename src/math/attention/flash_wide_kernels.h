/* Attention over whole sequences with heads of more than 256 values: the list of kernels. */
#ifndef RDNA_MATH_FLASH_WIDE_KERNELS_H
#define RDNA_MATH_FLASH_WIDE_KERNELS_H

#include "kernel/scalar.h"
#include "math/attention/flash_kernels.h"

/* values of a key and of a value at most, and those that a group makes of each result */
#define FLASH_WIDE_D 576
#define FLASH_WIDE_DV 512
#define FLASH_WIDE_PART 256

/* grid (blocks of FLASH_ROWS queries * parts of FLASH_WIDE_PART values, heads, batch); the options as in
 * flash_kernels.h. */
#define RDNA_FLASH_WIDE_KERNELS(X)      \
  RDNA__FLASH_KERNEL(X, any_f32, wide)  \
  RDNA__FLASH_KERNEL(X, any_f16, wide)  \
  RDNA__FLASH_KERNEL(X, any_bf16, wide) \
  RDNA__FLASH_KERNEL(X, f32, wide)      \
  RDNA__FLASH_KERNEL(X, f16, wide)      \
  RDNA__FLASH_KERNEL(X, bf16, wide)

RDNA_SCALAR int32_t flash_wide_parts(const struct flash_args *a) {
  return a->dv > FLASH_WIDE_PART ? (a->dv + FLASH_WIDE_PART - 1) / FLASH_WIDE_PART : 1;
}

#endif
