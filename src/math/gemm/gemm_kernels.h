/* Matrix products: argument struct and the list of kernels.
 *
 * C(m, n) = activation(alpha * op(A) op(B) + beta * C + bias(n)) + residual, row-major, accumulated in f32. With beta 0
 * the old C is not read. Kernels are named gemm_<A>_<B>_<C>_<tile> for any shape, and gemv_<A>_<B>_<C>_m<M> for at most
 * M rows of A against a transposed B, which they read once. */
#ifndef RDNA_MATH_GEMM_KERNELS_H
#define RDNA_MATH_GEMM_KERNELS_H

#include <stdint.h>

/* op(A)(i, p) lies at a[i * lda + p], or with the flag at a[p * lda + i]; op(B)(p, j) at b[p * ldb + j], or with
 * the flag at b[j * ldb + p]. */
#define GEMM_A_TRANSPOSED 1u
#define GEMM_B_TRANSPOSED 2u
#define GEMM_BIAS_OF_ROWS 4u /* bias(m) instead of bias(n) */
#define GEMM_MAY_ROUND 16u   /* A may be rounded to 16 bits: only the host does, see quant/quant_rounded.h */
#define GEMM_MORE 8u         /* a bias of rows, an activation or a residual: what follows alpha, beta and bias(n) */

struct gemm_args {
  const void *a;                        /* (batch, m, k) */
  const void *b;                        /* (batch, k, n) */
  const void *bias;                     /* (n) of C's type, or NULL */
  void *c;                              /* (batch, m, n) */
  int64_t lda, ldb, ldc;                /* elements from one row, as stored, to the next */
  int64_t stride_a, stride_b, stride_c; /* elements from one matrix of the batch to the next */
  int32_t m, n, k;
  int32_t batch; /* for the host twin: the grid's z on a device */
  uint32_t flags;
  float alpha, beta;
  uint32_t activation; /* an rdna_activation */
  /* With more than one part, |part_k| values of k each, a multiple of 64, plain sums go to |sums| (batch, parts, m, n)
   * instead of C; gemm_sum_<C> adds them up and finishes. The grid's z counts batch * parts. */
  int32_t parts, part_k;
  float *sums;
  const void *residual; /* (batch, m, n) of C's type, or NULL */
  int64_t ld_residual, stride_residual;
};

/* Tiles of C, by name: rows, columns, threads of a group. The grid is (tiles over n * tiles over m, 1, batch).
 *
 * With an operand in f32: */
#define GEMM_LARGE_TILE 128
#define GEMM_LARGE_THREADS 256
#define GEMM_BROAD_THREADS 128 /* of a large tile again: 16 x 8 values a thread, for which it reads less of LDS */
#define GEMM_SMALL_TILE 64
#define GEMM_SMALL_THREADS 128
/* Two operands of the same 16-bit type, on matrix units: wide 128 x 256 by 256 threads; large 128 x 128, narrow 128 x
 * 64 and small 64 x 64 by 128 threads. All but small want rows of A and B, and matrices of the batch, at multiples of
 * 16 bytes. On NVIDIA's GPUs operands pass through 3 or 4 steps of GEMM_PIPE_STEP values of k in shared memory. */
#define GEMM_MMA_THREADS 128
#define GEMM_PIPE_STEP 64
#define GEMM_WIDE_STAGES 3
#define GEMM_WIDE_STAGES_WGMMA 4 /* on GPUs of compute capability 9.0, which have the room */
#define GEMM_PIPE_BYTES(rows, columns, stages) (((rows) + (columns)) * GEMM_PIPE_STEP * 2 * (stages))

/* Rows of B (columns of C) that one group of a gemv handles: 4 sets of 32 lanes, each with 1 row for M = 1 and 2
 * otherwise. Both A and B, and the distance of their rows, are multiples of 16 bytes; batch is 1. */
#define GEMV_THREADS 128
#define GEMV_ROWS_PER_GROUP(M) ((M) == 1 ? 4 : 8)
#define GEMV_MAX_M 8

/* The types of A, B, C. Activations in f32 with 16-bit weights are what a language model runs on. */
#define RDNA_GEMM_FLOAT_TYPES(T) \
  T(f32, f32, f32)               \
  T(f32, f16, f32)               \
  T(f32, bf16, f32)

