/* Products of many rows with the weights of their experts on matrix units: tiles of rows of one expert (moe_sort), with
 * the steps and buffers of gemm_mma.h. Blocks are unpacked on their way into group memory: most experts have so few
 * rows that these are one tile, and then each weight is read and unpacked once. */
#include "math/gemm/gemm_mma.h"
#include "math/moe/moe_mma_kernels.h"
#include "math/moe/moe_product.h"
#include "math/quant/quant_blocks.h"

typedef mma_plan<MOE_TILE, MOE_TILE, MOE_TILE_THREADS, 2> moe_mma_plan;

/* Of a step's rows of 32 values, 4 threads have one, 8 neighbours each; a thread has |chunks| rows. */
static constexpr int chunks = MOE_TILE * MMA_STEP / 8 / MOE_TILE_THREADS;
RDNA_DEVICE int chunk_row(int i) { return (int)thread_id() / 4 + MOE_TILE_THREADS / 4 * i; }
RDNA_DEVICE int chunk_k(void) { return (int)thread_id() % 4 * 8; }

/* Rows of 16-bit values, each at a place of its own. */
struct scattered_rows {
  const uint16_t *base;
  int64_t row[chunks]; /* where they begin */
  int k;
  bool vectors; /* all at multiples of 16 bytes */
  uint4 raw[chunks];

  RDNA_MEMBER void fetch(int step) {
    int p = step * MMA_STEP + chunk_k();
    if (vectors && (step + 1) * MMA_STEP <= k) {
#pragma unroll
      for (int i = 0; i < chunks; ++i) raw[i] = load_u32x4(base + row[i] + p);
      return;
    }
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      raw[i] = uint4{};
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (p + j < k) raw[i][j / 2] |= (uint32_t)base[row[i] + p + j] << (j % 2 * 16);
    }
  }
  RDNA_MEMBER void store(uint16_t *lds) const {
#pragma unroll
    for (int i = 0; i < chunks; ++i) store_u32x4(lds + chunk_row(i) * MMA_ROW + chunk_k(), raw[i]);
  }
};

/* Rows of blocks, which become 16-bit values of |type|. */
template <typename type, typename format>
struct block_rows {
  const char *base;
  int64_t row[chunks]; /* bytes */
  typename format::fetch raw[chunks];

  RDNA_MEMBER void fetch(int step) {
#pragma unroll
    for (int i = 0; i < chunks; ++i) raw[i] = format::load8(base + row[i], (step * MMA_STEP + chunk_k()) / 8);
  }
  RDNA_MEMBER void store(uint16_t *lds) const {
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      float v[8];
      format::decode8(raw[i], v);
      store_u32x4(lds + chunk_row(i) * MMA_ROW + chunk_k(), type::pack(v));
    }
  }
};

/* Row |i| of this thread among |count|; past the end the last one again, as nothing that comes of it is stored. */
RDNA_DEVICE int row_or_last(int i, int first, int count) {
  int row = first + chunk_row(i);
  return row < count ? row : count - 1;
}

RDNA_DEVICE scattered_rows rows_of_x(const struct moe_product_args &a, const moe_tile &tile, int k) {
  scattered_rows x;
  x.base = (const uint16_t *)a.product.a, x.k = k;
  x.vectors = all_16((uint64_t)x.base | (uint64_t)a.product.lda * 2);
#pragma unroll
  for (int i = 0; i < chunks; ++i) {
    int32_t slot = global(a.order)[tile.first + row_or_last(i, 0, tile.count)];
    x.row[i] = (int64_t)(a.x_of_slots ? slot : slot / a.top) * a.product.lda;
  }
  return x;
}

/* The rows of the expert's weights that make the tile's columns. */
RDNA_DEVICE void init_weights(scattered_rows &w, const struct moe_product_args &a, const moe_tile &tile, int k) {
  w.base = (const uint16_t *)a.product.b + tile.expert * a.product.stride_b, w.k = k;
  w.vectors = all_16((uint64_t)w.base | (uint64_t)a.product.ldb * 2);
#pragma unroll
  for (int i = 0; i < chunks; ++i) w.row[i] = row_or_last(i, tile.column, a.product.n) * a.product.ldb;
}
template <typename type, typename format>
RDNA_DEVICE void init_weights(block_rows<type, format> &w, const struct moe_product_args &a, const moe_tile &tile,
                              int k) {
  int64_t row_bytes = a.product.ldb / format::block_values * format::block_bytes;
  w.base = (const char *)a.product.b + (int64_t)tile.expert * a.product.n * row_bytes;
#pragma unroll
  for (int i = 0; i < chunks; ++i) w.row[i] = row_or_last(i, tile.column, a.product.n) * row_bytes;
}

/* Stores 16 rows of a wave's part of the tile, from |stage|, each where its slot's row of out is. */
RDNA_DEVICE void store_strip(const struct moe_product_args &a, const struct gemm_args &p, const moe_tile &tile, int row,
                             int column, const float *stage) {
  constexpr int across = moe_mma_plan::wave_n / 4;
  bool vectors = all_16((uint64_t)p.c | (uint64_t)p.ldc * 4);
#pragma unroll 1
  for (int quad = (int)lane_id(); quad < MMA_M * across; quad += WAVE_SIZE) {
    int in_row = quad / across, in_column = quad % across * 4;
    if (row + in_row >= tile.count || tile.column + column + in_column >= p.n) continue;
    float *out = (float *)p.c + global(a.order)[tile.first + row + in_row] * p.ldc;
    gemm_finish4<f32>(p, out, tile.column + column + in_column,
                      load_f32x4(stage + in_row * moe_mma_plan::stage_row + in_column), vectors);
  }
}

template <typename type, typename weights>
RDNA_DEVICE void expert_mma(const struct moe_product_args &a, uint8_t *memory) {
  moe_tile tile = moe_tile_of(a, MOE_TILE);
  if (tile.count == 0) return;
  int k = tile.exists ? a.product.k : 0;
  scattered_rows from_x = rows_of_x(a, tile, k);
  weights from_w;
  init_weights(from_w, a, tile, k);
  mma_acc sum[moe_mma_plan::tiles_m][moe_mma_plan::tiles_n] = {};
  mma_product<type, moe_mma_plan>(from_x, from_w, k, (uint16_t *)memory, sum);

  const struct moe_product_args &now = arguments_again(a);
  struct gemm_args p = now.product;
  p.bias = moe_bias_of(now, tile);
  mma_finish<moe_mma_plan>(memory, sum, [&](int row, int column, float *stage) __attribute__((device, always_inline)) {
    store_strip(now, p, tile, row, column, stage);
  });
}

#define MOE_MMA(x, w, ...)                                                        \
  RDNA_KERNEL(MOE_TILE_THREADS) moe_mma_##x##_##w(struct moe_product_args args) { \
    RDNA_SHARED __attribute__((aligned(16))) uint8_t memory[moe_mma_plan::bytes]; \
    expert_mma<x, __VA_ARGS__>(args, memory);                                     \
  }
MOE_MMA(f16, f16, scattered_rows)
MOE_MMA(bf16, bf16, scattered_rows)
#define MOE_MMA_BLOCKS(F, NAME) MOE_MMA(f16, F, block_rows<f16, F>)
RDNA_QUANT_FORMATS(MOE_MMA_BLOCKS)
