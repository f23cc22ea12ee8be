#include <stddef.h>
#include <stdio.h>

#include "kernel/dtype.h"
#include "kernel/manifest.h"
#include "math/common/case/strided.h"
#include "math/common/case/values.h"
#include "math/pointwise/pointwise_f64_kernels.h"

/* No tolerances here: the kernels and their twins compute the same bits. */

typedef struct kernel_traits {
  int operands, ops, values; /* |values| in a vector */
  rdna_dtype dtype;
  bool compare, where, elementary;
} kernel_traits;

static kernel_traits traits_of(const char *name, rdna__random *random) {
  static const rdna_dtype integers[] = {RDNA_I8,   RDNA_U8,  RDNA_I16, RDNA_I32, RDNA_I64,
                                        RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
  const char *type = strrchr(name, '_') + 1;
  kernel_traits t = {.operands = 2, .ops = RDNA_MAP_COUNT, .values = 4, .dtype = RDNA_F32};
  if (!strncmp(name, "zip_", 4)) t.operands = 3, t.ops = RDNA_ZIP_COUNT;
  if (!strncmp(name, "zip3_", 5)) t.operands = 4, t.ops = RDNA_ZIP3_COUNT;
  if (!strncmp(name, "compare_", 8)) t.operands = 3, t.ops = RDNA_COMPARE_COUNT, t.compare = true;
  if (!strncmp(name, "where_", 6)) t.operands = 4, t.ops = 1, t.where = true;
  if (!strcmp(type, "f16")) t.dtype = RDNA_F16, t.values = 8;
  if (!strcmp(type, "bf16")) t.dtype = RDNA_BF16, t.values = 8;
  if (!strcmp(type, "f64")) t.dtype = RDNA_F64;
  if (!strcmp(type, "int")) t.dtype = integers[rdna__random_below(random, sizeof integers / sizeof *integers)];
  if (!strcmp(type, "8")) t.dtype = RDNA_U8, t.values = 8;
  if (!strcmp(type, "16")) t.dtype = RDNA_I16, t.values = 8;
  if (!strcmp(type, "32")) t.dtype = RDNA_I32;
  if (!strcmp(type, "64")) t.dtype = RDNA_I64;
  t.elementary = strstr(name, "_elementary_") != NULL;
  return t;
}

static uint32_t pick_op(rdna__random *random, const kernel_traits *t) {
#define OTHER(...)
#define MAP(NAME, ...) RDNA_MAP_##NAME,
#define ZIP(NAME, ...) RDNA_ZIP_##NAME,
  static const uint8_t maps[] = {RDNA_POINTWISE_MAPS(OTHER, MAP, , )}, zips[] = {RDNA_POINTWISE_ZIPS(OTHER, ZIP, )};
  if (!t->elementary) return (uint32_t)rdna__random_below(random, (uint64_t)t->ops);
  return t->operands == 2 ? maps[rdna__random_below(random, sizeof maps)]
                          : zips[rdna__random_below(random, sizeof zips)];
}

static void fill(rdna__random *random, rdna_dtype dtype, void *data, int64_t count) {
  size_t bytes = rdna_dtype_block_bytes(dtype);
  if (dtype_is_float(dtype)) {
    case_fill_hard(random, dtype, data, count);
  } else if (dtype == RDNA_F64) {
    static const double special[] = {0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 0x1p-1074, 0x1p1023};
    double *values = data;
    for (int64_t i = 0; i < count; i++) {
      uint64_t kind = rdna__random_below(random, 16), bits = rdna__random_bits(random);
      values[i] = (kind == 2 ? 200 : 4) * rdna__random_normal(random);
      if (kind == 0) values[i] = special[rdna__random_below(random, 7)];
      if (kind == 1) memcpy(&values[i], &bits, sizeof bits);
    }
  } else {
    for (int64_t i = 0; i < count; i++) { /* small numbers and any bits */
      uint64_t v = rdna__random_bits(random);
      if (i % 3) v = (uint64_t)rdna__random_range(random, -5, 5);
      memcpy((uint8_t *)data + (size_t)i * bytes, &v, bytes);
    }
  }
}

RDNA_CASE_MAKER(rdna__pointwise_case) {
  kernel_traits t = traits_of(kernel->name, random);
  struct pointwise_args args = {.op = pick_op(random, &t), .dtype = (uint32_t)t.dtype};
  case_pick_shape(random, n, t.values, &args.shape);
  args.p = rdna_scalar_real(2 * rdna__random_normal(random));
  args.q = rdna_scalar_real(rdna__random_normal(random) + 3);
  args.constant = rdna_scalar_real(3 * rdna__random_normal(random));
  args.together = t.elementary ? args.shape.rank == 1 : args.shape.size[0] % (uint32_t)t.values == 0;
  if (!t.where && t.operands == 3 && n % 4 == 2) args.constants = n % 8 == 2 ? 2 : 4;
  int64_t span[4];
  for (int k = 0; k < t.operands; k++) {
    span[k] = case_pick_strides(random, &args.shape, k == 0, t.values, args.operand[k].stride);
    if (t.elementary && !(args.constants >> k & 1) && args.operand[k].stride[0] != 1) args.together = 0;
    if (!t.elementary && !(args.constants >> k & 1) &&
        case_may_be_vector(&args.shape, args.operand[k].stride, t.values)) {
      args.vectors |= 1u << k;
    }
  }
  memcpy(out_case->args, &args, sizeof args);
  uint32_t group = (uint32_t)t.values * RDNA__POINTWISE_THREADS;
  out_case->grid = (rdna_grid){(args.shape.count + group - 1) / group, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "op %u %s rank %u count %u", args.op, rdna_dtype_name(t.dtype),
           args.shape.rank, args.shape.count);
  for (int k = 0; k < t.operands; k++) {
    rdna_dtype dtype = (t.compare && k == 0) || (t.where && k == 1) ? RDNA_BOOL : t.dtype;
    if (args.constants >> k & 1) continue;
    uint32_t offset = (uint32_t)(offsetof(struct pointwise_args, operand) + (size_t)k * sizeof args.operand[0]);
    void *data = rdna__case_add(out_case, k == 0 ? RDNA__OUT : RDNA__IN, dtype, span[k], offset);
    if (!data) return rdna__case_no_memory(out_case);
    if (k > 0) fill(random, dtype, data, span[k]);
    if (k > 0 && dtype == RDNA_BOOL) {
      for (int64_t i = 0; i < span[k]; i++) ((uint8_t *)data)[i] &= 1;
    }
    if (k == 0) RDNA_TRY(case_mark_gaps(out_case, &args.shape, args.operand, span[0]));
  }
  return RDNA_OK;
}
