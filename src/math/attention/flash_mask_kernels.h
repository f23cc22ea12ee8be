/* Gradient of attention's additive mask: argument struct and the list of kernels. With p, dp, kept and delta as in
 * flash_backward_kernels.h,
 *
 *     dmask = sum of p * (dp * kept / (1 - dropout) - delta)
 *
 * over every sequence, head and query for which the mask has one value: where its size is 1 and theirs is not. A part
 * adds its share of them; parts are added afterwards, in order. */
#ifndef RDNA_MATH_FLASH_MASK_KERNELS_H
#define RDNA_MATH_FLASH_MASK_KERNELS_H

#include "kernel/scalar.h"
#include "math/attention/flash_kernels.h"

/* threads of a group by lanes; queries and keys of its tile */
#define FLASH_MASK_THREADS 256
#define FLASH_MASK_TILE 64
/* Shared memory of the form for compute capability 9.0: 64 rows of each operand. */
#define FLASH_MASK_BYTES(max_d) (4 * FLASH_MASK_TILE * (max_d) * 2)

/* Everything of the forward pass, lse read instead of written and out NULL; no starts. */
struct flash_mask_args {
  struct flash_args of; /* these three as in flash_backward_args */
  const void *dout;
  const float *delta; /* laid out as lse */
  void *dmask;        /* f32 if |is_f32|, or the type of q */
  int64_t dout_stride[3];
  int64_t dmask_stride[5];                      /* part, batch, head, query, key */
  int32_t mask_batch, mask_heads, mask_queries; /* the mask's sizes: those of |of| or 1 */
  uint32_t parts, is_f32;
};

/* What one value of dmask is summed over, queries in tiles. */
RDNA_SCALAR uint32_t flash_mask_terms(const struct flash_mask_args *a) {
  uint32_t terms = a->mask_batch == 1 ? (uint32_t)a->of.batch : 1;
  if (a->mask_heads == 1) terms *= (uint32_t)a->of.heads;
  if (a->mask_queries == 1) terms *= (uint32_t)((a->of.sq + FLASH_MASK_TILE - 1) / FLASH_MASK_TILE);
  return terms;
}

/* "masked" kernels know limits and a mask with a value for each query; the others every option. */
#define RDNA__FLASH_MASK_MASKED(X, type, size)                                                          \
  X(flash_mask_masked_##type##_##size, struct flash_mask_args, FLASH_THREADS, rdna__flash_mask_case, 0, \
    FLASH_MASK_BYTES(size))

/* grid: (tiles of keys * tiles of the mask's queries * its heads * its batch * parts) */
#define RDNA_FLASH_MASK_KERNELS(X)                                                      \
  X(flash_mask_f32, struct flash_mask_args, FLASH_MASK_THREADS, rdna__flash_mask_case)  \
  X(flash_mask_f16, struct flash_mask_args, FLASH_MASK_THREADS, rdna__flash_mask_case)  \
  X(flash_mask_bf16, struct flash_mask_args, FLASH_MASK_THREADS, rdna__flash_mask_case) \
  RDNA__FLASH_MASK_MASKED(X, f16, 64)                                                   \
  RDNA__FLASH_MASK_MASKED(X, f16, 128)                                                  \
  RDNA__FLASH_MASK_MASKED(X, bf16, 64)                                                  \
  RDNA__FLASH_MASK_MASKED(X, bf16, 128)

#endif
