/* What each operation of rdna/op/pointwise.def computes, on |n| values: on the GPU those of a thread, on the host a run
 * of a row. Each operation has its own loop inside the switch, so that the loop unrolls or vectorises. */
#ifndef RDNA_MATH_POINTWISE_OPS_H
#define RDNA_MATH_POINTWISE_OPS_H

#include "math/common/strided.h"
#include "math/pointwise/pointwise_check.h"
#include "math/pointwise/pointwise_scalar.h"
#include "rdna/op/pointwise.h"

#define POINTWISE_EACH_(...) \
  STRIDED_UNROLL for (int j = 0; j < n; j++) { __VA_ARGS__ }

/* The case of one operation in the switch. Results replace v. Operations that the type lacks have no case and change
 * nothing; operators refuse them. */
#define POINTWISE_MAP_CASE_(NAME, expression) \
  case RDNA_MAP_##NAME:                       \
    POINTWISE_EACH_(pw_value x = v[j]; v[j] = expression;) break;
#define POINTWISE_ZIP_CASE_(NAME, expression) \
  case RDNA_ZIP_##NAME:                       \
    POINTWISE_EACH_(pw_value a = v[j], b = w[j]; v[j] = expression;) break;
#define POINTWISE_ZIP3_CASE_(NAME, expression) \
  case RDNA_ZIP3_##NAME:                       \
    POINTWISE_EACH_(pw_value a = v[j], b = w[j], c = u[j]; v[j] = expression;) break;
#define POINTWISE_COMPARE_CASE_(NAME, name, inputs, expression) \
  case RDNA_COMPARE_##NAME:                                     \
    POINTWISE_EACH_(pw_value a = v[j], b = w[j]; (void)b; out[j] = expression;) break;

/* A row's case, if its column |types| offers the operation for real numbers, or for integers. A simple row has one real
 * expression, for float and double; an elementary row has one for float, which is taken here, and one for double. */
#define POINTWISE_IF_REAL_R(...) __VA_ARGS__
#define POINTWISE_IF_REAL_RI(...) __VA_ARGS__
#define POINTWISE_IF_REAL_I(...)
#define POINTWISE_IF_INTEGER_R(...)
#define POINTWISE_IF_INTEGER_RI(...) __VA_ARGS__
#define POINTWISE_IF_INTEGER_I(...) __VA_ARGS__
#define POINTWISE_NO_MAP_(...)
#define POINTWISE_NO_ZIP_(...)
#define POINTWISE_REAL_MAP_(NAME, name, types, chain, integer, real, ...) \
  POINTWISE_IF_REAL_##types(POINTWISE_MAP_CASE_(NAME, real))
#define POINTWISE_REAL_ZIP_(NAME, name, types, chain, integer, real, ...) \
  POINTWISE_IF_REAL_##types(POINTWISE_ZIP_CASE_(NAME, real))
#define POINTWISE_REAL_ZIP3_(NAME, name, types, chain, integer, real) \
  POINTWISE_IF_REAL_##types(POINTWISE_ZIP3_CASE_(NAME, real))
#define POINTWISE_INTEGER_MAP_(NAME, name, types, chain, integer, ...) \
  POINTWISE_IF_INTEGER_##types(POINTWISE_MAP_CASE_(NAME, integer))
#define POINTWISE_INTEGER_ZIP_(NAME, name, types, chain, integer, ...) \
  POINTWISE_IF_INTEGER_##types(POINTWISE_ZIP_CASE_(NAME, integer))
#define POINTWISE_INTEGER_ZIP3_(NAME, name, types, chain, integer, real) \
  POINTWISE_IF_INTEGER_##types(POINTWISE_ZIP3_CASE_(NAME, integer))

/* Defines the functions of one type. |simple| and |elementary| choose what a row of each kind becomes: POINTWISE_REAL,
 * POINTWISE_INTEGER or POINTWISE_NO. */
#define POINTWISE_DEFINE_(suffix, type, simple, elementary, f)                                                        \
  RDNA_SCALAR void pointwise_map_##suffix(uint32_t op, type *__restrict v, int n, type p, type q) {                   \
    typedef type pw_value;                                                                                            \
    switch (op) { RDNA_POINTWISE_MAPS(simple##_MAP_, elementary##_MAP_, f, scalar) default : break; }                 \
  }                                                                                                                   \
  RDNA_SCALAR void pointwise_zip_##suffix(uint32_t op, type *__restrict v, const type *__restrict w, int n, type p,   \
                                          type q) {                                                                   \
    typedef type pw_value;                                                                                            \
    switch (op) { RDNA_POINTWISE_ZIPS(simple##_ZIP_, elementary##_ZIP_, f) default : break; }                         \
  }                                                                                                                   \
  RDNA_SCALAR void pointwise_zip3_##suffix(uint32_t op, type *__restrict v, const type *__restrict w,                 \
                                           const type *__restrict u, int n, type p) {                                 \
    typedef type pw_value;                                                                                            \
    switch (op) { RDNA_POINTWISE_ZIP3S(simple##_ZIP3_, f) default : break; }                                          \
  }                                                                                                                   \
  RDNA_SCALAR void pointwise_compare_##suffix(uint32_t op, const type *__restrict v, const type *__restrict w, int n, \
                                              uint8_t *__restrict out) {                                              \
    typedef type pw_value;                                                                                            \
    switch (op) { RDNA_POINTWISE_COMPARES(POINTWISE_COMPARE_CASE_) default : break; }                                 \
  }
POINTWISE_DEFINE_(f32, float, POINTWISE_REAL, POINTWISE_REAL, pw32)
POINTWISE_DEFINE_(f64, double, POINTWISE_REAL, POINTWISE_NO, pw64)
POINTWISE_DEFINE_(i64, int64_t, POINTWISE_INTEGER, POINTWISE_INTEGER, pwi)
/* As f32, without elementary functions: for kernels that those would take too many registers of. */
POINTWISE_DEFINE_(simple, float, POINTWISE_REAL, POINTWISE_NO, pw32)

#endif
