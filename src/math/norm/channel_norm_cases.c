#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/norm/channel_norm_kernels.h"

struct sizes {
  int64_t outer, runs, cols, len, width;
};

static rdna_dtype keeper_of(rdna_dtype dtype) { return dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32; }

/* Runs, then columns side by side. */
static struct sizes pick_any_sizes(rdna__random *random, int n) {
  static const struct sizes edges[] = {{1, 2, 3, 5, 1},    {1, 3, 8, 1, 1},  {2, 1, 6, 49, 3},   {1, 4, 2, 1024, 1},
                                       {2, 9, 16, 1, 4},   {0, 2, 3, 4, 1},  {1, 0, 3, 1, 1},    {1, 2, 3, 0, 1},
                                       {1, 2, 1, 9001, 1}, {1, 70, 5, 1, 5}, {1, 600, 64, 1, 1}, {3, 1, 4, 8, 2}};
  const int edge_count = (int)(sizeof edges / sizeof *edges);
  if (n < edge_count) return edges[n];
  struct sizes s = {rdna__random_range(random, 1, 3), rdna__random_range(random, 1, 9), 0, 1, 1};
  s.width = rdna__random_range(random, 1, 4);
  s.cols = s.width * rdna__random_range(random, 1, 6);
  if (n % 3 == 0) {
    s.runs = rdna__random_range(random, 1, 90);
    if (n % 2) s.cols *= 8;
  } else {
    s.len = rdna__random_range(random, 2, n % 3 == 1 ? 70 : 4000);
    if (n % 4 == 0) s.len *= 4;
  }
  return s;
}

/* As the kernel wants them: columns have a length of 1. */
static struct sizes pick_sizes(rdna__random *random, const rdna__kernel_info *kernel, int n) {
  struct sizes s = pick_any_sizes(random, n);
  if (strstr(kernel->name, "_columns_")) s.runs *= s.len < 40 ? s.len : 40, s.len = 1;
  if (strstr(kernel->name, "_runs_") && s.len == 1) s.len = 2 + s.runs, s.runs = 3;
  return s;
}

static struct channel_slices pick_slices(rdna__random *random, const struct sizes *s) {
  struct channel_slices a = {.runs = (uint32_t)s->runs, .len = s->len, .slices = 1, .parts = 1, .part = s->len};
  a.slice_runs = (uint32_t)rdna__random_range(random, 1, s->runs + 1);
  if (s->len > 64 && rdna__random_below(random, 2)) {
    a.slice_runs = 1, a.part = rdna__random_range(random, 40, s->len),
    a.parts = (uint32_t)((s->len + a.part - 1) / a.part);
  }
  a.slices = (a.runs + a.slice_runs - 1) / a.slice_runs * a.parts;
  if (a.slices == 0) a.slices = 1;
  return a;
}

static void describe(rdna__kernel_case *c, rdna__random *random, const struct sizes *s, const char *more) {
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(c->label, sizeof c->label, "(%lld, %lld, %lld, %lld) width %lld grid %u %s", (long long)s->outer,
           (long long)s->runs, (long long)s->cols, (long long)s->len, (long long)s->width, c->grid.x, more);
}

RDNA_CASE_MAKER(rdna__channel_partial_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool gradients = strstr(kernel->name, "gradients");
  struct sizes s = pick_sizes(random, kernel, n);
  struct channel_partial_args args = {.outer = (uint32_t)s.outer,
                                      .cols = (uint32_t)s.cols,
                                      .width = (uint32_t)s.width,
                                      .slices = pick_slices(random, &s),
                                      .mean_f32 = n % 2};
  args.wave = s.len != 1 && n % 3 == 1;
  args.team = 1u << rdna__random_below(random, args.wave ? 6 : 9);
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, args.wave ? "waves" : "");
  int64_t count = s.outer * s.runs * s.cols * s.len, per_slice = args.slices.slice_runs * args.slices.part;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct channel_partial_args, x)), *dout = NULL;
  if (!x) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, x, count, n % 4);
  if (n % 5 == 4 && count > 0) store_double(dtype, x, count / 2, NAN);
  double unit = case_unit(dtype) * (40 + (double)per_slice / 64), top = case_top(dtype, x, count), top_dout = 1;
  if (gradients) {
    rdna_dtype mean_dtype = args.mean_f32 && dtype != RDNA_F64 ? RDNA_F32 : dtype;
    if (dtype == RDNA_F64) ((struct channel_partial_args *)(void *)out_case->args)->mean_f32 = 0;
    int64_t means = s.outer * (s.cols / s.width);
    dout = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct channel_partial_args, dout));
    void *mean = rdna__case_add(out_case, RDNA__IN, mean_dtype, means, offsetof(struct channel_partial_args, mean));
    if (!dout || !mean) return rdna__case_no_memory(out_case);
    case_fill_doubles(random, dtype, dout, count, 0);
    case_fill_doubles(random, mean_dtype, mean, means, n % 4);
    top_dout = case_top(dtype, dout, count), top += case_top(mean_dtype, mean, means);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, keeper_of(dtype), 2 * s.outer * args.slices.slices * s.cols,
                      offsetof(struct channel_partial_args, partial)))
    return rdna__case_no_memory(out_case);
  double sum = (double)per_slice * top_dout * (gradients ? fmax(top, 1) : top * top + top);
  rdna__case_tolerance(out_case, unit * fmax(sum, 1), 4 * case_unit(dtype));
  return RDNA_OK;
}

