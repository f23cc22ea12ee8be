/* Bessel functions of both kinds and Airy's in double, as special_functions.h: power series near 0, expansions far out,
 * and in between a recurrence or an integral that has no cancellation. */
#ifndef RDNA_MATH_SPECIAL_BESSEL_FUNCTIONS_H
#define RDNA_MATH_SPECIAL_BESSEL_FUNCTIONS_H

#include "math/special/special_functions.h"

#define BESSEL_EULER 0x1.2788cfc6fb619p-1 /* Euler's constant */
#define BESSEL_2_OVER_PI 0x1.45f306dc9c883p-1

/* Both kinds of one order, of sign -1 J and Y times pi / 2, of sign 1 I and (-1)^(order + 1) K, for 0 < x <= 2. With
 * z = sign x^2 / 4 and l = log(x / 2) + Euler's constant (A&S 9.1.10 to 9.1.13, 9.6.10 to 9.6.13):
 *
 *   order 0: first  = sum of z^k / k!^2
 *            second = l first - sum of z^k / k!^2 H_k
 *   order 1: first  = x / 2 sum of z^k / (k! (k + 1)!)
 *            second = l first + sign / x - x / 4 sum of z^k / (k! (k + 1)!) (H_k + H_k+1)
 *
 * where H_k = 1 + 1/2 + … + 1/k. */
RDNA_SCALAR double bessel_near_0_(int order, double sign, double x, double *out_second) {
  double z = 0.25 * sign * x * x, term = order ? 0.5 * x : 1, first = 0, rest = 0, harmonic = 0;
  for (int k = 0; k < 24; k++) {
    double next = (double)(k + 1);
    first += term;
    rest += term * (order ? harmonic + 0.5 / next : harmonic);
    harmonic += 1 / next;
    term *= z / (next * (next + (double)order));
  }
  *out_second = (scalar64_log(0.5 * x) + BESSEL_EULER) * first - rest + (order ? sign / x : 0);
  return first;
}

/* The same of J and Y for 2 <= x < 25. J_k for falling k by J_k-1 = 2 k / x J_k - J_k+1 from where they are nothing,
 * then divided by J_0 + 2 J_2 + 2 J_4 … = 1 (A&S 9.1.27, 9.1.46). Y is a sum of them (A&S 9.1.89, and its derivative):
 *
 *   pi / 2 Y_0 = l J_0 + 2 (J_2 / 1 - J_4 / 2 + J_6 / 3 …)
 *   pi / 2 Y_1 = l J_1 - J_0 / x - J_1 + (1 / 1 + 1 / 2) J_3 - (1 / 2 + 1 / 3) J_5 … */
RDNA_SCALAR double bessel_between_(int order, double x, double *out_second) {
  double above = 0, j = 1e-150, unit = 0, even = 0, odd = 0;
  for (int k = 66; k > 0; k -= 2) { /* j is J_k, above J_k+1 */
    double m = 0.5 * (double)k, turn = k % 4 ? 1 : -1;
    unit += 2 * j;
    even += turn * 2 / m * j;
    double below = 2 * (double)k / x * j - above;
    odd -= turn * (1 / m + (k > 2 ? 1 / (m - 1) : 0)) * below; /* of J_k-1 */
    above = below;
    j = (2 * (double)k - 2) / x * below - j;
  }
  unit += j;
  double l = scalar64_log(0.5 * x) + BESSEL_EULER;
  *out_second = (order ? l * above - j / x + odd : l * j + even) / unit;
  return (order ? above : j) / unit;
}

/* And for x >= 25 (A&S 9.2.5 to 9.2.10): with c = x - (order / 2 + 1 / 4) pi, of which sine and cosine are sums of x's,
 * sqrt(2 / (pi x)) times p cos(c) - q sin(c) and p sin(c) + q cos(c). */
RDNA_SCALAR double bessel_far_(int order, double x, double *out_second) {
  double n = (double)order, p = 0, q = 0, term = 1;
  for (int k = 1; k < 60 && scalar64_abs(term) > 0x1p-56; k += 2) {
    double odd = 2 * (double)k - 1, next = odd + 2;
    p += term;
    term *= (4 * n - odd * odd) / (8 * (double)k * x);
    q += term;
    term *= -(4 * n - next * next) / (8 * ((double)k + 1) * x);
  }
  double s = scalar64_sin(x), c = scalar64_cos(x), size = 1 / __builtin_sqrt(SPECIAL_PI * x);
  double cosine = order ? s - c : c + s, sine = order ? -s - c : s - c;
  *out_second = size * (p * sine + q * cosine) / BESSEL_2_OVER_PI;
  return size * (p * cosine - q * sine);
}

RDNA_SCALAR double bessel_wave_(int order, bool second, double x) {
  double y, a = scalar64_abs(x), j;
  if (!(a < __builtin_inf())) return x != x ? x : second && x < 0 ? __builtin_nan("") : 0;
  if (second && x <= 0) return x == 0 ? -__builtin_inf() : __builtin_nan("");
  if (a == 0) return order ? x : 1;
  j = a < 2 ? bessel_near_0_(order, -1, a, &y) : a < 25 ? bessel_between_(order, a, &y) : bessel_far_(order, a, &y);
  return second ? BESSEL_2_OVER_PI * y : order && x < 0 ? -j : j;
}

/* exp(x) K of order n, x >= 1, the integral of exp(-x (cosh(t) - 1)) cosh(n t) over t > 0 (A&S 9.6.24) by the trapezoid
 * rule. Its error is below exp(-40), as the function is analytic and small within pi / 2 of the real line. From 20 on
 * by the expansion (A&S 9.7.2). */
