/* The operations that a chain may have: those of pointwise_ops.h that are worth fusing, since all of them, for each of
 * a thread's values, would be half a megabyte of code. */
#ifndef RDNA_MATH_FUSED_OPS_H
#define RDNA_MATH_FUSED_OPS_H

#include "math/pointwise/pointwise_ops.h"

/* The same bits everywhere, */
#define FUSED_MAPS_SAME(OP)    \
  POINTWISE_MAP_REAL(OP, pw32) \
  OP(LOG, scalar_log(x))       \
  OP(ELU, pw32_elu(x, p, q))   \
  OP(SOFTPLUS, pw32_softplus(x, p, q))
/* and those that the kernels compute by the hardware's own functions: |f| is scalar on the host, close or fast (fast.h)
 * on the GPU. */
#define FUSED_MAPS_NEAR(OP, f)    \
  OP(EXP, f##_exp(x))             \
  OP(TANH, f##_tanh(x))           \
  OP(SIGMOID, f##_sigmoid(x))     \
  OP(SILU, f##_silu(x))           \
  OP(GELU_TANH, f##_gelu_tanh(x)) \
  OP(GELU_ERF, f##_gelu(x))
#define FUSED_ZIPS(OP) POINTWISE_ZIP_REAL(OP, pw32)

/* With the near ones, those of most chains: a few instructions without a branch. The kernel for few inputs has no
 * others, and so needs few registers. */
#define FUSED_QUICK_MAPS(OP)             \
  OP(ABS, pw32_abs(x))                   \
  OP(NEG, -x)                            \
  OP(SQUARE, x *x)                       \
  OP(AFFINE, pw32_fma(x, p, q))          \
  OP(CLAMP, pw32_min(pw32_max(x, p), q)) \
  OP(RELU, x <= 0 ? 0 : x)               \
  OP(LEAKY_RELU, x > 0 ? x : x * p)
#define FUSED_QUICK_ZIPS(OP)               \
  OP(ADD, a + b)                           \
  OP(SUB, a - b)                           \
  OP(MUL, a *b)                            \
  OP(ADD_SCALED, pw32_fma(p, b, a))        \
  OP(MAXIMUM, b != b ? b : pw32_max(a, b)) \
  OP(MINIMUM, b != b ? b : pw32_min(a, b))

#endif
