#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/loss/loss_kernels.h"
#include "math/loss/loss_math.h"

static int64_t pick_count(rdna__random *random, int n) {
  static const int64_t edges[] = {5, 0, 1, 2048, 2049, 40000, 4096, 8};
  if (n < 8) return edges[n];
  int64_t count = rdna__random_range(random, 1, 20000);
  return n % 2 ? count / 8 * 8 + 8 : count;
}

/* What each loss is meant for; probabilities keep clear of 0 and 1, where the slope has a pole. */
static void fill_pair(rdna__random *random, rdna_dtype dtype, uint32_t kind, void *x, void *t, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double a = rdna__random_unit(random), b = rdna__random_unit(random);
    bool probability = kind == BCE;
    case_set(dtype, x, i, (float)(probability ? 0.05 + 0.9 * a : 3 * rdna__random_normal(random)));
    case_set(dtype, t, i,
             (float)(kind == BCE || kind == BCE_LOGITS || kind == KL ? b
                     : kind == KL_LOG                                ? -4 * b
                                                                     : 6 * b - 3));
    if (kind == KL && i % 7 == 0) case_set(dtype, t, i, 0);
    if (kind == L1 && i % 5 == 0) case_set(dtype, t, i, case_get(dtype, x, i));
  }
}

RDNA_CASE_MAKER(rdna__loss_values_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct loss_values_args args = {.kind = (uint32_t)(n % 8), .beta = 0.7f, .count = pick_count(random, n / 2)};
  bool reduced = n % 3 == 2, weighted = n % 5 == 1;
  args.slices = rdna__random_range(random, 1, 6);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 8), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld values, loss %u, %lld slices, grid %u%s%s",
           (long long)args.count, args.kind, (long long)args.slices, out_case->grid.x, reduced ? " reduced" : "",
           weighted ? " weighted" : "");
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct loss_values_args, x));
  void *t = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct loss_values_args, target));
  if (!x || !t) return rdna__case_no_memory(out_case);
  fill_pair(random, dtype, args.kind, x, t, args.count);
  if (n % 4 == 3) {
    for (int64_t i = 3; i < args.count; i += 500) case_set(dtype, x, i, i % 1000 < 500 ? NAN : INFINITY);
  }
  if (weighted) {
    void *w = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct loss_values_args, weight));
    if (!w) return rdna__case_no_memory(out_case);
    case_fill(random, dtype, w, args.count, 1);
  }
  double magnitude = 0;
  for (int64_t i = 0; i < args.count; i++) {
    double v = fabs((double)loss_of(args.kind, case_get(dtype, x, i), case_get(dtype, t, i), args.beta));
    if (isfinite(v)) magnitude += v * (weighted ? 6 : 1);
  }
  if (reduced) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, args.slices, offsetof(struct loss_values_args, partial)))
      return rdna__case_no_memory(out_case);
    /* chains: 8 values of each of a slice's blocks on the device, 128 of a block on the host */
    rdna__case_tolerance(out_case, magnitude * (300 + (double)args.count / 256) * 0x1p-24, 0x1p-22);
  } else {
    if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct loss_values_args, out)))
      return rdna__case_no_memory(out_case);
    /* the same operations in the same order, so the same bits, but for subnormals on a GPU */
    rdna__case_tolerance(out_case, case_smallest(dtype), 0);
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__loss_values_backward_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct loss_values_backward_args args = {
      .kind = (uint32_t)(n % 8), .beta = 0.7f, .scale = 0.25f, .one = n % 3 == 1, .count = pick_count(random, n / 2)};
  args.dout_f32 = args.one ? (uint32_t)(n / 3 % 2) : dtype == RDNA_F32;
  bool weighted = n % 5 == 1;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 8), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld values, loss %u, grid %u%s%s", (long long)args.count,
           args.kind, out_case->grid.x, args.one ? " one dout" : "", weighted ? " weighted" : "");
  rdna_dtype dout_dtype = args.dout_f32 ? RDNA_F32 : dtype;
  int64_t douts = args.one ? 1 : args.count;
  void *d = rdna__case_add(out_case, RDNA__IN, dout_dtype, douts, offsetof(struct loss_values_backward_args, dout));
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct loss_values_backward_args, x));
  void *t = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct loss_values_backward_args, target));
  if (!x || !t || !d) return rdna__case_no_memory(out_case);
  case_fill(random, dout_dtype, d, douts, 1);
  fill_pair(random, dtype, args.kind, x, t, args.count);
  if (n % 4 == 3) {
    for (int64_t i = 3; i < args.count; i += 500) case_set(dtype, x, i, i % 1000 < 500 ? NAN : INFINITY);
  }
  if (weighted) {
    void *w = rdna__case_add(out_case, RDNA__IN, dtype, args.count, offsetof(struct loss_values_backward_args, weight));
    if (!w) return rdna__case_no_memory(out_case);
    case_fill(random, dtype, w, args.count, 1);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct loss_values_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, case_smallest(dtype), 0);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__loss_sum_case) {
  struct loss_sum_args args = {.scale = 0.5f, .dtype = (uint32_t)(n % 3)};
  bool weighted = n % 2;
  args.count = n == 0 ? 3 : n == 2 ? 0 : rdna__random_range(random, 1, 9000);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){1, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld values to %s%s", (long long)args.count,
           rdna_dtype_name((rdna_dtype)args.dtype), weighted ? " weighted" : "");
  float *v = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.count, offsetof(struct loss_sum_args, values));
  if (!v) return rdna__case_no_memory(out_case);
  double magnitude = 0;
  for (int64_t i = 0; i < args.count; i++) magnitude += (double)(v[i] = (float)rdna__random_unit(random));
  double error = magnitude * (double)(args.count / 1024 + 16) * 0x1p-24;
  if (weighted) {
    float *w = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.count, offsetof(struct loss_sum_args, weights));
    if (!w || !rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 1, offsetof(struct loss_sum_args, total)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 2 * error, 0);
    for (int64_t i = 0; i < args.count; i++) w[i] = 1 + (float)rdna__random_unit(random);
    error = (double)(args.count / 1024 + 16) * 0x1p-23;
  }
  rdna_dtype dtype = (rdna_dtype)args.dtype;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, 1, offsetof(struct loss_sum_args, out)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, error + case_smallest(dtype), case_spacing(dtype));
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__loss_store_case) {
  struct loss_store_args args = {.dtype = (uint32_t)(n % 3), .count = n == 2 ? 0 : rdna__random_range(random, 1, 900)};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld values", (long long)args.count);
  void *v = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.count, offsetof(struct loss_store_args, values));
  if (!v) return rdna__case_no_memory(out_case);
  case_fill_hard(random, RDNA_F32, v, args.count);
  rdna_dtype dtype = (rdna_dtype)args.dtype;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.count, offsetof(struct loss_store_args, out)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, case_smallest(dtype), 0);
  return RDNA_OK;
}

