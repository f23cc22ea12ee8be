/* The operations that a chain may have: those of pointwise_ops.h that are worth fusing, since all of them, for each of
 * a thread's values, would be half a megabyte of code. */
#ifndef RDNA_MATH_FUSED_OPS_H
#define RDNA_MATH_FUSED_OPS_H

#include "math/pointwise/pointwise_ops.h"

#define FUSED_MAPS(OP)               \
  POINTWISE_MAP_REAL(OP, pw32)       \
  OP(EXP, scalar_exp(x))             \
  OP(LOG, scalar_log(x))             \
  OP(TANH, scalar_tanh(x))           \
  OP(SIGMOID, scalar_sigmoid(x))     \
  OP(SILU, scalar_silu(x))           \
  OP(GELU_TANH, scalar_gelu_tanh(x)) \
  OP(GELU_ERF, scalar_gelu(x))       \
  OP(ELU, pw32_elu(x, p, q))         \
  OP(SOFTPLUS, pw32_softplus(x, p, q))
#define FUSED_ZIPS(OP) POINTWISE_ZIP_REAL(OP, pw32)

/* Over |n| values; results replace v. */
RDNA_SCALAR void fused_map(uint32_t op, float *__restrict v, int n, float p, float q) {
  typedef float pw_value;
  switch (op) { FUSED_MAPS(POINTWISE_MAP_CASE_) default : break; }
}
RDNA_SCALAR void fused_zip(uint32_t op, float *__restrict v, const float *__restrict w, int n, float p, float q) {
  typedef float pw_value;
  switch (op) { FUSED_ZIPS(POINTWISE_ZIP_CASE_) default : break; }
}

#endif
