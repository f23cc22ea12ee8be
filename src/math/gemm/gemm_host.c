/* Host twins of the dense matrix products. */
#include "math/gemm/gemm_blocked.h"
#include "math/gemm/gemv_split_kernels.h"

/* |rows| rows of B against |columns| rows of A from row |first| of B on. Constants once inlined: the sums then live
 * in registers. */
SIMD_INLINE void dot_block(const gemm_job *job, rdna_dtype type_a, rdna_dtype type_b, int columns, int rows,
                           const char *a, const char *b, char *c, int64_t first, int64_t last) {
  const struct gemm_args *args = job->args;
  const char *w[4], *x[GEMV_MAX_M];
  simd_float sum[4][GEMV_MAX_M];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    w[r] = b + gemm_clamp(first + r, last) * args->ldb * gemm_value_size(type_b);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) sum[r][j] = simd_set(0);
  }
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) x[j] = a + gemm_clamp(j, args->m) * args->lda * gemm_value_size(type_a);

  int64_t p = 0;
  for (; p + SIMD_WIDTH <= args->k; p += SIMD_WIDTH) {
    simd_float v[4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) v[r] = gemm_load_vector(type_b, w[r], p);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) {
      simd_float u = simd_keep(gemm_load_vector(type_a, x[j], p));
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++) sum[r][j] = simd_fma(v[r], u, sum[r][j]);
    }
  }
  for (int r = 0; r < rows && first + r < last; r++) {
    for (int j = 0; j < columns && j < args->m; j++) {
      float total = simd_sum(sum[r][j]);
      for (int64_t q = p; q < args->k; q++) total += gemm_load(type_b, w[r], q) * gemm_load(type_a, x[j], q);
      gemm_finish_dot(job, c, j, first + r, total);
    }
  }
}

/* As many as there are registers for their sums. */
enum { LONG_ROWS = SIMD_WIDTH == 16 ? 4 : 2 };

/* The same of |rows| rows of B and a single row of A, as which the cache need not be read for each row. The rows that
 * come next are prefetched in memory's order, which is read fastest; what would not stay in the first-level cache until
 * then goes to the second. */
SIMD_INLINE void dot_long_rows(const gemm_job *job, rdna_dtype type_a, rdna_dtype type_b, int rows, const char *a,
                               const char *b, char *c, int64_t first, int64_t last) {
  enum { CHAINS = 4, STEP = CHAINS * SIMD_WIDTH, LEAST_AHEAD = 4096, NEAR_BYTES = 24576, NEAR = 1024 };
  const struct gemm_args *args = job->args;
  const int size = gemm_value_size(type_b);
  const int64_t row_bytes = args->ldb * size;
  const int64_t ahead = rows * row_bytes > LEAST_AHEAD ? rows * row_bytes : LEAST_AHEAD;
  const bool far = 2 * ahead + args->k * gemm_value_size(type_a) > NEAR_BYTES;
  const char *w[LONG_ROWS], *next;
  simd_float sum[LONG_ROWS][CHAINS];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    w[r] = b + gemm_clamp(first + r, last) * row_bytes;
    for (int n = 0; n < CHAINS; n++) sum[r][n] = simd_set(0);
  }
  next = w[0] + ahead;
  int64_t p = 0;
  for (; p + STEP <= args->k; p += STEP, next += rows * STEP * size) {
    if (far) {
      for (int i = 0; i < rows * STEP * size; i += 64) __builtin_prefetch(next + i, 0, 2);
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++)
        for (int i = 0; i < STEP * size; i += 64) __builtin_prefetch(w[r] + p * size + NEAR + i);
    } else {
      for (int i = 0; i < rows * STEP * size; i += 64) __builtin_prefetch(next + i);
    }
#pragma GCC unroll 4
    for (int n = 0; n < CHAINS; n++) {
      const int64_t at = p + n * SIMD_WIDTH;
      const simd_float u = simd_keep(gemm_load_vector(type_a, a, at));
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++) sum[r][n] = simd_fma(gemm_load_vector(type_b, w[r], at), u, sum[r][n]);
    }
  }
  for (; p + SIMD_WIDTH <= args->k; p += SIMD_WIDTH)
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
      sum[r][0] = simd_fma(gemm_load_vector(type_b, w[r], p), gemm_load_vector(type_a, a, p), sum[r][0]);
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    if (first + r >= last) continue;
    float total = simd_sum((sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]));
    for (int64_t q = p; q < args->k; q++) total += gemm_load(type_b, w[r], q) * gemm_load(type_a, a, q);
    gemm_finish_dot(job, c, 0, first + r, total);
  }
}

