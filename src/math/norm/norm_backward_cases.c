#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/norm/norm_backward_kernels.h"

struct bound {
  double dx, dweight; /* absolute errors that sums in another order may bring */
};

struct data {
  const struct norm_backward_args *a;
  rdna_dtype dtype, weight_dtype;
  const void *x, *dout, *weight;
};

/* Chains of additions: 128 in a run of the host's, 32 in registers or cols / 256 in a long row, then the tree; for
 * both sides. */
static double sum_error(int64_t cols) { return 2 * (160 + (double)cols / 256) * 0x1p-24; }

/* The mean is off by |error| of the mean |x|, y by that over the deviation and by |error| of itself, and so on. */
static struct bound row_bound(const struct data *d, int64_t row) {
  double error = sum_error(d->a->cols), n = (double)d->a->cols, sum = 0, magnitude = 0, squares = 0;
  for (int64_t i = 0; i < d->a->cols; i++) {
    double x = (double)case_get(d->dtype, d->x, row * d->a->x_stride + i);
    sum += x;
    magnitude += fabs(x);
  }
  double mean = d->a->centred ? sum / n : 0, mean_error = d->a->centred ? error * magnitude / n : 0;
  for (int64_t i = 0; i < d->a->cols; i++) {
    double y = (double)case_get(d->dtype, d->x, row * d->a->x_stride + i) - mean;
    squares += y * y;
  }
  double inverse = 1 / sqrt(squares / n + (double)d->a->epsilon);
  double top_y = 0, top_g = 0, top_d = 0, mean_g = 0, mean_gy = 0;
  for (int64_t i = 0; i < d->a->cols; i++) {
    double y = fabs((double)case_get(d->dtype, d->x, row * d->a->x_stride + i) - mean) * inverse;
    double dout = fabs((double)case_get(d->dtype, d->dout, row * d->a->dout_stride + i));
    double g = dout * (d->weight ? fabs((double)case_get(d->weight_dtype, d->weight, i)) : 1);
    top_y = fmax(top_y, y), top_g = fmax(top_g, g), top_d = fmax(top_d, dout);
    mean_g += g / n, mean_gy += g * y / n;
  }
  double y_error = mean_error * inverse + 2 * error * top_y;
  double gy_error = error * mean_gy + y_error * mean_g;
  struct bound b;
  b.dx = inverse * (error * (top_g + mean_g) + gy_error * top_y + (y_error + 2 * error * top_y) * mean_gy);
  b.dweight = top_d * y_error;
  return b;
}

static struct bound worst_bound(const struct data *d) {
  struct bound worst = {0, 0};
  for (int64_t row = 0; row < d->a->rows && d->a->cols > 0; row++) {
    struct bound b = row_bound(d, row);
    if (isfinite(b.dx)) worst.dx = fmax(worst.dx, b.dx);
    if (isfinite(b.dweight)) worst.dweight = fmax(worst.dweight, b.dweight);
  }
  return worst;
}

/* Many short rows, at multiples of 16 bytes. */
static struct norm_backward_args pick_short_shape(rdna__random *random, int n) {
  static const int64_t edges[][2] = {{2, 8}, {300, 96}, {0, 16}, {9, 512}, {130, 24}, {5, 384}, {40, 64}, {3, 448}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct norm_backward_args a = {.epsilon = 1e-5f, .centred = n % 3 != 1};
  a.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 200);
  a.cols = n < edge_count ? edges[n][1] : 8 * rdna__random_range(random, 1, n % 2 ? 64 : 16);
  a.slices = rdna__random_range(random, 1, 5);
  a.x_stride = a.cols + 8 * (n % 3), a.dout_stride = a.cols, a.dx_stride = a.cols + 8 * (n % 2);
  return a;
}

/* Rows that begin anywhere, a slice's at one distance from 16 bytes. */
static struct norm_backward_args pick_edged_shape(rdna__random *random, int n) {
  static const int64_t edges[][2] = {{2, 5}, {20, 3001}, {0, 7}, {9, 4096}, {33, 1}, {3, 4095}, {17, 1000}, {5, 9}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct norm_backward_args a = {.epsilon = 1e-5f, .centred = n % 3 != 1};
  a.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 60);
  a.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 4) ? 500 : 4096);
  a.slices = n % 4 == 3 ? a.rows + rdna__random_range(random, 0, 2) : 8 * rdna__random_range(random, 1, 2);
  a.x_stride = a.cols + 8 * (n % 3), a.dout_stride = a.cols + 8 * (n % 2), a.dx_stride = a.cols + 8;
  return a;
}

