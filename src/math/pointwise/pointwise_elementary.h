/* The operations of pointwise_ops.h that are made of elementary functions, in double. They are kernels of their own: in
 * those of the others they would take registers from simple operations. */
#ifndef RDNA_MATH_POINTWISE_ELEMENTARY_H
#define RDNA_MATH_POINTWISE_ELEMENTARY_H

#include "math/pointwise/pointwise_ops.h"
#include "math/pointwise/pointwise_scalar64.h"

/* Of x, p and q. */
#define POINTWISE_MAP_ELEMENTARY(OP)   \
  OP(EXP, scalar64_exp(x))             \
  OP(EXP2, scalar64_exp2(x))           \
  OP(EXPM1, scalar64_expm1(x))         \
  OP(LOG, scalar64_log(x))             \
  OP(LOG2, scalar64_log2(x))           \
  OP(LOG10, scalar64_log10(x))         \
  OP(LOG1P, scalar64_log1p(x))         \
  OP(SIN, scalar64_sin(x))             \
  OP(COS, scalar64_cos(x))             \
  OP(TAN, scalar64_tan(x))             \
  OP(TANH, scalar64_tanh(x))           \
  OP(ERF, scalar64_erf(x))             \
  OP(SIGMOID, scalar64_sigmoid(x))     \
  OP(SILU, scalar64_silu(x))           \
  OP(GELU_TANH, scalar64_gelu_tanh(x)) \
  OP(GELU_ERF, scalar64_gelu(x))       \
  OP(ELU, pw64_elu(x, p, q))           \
  OP(SOFTPLUS, pw64_softplus(x, p, q)) \
  OP(MISH, scalar64_mish(x))           \
  OP(POW, scalar64_pow(x, p))

/* Of a, b, p and q. */
#define POINTWISE_ZIP_ELEMENTARY(OP)            \
  OP(FLOOR_DIV, pw64_floor_div(a, b))           \
  OP(FMOD, pw64_fmod(a, b))                     \
  OP(REMAINDER, pw64_remainder(a, b))           \
  OP(POW, scalar64_pow(a, b))                   \
  OP(ATAN2, scalar64_atan2(a, b))               \
  OP(SILU_GRAD, pw64_silu_grad(a, b))           \
  OP(GELU_TANH_GRAD, pw64_gelu_tanh_grad(a, b)) \
  OP(GELU_ERF_GRAD, pw64_gelu_erf_grad(a, b))   \
  OP(ELU_GRAD, pw64_elu_grad(a, b, p, q))       \
  OP(SOFTPLUS_GRAD, pw64_softplus_grad(a, b, p, q))

/* Results replace v. */
RDNA_SCALAR void pointwise_map_elementary(uint32_t op, double *__restrict v, int n, double p, double q) {
  typedef double pw_value;
  switch (op) { POINTWISE_MAP_ELEMENTARY(POINTWISE_MAP_CASE_) default : break; }
}
RDNA_SCALAR void pointwise_zip_elementary(uint32_t op, double *__restrict v, const double *__restrict w, int n,
                                          double p, double q) {
  typedef double pw_value;
  switch (op) { POINTWISE_ZIP_ELEMENTARY(POINTWISE_ZIP_CASE_) default : break; }
}

#endif
