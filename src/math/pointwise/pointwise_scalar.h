/* Functions of one value that the operations are made of, the same on the host and on the GPU. pw32_ is for f32, pw64_
 * for f64 and pwi_ for integers, so that one list of expressions serves several types. */
#ifndef RDNA_MATH_POINTWISE_SCALAR_H
#define RDNA_MATH_POINTWISE_SCALAR_H

#include <stdbool.h>

#include "kernel/scalar.h"

RDNA_SCALAR float pw32_abs(float x) { return __builtin_fabsf(x); }
RDNA_SCALAR float pw32_ceil(float x) { return __builtin_ceilf(x); }
RDNA_SCALAR float pw32_floor(float x) { return __builtin_floorf(x); }
RDNA_SCALAR float pw32_rint(float x) { return __builtin_rintf(x); }
RDNA_SCALAR float pw32_trunc(float x) { return __builtin_truncf(x); }
RDNA_SCALAR float pw32_sqrt(float x) { return __builtin_sqrtf(x); }
RDNA_SCALAR float pw32_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_SCALAR float pw32_max(float a, float b) { return a > b || a != a ? a : b; }
RDNA_SCALAR float pw32_min(float a, float b) { return a < b || a != a ? a : b; }

RDNA_SCALAR double pw64_abs(double x) { return __builtin_fabs(x); }
RDNA_SCALAR double pw64_ceil(double x) { return __builtin_ceil(x); }
RDNA_SCALAR double pw64_floor(double x) { return __builtin_floor(x); }
RDNA_SCALAR double pw64_rint(double x) { return __builtin_rint(x); }
RDNA_SCALAR double pw64_trunc(double x) { return __builtin_trunc(x); }
RDNA_SCALAR double pw64_sqrt(double x) { return __builtin_sqrt(x); }
RDNA_SCALAR double pw64_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
RDNA_SCALAR double pw64_max(double a, double b) { return a > b || a != a ? a : b; }
RDNA_SCALAR double pw64_min(double a, double b) { return a < b || a != a ? a : b; }

/* Integers wrap around. */
RDNA_SCALAR int64_t pwi_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
RDNA_SCALAR int64_t pwi_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
RDNA_SCALAR int64_t pwi_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
RDNA_SCALAR int64_t pwi_max(int64_t a, int64_t b) { return a > b ? a : b; }
RDNA_SCALAR int64_t pwi_min(int64_t a, int64_t b) { return a < b ? a : b; }
/* Of those that follow the last argument is not 0 where the values are u64 in an int64_t: they have no sign then. */
RDNA_SCALAR bool pwi_below_(int64_t a, int64_t u64) { return u64 == 0 && a < 0; }
RDNA_SCALAR uint64_t pwi_magnitude_(int64_t a, int64_t u64) {
  return pwi_below_(a, u64) ? 0 - (uint64_t)a : (uint64_t)a;
}
RDNA_SCALAR int64_t pwi_div(int64_t a, int64_t b, int64_t u64) {
  if (b == 0) return 0;
  int64_t q = (int64_t)(pwi_magnitude_(a, u64) / pwi_magnitude_(b, u64));
  return pwi_below_(a, u64) != pwi_below_(b, u64) ? pwi_sub(0, q) : q;
}
RDNA_SCALAR int64_t pwi_fmod(int64_t a, int64_t b, int64_t u64) { return pwi_sub(a, pwi_mul(pwi_div(a, b, u64), b)); }
RDNA_SCALAR int64_t pwi_remainder(int64_t a, int64_t b, int64_t u64) {
  int64_t r = pwi_fmod(a, b, u64);
  return r != 0 && b != 0 && pwi_below_(r, u64) != pwi_below_(b, u64) ? r + b : r;
}
RDNA_SCALAR int64_t pwi_floor_div(int64_t a, int64_t b, int64_t u64) {
  int64_t q = pwi_div(a, b, u64), r = pwi_sub(a, pwi_mul(q, b));
  return r != 0 && b != 0 && pwi_below_(r, u64) != pwi_below_(b, u64) ? q - 1 : q;
}
RDNA_SCALAR int64_t pwi_pow(int64_t a, int64_t b, int64_t u64) {
  if (pwi_below_(b, u64)) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  uint64_t result = 1, power = (uint64_t)a;
  for (uint64_t left = (uint64_t)b; left != 0; left >>= 1) {
    if (left & 1) result *= power;
    power *= power;
  }
  return (int64_t)result;
}
RDNA_SCALAR int64_t pwi_gcd(int64_t a, int64_t b, int64_t u64) { /* Euclid's */
  uint64_t x = pwi_magnitude_(a, u64), y = pwi_magnitude_(b, u64);
  while (y != 0) {
    uint64_t rest = x % y;
    x = y, y = rest;
  }
  return (int64_t)x;
}
RDNA_SCALAR int64_t pwi_lcm(int64_t a, int64_t b, int64_t u64) {
  uint64_t divisor = (uint64_t)pwi_gcd(a, b, u64);
  return divisor == 0 ? 0 : (int64_t)(pwi_magnitude_(a, u64) / divisor * pwi_magnitude_(b, u64));
}
RDNA_SCALAR int64_t pwi_shift_left(int64_t a, int64_t b) {
  return (uint64_t)b > 63 ? 0 : (int64_t)((uint64_t)a << ((uint64_t)b & 63));
}
RDNA_SCALAR int64_t pwi_shift_right(int64_t a, int64_t b, int64_t u64) {
  if (u64 != 0) return (uint64_t)b > 63 ? 0 : (int64_t)((uint64_t)a >> b);
  return a >> ((uint64_t)b > 63 ? 63 : b);
}

