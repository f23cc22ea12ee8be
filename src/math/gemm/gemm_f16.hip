/* Dense matrix products of f16. */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/gemm/gemm_dense_mma.h"

GEMM_MMA_DEFINE(f16, f16, f16)
GEMM_MMA_DEFINE(f16, f16, f32)
GEMV_DEFINE(f16, f16, f16)
GEMV_DEFINE(f16, f16, f32)
