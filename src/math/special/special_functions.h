/* Special functions in double, the same on the host and on the GPU: series whose terms have one sign, asymptotic
 * expansions, and recurrences between where each holds. Sources are named at each; coefficients are sums of their
 * definitions in 50 digits, rounded to double. A&S: Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964.
 */
#ifndef RDNA_MATH_SPECIAL_FUNCTIONS_H
#define RDNA_MATH_SPECIAL_FUNCTIONS_H

#include "kernel/scalar64.h"
#include "rdna/op/special.h"

#define SPECIAL_PI 0x1.921fb54442d18p+1

/* --- the error function's complement, and inverses --- */

RDNA_SCALAR double special_erfc_large_(double x) { /* x >= 0.4 */
  if (x > 27.5) return 0;
  int32_t n;
  struct scalar64_pair e = scalar64_erfc_large_(scalar64_pair_of_(x, 0), scalar64_product_(x, x), &n);
  return scalar64_scale_(e.h + e.l, n);
}
RDNA_SCALAR double special_erfc(double x) {
  return x >= 0.4 ? special_erfc_large_(x) : 1 - scalar64_erf(x); /* a NaN too */
}
/* Halley's step towards erf's root, where erf(y) is |over| too large. The exponential is that of special_erfc_large_,
 * so that the compiler keeps its coefficients once. */
RDNA_SCALAR double special_halley_(double y, double over) {
  int32_t n;
  struct scalar64_pair power = scalar64_exp_unscaled_(scalar64_pair_of_(-y * y, 0), &n);
  double e = over / (0x1.20dd750429b6dp+0 * scalar64_scale_(power.h, n)); /* 2 / sqrt(pi) */
  return y - e / (1 + y * e);
}
/* y >= 0 of erfc(y) = q for q in (0, 1], near which erf(y) = p = 1 - q is used instead. A first guess from the leading
 * terms of log(erfc(y)) = -y^2 - log(y sqrt(pi)) (A&S 7.1.23) for small q, else Winitzki's ("A handy approximation for
 * the error function and its inverse", 2008), of 2 digits and more; each step of Halley's triples them. */
RDNA_SCALAR double special_inverse_(double p, double q) {
  double l = -scalar64_log(q) - scalar64_log1p(p), a = 0.147, y;
  if (p < 0.5) l = -scalar64_log1p(-p * p);
  double c = 2 / (SPECIAL_PI * a) - 0.5 * l;
  y = __builtin_sqrt(__builtin_sqrt(c * c + l / a) - c);
  if (q < 1e-3) {
    double w = -scalar64_log(q * 0x1.c5bf891b4ef6bp+0); /* sqrt(pi) */
    y = __builtin_sqrt(w - 0.5 * scalar64_log(w - 0.5 * scalar64_log(w)));
  } else if (p < 1e-4) {
    y = p * 0x1.c5bf891b4ef6bp-1;
  }
  /* Each way has a loop of its own: one of both would keep the coefficients of both in registers. */
  for (int step = 0; step < 3 && p < 0.5; step++) {
    y = special_halley_(y, scalar64_erf_small_(y) - p);
  }
  for (int step = 0; step < 3 && p >= 0.5; step++) {
    y = special_halley_(y, q - special_erfc_large_(y));
  }
  return y;
}
RDNA_SCALAR double special_erfinv_or_ndtri(bool ndtri, double x) { /* Phi(y) = erfc(-y / sqrt(2)) / 2 */
  const double inf = __builtin_inf(), a = scalar64_abs(x);
  if (!(ndtri ? x > 0 && x < 1 : a < 1)) {
    if (x == 1) return inf;
    return ndtri ? (x == 0 ? -inf : __builtin_nan("")) : a == 1 ? -inf : __builtin_nan("");
  }
  double p = a, q = 1 - a, y;
  if (ndtri) q = 2 * (x < 0.5 ? x : 1 - x), p = x < 0.5 ? 1 - 2 * x : 2 * x - 1;
  if (p < 1e-8) {
    y = p * 0x1.c5bf891b4ef6bp-1; /* sqrt(pi) / 2 */
  } else {
    y = special_inverse_(p, q);
  }
  return ndtri ? scalar64_copysign(0x1.6a09e667f3bcdp+0 * y, x - 0.5) : scalar64_copysign(y, x);
}

