/* One pointwise operation on each of many tensors, several tensors a launch: an optimizer that is written with
 * PyTorch's lists of tensors would launch each operation once a parameter otherwise. Tensors lie as lines: any shape,
 * without gaps, all operands of one tensor alike.
 *
 * A work-group takes a tile of EACH_THREADS * EACH_VECTORS vectors of 16 bytes of one tensor. Groups are numbered
 * through all tensors of the launch:
 *
 *     tensor 0, group 0    | group 0 | group 1 | group 2: the rest |
 *     tensor 1, group 3    | group 3: the rest |
 */
#ifndef RDNA_MATH_EACH_KERNELS_H
#define RDNA_MATH_EACH_KERNELS_H

#include <stdint.h>

#include "kernel/scalar.h"
#include "rdna/op/pointwise.h"

enum {
  EACH_THREADS = 256,
  EACH_VECTORS = 2, /* of a thread, EACH_THREADS vectors apart */
  EACH_TENSORS = 64,
  EACH_POINTERS = 187 /* so that the arguments fill 2,048 bytes */
};

struct each_args {
  const void *pointer[EACH_POINTERS]; /* of each tensor its result, then the kernel's one, two or three inputs */
  uint32_t count[EACH_TENSORS];       /* values; not 0 */
  uint32_t group[EACH_TENSORS];       /* the tensor's first group */
  uint32_t tensors, groups;           /* of all tensors */
  uint32_t op;                        /* rdna_map, rdna_zip or rdna_zip3 */
  uint32_t constants;                 /* bit k: input k, counted from 1, is |constant|; its pointers are NULL */
  uint64_t ones;                      /* bit t: the second input of tensor t is one value */
  float p, q, constant;
};

/* The tensor of a work-group: the last whose first group is not behind it. */
RDNA_SCALAR uint32_t each_tensor(const struct each_args *a, uint32_t group) {
  uint32_t low = 0, high = a->tensors;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (a->group[middle] <= group)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The first value of vector |j| of thread |thread| in group |group|; |in_16|: values of a vector. */
#define EACH_AT(group, thread, j, in_16) ((((group) * EACH_VECTORS + (j)) * EACH_THREADS + (thread)) * (in_16))

#define RDNA__EACH_KIND(X, kind)                                               \
  X(kind##_each_f32, struct each_args, EACH_THREADS, rdna__##kind##_each_case) \
  X(kind##_each_f16, struct each_args, EACH_THREADS, rdna__##kind##_each_case) \
  X(kind##_each_bf16, struct each_args, EACH_THREADS, rdna__##kind##_each_case)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_EACH_KERNELS(X) \
  RDNA__EACH_KIND(X, map)    \
  RDNA__EACH_KIND(X, zip)    \
  RDNA__EACH_KIND(X, zip3)

#endif
