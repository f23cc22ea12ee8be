#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/index/bag_kernels.h"

static void set_index(bool i64, void *p, int64_t i, int64_t v) {
  if (i64) {
    ((int64_t *)p)[i] = v;
  } else {
    ((int32_t *)p)[i] = (int32_t)v;
  }
}

RDNA_CASE_MAKER(rdna__bag_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct bag_args a = {.rows = rdna__random_range(random, 1, 40),
                       .cols = rdna__random_range(random, n == 1 ? 0 : 1, n % 5 == 4 ? 300 : 40),
                       .count = rdna__random_range(random, n == 2 ? 0 : 1, 60),
                       .bags = n == 3 ? 0 : rdna__random_range(random, 1, 20),
                       .mode = (uint32_t)n % 3,
                       .has_end = n % 4 == 1,
                       .indices_i64 = n % 2};
  a.padding = n % 3 ? rdna__random_range(random, 0, a.rows - 1) : -1;
  a.table_stride = a.cols + n % 3;
  for (a.lanes = 1; a.lanes < a.cols && a.lanes < BAG_THREADS;) a.lanes *= 2;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "mode %u, %lld of %lld rows of %lld in %lld bags, grid %u", a.mode,
           (long long)a.count, (long long)a.rows, (long long)a.cols, (long long)a.bags, out_case->grid.x);
  rdna_dtype index = a.indices_i64 ? RDNA_I64 : RDNA_I32;
  void *table = rdna__case_add(out_case, RDNA__IN, dtype, a.rows * a.table_stride, offsetof(struct bag_args, table));
  void *indices = rdna__case_add(out_case, RDNA__IN, index, a.count, offsetof(struct bag_args, indices));
  void *begins = rdna__case_add(out_case, RDNA__IN, index, a.bags + a.has_end, offsetof(struct bag_args, begins));
  void *weights = table, *largest = table, *bag_of = table, *sizes = table;
  if (a.mode == BAG_SUM && n % 2)
    weights = rdna__case_add(out_case, RDNA__IN, dtype, a.count, offsetof(struct bag_args, weights));
  void *out = rdna__case_add(out_case, RDNA__OUT, dtype, a.bags * a.cols, offsetof(struct bag_args, out));
  if (a.mode == BAG_MAX)
    largest = rdna__case_add(out_case, RDNA__OUT, RDNA_I64, a.bags * a.cols, offsetof(struct bag_args, largest));
  if (n % 4) {
    bag_of = rdna__case_add(out_case, RDNA__INOUT, RDNA_I64, a.count, offsetof(struct bag_args, bag_of));
    sizes = rdna__case_add(out_case, RDNA__OUT, RDNA_I64, a.bags, offsetof(struct bag_args, sizes));
  }
  void *outside = rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 1, offsetof(struct bag_args, outside));
  if (!table || !indices || !begins || !weights || !out || !largest || !bag_of || !sizes || !outside)
    return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < a.rows * a.table_stride; i++) {
    store_double(dtype, table, i, n % 7 == 6 && i % 13 == 2 ? NAN : rdna__random_normal(random));
  }
  if (weights != table) case_fill_doubles(random, dtype, weights, a.count, 0);
  for (int64_t i = 0; i < a.count; i++) {
    bool wrong = n % 6 == 5 && i % 7 == 3;
    set_index(a.indices_i64, indices, i, wrong ? (i % 2 ? -1 : a.rows) : rdna__random_range(random, 0, a.rows - 1));
  }
  int64_t at = 0;
  for (int64_t i = 0; i < a.bags + a.has_end; i++) {
    set_index(a.indices_i64, begins, i, at);
    at += rdna__random_range(random, 0, n % 5 == 2 ? 0 : 2 * (a.count / (a.bags + 1)));
    at = at < a.count ? at : a.count;
  }
  return RDNA_OK; /* the same operations in the same order: the same bits */
}