#define DOT_DEFINE(A, B)                                                                                               \
  static void dot_##A##_##B(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last) { \
    int m = job->args->m;                                                                                              \
    if (m == 1) {                                                                                                      \
      for (int64_t j = first; j < last; j += LONG_ROWS)                                                                \
        dot_long_rows(job, RDNA_##A, RDNA_##B, LONG_ROWS, a, b, c, j, last);                                           \
    } else if (m <= 4) {                                                                                               \
      for (int64_t j = first; j < last; j += 4) dot_block(job, RDNA_##A, RDNA_##B, 4, 4, a, b, c, j, last);            \
    } else {                                                                                                           \
      for (int64_t j = first; j < last; j += 2) dot_block(job, RDNA_##A, RDNA_##B, 8, 2, a, b, c, j, last);            \
    }                                                                                                                  \
  }
DOT_DEFINE(F32, F32)
DOT_DEFINE(F32, F16)
DOT_DEFINE(F32, BF16)
DOT_DEFINE(F16, F16)
DOT_DEFINE(BF16, BF16)

static void run(const void *args, rdna_dtype type_a, rdna_dtype type_b, rdna_dtype type_c,
                void (*dot_rows)(const gemm_job *, const char *, const char *, char *, int64_t, int64_t)) {
  const struct gemm_args *a = args;
  gemm_job job = {.args = a, .type_a = type_a, .type_b = type_b, .type_c = type_c};
  job.fetch_b = gemm_fetch_dense_b;
  job.dot_rows = dot_rows;
  job.batch_bytes_b = a->stride_b * gemm_value_size(type_b);
  gemm_run(&job);
}

static void run_split(const void *args, rdna_dtype type_b,
                      void (*dot_rows)(const gemm_job *, const char *, const char *, char *, int64_t, int64_t)) {
  const struct gemv_split_args *a = args;
  gemm_job job = {.args = &a->of.product, .type_a = RDNA_F32, .type_b = type_b, .type_c = RDNA_F32};
  job.fetch_b = gemm_fetch_dense_b;
  job.dot_rows = dot_rows;
  gemv_run(&job, &a->of, a->of.product.ldb * gemm_value_size(type_b), gemm_run);
}

/* The grid says how a device cuts the work; here the arguments alone do, which begin with those of a product. */
#define SPLIT_TWIN(name, B) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { run_split(args, RDNA_##B, dot_F32_##B); }
#define TWIN(name, A, B, C)                                       \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { \
    run(args, RDNA_##A, RDNA_##B, RDNA_##C, dot_##A##_##B);       \
  }
#define MMA_TWINS(a, b, c, A, B, C)            \
  TWIN(gemm_##a##_##b##_##c##_wide, A, B, C)   \
  TWIN(gemm_##a##_##b##_##c##_narrow, A, B, C) \
  TWINS(a, b, c, A, B, C)
#define TWINS(a, b, c, A, B, C)               \
  TWIN(gemm_##a##_##b##_##c##_large, A, B, C) \
  TWIN(gemm_##a##_##b##_##c##_small, A, B, C) \
  TWIN(gemv_##a##_##b##_##c##_m1, A, B, C)    \
  TWIN(gemv_##a##_##b##_##c##_m4, A, B, C)    \
  TWIN(gemv_##a##_##b##_##c##_m8, A, B, C)
TWINS(f32, f32, f32, F32, F32, F32)
TWIN(gemm_f32_f32_f32_broad, F32, F32, F32)
TWINS(f32, f16, f32, F32, F16, F32)
TWINS(f32, bf16, f32, F32, BF16, F32)
SPLIT_TWIN(gemv_split_f32, F32)
SPLIT_TWIN(gemv_split_f16, F16)
SPLIT_TWIN(gemv_split_bf16, BF16)
MMA_TWINS(f16, f16, f16, F16, F16, F16)
MMA_TWINS(f16, f16, f32, F16, F16, F32)
MMA_TWINS(bf16, bf16, bf16, BF16, BF16, BF16)
MMA_TWINS(bf16, bf16, f32, BF16, BF16, F32)

static void sum_some_rows(void *context, int64_t begin, int64_t end) {
  const gemm_job *job = context;
  const struct gemm_args *args = job->args;
  int64_t values = (int64_t)args->m * args->n;
  for (int64_t r = begin; r < end; r++) {
    int64_t batch = r / args->m, row = r % args->m;
    const float *part = args->sums + batch * args->parts * values + row * args->n;
    for (int64_t j = 0; j < args->n; j++) {
      float sum = 0;
      for (int i = 0; i < args->parts; i++) sum += part[i * values + j];
      gemm_finish_one(job, gemm_matrix_c(job, batch), batch, row, j, sum);
    }
  }
}
#define SUM_TWIN(t, T)                                                                 \
  void RDNA_HOST_KERNEL(gemm_sum_##t)(const void *args, rdna_grid grid) {              \
    gemm_job job = {.args = args, .type_c = RDNA_##T};                                 \
    rdna__parallel_for((int64_t)job.args->batch *job.args->m, 1, sum_some_rows, &job); \
  }
SUM_TWIN(f32, F32)
SUM_TWIN(f16, F16)
SUM_TWIN(bf16, BF16)
