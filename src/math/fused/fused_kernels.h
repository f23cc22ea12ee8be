/* Chains of operations value by value, interpreted one or two vectors of a thread at a time: two kernels for each type.
 *
 * A unit is a vector of 16 bytes, or one value where operands do not allow vectors. A thread takes the units of one
 * column of |rows| neighbouring rows, which are a block. With 2 rows to a block and c columns, a number being a thread:
 *
 *               column 0   column 1         column c - 1
 *     row 0        0          1      ...       c - 1         block 0
 *     row 1        0          1      ...       c - 1
 *     row 2        c         c + 1   ...      2 c - 1        block 1
 *     row 3        c         c + 1   ...      2 c - 1
 *
 * Bytes: each input once, if it is not broadcast, and the output; FLOPs: those of the steps. A step costs a thread
 * about 20 instructions to be read and dispatched, the same in all lanes, beside the operation's own; offsets of the
 * values cost about 40, and a few more for each row. */
#ifndef RDNA_MATH_FUSED_KERNELS_H
#define RDNA_MATH_FUSED_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/strided.h"
#include "rdna/op/fused.h"

enum {
  RDNA__FUSED_THREADS = 256,
  FUSED_ROWS = 2 /* rows of a block, in the kernels for few inputs */,
  FUSED_FEW = 3 /* the most inputs of those kernels */,
  FUSED_OPERANDS = RDNA_FUSED_MAX_INPUTS + 1,
  FUSED_RANK = 4
};

/* The bits of a step's word: the operation in 0 to 7, three flags, the second operand's input from bit 12 on. Inputs
 * are held in slots, of which those behind the last input take what is kept. FUSED_IS_MOVE: the operation is
 * FUSED_KEEP, which no map has as its number, or FUSED_TAKE, and the input is the slot. */
enum { FUSED_OP_MASK = 0xff, FUSED_IS_ZIP = 0x100, FUSED_INPUT_FIRST = 0x200, FUSED_IS_MOVE = 0x400 };
enum { FUSED_INPUT_SHIFT = 12, FUSED_KEEP = 0xfe, FUSED_TAKE = 0xff };
_Static_assert((int)RDNA_MAP_COUNT < (int)FUSED_KEEP, "no map is a move");

struct fused_operand {
  void *data;
  int32_t stride[FUSED_RANK]; /* in values: from unit to unit, row to row and so on; offsets are less than 2^31 */
};
/* The shape of the grid's threads, with division by multiplication as in struct strided_shape; of fewer dimensions, as
 * it and the strides of all operands fill the scalar registers. */
struct fused_shape {
  uint32_t rank, count, size[FUSED_RANK], magic[FUSED_RANK], shift[FUSED_RANK]; /* rank 2 to 4 */
};
struct fused_args {
  struct fused_operand operand[FUSED_OPERANDS]; /* out, then the inputs */
  struct fused_shape shape;                     /* the columns, the blocks of rows, the dimensions above */
  uint32_t step[RDNA_FUSED_MAX_STEPS];
  float p[RDNA_FUSED_MAX_STEPS], q[RDNA_FUSED_MAX_STEPS];
  uint32_t steps, inputs;
  uint32_t rows;    /* of a block */
  uint32_t units;   /* of all rows of a plane (dimensions 0 and 1); the last may have fewer */
  uint32_t tail;    /* values of the last unit if it is not a whole vector, else 0 */
  uint32_t wide;    /* 1: units are vectors; 0: single values */
  uint32_t vectors; /* bit k, if wide: operand k is read in vectors; 0: it is broadcast, one value for the whole unit */
};

/* name, argument struct, threads of a group, maker of random cases. fused_*: quick steps (fused_ops.h) on vectors of at
 * most FUSED_FEW inputs, FUSED_ROWS rows to a block. fused_any_*: anything, with one row of vectors to a block, or as
 * many rows of single values as a vector holds. */
#define RDNA_FUSED_KERNELS(X)                                \
  X(fused_f32, struct fused_args, 256, rdna__fused_case)     \
  X(fused_f16, struct fused_args, 256, rdna__fused_case)     \
  X(fused_bf16, struct fused_args, 256, rdna__fused_case)    \
  X(fused_any_f32, struct fused_args, 256, rdna__fused_case) \
  X(fused_any_f16, struct fused_args, 256, rdna__fused_case) \
  X(fused_any_bf16, struct fused_args, 256, rdna__fused_case)

/* Where thread |i| begins: its column, its first row, and the offsets of the first |count| operands. */
RDNA_SCALAR void fused_begin(const struct fused_args *a, int count, uint32_t i, uint32_t *out_column, uint32_t *out_row,
                             int32_t *out_offsets) {
  uint32_t rest = (uint32_t)(((uint64_t)a->shape.magic[0] * i) >> a->shape.shift[0]);
  uint32_t column = i - rest * a->shape.size[0], at = rest;
  *out_column = column;
  STRIDED_UNROLL
  for (uint32_t d = 1; d < FUSED_RANK; d++) {
    bool last = d + 1 == FUSED_RANK || d + 1 >= a->shape.rank;
    at = rest;
    if (!last) {
      rest = (uint32_t)(((uint64_t)a->shape.magic[d] * rest) >> a->shape.shift[d]);
      at -= rest * a->shape.size[d];
    }
    if (d == 1) *out_row = at = at * a->rows;
    STRIDED_UNROLL
    for (int k = 0; k < count; k++) {
      uint32_t before = d == 1 ? column * (uint32_t)a->operand[k].stride[0] : (uint32_t)out_offsets[k];
      out_offsets[k] = (int32_t)(before + at * (uint32_t)a->operand[k].stride[d]);
    }
    if (last) break;
  }
}

#endif
