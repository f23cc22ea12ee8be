/* Tensors of any strides as kernels see them: one shape for all operands, whose dimensions are merged where every
 * operand allows it, and a pointer with strides for each operand. A broadcast dimension has stride 0. For the host and
 * for the GPU. */
#ifndef RDNA_MATH_COMMON_STRIDED_H
#define RDNA_MATH_COMMON_STRIDED_H

#include <stdint.h>

#include "kernel/scalar.h"

/* The most values of a launch, so that indices are 32 bits; operators split larger tensors (rdna__plan_each). */
enum { STRIDED_RANK = 8, STRIDED_MAX_COUNT = 1 << 27 };

struct strided_shape {
  uint32_t rank, count;        /* rank 1 to 8 */
  uint32_t size[STRIDED_RANK]; /* the fastest dimension of the output first */
  /* n / size is n * magic >> shift for n < 2^31 (Granlund and Montgomery, "Division by invariant integers", 1994) */
  uint32_t magic[STRIDED_RANK], shift[STRIDED_RANK];
};

struct strided_operand {
  void *data;
  int64_t stride[STRIDED_RANK]; /* in values */
};

#ifdef __clang__
#define STRIDED_UNROLL _Pragma("unroll")
#else
#define STRIDED_UNROLL
#endif

/* Finds where value |i| of each operand is, in values from its pointer. Unrolled, because arguments that are indexed by
 * a variable would be read from memory. */
RDNA_SCALAR void strided_offsets(const struct strided_shape *shape, const struct strided_operand *operands, int count,
                                 uint32_t i, int64_t *out_offsets) {
  STRIDED_UNROLL
  for (int k = 0; k < count; k++) out_offsets[k] = 0;
  STRIDED_UNROLL
  for (uint32_t d = 0; d < STRIDED_RANK; d++) {
    if (d >= shape->rank) break;
    uint32_t quotient = (uint32_t)(((uint64_t)shape->magic[d] * i) >> shape->shift[d]);
    int64_t coordinate = (int64_t)(i - quotient * shape->size[d]);
    STRIDED_UNROLL
    for (int k = 0; k < count; k++) out_offsets[k] += coordinate * operands[k].stride[d];
    i = quotient;
  }
}

/* Sets size, magic and shift of dimension |d|. */
RDNA_SCALAR void strided_set_size(struct strided_shape *shape, uint32_t d, uint32_t size) {
  uint32_t bits = 0; /* ceil(log2(size)) */
  while (bits < 31 && (UINT32_C(1) << bits) < size) bits++;
  shape->size[d] = size;
  shape->shift[d] = 31 + bits;
  shape->magic[d] = (uint32_t)(((UINT64_C(1) << (31 + bits)) + size - 1) / size);
}

#endif
