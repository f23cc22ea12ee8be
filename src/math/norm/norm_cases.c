#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/norm/long_norm_kernels.h"
#include "math/norm/norm_kernels.h"

/* What decides how far two sums may differ: a chain of at most 128 additions in a run of the host's, 32 in a GPU's
 * registers or cols / 256 in a long row, then the tree and a few roundings; for both sides. */
static double sum_error(int64_t cols) { return 2 * (160 + (double)cols / 256) * 0x1p-24; }

struct shape {
  int64_t rows, cols;
  int64_t stride[3];
};

/* Rows that allow 16-byte accesses and fit a wave, for the kernels that want that. */
static struct shape pick_wave_shape(rdna__random *random, int n, rdna_dtype dtype) {
  static const int64_t edges[][2] = {{2, 8}, {0, 16}, {19, 2048}, {3, 1032}, {9, 512}, {40, 128}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  int64_t most = NORM_WAVE_BYTES / (int64_t)rdna_dtype_block_bytes(dtype) / 8;
  struct shape s;
  s.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 30);
  s.cols = n < edge_count ? edges[n][1] : 8 * rdna__random_range(random, 1, most);
  for (int i = 0; i < 3; i++) s.stride[i] = s.cols + 8 * rdna__random_range(random, 0, n % 3);
  return s;
}

static struct shape pick_shape(const rdna__kernel_info *kernel, rdna__random *random, int n, rdna_dtype dtype) {
  static const int64_t edges[][2] = {{2, 5},     {0, 7},    {3, 1},    {3, 4096}, {2, 8192},
                                     {2, 8200},  {2, 8191}, {1, 9001}, {7, 2048}, {4, 0},
                                     {1, 30000}, {150, 96}, {70, 32},  {3, 4095}, {5, 1001}};
  if (strstr(kernel->name, "_waves")) return pick_wave_shape(random, n, dtype);
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct shape s;
  s.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 12);
  s.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 3) ? 500 : 9000);
  if (n >= edge_count && n % 2) s.cols = s.cols / 8 * 8 + 8;
  const bool shifted = strstr(kernel->name, "_shifted");
  const bool wide = !shifted && !strstr(kernel->name, "_narrow") && s.cols > NORM_WAVE_COLS;
  if (wide) s.cols = (s.cols + 7) / 8 * 8;
  if (shifted) {
    const int64_t most = NORM_SHIFTED_BYTES / (int64_t)rdna_dtype_block_bytes(dtype);
    s.cols = s.cols > most ? most - n % 10 : s.cols;
  }
  for (int i = 0; i < 3; i++) {
    s.stride[i] = s.cols;
    if (n >= edge_count && n % 3) s.stride[i] += n % 3 == 1 ? 8 : rdna__random_range(random, 0, 3) * (wide ? 8 : 1);
  }
  return s;
}

static int64_t span(const struct shape *s, int which) {
  return s->rows > 0 ? (s->rows - 1) * s->stride[which] + s->cols : 0;
}

/* Rows that hold what sums do not like: NaN, infinity, or nothing but one value. */
static void spoil_row(rdna__random *random, rdna_dtype dtype, void *x, int64_t begin, int64_t cols) {
  int64_t at = begin + (int64_t)rdna__random_below(random, (uint64_t)cols);
  switch (rdna__random_below(random, 4)) {
    case 0:
      case_set(dtype, x, at, NAN);
      break;
    case 1:
      case_set(dtype, x, at, INFINITY);
      break;
    case 2:
      for (int64_t i = 0; i < cols; i++) case_set(dtype, x, begin + i, 0);
      break;
    default:
      for (int64_t i = 0; i < cols; i++) case_set(dtype, x, begin + i, 3);
  }
}

