/* Gradients of softmax and log-softmax, and both of them along any dimension, on the host. */
#include "kernel/host.h"
#include "math/common/host/floats.h"
#include "math/softmax/softmax_backward_kernels.h"

enum { CHUNK = 1024, WAYS = 16 };

struct work {
  const void *args;
  rdna_dtype dtype;
  int64_t blocks; /* of CHUNK values across inner */
};

static float term_sum(const float *d, const float *y, int64_t count, bool log) {
  float part[WAYS] = {0};
  int64_t i = 0;
  for (; i + WAYS <= count; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] += log ? d[i + j] : d[i + j] * y[i + j];
  }
  for (; i < count; i++) part[0] += log ? d[i] : d[i] * y[i];
  float sum = 0;
  for (int j = 0; j < WAYS; j++) sum += part[j];
  return sum;
}

static void slopes(float *d, const float *y, int64_t count, float sum, float scale, bool log) {
  if (log) {
    for (int64_t i = 0; i < count; i++) d[i] = scale * (d[i] - scalar_exp(y[i]) * sum);
  } else {
    for (int64_t i = 0; i < count; i++) d[i] = scale * y[i] * (d[i] - sum);
  }
}

static int64_t chunk_length(int64_t left) { return left < CHUNK ? left : CHUNK; }

static struct softmax_backward_args row_at(const struct softmax_backward_args *a, int64_t bytes, int64_t row) {
  struct softmax_backward_args r = *a;
  r.dout = (const char *)a->dout + row * a->dout_stride * bytes;
  r.out = (const char *)a->out + row * a->out_stride * bytes;
  r.dx = (char *)a->dx + row * a->dx_stride * bytes;
  return r;
}

/* Of columns |begin| to |end| of a row. */
static double run_sum(const struct softmax_backward_args *r, rdna_dtype dtype, int64_t begin, int64_t end) {
  int64_t bytes = floats_bytes(dtype);
  float d[CHUNK], y[CHUNK];
  double sum = 0;
  for (int64_t n, at = begin; at < end; at += n) {
    n = chunk_length(end - at);
    floats_load(dtype, (const char *)r->dout + at * bytes, n, d);
    floats_load(dtype, (const char *)r->out + at * bytes, n, y);
    sum += (double)term_sum(d, y, n, r->log);
  }
  return sum;
}
static void write_run(const struct softmax_backward_args *r, rdna_dtype dtype, int64_t begin, int64_t end, float sum) {
  int64_t bytes = floats_bytes(dtype);
  float d[CHUNK], y[CHUNK];
  for (int64_t n, at = begin; at < end; at += n) {
    n = chunk_length(end - at);
    floats_load(dtype, (const char *)r->dout + at * bytes, n, d);
    floats_load(dtype, (const char *)r->out + at * bytes, n, y);
    slopes(d, y, n, sum, r->scale, r->log);
    floats_store(dtype, (char *)r->dx + at * bytes, n, d);
  }
}

static void backward_rows(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct softmax_backward_args *a = w->args;
  for (int64_t row = begin; row < end; row++) {
    struct softmax_backward_args r = row_at(a, floats_bytes(w->dtype), row);
    write_run(&r, w->dtype, 0, a->cols, (float)run_sum(&r, w->dtype, 0, a->cols));
  }
}

static void backward(const void *args, rdna_dtype dtype) {
  const struct softmax_backward_args *a = args;
  struct work work = {args, dtype, 0};
  rdna__parallel_for(a->rows, 1 + (1 << 14) / (a->cols + 1), backward_rows, &work);
}

static struct softmax_backward_args rows_of(const struct softmax_backward_part_args *a) {
  return (struct softmax_backward_args){.dout = a->dout,
                                        .out = a->out,
                                        .dx = a->dx,
                                        .rows = a->rows,
                                        .cols = a->cols,
                                        .dout_stride = a->dout_stride,
                                        .out_stride = a->out_stride,
                                        .dx_stride = a->dx_stride,
                                        .scale = a->scale,
                                        .log = a->log};
}
static int64_t part_end(const struct softmax_backward_part_args *a, int64_t part) {
  int64_t end = (part + 1) * a->part_cols;
  return end < a->cols ? end : a->cols;
}

static void part_sums(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct softmax_backward_part_args *a = w->args;
  struct softmax_backward_args rows = rows_of(a);
  for (int64_t item = begin; item < end; item++) {
    int64_t part = item % a->parts;
    struct softmax_backward_args r = row_at(&rows, floats_bytes(w->dtype), item / a->parts);
    a->sums[item] = (float)run_sum(&r, w->dtype, part * a->part_cols, part_end(a, part));
  }
}

static void finish_parts(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct softmax_backward_part_args *a = w->args;
  struct softmax_backward_args rows = rows_of(a);
  for (int64_t item = begin; item < end; item++) {
    int64_t part = item % a->parts, row = item / a->parts;
    struct softmax_backward_args r = row_at(&rows, floats_bytes(w->dtype), row);
    double sum = 0;
    for (int64_t i = 0; i < a->parts; i++) sum += (double)a->sums[row * a->parts + i];
    write_run(&r, w->dtype, part * a->part_cols, part_end(a, part), (float)sum);
  }
}

static void backward_part(const void *args, rdna_dtype dtype) {
  const struct softmax_backward_part_args *a = args;
  struct work work = {args, dtype, 0};
  rdna__parallel_for(a->rows * a->parts, 1, part_sums, &work);
}
static void backward_finish(const void *args, rdna_dtype dtype) {
  const struct softmax_backward_part_args *a = args;
  struct work work = {args, dtype, 0};
  rdna__parallel_for(a->rows * a->parts, 1, finish_parts, &work);
}

