/* For operators: from tensors to the arguments of a strided kernel. */
#ifndef RDNA_MATH_COMMON_PLAN_STRIDED_H
#define RDNA_MATH_COMMON_PLAN_STRIDED_H

#include <stdbool.h>

#include "math/common/plan/check.h"
#include "math/common/strided.h"
#include "rdna/scalar.h"

enum { STRIDED_OPERANDS = 7 };

/* Operand 0 is the output. Dimensions lie as in struct strided_shape: fastest first. */
typedef struct strided_plan {
  int rank, operands;
  int64_t size[STRIDED_RANK];
  struct {
    char *data;
    int64_t stride[STRIDED_RANK]; /* in values */
    int64_t bytes;                /* of a value */
  } operand[STRIDED_OPERANDS];
} strided_plan;

/* |tensor| is as large as |out| in each dimension, counted from the last, or is 1 there or lacks it. */
rdna_status rdna__check_broadcast(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                  const rdna_tensor *out);
/* No two values of |out| are in one place. */
rdna_status rdna__check_distinct(const char *op_name, const rdna_tensor *out);
/* The same of a tensor that is not called out. */
rdna_status rdna__check_written(const char *op_name, const char *argument, const rdna_tensor *out);

/* |value| as the type stores it, in the low bytes. */
uint64_t rdna__scalar_bits(rdna_dtype dtype, rdna_scalar value);

/* Begins a plan with its output, and adds an input that was checked; both keep all dimensions. */
void rdna__plan_begin(strided_plan *plan, const rdna_tensor *out);
void rdna__plan_add(strided_plan *plan, const rdna_tensor *input);
/* Sorts by the output's strides, drops sizes of 1 and merges neighbours. The rank is 1 at least. Nothing is empty. */
void rdna__plan_merge(strided_plan *plan);
/* The shape as a kernel takes it; the count is at most STRIDED_MAX_COUNT. */
void rdna__plan_shape(const strided_plan *plan, struct strided_shape *out_shape);
int64_t rdna__plan_count(const strided_plan *plan);
/* |values| neighbours along the fastest dimension of operand |k| are one aligned access of at most 16 bytes each. */
bool rdna__plan_vector(const strided_plan *plan, int k, int64_t values);

/* Calls |launch| with the plan, or with parts of it that have at most STRIDED_MAX_COUNT values each. */
rdna_status rdna__plan_each(const strided_plan *plan, rdna_status (*launch)(const strided_plan *part, void *context),
                            void *context);
/* Calls |launch| with each half of dimension |d|, whose size is more than 1; the first a multiple of 16 where it can
 * be.
 */
rdna_status rdna__plan_halves(const strided_plan *plan, int d,
                              rdna_status (*launch)(const strided_plan *part, void *context), void *context);

#endif
