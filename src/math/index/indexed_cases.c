#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/index/indexed_kernels.h"

/* Picks a random shape of up to 3 dimensions; the last is the indexed one in some cases. */
static void random_shape(rdna__random *random, int n, struct strided_shape *shape) {
  *shape = (struct strided_shape){.rank = 1 + (uint32_t)rdna__random_below(random, 3), .count = 1};
  for (uint32_t d = 0; d < shape->rank; d++) {
    uint32_t size = (uint32_t)rdna__random_range(random, 1, shape->rank == 1 ? 3000 : 20);
    if (n == 0) size = 1;
    strided_set_size(shape, d, size);
    shape->count *= size;
  }
}

/* Fills indices of i32 or i64, from one outside either end. |distinct|: none twice, and one of them outside. */
static void fill_indices(rdna__random *random, bool wide, void *data, int64_t count, int64_t size, bool distinct) {
  for (int64_t i = 0; i < count; i++) {
    int64_t v = distinct ? i : rdna__random_range(random, -size - 1, size);
    if (!distinct && rdna__random_below(random, 40) == 0) v = wide ? INT64_MIN : INT32_MAX;
    if (wide) {
      ((int64_t *)data)[i] = v;
    } else {
      ((int32_t *)data)[i] = (int32_t)v;
    }
  }
  for (int64_t i = count - 1; distinct && i > 0; i--) { /* shuffled */
    int64_t j = (int64_t)rdna__random_below(random, (uint64_t)i + 1);
    char held[8], *p = data;
    size_t bytes = wide ? 8 : 4;
    memcpy(held, p + (size_t)i * bytes, bytes);
    memcpy(p + (size_t)i * bytes, p + (size_t)j * bytes, bytes);
    memcpy(p + (size_t)j * bytes, held, bytes);
  }
  if (distinct && count > 1 && wide) ((int64_t *)data)[0] = size;
  if (distinct && count > 1 && !wide) ((int32_t *)data)[0] = (int32_t)size;
}

static void fill_bytes(rdna__random *random, void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) ((uint8_t *)data)[i] = (uint8_t)(rdna__random_bits(random) & 0x3f);
}

static bool add_outside(rdna__kernel_case *out_case, int n, size_t offset) {
  return n % 3 == 0 || rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 1, (uint32_t)offset);
}

/* Indices along the slowest dimension: one for each value or one for each coordinate of that dimension. Cases of put
 * have the latter, without repetition, as two writes to one place would race. */
RDNA_CASE_MAKER(rdna__indexed_case) {
  struct indexed_args a = {.rule = {.stride = 1}};
  bool put = strstr(kernel->name, "put");
  int bits = atoi(strrchr(kernel->name, '_') + 1), wider = bits == 128 ? 2 : 1;
  rdna_dtype dtype = bits == 8 ? RDNA_U8 : bits == 16 ? RDNA_I16 : bits == 32 ? RDNA_I32 : RDNA_I64;
  random_shape(random, n, &a.shape);
  uint32_t last = a.shape.rank - 1;
  bool per_value = !put && n % 2;
  int64_t rows = a.shape.size[last], inner = a.shape.count / rows, step = 1;
  a.rule.size = put ? rows + (int64_t)rdna__random_below(random, 9) : rdna__random_range(random, 1, 30);
  a.rule.wide = n / 2 % 2, a.rule.wrap = n / 3 % 2, a.rule.stride = inner;
  a.fill = put && n % 4 == 3;
  for (uint32_t d = 0; d <= last; d++) {
    a.operand[0].stride[d] = step;
    a.operand[1].stride[d] = per_value ? step : d == last;
    a.operand[2].stride[d] = d == last ? 0 : step;
    step *= a.shape.size[d];
  }
  for (int i = 0; i < 2; i++) a.value[i] = UINT64_C(0x0123456789abcdef);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.shape.count + INDEXED_TILE - 1) / INDEXED_TILE, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld of %lld%s", (long long)rows, (long long)inner,
           (long long)a.rule.size, a.fill ? ", filled" : "");
  int64_t count = a.shape.count, indices = per_value ? count : rows, indexed = a.rule.size * inner;
  size_t bytes = (size_t)bits / 8;
  void *values = out_case, *at = rdna__case_add(out_case, RDNA__IN, a.rule.wide ? RDNA_I64 : RDNA_I32, indices,
                                                offsetof(struct indexed_args, operand[1].data));
  if (!a.fill)
    values = rdna__case_add(out_case, put ? RDNA__IN : RDNA__OUT, dtype, count * wider,
                            offsetof(struct indexed_args, operand[0].data));
  void *x = rdna__case_add(out_case, put ? RDNA__INOUT : RDNA__IN, dtype, indexed * wider,
                           offsetof(struct indexed_args, operand[2].data));
  if (!values || !at || !x || !add_outside(out_case, n, offsetof(struct indexed_args, rule.outside)))
    return rdna__case_no_memory(out_case);
  fill_indices(random, a.rule.wide, at, indices, a.rule.size, put);
  if (put && !a.fill) fill_bytes(random, values, (size_t)count * bytes);
  fill_bytes(random, x, (size_t)indexed * bytes);
  return RDNA_OK;
}