static void *add_rows(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, rdna_dtype dtype,
                      const struct shape *s, int which, size_t offset, double mean) {
  void *data = rdna__case_add(c, role, dtype, span(s, which), (uint32_t)offset);
  if (!data || role == RDNA__OUT) return data;
  for (int64_t i = 0; i < span(s, which); i++) case_set(dtype, data, i, (float)(rdna__random_normal(random) + mean));
  if (s->rows > 1 && s->cols > 0 && rdna__random_below(random, 3) == 0) {
    spoil_row(random, dtype, data, (int64_t)rdna__random_below(random, (uint64_t)s->rows) * s->stride[which], s->cols);
  }
  return data;
}

/* cols factors about one, or none. */
static bool add_weight(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t cols, size_t offset,
                       float **out_copy) {
  *out_copy = calloc((size_t)cols + 1, sizeof(float));
  void *data = rdna__case_add(c, RDNA__IN, dtype, cols, (uint32_t)offset);
  if (!data || !*out_copy) return false;
  for (int64_t i = 0; i < cols; i++) {
    case_set(dtype, data, i, (float)(1 + 0.5 * rdna__random_normal(random)));
    (*out_copy)[i] = case_get(dtype, data, i);
  }
  return true;
}

static bool is_narrow(const char *name) { return strstr(name, "_narrow") != NULL; }
static rdna_dtype weight_dtype(const char *name) {
  return strstr(name, "_wf32") || is_narrow(name) ? RDNA_F32 : case_name_float(name);
}
/* Of x, and of the residual. */
static rdna_dtype values_dtype(const char *name) {
  return strstr(name, "_narrow_f32") ? RDNA_F32 : case_name_float(name);
}
static rdna_dtype residual_dtype(const char *name) { return is_narrow(name) ? RDNA_F32 : case_name_float(name); }

static rdna_status set_rows_tolerance(rdna__kernel_case *c, rdna_dtype dtype, int64_t cols) {
  rdna__case_tolerance(c, case_smallest(dtype), case_spacing(dtype) + sum_error(cols) + 8 * 0x1p-24);
  return RDNA_OK;
}

static void describe(rdna__kernel_case *c, rdna__random *random, const struct shape *s, bool weighted) {
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, s->rows > 1 ? s->rows : 1), 1, 1};
  snprintf(c->label, sizeof c->label, "(%lld, %lld) strides %lld %lld %lld grid %u%s", (long long)s->rows,
           (long long)s->cols, (long long)s->stride[0], (long long)s->stride[1], (long long)s->stride[2], c->grid.x,
           weighted ? "" : " no weight");
}

RDNA_CASE_MAKER(rdna__rms_norm_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct shape s = pick_shape(kernel, random, n, dtype);
  struct rms_norm_args args = {
      .rows = s.rows, .cols = s.cols, .x_stride = s.stride[0], .out_stride = s.stride[2], .epsilon = 1e-5f};
  bool weighted = n % 7 != 6;
  float *copy = NULL;
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, weighted);
  bool fits =
      add_rows(out_case, random, RDNA__IN, values_dtype(kernel->name), &s, 0, offsetof(struct rms_norm_args, x), 0);
  if (weighted) {
    fits = fits && add_weight(out_case, random, weight_dtype(kernel->name), s.cols,
                              offsetof(struct rms_norm_args, weight), &copy);
  }
  free(copy);
  fits = fits && add_rows(out_case, random, RDNA__OUT, dtype, &s, 2, offsetof(struct rms_norm_args, out), 0);
  if (!fits) return rdna__case_no_memory(out_case);
  RDNA_TRY(rdna__case_guard_rows(out_case, s.rows, s.cols, s.stride[2]));
  return set_rows_tolerance(out_case, dtype, s.cols);
}

