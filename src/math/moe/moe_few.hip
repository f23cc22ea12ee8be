/* Products of few rows for each expert on matrix units: tiles of up to 16 rows of one expert (moe_sort), by the waves
 * of quant_mma.h. A work-group makes MOE_FEW_COLUMNS columns; the waves of each 16 of them share out k. */
#include "math/moe/moe_few_kernels.h"
#include "math/moe/moe_product.h"
#include "math/quant/quant_mma.h"

enum { ACROSS = MOE_FEW_COLUMNS / MMA_N, K_WAVES = WAVES / ACROSS };

template <typename format>
RDNA_DEVICE void few_rows(const struct moe_product_args &a) {
  constexpr int stage_row = MMA_N + 4; /* floats, so that rows begin at other banks */
  RDNA_SHARED __attribute__((aligned(16))) float stage[WAVES * MMA_M * stage_row];
  moe_tile tile = moe_tile_of(a, MOE_FEW_COLUMNS);
  if (tile.count == 0) return;
  int column0 = tile.column + (int)wave_id() / K_WAVES * MMA_N;
  mma_acc sum[1][1] = {};
  if (tile.exists && column0 < a.product.n) {
    quant_mma_weights<format, 1> weights;
    quant_mma_rows<1> rows;
    int64_t row_bytes = a.product.k / format::block_values * format::block_bytes;
    weights.init((const char *)a.product.b + (int64_t)tile.expert * a.product.n * row_bytes, a.product.k, a.product.n,
                 column0);
    /* rows past the end are the last one again */
    rows.init([&](uint32_t row) __attribute__((device, always_inline)) {
      int32_t slot = global(a.order)[tile.first + (int)min_u32(row, (uint32_t)tile.count - 1)];
      return 2 * (uint32_t)(a.x_of_slots ? slot : slot / a.top) * (uint32_t)a.product.lda;
    });
    quant_mma_product<format, 1, 1, K_WAVES>(weights, rows, a.product.a, a.product.k, (int)wave_id() % K_WAVES, sum);
  }
  quant_mma_stage(sum, 0, stage + (int)wave_id() * MMA_M * stage_row, stage_row);
  group_barrier();
  const struct moe_product_args &now = arguments_again(a);
  const float *bias = moe_bias_of(now, tile);
#pragma unroll 1
  for (int at = (int)thread_id(); at < tile.count * MOE_FEW_COLUMNS; at += QUANT_MMA_THREADS) {
    int row = at / MOE_FEW_COLUMNS, in_tile = at % MOE_FEW_COLUMNS, column = tile.column + in_tile;
    if (column >= now.product.n) continue;
    float value = 0;
#pragma unroll
    for (int w = 0; w < K_WAVES; ++w)
      value += stage[((in_tile / MMA_N * K_WAVES + w) * MMA_M + row) * stage_row + in_tile % MMA_N];
    if (bias) value += global(bias)[column];
    ((float *)now.product.c)[global(now.order)[tile.first + row] * now.product.ldc + column] = value;
  }
}

#define MOE_FEW(F, NAME) \
  RDNA_KERNEL_RESIDENT(QUANT_MMA_THREADS, 2) moe_few_##F(struct moe_product_args args) { few_rows<F>(args); }
RDNA_QUANT_FORMATS(MOE_FEW)
