/* Products of many rows with the weights of their experts: tiles of rows of one expert (moe_sort), through the tiled
 * product of gemm_tile.h. Rows of x are gathered, and results scattered, by |order|. */
#include "math/moe/moe_product.h"
#include "math/quant/quant_blocks.h"

typedef tile_plan<MOE_TILE, MOE_TILE_THREADS> moe_plan;

/* The rows of x of |count| slots at |order|. */
RDNA_DEVICE dense_operand<f32> gather_rows(const struct moe_product_args &a, const int32_t *order, int count, int k) {
  dense_operand<f32> x;
  int row = fetch_row<MOE_TILE>(true);
  x.along_k = true, x.step = GEMM_TILE_K;
  x.k = k, x.p = fetch_p<MOE_TILE>(true);
  x.rows_left = count - row;
  x.vectors = all_16((uint64_t)a.product.a | (uint64_t)a.product.lda * 4);
  x.at = moe_x_of(a, global(order)[row < count ? row : 0]) + x.p;
  return x;
}

template <typename operand>
RDNA_DEVICE void expert_gemm(const struct moe_product_args &a, int64_t row_bytes) {
  int32_t across = (a.product.n + MOE_TILE - 1) / MOE_TILE, index = (int32_t)group_id_x() / across;
  const int32_t *tile = a.tiles + 3 * (int64_t)index;
  int expert = load_uniform(tile), first = load_uniform(tile + 1), count = load_uniform(tile + 2);
  int column0 = ((int)group_id_x() - index * across) * MOE_TILE;
  if (count == 0) return;
  bool exists = expert < a.experts;
  int k = exists ? a.product.k : 0;
  dense_operand<f32> from_x = gather_rows(a, a.order + first, count, k);
  operand from_b;
  from_b.template init<MOE_TILE>((const char *)a.product.b + (exists ? expert : 0) * (int64_t)a.product.n * row_bytes,
                                 a.product.ldb, true, column0, a.product.n, k);
  float sum[moe_plan::quads_m * 4][moe_plan::quads_n * 4] = {};
  tile_product<MOE_TILE, MOE_TILE_THREADS>(from_x, from_b, true, true, k, sum);

  const struct moe_product_args &now = arguments_again(a);
  struct gemm_args p = now.product;
  p.bias = exists && p.bias ? (const float *)p.bias + (int64_t)expert * p.n : nullptr;
  bool vectors = all_16((uint64_t)p.c | (uint64_t)p.ldc * 4);
#pragma unroll
  for (int i = 0; i < moe_plan::quads_m * 4; ++i) {
    int row = moe_plan::row(i);
    if (row >= count) continue;
    float *out = (float *)p.c + global(now.order)[first + row] * p.ldc;
#pragma unroll
    for (int q = 0; q < moe_plan::quads_n; ++q) {
      float4 v = {sum[i][q * 4], sum[i][q * 4 + 1], sum[i][q * 4 + 2], sum[i][q * 4 + 3]};
      gemm_finish4<f32>(p, out, column0 + moe_plan::column(q * 4), v, vectors);
    }
  }
}

#define MOE_GEMM_DENSE(type)                                                                  \
  RDNA_KERNEL(MOE_TILE_THREADS) moe_gemm_##type(struct moe_product_args args) {               \
    expert_gemm<dense_operand<type>>(args, args.product.ldb * (int64_t)sizeof(type::stored)); \
  }
MOE_GEMM_DENSE(f32)
MOE_GEMM_DENSE(f16)
MOE_GEMM_DENSE(bf16)
#define MOE_GEMM(F, NAME)                                                                     \
  RDNA_KERNEL(MOE_TILE_THREADS) moe_gemm_##F(struct moe_product_args args) {                  \
    expert_gemm<quant_operand<F>>(args, args.product.ldb / F::block_values * F::block_bytes); \
  }
RDNA_QUANT_FORMATS(MOE_GEMM)
