/* Products of few rows of f16 with weights in blocks, on matrix units. Reading the weights takes most of the time, so
 * each is read once and unpacked in the registers that the matrix unit takes it from.
 *
 * A work-group makes a tile of C; its waves share out k, a step of QUANT_MMA_STEP values at a time, and each has sums
 * of the whole tile, which are added up at the end, wave by wave:
 *
 *     k            step 0 | step 1 | step 2 | … | step 8 | …
 *     wave         0      | 1      | 2      |   | 0      |
 *
 * Nothing is shared before that, so no wave waits for another. The next step's blocks are in flight while this one's
 * are multiplied. A comes from the caches: a tile reads 64 bytes a row and step of it, beside some 18 to 68 of each of
 * its 32 rows of weights. */
#include "kernel/mma.h"
#include "math/gemm/gemm_tile.h"
#include "math/quant/quant_blocks.h"
#include "math/quant/quant_mma_kernels.h"

enum {
  SUBSTEPS = 2,
  QUANT_MMA_STEP = SUBSTEPS * MMA_K,
  TILES_N = QUANT_MMA_COLUMNS / MMA_N,
  WAVES = QUANT_MMA_THREADS / WAVE_SIZE,
  STAGE_ROW = QUANT_MMA_COLUMNS + 4,
  STAGE = WAVES * MMA_M * STAGE_ROW /* floats */
};

/* This lane's chunks of a step of the weights: 8 values of each of its columns of C. */
template <typename format>
struct quant_mma_weights {
  const char *row[TILES_N][MMA_CHUNKS_B];
  typename format::fetch raw[SUBSTEPS][TILES_N][MMA_CHUNKS_B];

  RDNA_MEMBER void init(const struct gemm_args &args, int column0) {
    int64_t row_bytes = args.ldb / format::block_values * format::block_bytes;
#pragma unroll
    for (int j = 0; j < TILES_N; ++j)
#pragma unroll
      for (int i = 0; i < MMA_CHUNKS_B; ++i) {
        int column = column0 + j * MMA_N + (int)mma_b_column((uint32_t)i);
        row[j][i] = (const char *)args.b + (column < args.n ? column : args.n - 1) * row_bytes;
      }
  }
  /* A chunk past the end of k is another one, which is not multiplied. */
  RDNA_MEMBER void fetch(int first, int k) {
#pragma unroll
    for (int s = 0; s < SUBSTEPS; ++s)
#pragma unroll
      for (int j = 0; j < TILES_N; ++j)
#pragma unroll
        for (int i = 0; i < MMA_CHUNKS_B; ++i) {
          int p = first + s * MMA_K + (int)mma_k((uint32_t)i);
          raw[s][j][i] = format::load8(row[j][i], (p < k ? p : k - 8) / 8);
        }
  }
  RDNA_MEMBER mma_b unpack(int s, int j) const {
    mma_b b;
#pragma unroll
    for (int i = 0; i < MMA_CHUNKS_B; ++i) {
      float v[8];
      format::decode8(raw[s][j][i], v);
      b.chunk[i] = f16::pack(v);
    }
    return b;
  }
};

/* The bytes from A's beginning to this lane's rows of it; rows past the end are the last one again. */
template <int tiles_m>
struct quant_mma_rows {
  uint32_t offset[tiles_m][MMA_CHUNKS_A];

  RDNA_MEMBER void init(const struct gemm_args &args, int row0) {
#pragma unroll
    for (int t = 0; t < tiles_m; ++t)
#pragma unroll
      for (int i = 0; i < MMA_CHUNKS_A; ++i) {
        uint32_t row = min_u32((uint32_t)row0 + (uint32_t)t * MMA_M + mma_a_row((uint32_t)i), (uint32_t)args.m - 1);
        offset[t][i] = 2 * (row * (uint32_t)args.lda + mma_k((uint32_t)i));
      }
  }
  RDNA_MEMBER mma_a load(const void *a, int t, int p) const {
    mma_a v;
#pragma unroll
    for (int i = 0; i < MMA_CHUNKS_A; ++i) v.chunk[i] = load_u32x4((const char *)a + offset[t][i] + 2 * (uint32_t)p);
    return v;
  }
};