/* Rows of a table; in some cases there are gaps between them. */
RDNA_CASE_MAKER(rdna__index_rows_case) {
  struct indexed_args a = {.shape.rank = 2};
  int bits = atoi(strrchr(kernel->name, '_') + 1), wider = bits == 128 ? 2 : 1;
  rdna_dtype dtype = bits == 16 ? RDNA_I16 : bits == 32 ? RDNA_I32 : RDNA_I64;
  uint32_t least = 128 / (uint32_t)bits;
  uint32_t size = (uint32_t)rdna__random_range(random, least, n % 2 ? 3 * least : 700);
  uint32_t rows = (uint32_t)rdna__random_range(random, 1, n % 2 ? 200 : 20);
  if (n == 0) size = least, rows = 1;
  strided_set_size(&a.shape, 0, size), strided_set_size(&a.shape, 1, rows);
  a.shape.count = size * rows;
  a.rule.size = rdna__random_range(random, 1, 30);
  a.rule.stride = size + (int64_t)rdna__random_below(random, 3);
  a.rule.wide = n / 2 % 2, a.rule.wrap = n / 3 % 2;
  a.operand[0].stride[0] = 1, a.operand[0].stride[1] = size;
  a.operand[1].stride[1] = a.operand[2].stride[0] = 1;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)index_rows_groups(&a, bits / 8), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u x %u of %lld", rows, size, (long long)a.rule.size);
  int64_t count = a.shape.count, indexed = (a.rule.size - 1) * a.rule.stride + size;
  void *at = rdna__case_add(out_case, RDNA__IN, a.rule.wide ? RDNA_I64 : RDNA_I32, rows,
                            offsetof(struct indexed_args, operand[1].data));
  void *values =
      rdna__case_add(out_case, RDNA__OUT, dtype, count * wider, offsetof(struct indexed_args, operand[0].data));
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, indexed * wider, offsetof(struct indexed_args, operand[2].data));
  if (!values || !at || !x || !add_outside(out_case, n, offsetof(struct indexed_args, rule.outside)))
    return rdna__case_no_memory(out_case);
  fill_indices(random, a.rule.wide, at, rows, a.rule.size, false);
  fill_bytes(random, x, (size_t)(indexed * bits / 8));
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__index_offset_case) {
  struct index_offset_args a = {.absent = -1, .skipped = n % 5 == 4 ? 1 : -1};
  random_shape(random, n, &a.shape);
  int64_t step = 1;
  a.rule.size = rdna__random_range(random, 1, 30), a.rule.stride = rdna__random_range(random, -5, 40);
  a.rule.wide = n % 2, a.rule.wrap = n / 3 % 2;
  a.add = n % 3 == 1, a.narrow = n % 4 == 2;
  a.bias = rdna__random_range(random, 0, 100);
  if (a.narrow) a.absent = UINT32_MAX, a.bias += 5 * 30;
  for (uint32_t d = 0; d < a.shape.rank; d++) {
    a.operand[0].stride[d] = a.operand[1].stride[d] = step;
    a.operand[2].stride[d] = rdna__random_range(random, 0, 50);
    step *= a.shape.size[d];
  }
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.shape.count + INDEXED_TILE - 1) / INDEXED_TILE, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %lld%s", a.shape.count, (long long)a.rule.size,
           a.add ? ", added" : "");
  void *offsets = rdna__case_add(out_case, a.add ? RDNA__INOUT : RDNA__OUT, a.narrow ? RDNA_I32 : RDNA_I64,
                                 a.shape.count, offsetof(struct index_offset_args, operand[0].data));
  void *at = rdna__case_add(out_case, RDNA__IN, a.rule.wide ? RDNA_I64 : RDNA_I32, a.shape.count,
                            offsetof(struct index_offset_args, operand[1].data));
  if (!offsets || !at || !add_outside(out_case, n, offsetof(struct index_offset_args, rule.outside)))
    return rdna__case_no_memory(out_case);
  fill_indices(random, a.rule.wide, at, a.shape.count, a.rule.size, false);
  for (uint32_t i = 0; a.add && i < a.shape.count; i++) {
    int64_t before = rdna__random_range(random, -1, 200);
    if (a.narrow) ((uint32_t *)offsets)[i] = (uint32_t)before;
    if (!a.narrow) ((int64_t *)offsets)[i] = before;
  }
  return RDNA_OK;
}
