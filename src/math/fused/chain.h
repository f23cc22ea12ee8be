/* Chains that are asked for often, as kernels of their own: compiled at run time, in the background, and launched in
 * place of the interpreter from then on. The results are the same bits. */
#ifndef RDNA_MATH_FUSED_CHAIN_H
#define RDNA_MATH_FUSED_CHAIN_H

#include "math/common/plan/strided.h"
#include "math/fused/fused_kernels.h"
#include "rdna/stream.h"

/* Launches the chain of |args| (steps and parameters; its operands are those of |plan|) by its own kernel where there
 * is one. *out_done false: there is none, or not yet, and nothing was launched. rdna_choice_last("fused") says which it
 * was and why. */
rdna_status rdna__chain_launch(rdna_stream *stream, rdna_dtype dtype, const struct fused_args *args,
                               const strided_plan *plan, bool *out_done);

/* Bytes that a chain must have moved before it is compiled where RDNA_FUSED_COMPILE is auto; tests make them few. */
extern int64_t rdna__chain_worth;

/* Waits until nothing is being compiled in the background. */
void rdna__chain_wait(void);

#endif
