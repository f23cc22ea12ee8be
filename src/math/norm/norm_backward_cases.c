#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/case_values.h"
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

/* |is_long|: rows of more than NORM_BACKWARD_HELD_COLS values, else no longer ones. */
static struct norm_backward_args pick_shape(rdna__random *random, int n, bool is_long) {
  static const int64_t edges[][2] = {{2, 5},    {3, 8},    {0, 7},     {5, 1024}, {3, 1032}, {9, 4096},
                                     {3, 4104}, {2, 8192}, {2, 8200},  {2, 8191}, {3, 1},    {40, 64},
                                     {4, 0},    {1, 9001}, {70, 1000}, {3, 30000}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct norm_backward_args a = {.epsilon = 1e-5f, .centred = n % 3 != 1};
  a.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 60);
  a.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 4) ? 500 : 9000);
  if (is_long && a.cols <= NORM_BACKWARD_HELD_COLS) {
    a.cols += NORM_BACKWARD_HELD_COLS;
    a.rows = a.rows > 5 ? 5 : a.rows;
  }
  if (n >= edge_count && n % 2) a.cols = a.cols / 8 * 8 + 8;
  if (!is_long && a.cols > NORM_BACKWARD_HELD_COLS) a.cols = NORM_BACKWARD_HELD_COLS - (a.cols & 1);
  a.slices = rdna__random_range(random, 1, 5);
  int64_t gap = n < edge_count ? 0 : n % 3 == 1 ? 8 : n % 3;
  a.x_stride = a.cols + gap, a.dout_stride = a.cols, a.dx_stride = a.cols + 2 * gap;
  return a;
}

static rdna_status no_memory(const rdna__kernel_case *c) {
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case: %s", c->label);
}

static rdna_status guard_gaps(rdna__kernel_case *c, int64_t rows, int64_t cols, int64_t stride) {
  rdna__case_buffer *buffer = &c->buffers[c->buffer_count - 1];
  buffer->untouched = malloc((size_t)buffer->count + 1);
  if (!buffer->untouched) return no_memory(c);
  memset(buffer->untouched, 1, (size_t)buffer->count);
  for (int64_t r = 0; r < rows; r++) memset(buffer->untouched + r * stride, 0, (size_t)cols);
  return RDNA_OK;
}

static int64_t span(int64_t rows, int64_t cols, int64_t stride) { return rows > 0 ? (rows - 1) * stride + cols : 0; }

RDNA_CASE_MAKER(rdna__norm_backward_case) {
  struct norm_backward_args args = pick_shape(random, n, strstr(kernel->name, "_long"));
  rdna_dtype dtype = strstr(kernel->name, "_bf16") ? RDNA_BF16 : strstr(kernel->name, "_f16") ? RDNA_F16 : RDNA_F32;
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
  if (!dout || !x) return no_memory(out_case);
  case_fill(random, dtype, dout, count, 1);
  for (int64_t i = 0; i < x_count; i++) case_set(dtype, x, i, (float)(rdna__random_normal(random) + n % 4));
  if (weighted) {
    weight = rdna__case_add(out_case, RDNA__IN, d.weight_dtype, args.cols, offsetof(struct norm_backward_args, weight));
    if (!weight) return no_memory(out_case);
    for (int64_t i = 0; i < args.cols; i++) {
      case_set(d.weight_dtype, weight, i, (float)(1 + 0.5 * rdna__random_normal(random)));
    }
  }
  d.x = x, d.dout = dout, d.weight = weight;
  struct bound bound = worst_bound(&d);
  if (n % 5 == 3 && x_count > 0) case_set(dtype, x, x_count / 2, n % 2 ? NAN : INFINITY);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, span(args.rows, args.cols, args.dx_stride),
                      offsetof(struct norm_backward_args, dx)))
    return no_memory(out_case);
  rdna__case_tolerance(out_case, bound.dx + case_smallest(dtype), case_spacing(dtype));
  RDNA_TRY(guard_gaps(out_case, args.rows, args.cols, args.dx_stride));
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 2 * args.slices * args.cols,
                      offsetof(struct norm_backward_args, partial)))
    return no_memory(out_case);
  double chain = (double)(args.rows / args.slices + 8);
  rdna__case_tolerance(out_case, chain * (bound.dweight + 8 * chain * 0x1p-23), 0x1p-22);
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
  if (!partial) return no_memory(out_case);
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
    if (!rdna__case_add(out_case, RDNA__OUT, dtype, args.cols, out)) return no_memory(out_case);
    rdna__case_tolerance(out_case, (double)(args.rows + 8) * 0x1p-24 * top + case_smallest(dtype), case_spacing(dtype));
  }
  return RDNA_OK;
}
