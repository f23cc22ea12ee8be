/* Functions of pointwise_scalar.h in double, from those of scalar64.h. */
#ifndef RDNA_MATH_POINTWISE_SCALAR64_H
#define RDNA_MATH_POINTWISE_SCALAR64_H

#include <stdbool.h>

#include "kernel/scalar64.h"

/* The exponent of a positive finite x, subnormal ones included. */
RDNA_SCALAR int32_t pw64_exponent_(double x) {
  int32_t e = (int32_t)(scalar64_bits(x) >> 52);
  return e != 0 ? e - 1023 : (int32_t)(scalar64_bits(x * 0x1p54) >> 52) - 1077;
}
/* x - n y with n = trunc(x / y), exactly: long division, 51 bits of n at a time from the top. Each quotient is rounded,
 * so it is at most 1 too large. Each remainder is exact: a multiple of the smaller unit in the last place, and less
 * than the divisor. */
RDNA_SCALAR double pw64_fmod(double x, double y) {
  double a = scalar64_abs(x), b = scalar64_abs(y);
  if (!(a < __builtin_inf()) || y != y || b == 0) return __builtin_nan("");
  if (a < b) return x;
  int32_t exponent = pw64_exponent_(b);
  while (a >= b) {
    int32_t up = pw64_exponent_(a) - exponent - 51;
    double divisor = up > 0 ? scalar64_scale_(b, up) : b;
    double rest = scalar64_fma(-__builtin_trunc(a / divisor), divisor, a);
    a = rest < 0 ? rest + divisor : rest;
  }
  return scalar64_copysign(a, x);
}
RDNA_SCALAR double pw64_remainder(double x, double y) {
  double r = pw64_fmod(x, y);
  return r == 0 ? scalar64_copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
}
/* floor(x / y) of the exact quotient where that is below 2^53. With r = fmod(x, y), x - r is n y for an integer n,
 * which may itself need more than 53 bits. */
RDNA_SCALAR double pw64_floor_div(double x, double y) {
  if (y == 0) return x / y;
  double r = pw64_fmod(x, y), product = x - r, lost = x - product - r, q = __builtin_rint(product / y);
  double left = scalar64_fma(-q, y, product) + lost; /* (n - q) y */
  if (scalar64_abs(left) > 0.5 * scalar64_abs(y)) q += (left < 0) == (y < 0) ? 1 : -1;
  double floored = r != 0 && (r < 0) != (y < 0) ? q - 1 : q;
  return floored == 0 ? scalar64_copysign(0, x / y) : floored;
}

RDNA_SCALAR double pw64_nextafter(double x, double y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0) return scalar64_copysign(scalar64_from_bits(1), y);
  return scalar64_from_bits(scalar64_bits(x) + ((y > x) == (x > 0) ? 1 : (uint64_t)-1));
}

RDNA_SCALAR double pw64_elu(double x, double p, double q) { return x > 0 ? q * x : p * scalar64_expm1(x); }
RDNA_SCALAR double pw64_softplus(double x, double p, double q) { return p * x > q ? x : scalar64_softplus(p * x) / p; }
RDNA_SCALAR double pw64_silu_grad(double g, double x) {
  return g * (scalar64_sigmoid(x) * scalar64_fma(x, scalar64_sigmoid(-x), 1));
}
/* Phi(x) + x phi(x) */
RDNA_SCALAR double pw64_gelu_erf_grad(double g, double x) {
  int32_t n;
  struct scalar64_pair twice = scalar64_twice_phi_(x, &n);
  double phi = 0x1.9884533d43651p-2 * scalar64_exp(-0.5 * x * x);
  double half = x < -40 ? 0 : 0.5 * scalar64_scale_(twice.h + twice.l, n);
  return g * (x - x == 0 ? scalar64_fma(x, phi, half) : half + phi);
}
/* s + x s' with s the sigmoid of u(x) = sqrt(8 / pi) (x + 0.044715 x^3): s' = s(u) s(-u) u'. */
RDNA_SCALAR double pw64_gelu_tanh_grad(double g, double x) {
  struct scalar64_pair u = scalar64_gelu_inner_(x);
  double s = scalar64_sigmoid(u.h), both = s * scalar64_sigmoid(-u.h);
  double slope = 0x1.9884533d43651p+0 * scalar64_fma(3 * 0.044715 * x, x, 1);
  return g * (s + (both == 0 ? 0 : both * x * slope));
}
RDNA_SCALAR double pw64_elu_grad(double g, double x, double p, double q) {
  return g * (x > 0 ? q : p * scalar64_exp(x));
}
RDNA_SCALAR double pw64_softplus_grad(double g, double x, double p, double q) {
  return p * x > q ? g : g * scalar64_sigmoid(p * x);
}
RDNA_SCALAR double pw64_swiglu_clamped(double gate, double up, double p, double q) {
  double g = pw64_min(gate, q), u = pw64_max(pw64_min(up, q), -q);
  return g * scalar64_sigmoid(p * g) * (u + 1);
}

#endif
