#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/strided.h"
#include "math/common/case/values.h"
#include "math/complex/complex_kernels.h"
#include "rdna/op/complex.h"

/* No tolerances here: the kernels and their twins compute the same bits. */

static void fill(rdna__random *random, rdna_dtype dtype, void *data, int64_t count) {
  static const double special[] = {0,  -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 0x1p-1060, 0x1p1000,
                                   -1, 1};
  if (dtype == RDNA_F32) {
    case_fill_hard(random, dtype, data, count);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint64_t kind = rdna__random_below(random, 16);
    double v = (kind == 1 ? 200 : 2) * rdna__random_normal(random);
    ((double *)data)[i] = kind == 0 ? special[rdna__random_below(random, 9)] : v;
  }
}

RDNA_CASE_MAKER(rdna__complex_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  const char *name = kernel->name + strlen("complex_");
  bool map = !strncmp(name, "map", 3), measure = !strncmp(name, "measure", 7), polar = !strncmp(name, "polar", 5);
  bool zip = !strncmp(name, "zip", 3), power = !strncmp(name, "pow", 3);
  int operands = map || measure ? 2 : 3;
  struct complex_args args = {.op = 0};
  case_pick_shape(random, n, 2, &args.shape);
  if (map) args.op = (uint32_t)n % RDNA_COMPLEX_MAP_COUNT;
  if (zip) args.op = (uint32_t)n % RDNA_COMPLEX_POW;
  if (measure) args.op = (uint32_t)n % RDNA_COMPLEX_MEASURE_COUNT;
  if ((zip || power) && n % 4 == 2) args.constants = n % 8 == 2 ? 2 : 4;
  for (int i = 0; i < 2; i++) args.p[i] = rdna__random_normal(random), args.constant[i] = rdna__random_normal(random);
  int64_t span[3];
  for (int k = 0; k < operands; k++) {
    span[k] = case_pick_strides(random, &args.shape, k == 0, 1, args.operand[k].stride);
  }
  memcpy(out_case->args, &args, sizeof args);
  uint32_t group = COMPLEX_THREADS * (zip ? COMPLEX_ZIP_VALUES : 1);
  out_case->grid = (rdna_grid){(args.shape.count + group - 1) / group, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "op %u rank %u count %u", args.op, args.shape.rank,
           args.shape.count);
  for (int k = 0; k < operands; k++) {
    int64_t pair = (polar && k > 0) || (measure && k == 0) ? 1 : 2;
    uint32_t offset = (uint32_t)(offsetof(struct complex_args, operand) + (size_t)k * sizeof args.operand[0]);
    if (args.constants >> k & 1) continue;
    void *data = rdna__case_add(out_case, k == 0 ? RDNA__OUT : RDNA__IN, dtype, pair * span[k], offset);
    if (!data) return rdna__case_no_memory(out_case);
    if (k > 0) {
      fill(random, dtype, data, pair * span[k]);
      continue;
    }
    RDNA_TRY(case_mark_gaps(out_case, &args.shape, args.operand, pair * span[0]));
    uint8_t *untouched = out_case->buffers[out_case->buffer_count - 1].untouched; /* of values: now of their reals */
    for (int64_t i = span[0]; pair == 2 && i-- > 0;) untouched[2 * i] = untouched[2 * i + 1] = untouched[i];
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__complex_blocks_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t rows = n == 0 ? 1 : rdna__random_range(random, 1, 40), columns = rdna__random_range(random, 1, 40);
  int64_t batch = n == 2 ? 0 : rdna__random_range(random, 1, 3), gap = rdna__random_range(random, 0, 2);
  bool across = rdna__random_below(random, 2);
  struct complex_blocks_args a = {.x_row = across ? 1 : columns + gap,
                                  .x_column = across ? rows + gap : 1,
                                  .factor = {rdna__random_normal(random), rdna__random_normal(random)},
                                  .rows = (uint32_t)rows,
                                  .columns = (uint32_t)columns,
                                  .count = (uint32_t)(batch * rows * columns),
                                  .flags = (uint32_t)rdna__random_below(random, 8)};
  int64_t matrix = (rows + gap) * (columns + gap);
  a.x_batch = n % 4 == 3 ? 0 : matrix;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.count + COMPLEX_THREADS - 1) / COMPLEX_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %u x %u, flags %u", (long long)batch, a.rows, a.columns,
           a.flags);
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, 2 * batch * matrix, offsetof(struct complex_blocks_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  fill(random, dtype, x, 2 * batch * matrix);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, 4 * (int64_t)a.count, offsetof(struct complex_blocks_args, out)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