/* One block: CHUNK neighbours of inner, all the way along cols. */
static void dim_block(const struct softmax_dim_args *a, rdna_dtype dtype, int64_t first, int64_t n) {
  int64_t bytes = floats_bytes(dtype);
  float v[CHUNK], top[CHUNK], sum[CHUNK];
  const char *x = (const char *)a->x + first * bytes;
  char *out = (char *)a->out + first * bytes;
  for (int64_t i = 0; i < n; i++) top[i] = -__builtin_inff(), sum[i] = 0;
  for (int64_t c = 0; c < a->cols; c++) {
    floats_load(dtype, x + c * a->inner * bytes, n, v);
    for (int64_t i = 0; i < n; i++) top[i] = max_f32(top[i], v[i] * a->scale);
  }
  for (int64_t c = 0; c < a->cols; c++) {
    floats_load(dtype, x + c * a->inner * bytes, n, v);
    for (int64_t i = 0; i < n; i++) sum[i] += scalar_exp(v[i] * a->scale - top[i]);
  }
  for (int64_t i = 0; i < n; i++) sum[i] = a->log ? scalar_log(sum[i]) : 1 / sum[i];
  for (int64_t c = 0; c < a->cols; c++) {
    floats_load(dtype, x + c * a->inner * bytes, n, v);
    if (a->log) {
      for (int64_t i = 0; i < n; i++) v[i] = v[i] * a->scale - top[i] - sum[i];
    } else {
      for (int64_t i = 0; i < n; i++) v[i] = scalar_exp(v[i] * a->scale - top[i]) * sum[i];
    }
    floats_store(dtype, out + c * a->inner * bytes, n, v);
  }
}

static void dim_blocks(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct softmax_dim_args *a = w->args;
  for (int64_t b = begin; b < end; b++) {
    int64_t o = b / w->blocks, at = b % w->blocks * CHUNK;
    dim_block(a, w->dtype, o * a->cols * a->inner + at, chunk_length(a->inner - at));
  }
}

static void dim(const void *args, rdna_dtype dtype) {
  const struct softmax_dim_args *a = args;
  struct work work = {args, dtype, (a->inner + CHUNK - 1) / CHUNK};
  rdna__parallel_for(a->outer * work.blocks, 1, dim_blocks, &work);
}

static void dim_backward_block(const struct softmax_dim_backward_args *a, rdna_dtype dtype, int64_t first, int64_t n) {
  int64_t bytes = floats_bytes(dtype), step = a->inner * bytes;
  float d[CHUNK], y[CHUNK], sum[CHUNK] = {0};
  const char *dout = (const char *)a->dout + first * bytes, *out = (const char *)a->out + first * bytes;
  char *dx = (char *)a->dx + first * bytes;
  for (int64_t c = 0; c < a->cols; c++) {
    floats_load(dtype, dout + c * step, n, d);
    floats_load(dtype, out + c * step, n, y);
    for (int64_t i = 0; i < n; i++) sum[i] += a->log ? d[i] : d[i] * y[i];
  }
  for (int64_t c = 0; c < a->cols; c++) {
    floats_load(dtype, dout + c * step, n, d);
    floats_load(dtype, out + c * step, n, y);
    if (a->log) {
      for (int64_t i = 0; i < n; i++) d[i] = a->scale * (d[i] - scalar_exp(y[i]) * sum[i]);
    } else {
      for (int64_t i = 0; i < n; i++) d[i] = a->scale * y[i] * (d[i] - sum[i]);
    }
    floats_store(dtype, dx + c * step, n, d);
  }
}

static void dim_backward_blocks(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct softmax_dim_backward_args *a = w->args;
  for (int64_t b = begin; b < end; b++) {
    int64_t o = b / w->blocks, at = b % w->blocks * CHUNK;
    dim_backward_block(a, w->dtype, o * a->cols * a->inner + at, chunk_length(a->inner - at));
  }
}

static void dim_backward(const void *args, rdna_dtype dtype) {
  const struct softmax_dim_backward_args *a = args;
  struct work work = {args, dtype, (a->inner + CHUNK - 1) / CHUNK};
  rdna__parallel_for(a->outer * work.blocks, 1, dim_backward_blocks, &work);
}

#define TWINS(suffix, dtype)                                                                                         \
  void RDNA_HOST_KERNEL(softmax_backward_##suffix)(const void *args, rdna_grid grid) { backward(args, dtype); }      \
  void RDNA_HOST_KERNEL(softmax_backward_long_##suffix)(const void *args, rdna_grid grid) { backward(args, dtype); } \
  void RDNA_HOST_KERNEL(softmax_backward_part_##suffix)(const void *args, rdna_grid grid) {                          \
    backward_part(args, dtype);                                                                                      \
  }                                                                                                                  \
  void RDNA_HOST_KERNEL(softmax_backward_finish_##suffix)(const void *args, rdna_grid grid) {                        \
    backward_finish(args, dtype);                                                                                    \
  }                                                                                                                  \
  void RDNA_HOST_KERNEL(softmax_dim_##suffix)(const void *args, rdna_grid grid) { dim(args, dtype); }                \
  void RDNA_HOST_KERNEL(softmax_dim_backward_##suffix)(const void *args, rdna_grid grid) { dim_backward(args, dtype); }
TWINS(f32, RDNA_F32)
TWINS(f16, RDNA_F16)
TWINS(bf16, RDNA_BF16)
