/* Reductions of rows on the host, in WAYS partial results so that they run in vectors. */
#include "kernel/host.h"
#include "math/common/host/floats.h"
#include "math/reduce/reduce_kernels.h"

enum { CHUNK = 4096, WAYS = 16 };

struct work {
  struct reduce_args a;
  rdna_dtype dtype;
  bool max;
};

static float reduce_row(const struct work *work, const char *x) {
  float v[CHUNK], part[WAYS];
  for (int j = 0; j < WAYS; j++) part[j] = work->max ? -__builtin_inff() : 0;
  for (int64_t col = 0; col < work->a.cols; col += CHUNK) {
    int64_t count = work->a.cols - col < CHUNK ? work->a.cols - col : CHUNK, i = 0;
    floats_load(work->dtype, x + col * floats_bytes(work->dtype), count, v);
    if (work->max) {
      for (; i + WAYS <= count; i += WAYS) {
        for (int j = 0; j < WAYS; j++) part[j] = max_f32(part[j], v[i + j]);
      }
      for (; i < count; i++) part[0] = max_f32(part[0], v[i]);
    } else {
      for (; i + WAYS <= count; i += WAYS) {
        for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
      }
      for (; i < count; i++) part[0] += v[i];
    }
  }
  for (int half = WAYS / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; j++) part[j] = work->max ? max_f32(part[j], part[j + half]) : part[j] + part[j + half];
  }
  return part[0] * work->a.scale;
}

static void reduce_rows(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  for (int64_t row = begin; row < end; row++) {
    work->a.out[row] = reduce_row(work, (const char *)work->a.x + row * work->a.x_stride * floats_bytes(work->dtype));
  }
}

static int64_t row_grain(int64_t rows, int64_t cols) { return cols > 0 ? 1 + (1 << 16) / cols : rows; }

static void reduce(const void *args, rdna_dtype dtype, bool max) {
  struct work work = {*(const struct reduce_args *)args, dtype, max};
  rdna__parallel_for(work.a.rows, row_grain(work.a.rows, work.a.cols), reduce_rows, &work);
}

void RDNA_HOST_KERNEL(sum_rows_f32)(const void *args, rdna_grid grid) { reduce(args, RDNA_F32, false); }
void RDNA_HOST_KERNEL(sum_rows_f16)(const void *args, rdna_grid grid) { reduce(args, RDNA_F16, false); }
void RDNA_HOST_KERNEL(sum_rows_bf16)(const void *args, rdna_grid grid) { reduce(args, RDNA_BF16, false); }
void RDNA_HOST_KERNEL(max_rows_f32)(const void *args, rdna_grid grid) { reduce(args, RDNA_F32, true); }
void RDNA_HOST_KERNEL(max_rows_f16)(const void *args, rdna_grid grid) { reduce(args, RDNA_F16, true); }
void RDNA_HOST_KERNEL(max_rows_bf16)(const void *args, rdna_grid grid) { reduce(args, RDNA_BF16, true); }

/* The first NaN, or the first place of the largest value: the value by vectors, then its place. */
static int32_t argmax_row(const float *x, int64_t cols) {
  float part[WAYS], top;
  int64_t i = 0;
  for (int j = 0; j < WAYS; j++) part[j] = -__builtin_inff();
  for (; i + WAYS <= cols; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] = max_f32(part[j], x[i + j]);
  }
  for (; i < cols; i++) part[0] = max_f32(part[0], x[i]);
  top = part[0];
  for (int j = 1; j < WAYS; j++) top = max_f32(top, part[j]);
  for (i = 0; i < cols; i++) {
    if (x[i] == top || x[i] != x[i]) return (int32_t)i;
  }
  return 0;
}

static void argmax_rows(void *context, int64_t begin, int64_t end) {
  const struct argmax_args *a = context;
  for (int64_t row = begin; row < end; row++) {
    a->out[row] = argmax_row((const float *)a->x + row * a->x_stride, a->cols);
  }
}

void RDNA_HOST_KERNEL(argmax_rows_f32)(const void *args, rdna_grid grid) {
  struct argmax_args a = *(const struct argmax_args *)args;
  rdna__parallel_for(a.rows, row_grain(a.rows, a.cols), argmax_rows, &a);
}
