#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/index/segment_kernels.h"

static void fill(rdna__random *random, rdna_dtype dtype, void *data, int64_t count) {
  size_t bytes = rdna_dtype_block_bytes(dtype);
  for (int64_t i = 0; i < count; i++) {
    double v = rdna__random_below(random, 300) == 0 ? (double)NAN : 3 * rdna__random_normal(random);
    int64_t whole = rdna__random_range(random, -40, 40);
    if (dtype_is_float(dtype)) case_set(dtype, data, i, (float)v);
    if (dtype == RDNA_F64) ((double *)data)[i] = v;
    if (!dtype_is_real(dtype)) memcpy((char *)data + (size_t)i * bytes, &whole, bytes);
  }
}

RDNA_CASE_MAKER(rdna__segment_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  rdna_dtype kept = dtype == RDNA_F64 ? RDNA_F64 : dtype_is_float(dtype) ? RDNA_F32 : RDNA_I64;
  bool parts = n % 3 == 2;
  struct segment_args a = {.op = (uint32_t)n % 6, .include_self = n / 2 % 2};
  a.n = (uint32_t)rdna__random_range(random, 1, 300), a.rows = (uint32_t)rdna__random_range(random, 1, 60);
  a.outer = rdna__random_range(random, 1, 3), a.inner = rdna__random_range(random, 1, 9);
  if (n == 0) a.n = 5;
  if (n == 1) a.n = SEGMENT_CHUNK, a.outer = 1, a.inner = 130;
  if (n == 2) a.rows = 1;
  a.chunks = (a.n - 1) / SEGMENT_CHUNK + 1, a.src_rows = a.n + (int64_t)rdna__random_below(random, 5);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 5), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u to %u, %lld x %lld, op %u%s%s", a.n, a.rows, (long long)a.outer,
           (long long)a.inner, a.op, a.include_self ? ", self" : "", parts ? ", parts" : "");
  int64_t columns = a.outer * a.inner, chunks = a.chunks;
  uint32_t *list = NULL;
  uint32_t *keys = rdna__case_add(out_case, RDNA__IN, RDNA_I32, a.n, offsetof(struct segment_args, keys));
  void *src = rdna__case_add(out_case, RDNA__IN, parts ? kept : dtype,
                             (parts ? a.n : a.outer * a.src_rows) * (parts ? columns : a.inner),
                             offsetof(struct segment_args, src));
  void *dst = rdna__case_add(out_case, RDNA__INOUT, dtype, a.rows * columns, offsetof(struct segment_args, dst));
  if (keys && src && dst) {
    list = rdna__case_add(out_case, RDNA__IN, RDNA_I32, a.n,
                          parts ? offsetof(struct segment_args, counts) : offsetof(struct segment_args, places));
  }
  if (!list ||
      (chunks > 1 &&
       (!rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 2 * chunks, offsetof(struct segment_args, part_keys)) ||
        !rdna__case_add(out_case, RDNA__INOUT, kept, 2 * chunks * columns,
                        offsetof(struct segment_args, part_values)) ||
        !rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 2 * chunks, offsetof(struct segment_args, part_counts)))))
    return rdna__case_no_memory(out_case);
  int64_t at = 0;
  for (int64_t i = 0; i < a.n; i++) { /* ascending; |rows|, none, occurs between parts, and at the end of rows */
    if (rdna__random_below(random, n % 4 == 1 ? 90 : 6) == 0) at += rdna__random_range(random, 1, 3);
    int64_t v = at < a.rows && !(parts && rdna__random_below(random, 5) == 0) ? at : a.rows;
    if (parts && v == a.rows) at++;
    keys[i] = (uint32_t)v;
    list[i] = (uint32_t)rdna__random_below(random, parts ? 4 : (uint64_t)a.src_rows);
  }
  fill(random, parts ? kept : dtype, src, parts ? a.n * columns : a.outer * a.src_rows * a.inner);
  fill(random, dtype, dst, a.rows * columns);
  return RDNA_OK;
}