#define RDNA_GEMV_KERNELS_(X, A, B, C)                                          \
  X(gemv_##A##_##B##_##C##_m1, struct gemm_args, GEMV_THREADS, rdna__gemv_case) \
  X(gemv_##A##_##B##_##C##_m4, struct gemm_args, GEMV_THREADS, rdna__gemv_case) \
  X(gemv_##A##_##B##_##C##_m8, struct gemm_args, GEMV_THREADS, rdna__gemv_case)
#define RDNA_GEMM_FLOAT_(X, A, B, C)                                                     \
  X(gemm_##A##_##B##_##C##_large, struct gemm_args, GEMM_LARGE_THREADS, rdna__gemm_case) \
  X(gemm_##A##_##B##_##C##_small, struct gemm_args, GEMM_SMALL_THREADS, rdna__gemm_case) \
  RDNA_GEMV_KERNELS_(X, A, B, C)
#define RDNA_GEMM_MMA_(X, A, B, C)                                                                                    \
  X(gemm_##A##_##B##_##C##_wide, struct gemm_args, 256, rdna__gemm_case, GEMM_PIPE_BYTES(128, 256, GEMM_WIDE_STAGES), \
    GEMM_PIPE_BYTES(128, 256, GEMM_WIDE_STAGES_WGMMA))                                                                \
  X(gemm_##A##_##B##_##C##_large, struct gemm_args, GEMM_MMA_THREADS, rdna__gemm_case, GEMM_PIPE_BYTES(128, 128, 3))  \
  X(gemm_##A##_##B##_##C##_narrow, struct gemm_args, GEMM_MMA_THREADS, rdna__gemm_case, GEMM_PIPE_BYTES(128, 64, 4))  \
  X(gemm_##A##_##B##_##C##_small, struct gemm_args, GEMM_MMA_THREADS, rdna__gemm_case, GEMM_PIPE_BYTES(64, 64, 4))    \
  RDNA_GEMV_KERNELS_(X, A, B, C)

/* gemm_f64: f64 throughout, any layout, without what GEMM_MORE stands for but a bias of rows; grid (tiles, 1, batch).
 */
#define GEMM_F64_TILE 64
#define GEMM_F64_THREADS 256
#define RDNA_GEMM_F64_KERNELS(X) X(gemm_f64, struct gemm_args, GEMM_F64_THREADS, rdna__gemm_f64_case)

/* A thread adds up the parts of a value, or where there are many 8 threads do: grid (ceil(m n /
 * GEMM_SUM_VALUES(parts)), 1, batch). */
#define GEMM_SUM_THREADS 256
#define GEMM_SUM_SLICES 8
#define GEMM_SUM_MANY(parts) ((parts) >= 2 * GEMM_SUM_SLICES)
#define GEMM_SUM_VALUES(parts) (GEMM_SUM_MANY(parts) ? GEMM_SUM_THREADS / GEMM_SUM_SLICES : GEMM_SUM_THREADS)
#define GEMM_PART_STEP 64
#define RDNA_GEMM_KERNELS(X)                                                       \
  X(gemm_sum_f32, struct gemm_args, GEMM_SUM_THREADS, rdna__gemm_sum_case)         \
  X(gemm_sum_f16, struct gemm_args, GEMM_SUM_THREADS, rdna__gemm_sum_case)         \
  X(gemm_sum_bf16, struct gemm_args, GEMM_SUM_THREADS, rdna__gemm_sum_case)        \
  RDNA_GEMM_FLOAT_(X, f32, f32, f32)                                               \
  X(gemm_f32_f32_f32_broad, struct gemm_args, GEMM_BROAD_THREADS, rdna__gemm_case) \
  RDNA_GEMM_FLOAT_(X, f32, f16, f32)                                               \
  RDNA_GEMM_FLOAT_(X, f32, bf16, f32)
#define RDNA_GEMM_F16_KERNELS(X)   \
  RDNA_GEMM_MMA_(X, f16, f16, f16) \
  RDNA_GEMM_MMA_(X, f16, f16, f32)
#define RDNA_GEMM_BF16_KERNELS(X)     \
  RDNA_GEMM_MMA_(X, bf16, bf16, bf16) \
  RDNA_GEMM_MMA_(X, bf16, bf16, f32)

#endif