/* Adds up the waves' sums of 16 rows, finishes and stores them. */
template <typename type_c>
RDNA_DEVICE void quant_mma_store(const struct gemm_args &args, const float *stage, int row0, int column0) {
#pragma unroll 1
  for (int at = (int)thread_id(); at < MMA_M * QUANT_MMA_COLUMNS; at += QUANT_MMA_THREADS) {
    int in_row = at / QUANT_MMA_COLUMNS, in_column = at % QUANT_MMA_COLUMNS;
    int row = row0 + in_row, column = column0 + in_column;
    if (row >= args.m || column >= args.n) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WAVES; ++w) sum += stage[(w * MMA_M + in_row) * STAGE_ROW + in_column];
    typename type_c::stored *c = (typename type_c::stored *)args.c + row * args.ldc + column;
    type_c::store_global(c, gemm_finish1<type_c>(args, c, 0, row, column, sum));
  }
}

template <typename format, typename type_c, int tiles_m>
RDNA_DEVICE void quant_mma(const struct gemm_args &args) {
  RDNA_SHARED __attribute__((aligned(16))) float stage[STAGE];
  int across = (args.n + QUANT_MMA_COLUMNS - 1) / QUANT_MMA_COLUMNS, down = (int)group_id_x() / across;
  int row0 = down * tiles_m * MMA_M, column0 = ((int)group_id_x() - down * across) * QUANT_MMA_COLUMNS, k = args.k;
  quant_mma_weights<format> weights;
  quant_mma_rows<tiles_m> rows;
  weights.init(args, column0);
  rows.init(args, row0);
  mma_acc sum[tiles_m][TILES_N] = {};
  int first = (int)wave_id() * QUANT_MMA_STEP;
  if (first < k) weights.fetch(first, k);
#pragma unroll 1
  for (; first < k; first += WAVES * QUANT_MMA_STEP) {
    mma_b b[SUBSTEPS][TILES_N];
#pragma unroll
    for (int s = 0; s < SUBSTEPS; ++s)
#pragma unroll
      for (int j = 0; j < TILES_N; ++j) b[s][j] = weights.unpack(s, j);
    if (first + WAVES * QUANT_MMA_STEP < k) weights.fetch(first + WAVES * QUANT_MMA_STEP, k);
#pragma unroll
    for (int s = 0; s < SUBSTEPS; ++s) {
      if (first + s * MMA_K >= k) break;
#pragma unroll
      for (int t = 0; t < tiles_m; ++t) {
        mma_a a = rows.load(args.a, t, first + s * MMA_K);
#pragma unroll
        for (int j = 0; j < TILES_N; ++j) mma_f16(sum[t][j], a, b[s][j]);
      }
    }
  }
  const struct gemm_args &now = arguments_again(args);
#pragma unroll 1
  for (int strip = 0; strip < tiles_m; ++strip) {
    group_barrier();
#pragma unroll /* registers are chosen by constants */
    for (int t = 0; t < tiles_m; ++t) {
      if (t != strip) continue;
#pragma unroll
      for (int j = 0; j < TILES_N; ++j)
#pragma unroll
        for (int v = 0; v < MMA_VALUES; ++v)
          stage[((int)wave_id() * MMA_M + (int)mma_row((uint32_t)v)) * STAGE_ROW + j * MMA_N +
                (int)mma_column((uint32_t)v)] = sum[t][j][v];
    }
    group_barrier();
    quant_mma_store<type_c>(now, stage, row0 + strip * MMA_M, column0);
  }
}

#define QUANT_MMA_OF(F, C)                                                                                        \
  RDNA_KERNEL(QUANT_MMA_THREADS) gemm_f16_##F##_##C##_rows16(struct gemm_args args) { quant_mma<F, C, 1>(args); } \
  RDNA_KERNEL(QUANT_MMA_THREADS) gemm_f16_##F##_##C##_rows32(struct gemm_args args) { quant_mma<F, C, 2>(args); } \
  RDNA_KERNEL(QUANT_MMA_THREADS) gemm_f16_##F##_##C##_rows64(struct gemm_args args) { quant_mma<F, C, 4>(args); }
#define QUANT_MMA(F, NAME) QUANT_MMA_OF(F, f32) QUANT_MMA_OF(F, f16)
RDNA_QUANT_FORMATS(QUANT_MMA)
