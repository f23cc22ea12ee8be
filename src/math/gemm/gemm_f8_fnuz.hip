/* Products of 8-bit floats without infinities and -0, which CDNA 3 has. */
#include "math/gemm/gemm_f8.h"
#include "math/gemm/gemm_f8_kernels.h"

GEMM_F8_DEFINE(e4m3fnuz, E4M3FNUZ, e4m3fnuz, E4M3FNUZ)
GEMM_F8_DEFINE(e4m3fnuz, E4M3FNUZ, e5m2fnuz, E5M2FNUZ)
GEMM_F8_DEFINE(e5m2fnuz, E5M2FNUZ, e4m3fnuz, E4M3FNUZ)
