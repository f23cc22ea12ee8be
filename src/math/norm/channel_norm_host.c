/* Batch and group norm on the host, computed in double. */
#include <math.h>

#include "math/common/host/doubles.h"
#include "math/norm/channel_norm_kernels.h"

enum { CHUNK = 256, WAYS = 8 };

struct work {
  rdna_dtype dtype, keeper; /* of the tensors, and of partial results */
  const void *args;
};

static rdna_dtype keeper_of(rdna_dtype dtype) { return dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32; }
static rdna_dtype own_or_f32(rdna_dtype dtype, uint32_t is_f32) { return is_f32 ? RDNA_F32 : dtype; }

static double sum_of(const double *v, int64_t n) {
  double part[WAYS] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + WAYS <= n; i += WAYS)
    for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
  for (; i < n; i++) sum += v[i];
  for (int j = 0; j < WAYS; j++) sum += part[j];
  return sum;
}

/* Visits the values of columns [col, col + n) of a slice: |many| at a time along a run if n is 1, or across columns. */
struct visit {
  const struct channel_partial_args *a;
  rdna_dtype dtype;
  int64_t outer, col, cols;
  struct channel_slice slice;
};

/* Adds to sums (cols) what |step| makes of x and dout with its column's number; |n| values are of one column, or of n.
 */
typedef void step(double *sums, const double *x, const double *dout, const double *centre, int64_t n, bool across);

static void add_values(double *sums, const double *x, const double *dout, const double *centre, int64_t n,
                       bool across) {
  if (!across) {
    sums[0] += sum_of(x, n);
    return;
  }
  for (int64_t i = 0; i < n; i++) sums[i] += x[i];
}
static void add_squares(double *sums, const double *x, const double *dout, const double *centre, int64_t n,
                        bool across) {
  double v[CHUNK];
  for (int64_t i = 0; i < n; i++) {
    double apart = x[i] - centre[across ? i : 0];
    v[i] = apart * apart;
  }
  add_values(sums, v, NULL, NULL, n, across);
}
static void add_dout(double *sums, const double *x, const double *dout, const double *centre, int64_t n, bool across) {
  add_values(sums, dout, NULL, NULL, n, across);
}
static void add_products(double *sums, const double *x, const double *dout, const double *centre, int64_t n,
                         bool across) {
  double v[CHUNK];
  for (int64_t i = 0; i < n; i++) v[i] = dout[i] * (x[i] - centre[across ? i : 0]);
  add_values(sums, v, NULL, NULL, n, across);
}

static void visit_slice(const struct visit *w, step *first, step *second, double *sums, double *more,
                        const double *centre) {
  const struct channel_partial_args *a = w->a;
  double x[CHUNK], dout[CHUNK];
  bool across = a->slices.len == 1;
  for (int64_t run = w->slice.run; run < w->slice.run_end; run++) {
    int64_t at = ((w->outer * a->slices.runs + run) * a->cols + w->col) * a->slices.len + w->slice.begin;
    int64_t count = across ? w->cols : w->slice.end - w->slice.begin;
    for (int64_t i = 0, n; i < count; i += n) {
      n = count - i < CHUNK ? count - i : CHUNK;
      load_doubles(w->dtype, a->x, at + i, 1, n, x);
      if (a->dout) load_doubles(w->dtype, a->dout, at + i, 1, n, dout);
      first(sums, x, dout, centre, n, across);
      if (second) second(more, x, dout, centre, n, across);
    }
  }
}

