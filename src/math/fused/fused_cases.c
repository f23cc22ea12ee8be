#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/case_values.h"
#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"
#include "math/strided_case.h"

/* No tolerances here: the kernels and their twins compute the same bits. */

/* Every operation that chains have. */
#define MAP_ENTRY(op, expression) RDNA_MAP_##op,
#define ZIP_ENTRY(op, expression) RDNA_ZIP_##op,
static const uint8_t maps[] = {FUSED_MAPS(MAP_ENTRY)}, zips[] = {FUSED_ZIPS(ZIP_ENTRY)};

static void pick_steps(rdna__random *random, int n, struct fused_args *args) {
  args->inputs = (uint32_t)(n == 0 ? 1 : rdna__random_range(random, 1, RDNA_FUSED_MAX_INPUTS));
  args->steps = (uint32_t)(n == 0 ? 1 : rdna__random_range(random, 1, RDNA_FUSED_MAX_STEPS));
  for (uint32_t s = 0; s < args->steps; s++) {
    if (rdna__random_below(random, 2)) {
      args->step[s] = maps[rdna__random_below(random, sizeof maps)];
    } else {
      uint32_t input = (uint32_t)rdna__random_below(random, args->inputs);
      args->step[s] = zips[rdna__random_below(random, sizeof zips)] | FUSED_IS_ZIP | input << FUSED_INPUT_SHIFT |
                      (rdna__random_below(random, 2) ? FUSED_INPUT_FIRST : 0);
    }
    args->p[s] = (float)(2 * rdna__random_normal(random));
    args->q[s] = (float)(rdna__random_normal(random) + 3);
  }
}

RDNA_CASE_MAKER(rdna__fused_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int values = dtype == RDNA_F32 ? 4 : 8;
  struct fused_args args = {0};
  int64_t stride[FUSED_OPERANDS][STRIDED_RANK] = {{0}}, span[FUSED_OPERANDS];
  pick_steps(random, n, &args);
  struct strided_shape shape;
  do {
    case_pick_shape(random, n, values, &shape);
  } while (shape.rank > FUSED_RANK);
  args.shape.rank = shape.rank;
  args.shape.count = shape.count;
  for (uint32_t d = 0; d < shape.rank; d++) {
    args.shape.size[d] = shape.size[d];
    args.shape.magic[d] = shape.magic[d];
    args.shape.shift[d] = shape.shift[d];
  }
  args.together = args.shape.size[0] % (uint32_t)values == 0;
  for (uint32_t k = 0; k <= args.inputs; k++) {
    span[k] = case_pick_strides(random, &shape, k == 0, values, stride[k]);
    if (case_may_be_vector(&shape, stride[k], values)) args.vectors |= 1u << k;
    for (uint32_t d = 0; d < args.shape.rank; d++) args.operand[k].stride[d] = (int32_t)stride[k][d];
  }
  memcpy(out_case->args, &args, sizeof args);
  uint32_t group = FUSED_VECTORS * (uint32_t)values * RDNA__FUSED_THREADS;
  out_case->grid = (rdna_grid){(args.shape.count + group - 1) / group, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "steps %u inputs %u rank %u count %u, first step %x", args.steps,
           args.inputs, args.shape.rank, args.shape.count, args.step[0]);
  for (uint32_t k = 0; k <= args.inputs; k++) {
    uint32_t offset = (uint32_t)(offsetof(struct fused_args, operand) + (size_t)k * sizeof args.operand[0]);
    void *data = rdna__case_add(out_case, k == 0 ? RDNA__OUT : RDNA__IN, dtype, span[k], offset);
    if (!data) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of %lld values", (long long)span[k]);
    if (k > 0) {
      case_fill_hard(random, dtype, data, span[k]);
      continue;
    }
    struct strided_operand out = {0};
    memcpy(out.stride, stride[0], sizeof out.stride);
    RDNA_TRY(case_mark_gaps(out_case, &shape, &out, span[0]));
  }
  return RDNA_OK;
}
