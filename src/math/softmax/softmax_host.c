/* Softmax of rows on the host: a chunk at a time, with the running maximum of the device's long rows; a row of one
 * chunk is read once. */
#include "kernel/host.h"
#include "math/floats.h"
#include "math/softmax/softmax_kernels.h"

enum { CHUNK = 4096, WAYS = 16 };

struct work {
  struct softmax_args a;
  rdna_dtype dtype;
};

/* WAYS partial results each, so that the additions and comparisons run in vectors. */
static float run_max(const float *v, int64_t count, float start) {
  float part[WAYS];
  int64_t i = 0;
  for (int j = 0; j < WAYS; j++) part[j] = start;
  for (; i + WAYS <= count; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] = max_f32(part[j], v[i + j]);
  }
  for (; i < count; i++) part[0] = max_f32(part[0], v[i]);
  for (int j = 1; j < WAYS; j++) part[0] = max_f32(part[0], part[j]);
  return part[0];
}

static float run_sum(const float *v, int64_t count) {
  float part[WAYS] = {0};
  int64_t i = 0;
  for (; i + WAYS <= count; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
  }
  for (; i < count; i++) part[0] += v[i];
  for (int half = WAYS / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; j++) part[j] += part[j + half];
  }
  return part[0];
}

static void load_scaled(const struct work *work, const char *row, int64_t col, int64_t count, float *v) {
  floats_load(work->dtype, row + col * floats_bytes(work->dtype), count, v);
  for (int64_t i = 0; i < count; i++) v[i] *= work->a.scale;
}

static void softmax_row(const struct work *work, const char *x, char *out) {
  const struct softmax_args *a = &work->a;
  float v[CHUNK], e[CHUNK], top = -__builtin_inff(), sum = 0;
  for (int64_t col = 0; col < a->cols; col += CHUNK) {
    int64_t count = a->cols - col < CHUNK ? a->cols - col : CHUNK;
    load_scaled(work, x, col, count, v);
    float grown = run_max(v, count, top);
    if (grown == -__builtin_inff()) continue;
    if (sum != 0) sum *= scalar_exp(top - grown);
    for (int64_t i = 0; i < count; i++) e[i] = scalar_exp(v[i] - grown);
    sum += run_sum(e, count);
    top = grown;
  }
  float last = a->log ? scalar_log(sum) : 1 / sum;
  for (int64_t col = 0; col < a->cols; col += CHUNK) {
    int64_t count = a->cols - col < CHUNK ? a->cols - col : CHUNK;
    if (a->cols > CHUNK) load_scaled(work, x, col, count, v);
    if (a->log) {
      for (int64_t i = 0; i < count; i++) v[i] = v[i] - top - last;
    } else {
      for (int64_t i = 0; i < count; i++) v[i] = scalar_exp(v[i] - top) * last;
    }
    floats_store(work->dtype, out + col * floats_bytes(work->dtype), count, v);
  }
}

static void softmax_rows(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  int64_t bytes = floats_bytes(work->dtype);
  for (int64_t row = begin; row < end; row++) {
    softmax_row(work, (const char *)work->a.x + row * work->a.x_stride * bytes,
                (char *)work->a.out + row * work->a.out_stride * bytes);
  }
}

static void softmax(const void *args, rdna_dtype dtype) {
  struct work work = {*(const struct softmax_args *)args, dtype};
  int64_t grain = work.a.cols > 0 ? 1 + (1 << 14) / work.a.cols : work.a.rows;
  rdna__parallel_for(work.a.rows, grain, softmax_rows, &work);
}

void RDNA_HOST_KERNEL(softmax_f32)(const void *args, rdna_grid grid) { softmax(args, RDNA_F32); }
void RDNA_HOST_KERNEL(softmax_f16)(const void *args, rdna_grid grid) { softmax(args, RDNA_F16); }
void RDNA_HOST_KERNEL(softmax_bf16)(const void *args, rdna_grid grid) { softmax(args, RDNA_BF16); }
