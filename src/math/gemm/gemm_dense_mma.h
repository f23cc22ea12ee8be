/* Dense matrix products of one 16-bit type; each type is a code object of its own, since drivers translate whole ones.
 */
#ifndef RDNA_MATH_GEMM_DENSE_MMA_H
#define RDNA_MATH_GEMM_DENSE_MMA_H

#include "math/gemm/gemm_mma.h"

template <typename type, typename c, typename plan, bool aligned>
RDNA_DEVICE void gemm_dense_mma(const struct gemm_args &args, uint8_t *memory) {
  gemm_range range = gemm_range_of(args);
  gemm_mma<type, c, plan, aligned>(args, (const uint16_t *)args.a + gemm_first_a(args, range),
                                   (const uint16_t *)args.b + gemm_first_b(args, range), range.k, memory);
}

#ifdef RDNA_WGMMA
enum { GEMM_WIDE = GEMM_WIDE_STAGES_WGMMA };
#else
enum { GEMM_WIDE = GEMM_WIDE_STAGES };
#endif
#define GEMM_MMA_DEFINE_(A, B, C, tile, rows, columns, threads, stages, aligned) \
  RDNA_KERNEL(threads) gemm_##A##_##B##_##C##_##tile(struct gemm_args args) {    \
    typedef mma_plan<rows, columns, threads, stages> plan;                       \
    PIPE_MEMORY(memory, plan::bytes);                                            \
    gemm_dense_mma<A, C, plan, aligned>(args, memory);                           \
  }
#define GEMM_MMA_DEFINE(A, B, C)                                  \
  GEMM_MMA_DEFINE_(A, B, C, wide, 128, 256, 256, GEMM_WIDE, true) \
  GEMM_MMA_DEFINE_(A, B, C, large, 128, 128, 128, 3, true)        \
  GEMM_MMA_DEFINE_(A, B, C, narrow, 128, 64, 128, 4, true)        \
  GEMM_MMA_DEFINE_(A, B, C, small, 64, 64, 128, 4, false)

#define GEMV_DEFINE(A, B, C)                                                   \
  RDNA_KERNEL(GEMV_THREADS) gemv_##A##_##B##_##C##_m1(struct gemm_args args) { \
    gemv_rows<A, dense_weight<B>, C, 1, 1>(args);                              \
  }                                                                            \
  RDNA_KERNEL(GEMV_THREADS) gemv_##A##_##B##_##C##_m4(struct gemm_args args) { \
    gemv_rows<A, dense_weight<B>, C, 4, 2>(args);                              \
  }                                                                            \
  RDNA_KERNEL(GEMV_THREADS) gemv_##A##_##B##_##C##_m8(struct gemm_args args) { \
    gemv_rows<A, dense_weight<B>, C, 8, 2>(args);                              \
  }

#endif