/* --- the gamma function's logarithm, and its derivatives --- */

/* log(Gamma(2 + z)) = (1 - gamma) z + sum of (-1)^k (zeta(k) - 1) z^k / k for k from 2 (A&S 6.1.33), |z| <= 1/2. */
RDNA_SCALAR double special_lgamma_at_2_(double z) {
  double s = -0x1.2f69a9fabe3e0p-32;
  s = scalar64_fma(s, z, 0x1.3b15d2b2fc10cp-31);
  s = scalar64_fma(s, z, -0x1.47b1679258d0ep-30);
  s = scalar64_fma(s, z, 0x1.555a877ffd2c3p-29);
  s = scalar64_fma(s, z, -0x1.6434a8447aeadp-28);
  s = scalar64_fma(s, z, 0x1.7469daccfadcdp-27);
  s = scalar64_fma(s, z, -0x1.862c734df3eacp-26);
  s = scalar64_fma(s, z, 0x1.99b93c2070b0fp-25);
  s = scalar64_fma(s, z, -0x1.af5a6cbbf8a97p-24);
  s = scalar64_fma(s, z, 0x1.c76bbb3f07a4dp-23);
  s = scalar64_fma(s, z, -0x1.e2600d93cfd2fp-22);
  s = scalar64_fma(s, z, 0x1.0064cdeb22f0fp-20);
  s = scalar64_fma(s, z, -0x1.11b2eb7679541p-19);
  s = scalar64_fma(s, z, 0x1.2597a39f34aacp-18);
  s = scalar64_fma(s, z, -0x1.3cbc963ce2243p-17);
  s = scalar64_fma(s, z, 0x1.580dcee66eb02p-16);
  s = scalar64_fma(s, z, -0x1.78de5bd7c81efp-15);
  s = scalar64_fma(s, z, 0x1.a127b0f17d65ap-14);
  s = scalar64_fma(s, z, -0x1.d3fd4c76d2fc8p-13);
  s = scalar64_fma(s, z, 0x1.0b36af86396e9p-11);
  s = scalar64_fma(s, z, -0x1.38ac5c2bf8e08p-10);
  s = scalar64_fma(s, z, 0x1.7add6eadb6c30p-9);
  s = scalar64_fma(s, z, -0x1.e404fc218f5f2p-8);
  s = scalar64_fma(s, z, 0x1.51322ac7d8483p-6);
  s = scalar64_fma(s, z, -0x1.13e001a557607p-4);
  s = scalar64_fma(s, z, 0x1.4a34cc4a60fa6p-2);
  s = scalar64_fma(s, z, 0x1.b0ee6072093cep-2);
  return s * z;
}
/* Stirling's series (A&S 6.1.41) for x >= 10: log(Gamma(x)) is (x - 1/2) log(x) - x + log(2 pi) / 2 and this. */
RDNA_SCALAR double special_stirling_(double x) {
  double w = 1 / x, z = w * w, s = -3617.0 / 122400;
  s = scalar64_fma(s, z, 1.0 / 156);
  s = scalar64_fma(s, z, -691.0 / 360360);
  s = scalar64_fma(s, z, 1.0 / 1188);
  s = scalar64_fma(s, z, -1.0 / 1680);
  s = scalar64_fma(s, z, 1.0 / 1260);
  s = scalar64_fma(s, z, -1.0 / 360);
  s = scalar64_fma(s, z, 1.0 / 12);
  return s * w;
}
RDNA_SCALAR double special_lgamma_positive_(double x) {
  if (x >= 10) {
    double l = scalar64_log(x);
    return x > 1e300 ? x * (l - 1) : scalar64_fma(x - 0.5, l - 1, special_stirling_(x) + 0x1.acfe390c97d6ap-2);
  }
  if (x < 0.5) return special_lgamma_at_2_(x) - scalar64_log1p(x) - scalar64_log(x);
  if (x < 1.5) return special_lgamma_at_2_(x - 1) - scalar64_log1p(x - 1);
  double product = 1;
  while (x > 2.5) x -= 1, product *= x;
  return special_lgamma_at_2_(x - 2) + scalar64_log(product);
}
/* sin(pi x) without its sign */
RDNA_SCALAR double special_sin_pi_(double x) {
  return scalar64_abs(scalar64_sin(SPECIAL_PI * (x - __builtin_rint(x))));
}
/* Below 0 by Gamma(x) Gamma(-x) = -pi / (x sin(pi x)) (A&S 6.1.17). */
RDNA_SCALAR double special_lgamma(double x) {
  double a = scalar64_abs(x);
  if (!(a < __builtin_inf())) return a;
  if (x <= 0 && __builtin_trunc(x) == x) return __builtin_inf();
  if (x > 0) return special_lgamma_positive_(x);
  if (a < 1e-18) return -scalar64_log(a);
  return scalar64_log(SPECIAL_PI / (a * special_sin_pi_(x))) - special_lgamma_positive_(a);
}
/* The derivative of Stirling's series (A&S 6.3.18) from 10 on, and digamma(x) = digamma(x + 1) - 1 / x below. */
RDNA_SCALAR double special_digamma_positive_(double x) {
  double below = 0;
  while (x < 10) below += 1 / x, x += 1;
  double w = 1 / x, z = w * w, s = -3617.0 / 8160;
  s = scalar64_fma(s, z, 1.0 / 12);
  s = scalar64_fma(s, z, -691.0 / 32760);
  s = scalar64_fma(s, z, 1.0 / 132);
  s = scalar64_fma(s, z, -1.0 / 240);
  s = scalar64_fma(s, z, 1.0 / 252);
  s = scalar64_fma(s, z, -1.0 / 120);
  s = scalar64_fma(s, z, 1.0 / 12);
  return scalar64_log(x) - 0.5 * w - s * z - below;
}
/* Below 0 by digamma(1 - x) = digamma(x) + pi / tan(pi x) (A&S 6.3.7). */
RDNA_SCALAR double special_digamma(double x) {
  if (x == 0) return scalar64_copysign(__builtin_inf(), -x);
  if (x > 0) return x < __builtin_inf() ? special_digamma_positive_(x) : x;
  double r = x - __builtin_trunc(x);
  if (!(r != 0)) return __builtin_nan(""); /* poles, a NaN; of -infinity r is one */
  r = x - __builtin_rint(x);
  return special_digamma_positive_(1 - x) - SPECIAL_PI / scalar64_tan(SPECIAL_PI * r);
}
/* The sum of (q + k)^-s for k from 0, q > 0: Euler and Maclaurin's formula (A&S 23.1.30) from the first q + k >= 10 + s
 * on; coefficients are those of the terms before, B(2j) / (2j)!. */