/* The sum of what a slice holds of a column, or of its squares, takes any value; means near 1 and squares above 0. */
static bool add_partial(rdna__kernel_case *c, rdna__random *random, rdna_dtype keeper, int64_t all, bool moments,
                        size_t offset) {
  void *partial = rdna__case_add(c, RDNA__IN, keeper, 2 * all, (uint32_t)offset);
  if (!partial) return false;
  for (int64_t i = 0; i < 2 * all; i++) {
    double v = rdna__random_normal(random);
    store_double(keeper, partial, i, !moments ? v : i < all ? 1 + v : v * v * 10);
  }
  return true;
}

RDNA_CASE_MAKER(rdna__channel_moments_end_case) {
  rdna_dtype keeper = case_name_dtype(kernel->name), running = n % 2 ? keeper : RDNA_F32;
  struct sizes s = pick_sizes(random, kernel, n);
  struct channel_moments_end_args args = {.slices = pick_slices(random, &s),
                                          .outer = (uint32_t)s.outer,
                                          .cols = (uint32_t)s.cols,
                                          .width = (uint32_t)s.width,
                                          .momentum = 0.1,
                                          .epsilon = 1e-5};
  if (keeper == RDNA_F32 && n % 2) running = n % 4 == 1 ? RDNA_F16 : RDNA_BF16;
  args.running_dtype = (uint32_t)running;
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, rdna_dtype_name(running));
  int64_t outs = s.outer * (s.cols / s.width);
  out_case->grid.x = (uint32_t)((outs + CHANNEL_END_OUTS - 1) / CHANNEL_END_OUTS);
  if (!add_partial(out_case, random, keeper, s.outer * args.slices.slices * s.cols, true,
                   offsetof(struct channel_moments_end_args, partial)))
    return rdna__case_no_memory(out_case);
  double error = case_unit(keeper) * (double)(64 + 2 * args.slices.slices * s.width);
  for (int k = 0; k < (n % 3 ? 4 : 2); k++) {
    static const size_t offsets[] = {offsetof(struct channel_moments_end_args, mean),
                                     offsetof(struct channel_moments_end_args, inverse),
                                     offsetof(struct channel_moments_end_args, running_mean),
                                     offsetof(struct channel_moments_end_args, running_var)};
    rdna_dtype dtype = k < 2 ? keeper : running;
    void *data = rdna__case_add(out_case, k < 2 ? RDNA__OUT : RDNA__INOUT, dtype, outs, (uint32_t)offsets[k]);
    if (!data) return rdna__case_no_memory(out_case);
    if (k >= 2) case_fill_doubles(random, dtype, data, outs, 1);
    rdna__case_tolerance(out_case, 8 * error, case_step(dtype) + 8 * error);
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__channel_gradients_end_case) {
  rdna_dtype keeper = case_name_dtype(kernel->name), other = keeper;
  if (keeper == RDNA_F32 && n % 3) other = n % 3 == 1 ? RDNA_F16 : RDNA_BF16;
  struct sizes s = pick_sizes(random, kernel, n);
  int64_t groups = s.cols / s.width, outs = s.outer * groups;
  struct channel_gradients_end_args args = {.slices = pick_slices(random, &s),
                                            .outer = (uint32_t)s.outer,
                                            .cols = (uint32_t)s.cols,
                                            .width = (uint32_t)s.width,
                                            .epsilon = 1e-5,
                                            .variance = n % 4 == 3,
                                            .spread_dtype = (uint32_t)(n % 2 ? other : keeper),
                                            .weight_dtype = (uint32_t)other,
                                            .gradient_dtype = (uint32_t)(n % 4 < 2 ? other : keeper)};
  if (n % 5 != 4) args.slope_groups = (uint32_t)((outs + CHANNEL_END_OUTS - 1) / CHANNEL_END_OUTS);
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, rdna_dtype_name(other));
  bool sums = n % 6 != 5 || args.slope_groups == 0;
  out_case->grid.x = args.slope_groups + (sums ? (uint32_t)((s.cols + CHANNEL_END_OUTS - 1) / CHANNEL_END_OUTS) : 0);
  bool fits = add_partial(out_case, random, keeper, s.outer * args.slices.slices * s.cols, false,
                          offsetof(struct channel_gradients_end_args, partial));
  void *spread = rdna__case_add(out_case, RDNA__IN, (rdna_dtype)args.spread_dtype, outs,
                                offsetof(struct channel_gradients_end_args, spread));
  if (!fits || !spread) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < outs; i++) {
    store_double((rdna_dtype)args.spread_dtype, spread, i, 0.5 + 1.5 * rdna__random_unit(random));
  }
  if (n % 4) {
    void *weight =
        rdna__case_add(out_case, RDNA__IN, other, s.cols, offsetof(struct channel_gradients_end_args, weight));
    if (!weight) return rdna__case_no_memory(out_case);
    case_fill_doubles(random, other, weight, s.cols, 1);
  }
  double terms = (double)((s.outer + s.width) * args.slices.slices + 8), error = case_unit(keeper) * terms * terms;
  if (args.slope_groups > 0) {
    if (!rdna__case_add(out_case, RDNA__OUT, keeper, 2 * outs, offsetof(struct channel_gradients_end_args, slope)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 64 * error, 16 * case_unit(keeper));
  }
  for (int k = 0; k < 2 && sums; k++) {
    if (k == 1 && n % 7 == 6) break;
    if (!rdna__case_add(out_case, RDNA__OUT, (rdna_dtype)args.gradient_dtype, s.cols,
                        k ? offsetof(struct channel_gradients_end_args, dbias)
                          : offsetof(struct channel_gradients_end_args, dweight)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 64 * error, case_step((rdna_dtype)args.gradient_dtype));
  }
  return RDNA_OK;
}

static void *add_filled(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t count, double mean,
                        size_t offset, double *out_top) {
  void *data = rdna__case_add(c, RDNA__IN, dtype, count, (uint32_t)offset);
  if (data) case_fill_doubles(random, dtype, data, count, mean);
  *out_top = case_top(dtype, data, count);
  return data;
}

RDNA_CASE_MAKER(rdna__channel_map_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool gradient = strstr(kernel->name, "gradient");
  struct sizes s = pick_sizes(random, kernel, n);
  struct channel_map_args args = {.outer = (uint32_t)s.outer,
                                  .runs = (uint32_t)s.runs,
                                  .cols = (uint32_t)s.cols,
                                  .len = s.len,
                                  .width = (uint32_t)s.width,
                                  .parts = 1,
                                  .part = s.len,
                                  .epsilon = 1e-5,
                                  .variance = n % 4 == 3,
                                  .relu = n % 3 == 2,
                                  .statistic_f32 = n % 2 && dtype != RDNA_F64,
                                  .weight_f32 = n % 4 > 1 && dtype != RDNA_F64};
  args.team = 1u << rdna__random_below(random, 9);
  if (s.len == 1) args.part = rdna__random_range(random, 1, s.runs + 1);
  if (s.len > 70 && n % 2) {
    args.team = CHANNEL_THREADS, args.part = rdna__random_range(random, 33, s.len);
    args.parts = (uint32_t)((s.len + args.part - 1) / args.part);
  }
  memcpy(out_case->args, &args, sizeof args);
  bool second = n % 3 != 1;
  describe(out_case, random, &s, second ? "two inputs" : "");
  int64_t count = s.outer * s.runs * s.cols * s.len, stats = s.outer * (s.cols / s.width);
  rdna_dtype statistic = args.statistic_f32 ? RDNA_F32 : dtype, weight = args.weight_f32 ? RDNA_F32 : dtype;
  double top[6] = {0}, ignored;
  void *first = add_filled(out_case, random, dtype, count, n % 3, offsetof(struct channel_map_args, first), &top[0]);
  bool fits = first && (!second || add_filled(out_case, random, dtype, count, 0,
                                              offsetof(struct channel_map_args, second), &top[1]));
  fits = fits && add_filled(out_case, random, statistic, stats, 0, offsetof(struct channel_map_args, mean), &top[2]);
  void *spread =
      fits ? add_filled(out_case, random, statistic, stats, 0, offsetof(struct channel_map_args, spread), &ignored)
           : NULL;
  if (!spread) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < stats; i++) store_double(statistic, spread, i, 0.25 + rdna__random_unit(random));
  if (n % 5) fits = add_filled(out_case, random, weight, s.cols, 1, offsetof(struct channel_map_args, weight), &top[3]);
  if (fits && n % 4 && !gradient)
    fits = add_filled(out_case, random, weight, s.cols, 0, offsetof(struct channel_map_args, bias), &top[4]);
  if (fits && gradient && second)
    fits =
        add_filled(out_case, random, keeper_of(dtype), 2 * stats, 0, offsetof(struct channel_map_args, slope), &top[5]);
  if (fits && count > 0 && n % 4 == 2) store_double(dtype, first, count / 2, n % 8 == 2 ? NAN : -INFINITY);
  if (!fits || !rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct channel_map_args, out)))
    return rdna__case_no_memory(out_case);
  double reach = (top[0] + top[1] + top[2]) * (2 * fmax(top[3], 1) + top[5]) + top[4] + top[5] + top[1];
  rdna__case_tolerance(out_case, 16 * case_unit(dtype) * reach + case_tiny(dtype), case_step(dtype));
  return RDNA_OK;
}