struct rows {
  int64_t rows, cols, stride;
  bool weighted;
};
static struct rows pick_rows(rdna__random *random, int n, int64_t most_cols) {
  static const int64_t edges[][2] = {{3, 5},    {0, 7},    {2, 1},     {3, 1024}, {2, 1025},
                                     {2, 1032}, {2, 9001}, {1, 50264}, {30, 64},  {5, 2}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct rows r = {rdna__random_range(random, 1, 30), 0, 0, n % 4 == 2};
  r.cols = rdna__random_range(random, 1, rdna__random_below(random, 3) ? 500 : 9000);
  if (n % 2) r.cols = r.cols / 8 * 8 + 8;
  if (n < edge_count) r.rows = edges[n][0], r.cols = edges[n][1];
  if (r.cols > most_cols) { /* for kernels of short rows */
    r.rows = rdna__random_range(random, 1, 150);
    r.cols = n % 2 ? rdna__random_range(random, 1, most_cols) : most_cols - n % 3;
  }
  r.stride = r.cols + (n < edge_count ? 0 : n % 3 == 1 ? 8 : n % 3);
  return r;
}

static int64_t most_cols(const rdna__kernel_info *kernel, rdna_dtype dtype) {
  if (!strstr(kernel->name, "short")) return INT64_MAX;
  return LOSS_SHORT_MOST(rdna_dtype_block_bytes(dtype));
}

/* Targets in every class, some ignored, in some cases one that is no class. */
static bool add_targets(rdna__kernel_case *c, rdna__random *random, int n, const struct rows *r, bool i64,
                        size_t offset) {
  void *target = rdna__case_add(c, RDNA__IN, i64 ? RDNA_I64 : RDNA_I32, r->rows, (uint32_t)offset);
  for (int64_t i = 0; target && i < r->rows; i++) {
    int64_t y = i % 5 == 3 ? -100 : (int64_t)rdna__random_below(random, (uint64_t)r->cols);
    if (n % 6 == 5 && i == 1) y = r->cols;
    if (i64) {
      ((int64_t *)target)[i] = y;
    } else {
      ((int32_t *)target)[i] = (int32_t)y;
    }
  }
  return target != NULL;
}

/* The word that says whether a target was no class, in most cases. */
static bool add_outside(rdna__kernel_case *c, int n, size_t offset) {
  return n % 4 == 0 || rdna__case_add(c, RDNA__INOUT, RDNA_I32, 1, (uint32_t)offset);
}

static bool add_class_weights(rdna__kernel_case *c, rdna__random *random, const struct rows *r, size_t offset) {
  float *w = rdna__case_add(c, RDNA__IN, RDNA_F32, r->cols, (uint32_t)offset);
  for (int64_t i = 0; w && i < r->cols; i++) w[i] = 0.5f + (float)rdna__random_unit(random);
  return w != NULL;
}

/* Sums of positive terms, and the device's own exponential: its error of an ulp, and that of its argument. */
static double exp_error(int64_t cols) { return (200 + (double)cols / 128) * 0x1p-24; }

RDNA_CASE_MAKER(rdna__cross_entropy_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t most = most_cols(kernel, dtype);
  bool is_short = most < INT64_MAX, reduced = is_short && n % 2;
  struct rows r = pick_rows(random, n, most);
  struct cross_entropy_args args = {.rows = r.rows,
                                    .cols = r.cols,
                                    .x_stride = r.stride,
                                    .ignore = -100,
                                    .nll = n % 7 == 6 && !is_short,
                                    .target_i64 = n % 2,
                                    .parts = 1};
  args.smoothing = n % 3 == 2 && !args.nll && !is_short ? 0.1f : 0;
  bool in_parts = !is_short && !args.nll && r.cols > LOSS_WAVE_COLS && n % 2;
  if (in_parts) {
    args.parts = (uint32_t)rdna__random_range(random, 2, 5);
    args.part_vectors = (uint32_t)(r.cols * (int64_t)rdna_dtype_block_bytes(dtype) / 16 / args.parts + 1);
  }
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld, %lld) smoothing %g%s%s parts %u grid %u", (long long)r.rows,
           (long long)r.cols, (double)args.smoothing, args.nll ? " nll" : "", r.weighted ? " weighted" : "", args.parts,
           out_case->grid.x);
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, r.rows * r.stride, offsetof(struct cross_entropy_args, x));
  if (!x || !add_targets(out_case, random, n, &r, args.target_i64, offsetof(struct cross_entropy_args, target)) ||
      !add_outside(out_case, n, offsetof(struct cross_entropy_args, outside)))
    return rdna__case_no_memory(out_case);
  case_fill(random, dtype, x, r.rows * r.stride, 3);
  if (n % 5 == 4 && r.rows > 2) {
    case_set(dtype, x, r.stride, NAN);
    for (int64_t i = 0; i < r.cols; i += 2) case_set(dtype, x, i, -INFINITY);
  }
  if (r.weighted && !add_class_weights(out_case, random, &r, offsetof(struct cross_entropy_args, weight)))
    return rdna__case_no_memory(out_case);
  double error = exp_error(r.cols) + 0x1p-20;
  int64_t states = r.rows * args.parts * 4, blocks = (r.rows + LOSS_SHORT_ROWS - 1) / LOSS_SHORT_ROWS;
  if (in_parts) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, states, offsetof(struct cross_entropy_args, states)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 8 * (double)r.cols * 0x1p-20, 8 * error);
    return RDNA_OK;
  }
  if (reduced) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 2 * blocks, offsetof(struct cross_entropy_args, partial)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 40 * LOSS_SHORT_ROWS * error, 0x1p-18);
  } else {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, r.rows, offsetof(struct cross_entropy_args, loss)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 40 * error, 0x1p-20);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, r.rows, offsetof(struct cross_entropy_args, lse)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, error, 0x1p-21);
  if (reduced) return RDNA_OK;
  return rdna__case_add(out_case, RDNA__OUT, RDNA_F32, r.rows, offsetof(struct cross_entropy_args, row_weight))
             ? RDNA_OK
             : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__cross_entropy_finish_case) {
  static const int64_t edges[][2] = {{3, 2}, {0, 4}, {1, 40}, {40, 13}, {1030, 2}};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct rows r = {rdna__random_range(random, 1, 300), rdna__random_range(random, 1, 50), 0, n % 4 == 2};
  struct cross_entropy_finish_args args = {.dtype = (uint32_t)(n % 3), .mean = n % 2};
  int64_t parts = rdna__random_range(random, 1, 70);
  if (n < (int)(sizeof edges / sizeof *edges)) r.rows = edges[n][0], parts = edges[n][1];
  r.stride = r.cols + n % 3;
  args.rows = (struct cross_entropy_args){.rows = r.rows,
                                          .cols = r.cols,
                                          .x_stride = r.stride,
                                          .ignore = -100,
                                          .smoothing = n % 3 == 2 ? 0.1f : 0,
                                          .target_i64 = n % 2,
                                          .parts = (uint32_t)parts};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){1, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld rows of %lld parts, smoothing %g%s mean %u",
           (long long)r.rows, (long long)parts, (double)args.rows.smoothing, r.weighted ? " weighted" : "", args.mean);