RDNA_CASE_MAKER(rdna__add_rms_norm_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct shape s = pick_shape(kernel, random, n, dtype);
  struct add_rms_norm_args args = {.rows = s.rows,
                                   .cols = s.cols,
                                   .x_stride = s.stride[0],
                                   .residual_stride = s.stride[1],
                                   .out_stride = s.stride[2],
                                   .epsilon = 1e-5f};
  bool weighted = n % 7 != 6;
  float *copy = NULL;
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, weighted);
  bool fits =
      add_rows(out_case, random, RDNA__IN, values_dtype(kernel->name), &s, 0, offsetof(struct add_rms_norm_args, x), 0);
  /* the sum is exact in both, so no tolerance */
  fits = fits && add_rows(out_case, random, RDNA__INOUT, residual_dtype(kernel->name), &s, 1,
                          offsetof(struct add_rms_norm_args, residual), 0);
  if (weighted) {
    fits = fits && add_weight(out_case, random, weight_dtype(kernel->name), s.cols,
                              offsetof(struct add_rms_norm_args, weight), &copy);
  }
  free(copy);
  fits = fits && add_rows(out_case, random, RDNA__OUT, dtype, &s, 2, offsetof(struct add_rms_norm_args, out), 0);
  if (!fits) return rdna__case_no_memory(out_case);
  RDNA_TRY(rdna__case_guard_rows(out_case, s.rows, s.cols, s.stride[2]));
  return set_rows_tolerance(out_case, dtype, s.cols);
}

static double largest(const float *v, int64_t count, double none) {
  if (!v) return none;
  double result = 0;
  for (int64_t i = 0; i < count; i++) result = fmax(result, fabs((double)v[i]));
  return result;
}

/* The mean is off by sum_error of the largest |x|, which the division by the deviation magnifies; the deviation is off
 * by sum_error of itself. Adding the bias may cancel, so all of this is an absolute error. */
static double layer_error(rdna_dtype dtype, const void *x, const struct shape *s, const float *weight,
                          const float *bias, double epsilon, double out_statistics[2]) {
  double worst = 0, error = sum_error(s->cols) + 8 * 0x1p-24;
  out_statistics[0] = out_statistics[1] = 0;
  for (int64_t r = 0; r < s->rows && s->cols > 0; r++) {
    double sum = 0, squares = 0, top = 0, reach = 0;
    for (int64_t i = 0; i < s->cols; i++) sum += (double)case_get(dtype, x, r * s->stride[0] + i);
    double mean = sum / (double)s->cols;
    for (int64_t i = 0; i < s->cols; i++) {
      double v = (double)case_get(dtype, x, r * s->stride[0] + i);
      squares += (v - mean) * (v - mean);
      top = fmax(top, fabs(v));
      reach = fmax(reach, fabs(v - mean));
    }
    double inverse = 1 / sqrt(squares / (double)s->cols + epsilon), row = error * (top + reach) * inverse;
    if (!isfinite(row)) continue;
    worst = fmax(worst, row);
    /* The distances sum up to zero, so that an error of the mean adds but its square to the variance. */
    double apart = error * top * inverse;
    out_statistics[0] = fmax(out_statistics[0], error * top);
    out_statistics[1] = fmax(out_statistics[1], (error + apart * apart) * inverse);
  }
  return worst * largest(weight, s->cols, 1) + 0x1p-22 * largest(bias, s->cols, 0);
}

RDNA_CASE_MAKER(rdna__layer_norm_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct shape s = pick_shape(kernel, random, n, dtype);
  struct layer_norm_args args = {
      .rows = s.rows, .cols = s.cols, .x_stride = s.stride[0], .out_stride = s.stride[2], .epsilon = 1e-5f};
  float *weight = NULL, *bias = NULL;
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, n % 7 != 6);
  void *x = add_rows(out_case, random, RDNA__IN, dtype, &s, 0, offsetof(struct layer_norm_args, x), n % 4 * 2.0);
  bool fits = x != NULL;
  if (n % 7 != 6) {
    fits = fits && add_weight(out_case, random, weight_dtype(kernel->name), s.cols,
                              offsetof(struct layer_norm_args, weight), &weight);
  }
  if (n % 5 != 4) {
    fits = fits && add_weight(out_case, random, weight_dtype(kernel->name), s.cols,
                              offsetof(struct layer_norm_args, bias), &bias);
  }
  fits = fits && add_rows(out_case, random, RDNA__OUT, dtype, &s, 2, offsetof(struct layer_norm_args, out), 0);
  rdna_status status =
      fits ? rdna__case_guard_rows(out_case, s.rows, s.cols, s.stride[2]) : rdna__case_no_memory(out_case);
  if (status == RDNA_OK) {
    double statistics[2];
    double absolute = layer_error(dtype, x, &s, weight, bias, (double)args.epsilon, statistics);
    rdna__case_tolerance(out_case, absolute + case_smallest(dtype), case_spacing(dtype));
    static const size_t places[] = {offsetof(struct layer_norm_args, mean), offsetof(struct layer_norm_args, inverse)};
    for (int i = 0; i < 2 && status == RDNA_OK; i++) {
      if (n % 4 == 3 - i) continue;
      if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, s.rows, (uint32_t)places[i])) {
        status = rdna__case_no_memory(out_case);
      }
      rdna__case_tolerance(out_case, statistics[i], 0);
    }
  }
  free(weight);
  free(bias);
  return status;
}

