/* eigen_core.h in f32. */
#define EIGEN_T float
#define EIGEN_ROOT __builtin_sqrtf
#define EIGEN_FUSED __builtin_fmaf
#define EIGEN_UNIT 0x1p-23f
#define EIGEN_BIG 0x1p40f
#define EIGEN_STRETCH 0x1p4f
#include "math/linalg/eigen_core.h"