#define AT(member) offsetof(struct cross_entropy_finish_args, member)
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, r.rows * r.stride, AT(rows.x));
  if (!x || !add_targets(out_case, random, n, &r, args.rows.target_i64, AT(rows.target)) ||
      !add_outside(out_case, n, AT(rows.outside)))
    return rdna__case_no_memory(out_case);
  case_fill(random, dtype, x, r.rows * r.stride, 3);
  if (r.weighted && !add_class_weights(out_case, random, &r, AT(rows.weight))) return rdna__case_no_memory(out_case);
  float *states = rdna__case_add(out_case, RDNA__IN, RDNA_F32, r.rows * parts * 4, AT(rows.states));
  if (!states) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < r.rows * parts * 4; i++) states[i] = 3 * (float)rdna__random_unit(random);
  for (int64_t i = 0; n % 2 && i < r.rows * parts * 4; i += 16) states[i] = -INFINITY, states[i + 1] = 0;
  double error = 200 * 0x1p-24 * (args.rows.smoothing != 0 ? (double)(10 * parts) : 1), all = error * (double)r.rows;
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, r.rows, AT(rows.loss))) return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 40 * error, 0x1p-20);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, r.rows, AT(rows.lse))) return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, error, 0x1p-21);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 1, AT(total))) return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, all, 0);
  if (n % 4 == 3) return RDNA_OK;
  if (!rdna__case_add(out_case, RDNA__OUT, (rdna_dtype)args.dtype, 1, AT(out))) return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 80 * all, case_spacing((rdna_dtype)args.dtype));