RDNA_SCALAR double special_hurwitz_(double s, double q) {
  double sum = 0;
  while (q < 10 + s) {
    double term = scalar64_pow(q, -s);
    if (term <= sum * 0x1p-60) return sum; /* 0 too, of a large s */
    sum += term, q += 1;
  }
  double power = scalar64_pow(q, -s), w = 1 / q, z = w * w, tail = power * (0.5 + q / (s - 1));
  /* each |rising| is s (s + 1) … (s + 2j - 2) q^-(s + 2j - 1) */
  double rising = power * s * w;
  tail += rising * (1.0 / 12);
  rising *= (s + 1) * (s + 2) * z, tail += rising * (-1.0 / 720);
  rising *= (s + 3) * (s + 4) * z, tail += rising * (1.0 / 30240);
  rising *= (s + 5) * (s + 6) * z, tail += rising * (-1.0 / 1209600);
  rising *= (s + 7) * (s + 8) * z, tail += rising * (1.0 / 47900160);
  rising *= (s + 9) * (s + 10) * z, tail += rising * (-691.0 / 1307674368000.0);
  rising *= (s + 11) * (s + 12) * z, tail += rising * (1.0 / 74724249600.0);
  rising *= (s + 13) * (s + 14) * z, tail += rising * (-3617.0 / 10670622842880000.0);
  return sum + tail;
}
/* n > 0: (-1)^(n + 1) n! times the sum of (x + k)^-(n + 1) (A&S 6.4.10). The sum over all integers k, from minus
 * infinity too, depends on x's fraction alone; below 0, what that has before x is taken off it. */
