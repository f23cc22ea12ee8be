#include <math.h>

#include "math/common/host/floats.h"
#include "math/norm/long_norm_kernels.h"

enum { RUN = 512, WAYS = 16 };

static int64_t run_length(int64_t left) { return left < RUN ? left : RUN; }

/* The sum of (v - mean)^power for a power of 1 or 2: WAYS sums, so that they run in vectors. */
SIMD_INLINE double run_sum(const float *v, int64_t n, float mean, bool squared) {
  float part[WAYS] = {0};
  double sum = 0;
  int64_t i = 0;
  for (; i + WAYS <= n; i += WAYS) {
    for (int j = 0; j < WAYS; j++) {
      float apart = v[i + j] - mean;
      part[j] += squared ? apart * apart : apart;
    }
  }
  for (; i < n; i++) part[0] += squared ? (v[i] - mean) * (v[i] - mean) : v[i] - mean;
  for (int j = 0; j < WAYS; j++) sum += (double)part[j];
  return sum;
}

struct part_work {
  struct long_norm_part_args a;
  rdna_dtype dtype;
};

static void norm_part(const struct part_work *w, int64_t row, int64_t part) {
  const struct long_norm_part_args *a = &w->a;
  int64_t bytes = floats_bytes(w->dtype), begin = part * a->part_cols;
  int64_t end = begin + a->part_cols < a->cols ? begin + a->part_cols : a->cols;
  const char *x = (const char *)a->x + row * a->x_stride * bytes;
  char *residual = a->residual ? (char *)a->residual + row * a->residual_stride * bytes : NULL;
  float values[RUN], more[RUN], mean = 0;
  double sum = 0, squares = 0;
  for (int64_t n, at = begin; residual && at < end; at += n) {
    n = run_length(end - at);
    floats_load(w->dtype, x + at * bytes, n, values);
    floats_load(w->dtype, residual + at * bytes, n, more);
    for (int64_t i = 0; i < n; i++) values[i] += more[i];
    floats_store(w->dtype, residual + at * bytes, n, values);
  }
  if (residual) x = residual;
  for (int64_t n, at = begin; a->centred && at < end; at += n) {
    n = run_length(end - at);
    floats_load(w->dtype, x + at * bytes, n, values);
    sum += run_sum(values, n, 0, false);
  }
  if (a->centred) mean = (float)(sum / (double)(end - begin));
  for (int64_t n, at = begin; at < end; at += n) {
    n = run_length(end - at);
    floats_load(w->dtype, x + at * bytes, n, values);
    squares += run_sum(values, n, mean, true);
  }
  a->mean[row * a->parts + part] = mean, a->squares[row * a->parts + part] = (float)squares;
}
static void norm_parts(void *context, int64_t begin, int64_t end) {
  const struct part_work *w = context;
  for (int64_t item = begin; item < end; item++) norm_part(w, item / w->a.parts, item % w->a.parts);
}
static void long_norm_part(const void *args, rdna_dtype dtype) {
  struct part_work work = {*(const struct long_norm_part_args *)args, dtype};
  rdna__parallel_for(work.a.rows * work.a.parts, 1, norm_parts, &work);
}

struct finish_work {
  struct long_norm_finish_args a;
  rdna_dtype dtype, weight_dtype;
};

static int64_t part_size(const struct long_norm_finish_args *a, int64_t part) {
  int64_t left = a->cols - part * a->part_cols;
  return left < a->part_cols ? left : a->part_cols;
}

static void finish_row(const struct finish_work *w, int64_t row) {
  const struct long_norm_finish_args *a = &w->a;
  int64_t bytes = floats_bytes(w->dtype), weight_bytes = floats_bytes(w->weight_dtype);
  const float *means = a->mean + row * a->parts, *sums = a->squares + row * a->parts;
  const char *x = (const char *)a->x + row * a->x_stride * bytes;
  char *out = (char *)a->out + row * a->out_stride * bytes;
  double mean = 0, squares = 0;
  for (int64_t p = 0; p < a->parts; p++) mean += (double)means[p] * (double)part_size(a, p) / (double)a->cols;
  for (int64_t p = 0; p < a->parts; p++) {
    double apart = (double)means[p] - mean;
    squares += (double)sums[p] + apart * apart * (double)part_size(a, p);
  }
  float middle = (float)mean, scale = 1.0f / sqrtf((float)(squares / (double)a->cols) + a->epsilon);
  float values[RUN], factors[RUN];
  if (a->row_mean) a->row_mean[row] = middle;
  if (a->inverse) a->inverse[row] = scale;
  for (int64_t n, at = 0; at < a->cols; at += n) {
    n = run_length(a->cols - at);
    floats_load(w->dtype, x + at * bytes, n, values);
    for (int64_t i = 0; i < n; i++) values[i] = (values[i] - middle) * scale;
    if (a->weight) {
      floats_load(w->weight_dtype, (const char *)a->weight + at * weight_bytes, n, factors);
      for (int64_t i = 0; i < n; i++) values[i] *= factors[i];
    }
    if (a->bias) {
      floats_load(w->weight_dtype, (const char *)a->bias + at * weight_bytes, n, factors);
      for (int64_t i = 0; i < n; i++) values[i] += factors[i];
    }
    floats_store(w->dtype, out + at * bytes, n, values);
  }
}
static void finish_rows(void *context, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row++) finish_row(context, row);
}
static void long_norm_finish(const void *args, rdna_dtype dtype, rdna_dtype weight_dtype) {
  struct finish_work work = {*(const struct long_norm_finish_args *)args, dtype, weight_dtype};
  rdna__parallel_for(work.a.rows, 1, finish_rows, &work);
}

#define DTYPE_f32 RDNA_F32
#define DTYPE_f16 RDNA_F16
#define DTYPE_bf16 RDNA_BF16
#define PART(type) \
  void RDNA_HOST_KERNEL(long_norm_part_##type)(const void *args, rdna_grid grid) { long_norm_part(args, DTYPE_##type); }
PART(f32)
PART(f16)
PART(bf16)
#define FINISH(suffix, type, weights)                                                  \
  void RDNA_HOST_KERNEL(long_norm_finish_##suffix)(const void *args, rdna_grid grid) { \
    long_norm_finish(args, DTYPE_##type, DTYPE_##weights);                             \
  }
RDNA__NORM_TYPES(FINISH)
