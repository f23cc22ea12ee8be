#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/random/random_kernels.h"

static int64_t pick_count(rdna__random *random, int n) {
  static const int64_t edges[] = {5, 0, 1, 4, 1023, 4096};
  return n < 6 ? edges[n] : rdna__random_range(random, 1, 9000);
}

static rdna_status finish(rdna__kernel_case *c, rdna__random *random, int64_t count, const void *args, size_t size) {
  memcpy(c->args, args, size);
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(c->label, sizeof c->label, "%lld values, grid %u", (long long)count, c->grid.x);
  return RDNA_OK;
}

/* No tolerances: kernels and twins compute the same operations in the same order, so the same bits. */

RDNA_CASE_MAKER(rdna__random_fill_case) {
  struct random_fill_args args = {.count = pick_count(random, n),
                                  .seed = rdna__random_bits(random),
                                  .offset = n % 3 ? rdna__random_bits(random) : 0xfffffffeu,
                                  .kind = (uint32_t)(n % 4),
                                  .dtype = (uint32_t)(n / 4 % 3),
                                  .a = 0.25f,
                                  .b = 2.5f,
                                  .bound = n % 4 == RANDOM_UNIFORM ? 2.5f : 0.0625f};
  RDNA_TRY(finish(out_case, random, args.count, &args, sizeof args));
  rdna_dtype dtype = (rdna_dtype)args.dtype;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct random_fill_args, out)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__random_integers_case) {
  struct random_integers_args args = {.count = pick_count(random, n),
                                      .seed = rdna__random_bits(random),
                                      .offset = rdna__random_bits(random),
                                      .low = -7,
                                      .range = n % 4 == 3 ? 0 : rdna__random_bits(random) >> n % 64,
                                      .is_i64 = n % 2};
  RDNA_TRY(finish(out_case, random, args.count, &args, sizeof args));
  rdna_dtype dtype = args.is_i64 ? RDNA_I64 : RDNA_I32;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct random_integers_args, out)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__dropout_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct dropout_args args = {.count = pick_count(random, n),
                              .seed = rdna__random_bits(random),
                              .offset = rdna__random_bits(random),
                              .probability = 0.3f,
                              .scale = 1 / 0.7f};
  RDNA_TRY(finish(out_case, random, args.count, &args, sizeof args));
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct dropout_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  case_fill_hard(random, dtype, x, args.count);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct dropout_args, out)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, case_smallest(dtype), 0);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_U8, args.count, offsetof(struct dropout_args, mask)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__dropout_backward_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct dropout_backward_args args = {.count = pick_count(random, n), .scale = 1.25f};
  RDNA_TRY(finish(out_case, random, args.count, &args, sizeof args));
  void *dout = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct dropout_backward_args, dout));
  uint8_t *mask = rdna__case_add(out_case, RDNA__IN, RDNA_U8, args.count, offsetof(struct dropout_backward_args, mask));
  if (!dout || !mask) return rdna__case_no_memory(out_case);
  case_fill_hard(random, dtype, dout, args.count);
  for (int64_t i = 0; i < args.count; i++) mask[i] = (uint8_t)rdna__random_below(random, 2);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct dropout_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, case_smallest(dtype), 0);
  return RDNA_OK;
}
