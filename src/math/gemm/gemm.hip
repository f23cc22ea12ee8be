/* Dense matrix products with an operand in f32. */
#include "math/gemm/nvidia/gemm_broad.h"

/* A tile of C from dense operands, or of one part's sums. */
template <typename a, typename b, typename c, int tile, int threads>
RDNA_DEVICE void gemm_dense(const struct gemm_args &args) {
  gemm_range range = gemm_range_of(args);
  constexpr int tile_k = tile_plan<tile, threads>::tile_k;
  gemm_tile<dense_operand<a, tile_k>, dense_operand<b, tile_k>, c, tile, threads>(
      args, (const typename a::stored *)args.a + gemm_first_a(args, range),
      (const typename b::stored *)args.b + gemm_first_b(args, range), range.k, range.batch);
}

/* Adds up the parts of a value of C, finishes and stores it. */
template <typename type>
RDNA_DEVICE void gemm_sum(const struct gemm_args &args) {
  int64_t values = (int64_t)args.m * args.n, batch = group_id_z(), index;
  float sum;
  if (!sum_parts(args.sums + batch * args.parts * values, values, args.parts, index, sum)) return;
  int64_t row = index / args.n, column = index % args.n;
  typename type::stored *c = (typename type::stored *)args.c + batch * args.stride_c + row * args.ldc + column;
  type::store_global(c, gemm_finish1<type>(args, c, batch, (int)row, (int)column, sum));
}
#define GEMM_SUM_DEFINE(T) \
  RDNA_KERNEL(GEMM_SUM_THREADS) gemm_sum_##T(struct gemm_args args) { gemm_sum<T>(args); }
GEMM_SUM_DEFINE(f32)
GEMM_SUM_DEFINE(f16)
GEMM_SUM_DEFINE(bf16)

#define GEMM_FLOAT_DEFINE(A, B, C)                                                                  \
  RDNA_KERNEL_RESIDENT(GEMM_LARGE_THREADS, 2) gemm_##A##_##B##_##C##_large(struct gemm_args args) { \
    gemm_dense<A, B, C, GEMM_LARGE_TILE, GEMM_LARGE_THREADS>(args);                                 \
  }                                                                                                 \
  RDNA_KERNEL(GEMM_SMALL_THREADS) gemm_##A##_##B##_##C##_small(struct gemm_args args) {             \
    gemm_dense<A, B, C, GEMM_SMALL_TILE, GEMM_SMALL_THREADS>(args);                                 \
  }
RDNA_GEMM_FLOAT_TYPES(GEMM_FLOAT_DEFINE)
RDNA_KERNEL_RESIDENT(GEMM_BROAD_THREADS, 2) gemm_f32_f32_f32_broad(struct gemm_args args) {
#ifdef RDNA_NVIDIA
  gemm_range range = gemm_range_of(args);
  int row0, column0;
  gemm_place<BROAD_TILE>(args.m, args.n, row0, column0);
  broad_operand a, b;
  a.init((const float *)args.a + gemm_first_a(args, range), args.lda, !(args.flags & GEMM_A_TRANSPOSED), row0, args.m,
         range.k);
  b.init((const float *)args.b + gemm_first_b(args, range), args.ldb, args.flags & GEMM_B_TRANSPOSED, column0, args.n,
         range.k);
  float sum[broad_plan::quads_m * 4][broad_plan::quads_n * 4] = {};
  broad_product(a, b, range.k, sum);
  gemm_tile_finish<f32, BROAD_TILE, BROAD_THREADS>(args, range.batch, row0, column0, sum);
#else
  gemm_dense<f32, f32, f32, GEMM_LARGE_TILE, GEMM_BROAD_THREADS>(args);
#endif
}

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
RDNA_GEMM_FLOAT_TYPES(GEMV_DEFINE)
