#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "kernel/manifest.h"
#include "math/movement/cat_kernels.h"

/* The bits are moved, so there is no tolerance. 128 bits are two values of 64. */
RDNA_CASE_MAKER(rdna__cat_case) {
  enum { MOST = RDNA__CASE_MAX_BUFFERS - 1 };
  const char *size = strrchr(kernel->name, '_') + 1;
  rdna_dtype dtype = !strcmp(size, "8")    ? RDNA_U8
                     : !strcmp(size, "16") ? RDNA_I16
                     : !strcmp(size, "32") ? RDNA_I32
                                           : RDNA_I64;
  int64_t values = strcmp(size, "128") ? 1 : 2, gap = n % 3 ? 0 : rdna__random_range(random, 1, 5);
  uint32_t rows = (uint32_t)rdna__random_range(random, 1, n % 2 ? 3 : 40), total = 0;
  struct cat_args args = {.parts = (uint32_t)rdna__random_range(random, 1, MOST)};
  if (n < 2) args.parts = n ? MOST : 1;
  for (uint32_t p = 0; p < args.parts; p++) {
    uint32_t width = (uint32_t)rdna__random_range(random, 1, rdna__random_below(random, 3) ? 30 : n % 2 ? 1500 : 200);
    args.part[p] = (struct cat_part){.count = rows * width, .width = width, .column = total, .group = args.groups};
    args.groups += (rows * width + CAT_TILE - 1) / CAT_TILE;
    total += width;
  }
  args.stride = total + gap;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){args.groups, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u parts, %u rows of %u", args.parts, rows, total);
  for (uint32_t p = 0; p < args.parts; p++) {
    size_t bytes = args.part[p].count * (size_t)values * rdna_dtype_block_bytes(dtype);
    uint8_t *data = rdna__case_add(out_case, RDNA__IN, dtype, args.part[p].count * values,
                                   (uint32_t)(offsetof(struct cat_args, part) + p * sizeof(struct cat_part)));
    if (!data) return rdna__case_no_memory(out_case);
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)rdna__random_bits(random);
  }
  int64_t span = ((rows - 1) * args.stride + total) * values;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, span, offsetof(struct cat_args, out)))
    return rdna__case_no_memory(out_case);
  return rdna__case_guard_rows(out_case, rows, total * values, args.stride * values);
}
