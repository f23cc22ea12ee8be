#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/index/index_kernels.h"
#include "math/quant/quant_case.h"

RDNA_CASE_MAKER(rdna__gather_case) {
  static const int64_t edges[][3] = {{3, 8, 2}, {5, 1, 4}, {1, 7, 0}, {0, 16, 3}, {4, 2048, 3}, {3, 2056, 2}};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t block = rdna_dtype_block_values(dtype), pad = 0;
  struct gather_args args = {0};
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.rows = edges[n][0], args.cols = edges[n][1], args.tokens = edges[n][2];
  } else {
    args.rows = rdna__random_range(random, 1, 50);
    args.cols = rdna__random_range(random, 1, 5000);
    args.tokens = rdna__random_range(random, 1, 20);
    pad = rdna__random_range(random, 0, 2);
    if (rdna__random_below(random, 2)) args.cols = (args.cols + 7) / 8 * 8, pad *= 8;
  }
  args.cols = (args.cols + block - 1) / block * block;
  args.table_stride = args.cols + pad * block;
  args.out_stride = args.cols + pad;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld pad %lld tokens %lld grid %u", (long long)args.rows,
           (long long)args.cols, (long long)pad, (long long)args.tokens, out_case->grid.x);

  int64_t count = args.rows * args.table_stride, out_count = args.tokens * args.out_stride;
  void *table = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct gather_args, table));
  int32_t *ids = rdna__case_add(out_case, RDNA__IN, RDNA_I32, args.tokens, offsetof(struct gather_args, ids));
  if (!table || !ids || !rdna__case_add(out_case, RDNA__OUT, RDNA_F32, out_count, offsetof(struct gather_args, out)))
    return rdna__case_no_memory(out_case);
  if (block == 1) {
    case_fill(random, dtype, table, count, 1);
  } else {
    rdna__fill_blocks(random, dtype, table, count);
  }
  /* includes -1 and |rows|, which are outside */
  for (int64_t t = 0; t < args.tokens; t++) ids[t] = (int32_t)rdna__random_range(random, -1, args.rows);
  if (args.tokens > 1) ids[0] = INT32_MIN, ids[1] = INT32_MAX;
  return pad == 0 ? RDNA_OK : rdna__case_guard_rows(out_case, args.tokens, args.cols, args.out_stride);
}
