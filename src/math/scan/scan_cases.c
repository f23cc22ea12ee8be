#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/scan/scan_kernels.h"

/* Small whole numbers, whose sums are exact in any order; signs alone for products; NaN among extremes and logarithms.
 */
static void fill(rdna__random *random, const char *name, rdna_dtype dtype, int n, void *data, int64_t count) {
  bool products = strstr(name, "prod") != NULL, sums = strstr(name, "_sum_") != NULL;
  for (int64_t i = 0; i < count; i++) {
    int64_t whole = rdna__random_range(random, -3, 3);
    if (products) whole = whole < 0 ? -1 : 1;
    double v = (double)whole;
    if (!products && !sums) v = n % 3 == 2 && rdna__random_below(random, 3000) == 0 ? NAN : rdna__random_normal(random);
    if (dtype == RDNA_F64) {
      ((double *)data)[i] = v;
    } else if (dtype == RDNA_I32) {
      ((int32_t *)data)[i] = (int32_t)whole;
    } else if (dtype == RDNA_I64) {
      ((int64_t *)data)[i] = whole;
    } else {
      case_set(dtype, data, i, (float)v);
    }
  }
}

RDNA_CASE_MAKER(rdna__scan_case) {
  static const int64_t edges[][3] = {{2, 5, 1},    {0, 3, 1},    {3, 1, 1},   {2, 0, 1},  {2, 1024, 1},
                                     {1, 2048, 1}, {1, 4097, 1}, {2, 7, 300}, {1, 9, 33}, {5, 2049, 1},
                                     {40, 1, 1},   {50, 3, 1},   {33, 37, 1}};
  enum { EDGES = sizeof edges / sizeof *edges };
  rdna_dtype dtype = case_name_dtype(kernel->name);
  rdna_dtype kept = dtype == RDNA_F64 ? RDNA_F64 : dtype == RDNA_I32 || dtype == RDNA_I64 ? RDNA_I64 : RDNA_F32;
  struct scan_args a = {
      .outer = rdna__random_range(random, 1, 5), .n = rdna__random_range(random, 1, 9000), .inner = 1};
  if (n < EDGES) a.outer = edges[n][0], a.n = edges[n][1], a.inner = edges[n][2];
  if (n >= EDGES && n % 4 == 0) a.n = a.n / 50 + 1, a.inner = rdna__random_range(random, 2, 70);
  if (n >= EDGES && n % 4 == 1) a.n = a.n / 60 + 1, a.outer = rdna__random_range(random, 1, 90);
  int mode = a.inner > 1 || a.n < 100 ? 0 : n % 3; /* whole rows, totals of segments, from carries on */
  a.segment = mode ? (a.n / 3 + 7) / 8 * 8 : a.n;
  a.segments = mode ? (uint32_t)((a.n + a.segment - 1) / a.segment) : 1;
  a.rows = mode == 0 && n % 2 ? (uint32_t)rdna__random_range(random, 1, 9) : 1;
  a.groups = mode == 0 && a.rows == 1 && a.inner == 1 && n % 4 > 1;
  a.units = a.n > 0 ? (uint32_t)((a.outer + a.rows - 1) / a.rows) * a.segments : 0;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 5), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld x %lld mode %d rows %u groups %u grid %u",
           (long long)a.outer, (long long)a.n, (long long)a.inner, mode, a.rows, a.groups, out_case->grid.x);
  int64_t count = a.outer * a.n * a.inner, parts = a.outer * a.segments;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct scan_args, x)), *carry = x;
  bool there = x && (mode == 1 || rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct scan_args, out)));
  /* a few roundings of a logarithm below 16 in each of a few dozen joins, and the result's */
  bool logs = strstr(kernel->name, "logsumexp") != NULL;
  if (there && mode != 1 && logs) rdna__case_tolerance(out_case, 0x1p-15, case_spacing(dtype));
  if (there && mode == 1) {
    there = rdna__case_add(out_case, RDNA__OUT, kept, parts, offsetof(struct scan_args, totals)) != NULL;
    if (there && logs) rdna__case_tolerance(out_case, 0x1p-15, 0);
  }
  if (there && mode == 2) carry = rdna__case_add(out_case, RDNA__IN, kept, parts, offsetof(struct scan_args, carry));
  if (!there || !carry) return rdna__case_no_memory(out_case);
  fill(random, kernel->name, dtype, n, x, count);
  if (mode == 2) fill(random, kernel->name, kept, n, carry, parts);
  return RDNA_OK;
}
