/* Products of few rows of f16 with weights in blocks, on matrix units (quant_mma.h). A work-group makes a tile of C;
 * all its waves share out k. */
#include "math/quant/quant_mma.h"

/* Adds up the waves' sums of 16 rows, finishes and stores them. */
template <typename type_c, int columns, int stage_row>
RDNA_DEVICE void quant_mma_store(const struct gemm_args &args, const float *stage, int row0, int column0) {
#pragma unroll 1
  for (int at = (int)thread_id(); at < MMA_M * columns; at += QUANT_MMA_THREADS) {
    int in_row = at / columns, in_column = at % columns;
    int row = row0 + in_row, column = column0 + in_column;
    if (row >= args.m || column >= args.n) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WAVES; ++w) sum += stage[(w * MMA_M + in_row) * stage_row + in_column];
    typename type_c::stored *c = (typename type_c::stored *)args.c + row * args.ldc + column;
    type_c::store_global(c, gemm_finish1<type_c>(args, c, 0, row, column, sum));
  }
}

template <typename format, typename type_c, int tiles_m>
RDNA_DEVICE void quant_mma(const struct gemm_args &args) {
  constexpr int columns = QUANT_MMA_COLUMNS(tiles_m * MMA_M), tiles_n = columns / MMA_N;
  constexpr int stage_row = columns + 4; /* floats, so that rows begin at other banks */
  RDNA_SHARED __attribute__((aligned(16))) float stage[WAVES * MMA_M * stage_row];
  int across = (args.n + columns - 1) / columns, down = (int)group_id_x() / across;
  int row0 = down * tiles_m * MMA_M, column0 = ((int)group_id_x() - down * across) * columns;
  quant_mma_weights<format, tiles_n> weights;
  quant_mma_rows<tiles_m> rows;
  weights.init(args.b, args.ldb, args.n, column0);
  /* rows past the end are the last one again */
  rows.init([&](uint32_t row) __attribute__((device, always_inline)) {
    return 2 * min_u32((uint32_t)row0 + row, (uint32_t)args.m - 1) * (uint32_t)args.lda;
  });
  mma_acc sum[tiles_m][tiles_n] = {};
  quant_mma_product<format, tiles_m, tiles_n, WAVES>(weights, rows, args.a, args.k, (int)wave_id(), sum);
  const struct gemm_args &now = arguments_again(args);
#pragma unroll 1
  for (int strip = 0; strip < tiles_m; ++strip) {
    group_barrier();
    quant_mma_stage(sum, strip, stage + (int)wave_id() * MMA_M * stage_row, stage_row);
    group_barrier();
    quant_mma_store<type_c, columns, stage_row>(now, stage, row0 + strip * MMA_M, column0);
  }
}

#define QUANT_MMA_OF(F, C)                                                                                        \
  RDNA_KERNEL_RESIDENT(QUANT_MMA_THREADS, 2) gemm_f16_##F##_##C##_rows16(struct gemm_args args) {                 \
    quant_mma<F, C, 1>(args);                                                                                     \
  }                                                                                                               \
  RDNA_KERNEL(QUANT_MMA_THREADS) gemm_f16_##F##_##C##_rows32(struct gemm_args args) { quant_mma<F, C, 2>(args); } \
  RDNA_KERNEL(QUANT_MMA_THREADS) gemm_f16_##F##_##C##_rows64(struct gemm_args args) { quant_mma<F, C, 4>(args); }
#define QUANT_MMA(F, NAME) QUANT_MMA_OF(F, f32) QUANT_MMA_OF(F, f16)
RDNA_QUANT_FORMATS(QUANT_MMA)
