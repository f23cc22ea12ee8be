/* Products of matrices with block-quantized weights, which are dequantized between global memory
 * and group memory. */
#include "math/quant/quant_blocks.h"
#include "math/quant/quant_kernels.h"

template <typename format, int tile, int threads>
RDNA_DEVICE void quant_gemm(const struct gemm_args &args) {
  int64_t batch = group_id_z();
  gemm_tile<dense_operand<f32>, quant_operand<format>, f32, tile, threads>(
      args, (const float *)args.a + batch * args.stride_a,
      (const char *)args.b + batch * (args.stride_b / format::block_values) * format::block_bytes);
}

#define QUANT_GEMM(F, NAME)                                                         \
  RDNA_KERNEL(GEMM_LARGE_THREADS) gemm_f32_##F##_f32_large(struct gemm_args args) { \
    quant_gemm<F, GEMM_LARGE_TILE, GEMM_LARGE_THREADS>(args);                       \
  }                                                                                 \
  RDNA_KERNEL(GEMM_SMALL_THREADS) gemm_f32_##F##_f32_small(struct gemm_args args) { \
    quant_gemm<F, GEMM_SMALL_TILE, GEMM_SMALL_THREADS>(args);                       \
  }
RDNA_QUANT_FORMATS(QUANT_GEMM)