/* |is_long|: rows of more than NORM_BACKWARD_HELD_COLS values, else no longer ones. |shifted|: at any alignment. */
static struct norm_backward_args pick_shape(rdna__random *random, int n, bool is_long, bool shifted) {
  static const int64_t edges[][2] = {{2, 5},   {3, 8},   {0, 7}, {5, 1024}, {3, 1032}, {9, 4096},
                                     {9, 511}, {2, 512}, {3, 1}, {40, 64},  {4, 0},    {70, 1000}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct norm_backward_args a = {.epsilon = 1e-5f, .centred = n % 3 != 1};
  a.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 60);
  a.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 4) ? 500 : 4000);
  if (is_long) {
    a.cols = NORM_BACKWARD_LONG_COLS - (n % 2 ? a.cols : 0);
    a.rows = a.rows > 5 ? 5 : a.rows;
  }
  if (n >= edge_count && n % 2) a.cols = a.cols / 8 * 8 + 8;
  if (shifted && n % 2 == 0 && a.cols > 9) a.cols -= 1 + n % 9;
  bool vectors = a.cols > NORM_BACKWARD_WAVE_COLS && !shifted;
  if (vectors) a.cols = (a.cols + 7) / 8 * 8;
  a.slices = rdna__random_range(random, 1, 5);
  int64_t gap = n < edge_count ? 0 : n % 3 == 1 ? 8 : n % 3 * (vectors ? 8 : 1);
  a.x_stride = a.cols + gap, a.dout_stride = a.cols, a.dx_stride = a.cols + 2 * gap;
  return a;
}

static int64_t span(int64_t rows, int64_t cols, int64_t stride) { return rows > 0 ? (rows - 1) * stride + cols : 0; }

/* The rows' own, which are then not found again. */
static bool add_statistics(rdna__kernel_case *c, const struct data *d) {
  const struct norm_backward_args *a = d->a;
  float *mean = rdna__case_add(c, RDNA__IN, RDNA_F32, a->rows, offsetof(struct norm_backward_args, mean));
  float *inverse = rdna__case_add(c, RDNA__IN, RDNA_F32, a->rows, offsetof(struct norm_backward_args, inverse));
  if (!mean || !inverse) return false;
  for (int64_t row = 0; row < a->rows; row++) {
    double n = (double)a->cols, sum = 0, squares = 0;
    for (int64_t i = 0; i < a->cols; i++) sum += (double)case_get(d->dtype, d->x, row * a->x_stride + i);
    for (int64_t i = 0; i < a->cols; i++) {
      double apart = (double)case_get(d->dtype, d->x, row * a->x_stride + i) - sum / n;
      squares += apart * apart;
    }
    mean[row] = (float)(sum / n);
    inverse[row] = (float)(1 / sqrt(squares / n + (double)a->epsilon));
  }
  return true;
}

RDNA_CASE_MAKER(rdna__norm_backward_case) {
  struct norm_backward_args args =
      pick_shape(random, n, strstr(kernel->name, "_long"), strstr(kernel->name, "_shifted"));
  if (strstr(kernel->name, "_short")) args = pick_short_shape(random, n);
  if (strstr(kernel->name, "_edged")) args = pick_edged_shape(random, n);
  rdna_dtype dtype = case_name_float(kernel->name);
  struct data d = {.a = &args, .dtype = dtype, .weight_dtype = strstr(kernel->name, "_wf32") ? RDNA_F32 : dtype};
  bool weighted = n % 7 != 6;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld, %lld) %lld slices, grid %u%s%s", (long long)args.rows,
           (long long)args.cols, (long long)args.slices, out_case->grid.x, args.centred ? " centred" : "",
           weighted ? "" : " no weight");
  int64_t x_count = span(args.rows, args.cols, args.x_stride), count = span(args.rows, args.cols, args.dout_stride);
  void *dout = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct norm_backward_args, dout));
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, x_count, offsetof(struct norm_backward_args, x));
  void *weight = NULL;
  if (!dout || !x) return rdna__case_no_memory(out_case);
  case_fill(random, dtype, dout, count, 1);
  for (int64_t i = 0; i < x_count; i++) case_set(dtype, x, i, (float)(rdna__random_normal(random) + n % 4));
  if (weighted) {
    weight = rdna__case_add(out_case, RDNA__IN, d.weight_dtype, args.cols, offsetof(struct norm_backward_args, weight));
    if (!weight) return rdna__case_no_memory(out_case);
    for (int64_t i = 0; i < args.cols; i++) {
      case_set(d.weight_dtype, weight, i, (float)(1 + 0.5 * rdna__random_normal(random)));
    }
  }
  d.x = x, d.dout = dout, d.weight = weight;
  struct bound bound = worst_bound(&d);
  if (args.centred && n % 2 && !add_statistics(out_case, &d)) return rdna__case_no_memory(out_case);
  if (n % 5 == 3 && x_count > 0) case_set(dtype, x, x_count / 2, n % 2 ? NAN : INFINITY);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, span(args.rows, args.cols, args.dx_stride),
                      offsetof(struct norm_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, bound.dx + case_smallest(dtype), case_spacing(dtype));
  RDNA_TRY(rdna__case_guard_rows(out_case, args.rows, args.cols, args.dx_stride));
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 2 * args.slices * args.cols,
                      offsetof(struct norm_backward_args, partial)))
    return rdna__case_no_memory(out_case);
  double chain = (double)(args.rows / args.slices + 8);
  rdna__case_tolerance(out_case, chain * (bound.dweight + 8 * chain * 0x1p-23), 0x1p-22);
  return RDNA_OK;
}