static void partial_units(const struct work *work, bool gradients, int64_t begin, int64_t end) {
  const struct channel_partial_args *a = work->args;
  int64_t tile = a->slices.len == 1 ? CHUNK : 1, tiles = (a->cols + tile - 1) / tile;
  int64_t all = (int64_t)a->outer * a->slices.slices * a->cols;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t block = unit / tiles, slice = block % a->slices.slices, col = unit % tiles * tile;
    struct visit w = {.a = a, .dtype = work->dtype, .outer = block / a->slices.slices, .col = col};
    double first[CHUNK] = {0}, second[CHUNK] = {0}, centre[CHUNK] = {0};
    w.cols = a->cols - col < tile ? a->cols - col : tile;
    w.slice = channel_slice_at(&a->slices, (uint32_t)slice);
    double count = (double)channel_slice_count(w.slice);
    if (gradients) {
      for (int64_t i = 0; i < w.cols; i++) {
        centre[i] = load_double(own_or_f32(work->dtype, a->mean_f32), a->mean,
                                w.outer * (a->cols / a->width) + (col + i) / a->width);
      }
      if (count > 0) visit_slice(&w, add_dout, add_products, first, second, centre);
    } else if (count > 0) {
      visit_slice(&w, add_values, NULL, first, NULL, centre);
      for (int64_t i = 0; i < w.cols; i++) first[i] /= count;
      visit_slice(&w, add_squares, NULL, second, NULL, first);
    }
    store_doubles(work->keeper, a->partial, block * a->cols + col, 1, w.cols, first);
    store_doubles(work->keeper, a->partial, all + block * a->cols + col, 1, w.cols, second);
  }
}
static void moments_units(void *context, int64_t begin, int64_t end) { partial_units(context, false, begin, end); }
static void gradients_units(void *context, int64_t begin, int64_t end) { partial_units(context, true, begin, end); }

static void partial(const void *args, rdna_dtype dtype, bool gradients) {
  struct channel_partial_args a = *(const struct channel_partial_args *)args;
  if (!gradients) a.dout = NULL;
  struct work work = {dtype, keeper_of(dtype), &a};
  int64_t tile = a.slices.len == 1 ? CHUNK : 1,
          units = (int64_t)a.outer * a.slices.slices * ((a.cols + tile - 1) / tile);
  int64_t values = a.slices.slice_runs * a.slices.part * tile;
  rdna__parallel_for(units, 1 + 16384 / (values + 1), gradients ? gradients_units : moments_units, &work);
}

static double inverse_of(uint32_t variance, double spread, double epsilon) {
  return variance ? 1 / sqrt(spread + epsilon) : spread;
}

static void moments_outs(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct channel_moments_end_args *a = work->args;
  int64_t groups = a->cols / a->width, all = (int64_t)a->outer * a->slices.slices * a->cols;
  rdna_dtype running = (rdna_dtype)a->running_dtype;
  for (int64_t out = begin; out < end; out++) {
    double n = 0, mean = 0, squares = 0;
    for (int64_t slice = 0; slice < a->slices.slices; slice++) {
      double count = (double)channel_slice_count(channel_slice_at(&a->slices, (uint32_t)slice));
      for (int64_t i = 0; i < a->width && count > 0; i++) {
        int64_t at = (out / groups * a->slices.slices + slice) * a->cols + out % groups * a->width + i;
        double apart = load_double(work->keeper, a->partial, at) - mean, sum = n + count;
        mean += apart * (count / sum);
        squares += load_double(work->keeper, a->partial, all + at) + apart * apart * n * (count / sum);
        n = sum;
      }
    }
    store_double(work->keeper, a->mean, out, mean);
    store_double(work->keeper, a->inverse, out, 1 / sqrt(squares / n + a->epsilon));
    if (n == 0) continue;
    if (a->running_mean) {
      double old = load_double(running, a->running_mean, out);
      store_double(running, a->running_mean, out, (1 - a->momentum) * old + a->momentum * mean);
    }
    if (a->running_var) {
      double old = load_double(running, a->running_var, out);
      store_double(running, a->running_var, out, (1 - a->momentum) * old + a->momentum * (squares / (n - 1)));
    }
  }
}