/* x - n y with n = trunc(x / y), exactly: long division of the significands, eight bits of n a step. */
RDNA_SCALAR float pw32_fmod(float x, float y) {
  uint32_t a = scalar_bits(x) & 0x7fffffffu, b = scalar_bits(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0) return __builtin_nanf("");
  if (a < b) return x;
  int32_t a_exponent = a >> 23 ? (int32_t)(a >> 23) : 1, b_exponent = b >> 23 ? (int32_t)(b >> 23) : 1;
  uint32_t divisor = (b & 0x7fffffu) | (b >> 23 ? 0x800000u : 0);
  uint32_t rest = ((a & 0x7fffffu) | (a >> 23 ? 0x800000u : 0)) % divisor;
  for (int32_t left = a_exponent - b_exponent; left > 0 && rest != 0;) {
    int32_t step = left < 8 ? left : 8;
    rest = (rest << step) % divisor;
    left -= step;
  }
  /* rest * 2^(b_exponent - 150): scaled in one or two exact steps, or where b is subnormal just the bits */
  float r = b_exponent == 1 ? scalar_from_bits(rest)
                            : (float)rest * scalar_from_bits((uint32_t)(b_exponent > 24 ? b_exponent - 23 : 1) << 23);
  if (b_exponent > 1 && b_exponent <= 24) r *= scalar_from_bits((uint32_t)(b_exponent - 24 + 127) << 23);
  return scalar_copysign(r, x);
}
RDNA_SCALAR float pw32_remainder(float x, float y) {
  float r = pw32_fmod(x, y);
  return r == 0 ? scalar_copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
}
/* floor(x / y) of the exact quotient where that is below 2^24. With r = fmod(x, y), x - r is n y for an integer n,
 * which may itself need more than 24 bits. */
RDNA_SCALAR float pw32_floor_div(float x, float y) {
  if (y == 0) return x / y;
  float r = pw32_fmod(x, y), product = x - r, lost = x - product - r, q = __builtin_rintf(product / y);
  float left = scalar_fma(-q, y, product) + lost; /* (n - q) y */
  if (__builtin_fabsf(left) > 0.5f * __builtin_fabsf(y)) q += (left < 0) == (y < 0) ? 1 : -1;
  float floored = r != 0 && (r < 0) != (y < 0) ? q - 1 : q;
  return floored == 0 ? scalar_copysign(0, x / y) : floored;
}

/* The neighbour of x on the way to y: numbers of one sign are in the order of their bits. |short_by| is how many bits
 * of the fraction the type of both lacks: 0, 16 for bf16, 13 for f16, whose exponents end sooner besides. */
