#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/pointwise/each_kernels.h"

/* No tolerances here: the kernels and their twins compute the same bits. */

static rdna_status each_case(const rdna__kernel_info *kernel, rdna__random *random, int n, rdna__kernel_case *c,
                             uint32_t inputs, uint32_t op) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  uint32_t tile = EACH_THREADS * EACH_VECTORS * 16 / (uint32_t)rdna_dtype_block_bytes(dtype);
  const uint32_t most = RDNA__CASE_MAX_BUFFERS / (inputs + 1), edges[] = {1, tile, tile + 1, tile - 1, 7, 8};
  struct each_args args = {.op = op,
                           .tensors = n == 0 ? 1 : (uint32_t)rdna__random_range(random, 1, most),
                           .p = (float)(2 * rdna__random_normal(random)),
                           .q = (float)(rdna__random_normal(random) + 3),
                           .constant = (float)(3 * rdna__random_normal(random))};
  if (inputs == 2 && n % 4 == 2) args.constants = n % 8 == 2 ? 2 : 4;
  for (uint32_t t = 0; t < args.tensors; t++) {
    args.count[t] = rdna__random_below(random, 3) ? (uint32_t)rdna__random_range(random, 1, n % 2 ? 300 : 3 * tile)
                                                  : edges[rdna__random_below(random, 6)];
    args.group[t] = args.groups;
    args.groups += (args.count[t] + tile - 1) / tile;
    if (inputs == 2 && args.constants == 0 && rdna__random_below(random, 4) == 0) args.ones |= (uint64_t)1 << t;
  }
  memcpy(c->args, &args, sizeof args);
  c->grid = (rdna_grid){args.groups, 1, 1};
  snprintf(c->label, sizeof c->label, "op %u, %u tensors, the first of %u", op, args.tensors, args.count[0]);
  for (uint32_t t = 0; t < args.tensors; t++) {
    for (uint32_t k = 0; k <= inputs; k++) {
      size_t at = offsetof(struct each_args, pointer) + (t * (inputs + 1) + k) * sizeof(void *);
      int64_t count = k == 2 && (args.ones >> t & 1) ? 1 : args.count[t];
      if (k > 0 && (args.constants >> k & 1)) continue;
      void *data = rdna__case_add(c, k ? RDNA__IN : RDNA__OUT, dtype, count, (uint32_t)at);
      if (!data) return rdna__case_no_memory(c);
      if (k > 0) case_fill_hard(random, dtype, data, count);
    }
  }
  return RDNA_OK;
}

static uint32_t pick(rdna__random *random, const uint8_t *ops, size_t count) {
  return ops[rdna__random_below(random, count)];
}

#define OTHER(...)
#define MAP(NAME, ...) RDNA_MAP_##NAME,
#define ZIP(NAME, ...) RDNA_ZIP_##NAME,
static const uint8_t maps[] = {RDNA_POINTWISE_MAPS(MAP, OTHER, , )}, zips[] = {RDNA_POINTWISE_ZIPS(ZIP, OTHER, )};
RDNA_CASE_MAKER(rdna__map_each_case) {
  return each_case(kernel, random, n, out_case, 1, pick(random, maps, sizeof maps));
}
RDNA_CASE_MAKER(rdna__zip_each_case) {
  return each_case(kernel, random, n, out_case, 2, pick(random, zips, sizeof zips));
}
RDNA_CASE_MAKER(rdna__zip3_each_case) {
  return each_case(kernel, random, n, out_case, 3, (uint32_t)rdna__random_below(random, RDNA_ZIP3_COUNT));
}