static void slopes(const struct work *work) {
  const struct channel_gradients_end_args *a = work->args;
  int64_t groups = a->cols / a->width, outs = a->outer * groups, all = (int64_t)a->outer * a->slices.slices * a->cols;
  double n = (double)((int64_t)a->width * a->slices.runs * a->slices.len);
  for (int64_t out = 0; out < outs && a->slope_groups > 0; out++) {
    double d = 0, dy = 0;
    for (int64_t slice = 0; slice < a->slices.slices; slice++) {
      for (int64_t i = 0; i < a->width; i++) {
        int64_t col = out % groups * a->width + i, at = (out / groups * a->slices.slices + slice) * a->cols + col;
        double weight = a->weight ? load_double((rdna_dtype)a->weight_dtype, a->weight, col) : 1;
        d += weight * load_double(work->keeper, a->partial, at);
        dy += weight * load_double(work->keeper, a->partial, all + at);
      }
    }
    double inverse = inverse_of(a->variance, load_double((rdna_dtype)a->spread_dtype, a->spread, out), a->epsilon);
    store_double(work->keeper, a->slope, out, -(d / n * inverse));
    store_double(work->keeper, a->slope, outs + out, -(dy / n * inverse * inverse * inverse));
  }
}

static void weights_cols(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct channel_gradients_end_args *a = work->args;
  int64_t groups = a->cols / a->width, all = (int64_t)a->outer * a->slices.slices * a->cols;
  for (int64_t col = begin; col < end; col++) {
    double d = 0, dy = 0;
    for (int64_t i = 0; i < (int64_t)a->outer * a->slices.slices; i++) {
      double spread =
          load_double((rdna_dtype)a->spread_dtype, a->spread, i / a->slices.slices * groups + col / a->width);
      d += load_double(work->keeper, a->partial, i * a->cols + col);
      dy +=
          inverse_of(a->variance, spread, a->epsilon) * load_double(work->keeper, a->partial, all + i * a->cols + col);
    }
    if (a->dweight) store_double((rdna_dtype)a->gradient_dtype, a->dweight, col, dy);
    if (a->dbias) store_double((rdna_dtype)a->gradient_dtype, a->dbias, col, d);
  }
}

/* What a column has of the mapping. */
struct coefficients {
  double mean, scale, shift, slope;
};

static struct coefficients coefficients_at(const struct work *work, bool gradient, int64_t outer, int64_t col) {
  const struct channel_map_args *a = work->args;
  int64_t groups = a->cols / a->width, i = outer * groups + col / a->width;
  rdna_dtype statistic = own_or_f32(work->dtype, a->statistic_f32), weight = own_or_f32(work->dtype, a->weight_f32);
  struct coefficients c = {.mean = load_double(statistic, a->mean, i)};
  c.scale = inverse_of(a->variance, load_double(statistic, a->spread, i), a->epsilon);
  if (a->weight) c.scale *= load_double(weight, a->weight, col);
  if (gradient) {
    c.shift = a->slope ? load_double(work->keeper, a->slope, i) : 0;
    c.slope = a->slope ? load_double(work->keeper, a->slope, a->outer * groups + i) : 0;
  } else if (a->bias) {
    c.shift = load_double(weight, a->bias, col);
  }
  return c;
}

static void map_values(const struct work *work, bool gradient, const struct coefficients *c, bool across, int64_t at,
                       int64_t n) {
  const struct channel_map_args *a = work->args;
  double v[CHUNK], w[CHUNK] = {0};
  load_doubles(work->dtype, a->first, at, 1, n, v);
  if (a->second) load_doubles(work->dtype, a->second, at, 1, n, w);
  if (gradient) {
    for (int64_t i = 0; i < n; i++) {
      const struct coefficients *k = c + (across ? i : 0);
      v[i] = a->slope ? v[i] * k->scale + ((w[i] - k->mean) * k->slope + k->shift) : v[i] * k->scale;
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      const struct coefficients *k = c + (across ? i : 0);
      v[i] = (v[i] - k->mean) * k->scale + k->shift + w[i];
    }
    for (int64_t i = 0; i < n && a->relu; i++) v[i] = v[i] < 0 ? 0 : v[i];
  }
  store_doubles(work->dtype, a->out, at, 1, n, v);
}

