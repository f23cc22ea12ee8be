/* Products of blocks of every format with few rows of activations. */
#include "math/quant/quant_gemv.h"

#define QUANT_GEMV(F, NAME)                                                                  \
  RDNA_KERNEL_RESIDENT(QUANT_GEMV_THREADS, 2) gemv_f32_##F##_f32_m1(struct gemm_args args) { \
    quant_gemv<block_weights<F>, 1>(args);                                                   \
  }                                                                                          \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_f32_##F##_f32_m4(struct gemm_args args) {             \
    quant_gemv<block_weights<F>, 4>(args);                                                   \
  }                                                                                          \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_f32_##F##_f32_m8(struct gemm_args args) {             \
    quant_gemv<block_weights<F>, 8>(args);                                                   \
  }
RDNA_QUANT_FORMATS(QUANT_GEMV)
