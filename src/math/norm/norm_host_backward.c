#include <math.h>

#include "math/common/host/floats.h"
#include "math/norm/norm_backward_kernels.h"

enum { RUN = 512 };

struct work {
  struct norm_backward_args a;
  rdna_dtype dtype, weight_dtype;
  bool neighbours; /* a slice's rows */
};

struct run {
  float x[RUN], dout[RUN], weight[RUN];
};

static void load_run(const struct work *w, const char *x, const char *dout, int64_t at, int64_t n, struct run *run) {
  int64_t bytes = floats_bytes(w->dtype);
  floats_load(w->dtype, x + at * bytes, n, run->x);
  floats_load(w->dtype, dout + at * bytes, n, run->dout);
  if (w->a.weight) {
    floats_load(w->weight_dtype, (const char *)w->a.weight + at * floats_bytes(w->weight_dtype), n, run->weight);
  } else {
    for (int64_t i = 0; i < n; i++) run->weight[i] = 1;
  }
}

static int64_t run_length(int64_t left) { return left < RUN ? left : RUN; }

/* Partial sums in WAYS, so that they run in vectors; runs are added in double. */
enum { WAYS = 16 };
static double add_up(const float *part) {
  double sum = 0;
  for (int j = 0; j < WAYS; j++) sum += (double)part[j];
  return sum;
}
static double run_sum(const float *v, int64_t n) {
  float part[WAYS] = {0};
  int64_t i = 0;
  for (; i + WAYS <= n; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
  }
  for (; i < n; i++) part[0] += v[i];
  return add_up(part);
}
static double run_dot(const float *v, const float *w, int64_t n) {
  float part[WAYS] = {0};
  int64_t i = 0;
  for (; i + WAYS <= n; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] += v[i + j] * w[i + j];
  }
  for (; i < n; i++) part[0] += v[i] * w[i];
  return add_up(part);
}

static void backward_row(const struct work *w, int64_t row, float *dweight, float *dbias) {
  const struct norm_backward_args *a = &w->a;
  int64_t bytes = floats_bytes(w->dtype), cols = a->cols;
  const char *x = (const char *)a->x + row * a->x_stride * bytes;
  const char *dout = (const char *)a->dout + row * a->dout_stride * bytes;
  char *dx = (char *)a->dx + row * a->dx_stride * bytes;
  struct run run;
  double sum = 0, squares = 0, sum_g = 0, sum_gy = 0;
  for (int64_t n, at = 0; a->centred && !a->mean && at < cols; at += n) {
    n = run_length(cols - at);
    floats_load(w->dtype, x + at * bytes, n, run.x);
    sum += run_sum(run.x, n);
  }
  float mean = a->mean ? a->mean[row] : (float)(sum / (double)cols);
  for (int64_t n, at = 0; at < cols; at += n) {
    n = run_length(cols - at);
    load_run(w, x, dout, at, n, &run);
    for (int64_t i = 0; i < n; i++) run.x[i] -= mean, run.weight[i] *= run.dout[i];
    squares += run_dot(run.x, run.x, n);
    sum_gy += run_dot(run.x, run.weight, n);
    sum_g += run_sum(run.weight, n);
  }
  float inverse = a->inverse ? a->inverse[row] : 1.0f / sqrtf((float)(squares / (double)cols) + a->epsilon);
  float mean_g = a->centred ? (float)(sum_g / (double)cols) : 0;
  float mean_gy = (float)(sum_gy / (double)cols) * inverse;
  for (int64_t n, at = 0; at < cols; at += n) {
    n = run_length(cols - at);
    load_run(w, x, dout, at, n, &run);
    for (int64_t i = 0; i < n; i++) {
      float y = (run.x[i] - mean) * inverse, g = run.weight[i] * run.dout[i];
      dweight[at + i] += run.dout[i] * y;
      dbias[at + i] += run.dout[i];
      run.x[i] = inverse * (g - mean_g - y * mean_gy);
    }
    floats_store(w->dtype, dx + at * bytes, n, run.x);
  }
}

static void backward_slices(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct norm_backward_args *a = &w->a;
  for (int64_t slice = begin; slice < end; slice++) {
    float *dweight = a->partial + slice * a->cols, *dbias = dweight + a->slices * a->cols;
    for (int64_t i = 0; i < a->cols; i++) dweight[i] = dbias[i] = 0;
    int64_t row = w->neighbours ? a->rows * slice / a->slices : slice, step = w->neighbours ? 1 : a->slices;
    int64_t last = w->neighbours ? a->rows * (slice + 1) / a->slices : a->rows;
    for (; row < last; row += step) backward_row(w, row, dweight, dbias);
  }
}

static void backward(const void *args, rdna_dtype dtype, rdna_dtype weight_dtype, bool neighbours) {
  struct work work = {*(const struct norm_backward_args *)args, dtype, weight_dtype, neighbours};
  rdna__parallel_for(work.a.slices, 1, backward_slices, &work);
}

