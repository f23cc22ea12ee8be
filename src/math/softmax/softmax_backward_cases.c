#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/softmax/softmax_backward_kernels.h"

/* Sums differ by the longest chain of additions, of either side, times the sum of magnitudes. dout is below 8 and the
 * outputs add up to |cols| at most where they are free: here they are below 1 or, as logarithms, below 0. */
static double sum_bound(int64_t cols, double top) {
  return 2 * (80 + (double)cols / 32) * 0x1p-24 * top * (double)cols;
}

static void fill_outputs(rdna__random *random, rdna_dtype dtype, void *out, int64_t count, int64_t cols, bool log) {
  for (int64_t i = 0; i < count; i++) {
    double v = rdna__random_unit(random);
    case_set(dtype, out, i, (float)(log ? -8 * v : 2 * v / (double)cols));
  }
}

/* Adds dx, whose error is that of the sum times the largest factor on it. */
static void *add_slopes(rdna__kernel_case *c, rdna_dtype dtype, int64_t count, int64_t cols, float scale, bool log,
                        size_t offset) {
  void *dx = rdna__case_add(c, RDNA__OUT, dtype, count, (uint32_t)offset);
  double factor = log ? 1 : 2 / (double)(cols + 1), top = log ? 8 : 16 / (double)(cols + 1);
  double absolute = factor * fabs((double)scale) * (sum_bound(cols, top) + (double)cols * top * 0x1p-20);
  rdna__case_tolerance(c, absolute + case_smallest(dtype), case_spacing(dtype) + 0x1p-21);
  return dx;
}

static rdna_status make_rows(const rdna__kernel_info *kernel, rdna__random *random, int n, const int64_t (*edges)[2],
                             int edge_count, int64_t least, int64_t most, rdna__kernel_case *out_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct softmax_backward_args args = {.scale = n % 3 ? 1.0f : -0.37f, .log = (uint32_t)(n / 2 & 1)};
  args.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 40);
  args.cols = n < edge_count
                  ? edges[n][1]
                  : rdna__random_range(random, least, rdna__random_below(random, 3) ? least + 600 : most - 7);
  int64_t pad = n < edge_count ? 0 : rdna__random_range(random, 0, 1);
  if (n >= edge_count && n % 2) args.cols = (args.cols + 7) / 8 * 8, pad *= 8;
  args.dout_stride = args.cols + pad, args.out_stride = args.cols, args.dx_stride = args.cols + 2 * pad;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld pad %lld log %u grid %u", (long long)args.rows,
           (long long)args.cols, (long long)pad, args.log, out_case->grid.x);
  int64_t d_count = args.rows * args.dout_stride, count = args.rows * args.cols, dx_count = args.rows * args.dx_stride;
  void *dout = rdna__case_add(out_case, RDNA__IN, dtype, d_count, offsetof(struct softmax_backward_args, dout));
  void *out = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct softmax_backward_args, out));
  if (!dout || !out) return rdna__case_no_memory(out_case);
  case_fill(random, dtype, dout, d_count, 1);
  fill_outputs(random, dtype, out, count, args.cols, args.log);
  if (n % 5 == 4 && count > 0) case_set(dtype, out, count / 2, NAN);
  if (!add_slopes(out_case, dtype, dx_count, args.cols, args.scale, args.log,
                  offsetof(struct softmax_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  return rdna__case_guard_rows(out_case, args.rows, args.cols, args.dx_stride);
}

RDNA_CASE_MAKER(rdna__softmax_backward_case) {
  static const int64_t edges[][2] = {{2, 5},    {0, 7},    {3, 1},  {5, 1024}, {3, 1025},  {2, 1032}, {2, 4096},
                                     {2, 4090}, {3, 3001}, {9, 64}, {20, 33},  {150, 128}, {70, 96},  {300, 16}};
  return make_rows(kernel, random, n, edges, (int)(sizeof edges / sizeof edges[0]), 1, SOFTMAX_BACKWARD_HELD_COLS,
                   out_case);
}
RDNA_CASE_MAKER(rdna__softmax_backward_long_case) {
  static const int64_t edges[][2] = {{2, 4104}, {0, 5000}, {1, 9001}, {3, 16400}};
  return make_rows(kernel, random, n, edges, (int)(sizeof edges / sizeof edges[0]), SOFTMAX_BACKWARD_HELD_COLS + 1,
                   20000, out_case);
}

static rdna_status make_parts(const rdna__kernel_info *kernel, rdna__random *random, int n, bool finishes,
                              rdna__kernel_case *out_case) {
  static const int64_t edges[] = {3, 8192, 8200, 3000, 1, 17000};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct softmax_backward_part_args args = {.scale = n % 3 ? 1.0f : -0.37f, .log = (uint32_t)(n / 2 & 1)};
  args.rows = rdna__random_range(random, n != 4, n == 4 ? 0 : 3);
  args.cols = n < edge_count ? edges[n] : rdna__random_range(random, 1, 40000);
  if (n >= edge_count && n % 2) args.cols = (args.cols + 7) / 8 * 8;
  /* once more parts than a group has threads */
  args.part_cols = n == 3 ? 8 : (1 + n % 2) * SOFTMAX_BACKWARD_PART_COLS;
  args.parts = (args.cols - 1) / args.part_cols + 1;
  int64_t pad = n < edge_count ? 0 : 8 * rdna__random_range(random, 0, 1);
  args.dout_stride = args.cols + pad, args.out_stride = args.cols, args.dx_stride = args.cols + 2 * pad;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld pad %lld, %lld parts, log %u, grid %u",
           (long long)args.rows, (long long)args.cols, (long long)pad, (long long)args.parts, args.log,
           out_case->grid.x);
  int64_t d_count = args.rows * args.dout_stride, count = args.rows * args.cols, dx_count = args.rows * args.dx_stride;
  void *dout = rdna__case_add(out_case, RDNA__IN, dtype, d_count, offsetof(struct softmax_backward_part_args, dout));
  void *out = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct softmax_backward_part_args, out));
  if (!dout || !out) return rdna__case_no_memory(out_case);
  case_fill(random, dtype, dout, d_count, 1);
  fill_outputs(random, dtype, out, count, args.cols, args.log);
  float *sums = rdna__case_add(out_case, finishes ? RDNA__IN : RDNA__OUT, RDNA_F32, args.rows * args.parts,
                               offsetof(struct softmax_backward_part_args, sums));
  if (!sums) return rdna__case_no_memory(out_case);
  double top = args.log ? 8 : 16 / (double)(args.cols + 1);
  rdna__case_tolerance(out_case, sum_bound(args.part_cols, top), 0);
  for (int64_t i = 0; finishes && i < args.rows * args.parts; i++) sums[i] = (float)rdna__random_normal(random);
  if (!finishes) return RDNA_OK;
  if (n % 5 == 4 && count > 0) case_set(dtype, out, count / 2, NAN);
  if (!add_slopes(out_case, dtype, dx_count, args.cols, args.scale, args.log,
                  offsetof(struct softmax_backward_part_args, dx)))
    return rdna__case_no_memory(out_case);
  return rdna__case_guard_rows(out_case, args.rows, args.cols, args.dx_stride);
}
RDNA_CASE_MAKER(rdna__softmax_backward_part_case) { return make_parts(kernel, random, n, false, out_case); }
RDNA_CASE_MAKER(rdna__softmax_backward_finish_case) { return make_parts(kernel, random, n, true, out_case); }