RDNA_SCALAR float pw32_nextafter(float x, float y, float short_by) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  uint32_t bits = scalar_bits(x), unit = short_by == 16 ? 0x10000u : short_by == 13 ? 0x2000u : 1u;
  float size = __builtin_fabsf(x);
  bool away = x == 0 || (y > x) == (x > 0);
  if (short_by == 13 && size == __builtin_inff()) return scalar_copysign(65504, x);
  if (short_by == 13 && (size < 0x1p-14f || (size == 0x1p-14f && !away))) {
    float next = y > x ? x + 0x1p-24f : x - 0x1p-24f;
    return next == 0 ? scalar_copysign(0, x) : next;
  }
  if (x == 0) return scalar_copysign(scalar_from_bits(unit), y);
  return scalar_from_bits(away ? bits + unit : bits - unit);
}

/* log2(x) for a finite x > 0, to about 2^-44: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(m) = 2 atanh((m - 1) /
 * (m + 1)) by its series. */
RDNA_SCALAR double pw_log2_wide_(float x) {
  uint32_t bits = scalar_bits(x < 0x1p-126f ? x * 0x1p23f : x);
  int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23;
  double m = (double)scalar_from_bits(bits - ((uint32_t)exponent << 23));
  double s = (m - 1) / (m + 1), z = s * s, sum = 1.0 / 19;
  sum = __builtin_fma(sum, z, 1.0 / 17);
  sum = __builtin_fma(sum, z, 1.0 / 15);
  sum = __builtin_fma(sum, z, 1.0 / 13);
  sum = __builtin_fma(sum, z, 1.0 / 11);
  sum = __builtin_fma(sum, z, 1.0 / 9);
  sum = __builtin_fma(sum, z, 1.0 / 7);
  sum = __builtin_fma(sum, z, 1.0 / 5);
  sum = __builtin_fma(sum, z, 1.0 / 3);
  double log2_m = __builtin_fma(sum * z, s, s) * 0x1.71547652b82fep+1; /* 2 / ln 2 */
  return (double)(exponent - (x < 0x1p-126f ? 23 : 0)) + log2_m;
}
/* 2^y to about 2^-36, then rounded; |y| <= 200. */
RDNA_SCALAR float pw_exp2_wide_(double y) {
  double n = __builtin_rint(y), r = (y - n) * 0x1.62e42fefa39efp-1, sum = 1.0 / 362880;
  sum = __builtin_fma(sum, r, 1.0 / 40320);
  sum = __builtin_fma(sum, r, 1.0 / 5040);
  sum = __builtin_fma(sum, r, 1.0 / 720);
  sum = __builtin_fma(sum, r, 1.0 / 120);
  sum = __builtin_fma(sum, r, 1.0 / 24);
  sum = __builtin_fma(sum, r, 1.0 / 6);
  sum = __builtin_fma(sum, r, 0.5);
  sum = __builtin_fma(sum, r, 1.0);
  sum = __builtin_fma(sum, r, 1.0);
  uint64_t scale_bits = (uint64_t)((int64_t)n + 1023) << 52;
  double scale;
  __builtin_memcpy(&scale, &scale_bits, sizeof scale);
  return (float)(sum * scale);
}
/* x^y with the special cases of IEEE 754-2019, 9.2.1. Cubes, as in gelu's polynomial, are two multiplications: within a
 * unit in the last place, for a hundredth of the work. */
RDNA_SCALAR float pw32_pow(float x, float y) {
  const float inf = __builtin_inff();
  if (y == 3) return x * x * x;
  float a = scalar_abs(x);
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return __builtin_nanf("");
  bool whole = __builtin_truncf(y) == y;
  bool odd = whole && scalar_abs(y) < 0x1p24f && ((int32_t)y & 1);
  float sign = odd ? scalar_copysign(1, x) : 1.0f;
  if (a == 0 || a == inf) return sign * ((a == 0) == (y < 0) ? inf : 0.0f);
  if (scalar_abs(y) == inf) return a == 1 ? 1.0f : (a < 1) == (y < 0) ? inf : 0.0f;
  if (x < 0 && !whole) return __builtin_nanf("");
  double product = (double)y * pw_log2_wide_(a);
  product = product > 200 ? 200 : product < -200 ? -200 : product;
  return sign * pw_exp2_wide_(product);
}

