/* Dense matrix products of bf16. */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/gemm/gemm_dense_mma.h"

GEMM_MMA_DEFINE(bf16, bf16, bf16)
GEMM_MMA_DEFINE(bf16, bf16, f32)
GEMV_DEFINE(bf16, bf16, bf16)
GEMV_DEFINE(bf16, bf16, f32)
