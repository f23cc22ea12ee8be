/* A chain of operations in one pass over memory. */
#ifndef RDNA_OP_FUSED_H
#define RDNA_OP_FUSED_H

#include "rdna/op/pointwise.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RDNA_FUSED_MAX_STEPS = 16, RDNA_FUSED_MAX_INPUTS = 6 };

/* What a step may be beside an operation, in the place of |op|: the value is rounded to the tensors' type and kept, and
 * goes on; or it becomes an input or what was kept. */
enum { RDNA_FUSED_KEEP = -1, RDNA_FUSED_TAKE = -2 };

/* value = op(value), one of rdna_map; or, if |is_zip|, value = op(value, inputs[input]), one of rdna_zip, and with
 * |input_first| op(inputs[input], value). Chains have those whose column |chain| in rdna/op/pointwise.def is not NO.
 * |p| and |q| as rdna_op_map and rdna_op_zip take them, in f32. |op| may also be RDNA_FUSED_KEEP, without |is_zip|: it
 * keeps the value as number |input|, one that no input has, less than RDNA_FUSED_MAX_INPUTS; or RDNA_FUSED_TAKE of
 * |input|. From its keeping on that number stands for an input. */
typedef struct rdna_fused_step {
  int op;
  bool is_zip, input_first;
  int input;
  float p, q;
} rdna_fused_step;

/* The value begins as inputs[0] and goes through the steps; |out| is what it becomes:
 *
 *     inputs[0] -> step 0 -> step 1 -> … -> out
 *                    ^ inputs[steps[0].input], if that is a zip
 *
 * A fork, whose branches join, keeps the one while it computes the other: sigmoid(x) * relu(x) is
 *
 *     sigmoid, keep 1, take 0, relu, mul 1
 *
 * All tensors are of one type, f32, f16 or bf16. The value is f32 throughout; it is rounded to their type at the end, and
 * where it is kept. On GPUs FAST operations have a relative error of at most 2^-20 in f32, except gelus of less than -2,
 * whose absolute error is at most 2^-20, and of about 2^-14 in 16-bit types, before the rounding; every other operation
 * gives the same bits on every device. A chain of at most 3 inputs is fastest if all its operations are QUICK or FAST, the operands in order.
 * Inputs broadcast to out's shape and have any strides; |out| may be exactly one of the inputs of its shape, or must
 * not overlap any. Every input and |out| is read or written once. On GPUs
 * a chain of contiguous or simply broadcast tensors that has moved much is compiled in the background (rdna/compile.h,
 * RDNA_FUSED_COMPILE) and runs by a kernel of its own from then on, with the same bits; rdna_choice_last("fused") says
 * which it was and why. Empty is RDNA_OK. RDNA_INVALID_ARGUMENT: no step or
 * more than RDNA_FUSED_MAX_STEPS, no input or more than RDNA_FUSED_MAX_INPUTS, a step's operation or input that there
 * is not, or is not kept yet, types or shapes that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type, an
 * operation that chains lack, more than 4 dimensions that do not merge into fewer, strides of 2^31 values or more. */
RDNA_CHECKED rdna_status rdna_op_fused(rdna_stream *stream, const rdna_fused_step *steps, int step_count,
                                       const rdna_tensor *const *inputs, int input_count, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
