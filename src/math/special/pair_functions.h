/* Special functions of two arguments in double, the same on the host and on the GPU. A&S: Abramowitz and Stegun,
 * "Handbook of Mathematical Functions", 1964. */
#ifndef RDNA_MATH_SPECIAL_PAIR_FUNCTIONS_H
#define RDNA_MATH_SPECIAL_PAIR_FUNCTIONS_H

#include "math/special/special_functions.h"

/* P(a, x), or Q(a, x) = 1 - P(a, x) where |upper|. Below a the series of positive terms for P (A&S 6.5.29), above the
 * continued fraction for Q (A&S 6.5.31), from its front (Lentz, "Generating Bessel functions", 1976). */
RDNA_SCALAR double pair_gamma(uint32_t function, double a, double x) {
  const double inf = __builtin_inf(), nan = __builtin_nan("");
  bool upper = function == RDNA_SPECIAL_PAIR_IGAMMAC, is_upper;
  double value;
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == inf && x == inf)) return nan;
  if (a == 0 || x == inf) return upper ? 0 : 1;
  if (x == 0 || a == inf) return upper ? 1 : 0;
  double front = scalar64_exp(a * scalar64_log(x) - x - special_lgamma_positive_(a));
  if (x <= 1 || x <= a) {
    double term = 1 / a, sum = term;
    for (int k = 1; k < 20000 && term > sum * 0x1p-56; k++) term *= x / (a + (double)k), sum += term;
    value = front * sum, is_upper = false;
  } else {
    double b = x + 1 - a, c = 1e300, d = 1 / b, whole = d, change = 0;
    for (int k = 1; k < 20000 && scalar64_abs(change - 1) > 0x1p-54; k++) {
      double numerator = -(double)k * ((double)k - a);
      b += 2;
      d = numerator * d + b, c = b + numerator / c;
      d = 1 / (d == 0 ? 1e-300 : d), c = c == 0 ? 1e-300 : c;
      change = d * c, whole *= change;
    }
    value = front * whole, is_upper = true;
  }
  value = value > 1 ? 1 : value;
  return is_upper == upper ? value : 1 - value;
}

/* The sum of (q + k)^-s for k from 0. For q below 0, s a whole number, as special_polygamma has it. */
RDNA_SCALAR double pair_zeta(uint32_t function, double s, double q) {
  (void)function;
  if (!(s >= 1) || q != q) return __builtin_nan("");
  if (s == 1) return __builtin_inf();
  if (q == __builtin_inf() || (s == __builtin_inf() && q > 1)) return 0;
  if (q > 0) return s == __builtin_inf() ? (q == 1 ? 1 : s) : special_hurwitz_(s, q);
  double above = q - __builtin_floor(q), below = __builtin_ceil(q) - q;
  if (above == 0) return __builtin_inf();
  if (__builtin_floor(s) != s || q - q != 0) return __builtin_nan("");
  double odd = __builtin_floor(0.5 * s) * 2 == s ? 1 : -1;
  return special_hurwitz_(s, above) + odd * (special_hurwitz_(s, below) - special_hurwitz_(s, 1 - q));
}

/* Orthogonal polynomials of degree |degree| by their recurrences (A&S 22.7): the next of p = p(k) and |before| is
 * (a x + b) p - c before. A value that is no number any more stays. */
enum { PAIR_MOST_DEGREE = 1 << 20 };
RDNA_SCALAR double pair_polynomial(uint32_t function, double x, double degree) {
  if (degree <= -1) return 0;
  if (x != x || !(degree < PAIR_MOST_DEGREE + 1.0)) return __builtin_nan("");
  int32_t n = (int32_t)degree;
  bool shifted = function >= RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T && function <= RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W;
  uint32_t kind = shifted ? function - RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T + RDNA_SPECIAL_PAIR_CHEBYSHEV_T : function;
  if (shifted) x = 2 * x - 1;
  double before = 1, p;
  switch (kind) {
    case RDNA_SPECIAL_PAIR_CHEBYSHEV_U:
    case RDNA_SPECIAL_PAIR_HERMITE_H:
      p = 2 * x;
      break;
    case RDNA_SPECIAL_PAIR_CHEBYSHEV_V:
      p = 2 * x - 1;
      break;
    case RDNA_SPECIAL_PAIR_CHEBYSHEV_W:
      p = 2 * x + 1;
      break;
    case RDNA_SPECIAL_PAIR_LAGUERRE:
      p = 1 - x;
      break;
    default:
      p = x;
  }
  if (n == 0) return 1;
  for (int32_t i = 1; i < n && p - p == 0; i++) {
    double k = (double)i, next;
    switch (kind) {
      case RDNA_SPECIAL_PAIR_HERMITE_H:
        next = 2 * (x * p - k * before);
        break;
      case RDNA_SPECIAL_PAIR_HERMITE_HE:
        next = x * p - k * before;
        break;
      case RDNA_SPECIAL_PAIR_LAGUERRE:
        next = ((2 * k + 1 - x) * p - k * before) / (k + 1);
        break;
      case RDNA_SPECIAL_PAIR_LEGENDRE:
        next = ((2 * k + 1) * x * p - k * before) / (k + 1);
        break;
      default:
        next = 2 * x * p - before;
    }
    before = p, p = next;
  }
  return p;
}

#endif