/* Rows that the other kernels do not take, and small ones. */
static struct norm_backward_args pick_long_shape(rdna__random *random, int n) {
  static const int64_t edges[][2] = {{2, 5}, {3, 4096}, {0, 7}, {7, 3001}, {3, 8200}, {2, 4097}, {9, 1024}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct norm_backward_args a = {.epsilon = 1e-5f, .centred = n % 3 != 1};
  a.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 20);
  a.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, 9000);
  if (n >= edge_count && n % 2) a.cols = a.cols / 8 * 8 + 8;
  a.slices = rdna__random_range(random, 1, 5);
  int64_t gap = n < edge_count ? 0 : n % 3 == 1 ? 8 : n % 3;
  a.x_stride = a.cols + gap, a.dout_stride = a.cols, a.dx_stride = a.cols + 2 * gap;
  return a;
}

static void describe(rdna__kernel_case *c, rdna__random *random, const struct norm_backward_args *a) {
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(c->label, sizeof c->label, "(%lld, %lld) %lld slices, grid %u%s", (long long)a->rows, (long long)a->cols,
           (long long)a->slices, c->grid.x, a->centred ? " centred" : "");
}

/* x, dout and, but for some |n|, a weight. */
static bool add_inputs(rdna__kernel_case *c, rdna__random *random, int n, struct data *d, size_t x_offset,
                       size_t dout_offset, size_t weight_offset) {
  const struct norm_backward_args *a = d->a;
  int64_t x_count = span(a->rows, a->cols, a->x_stride), count = span(a->rows, a->cols, a->dout_stride);
  void *dout = rdna__case_add(c, RDNA__IN, d->dtype, count, (uint32_t)dout_offset);
  void *x = rdna__case_add(c, RDNA__IN, d->dtype, x_count, (uint32_t)x_offset);
  void *weight = NULL;
  if (!dout || !x) return false;
  case_fill(random, d->dtype, dout, count, 1);
  for (int64_t i = 0; i < x_count; i++) case_set(d->dtype, x, i, (float)(rdna__random_normal(random) + n % 4));
  d->x = x, d->dout = dout;
  if (n % 7 == 6) return true;
  d->weight = weight = rdna__case_add(c, RDNA__IN, d->weight_dtype, a->cols, (uint32_t)weight_offset);
  if (!weight) return false;
  for (int64_t i = 0; i < a->cols; i++) {
    case_set(d->weight_dtype, weight, i, (float)(1 + 0.5 * rdna__random_normal(random)));
  }
  return true;
}