RDNA_SCALAR double bessel_k_scaled_(double n, double x) {
  double sum = 1, term = 1;
  if (x >= 20) {
    for (int k = 1; k < 60 && scalar64_abs(term) > 0x1p-56; k++) {
      double odd = 2 * (double)k - 1;
      term *= (4 * n * n - odd * odd) / (8 * (double)k * x);
      sum += term;
    }
    return sum * __builtin_sqrt(0.5 * SPECIAL_PI / x);
  }
  double step = x < 9 ? 0.2 : 0.125, e = scalar64_exp(step), f = scalar64_exp(n * step), power = 1, order = 1;
  sum = 0.5;
  for (int k = 0; k < 40 && term > 0x1p-60; k++) {
    power *= e, order *= f;
    term = scalar64_exp(-x * (0.5 * (power + 1 / power) - 1)) * 0.5 * (order + 1 / order);
    sum += term;
  }
  return sum * step;
}
RDNA_SCALAR double bessel_k_(int order, bool scaled, double x) {
  if (!(x > 0)) return x == 0 ? __builtin_inf() : __builtin_nan("");
  if (x == __builtin_inf()) return 0;
  if (x < 1) {
    double k;
    bessel_near_0_(order, 1, x, &k);
    return (order ? k : -k) * (scaled ? scalar64_exp(x) : 1);
  }
  double k = bessel_k_scaled_((double)order, x);
  return scaled ? k : k * scalar64_exp(-x);
}

/* Ai by its power series (A&S 10.4.2 and 10.4.3): c f - d g. Sums of pairs: below 0 terms are up to exp(20). */
RDNA_SCALAR double airy_near_0_(double x) {
  struct scalar64_pair cube = scalar64_times_(scalar64_product_(x, x), scalar64_pair_of_(x, 0));
  struct scalar64_pair f = scalar64_pair_of_(0x1.6b8c7962715b8p-2, 0x1.7a96d7bb04e65p-56), f_sum = f; /* Ai(0) */
  struct scalar64_pair g =
      scalar64_times_(scalar64_pair_of_(-0x1.0907f42b70f8bp-2, 0x1.d1459035afde2p-56), scalar64_pair_of_(x, 0));
  struct scalar64_pair g_sum = g; /* Ai'(0) x */
  for (int k = 0; k < 70 && scalar64_abs(f.h) + scalar64_abs(g.h) > 0x1p-70; k++) {
    double n = 3 * (double)k + 3;
    f = scalar64_over_(scalar64_times_(f, cube), scalar64_pair_of_(n * (n - 1), 0));
    g = scalar64_over_(scalar64_times_(g, cube), scalar64_pair_of_(n * (n + 1), 0));
    struct scalar64_pair a = scalar64_sum_(f_sum.h, f.h), b = scalar64_sum_(g_sum.h, g.h);
    f_sum = scalar64_sum_ordered_(a.h, a.l + f_sum.l + f.l), g_sum = scalar64_sum_ordered_(b.h, b.l + g_sum.l + g.l);
  }
  struct scalar64_pair both = scalar64_sum_(f_sum.h, g_sum.h);
  return both.h + (both.l + f_sum.l + g_sum.l);
}
/* Ai(-x) from 9.5 on (A&S 10.4.60): with z = 2 / 3 x^(3/2), the waves sin(z) and cos(z) an eighth of a turn on. */
RDNA_SCALAR double airy_far_(double x) {
  double root = __builtin_sqrt(x), z = 2 * x * root / 3, p = 0, q = 0, term = 1;
  for (int k = 1; k < 60 && scalar64_abs(term) > 0x1p-56; k += 2) {
    double n = 6 * (double)k, m = n + 6;
    p += term;
    term *= (n - 5) * (n - 3) * (n - 1) / (216 * (double)k * (2 * (double)k - 1) * z);
    q += term;
    term *= -(m - 5) * (m - 3) * (m - 1) / (216 * ((double)k + 1) * (2 * (double)k + 1) * z);
  }
  double s = scalar64_sin(z), c = scalar64_cos(z);
  return (p * (s + c) - q * (c - s)) / __builtin_sqrt(2 * SPECIAL_PI * root);
}
RDNA_SCALAR double airy_ai_(double x) {
  if (!(scalar64_abs(x) < __builtin_inf())) return x != x ? x : 0;
  if (x < -9.5) return airy_far_(-x);
  if (x < 1.5) return airy_near_0_(x);
  double z = 2 * x * __builtin_sqrt(x) / 3; /* sqrt(x / 3) / pi K_1/3(z), A&S 10.4.14 */
  return __builtin_sqrt(x / 3) / SPECIAL_PI * bessel_k_scaled_(1.0 / 3, z) * scalar64_exp(-z);
}

RDNA_SCALAR double special_wave(uint32_t function, uint32_t order, double x) {
  (void)order;
  bool second = function == RDNA_SPECIAL_Y0 || function == RDNA_SPECIAL_Y1;
  return bessel_wave_(function == RDNA_SPECIAL_J1 || function == RDNA_SPECIAL_Y1, second, x);
}
RDNA_SCALAR double special_decay(uint32_t function, uint32_t order, double x) {
  (void)order;
  bool scaled = function == RDNA_SPECIAL_K0E || function == RDNA_SPECIAL_K1E;
  return bessel_k_(function == RDNA_SPECIAL_K1 || function == RDNA_SPECIAL_K1E, scaled, x);
}
RDNA_SCALAR double special_airy(uint32_t function, uint32_t order, double x) {
  (void)function, (void)order;
  return airy_ai_(x);
}

#endif
