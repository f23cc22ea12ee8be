#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/reduce/reduce_kernels.h"

static rdna_status no_memory(const rdna__kernel_case *out_case) {
  return rdna__fail(RDNA_OUT_OF_MEMORY, "reduce case: no memory for %s", out_case->label);
}

/* Shapes about the borders between a wave and a group a row, aligned and not. */
static void make_shape(rdna__random *random, int n, int64_t *rows, int64_t *cols, int64_t *stride) {
  static const int64_t edges[][3] = {{2, 5, 0},    {0, 7, 0},     {3, 1, 0},    {17, 64, 0},
                                     {2, 2048, 0}, {2, 2049, 0},  {3, 8200, 0}, {1, 20001, 0},
                                     {4, 2056, 3}, {2, 12288, 0}, {1030, 9, 7}, {1024, 2060, 4}};
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    *rows = edges[n][0], *cols = edges[n][1], *stride = edges[n][1] + edges[n][2];
    return;
  }
  *rows = rdna__random_range(random, 1, 40);
  *cols = rdna__random_range(random, 1, rdna__random_below(random, 3) ? 600 : 20000);
  *stride = *cols + rdna__random_range(random, 0, 2);
  if (rdna__random_below(random, 2)) { /* rows of whole 16 bytes */
    *cols = (*cols + 7) / 8 * 8;
    *stride = *cols + 8 * rdna__random_range(random, 0, 1);
  }
}

RDNA_CASE_MAKER(rdna__argmax_case) {
  struct argmax_args args = {0};
  make_shape(random, n, &args.rows, &args.cols, &args.x_stride);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld stride %lld grid %u", (long long)args.rows,
           (long long)args.cols, (long long)args.x_stride, out_case->grid.x);
  int64_t count = args.rows * args.x_stride;
  float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, count, offsetof(struct argmax_args, x));
  if (!x) return no_memory(out_case);
  /* few different values, so that the largest is there more than once */
  for (int64_t i = 0; i < count; i++) x[i] = (float)rdna__random_range(random, -20, n % 2 ? 20 : -18);
  for (int64_t row = 0; row < args.rows; row++) {
    float *at = x + row * args.x_stride;
    int64_t somewhere = (int64_t)rdna__random_below(random, (uint64_t)args.cols);
    switch (rdna__random_below(random, 6)) {
      case 0:
        at[somewhere] = NAN;
        at[args.cols - 1] = NAN;
        break;
      case 1:
        at[somewhere] = INFINITY;
        break;
      case 2:
        for (int64_t i = 0; i < args.cols; i++) at[i] = -INFINITY;
        break;
      default:
        break;
    }
  }
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_I32, args.rows, offsetof(struct argmax_args, out)))
    return no_memory(out_case);
  return RDNA_OK;
}

/* A chain of n additions of numbers of either sign errs like a random walk, n^(1/2) steps of 2^-24 of what has been
 * added so far; 8 such is far outside. The longest chain is a sixteenth of the row (the host's) and a few. */
static double sum_tolerance(rdna_dtype dtype, const void *x, const struct reduce_args *args) {
  double most = 0;
  for (int64_t row = 0; row < args->rows; row++) {
    double sum = 0;
    for (int64_t i = 0; i < args->cols; i++) sum += fabs((double)case_get(dtype, x, row * args->x_stride + i));
    if (sum > most) most = sum;
  }
  return 8 * sqrt((double)args->cols / 16 + 16) * 0x1p-24 * most * fabs((double)args->scale);
}

RDNA_CASE_MAKER(rdna__reduce_case) {
  rdna_dtype dtype = strstr(kernel->name, "bf16") ? RDNA_BF16 : strstr(kernel->name, "f16") ? RDNA_F16 : RDNA_F32;
  bool is_max = strstr(kernel->name, "max") != NULL, exact = is_max || n % 2 == 0;
  struct reduce_args args = {.scale = is_max || n % 3 == 0 ? 1.0f : 0.3f};
  make_shape(random, n, &args.rows, &args.cols, &args.x_stride);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld stride %lld grid %u%s", (long long)args.rows,
           (long long)args.cols, (long long)args.x_stride, out_case->grid.x, exact ? " exact" : "");
  int64_t count = args.rows * args.x_stride;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct reduce_args, x));
  if (!x) return no_memory(out_case);
  if (exact && !is_max) { /* every sum of these is exact, in any order: one value too few or too many shows */
    for (int64_t i = 0; i < count; i++) case_set(dtype, x, i, (float)rdna__random_range(random, 1, 16));
  } else {
    case_fill(random, dtype, x, count, 3);
  }
  double tolerance = exact ? 0 : sum_tolerance(dtype, x, &args);
  for (int64_t row = 0; row < args.rows && n % 4 == 3; row++) {
    int64_t at = row * args.x_stride + (int64_t)rdna__random_below(random, (uint64_t)args.cols);
    case_set(dtype, x, at, row % 3 == 0 ? NAN : row % 3 == 1 ? INFINITY : -INFINITY);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, args.rows, offsetof(struct reduce_args, out)))
    return no_memory(out_case);
  rdna__case_tolerance(out_case, tolerance, 0);
  return RDNA_OK;
}