RDNA_CASE_MAKER(rdna__norm_parts_case) {
  struct norm_backward_args shape = pick_long_shape(random, n);
  rdna_dtype dtype = case_name_float(kernel->name);
  struct data d = {.a = &shape, .dtype = dtype, .weight_dtype = strstr(kernel->name, "_wf32") ? RDNA_F32 : dtype};
  struct norm_parts_args args = {.rows = shape.rows,
                                 .cols = shape.cols,
                                 .parts = (shape.cols + NORM_BACKWARD_PART_COLS - 1) / NORM_BACKWARD_PART_COLS,
                                 .dout_stride = shape.dout_stride,
                                 .x_stride = shape.x_stride,
                                 .centred = shape.centred};
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &shape);
  if (!add_inputs(out_case, random, n, &d, offsetof(struct norm_parts_args, x), offsetof(struct norm_parts_args, dout),
                  offsetof(struct norm_parts_args, weight)))
    return rdna__case_no_memory(out_case);
  /* the largest sums of magnitudes of a part: |x|, y^2, |g y| and |g| */
  double top[4] = {0}, error = sum_error(NORM_BACKWARD_PART_COLS);
  for (int64_t row = 0; row < args.rows; row++) {
    for (int64_t part = 0; part < args.parts; part++) {
      double sums[4] = {0}, mean = 0, n_here = 0;
      int64_t end = (part + 1) * NORM_BACKWARD_PART_COLS < args.cols ? (part + 1) * NORM_BACKWARD_PART_COLS : args.cols;
      for (int64_t i = part * NORM_BACKWARD_PART_COLS; i < end; i++, n_here++)
        mean += (double)case_get(dtype, d.x, row * args.x_stride + i);
      mean = args.centred ? mean / n_here : 0;
      for (int64_t i = part * NORM_BACKWARD_PART_COLS; i < end; i++) {
        double x = (double)case_get(dtype, d.x, row * args.x_stride + i), y = x - mean;
        double g = (double)case_get(dtype, d.dout, row * args.dout_stride + i);
        g *= d.weight ? (double)case_get(d.weight_dtype, d.weight, i) : 1;
        sums[0] += fabs(x) / n_here, sums[1] += y * y + fabs(y), sums[2] += fabs(g * y) + fabs(g), sums[3] += fabs(g);
      }
      for (int i = 0; i < 4; i++) top[i] = fmax(top[i], sums[i]);
    }
  }
  if (n % 5 == 3 && args.rows > 0) case_set(dtype, (void *)d.x, args.cols / 2, n % 2 ? NAN : INFINITY);
  static const size_t offsets[] = {offsetof(struct norm_parts_args, mean), offsetof(struct norm_parts_args, squares),
                                   offsetof(struct norm_parts_args, gy), offsetof(struct norm_parts_args, g)};
  for (int i = 0; i < 4; i++) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, args.rows * args.parts, (uint32_t)offsets[i]))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, error * top[i] * (1 + error * top[0]), 0);
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__norm_join_case) {
  struct norm_join_args args = {.epsilon = 1e-5f, .centred = n % 3 != 1};
  args.rows = n == 1 ? 0 : rdna__random_range(random, 1, 30);
  args.cols = n == 2 ? NORM_BACKWARD_PART_COLS : rdna__random_range(random, 1, n % 4 ? 30000 : 600000);
  args.parts = (args.cols + NORM_BACKWARD_PART_COLS - 1) / NORM_BACKWARD_PART_COLS;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld rows of %lld in %lld parts%s", (long long)args.rows,
           (long long)args.cols, (long long)args.parts, args.centred ? " centred" : "");
  static const size_t offsets[] = {offsetof(struct norm_join_args, mean), offsetof(struct norm_join_args, squares),
                                   offsetof(struct norm_join_args, gy), offsetof(struct norm_join_args, g)};
  int64_t count = args.rows * args.parts;
  for (int k = 0; k < 4; k++) {
    float *v = rdna__case_add(out_case, RDNA__IN, RDNA_F32, count, (uint32_t)offsets[k]);
    if (!v) return rdna__case_no_memory(out_case);
    for (int64_t i = 0; i < count; i++) {
      int64_t left = args.cols - i % args.parts * NORM_BACKWARD_PART_COLS;
      double size = (double)(left < NORM_BACKWARD_PART_COLS ? left : NORM_BACKWARD_PART_COLS);
      double normal = rdna__random_normal(random);
      v[i] = (float)(k == 0 ? (args.centred ? normal : 0) : k == 1 ? size * (1 + normal * normal) : size * normal);
    }
    if (n % 5 == 4 && count > 0) v[count / 2] = NAN;
  }
  for (int k = 0; args.centred && n % 2 && k < 2; k++) { /* a given mean, about that of the parts, and inverse */
    float *given = rdna__case_add(
        out_case, RDNA__IN, RDNA_F32, args.rows,
        k ? offsetof(struct norm_join_args, given_inverse) : offsetof(struct norm_join_args, given_mean));
    if (!given) return rdna__case_no_memory(out_case);
    for (int64_t i = 0; i < args.rows; i++) given[i] = (float)(k + 0.5 * rdna__random_unit(random));
  }
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 4 * args.rows, offsetof(struct norm_join_args, statistics)))
    return rdna__case_no_memory(out_case);
  /* all of about one; chains of a lane's parts and of the lanes, each step of a few roundings of values below 8 */
  rdna__case_tolerance(out_case, 64 * ((double)args.parts / 32 + 8) * 0x1p-24, 0x1p-20);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__norm_columns_case) {
  struct norm_backward_args shape = pick_long_shape(random, n);
  rdna_dtype dtype = case_name_float(kernel->name);
  struct data d = {.a = &shape, .dtype = dtype, .weight_dtype = strstr(kernel->name, "_wf32") ? RDNA_F32 : dtype};
  struct norm_columns_args args = {.rows = shape.rows,
                                   .cols = shape.cols,
                                   .slices = shape.slices,
                                   .dout_stride = shape.dout_stride,
                                   .x_stride = shape.x_stride,
                                   .dx_stride = shape.dx_stride};
  const bool direct = n % 2;
  if (direct) args.slices = shape.slices = 1, args.sums_f32[0] = n % 4 == 1, args.sums_f32[1] = n % 3 == 1;
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &shape);
  if (!add_inputs(out_case, random, n, &d, offsetof(struct norm_columns_args, x),
                  offsetof(struct norm_columns_args, dout), offsetof(struct norm_columns_args, weight)))
    return rdna__case_no_memory(out_case);
  float *statistics =
      rdna__case_add(out_case, RDNA__IN, RDNA_F32, 4 * args.rows, offsetof(struct norm_columns_args, statistics));
  if (!statistics) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, statistics, 4 * args.rows, 1);
  if (n % 5 == 4 && args.rows > 0) statistics[args.rows / 2 * 4 + 1] = NAN;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, span(args.rows, args.cols, args.dx_stride),
                      offsetof(struct norm_columns_args, dx)))
    return rdna__case_no_memory(out_case);
  /* terms are below 6 * 4 * (6 + 3 + 4), and differ by a few roundings */
  rdna__case_tolerance(out_case, 4 * 0x1p-24 * 512 + case_smallest(dtype), case_spacing(dtype));
  RDNA_TRY(rdna__case_guard_rows(out_case, args.rows, args.cols, args.dx_stride));
  double chain = (double)(args.rows / args.slices + 4), error = chain * chain * 0x1p-24 * 128;
  if (!direct) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 2 * args.slices * args.cols,
                        offsetof(struct norm_columns_args, partial)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, error, 0);
    return RDNA_OK;
  }
  for (uint32_t m = n % 8 == 7; m < 2; m++) {
    const rdna_dtype of = args.sums_f32[m] ? RDNA_F32 : dtype;
    const uint32_t offset = (uint32_t)(offsetof(struct norm_columns_args, sums) + m * sizeof args.sums[0]);
    if (!rdna__case_add(out_case, RDNA__OUT, of, args.cols, offset)) return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, error + case_smallest(of), case_spacing(of));
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__column_sum_case) {
  static const int64_t edges[][2] = {{3, 5}, {0, 7}, {1, 32}, {256, 33}, {9, 0}, {17, 1}};
  struct column_sum_args args = {.dtype = {(uint32_t)(n % 3), (uint32_t)(n / 3 % 3)}};
  args.rows = n < 6 ? edges[n][0] : rdna__random_range(random, 1, 300);
  args.cols = n < 6 ? edges[n][1] : rdna__random_range(random, 1, 700);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid =
      (rdna_grid){(uint32_t)((args.cols + COLUMN_SUM_COLS - 1) / COLUMN_SUM_COLS), (uint32_t)(1 + n % 2), 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld, %lld) to %s, %s", (long long)args.rows,
           (long long)args.cols, rdna_dtype_name((rdna_dtype)args.dtype[0]),
           n % 2 == 0   ? "none"
           : n % 8 == 7 ? "the second alone"
                        : rdna_dtype_name((rdna_dtype)args.dtype[1]));
  int64_t count = (n % 2 ? 2 : 1) * args.rows * args.cols;
  float *partial = rdna__case_add(out_case, RDNA__IN, RDNA_F32, count, offsetof(struct column_sum_args, partial));
  if (!partial) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, partial, count, 1);
  double top = 0;
  for (int64_t i = 0; i < args.cols * (n % 2 ? 2 : 1); i++) {
    double magnitude = 0;
    const float *from = partial + i / args.cols * args.rows * args.cols + i % args.cols;
    for (int64_t r = 0; r < args.rows; r++) magnitude += fabs((double)from[r * args.cols]);
    top = fmax(top, magnitude);
  }
  if (n % 5 == 4 && count > 0) partial[count / 2] = NAN;
  for (int m = n % 8 == 7; m <= n % 2; m++) {
    rdna_dtype dtype = (rdna_dtype)args.dtype[m];
    uint32_t out = (uint32_t)(offsetof(struct column_sum_args, out) + (size_t)m * sizeof args.out[0]);
    if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.cols, out)) return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, (double)(args.rows + 8) * 0x1p-24 * top + case_smallest(dtype), case_spacing(dtype));
  }
  return RDNA_OK;
}
