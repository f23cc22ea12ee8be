/* Device code of the products of 8-bit operands: the tile of the 16-bit types with two values in the place of one. For
 * .hip files only. */
#ifndef RDNA_MATH_GEMM_SCALED_TILE_H
#define RDNA_MATH_GEMM_SCALED_TILE_H

#include "math/gemm/gemm_mma.h"
#include "math/gemm/gemm_scaled_args.h"

/* The sum of a product of |type|, as it lies in the stage, to the value of C. */
template <typename type, typename type_c>
RDNA_DEVICE void scaled_store(const struct gemm_scaled_args &args, typename type_c::stored *c, int64_t batch, int row,
                              int column, float staged) {
  auto sum = mma_sum_of(type(), staged);
  if constexpr (__is_same(type_c, i32)) {
    *c = sum;
  } else {
    float scale = global(args.scale_a)[row * args.each_a] * global(args.scale_b)[column * args.each_b];
    type_c::store_global(c, gemm_finish1<type_c>(args.of, c, batch, row, column, scale * (float)sum));
  }
}

/* |type| is what mma_of takes, with sums of |acc|. */
template <typename type, typename acc, typename type_c, typename plan>
RDNA_DEVICE void gemm_scaled(const struct gemm_scaled_args &args, uint8_t *memory) {
  int row0, column0;
  gemm_place<plan::tile_m, plan::tile_n>(args.of.m, args.of.n, row0, column0);
  const uint16_t *a = (const uint16_t *)((const char *)args.of.a + (int64_t)group_id_z() * args.of.stride_a);
  const uint16_t *b = (const uint16_t *)((const char *)args.of.b + (int64_t)group_id_z() * args.of.stride_b);
  acc sum[plan::tiles_m][plan::tiles_n] = {};
#ifdef RDNA_NVIDIA
  pipe_operand<plan::tile_m, plan::threads, true> from_a;
  pipe_operand<plan::tile_n, plan::threads, true> from_b;
  from_a.init(a, args.of.lda / 2, row0, args.of.m, args.of.k / 2);
  from_b.init(b, args.of.ldb / 2, column0, args.of.n, args.of.k / 2);
  pipe_product<type, plan, true, true>(from_a, from_b, args.of.k / 2, group_address(memory), sum);
#else
  mma_operand<plan::tile_m, plan::threads> from_a;
  mma_operand<plan::tile_n, plan::threads> from_b;
  from_a.init(a, args.of.lda / 2, true, row0, args.of.m, args.of.k / 2);
  from_b.init(b, args.of.ldb / 2, true, column0, args.of.n, args.of.k / 2);
  mma_product<type, plan>(from_a, from_b, args.of.k / 2, (uint16_t *)memory, sum);
#endif
  const struct gemm_scaled_args &now = arguments_again(args);
  int64_t batch = group_id_z();
  typename type_c::stored *c = (typename type_c::stored *)now.of.c + batch * now.of.stride_c;
  mma_finish<plan>(memory, sum, [&](int row, int column, const float *stage) __attribute__((device, always_inline)) {
#pragma unroll 1
    for (int i = (int)lane_id(); i < MMA_M * plan::wave_n; i += WAVE_SIZE) {
      int in_row = i / plan::wave_n, in_column = i % plan::wave_n;
      int at_row = row0 + row + in_row, at_column = column0 + column + in_column;
      if (at_row < now.of.m && at_column < now.of.n)
        scaled_store<type, type_c>(now, c + at_row * now.of.ldc + at_column, batch, at_row, at_column,
                                   stage[in_row * plan::stage_row + in_column]);
    }
  });
}

#define GEMM_SCALED_DEFINE_(name, type, acc, C, tile, rows, columns, stages, resident)                 \
  RDNA_KERNEL_RESIDENT(GEMM_MMA_THREADS, resident) name##_##C##_##tile(struct gemm_scaled_args args) { \
    typedef mma_plan<rows, columns, GEMM_MMA_THREADS, stages> plan;                                    \
    GROUP_MEMORY(memory, plan::bytes);                                                                 \
    gemm_scaled<type, acc, C, plan>(args, memory);                                                     \
  }
#define GEMM_SCALED_DEFINE(name, type, acc, C)                   \
  GEMM_SCALED_DEFINE_(name, type, acc, C, large, 128, 128, 3, 2) \
  GEMM_SCALED_DEFINE_(name, type, acc, C, small, 64, 64, 4, 3)

#endif
