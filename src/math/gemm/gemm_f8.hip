/* Products of 8-bit floats of OCP's formats. */
#include "math/gemm/gemm_f8.h"
#include "math/gemm/gemm_f8_kernels.h"

GEMM_F8_DEFINE(e4m3fn, E4M3FN, e4m3fn, E4M3FN)
GEMM_F8_DEFINE(e4m3fn, E4M3FN, e5m2, E5M2)
GEMM_F8_DEFINE(e5m2, E5M2, e4m3fn, E4M3FN)
