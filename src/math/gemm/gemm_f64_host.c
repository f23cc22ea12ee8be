/* Host twin of products in f64. */
#include "kernel/host.h"
#include "math/gemm/gemm_kernels.h"

enum { ROW = 256 };

/* Columns [column, column + count) of row |row|: the inner loop runs along a row of B, or of A and B. */
static void one_row(const struct gemm_args *a, int64_t batch, int64_t row, int64_t column, int64_t count) {
  const double *x = (const double *)a->a + batch * a->stride_a, *y = (const double *)a->b + batch * a->stride_b;
  double *c = (double *)a->c + batch * a->stride_c + row * a->ldc + column, sum[ROW] = {0};
  int64_t step_a = a->flags & GEMM_A_TRANSPOSED ? a->lda : 1;
  x += a->flags & GEMM_A_TRANSPOSED ? row : row * a->lda;
  if (a->flags & GEMM_B_TRANSPOSED) {
    for (int64_t j = 0; j < count; j++)
      for (int64_t p = 0; p < a->k; p++) sum[j] = __builtin_fma(x[p * step_a], y[(column + j) * a->ldb + p], sum[j]);
  } else {
    for (int64_t p = 0; p < a->k; p++)
      for (int64_t j = 0; j < count; j++) sum[j] = __builtin_fma(x[p * step_a], y[p * a->ldb + column + j], sum[j]);
  }
  const double *bias = a->bias;
  for (int64_t j = 0; j < count; j++) {
    double v = (double)a->alpha * sum[j];
    if (a->beta != 0) v = __builtin_fma((double)a->beta, c[j], v);
    if (bias) v += bias[a->flags & GEMM_BIAS_OF_ROWS ? row : column + j];
    c[j] = v;
  }
}

static void some_rows(void *context, int64_t begin, int64_t end) {
  const struct gemm_args *a = context;
  int64_t blocks = (a->n + ROW - 1) / ROW;
  for (int64_t i = begin; i < end; i++) {
    int64_t column = i % blocks * ROW, row = i / blocks;
    one_row(a, row / a->m, row % a->m, column, a->n - column < ROW ? a->n - column : ROW);
  }
}

void RDNA_HOST_KERNEL(gemm_f64)(const void *args, rdna_grid grid) {
  struct gemm_args a = *(const struct gemm_args *)args;
  if (a.m <= 0 || a.n <= 0) return;
  rdna__parallel_for((int64_t)a.batch * a.m * ((a.n + ROW - 1) / ROW), 1, some_rows, &a);
}
