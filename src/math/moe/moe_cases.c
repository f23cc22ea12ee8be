#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/moe/moe_kernels.h"
#include "rdna/op/moe.h"

/* Logits of which some are equal, so that numbers decide; now and then a NaN or an infinity. */
static void fill_logits(rdna__random *random, float *x, int64_t count, bool special) {
  bool coarse = rdna__random_below(random, 2);
  for (int64_t i = 0; i < count; i++) {
    double v = 3 * rdna__random_normal(random);
    x[i] = (float)(coarse ? rint(v) : v);
  }
  static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-42f};
  for (int64_t i = 0; special && i < count; i += rdna__random_range(random, 1, 300))
    x[i] = odd[rdna__random_below(random, 5)];
}

/* Kernel and twin compute the same bits. */
RDNA_CASE_MAKER(rdna__moe_route_case) {
  static const struct {
    int32_t tokens, experts, chosen, groups, kept;
  } edges[] = {{3, 8, 2, 0, 0},     {0, 8, 2, 0, 0},     {1, 1, 1, 1, 1},   {5, 256, 8, 8, 4},
               {2, 1024, 32, 0, 0}, {9, 33, 32, 0, 0},   {4, 160, 6, 8, 3}, {1, 128, 4, 0, 0},
               {7, 64, 8, 32, 4},   {2, 1024, 8, 32, 8}, {6, 32, 32, 2, 2}};
  struct moe_route_args args = {.scale = n % 3 == 2 ? 2.5f : 1, .score = (uint32_t)n % RDNA_MOE_SCORE_COUNT};
  if (n < (int)(sizeof edges / sizeof *edges)) {
    args.tokens = edges[n].tokens, args.experts = edges[n].experts, args.chosen = edges[n].chosen;
    args.groups = edges[n].groups, args.groups_kept = edges[n].kept;
  } else {
    args.groups = (int32_t)rdna__random_range(random, 1, MOE_GROUPS);
    args.groups_kept = (int32_t)rdna__random_range(random, 1, args.groups);
    int32_t size = (int32_t)rdna__random_range(random, 1, MOE_EXPERTS / args.groups);
    args.experts = args.groups * size, size *= args.groups_kept;
    args.chosen = (int32_t)rdna__random_range(random, 1, size < MOE_CHOSEN ? size : MOE_CHOSEN);
    args.tokens = (int32_t)rdna__random_range(random, 1, 20);
  }
  args.group_best = 1 + (int32_t)rdna__random_below(random, 2);
  args.normalised = (uint32_t)rdna__random_below(random, 2);
  args.stride = args.experts + (n % 4 == 3 ? 5 : 0);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)(args.tokens + MOE_ROUTE_TOKENS - 1) / MOE_ROUTE_TOKENS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "tokens %d experts %d chosen %d of %d/%d groups by %d, score %u",
           args.tokens, args.experts, args.chosen, args.groups_kept, args.groups, args.group_best, args.score);
  int64_t logits = args.tokens * args.stride, slots = (int64_t)args.tokens * args.chosen;
  float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, logits, offsetof(struct moe_route_args, logits));
  if (!x) return rdna__case_no_memory(out_case);
  fill_logits(random, x, logits, n % 5 == 4);
  if (rdna__random_below(random, 2)) {
    float *bias = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.experts, offsetof(struct moe_route_args, bias));
    if (!bias) return rdna__case_no_memory(out_case);
    fill_logits(random, bias, args.experts, false);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_I32, slots, offsetof(struct moe_route_args, indices)) ||
      !rdna__case_add(out_case, RDNA__OUT, RDNA_F32, slots, offsetof(struct moe_route_args, weights)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
