/* Products of groups; see gemm_grouped_kernels.h. */
#include "math/gemm/gemm_grouped_kernels.h"
#include "math/gemm/gemm_mma.h"

typedef mma_plan<GEMM_SMALL_TILE, GEMM_SMALL_TILE, GEMM_SMALL_THREADS, 2> grouped_plan;

/* The tile of this group of threads: |of| is the product of its group of rows, columns or sums. */
struct grouped_tile {
  struct gemm_args of;
  int k, row0, column0;
};

template <typename type>
RDNA_DEVICE const void *at_value(const void *p, int64_t value) {
  return (const typename type::stored *)p + value;
}

/* False: there is none. */
template <typename type>
RDNA_DEVICE bool find_tile(const struct gemm_grouped_args &a, grouped_tile &t) {
  t.of = a.product;
  bool a_turned = a.product.flags & GEMM_A_TRANSPOSED, b_turned = a.product.flags & GEMM_B_TRANSPOSED;
  int rows = a.product.m, columns = a.product.n, index = (int)group_id_x();
  struct gemm_group g = {-1, 0, 0};
  if (a.cut == GEMM_GROUPED_SUMS) {
    int across = (columns + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE;
    for (int i = 0; i <= (int)group_id_z(); i++) g = gemm_group_next(&a, g, a.product.k);
    t.of.a = at_value<type>(a.product.a, g.begin * (a_turned ? a.product.lda : 1));
    t.of.b = at_value<type>(a.product.b, g.begin * (b_turned ? 1 : a.product.ldb));
    t.of.c = (void *)at_value<type>(a.product.c, g.group * a.product.stride_c);
    t.k = g.end - g.begin;
    t.row0 = index / across * GEMM_SMALL_TILE, t.column0 = index % across * GEMM_SMALL_TILE;
    return true;
  }
  bool of_rows = a.cut == GEMM_GROUPED_ROWS;
  int whole = of_rows ? rows : columns, across = ((of_rows ? columns : rows) + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE;
  int tile = index / across, other = (index - tile * across) * GEMM_SMALL_TILE;
  while (g.group < a.groups) {
    g = gemm_group_next(&a, g, whole);
    int tiles = (g.end - g.begin + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE;
    if (tile < tiles) break;
    tile -= tiles;
    if (g.group == a.groups) return false;
  }
  bool exists = g.group < a.groups;
  int matrix = exists ? g.group : 0;
  t.k = exists ? a.product.k : 0;
  if (of_rows) {
    t.of.a = at_value<type>(a.product.a, g.begin * (a_turned ? 1 : a.product.lda));
    t.of.b = at_value<type>(a.product.b, matrix * a.product.stride_b);
    t.of.c = (void *)at_value<type>(a.product.c, g.begin * a.product.ldc);
    t.of.m = g.end - g.begin;
    t.row0 = tile * GEMM_SMALL_TILE, t.column0 = other;
  } else {
    t.of.a = at_value<type>(a.product.a, matrix * a.product.stride_a);
    t.of.b = at_value<type>(a.product.b, g.begin * (b_turned ? a.product.ldb : 1));
    t.of.c = (void *)at_value<type>(a.product.c, g.begin);
    t.of.n = g.end - g.begin;
    t.row0 = other, t.column0 = tile * GEMM_SMALL_TILE;
  }
  return true;
}

RDNA_KERNEL(GEMM_SMALL_THREADS) gemm_grouped_f32(struct gemm_grouped_args a) {
  typedef tile_plan<GEMM_SMALL_TILE, GEMM_SMALL_THREADS> plan;
  typedef dense_operand<f32, plan::tile_k> operand;
  grouped_tile t;
  if (!find_tile<f32>(a, t)) return;
  bool a_along_k = !(t.of.flags & GEMM_A_TRANSPOSED), b_along_k = t.of.flags & GEMM_B_TRANSPOSED;
  operand from_a, from_b;
  from_a.template init<GEMM_SMALL_TILE>(t.of.a, t.of.lda, a_along_k, t.row0, t.of.m, t.k);
  from_b.template init<GEMM_SMALL_TILE>(t.of.b, t.of.ldb, b_along_k, t.column0, t.of.n, t.k);
  float sum[plan::quads_m * 4][plan::quads_n * 4] = {};
  tile_product<GEMM_SMALL_TILE, GEMM_SMALL_THREADS>(from_a, from_b, a_along_k, b_along_k, t.k, sum);
  tile_store<f32, GEMM_SMALL_TILE, GEMM_SMALL_THREADS, plan>(t.of, (float *)t.of.c, t.row0, t.column0, sum);
}

template <typename type>
RDNA_DEVICE void grouped_mma(const struct gemm_grouped_args &a, uint8_t *memory) {
  grouped_tile t;
  if (!find_tile<type>(a, t)) return;
  mma_acc sum[grouped_plan::tiles_m][grouped_plan::tiles_n] = {};
  mma_dense<type, grouped_plan>(t.of, (const uint16_t *)t.of.a, (const uint16_t *)t.of.b, t.k, t.row0, t.column0,
                                (uint16_t *)memory, sum);
  uint16_t *c = (uint16_t *)t.of.c;
  bool vectors = all_16((uint64_t)c | (uint64_t)t.of.ldc * 2);
  mma_finish<grouped_plan>(memory, sum, [&](int row, int column, float *stage) __attribute__((device, always_inline)) {
    mma_store_strip<type, grouped_plan>(t.of, c, 0, vectors, t.row0 + row, t.column0 + column, stage);
  });
}

#define GEMM_GROUPED(type)                                                          \
  RDNA_KERNEL(GEMM_SMALL_THREADS) gemm_grouped_##type(struct gemm_grouped_args a) { \
    RDNA_SHARED __attribute__((aligned(16))) uint8_t memory[grouped_plan::bytes];   \
    grouped_mma<type>(a, memory);                                                   \
  }
GEMM_GROUPED(f16)
GEMM_GROUPED(bf16)
