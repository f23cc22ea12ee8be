/* eigen_core.h in f64. */
#define EIGEN_T double
#define EIGEN_ROOT __builtin_sqrt
#define EIGEN_FUSED __builtin_fma
#define EIGEN_UNIT 0x1p-52
#define EIGEN_BIG 0x1p400
#define EIGEN_STRETCH 0x1p32
#include "math/linalg/eigen_core.h"
