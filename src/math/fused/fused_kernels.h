/* Chains of operations value by value, interpreted a vector at a time: one kernel for each type.
 *
 * Bytes: each input once, where it is not broadcast, and the output; FLOPs: those of the steps. A step costs a thread
 * about 20 instructions to be read and dispatched, the same in all lanes, beside the operation's own; a thread has
 * FUSED_VECTORS times 16 bytes, at once with up to FUSED_FEW inputs and in turn with more, all of whose bytes are under
 * way before the first step. */
#ifndef RDNA_MATH_FUSED_KERNELS_H
#define RDNA_MATH_FUSED_KERNELS_H

#include <stdint.h>

#include "math/strided.h"
#include "rdna/op/fused.h"

enum {
  RDNA__FUSED_THREADS = 256,
  FUSED_VECTORS = 2 /* of a thread */,
  FUSED_FEW = 3 /* inputs, held twice */,
  FUSED_OPERANDS = RDNA_FUSED_MAX_INPUTS + 1,
  FUSED_RANK = 4
};

/* A step in a word. */
enum { FUSED_OP_MASK = 0xff, FUSED_IS_ZIP = 0x100, FUSED_INPUT_FIRST = 0x200, FUSED_INPUT_SHIFT = 12 };

struct fused_operand {
  void *data;
  int32_t stride[FUSED_RANK]; /* in values */
};
/* As in struct strided_shape, of fewer dimensions, which with those of all operands fill the scalar registers. */
struct fused_shape {
  uint32_t rank, count, size[FUSED_RANK], magic[FUSED_RANK], shift[FUSED_RANK];
};
struct fused_args {
  struct fused_operand operand[FUSED_OPERANDS]; /* out, then the inputs */
  struct fused_shape shape;
  uint32_t step[RDNA_FUSED_MAX_STEPS];
  float p[RDNA_FUSED_MAX_STEPS], q[RDNA_FUSED_MAX_STEPS];
  uint32_t steps, inputs;
  /* Bit k of |vectors|: operand k is accessed in whole vectors. Without |together|, which says that the fastest size is
   * a multiple of them, a thread takes its values one by one, RDNA__FUSED_THREADS apart. */
  uint32_t vectors, together;
};

/* name, argument struct, threads of a group, maker of random cases; a group takes RDNA__FUSED_THREADS times
 * FUSED_VECTORS times as many values as 16 bytes hold */
#define RDNA_FUSED_KERNELS(X)                            \
  X(fused_f32, struct fused_args, 256, rdna__fused_case) \
  X(fused_f16, struct fused_args, 256, rdna__fused_case) \
  X(fused_bf16, struct fused_args, 256, rdna__fused_case)

/* Where value |i| is along each dimension; 0 along those that there are not. */
struct fused_place {
  uint32_t at[FUSED_RANK];
};
RDNA_SCALAR struct fused_place fused_place_of(const struct fused_shape *shape, uint32_t i) {
  struct fused_place place = {{0}};
  STRIDED_UNROLL
  for (uint32_t d = 0; d < FUSED_RANK; d++) {
    if (d >= shape->rank) break;
    uint32_t quotient = (uint32_t)(((uint64_t)shape->magic[d] * i) >> shape->shift[d]);
    place.at[d] = i - quotient * shape->size[d];
    i = quotient;
  }
  return place;
}
/* In values from the operand's pointer. */
RDNA_SCALAR int64_t fused_offset(const struct fused_operand *operand, const struct fused_place *place) {
  int64_t offset = 0;
  STRIDED_UNROLL
  for (uint32_t d = 0; d < FUSED_RANK; d++) offset += (int64_t)place->at[d] * operand->stride[d];
  return offset;
}

#endif
