#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/fill/fill_kernels.h"

RDNA_CASE_MAKER(rdna__fill_u32_case) {
  static const int64_t edges[] = {1, 0, 255, 256, 257};
  int64_t count = n < 5 ? edges[n] : rdna__random_range(random, 1, 20000);
  struct fill_args args = {.count = (uint64_t)count, .value = (uint32_t)rdna__random_bits(random)};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 1 + count / 256), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "count %lld grid %u", (long long)count, out_case->grid.x);
  rdna__case_add(out_case, RDNA__OUT, RDNA_I32, count, offsetof(struct fill_args, out));
  return RDNA_OK;
}