#define DTYPE_f32 RDNA_F32
#define DTYPE_f16 RDNA_F16
#define DTYPE_bf16 RDNA_BF16
/* Rows of |args|, whose fields are those of norm_backward_args. */
#define WORK_OF(args, dtype, weight_dtype)                                                                       \
  {{.dout = (args)->dout, .x = (args)->x, .weight = (args)->weight, .rows = (args)->rows, .cols = (args)->cols}, \
   dtype,                                                                                                        \
   weight_dtype,                                                                                                 \
   false}

struct parts_work {
  struct work of;
  const struct norm_parts_args *a;
};
static void norm_part(const struct parts_work *w, int64_t item) {
  const struct norm_parts_args *a = w->a;
  int64_t row = item / a->parts, begin = item % a->parts * NORM_BACKWARD_PART_COLS;
  int64_t end = begin + NORM_BACKWARD_PART_COLS < a->cols ? begin + NORM_BACKWARD_PART_COLS : a->cols;
  int64_t bytes = floats_bytes(w->of.dtype);
  const char *x = (const char *)a->x + row * a->x_stride * bytes;
  const char *dout = (const char *)a->dout + row * a->dout_stride * bytes;
  struct run run;
  double sum = 0, squares = 0, sum_g = 0, sum_gy = 0;
  for (int64_t n, at = begin; a->centred && at < end; at += n) {
    n = run_length(end - at);
    floats_load(w->of.dtype, x + at * bytes, n, run.x);
    sum += run_sum(run.x, n);
  }
  float mean = (float)(sum / (double)(end - begin));
  for (int64_t n, at = begin; at < end; at += n) {
    n = run_length(end - at);
    load_run(&w->of, x, dout, at, n, &run);
    for (int64_t i = 0; i < n; i++) run.x[i] -= mean, run.weight[i] *= run.dout[i];
    squares += run_dot(run.x, run.x, n);
    sum_gy += run_dot(run.x, run.weight, n);
    sum_g += run_sum(run.weight, n);
  }
  a->mean[item] = mean, a->squares[item] = (float)squares;
  a->gy[item] = (float)sum_gy, a->g[item] = (float)sum_g;
}
static void norm_part_items(void *context, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; item++) norm_part(context, item);
}
static void norm_parts(const void *args, rdna_dtype dtype, rdna_dtype weight_dtype) {
  const struct norm_parts_args *a = args;
  struct parts_work work = {WORK_OF(a, dtype, weight_dtype), a};
  rdna__parallel_for(a->rows * a->parts, 1, norm_part_items, &work);
}

static void join_rows(void *context, int64_t begin, int64_t end) {
  const struct norm_join_args *a = context;
  for (int64_t row = begin; row < end; row++) {
    double n = (double)a->cols, mean = 0, squares = 0, gy = 0, g = 0;
    for (int64_t part = 0; part < a->parts; part++) {
      int64_t left = a->cols - part * NORM_BACKWARD_PART_COLS;
      double share = (double)(left < NORM_BACKWARD_PART_COLS ? left : NORM_BACKWARD_PART_COLS) / n;
      mean += (double)a->mean[row * a->parts + part] * share;
    }
    for (int64_t part = 0; part < a->parts; part++) {
      int64_t i = row * a->parts + part, left = a->cols - part * NORM_BACKWARD_PART_COLS;
      double count = (double)(left < NORM_BACKWARD_PART_COLS ? left : NORM_BACKWARD_PART_COLS);
      double apart = (double)a->mean[i] - mean;
      squares += (double)a->squares[i] + count * apart * apart;
      gy += (double)a->gy[i] + apart * (double)a->g[i];
      g += (double)a->g[i];
    }
    float inverse = 1.0f / sqrtf((float)(squares / n) + a->epsilon), *to = a->statistics + 4 * row;
    if (a->given_mean) {
      gy += (mean - (double)a->given_mean[row]) * g;
      mean = (double)a->given_mean[row], inverse = a->given_inverse[row];
    }
    to[0] = (float)mean, to[1] = inverse;
    to[2] = a->centred ? -(float)(g / n) * inverse : 0;
    to[3] = -((float)(gy / n) * inverse) * inverse;
  }
}
void RDNA_HOST_KERNEL(norm_join)(const void *args, rdna_grid grid) {
  struct norm_join_args a = *(const struct norm_join_args *)args;
  rdna__parallel_for(a.rows, 64, join_rows, &a);
}