RDNA_SCALAR double special_polygamma(uint32_t n, double x) {
  double s = (double)n + 1, sum, factorial = 1, odd = n & 1 ? 1.0 : -1.0;
  if (x == __builtin_inf()) return 0 * odd;
  if (x > 0) {
    sum = special_hurwitz_(s, x);
  } else {
    if (x - x != 0) return __builtin_nan("");
    double above = x - __builtin_floor(x), below = __builtin_ceil(x) - x;
    if (above == 0) return odd * __builtin_inf();
    sum = special_hurwitz_(s, above) + odd * (special_hurwitz_(s, below) - special_hurwitz_(s, 1 - x));
  }
  for (uint32_t k = 2; k <= n; k++) factorial *= k;
  return odd * factorial * sum;
}

/* --- modified Bessel functions of the first kind --- */

/* exp(-x) I_order(x), order 0 or 1, x >= 0. The power series (A&S 9.6.10) below 20, the asymptotic one (A&S 9.7.1) from
 * there on, whose terms fall until they are nothing. */
RDNA_SCALAR double special_bessel_i_(int order, double x) {
  double n = (double)order, sum = 1, term = 1;
  if (x < 20) {
    double z = 0.25 * x * x;
    for (int k = 1; k < 100 && term > sum * 0x1p-56; k++) {
      term *= z / ((double)k * ((double)k + n));
      sum += term;
    }
    return (order ? 0.5 * x : 1) * sum * scalar64_exp(-x);
  }
  if (!(x < __builtin_inf())) return x != x ? x : 0;
  for (int k = 1; k < 60 && scalar64_abs(term) > 0x1p-56; k++) {
    double odd = 2 * (double)k - 1;
    term *= (odd * odd - 4 * n) / (8 * (double)k * x);
    sum += term;
  }
  return sum / __builtin_sqrt(2 * SPECIAL_PI * x);
}
/* exp(x / 2) twice: exp(x) overflows before the result does. */
RDNA_SCALAR double special_unscaled_(double scaled, double x) {
  if (x > 1420) return x == x ? __builtin_inf() : x;
  double half = scalar64_exp(0.5 * x);
  return scaled * half * half;
}

/* --- the families, each of which has kernels of its own: one for all needs more registers than there are --- */

RDNA_SCALAR double special_erf_complement(uint32_t function, uint32_t order, double x) {
  (void)function, (void)order;
  return special_erfc(x);
}
RDNA_SCALAR double special_erf_inverse(uint32_t function, uint32_t order, double x) {
  (void)order;
  return special_erfinv_or_ndtri(function == RDNA_SPECIAL_NDTRI, x);
}
RDNA_SCALAR double special_log_gamma(uint32_t function, uint32_t order, double x) {
  (void)function, (void)order;
  return special_lgamma(x);
}
RDNA_SCALAR double special_gamma_derivative(uint32_t function, uint32_t order, double x) {
  (void)function;
  return order ? special_polygamma(order, x) : special_digamma(x);
}
RDNA_SCALAR double special_bessel(uint32_t function, uint32_t order, double x) {
  (void)order;
  bool first = function == RDNA_SPECIAL_I1 || function == RDNA_SPECIAL_I1E;
  bool whole = function == RDNA_SPECIAL_I0 || function == RDNA_SPECIAL_I1;
  double a = scalar64_abs(x), scaled = special_bessel_i_(first, a),
         value = whole ? special_unscaled_(scaled, a) : scaled;
  return first ? scalar64_copysign(value, x) : value;
}

#endif