/* A run of a column, or of CHUNK columns where len is 1. */
static void map_units(const struct work *work, bool gradient, int64_t begin, int64_t end) {
  const struct channel_map_args *a = work->args;
  bool across = a->len == 1;
  int64_t tile = across ? CHUNK : 1, tiles = (a->cols + tile - 1) / tile, known_outer = -1, known_col = -1;
  struct coefficients c[CHUNK];
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t run = unit / tiles, col = unit % tiles * tile, cols = a->cols - col < tile ? a->cols - col : tile;
    if (run / a->runs != known_outer || col != known_col) {
      for (int64_t i = 0; i < cols; i++) c[i] = coefficients_at(work, gradient, run / a->runs, col + i);
      known_outer = run / a->runs, known_col = col;
    }
    int64_t at = (run * a->cols + col) * a->len, count = across ? cols : a->len;
    for (int64_t i = 0; i < count; i += CHUNK) {
      map_values(work, gradient, c, across, at + i, count - i < CHUNK ? count - i : CHUNK);
    }
  }
}
static void scale_units(void *context, int64_t begin, int64_t end) { map_units(context, false, begin, end); }
static void gradient_units(void *context, int64_t begin, int64_t end) { map_units(context, true, begin, end); }

static void map(const void *args, rdna_dtype dtype, bool gradient) {
  struct channel_map_args a = *(const struct channel_map_args *)args;
  struct work work = {dtype, keeper_of(dtype), &a};
  int64_t tile = a.len == 1 ? CHUNK : 1, units = (int64_t)a.outer * a.runs * ((a.cols + tile - 1) / tile);
  rdna__parallel_for(units, 1 + 16384 / (a.len * tile + 1), gradient ? gradient_units : scale_units, &work);
}

#define CHANNEL_LAYOUT_TWINS(layout, type, dtype)                                                        \
  void RDNA_HOST_KERNEL(channel_partial_moments_##layout##_##type)(const void *args, rdna_grid grid) {   \
    partial(args, dtype, false);                                                                         \
  }                                                                                                      \
  void RDNA_HOST_KERNEL(channel_partial_gradients_##layout##_##type)(const void *args, rdna_grid grid) { \
    partial(args, dtype, true);                                                                          \
  }                                                                                                      \
  void RDNA_HOST_KERNEL(channel_map_scale_##layout##_##type)(const void *args, rdna_grid grid) {         \
    map(args, dtype, false);                                                                             \
  }                                                                                                      \
  void RDNA_HOST_KERNEL(channel_map_gradient_##layout##_##type)(const void *args, rdna_grid grid) {      \
    map(args, dtype, true);                                                                              \
  }
#define CHANNEL_TWINS(type, dtype)        \
  CHANNEL_LAYOUT_TWINS(runs, type, dtype) \
  CHANNEL_LAYOUT_TWINS(columns, type, dtype)
CHANNEL_TWINS(f32, RDNA_F32)
CHANNEL_TWINS(f16, RDNA_F16)
CHANNEL_TWINS(bf16, RDNA_BF16)
CHANNEL_TWINS(f64, RDNA_F64)

#define CHANNEL_END_TWINS(type, dtype)                                                      \
  void RDNA_HOST_KERNEL(channel_moments_end_##type)(const void *args, rdna_grid grid) {     \
    struct channel_moments_end_args a = *(const struct channel_moments_end_args *)args;     \
    struct work work = {dtype, dtype, &a};                                                  \
    rdna__parallel_for(a.outer *(a.cols / a.width), 16, moments_outs, &work);               \
  }                                                                                         \
  void RDNA_HOST_KERNEL(channel_gradients_end_##type)(const void *args, rdna_grid grid) {   \
    struct channel_gradients_end_args a = *(const struct channel_gradients_end_args *)args; \
    struct work work = {dtype, dtype, &a};                                                  \
    slopes(&work);                                                                          \
    if (a.dweight || a.dbias) rdna__parallel_for(a.cols, 16, weights_cols, &work);          \
  }
CHANNEL_END_TWINS(f32, RDNA_F32)
CHANNEL_END_TWINS(f64, RDNA_F64)