/* A slice of a run of columns. */
struct columns_work {
  struct work of;
  const struct norm_columns_args *a;
  int64_t runs;
};
static void norm_column_run(const struct columns_work *w, int64_t slice, int64_t at) {
  const struct norm_columns_args *a = w->a;
  int64_t bytes = floats_bytes(w->of.dtype), n = run_length(a->cols - at);
  float dweight[RUN] = {0}, dbias[RUN] = {0};
  struct run run;
  for (int64_t row = a->rows - 1 - slice; row >= 0; row -= a->slices) {
    const float *s = a->statistics + 4 * row;
    load_run(&w->of, (const char *)a->x + row * a->x_stride * bytes,
             (const char *)a->dout + row * a->dout_stride * bytes, at, n, &run);
    for (int64_t i = 0; i < n; i++) {
      float normal = (run.x[i] - s[0]) * s[1];
      dweight[i] += run.dout[i] * normal;
      dbias[i] += run.dout[i];
      run.x[i] = normal * s[3] + (run.dout[i] * run.weight[i] * s[1] + s[2]);
    }
    floats_store(w->of.dtype, (char *)a->dx + (row * a->dx_stride + at) * bytes, n, run.x);
  }
  for (int which = 0; which < 2; which++) {
    const float *sums = which ? dbias : dweight;
    rdna_dtype dtype = a->sums_f32[which] ? RDNA_F32 : w->of.dtype;
    if (a->partial) {
      memcpy(a->partial + (which * a->slices + slice) * a->cols + at, sums, (size_t)n * sizeof *sums);
    } else if (a->sums[which]) {
      floats_store(dtype, (char *)a->sums[which] + at * floats_bytes(dtype), n, sums);
    }
  }
}
static void norm_column_items(void *context, int64_t begin, int64_t end) {
  const struct columns_work *w = context;
  for (int64_t item = begin; item < end; item++) norm_column_run(w, item / w->runs, item % w->runs * RUN);
}
static void norm_columns(const void *args, rdna_dtype dtype, rdna_dtype weight_dtype) {
  const struct norm_columns_args *a = args;
  struct columns_work work = {WORK_OF(a, dtype, weight_dtype), a, (a->cols + RUN - 1) / RUN};
  rdna__parallel_for(a->slices * work.runs, 1, norm_column_items, &work);
}

#define NORM_BACKWARD(suffix, type, weights)                                              \
  void RDNA_HOST_KERNEL(norm_backward_##suffix)(const void *args, rdna_grid grid) {       \
    backward(args, DTYPE_##type, DTYPE_##weights, false);                                 \
  }                                                                                       \
  void RDNA_HOST_KERNEL(norm_backward_edged_##suffix)(const void *args, rdna_grid grid) { \
    backward(args, DTYPE_##type, DTYPE_##weights, false);                                 \
  }                                                                                       \
  void RDNA_HOST_KERNEL(norm_backward_short_##suffix)(const void *args, rdna_grid grid) { \
    backward(args, DTYPE_##type, DTYPE_##weights, true);                                  \
  }                                                                                       \
  void RDNA_HOST_KERNEL(norm_parts_##suffix)(const void *args, rdna_grid grid) {          \
    norm_parts(args, DTYPE_##type, DTYPE_##weights);                                      \
  }                                                                                       \
  void RDNA_HOST_KERNEL(norm_columns_##suffix)(const void *args, rdna_grid grid) {        \
    norm_columns(args, DTYPE_##type, DTYPE_##weights);                                    \
  }
RDNA__NORM_BACKWARD_TYPES(NORM_BACKWARD)
#define NORM_BACKWARD_16(suffix, type, weights)                                             \
  void RDNA_HOST_KERNEL(norm_backward_long_##suffix)(const void *args, rdna_grid grid) {    \
    backward(args, DTYPE_##type, DTYPE_##weights, false);                                   \
  }                                                                                         \
  void RDNA_HOST_KERNEL(norm_backward_shifted_##suffix)(const void *args, rdna_grid grid) { \
    backward(args, DTYPE_##type, DTYPE_##weights, false);                                   \
  }
RDNA__NORM_BACKWARD_TYPES_16(NORM_BACKWARD_16)

struct column_work {
  struct column_sum_args a;
  int part;
};

static void column_sums(void *context, int64_t begin, int64_t end) {
  const struct column_work *work = context;
  const struct column_sum_args *a = &work->a;
  const float *partial = a->partial + work->part * a->rows * a->cols;
  rdna_dtype dtype = (rdna_dtype)a->dtype[work->part];
  float sums[RUN];
  for (int64_t n, at = begin; at < end; at += n) {
    n = run_length(end - at);
    for (int64_t i = 0; i < n; i++) sums[i] = 0;
    for (int64_t row = 0; row < a->rows; row++) {
      const float *from = partial + row * a->cols + at;
      for (int64_t i = 0; i < n; i++) sums[i] += from[i];
    }
    floats_store(dtype, (char *)a->out[work->part] + at * floats_bytes(dtype), n, sums);
  }
}

void RDNA_HOST_KERNEL(column_sum)(const void *args, rdna_grid grid) {
  struct column_work work = {.a = *(const struct column_sum_args *)args};
  for (; work.part < (int)grid.y; work.part++) {
    if (work.a.out[work.part]) rdna__parallel_for(work.a.cols, RUN, column_sums, &work);
  }
}