/* Rows in parts of one step or of two, some of which are short. */
static struct shape pick_parts(rdna__random *random, int n, rdna_dtype dtype, int64_t *out_part_cols,
                               int64_t *out_parts) {
  const int64_t step = LONG_NORM_STEP_BYTES / (int64_t)rdna_dtype_block_bytes(dtype);
  const int64_t edges[][2] = {{2, 5}, {0, 7}, {3, 2 * step}, {1, step + 8}, {5, 1001}, {2, 3 * step + 1}, {1, 1}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct shape s;
  s.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 4);
  s.cols =
      n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 3) ? 3000 : 3 * step);
  if (n >= edge_count && n % 2) s.cols = s.cols / 8 * 8 + 8;
  for (int i = 0; i < 3; i++) {
    s.stride[i] = s.cols;
    if (n >= edge_count && n % 3) s.stride[i] += n % 3 == 1 ? 8 : rdna__random_range(random, 0, 9);
  }
  *out_part_cols = (1 + n % 2) * step;
  *out_parts = (s.cols - 1) / *out_part_cols + 1;
  return s;
}

/* The mean of a part with an infinite value is infinite in one order of summing and NaN in another. */
static void infinite_to_nan(rdna_dtype dtype, void *x, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (isinf(case_get(dtype, x, i))) case_set(dtype, x, i, NAN);
}

