/* Host twins of products of signed bytes. */
#include "kernel/host.h"
#include "math/gemm/gemm_blocked.h"
#include "math/gemm/gemm_i8_kernels.h"

typedef struct i8_job {
  const struct gemm_scaled_args *args;
  gemm_job product; /* for what follows the sums */
} i8_job;

static void i8_columns(const i8_job *job, int64_t batch, int64_t row, char *c) {
  const struct gemm_args *of = &job->args->of;
  const int8_t *a = (const int8_t *)of->a + batch * of->stride_a + row * of->lda;
  for (int64_t j = 0; j < of->n; j++) {
    const int8_t *b = (const int8_t *)of->b + batch * of->stride_b + j * of->ldb;
    int32_t sum = 0;
    for (int p = 0; p < of->k; p++) sum += a[p] * b[p];
    if (job->product.type_c == RDNA_I32) {
      ((int32_t *)(void *)c)[row * of->ldc + j] = sum;
    } else {
      float scale = job->args->scale_a[row * job->args->each_a] * job->args->scale_b[j * job->args->each_b];
      gemm_finish_one(&job->product, c, batch, row, j, scale * (float)sum);
    }
  }
}

static void i8_rows(void *context, int64_t begin, int64_t end) {
  const i8_job *job = context;
  const struct gemm_args *of = &job->args->of;
  int64_t size = job->product.type_c == RDNA_I32 ? 4 : gemm_value_size(job->product.type_c);
  for (int64_t i = begin; i < end; i++)
    i8_columns(job, i / of->m, i % of->m, (char *)of->c + i / of->m * of->stride_c * size);
}

static void run(const void *args, rdna_dtype type_c) {
  const struct gemm_scaled_args *a = args;
  i8_job job = {a, {.args = &a->of, .type_c = type_c}};
  if (a->of.m <= 0 || a->of.n <= 0) return;
  rdna__parallel_for((int64_t)a->of.batch * a->of.m, 1, i8_rows, &job);
}

#define TWIN(c, C)                                                                                      \
  void RDNA_HOST_KERNEL(gemm_i8_##c##_large)(const void *args, rdna_grid grid) { run(args, RDNA_##C); } \
  void RDNA_HOST_KERNEL(gemm_i8_##c##_small)(const void *args, rdna_grid grid) { run(args, RDNA_##C); }
TWIN(i32, I32)
TWIN(f32, F32)
TWIN(f16, F16)
TWIN(bf16, BF16)
