#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/strided.h"
#include "math/common/case/values.h"
#include "math/fused/fused_layout.h"

/* Operations that do not increase a relative error. */
static const uint8_t calm[] = {RDNA_MAP_NEG, RDNA_MAP_ABS, RDNA_MAP_RELU};
static const uint8_t calm_zips[] = {RDNA_ZIP_MAXIMUM, RDNA_ZIP_MINIMUM};

#define PICK(random, list) list[rdna__random_below(random, sizeof list)]

/* Picks a random operation from a table of enum fused_chain whose entry is |chain| or |other|. */
static uint32_t pick_op(rdna__random *random, const uint8_t *table, size_t count, uint8_t chain, uint8_t other) {
  uint64_t found = 0, wanted;
  for (size_t op = 0; op < count; op++) found += table[op] == chain || table[op] == other;
  wanted = rdna__random_below(random, found);
  for (size_t op = 0;; op++) {
    if ((table[op] == chain || table[op] == other) && wanted-- == 0) return (uint32_t)op;
  }
}
static uint32_t pick_map(rdna__random *random, uint8_t chain, uint8_t other) {
  return pick_op(random, fused_map_chain, sizeof fused_map_chain, chain, other);
}
static uint32_t pick_zip(rdna__random *random, uint8_t chain, uint8_t other) {
  return pick_op(random, fused_zip_chain, sizeof fused_zip_chain, chain, other);
}

static uint32_t pick_step(rdna__random *random, uint32_t map, uint32_t zip, uint32_t inputs) {
  if (rdna__random_below(random, 2)) return map;
  return zip | FUSED_IS_ZIP | (uint32_t)rdna__random_below(random, inputs) << FUSED_INPUT_SHIFT;
}

/* Makes one step keep its value behind the inputs, and another one behind it take that or an input. */
static void pick_fork(rdna__random *random, struct fused_args *args) {
  uint32_t keep = (uint32_t)rdna__random_below(random, args->steps - 1);
  uint32_t take = (uint32_t)rdna__random_range(random, (int)keep + 1, (int)args->steps - 1);
  args->step[keep] = FUSED_KEEP | FUSED_IS_MOVE | args->inputs << FUSED_INPUT_SHIFT;
  args->step[take] =
      FUSED_TAKE | FUSED_IS_MOVE | (uint32_t)rdna__random_below(random, args->inputs + 1) << FUSED_INPUT_SHIFT;
  for (uint32_t s = keep + 1; s < args->steps; s++)
    if (args->step[s] & FUSED_IS_ZIP && rdna__random_below(random, 2))
      args->step[s] = (args->step[s] & ((1u << FUSED_INPUT_SHIFT) - 1)) | args->inputs << FUSED_INPUT_SHIFT;
}

/* Picks random steps; if |few| for the kernels for few inputs. Kernels and twins compute the same bits. */
static void pick_steps(rdna__random *random, int n, bool few, struct fused_args *args) {
  int inputs = few ? FUSED_FEW : RDNA_FUSED_MAX_INPUTS;
  args->inputs = (uint32_t)(n == 0 ? 1 : rdna__random_range(random, 1, inputs));
  args->steps = (uint32_t)(n == 0 ? 1 : rdna__random_range(random, 1, RDNA_FUSED_MAX_STEPS));
  for (uint32_t s = 0; s < args->steps; s++) {
    uint8_t slow = few ? FUSED_QUICK : FUSED_SLOW;
    uint32_t map = pick_map(random, FUSED_QUICK, slow), zip = pick_zip(random, FUSED_QUICK, slow);
    args->step[s] = pick_step(random, map, zip, args->inputs);
    if (!few && args->step[s] & FUSED_IS_ZIP && rdna__random_below(random, 2)) args->step[s] |= FUSED_INPUT_FIRST;
    args->p[s] = (float)(2 * rdna__random_normal(random));
    args->q[s] = (float)(rdna__random_normal(random) + 3);
  }
  if (args->inputs < (uint32_t)inputs && args->steps > 2 && rdna__random_below(random, 2)) pick_fork(random, args);
}
/* Makes one step a FAST operation, whose result is only near the twin's, and the steps after it such that this
 * error does not grow. Returns the operation. */
static uint32_t pick_near(rdna__random *random, struct fused_args *args) {
  uint32_t s = (uint32_t)rdna__random_below(random, args->steps), op = pick_map(random, FUSED_FAST, FUSED_FAST);
  args->step[s] = op;
  while (++s < args->steps) {
    args->step[s] = pick_step(random, PICK(random, calm), PICK(random, calm_zips), args->inputs);
  }
  return op;
}

/* As in contiguous_cases.c: results of 16 bits may round to a neighbour, and the twins' 1 + tanh and 1 + erf cancel. */
static void tolerate(rdna__kernel_case *c, rdna_dtype dtype, uint32_t op) {
  double absolute = dtype == RDNA_F16 ? 0x1p-24 : 0x1p-126;
  if (op == RDNA_MAP_GELU_TANH || op == RDNA_MAP_GELU_ERF) absolute = 0x1p-20;
  rdna__case_tolerance(c, absolute, dtype == RDNA_F16 ? 0x1p-10 : dtype == RDNA_BF16 ? 0x1p-7 : 0x1p-20);
}

RDNA_CASE_MAKER(rdna__fused_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int values = dtype == RDNA_F32 ? 4 : 8;
  struct fused_args args = {0};
  int64_t stride[FUSED_OPERANDS][STRIDED_RANK] = {{0}}, span[FUSED_OPERANDS];
  bool few = !strstr(kernel->name, "_any_"), is_near = rdna__random_below(random, 2);
  pick_steps(random, n, few, &args);
  uint32_t op = is_near ? pick_near(random, &args) : 0;
  struct strided_shape shape;
  fused_extent extent;
  do { /* until it is for this kernel */
    case_pick_shape(random, n, values, &shape);
    extent = (fused_extent){.rank = shape.rank, .aligned = ~0u, .size = {1, 1, 1, 1}};
    for (uint32_t d = 0; d < shape.rank && d < FUSED_RANK; d++) extent.size[d] = shape.size[d];
    for (uint32_t k = 0; k <= args.inputs; k++) {
      span[k] = case_pick_strides(random, &shape, k == 0, values, stride[k]);
      memcpy(extent.stride[k], stride[k], sizeof extent.stride[k]);
    }
  } while (shape.rank > FUSED_RANK || fused_lay_out(&args, &extent, values) != few);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(args.shape.count + RDNA__FUSED_THREADS - 1) / RDNA__FUSED_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "steps %u inputs %u rank %u count %u %s, first step %x", args.steps,
           args.inputs, shape.rank, shape.count, args.wide ? "wide" : "values", args.step[0]);
  for (uint32_t k = 0; k <= args.inputs; k++) {
    uint32_t offset = (uint32_t)(offsetof(struct fused_args, operand) + (size_t)k * sizeof args.operand[0]);
    void *data = rdna__case_add(out_case, k == 0 ? RDNA__OUT : RDNA__IN, dtype, span[k], offset);
    if (!data) return rdna__case_no_memory(out_case);
    if (k > 0) {
      case_fill_hard(random, dtype, data, span[k]);
      continue;
    }
    struct strided_operand out = {0};
    memcpy(out.stride, stride[0], sizeof out.stride);
    RDNA_TRY(case_mark_gaps(out_case, &shape, &out, span[0]));
    if (is_near) tolerate(out_case, dtype, op);
  }
  return RDNA_OK;
}
