/* Chains of operations as the source of kernels of their own. */
#ifndef RDNA_MATH_FUSED_CHAIN_SOURCE_H
#define RDNA_MATH_FUSED_CHAIN_SOURCE_H

#include "base/status.h"
#include "math/common/plan/strided.h"
#include "math/fused/chain_args.h"
#include "math/fused/fused_kernels.h"

/* The structs of chain_kernel.h, in their order. */
typedef enum chain_kind { CHAIN_SAME, CHAIN_ONE, CHAIN_ROW, CHAIN_COLUMN, CHAIN_PLANE } chain_kind;

/* What a chain's kernel depends on; compared by its bytes, so begin with zeros. Parameters are arguments. */
typedef struct chain_key {
  uint8_t dtype, steps, inputs; /* dtype: rdna_dtype */
  uint8_t kind[CHAIN_INPUTS];   /* chain_kind */
  uint8_t zero[3];              /* in place of padding, whose bytes nothing promises */
  uint32_t step[CHAIN_STEPS];   /* words, as in struct fused_args */
} chain_key;

_Static_assert(sizeof(chain_key) == 3 + CHAIN_INPUTS + 3 + 4 * CHAIN_STEPS, "a chain's key has no padding");

enum { CHAIN_NAME = 96 };

/* How the operands of |plan| lie: fills in |key|'s kinds and |args| but for the parameters, and *out_bytes, what it
 * moves. False where a chain's own kernel does not take them: an output that is not contiguous, a stride that is
 * neither the output's nor 0, vectors that are not aligned. */
bool rdna__chain_lay_out(const strided_plan *plan, chain_key *key, struct chain_args *args, int64_t *out_bytes);

/* Values of the output that a group of threads takes. */
uint32_t rdna__chain_group_values(const chain_key *key);

/* The kernel's name, "chain_f32_add_gelu_erf": as many operations as there is room for. */
void rdna__chain_name(const chain_key *key, char name[CHAIN_NAME]);

/* The whole source, to be freed with free(). */
rdna_status rdna__chain_source(const chain_key *key, char **out_source);

#endif
