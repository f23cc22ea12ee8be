/* What each operation computes, over |n| values: on the GPU those of a thread, on the host a run. Each operation has
 * its own loop, so that the switch is taken once and the loop unrolls or vectorises. */
#ifndef RDNA_MATH_POINTWISE_OPS_H
#define RDNA_MATH_POINTWISE_OPS_H

#include "math/common/strided.h"
#include "math/pointwise/pointwise_scalar.h"
#include "rdna/op/pointwise.h"

/* Of x, p and q; |f| is pw32 or pw64. */
#define POINTWISE_MAP_REAL(OP, f)                       \
  OP(ABS, f##_abs(x))                                   \
  OP(NEG, -x)                                           \
  OP(SIGN, x > 0 ? 1 : x < 0 ? -1 : x != x ? x : 0)     \
  OP(SQUARE, x *x)                                      \
  OP(AFFINE, f##_fma(x, p, q))                          \
  OP(CLAMP, f##_min(f##_max(x, p), q))                  \
  OP(CEIL, f##_ceil(x))                                 \
  OP(FLOOR, f##_floor(x))                               \
  OP(ROUND, f##_rint(x))                                \
  OP(TRUNC, f##_trunc(x))                               \
  OP(SQRT, f##_sqrt(x))                                 \
  OP(RSQRT, 1 / f##_sqrt(x))                            \
  OP(RECIPROCAL, 1 / x)                                 \
  OP(RELU, x <= 0 ? 0 : x)                              \
  OP(LEAKY_RELU, x > 0 ? x : x * p)                     \
  OP(HARDSWISH, x *(f##_min(f##_max(x + 3, 0), 6) / 6)) \
  OP(HARDSIGMOID, f##_min(f##_max(x + 3, 0), 6) / 6)

#define POINTWISE_MAP_F32(OP)          \
  POINTWISE_MAP_REAL(OP, pw32)         \
  OP(EXP, scalar_exp(x))               \
  OP(EXP2, scalar_exp2(x))             \
  OP(EXPM1, scalar_expm1(x))           \
  OP(LOG, scalar_log(x))               \
  OP(LOG2, scalar_log2(x))             \
  OP(LOG10, pw32_log10(x))             \
  OP(LOG1P, scalar_log1p(x))           \
  OP(SIN, scalar_sin(x))               \
  OP(COS, scalar_cos(x))               \
  OP(TAN, pw32_tan(x))                 \
  OP(TANH, scalar_tanh(x))             \
  OP(ERF, scalar_erf(x))               \
  OP(SIGMOID, scalar_sigmoid(x))       \
  OP(SILU, scalar_silu(x))             \
  OP(GELU_TANH, scalar_gelu_tanh(x))   \
  OP(GELU_ERF, scalar_gelu(x))         \
  OP(ELU, pw32_elu(x, p, q))           \
  OP(SOFTPLUS, pw32_softplus(x, p, q)) \
  OP(MISH, pw32_mish(x))               \
  OP(POW, pw32_pow(x, p))
#define POINTWISE_MAP_F64(OP) POINTWISE_MAP_REAL(OP, pw64)
#define POINTWISE_MAP_I64(OP)           \
  OP(ABS, x < 0 ? pwi_sub(0, x) : x)    \
  OP(NEG, pwi_sub(0, x))                \
  OP(SIGN, (x > 0) - (x < 0))           \
  OP(SQUARE, pwi_mul(x, x))             \
  OP(AFFINE, pwi_add(pwi_mul(x, p), q)) \
  OP(CLAMP, pwi_min(pwi_max(x, p), q))  \
  OP(BITWISE_NOT, ~x)                   \
  OP(RELU, x < 0 ? 0 : x)

/* Of a, b, p and q. */
#define POINTWISE_ZIP_REAL(OP, f)                                      \
  OP(ADD, a + b)                                                       \
  OP(SUB, a - b)                                                       \
  OP(MUL, a *b)                                                        \
  OP(DIV, a / b)                                                       \
  OP(ADD_SCALED, f##_fma(p, b, a))                                     \
  OP(MAXIMUM, b != b ? b : f##_max(a, b))                              \
  OP(MINIMUM, b != b ? b : f##_min(a, b))                              \
  OP(SQUARED_DIFF, (a - b) * (a - b))                                  \
  OP(LERP, f##_fma(p, b - a, a))                                       \
  OP(RELU_GRAD, b <= 0 ? 0 : a)                                        \
  OP(LEAKY_RELU_GRAD, b > 0 ? a : a * p)                               \
  OP(CLAMP_GRAD, b<p || b> q ? 0 : a)                                  \
  OP(HARDSWISH_GRAD, b <= -3 ? 0 : b >= 3 ? a : a * ((b + b + 3) / 6)) \
  OP(HARDSIGMOID_GRAD, b <= -3 || b >= 3 ? 0 : a / 6)                  \
  OP(SIGMOID_GRAD, a * ((1 - b) * b))                                  \
  OP(TANH_GRAD, a *f##_fma(-b, b, 1))                                  \
  OP(SQRT_GRAD, a / (b + b))                                           \
  OP(RSQRT_GRAD, a *(b * b * b) / -2)                                  \
  OP(RECIPROCAL_GRAD, -a *(b * b))

#define POINTWISE_ZIP_F32(OP)                   \
  POINTWISE_ZIP_REAL(OP, pw32)                  \
  OP(FLOOR_DIV, pw32_floor_div(a, b))           \
  OP(FMOD, pw32_fmod(a, b))                     \
  OP(REMAINDER, pw32_remainder(a, b))           \
  OP(POW, pw32_pow(a, b))                       \
  OP(ATAN2, pw32_atan2(a, b))                   \
  OP(SILU_GRAD, pw32_silu_grad(a, b))           \
  OP(GELU_TANH_GRAD, pw32_gelu_tanh_grad(a, b)) \
  OP(GELU_ERF_GRAD, pw32_gelu_erf_grad(a, b))   \
  OP(ELU_GRAD, pw32_elu_grad(a, b, p, q))       \
  OP(SOFTPLUS_GRAD, pw32_softplus_grad(a, b, p, q))
#define POINTWISE_ZIP_F64(OP) POINTWISE_ZIP_REAL(OP, pw64)
#define POINTWISE_ZIP_I64(OP)                             \
  OP(ADD, pwi_add(a, b))                                  \
  OP(SUB, pwi_sub(a, b))                                  \
  OP(MUL, pwi_mul(a, b))                                  \
  OP(DIV, pwi_div(a, b))                                  \
  OP(ADD_SCALED, pwi_add(a, pwi_mul(p, b)))               \
  OP(MAXIMUM, pwi_max(a, b))                              \
  OP(MINIMUM, pwi_min(a, b))                              \
  OP(SQUARED_DIFF, pwi_mul(pwi_sub(a, b), pwi_sub(a, b))) \
  OP(FLOOR_DIV, pwi_floor_div(a, b))                      \
  OP(FMOD, pwi_fmod(a, b))                                \
  OP(REMAINDER, pwi_remainder(a, b))                      \
  OP(POW, pwi_pow(a, b))                                  \
  OP(BITWISE_AND, a &b)                                   \
  OP(BITWISE_OR, a | b)                                   \
  OP(BITWISE_XOR, a ^ b)                                  \
  OP(SHIFT_LEFT, pwi_shift_left(a, b))                    \
  OP(SHIFT_RIGHT, pwi_shift_right(a, b))

/* Of a, b, c and p. */
#define POINTWISE_ZIP3_REAL(OP, f)                               \
  OP(FMA, f##_fma(a, b, c))                                      \
  OP(ADDCMUL, f##_fma(p *b, c, a))                               \
  OP(CLAMP, c != c ? c : f##_min(b != b ? b : f##_max(a, b), c)) \
  OP(ADDCDIV, a + p * (b / c))                                   \
  OP(LERP, f##_fma(c, b - a, a))
#define POINTWISE_ZIP3_F32(OP) POINTWISE_ZIP3_REAL(OP, pw32)
#define POINTWISE_ZIP3_F64(OP) POINTWISE_ZIP3_REAL(OP, pw64)
#define POINTWISE_ZIP3_I64(OP)                       \
  OP(FMA, pwi_add(pwi_mul(a, b), c))                 \
  OP(ADDCMUL, pwi_add(a, pwi_mul(p, pwi_mul(b, c)))) \
  OP(CLAMP, pwi_min(pwi_max(a, b), c))

/* Of a and b. */
#define POINTWISE_COMPARE(OP)                \
  OP(RDNA_EQ, a == b)                        \
  OP(RDNA_NE, a != b)                        \
  OP(RDNA_LT, a < b)                         \
  OP(RDNA_LE, a <= b)                        \
  OP(RDNA_GT, a > b)                         \
  OP(RDNA_GE, a >= b)                        \
  OP(RDNA_LOGICAL_AND, a != 0 && b != 0)     \
  OP(RDNA_LOGICAL_OR, a != 0 || b != 0)      \
  OP(RDNA_LOGICAL_XOR, (a != 0) != (b != 0)) \
  OP(RDNA_LOGICAL_NOT, a == 0)               \
  OP(RDNA_ISNAN, a != a)                     \
  OP(RDNA_ISINF, a == a && a - a != 0)       \
  OP(RDNA_ISFINITE, a - a == 0)

#define POINTWISE_EACH_(...) \
  STRIDED_UNROLL for (int j = 0; j < n; j++) { __VA_ARGS__ }

/* Results replace v, or a. An operation that the type lacks leaves them; operators refuse it. */
#define POINTWISE_MAP_CASE_(op, expression) \
  case RDNA_MAP_##op:                       \
    POINTWISE_EACH_(pw_value x = v[j]; v[j] = expression;) break;
#define POINTWISE_ZIP_CASE_(op, expression) \
  case RDNA_ZIP_##op:                       \
    POINTWISE_EACH_(pw_value a = v[j], b = w[j]; v[j] = expression;) break;
#define POINTWISE_ZIP3_CASE_(op, expression) \
  case RDNA_ZIP3_##op:                       \
    POINTWISE_EACH_(pw_value a = v[j], b = w[j], c = u[j]; v[j] = expression;) break;
#define POINTWISE_COMPARE_CASE_(op, expression) \
  case op:                                      \
    POINTWISE_EACH_(pw_value a = v[j], b = w[j]; (void)b; out[j] = expression;) break;

#define POINTWISE_DEFINE_(suffix, type, LIST)                                                                         \
  RDNA_SCALAR void pointwise_map_##suffix(uint32_t op, type *__restrict v, int n, type p, type q) {                   \
    typedef type pw_value;                                                                                            \
    switch (op) { POINTWISE_MAP_##LIST(POINTWISE_MAP_CASE_) default : break; }                                        \
  }                                                                                                                   \
  RDNA_SCALAR void pointwise_zip_##suffix(uint32_t op, type *__restrict v, const type *__restrict w, int n, type p,   \
                                          type q) {                                                                   \
    typedef type pw_value;                                                                                            \
    switch (op) { POINTWISE_ZIP_##LIST(POINTWISE_ZIP_CASE_) default : break; }                                        \
  }                                                                                                                   \
  RDNA_SCALAR void pointwise_zip3_##suffix(uint32_t op, type *__restrict v, const type *__restrict w,                 \
                                           const type *__restrict u, int n, type p) {                                 \
    typedef type pw_value;                                                                                            \
    switch (op) { POINTWISE_ZIP3_##LIST(POINTWISE_ZIP3_CASE_) default : break; }                                      \
  }                                                                                                                   \
  RDNA_SCALAR void pointwise_compare_##suffix(uint32_t op, const type *__restrict v, const type *__restrict w, int n, \
                                              uint8_t *__restrict out) {                                              \
    typedef type pw_value;                                                                                            \
    switch (op) { POINTWISE_COMPARE(POINTWISE_COMPARE_CASE_) default : break; }                                       \
  }
POINTWISE_DEFINE_(f32, float, F32)
POINTWISE_DEFINE_(f64, double, F64)
POINTWISE_DEFINE_(i64, int64_t, I64)

#endif
