#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/index/compact_kernels.h"

RDNA_CASE_MAKER(rdna__compact_case) {
  bool scan = !strcmp(kernel->name, "compact_scan"), count = strstr(kernel->name, "compact_count");
  bool nonzero = strstr(kernel->name, "nonzero"), scatter = strstr(kernel->name, "scatter");
  int bits = scan ? 8 : atoi(strrchr(kernel->name, '_') + 1), flag_bits = count || nonzero ? bits : 8;
  static const rdna_dtype types[] = {RDNA_U8, RDNA_I16, RDNA_I32, RDNA_I64};
  rdna_dtype dtype = types[__builtin_ctz((unsigned)bits / 8)], flag = types[__builtin_ctz((unsigned)flag_bits / 8)];
  struct compact_args a = {.shape = {.rank = 1 + (uint32_t)rdna__random_below(random, 4), .count = 1}};
  for (uint32_t d = 0; d < a.shape.rank; d++) {
    uint32_t size = (uint32_t)rdna__random_range(random, 1, a.shape.rank == 1 ? 20000 : 12);
    if (n == 0) size = 2;
    if (n == 1) size = d == 0 ? COMPACT_TILE : 1;
    strided_set_size(&a.shape, d, size);
    a.shape.count *= size;
  }
  a.n = a.shape.count, a.tiles = (uint32_t)((a.n - 1) / COMPACT_TILE + 1);
  if (scan) a.tiles = (uint32_t)rdna__random_range(random, 1, 6000);
  a.ignored = n % 2 ? UINT64_C(1) << (flag_bits - 1) : 0;
  int64_t kept = 0;
  uint8_t *flags = calloc((size_t)a.n, 1);
  for (int64_t i = 0; flags && i < a.n; i++) kept += flags[i] = rdna__random_below(random, n % 3 == 2 ? 30 : 2) == 0;
  a.limit = n % 4 == 3 ? kept / 2 : kept;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 5), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %lld, limit %lld, rank %u", (long long)kept,
           (long long)a.n, (long long)a.limit, a.shape.rank);
  int64_t *offsets = rdna__case_add(out_case,
                                    scan    ? RDNA__INOUT
                                    : count ? RDNA__OUT
                                            : RDNA__IN,
                                    RDNA_I64, count ? a.tiles : a.tiles + 1, offsetof(struct compact_args, offsets));
  char *x = (char *)offsets, *values = x, *out = x;
  if (!scan && x) x = rdna__case_add(out_case, RDNA__IN, flag, a.n, offsetof(struct compact_args, x));
  if (!scan && !count && !nonzero)
    values = rdna__case_add(out_case, RDNA__IN, dtype, scatter ? a.limit : a.n, offsetof(struct compact_args, values));
  if (!scan && !count) {
    out = rdna__case_add(out_case, scatter ? RDNA__INOUT : RDNA__OUT, nonzero ? RDNA_I64 : dtype,
                         nonzero   ? a.limit * a.shape.rank
                         : scatter ? a.n
                                   : a.limit,
                         offsetof(struct compact_args, out));
  }
  if (!flags || !offsets || !x || !values || !out) {
    free(flags);
    return rdna__case_no_memory(out_case);
  }
  for (uint32_t tile = 0; scan && tile < a.tiles; tile++) offsets[tile] = rdna__random_range(random, 0, COMPACT_TILE);
  size_t flag_bytes = (size_t)flag_bits / 8, bytes = (size_t)bits / 8;
  for (int64_t i = 0; !scan && i < a.n; i++) {
    uint64_t v = flags[i] ? 1 + rdna__random_below(random, 100) : rdna__random_below(random, 2) ? a.ignored : 0;
    memcpy(x + (size_t)i * flag_bytes, &v, flag_bytes);
    if (!count) offsets[i / COMPACT_TILE + 1] += flags[i];
  }
  for (uint32_t tile = 0; !scan && !count && tile < a.tiles; tile++) offsets[tile + 1] += offsets[tile];
  int64_t value_count = scatter ? a.limit : a.n;
  for (size_t i = 0; values != (char *)offsets && i < (size_t)value_count * bytes; i++)
    values[i] = (char)rdna__random_below(random, 100);
  free(flags);
  return RDNA_OK;
}
