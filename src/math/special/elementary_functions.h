/* Functions of the exponential, the logarithm and the angle that rdna/op/pointwise.h lacks, in double, the same on the
 * host and on the GPU. Those of a family share one function of scalar64.h, so that a kernel has one set of
 * coefficients. */
#ifndef RDNA_MATH_SPECIAL_ELEMENTARY_FUNCTIONS_H
#define RDNA_MATH_SPECIAL_ELEMENTARY_FUNCTIONS_H

#include "kernel/scalar64.h"
#include "rdna/op/special.h"

/* Angles of a triangle with the sides x, s and 1, where 1 - x is exact for x near 1. Beyond 1, s is a NaN. */
RDNA_SCALAR double special_arc(uint32_t function, uint32_t order, double x) {
  (void)order;
  double s = __builtin_sqrt((1 - x) * (1 + x)), a = x, b = s;
  if (function == RDNA_SPECIAL_ACOS) a = s, b = x;
  if (function == RDNA_SPECIAL_ATAN) b = 1;
  return scalar64_atan2(a, b);
}

/* With e = exp(a) - 1: sinh is (e + e / (e + 1)) / 2 and cosh 1 + e^2 / (2 (e + 1)). From 20 on both are exp(a) / 2, as
 * the square of exp(a / 2), which is infinite later. */
RDNA_SCALAR double special_hyperbolic(uint32_t function, uint32_t order, double x) {
  (void)order;
  double a = scalar64_abs(x), e = scalar64_expm1(a < 20 ? a : 0.5 * a), below = 0.5 * (e / (e + 1));
  bool is_sinh = function == RDNA_SPECIAL_SINH;
  double near = is_sinh ? scalar64_fma(0.5, e, below) : scalar64_fma(below, e, 1);
  double y = a < 20 ? near : 0.5 * (e + 1) * (e + 1);
  return is_sinh ? scalar64_copysign(y, x) : y;
}

/* The inverse ones, by log(1 + z); from 1e150 on, where squares overflow, asinh and acosh are log(2 a). */
RDNA_SCALAR double special_area(uint32_t function, uint32_t order, double x) {
  (void)order;
  double a = scalar64_abs(x), z, t = x - 1, factor = 1, more = 0;
  if (function == RDNA_SPECIAL_ATANH) {
    z = 2 * a / (1 - a), factor = 0.5;
  } else if (a > 1e150) {
    z = function == RDNA_SPECIAL_ACOSH ? x : a, more = 0x1.62e42fefa39efp-1;
  } else if (function == RDNA_SPECIAL_ACOSH) {
    z = t + __builtin_sqrt(t) * __builtin_sqrt(t + 2); /* one root of the product would be a number below -1 too */
  } else {
    z = a + a * a / (1 + __builtin_sqrt(scalar64_fma(a, a, 1)));
  }
  double y = factor * scalar64_log1p(z) + more;
  return function == RDNA_SPECIAL_ACOSH ? y : scalar64_copysign(y, x);
}

/* log(exp(a) + exp(b)), and of powers of 2. */
RDNA_SCALAR double pair_add(uint32_t function, double a, double b) {
  double apart = scalar64_abs(a - b), most = a > b ? a : b;
  if (a == b && a - a != 0) return a; /* infinite both, whose difference is a NaN */
  bool binary = function == RDNA_SPECIAL_PAIR_LOGADDEXP2;
  double rest = scalar64_log1p(scalar64_exp(binary ? -apart * 0x1.62e42fefa39efp-1 : -apart));
  return (a != a ? a : most) + (binary ? rest * 0x1.71547652b82fep+0 : rest);
}

/* x log(y) and x log(1 + y), 0 where x is, unless y is a NaN. */
RDNA_SCALAR double pair_log(uint32_t function, double x, double y) {
  double l = function == RDNA_SPECIAL_PAIR_XLOGY ? scalar64_log(y) : scalar64_log1p(y);
  return x == 0 && y == y ? 0 : x * l;
}

/* The length of (x, y), infinite where either is; and choices, which are exact. */
RDNA_SCALAR double pair_choice(uint32_t function, double x, double y) {
  double a = scalar64_abs(x), b = scalar64_abs(y), most = a > b ? a : b, least = a > b ? b : a, r;
  switch (function) {
    case RDNA_SPECIAL_PAIR_HYPOT:
      if (a == __builtin_inf() || b == __builtin_inf()) return __builtin_inf();
      r = most == 0 ? 0 : least / most;
      return x != x || y != y ? x + y : most * __builtin_sqrt(scalar64_fma(r, r, 1));
    case RDNA_SPECIAL_PAIR_COPYSIGN:
      return scalar64_copysign(x, y);
    case RDNA_SPECIAL_PAIR_FMAX:
      return x != x || y > x ? y : x;
    default: /* fmin */
      return x != x || y < x ? y : x;
  }
}

#endif