struct shape {
  int64_t outer, cols, inner;
};
static struct shape pick_shape(rdna__random *random, int n) {
  static const struct shape edges[] = {{2, 5, 3}, {0, 3, 4},    {2, 1, 8},   {1, 600, 1},
                                       {2, 0, 5}, {3, 40, 264}, {1, 7, 2000}};
  struct shape s = {rdna__random_range(random, 1, 5), rdna__random_range(random, 1, 90),
                    rdna__random_range(random, 1, 300)};
  if (n % 2) s.inner = s.inner / 8 * 8 + 8;
  return n < (int)(sizeof edges / sizeof edges[0]) ? edges[n] : s;
}

static void describe(rdna__kernel_case *c, rdna__random *random, struct shape s, uint32_t log) {
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(c->label, sizeof c->label, "(%lld, %lld, %lld) log %u grid %u", (long long)s.outer, (long long)s.cols,
           (long long)s.inner, log, c->grid.x);
}

RDNA_CASE_MAKER(rdna__softmax_dim_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct shape s = pick_shape(random, n);
  struct softmax_dim_args args = {.outer = s.outer, .cols = s.cols, .inner = s.inner, .scale = n % 3 ? 1 : -0.4f};
  args.log = (uint32_t)(n / 2 & 1);
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, s, args.log);
  int64_t count = s.outer * s.cols * s.inner;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct softmax_dim_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  case_fill(random, dtype, x, count, n % 4 == 3 ? 30 : 2);
  for (int64_t i = 0; n % 3 == 2 && i < count; i += 1 + (int64_t)rdna__random_below(random, 20)) {
    static const float hard[] = {-INFINITY, -INFINITY, -INFINITY, INFINITY, NAN};
    case_set(dtype, x, i, hard[rdna__random_below(random, 5)]);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct softmax_dim_args, out)))
    return rdna__case_no_memory(out_case);
  /* each addition of positive terms, and each rescaling to a new maximum, rounds once */
  double error = (4 * (double)s.cols + 32) * 0x1p-24;
  if (args.log) {
    rdna__case_tolerance(out_case, error + 0x1p-22 * log((double)s.cols + 1) + case_smallest(dtype),
                         case_spacing(dtype) + 0x1p-22);
  } else {
    rdna__case_tolerance(out_case, case_smallest(dtype), case_spacing(dtype) + error);
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__softmax_dim_backward_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct shape s = pick_shape(random, n);
  struct softmax_dim_backward_args args = {.outer = s.outer, .cols = s.cols, .inner = s.inner, .scale = 0.7f};
  args.log = (uint32_t)(n / 2 & 1);
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, s, args.log);
  int64_t count = s.outer * s.cols * s.inner;
  void *dout = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct softmax_dim_backward_args, dout));
  void *out = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct softmax_dim_backward_args, out));
  if (!dout || !out) return rdna__case_no_memory(out_case);
  case_fill(random, dtype, dout, count, 1);
  fill_outputs(random, dtype, out, count, s.cols, args.log);
  if (n % 5 == 4 && count > 0) case_set(dtype, dout, count / 2, NAN);
  if (!add_slopes(out_case, dtype, count, s.cols, args.scale, args.log, offsetof(struct softmax_dim_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