/* atan(small / large) by its series, after moving arguments above tan(pi/8) down by pi/4. */
RDNA_SCALAR float pw32_atan2(float y, float x) {
  const double pi = 0x1.921fb54442d18p+1;
  double ax = (double)scalar_abs(x), ay = (double)scalar_abs(y);
  if (x != x || y != y) return __builtin_nanf("");
  if (ax > 0x1p200 && ay > 0x1p200) ax = ay = 1; /* both infinite */
  bool steep = ay > ax;
  double small = steep ? ax : ay, large = steep ? ay : ax;
  bool moved = small > 0.4142135623730951 * large;
  double t = moved ? (small - large) / (small + large) : large > 0 ? small / large : 0;
  double z = t * t, sum = 1.0 / 25;
  sum = __builtin_fma(-sum, z, 1.0 / 23);
  sum = __builtin_fma(-sum, z, 1.0 / 21);
  sum = __builtin_fma(-sum, z, 1.0 / 19);
  sum = __builtin_fma(-sum, z, 1.0 / 17);
  sum = __builtin_fma(-sum, z, 1.0 / 15);
  sum = __builtin_fma(-sum, z, 1.0 / 13);
  sum = __builtin_fma(-sum, z, 1.0 / 11);
  sum = __builtin_fma(-sum, z, 1.0 / 9);
  sum = __builtin_fma(-sum, z, 1.0 / 7);
  sum = __builtin_fma(-sum, z, 1.0 / 5);
  sum = __builtin_fma(-sum, z, 1.0 / 3);
  double angle = __builtin_fma(-sum * z, t, t) + (moved ? pi / 4 : 0);
  if (steep) angle = pi / 2 - angle;
  if (scalar_bits(x) >> 31) angle = pi - angle;
  return scalar_copysign((float)angle, y);
}

RDNA_SCALAR float pw32_tan(float x) {
  float s, c;
  scalar_sincos(x, &s, &c);
  return x == 0 ? x : s / c;
}
RDNA_SCALAR float pw32_log10(float x) { return scalar_log(x) * 0x1.bcb7b2p-2f; }
RDNA_SCALAR float pw32_elu(float x, float p, float q) { return x > 0 ? q * x : p * scalar_expm1(x); }
RDNA_SCALAR float pw32_softplus(float x, float p, float q) { return p * x > q ? x : scalar_softplus(p * x) / p; }
RDNA_SCALAR float pw32_mish(float x) { return x * scalar_tanh(scalar_softplus(x)); }
RDNA_SCALAR float pw32_silu_grad(float g, float x) {
  float s = scalar_sigmoid(x);
  return g * (s * (1 + x * (1 - s)));
}
/* Phi(x) + x phi(x) */
RDNA_SCALAR float pw32_gelu_erf_grad(float g, float x) {
  float a = x * 0x1.6a09e6p-1f;
  float phi = 0x1.988454p-2f * scalar_exp(-0.5f * x * x);
  float twice = a < -0.925f ? scalar_erfc_large_(-a) : 1 + scalar_erf(a);
  return g * (0.5f * twice + (x - x == 0 ? x * phi : phi));
}
RDNA_SCALAR float pw32_gelu_tanh_grad(float g, float x) {
  float z = x * x, t = scalar_tanh(0x1.988454p-1f * scalar_fma(0x1.6e4e26p-5f * z, x, x));
  float slope = 0x1.988454p-1f * scalar_fma(0x1.12bab4p-3f, z, 1); /* 3 * 0.044715 */
  float bent = (1 - t * t) * x * slope;
  return g * (0.5f * (1 + t) + (t * t == 1 ? 0.0f : 0.5f * bent));
}
RDNA_SCALAR float pw32_elu_grad(float g, float x, float p, float q) { return g * (x > 0 ? q : p * scalar_exp(x)); }
RDNA_SCALAR float pw32_softplus_grad(float g, float x, float p, float q) {
  return p * x > q ? g : g * scalar_sigmoid(p * x);
}
RDNA_SCALAR float pw32_swiglu_clamped(float gate, float up, float p, float q) {
  float g = pw32_min(gate, q), u = pw32_max(pw32_min(up, q), -q);
  return g * scalar_sigmoid(p * g) * (u + 1);
}

#endif
