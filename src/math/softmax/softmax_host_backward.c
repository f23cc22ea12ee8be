/* Gradients of softmax and log-softmax, and both of them along any dimension, on the host. */
#include "kernel/host.h"
#include "math/floats.h"
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

static void backward_rows(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct softmax_backward_args *a = w->args;
  int64_t bytes = floats_bytes(w->dtype);
  float d[CHUNK], y[CHUNK];
  for (int64_t row = begin; row < end; row++) {
    const char *dout = (const char *)a->dout + row * a->dout_stride * bytes;
    const char *out = (const char *)a->out + row * a->out_stride * bytes;
    char *dx = (char *)a->dx + row * a->dx_stride * bytes;
    double sum = 0;
    for (int64_t n, at = 0; at < a->cols; at += n) {
      n = chunk_length(a->cols - at);
      floats_load(w->dtype, dout + at * bytes, n, d);
      floats_load(w->dtype, out + at * bytes, n, y);
      sum += (double)term_sum(d, y, n, a->log);
    }
    for (int64_t n, at = 0; at < a->cols; at += n) {
      n = chunk_length(a->cols - at);
      floats_load(w->dtype, dout + at * bytes, n, d);
      floats_load(w->dtype, out + at * bytes, n, y);
      slopes(d, y, n, (float)sum, a->scale, a->log);
      floats_store(w->dtype, dx + at * bytes, n, d);
    }
  }
}

static void backward(const void *args, rdna_dtype dtype) {
  const struct softmax_backward_args *a = args;
  struct work work = {args, dtype, 0};
  rdna__parallel_for(a->rows, 1 + (1 << 14) / (a->cols + 1), backward_rows, &work);
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

#define TWINS(suffix, dtype)                                                                                    \
  void RDNA_HOST_KERNEL(softmax_backward_##suffix)(const void *args, rdna_grid grid) { backward(args, dtype); } \
  void RDNA_HOST_KERNEL(softmax_dim_##suffix)(const void *args, rdna_grid grid) { dim(args, dtype); }           \
  void RDNA_HOST_KERNEL(softmax_dim_backward_##suffix)(const void *args, rdna_grid grid) { dim_backward(args, dtype); }
TWINS(f32, RDNA_F32)
TWINS(f16, RDNA_F16)
TWINS(bf16, RDNA_BF16)
