/* Matrix products in f64. A group makes a tile of 64 x 64, 16 values of k a step, the next step's in flight; threads
 * stand 16 by 16 with 4 x 4 values each. */
#include "kernel/arguments.h"
#include "math/gemm/gemm_kernels.h"

enum { F64_TILE = GEMM_F64_TILE, F64_STEP = 16, F64_EACH = F64_TILE * F64_STEP / GEMM_F64_THREADS };

/* Row and k, within the tile, of value |i| that this thread fetches of an operand; neighbouring threads fetch
 * neighbours in memory. */
RDNA_DEVICE int f64_row(bool along_k, int i) {
  int at = i * GEMM_F64_THREADS + (int)thread_id();
  return along_k ? at / F64_STEP : at % F64_TILE;
}
RDNA_DEVICE int f64_k(bool along_k, int i) {
  int at = i * GEMM_F64_THREADS + (int)thread_id();
  return along_k ? at % F64_STEP : at / F64_TILE;
}
RDNA_DEVICE void f64_fetch(const double *from, int64_t ld, bool along_k, int first_row, int rows, int first_k, int k,
                           double (&v)[F64_EACH]) {
#pragma unroll
  for (int i = 0; i < F64_EACH; ++i) {
    int row = first_row + f64_row(along_k, i), p = first_k + f64_k(along_k, i);
    v[i] = row < rows && p < k ? from[along_k ? row * ld + p : p * ld + row] : 0;
  }
}

RDNA_KERNEL(GEMM_F64_THREADS) gemm_f64(struct gemm_args args) {
  RDNA_SHARED double tile_a[F64_STEP][F64_TILE + 2], tile_b[F64_STEP][F64_TILE + 2];
  bool a_along_k = !(args.flags & GEMM_A_TRANSPOSED), b_along_k = args.flags & GEMM_B_TRANSPOSED;
  const double *a = (const double *)args.a + (int64_t)group_id_z() * args.stride_a;
  const double *b = (const double *)args.b + (int64_t)group_id_z() * args.stride_b;
  int tiles_n = (args.n + F64_TILE - 1) / F64_TILE;
  int row0 = (int)group_id_x() / tiles_n * F64_TILE, column0 = (int)group_id_x() % tiles_n * F64_TILE;
  int row = (int)thread_id() / 16 * 4, column = (int)thread_id() % 16 * 4;
  double sum[4][4] = {}, next_a[F64_EACH], next_b[F64_EACH];
  f64_fetch(a, args.lda, a_along_k, row0, args.m, 0, args.k, next_a);
  f64_fetch(b, args.ldb, b_along_k, column0, args.n, 0, args.k, next_b);
  for (int p = 0; p < args.k; p += F64_STEP) {
#pragma unroll
    for (int i = 0; i < F64_EACH; ++i) {
      tile_a[f64_k(a_along_k, i)][f64_row(a_along_k, i)] = next_a[i];
      tile_b[f64_k(b_along_k, i)][f64_row(b_along_k, i)] = next_b[i];
    }
    group_barrier();
    if (p + F64_STEP < args.k) {
      f64_fetch(a, args.lda, a_along_k, row0, args.m, p + F64_STEP, args.k, next_a);
      f64_fetch(b, args.ldb, b_along_k, column0, args.n, p + F64_STEP, args.k, next_b);
    }
#pragma unroll 4
    for (int q = 0; q < F64_STEP; ++q)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = __builtin_fma(tile_a[q][row + i], tile_b[q][column + j], sum[i][j]);
    group_barrier();
  }
  const struct gemm_args &now = arguments_again(args);
  double *c = (double *)now.c + (int64_t)group_id_z() * now.stride_c;
  const double *bias = (const double *)now.bias;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int at_row = row0 + row + i, at_column = column0 + column + j;
      if (at_row >= now.m || at_column >= now.n) continue;
      double *at = c + at_row * now.ldc + at_column, v = now.alpha * sum[i][j];
      if (now.beta != 0) v = __builtin_fma((double)now.beta, *at, v);
      if (bias) v += bias[now.flags & GEMM_BIAS_OF_ROWS ? at_row : at_column];
      *at = v;
    }
}
