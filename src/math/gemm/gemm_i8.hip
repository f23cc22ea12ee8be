/* Products of signed bytes on matrix units, or by dot products of four. */
#include "math/gemm/gemm_i8_kernels.h"
#include "math/gemm/gemm_scaled_tile.h"

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

RDNA_DEVICE int32_t mma_sum_of(type_bytes, float staged) { return bits_as<int32_t>(staged); }

#define GEMM_I8_DEFINE(C) GEMM_SCALED_DEFINE(gemm_i8, type_bytes, mma_acc_i32, C)
GEMM_I8_DEFINE(i32)
GEMM_I8_DEFINE(f32)
GEMM_I8_DEFINE(f16)
GEMM_I8_DEFINE(bf16)