RDNA_CASE_MAKER(rdna__long_norm_part_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct long_norm_part_args args = {.centred = n % 3 != 1};
  struct shape s = pick_parts(random, n, dtype, &args.part_cols, &args.parts);
  const bool adds = n % 4 == 2;
  args.rows = s.rows, args.cols = s.cols, args.x_stride = s.stride[0], args.residual_stride = s.stride[1];
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, true);
  void *x = add_rows(out_case, random, RDNA__IN, dtype, &s, 0, offsetof(struct long_norm_part_args, x), n % 4 * 2.0);
  void *r = NULL;
  if (adds) {
    /* the sum is exact in both, so no tolerance */
    r = add_rows(out_case, random, RDNA__INOUT, dtype, &s, 1, offsetof(struct long_norm_part_args, residual), 0);
  }
  if (!x || (adds && !r)) return rdna__case_no_memory(out_case);
  if (args.centred) infinite_to_nan(dtype, x, span(&s, 0));
  if (args.centred && adds) infinite_to_nan(dtype, r, span(&s, 1));
  double top[2] = {0}; /* the largest magnitudes of a part: of the mean of |x|, and of squares */
  for (int64_t item = 0; item < s.rows * args.parts; item++) {
    int64_t row = item / args.parts, begin = item % args.parts * args.part_cols;
    int64_t end = begin + args.part_cols < s.cols ? begin + args.part_cols : s.cols;
    double sum = 0, squares = 0, magnitude = 0, count = (double)(end - begin);
    for (int pass = 0; pass < 2; pass++) {
      for (int64_t i = begin; i < end; i++) {
        double v = (double)case_get(dtype, x, row * s.stride[0] + i);
        if (adds) v += (double)case_get(dtype, r, row * s.stride[1] + i);
        double y = v - (args.centred ? sum / count : 0);
        if (pass == 0) magnitude += fabs(v);
        if (pass == 1) squares += y * y + fabs(y);
      }
      for (int64_t i = begin; pass == 0 && i < end; i++) {
        sum += (double)case_get(dtype, x, row * s.stride[0] + i);
        if (adds) sum += (double)case_get(dtype, r, row * s.stride[1] + i);
      }
    }
    if (isfinite(squares)) top[0] = fmax(top[0], magnitude / count), top[1] = fmax(top[1], squares);
  }
  double error = sum_error(args.part_cols);
  static const size_t offsets[] = {offsetof(struct long_norm_part_args, mean),
                                   offsetof(struct long_norm_part_args, squares)};
  for (int i = 0; i < 2; i++) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, s.rows * args.parts, (uint32_t)offsets[i]))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, error * top[i] * (1 + error * top[0]), 0);
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__long_norm_finish_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct long_norm_finish_args args = {.epsilon = 1e-5f};
  struct shape s = pick_parts(random, n, dtype, &args.part_cols, &args.parts);
  const bool weighted = n % 7 != 6, biased = n % 5 != 4, centred = n % 3 != 1;
  float *copy[2] = {NULL, NULL};
  args.rows = s.rows, args.cols = s.cols, args.x_stride = s.stride[0], args.out_stride = s.stride[2];
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &s, weighted);
  void *x = add_rows(out_case, random, RDNA__IN, dtype, &s, 0, offsetof(struct long_norm_finish_args, x), 0);
  bool fits = x != NULL;
  if (weighted) {
    fits = fits && add_weight(out_case, random, weight_dtype(kernel->name), s.cols,
                              offsetof(struct long_norm_finish_args, weight), &copy[0]);
  }
  if (biased) {
    fits = fits && add_weight(out_case, random, weight_dtype(kernel->name), s.cols,
                              offsetof(struct long_norm_finish_args, bias), &copy[1]);
  }
  double top_weight = largest(copy[0], s.cols, 1), top_bias = largest(copy[1], s.cols, 0);
  free(copy[0]);
  free(copy[1]);
  float *mean =
      rdna__case_add(out_case, RDNA__IN, RDNA_F32, s.rows * args.parts, offsetof(struct long_norm_finish_args, mean));
  float *squares = rdna__case_add(out_case, RDNA__IN, RDNA_F32, s.rows * args.parts,
                                  offsetof(struct long_norm_finish_args, squares));
  if (!fits || !mean || !squares) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < s.rows * args.parts; i++) { /* about as of normal numbers */
    int64_t left = s.cols - i % args.parts * args.part_cols, size = left < args.part_cols ? left : args.part_cols;
    mean[i] = centred ? (float)rdna__random_normal(random) : 0;
    squares[i] = (float)((double)size * (0.5 + rdna__random_unit(random)));
  }
  if (n % 5 == 3 && s.rows > 0) squares[s.rows / 2 * args.parts] = NAN;
  if (!add_rows(out_case, random, RDNA__OUT, dtype, &s, 2, offsetof(struct long_norm_finish_args, out), 0))
    return rdna__case_no_memory(out_case);
  /* Deviations are above 0.7, values below 6 and means below 5: a few roundings of 11 / 0.7, and of the bias. */
  double error = (2 * (double)args.parts + 16) * 0x1p-24;
  rdna__case_tolerance(out_case, 16 * error * top_weight + 0x1p-22 * top_bias + case_smallest(dtype),
                       case_spacing(dtype));
  RDNA_TRY(rdna__case_guard_rows(out_case, s.rows, s.cols, s.stride[2]));
  if (s.cols == 0) return RDNA_OK;
  static const size_t places[] = {offsetof(struct long_norm_finish_args, row_mean),
                                  offsetof(struct long_norm_finish_args, inverse)};
  for (int i = 0; i < 2; i++) {
    if (n % 4 == 3 - i) continue;
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, s.rows, (uint32_t)places[i]))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 5 * error, 16 * error);
  }
  return RDNA_OK;
}
