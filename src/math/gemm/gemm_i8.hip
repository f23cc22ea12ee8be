/* Products of signed bytes on matrix units, or by dot products of four. */
#include "math/gemm/gemm_i8_kernels.h"
#include "math/gemm/gemm_mma.h"

#if defined(__gfx900__) || defined(__gfx1010__)
/* Without a dot product of bytes they are unpacked, one word at a time. What the words hold is hidden from the
 * compiler, or it would unpack whole operands once for many tiles and want several times their registers. */
struct type_bytes {};
RDNA_DEVICE void mma_of(type_bytes, mma_acc_i32 &c, const mma_a &a, const mma_b &b) {
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    uint32_t row[MMA_CHUNKS_A], column[MMA_CHUNKS_B];
#pragma unroll
    for (int i = 0; i < MMA_CHUNKS_A; ++i) {
      row[i] = a.chunk[i][word];
      asm volatile("" : "+v"(row[i]));
    }
#pragma unroll
    for (int i = 0; i < MMA_CHUNKS_B; ++i) {
      column[i] = b.chunk[i][word];
      asm volatile("" : "+v"(column[i]));
    }
#pragma unroll
    for (int i = 0; i < MMA_VALUES; ++i) c[i] = dot4_i8((int)row[i / 2], (int)column[i % 2], c[i]);
  }
}
#else
typedef i8x2 type_bytes;
#endif

/* The sum as it lies in the stage to the value of C. */
template <typename type_c>
RDNA_DEVICE void i8_store(const struct gemm_i8_args &args, typename type_c::stored *c, int64_t batch, int row,
                          int column, float staged) {
  int32_t sum = bits_as<int32_t>(staged);
  if constexpr (__is_same(type_c, i32)) {
    *c = sum;
  } else {
    float scale = global(args.scale_a)[row * args.each_a] * global(args.scale_b)[column * args.each_b];
    type_c::store_global(c, gemm_finish1<type_c>(args.of, c, batch, row, column, scale * (float)sum));
  }
}

template <typename type_c, typename plan>
RDNA_DEVICE void gemm_i8(const struct gemm_i8_args &args, uint8_t *memory) {
  int row0, column0;
  gemm_place<plan::tile_m, plan::tile_n>(args.of.m, args.of.n, row0, column0);
  const uint16_t *a = (const uint16_t *)((const char *)args.of.a + (int64_t)group_id_z() * args.of.stride_a);
  const uint16_t *b = (const uint16_t *)((const char *)args.of.b + (int64_t)group_id_z() * args.of.stride_b);
  mma_acc_i32 sum[plan::tiles_m][plan::tiles_n] = {};
#ifdef RDNA_NVIDIA
  pipe_operand<plan::tile_m, plan::threads, true> from_a;
  pipe_operand<plan::tile_n, plan::threads, true> from_b;
  from_a.init(a, args.of.lda / 2, row0, args.of.m, args.of.k / 2);
  from_b.init(b, args.of.ldb / 2, column0, args.of.n, args.of.k / 2);
  pipe_product<type_bytes, plan, true, true>(from_a, from_b, args.of.k / 2, group_address(memory), sum);
#else
  mma_operand<plan::tile_m, plan::threads> from_a;
  mma_operand<plan::tile_n, plan::threads> from_b;
  from_a.init(a, args.of.lda / 2, true, row0, args.of.m, args.of.k / 2);
  from_b.init(b, args.of.ldb / 2, true, column0, args.of.n, args.of.k / 2);
  mma_product<type_bytes, plan>(from_a, from_b, args.of.k / 2, (uint16_t *)memory, sum);
#endif
  const struct gemm_i8_args &now = arguments_again(args);
  int64_t batch = group_id_z();
  typename type_c::stored *c = (typename type_c::stored *)now.of.c + batch * now.of.stride_c;
  mma_finish<plan>(memory, sum, [&](int row, int column, const float *stage) __attribute__((device, always_inline)) {
#pragma unroll 1
    for (int i = (int)lane_id(); i < MMA_M * plan::wave_n; i += WAVE_SIZE) {
      int in_row = i / plan::wave_n, in_column = i % plan::wave_n;
      int at_row = row0 + row + in_row, at_column = column0 + column + in_column;
      if (at_row < now.of.m && at_column < now.of.n)
        i8_store<type_c>(now, c + at_row * now.of.ldc + at_column, batch, at_row, at_column,
                         stage[in_row * plan::stage_row + in_column]);
    }
  });
}

#define GEMM_I8_DEFINE_(C, tile, rows, columns, stages, resident)                                   \
  RDNA_KERNEL_RESIDENT(GEMM_MMA_THREADS, resident) gemm_i8_##C##_##tile(struct gemm_i8_args args) { \
    typedef mma_plan<rows, columns, GEMM_MMA_THREADS, stages> plan;                                 \
    GROUP_MEMORY(memory, plan::bytes);                                                              \
    gemm_i8<C, plan>(args, memory);                                                                 \
  }
#define GEMM_I8_DEFINE(C)                   \
  GEMM_I8_DEFINE_(C, large, 128, 128, 3, 2) \
  GEMM_I8_DEFINE_(C, small, 64, 64, 4, 3)
GEMM_I8_DEFINE(i32)
GEMM_I8_DEFINE(f32)
GEMM_I8_DEFINE(f16)
GEMM_I8_DEFINE(bf16)