#undef AT
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__cross_entropy_backward_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t most = most_cols(kernel, dtype);
  bool is_short = most < INT64_MAX;
  struct rows r = pick_rows(random, n, most);
  struct cross_entropy_backward_args args = {.rows = r.rows,
                                             .cols = r.cols,
                                             .x_stride = r.stride,
                                             .dx_stride = r.cols,
                                             .ignore = -100,
                                             .nll = n % 7 == 6 && !is_short,
                                             .target_i64 = n % 2,
                                             .one = n % 3 != 1,
                                             .parts = 1};
  args.smoothing = n % 3 == 2 && !args.nll && !is_short ? 0.1f : 0;
  if (r.cols > LOSS_WAVE_COLS && n % 4) {
    args.parts = (uint32_t)rdna__random_range(random, 2, 5);
    args.part_vectors = (uint32_t)(r.cols * (int64_t)rdna_dtype_block_bytes(dtype) / 16 / args.parts + 1);
  }
  args.dout_f32 = dtype == RDNA_F32 || n % 2;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld, %lld) smoothing %g%s%s parts %u grid %u", (long long)r.rows,
           (long long)r.cols, (double)args.smoothing, args.nll ? " nll" : "", r.weighted ? " weighted" : "", args.parts,
           out_case->grid.x);
  rdna_dtype dout_dtype = args.dout_f32 ? RDNA_F32 : dtype;
  int64_t douts = args.one ? 1 : r.rows;
  void *d = rdna__case_add(out_case, RDNA__IN, dout_dtype, douts, offsetof(struct cross_entropy_backward_args, dout));
  void *x =
      rdna__case_add(out_case, RDNA__IN, dtype, r.rows * r.stride, offsetof(struct cross_entropy_backward_args, x));
  if (!d || !x ||
      !add_targets(out_case, random, n, &r, args.target_i64, offsetof(struct cross_entropy_backward_args, target)) ||
      !add_outside(out_case, n, offsetof(struct cross_entropy_backward_args, outside)))
    return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < douts; i++) case_set(dout_dtype, d, i, (float)(0.5 + rdna__random_unit(random)));
  case_fill(random, dtype, x, r.rows * r.stride, 2);
  if (r.weighted && !add_class_weights(out_case, random, &r, offsetof(struct cross_entropy_backward_args, weight)))
    return rdna__case_no_memory(out_case);
  float *lse = rdna__case_add(out_case, RDNA__IN, RDNA_F32, r.rows, offsetof(struct cross_entropy_backward_args, lse));
  if (!lse) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < r.rows; i++) lse[i] = 2 + logf((float)r.cols) + (float)rdna__random_unit(random);
  if (n % 2) {
    float *total = rdna__case_add(out_case, RDNA__IN, RDNA_F32, 1, offsetof(struct cross_entropy_backward_args, total));
    if (!total) return rdna__case_no_memory(out_case);
    *total = 3.7f;
  }
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, r.rows * r.cols, offsetof(struct cross_entropy_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  /* even * w and own are subtracted from the exponential, which is off by 2^-18 of itself at arguments up to 40 */
  double exponential = 40 * 0x1p-24 * 4 * exp(10) / (double)(r.cols + 1);
  rdna__case_tolerance(out_case, exponential + 0x1p-21 + exp_error(r.cols) * 0.1 + case_smallest(dtype),
                       case_spacing(dtype) + 0x1p-19);
  return RDNA_OK;
}
