/* For operators: from tensors to the arguments of a strided kernel. */
#ifndef RDNA_MATH_COMMON_PLAN_STRIDED_H
#define RDNA_MATH_COMMON_PLAN_STRIDED_H

#include <stdbool.h>

#include "math/common/plan/check.h"
#include "math/common/strided.h"
#include "rdna/scalar.h"

enum { STRIDED_OPERANDS = 7 };

/* A launch in the making. Operand 0 is the output. Dimensions are ordered as in struct strided_shape: fastest first.
 *
 *     out (2, 3, 4) contiguous, x (2, 3, 4) contiguous, y (4) broadcast
 *     begin, add, add    size 4 3 2    out 1 4 12    x 1 4 12    y 1 0 0
 *     merge              size 4 6      out 1 4       x 1 4       y 1 0
 */
typedef struct strided_plan {
  int rank, operands;
  int64_t size[STRIDED_RANK];
  struct {
    char *data;
    int64_t stride[STRIDED_RANK]; /* in values */
    int64_t bytes;                /* of a value */
  } operand[STRIDED_OPERANDS];
} strided_plan;

/* Checks that |tensor| can be broadcast to |out|: counted from the last dimension, each size is equal, 1 or missing. */
rdna_status rdna__check_broadcast(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                  const rdna_tensor *out);
/* Checks that no two values of |out| share memory. */
rdna_status rdna__check_distinct(const char *op_name, const rdna_tensor *out);
/* The same for an argument that is not called out. */
rdna_status rdna__check_written(const char *op_name, const char *argument, const rdna_tensor *out);

/* Returns |value| as |dtype| stores it, in the low bytes. */
uint64_t rdna__scalar_bits(rdna_dtype dtype, rdna_scalar value);

/* Begins a plan with its output; adds a checked input, broadcast to it. Neither merges dimensions. */
void rdna__plan_begin(strided_plan *plan, const rdna_tensor *out);
void rdna__plan_add(strided_plan *plan, const rdna_tensor *input);
/* Drops dimensions of size 1, sorts the others by the output's strides, and merges neighbours that are contiguous to
 * each other in every operand. The rank becomes at least 1. No size may be 0. */
void rdna__plan_merge(strided_plan *plan);
/* Writes the shape as a kernel takes it. There must be at most STRIDED_MAX_COUNT values. */
void rdna__plan_shape(const strided_plan *plan, struct strided_shape *out_shape);
int64_t rdna__plan_count(const strided_plan *plan);
/* Returns whether |values| neighbours along the fastest dimension of operand |k| can be read together: they are
 * contiguous, divide the size, and are aligned to their bytes or to 16. */
bool rdna__plan_vector(const strided_plan *plan, int k, int64_t values);

/* Calls |launch| with the plan or, where it has more than STRIDED_MAX_COUNT values, with parts that have no more. */
rdna_status rdna__plan_each(const strided_plan *plan, rdna_status (*launch)(const strided_plan *part, void *context),
                            void *context);
/* Calls |launch| with each half of dimension |d|, whose size must be more than 1. If the first half has
 * more than 16 it is cut to a multiple of 16, so that the second half is aligned as the whole was. */
rdna_status rdna__plan_halves(const strided_plan *plan, int d,
                              rdna_status (*launch)(const strided_plan *part, void *context), void *context);

#endif
