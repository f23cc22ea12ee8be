/* Dense matrix products with an operand in f32. */
#include "math/gemm/gemm_tile.h"

template <typename a, typename b, typename c, int tile, int threads>
RDNA_DEVICE void gemm_dense(const struct gemm_args &args) {
  int64_t batch = group_id_z();
  gemm_tile<dense_operand<a>, dense_operand<b>, c, tile, threads>(
      args, (const typename a::value *)args.a + batch * args.stride_a,
      (const typename b::value *)args.b + batch * args.stride_b);
}

#define GEMM_FLOAT_DEFINE(A, B, C)                                                                  \
  RDNA_KERNEL_RESIDENT(GEMM_LARGE_THREADS, 2) gemm_##A##_##B##_##C##_large(struct gemm_args args) { \
    gemm_dense<type_##A, type_##B, type_##C, GEMM_LARGE_TILE, GEMM_LARGE_THREADS>(args);            \
  }                                                                                                 \
  RDNA_KERNEL(GEMM_SMALL_THREADS) gemm_##A##_##B##_##C##_small(struct gemm_args args) {             \
    gemm_dense<type_##A, type_##B, type_##C, GEMM_SMALL_TILE, GEMM_SMALL_THREADS>(args);            \
  }
RDNA_GEMM_FLOAT_TYPES(GEMM_FLOAT_DEFINE)

#define GEMV_DEFINE(A, B, C)                                                   \
  RDNA_KERNEL(GEMV_THREADS) gemv_##A##_##B##_##C##_m1(struct gemm_args args) { \
    gemv_rows<type_##A, dense_weight<type_##B>, type_##C, 1, 1>(args);         \
  }                                                                            \
  RDNA_KERNEL(GEMV_THREADS) gemv_##A##_##B##_##C##_m4(struct gemm_args args) { \
    gemv_rows<type_##A, dense_weight<type_##B>, type_##C, 4, 2>(args);         \
  }                                                                            \
  RDNA_KERNEL(GEMV_THREADS) gemv_##A##_##B##_##C##_m8(struct gemm_args args) { \
    gemv_rows<type_##A, dense_weight<type_##B>, type_##C, 8, 2>(args);         \
  }
RDNA_GEMM_FLOAT_TYPES(GEMV_DEFINE)
