/* Elementary functions in double that compile alike as device code and as plain C on the host, as those of scalar.h do
 * for float. Nothing is looked up but the digits of 2 / pi: on GPUs with few units for f64 a table would be slower than
 * the longer polynomials.
 *
 * Where one double is not enough, a number is the sum of two (Dekker, "A floating-point technique for extending the
 * available precision", 1971; Knuth, "The Art of Computer Programming", volume 2, 4.2.2), so that most results are
 * rounded about once. Coefficients are our own: minimax fits by the Remez exchange in 60-digit arithmetic, rounded to
 * double. scalar64_test.c states and checks the error of each. */
#ifndef RDNA_KERNEL_SCALAR64_H
#define RDNA_KERNEL_SCALAR64_H

#include <stdbool.h>

#include "kernel/scalar.h"

RDNA_SCALAR double scalar64_from_bits(uint64_t bits) {
  double v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
RDNA_SCALAR uint64_t scalar64_bits(double v) {
  uint64_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return bits;
}
RDNA_SCALAR double scalar64_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
RDNA_SCALAR double scalar64_abs(double x) { return __builtin_fabs(x); }
RDNA_SCALAR double scalar64_copysign(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

/* 1 / x, to little more than half a unit in its last place, for |x| in [2^-1000, 2^1000]: a division takes twice as
 * long on GPUs, which test for its edges in a branch. Subtracting the bits from a constant negates the exponent and
 * roughly inverts the mantissa, to a relative error of 0.051, which three iterations raise to its third, third and
 * second power. */
RDNA_SCALAR double scalar64_inverse_(double x) {
  double y = scalar64_from_bits(0x7fde600000000000u - scalar64_bits(x)), e = scalar64_fma(-x, y, 1);
  y = scalar64_fma(y, scalar64_fma(e, e, e), y);
  e = scalar64_fma(-x, y, 1);
  y = scalar64_fma(y, scalar64_fma(e, e, e), y);
  return scalar64_fma(y, scalar64_fma(-x, y, 1), y);
}

/* Below, both operands of ?: are computed first: in a branch, a value could not be computed in parallel with others of
 * the same thread. */

/* --- sums of two doubles --- */

struct scalar64_pair {
  double h, l; /* |l| is at most about half a unit in the last place of h */
};

/* |a| >= |b|, or a is 0 */
RDNA_SCALAR struct scalar64_pair scalar64_sum_ordered_(double a, double b) {
  struct scalar64_pair s = {a + b, 0};
  s.l = a - s.h + b;
  return s;
}
RDNA_SCALAR struct scalar64_pair scalar64_sum_(double a, double b) {
  struct scalar64_pair s = {a + b, 0};
  double part = s.h - a;
  s.l = (a - (s.h - part)) + (b - part);
  return s;
}
RDNA_SCALAR struct scalar64_pair scalar64_product_(double a, double b) {
  struct scalar64_pair p = {a * b, 0};
  p.l = scalar64_fma(a, b, -p.h);
  return p;
}
RDNA_SCALAR struct scalar64_pair scalar64_times_(struct scalar64_pair a, struct scalar64_pair b) {
  struct scalar64_pair p = scalar64_product_(a.h, b.h);
  p.l += scalar64_fma(a.h, b.l, a.l * b.h);
  return p;
}
RDNA_SCALAR struct scalar64_pair scalar64_over_(struct scalar64_pair a, struct scalar64_pair b) {
  double inverse = scalar64_inverse_(b.h);
  struct scalar64_pair q = {a.h * inverse, 0};
  q.l = (scalar64_fma(-q.h, b.h, a.h) + scalar64_fma(-q.h, b.l, a.l)) * inverse;
  return q;
}
RDNA_SCALAR struct scalar64_pair scalar64_pair_of_(double h, double l) {
  struct scalar64_pair p = {h, l};
  return p;
}

/* --- exponentials --- */

/* y * 2^n for n in [-2044, 2046]: in two steps, so that a subnormal result rounds once where |y| is in [2^-10, 2^10)
 * and n at least -1180. */
RDNA_SCALAR double scalar64_scale_(double y, int32_t n) {
  int32_t half = n >> 1;
  return y * scalar64_from_bits((uint64_t)(half + 1023) << 52) * scalar64_from_bits((uint64_t)(n - half + 1023) << 52);
}

/* P(r) of exp(r) - 1 = r + r^2 P(r) for |r| <= ln 2 / 2. */
RDNA_SCALAR double scalar64_exp_rest_(double r) {
  double p = 0x1.1f9db82ef6390p-29;
  p = scalar64_fma(p, r, 0x1.af6cccb26fc9ap-26);
  p = scalar64_fma(p, r, 0x1.27e4bf57deaffp-22);
  p = scalar64_fma(p, r, 0x1.71ddef93ed58cp-19);
  p = scalar64_fma(p, r, 0x1.a01a01b440d38p-16);
  p = scalar64_fma(p, r, 0x1.a01a01b3bb0eep-13);
  p = scalar64_fma(p, r, 0x1.6c16c16c135d8p-10);
  p = scalar64_fma(p, r, 0x1.111111110ebb3p-7);
  p = scalar64_fma(p, r, 0x1.555555555555ep-5);
  p = scalar64_fma(p, r, 0x1.555555555555cp-3);
  return scalar64_fma(p, r, 0.5);
}
RDNA_SCALAR struct scalar64_pair scalar64_exp_tail_(struct scalar64_pair r) {
  double p = scalar64_exp_rest_(r.h);
  struct scalar64_pair tail = scalar64_sum_ordered_(r.h, p * (r.h * r.h));
  tail.l += scalar64_fma(r.l, tail.h, r.l);
  return tail;
}

/* x = n ln 2 + r for x in [-800, 800]; gives exp(r) - 1. Adding 1.5 * 2^52 rounds to an integer and leaves it in the
 * low bits. */
RDNA_SCALAR struct scalar64_pair scalar64_exp_parts_(struct scalar64_pair x, int32_t *out_n) {
  double shifted = scalar64_fma(x.h, 0x1.71547652b82fep+0, 0x1.8p52);
  double n = shifted - 0x1.8p52;
  double high = scalar64_fma(n, -0x1.62e42fefa3800p-1, x.h), low = n * 0x1.ef35793c76730p-45;
  struct scalar64_pair r = {high - low, 0};
  r.l = high - r.h - low + x.l;
  *out_n = (int32_t)(uint32_t)scalar64_bits(shifted);
  return scalar64_exp_tail_(r);
}
/* exp(x) = 2^n * the result */
RDNA_SCALAR struct scalar64_pair scalar64_exp_unscaled_(struct scalar64_pair x, int32_t *out_n) {
  struct scalar64_pair tail = scalar64_exp_parts_(x, out_n);
  struct scalar64_pair y = scalar64_sum_ordered_(1, tail.h);
  y.l += tail.l;
  return y;
}
RDNA_SCALAR double scalar64_limited_(double x, double low, double high) { return x > high ? high : x < low ? low : x; }

RDNA_SCALAR double scalar64_exp_pair_(struct scalar64_pair x) {
  int32_t n;
  double h = scalar64_limited_(x.h, -800, 800);
  struct scalar64_pair y = scalar64_exp_unscaled_(scalar64_pair_of_(h, h == x.h ? x.l : 0), &n);
  return scalar64_scale_(y.h + y.l, n);
}
RDNA_SCALAR double scalar64_exp(double x) {
  double y = scalar64_exp_pair_(scalar64_pair_of_(x, 0));
  return x != x ? x : y;
}

RDNA_SCALAR double scalar64_exp2(double x) {
  double limited = scalar64_limited_(x, -1100, 1100), shifted = limited + 0x1.8p52, r = limited - (shifted - 0x1.8p52);
  struct scalar64_pair natural = scalar64_product_(r, 0x1.62e42fefa39efp-1);
  natural.l = scalar64_fma(r, 0x1.abc9e3b39803fp-56, natural.l);
  struct scalar64_pair tail = scalar64_exp_tail_(natural), sum = scalar64_sum_ordered_(1, tail.h);
  double y = scalar64_scale_(sum.h + (sum.l + tail.l), (int32_t)(uint32_t)scalar64_bits(shifted));
  return x != x ? x : y;
}

RDNA_SCALAR double scalar64_expm1(double x) {
  int32_t n;
  struct scalar64_pair tail = scalar64_exp_parts_(scalar64_pair_of_(scalar64_limited_(x, -40, 710), 0), &n);
  double power = scalar64_from_bits((uint64_t)(n + 1022) << 52); /* 2^n / 2, as 2^1024 is infinite */
  struct scalar64_pair less = scalar64_sum_(power, -0.5), y = scalar64_sum_(less.h, power * tail.h);
  double result = 2 * (y.h + (y.l + scalar64_fma(power, tail.l, less.l)));
  return x != x || scalar64_abs(x) < 0x1p-60 ? x : result;
}

/* exp(x) = power + power * the result for x in [-700, 700], to half a unit in the last place more than rounding. */
RDNA_SCALAR double scalar64_exp_near_(double x, double *out_power) {
  double shifted = scalar64_fma(x, 0x1.71547652b82fep+0, 0x1.8p52), n = shifted - 0x1.8p52;
  double r = scalar64_fma(n, -0x1.ef35793c76730p-45, scalar64_fma(n, -0x1.62e42fefa3800p-1, x));
  *out_power = scalar64_from_bits((scalar64_bits(shifted) + 1023) << 52);
  return scalar64_fma(scalar64_exp_rest_(r), r * r, r);
}
/* x + x^3 T(x^2) for |x| <= 0.65; 1 - 2 / (exp(2 |x|) + 1) above, which is 1 from 20 on. */
RDNA_SCALAR double scalar64_tanh(double x) {
  double a = scalar64_abs(x), z = x * x, p = 0x1.7bcb37a488056p-18;
  p = scalar64_fma(p, z, -0x1.ebb3e5aae0363p-16);
  p = scalar64_fma(p, z, 0x1.7c5614b4f2b00p-14);
  p = scalar64_fma(p, z, -0x1.efff34b979a58p-13);
  p = scalar64_fma(p, z, 0x1.34f2aab337926p-11);
  p = scalar64_fma(p, z, -0x1.7d9944c9194cbp-10);
  p = scalar64_fma(p, z, 0x1.d6d31ff34a6cfp-9);
  p = scalar64_fma(p, z, -0x1.226e31590e517p-7);
  p = scalar64_fma(p, z, 0x1.664f48652a9f3p-6);
  p = scalar64_fma(p, z, -0x1.ba1ba1b99deafp-5);
  p = scalar64_fma(p, z, 0x1.11111111108f5p-3);
  p = scalar64_fma(p, z, -0x1.5555555555550p-2);
  double power, part = scalar64_exp_near_(2 * (a < 20 ? a : 20), &power);
  double large = scalar64_fma(-2, scalar64_inverse_(scalar64_fma(power, part, power) + 1), 1);
  double small = scalar64_fma(p * z, a, a), y = scalar64_copysign(a < 0.65 ? small : large, x);
  return x != x ? x : y;
}

/* 1 / (1 + exp(-x)) = 2^n * the result, for x in [-800, 800]: with e = exp(-|x|), 1 / (1 + e) or e / (1 + e). */
RDNA_SCALAR struct scalar64_pair scalar64_sigmoid_pair_(struct scalar64_pair x, int32_t *out_n) {
  int32_t n;
  bool positive = x.h > 0;
  struct scalar64_pair e = scalar64_exp_unscaled_(positive ? scalar64_pair_of_(-x.h, -x.l) : x, &n);
  double power = scalar64_from_bits((uint64_t)((n < -200 ? -200 : n) + 1023) << 52); /* of what is added to 1 */
  double h = power * e.h, below = 1 + h, lost = scalar64_fma(power, e.l, 1 - below + h), r = scalar64_inverse_(below);
  double less = scalar64_fma(-lost, r, scalar64_fma(-below, r, 1)) * r;
  struct scalar64_pair y = scalar64_product_(e.h, r);
  y.l += scalar64_fma(e.l, r, e.h * less);
  *out_n = positive ? 0 : n;
  return positive ? scalar64_pair_of_(r, less) : y;
}
RDNA_SCALAR double scalar64_sigmoid(double x) {
  int32_t n;
  struct scalar64_pair y = scalar64_sigmoid_pair_(scalar64_pair_of_(scalar64_limited_(x, -800, 800), 0), &n);
  double result = scalar64_scale_(y.h + y.l, n);
  return x != x ? x : result;
}
/* x * f * 2^n for f > 0; 0 below -800. */
RDNA_SCALAR double scalar64_gate_(double x, struct scalar64_pair f, int32_t n) {
  double y = scalar64_scale_(scalar64_fma(x, f.h, x - x == 0 ? x * f.l : 0), n);
  return x == 0 ? x : x < -800 ? x * 0.0 : y;
}
RDNA_SCALAR double scalar64_silu(double x) {
  int32_t n;
  struct scalar64_pair y = scalar64_sigmoid_pair_(scalar64_pair_of_(scalar64_limited_(x, -800, 800), 0), &n);
  return scalar64_gate_(x, y, n);
}
/* Twice what gelu's approximation takes the tanh of: sqrt(8 / pi) (x + 0.044715 x^3). */
RDNA_SCALAR struct scalar64_pair scalar64_gelu_inner_(double x) {
  const struct scalar64_pair root = {0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54};
  double limited = scalar64_limited_(x, -60, 60);
  struct scalar64_pair square = scalar64_product_(limited, limited);
  struct scalar64_pair bent = scalar64_times_(square, scalar64_pair_of_(0.044715, 0));
  struct scalar64_pair sum = scalar64_sum_(1, bent.h);
  sum.l += bent.l;
  struct scalar64_pair inner = scalar64_times_(scalar64_times_(sum, scalar64_pair_of_(limited, 0)), root);
  double cut = scalar64_limited_(inner.h, -800, 800);
  return scalar64_pair_of_(cut, cut == inner.h ? inner.l : 0);
}
/* x Phi(x) by tanh (Hendrycks and Gimpel, 2016): as (1 + tanh(u)) / 2 is the sigmoid of 2 u, nothing cancels. */
RDNA_SCALAR double scalar64_gelu_tanh(double x) {
  int32_t n;
  struct scalar64_pair y = scalar64_sigmoid_pair_(scalar64_gelu_inner_(x), &n);
  double result = scalar64_gate_(x, y, n);
  return x < -60 ? x * 0.0 : result;
}
/* x tanh(log(1 + e)) = x e (e + 2) / (e (e + 2) + 2), e being exp(x). */
RDNA_SCALAR double scalar64_mish(double x) {
  int32_t n;
  struct scalar64_pair e = scalar64_exp_unscaled_(scalar64_pair_of_(scalar64_limited_(x, -800, 40), 0), &n);
  struct scalar64_pair scaled = {scalar64_scale_(e.h, n), scalar64_scale_(e.l, n)};
  struct scalar64_pair more = scalar64_sum_(scaled.h, 2);
  more.l += scaled.l;
  struct scalar64_pair product = scalar64_times_(scaled, more), below = scalar64_sum_(product.h, 2);
  below.l += product.l;
  struct scalar64_pair y = scalar64_over_(scalar64_times_(e, more), below);
  double result = scalar64_gate_(x, y, n);
  return x > 40 ? x : result;
}

/* --- logarithms --- */

/* x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for a positive finite x; gives f. */
RDNA_SCALAR double scalar64_log_reduce_(double x, double *out_e) {
  bool subnormal = x < 0x1p-1022;
  uint64_t bits = scalar64_bits(subnormal ? x * 0x1p54 : x);
  int32_t e = (int32_t)((int64_t)(bits - 0x3fe6a09e667f3bcdu) >> 52);
  *out_e = (double)(subnormal ? e - 54 : e);
  return scalar64_from_bits(bits - ((uint64_t)(int64_t)e << 52)) - 1;
}
/* Q(z) of 2 atanh(s) = 2 s (1 + z (1/3 + z Q(z))) with z = s^2 */
RDNA_SCALAR double scalar64_log_rest_(double z) {
  double q = 0x1.e039c40bcc6e0p-5;
  q = scalar64_fma(q, z, 0x1.df7b9e38d150dp-5);
  q = scalar64_fma(q, z, 0x1.1118cdef60706p-4);
  q = scalar64_fma(q, z, 0x1.3b1395b312af8p-4);
  q = scalar64_fma(q, z, 0x1.745d177ae7ca4p-4);
  q = scalar64_fma(q, z, 0x1.c71c71c6ea3a7p-4);
  q = scalar64_fma(q, z, 0x1.2492492492523p-3);
  return scalar64_fma(q, z, 0x1.999999999999ap-3);
}
/* log(1 + f) = 2 atanh(s) with s = f / (2 + f), to about 2^-64 of itself. */
RDNA_SCALAR struct scalar64_pair scalar64_log_parts_(double x, double *out_e) {
  double f = scalar64_log_reduce_(x, out_e);
  struct scalar64_pair s = scalar64_over_(scalar64_pair_of_(f, 0), scalar64_sum_ordered_(2, f));
  struct scalar64_pair z = scalar64_product_(s.h, s.h);
  z.l = scalar64_fma(2 * s.h, s.l, z.l);
  struct scalar64_pair u = scalar64_sum_ordered_(0x1.5555555555555p-2, z.h * scalar64_log_rest_(z.h));
  u.l += 0x1.5555555555555p-56;
  s.h *= 2, s.l *= 2;
  struct scalar64_pair more = scalar64_times_(s, scalar64_times_(z, u));
  struct scalar64_pair y = scalar64_sum_ordered_(s.h, more.h);
  y.l += s.l + more.l;
  return y;
}
RDNA_SCALAR struct scalar64_pair scalar64_log_pair_(double x) {
  double e;
  struct scalar64_pair m = scalar64_log_parts_(x, &e), y = scalar64_sum_ordered_(e * 0x1.62e42fefa3800p-1, m.h);
  y.l += scalar64_fma(e, 0x1.ef35793c76730p-45, m.l);
  return y;
}

/* Returns what every logarithm gives for x outside (0, inf), and |y| for x inside. */
RDNA_SCALAR double scalar64_log_edges_(double x, double y) {
  y = x == __builtin_inf() ? x : y;
  y = x == 0 ? -__builtin_inf() : y;
  return x >= 0 ? y : __builtin_nan("");
}
/* log(x) = e ln 2 + f - the result, for a positive finite x, where f is exact and the result less than 0.09: as s f is
 * f^2 / 2 - s f^2 / 2, log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + 2 z (1/3 + z Q(z)))) (K. C. Ng's form, in FreeBSD's
 * e_log.c). */
RDNA_SCALAR double scalar64_log_bend_(double x, double *out_e, double *out_f) {
  double f = scalar64_log_reduce_(x, out_e), s = f * scalar64_inverse_(2 + f), z = s * s, half = 0.5 * f * f;
  double sum = scalar64_fma(2 * z, scalar64_fma(z, scalar64_log_rest_(z), 0x1.5555555555555p-2), half);
  *out_f = f;
  return scalar64_fma(-s, sum, half);
}
/* log(x) + more, which is less than a unit in the last place of x. */
RDNA_SCALAR double scalar64_log_near_(double x, double more) {
  double e, f, bend = scalar64_log_bend_(x, &e, &f);
  return scalar64_fma(e, 0x1.62e42fefa3800p-1, f - (bend - scalar64_fma(e, 0x1.ef35793c76730p-45, more)));
}
RDNA_SCALAR double scalar64_log(double x) { return scalar64_log_edges_(x, scalar64_log_near_(x, 0)); }
RDNA_SCALAR double scalar64_log2(double x) {
  double e, f, bend = scalar64_log_bend_(x, &e, &f);
  struct scalar64_pair part = scalar64_product_(f, 0x1.71547652b82fep+0), y = scalar64_sum_ordered_(e, part.h);
  double low = scalar64_fma(bend, -0x1.71547652b82fep+0, scalar64_fma(f, 0x1.777d0ffda0d24p-56, part.l));
  return scalar64_log_edges_(x, y.h + (y.l + low));
}
RDNA_SCALAR double scalar64_log10(double x) {
  double e, f, bend = scalar64_log_bend_(x, &e, &f);
  struct scalar64_pair part = scalar64_product_(f, 0x1.bcb7b1526e50ep-2);
  struct scalar64_pair y = scalar64_sum_ordered_(e * 0x1.34413509f7800p-2, part.h);
  double low = scalar64_fma(bend, -0x1.bcb7b1526e50ep-2, scalar64_fma(f, 0x1.95355baaafad3p-57, part.l));
  return scalar64_log_edges_(x, y.h + (y.l + scalar64_fma(e, 0x1.fef311f12b358p-46, low)));
}
RDNA_SCALAR double scalar64_log1p(double x) {
  struct scalar64_pair u = scalar64_sum_(1, x);
  double more = u.l * scalar64_inverse_(u.h), y = scalar64_log_near_(u.h, u.h > 0 && u.h < 0x1p60 ? more : 0);
  double result = scalar64_log_edges_(u.h, y);
  return x == 0 || x == __builtin_inf() ? x : result;
}
/* log(1 + exp(x)) */
RDNA_SCALAR double scalar64_softplus(double x) {
  int32_t n;
  double a = scalar64_abs(x);
  struct scalar64_pair e = scalar64_exp_unscaled_(scalar64_pair_of_(a < 800 ? -a : -800, 0), &n);
  struct scalar64_pair u = scalar64_sum_ordered_(1, scalar64_scale_(e.h, n));
  u.l += scalar64_scale_(e.l, n);
  double y = scalar64_log_near_(u.h, u.l * scalar64_inverse_(u.h)), positive = x > 0 ? x : 0, result = positive + y;
  return x != x ? x : result;
}

/* The cases of IEEE 754-2019, 9.2.1; cubes, to a unit in the last place, are products. */
RDNA_SCALAR double scalar64_pow(double x, double y) {
  const double inf = __builtin_inf();
  double a = scalar64_abs(x);
  if (y == 3) return x * x * x;
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return __builtin_nan("");
  bool whole = __builtin_trunc(y) == y, odd = whole && __builtin_trunc(0.5 * y) != 0.5 * y;
  double sign = odd ? scalar64_copysign(1, x) : 1;
  if (a == 0 || a == inf) return sign * ((a == 0) == (y < 0) ? inf : 0);
  if (scalar64_abs(y) == inf) return a == 1 ? 1 : (a < 1) == (y < 0) ? inf : 0;
  if (x < 0 && !whole) return __builtin_nan("");
  struct scalar64_pair log = scalar64_log_pair_(a), product = scalar64_product_(y, log.h);
  product.l = scalar64_fma(y, log.l, product.l);
  return sign * scalar64_exp_pair_(product);
}

/* --- angles --- */

RDNA_SCALAR uint64_t scalar64_high_product_(uint64_t a, uint64_t b) {
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* x = quadrant * pi/2 + r with |r| <= pi/4, for a finite |x| >= pi/4 (Payne and Hanek, "Radian reduction for
 * trigonometric functions", 1983): of the bits of 2/pi those that neither vanish modulo 4 after the multiplication nor
 * lie 192 further. No double is nearer to a multiple of pi/2 than 2^-61 of it, of which 2^-76 remain. */
RDNA_SCALAR struct scalar64_pair scalar64_reduce_angle_(double x, uint32_t *out_quadrant) {
  const uint64_t two_over_pi[20] = {
      0,
      0xa2f9836e4e441529u,
      0xfc2757d1f534ddc0u,
      0xdb6295993c439041u,
      0xfe5163abdebbc561u,
      0xb7246e3a424dd2e0u,
      0x06492eea09d1921cu,
      0xfe1deb1cb129a73eu,
      0xe88235f52ebb4484u,
      0xe99c7026b45f7e41u,
      0x3991d639835339f4u,
      0x9c845f8bbdf9283bu,
      0x1ff897ffde05980fu,
      0xef2f118b5a0a6d1fu,
      0x6d367ecf27cb09b7u,
      0x4f463f669e5fea2du,
      0x7527bac7ebe5f17bu,
      0x3d0739f78a5292eau,
      0x6bfb5fb11f8d5d08u,
      0x56033046fc7b6babu,
  };
  uint64_t bits = scalar64_bits(x) & 0x7fffffffffffffffu, mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  uint32_t start = (uint32_t)(bits >> 52) - 1013u, word = start >> 6, shift = start & 63;
  const uint64_t *w = two_over_pi + word;
  uint64_t t0 = w[0] << shift | w[1] >> 1 >> (63 - shift), t1 = w[1] << shift | w[2] >> 1 >> (63 - shift);
  uint64_t t2 = w[2] << shift | w[3] >> 1 >> (63 - shift);
  uint64_t low = mantissa * t2, middle = mantissa * t1 + scalar64_high_product_(mantissa, t2);
  uint64_t turn = mantissa * t0 + scalar64_high_product_(mantissa, t1) + (middle < mantissa * t1);
  uint32_t quadrant = (uint32_t)((turn + 0x2000000000000000u) >> 62); /* the rest is a signed fraction */
  uint64_t f0 = turn << 2 | middle >> 62, f1 = middle << 2 | low >> 62;
  bool negative = f0 >> 63;
  if (negative) {
    f1 = 0 - f1;
    f0 = ~f0 + (f1 == 0);
  }
  uint32_t zeros = (uint32_t)__builtin_clzll(f0 | 1);
  f0 = f0 << zeros | f1 >> 1 >> (63 - zeros);
  f1 <<= zeros;
  struct scalar64_pair fraction = {(double)(int64_t)(f0 >> 11),
                                   (double)(int64_t)((f0 & 0x7ff) << 42 | f1 >> 22) * 0x1p-53};
  const struct scalar64_pair half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  struct scalar64_pair r = scalar64_times_(fraction, half_pi);
  double unit = scalar64_copysign(scalar64_from_bits((uint64_t)(1023 - 53 - zeros) << 52), negative ? -1 : 1);
  if (x < 0) unit = -unit, quadrant = 0u - quadrant;
  *out_quadrant = quadrant;
  return scalar64_pair_of_(r.h * unit, r.l * unit);
}

/* sin(r) = r + r^3 S(r^2), cos(r) = 1 - r^2 / 2 + r^4 C(r^2) for |r| <= pi/4. */
RDNA_SCALAR struct scalar64_pair scalar64_sin_quarter_(struct scalar64_pair r) {
  double z = r.h * r.h, p = -0x1.ab17cbed5e140p-41;
  p = scalar64_fma(p, z, 0x1.61217f00157d1p-33);
  p = scalar64_fma(p, z, -0x1.ae645412ba853p-26);
  p = scalar64_fma(p, z, 0x1.71de3a5460921p-19);
  p = scalar64_fma(p, z, -0x1.a01a01a019938p-13);
  p = scalar64_fma(p, z, 0x1.1111111111110p-7);
  p = scalar64_fma(p, z, -0x1.5555555555555p-3);
  return scalar64_sum_ordered_(r.h, scalar64_fma(p, z * r.h, scalar64_fma(-0.5 * z, r.l, r.l)));
}
RDNA_SCALAR struct scalar64_pair scalar64_cos_quarter_(struct scalar64_pair r) {
  double z = r.h * r.h, lost = scalar64_fma(r.h, r.h, -z), p = -0x1.907da226c38fap-37;
  p = scalar64_fma(p, z, 0x1.1eeb68eab7f8dp-29);
  p = scalar64_fma(p, z, -0x1.27e4fa17df3b2p-22);
  p = scalar64_fma(p, z, 0x1.a01a019f4eb7bp-16);
  p = scalar64_fma(p, z, -0x1.6c16c16c16967p-10);
  p = scalar64_fma(p, z, 0x1.5555555555555p-5);
  struct scalar64_pair y = scalar64_sum_ordered_(1, -0.5 * z);
  return scalar64_sum_ordered_(y.h, y.l + scalar64_fma(p * z, z, -scalar64_fma(r.h, r.l, 0.5 * lost)));
}
/* The same for |x| <= 2^30, in three parts of pi/2 (Cody and Waite): n times the first differs from x by a multiple of
 * 2^-53 that is less than 1, and so exactly. */
RDNA_SCALAR struct scalar64_pair scalar64_reduce_small_angle_(double x, uint32_t *out_quadrant) {
  double shifted = scalar64_fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52), n = shifted - 0x1.8p52;
  *out_quadrant = (uint32_t)scalar64_bits(shifted);
  struct scalar64_pair second = scalar64_product_(n, 0x1.1a62633145c07p-54);
  struct scalar64_pair r = scalar64_sum_(scalar64_fma(n, -0x1.921fb54442d18p+0, x), -second.h);
  r.l = scalar64_fma(n, 0x1.f1976b7ed8fbcp-110, r.l - second.l);
  return r;
}
/* Computes sine and cosine without the signs that the quadrant gives them. */
RDNA_SCALAR void scalar64_sincos_pair_(double x, struct scalar64_pair *out_sin, struct scalar64_pair *out_cos,
                                       uint32_t *out_quadrant) {
  uint32_t quadrant;
  struct scalar64_pair r = scalar64_reduce_small_angle_(x, &quadrant);
  if (!(scalar64_abs(x) <= 0x1p30)) {
    r = scalar64_pair_of_(x - x, 0);
    if (r.h == 0) r = scalar64_reduce_angle_(x, &quadrant);
  }
  struct scalar64_pair s = scalar64_sin_quarter_(r), c = scalar64_cos_quarter_(r);
  *out_sin = quadrant & 1 ? c : s;
  *out_cos = quadrant & 1 ? s : c;
  *out_quadrant = quadrant;
}
RDNA_SCALAR double scalar64_sin(double x) {
  struct scalar64_pair s, c;
  uint32_t quadrant;
  scalar64_sincos_pair_(x, &s, &c, &quadrant);
  return x == 0 ? x : quadrant & 2 ? -s.h : s.h;
}
RDNA_SCALAR double scalar64_cos(double x) {
  struct scalar64_pair s, c;
  uint32_t quadrant;
  scalar64_sincos_pair_(x, &s, &c, &quadrant);
  return (quadrant + 1) & 2 ? -c.h : c.h;
}
RDNA_SCALAR double scalar64_tan(double x) {
  struct scalar64_pair s, c;
  uint32_t quadrant;
  scalar64_sincos_pair_(x, &s, &c, &quadrant);
  struct scalar64_pair q = scalar64_over_(s, c);
  double y = q.h + q.l;
  return x == 0 ? x : quadrant & 1 ? -y : y;
}

/* 2^-exponent of x, for a positive finite x, within [2^-1021, 2^1021]. */
RDNA_SCALAR double scalar64_unit_over_(double x) {
  uint64_t exponent = scalar64_bits(x) >> 52;
  exponent = exponent < 2 ? 2 : exponent > 2044 ? 2044 : exponent;
  return scalar64_from_bits((2046 - exponent) << 52);
}

/* atan(t) = t + t^3 A(t^2) for |t| <= tan(pi/8), above which arguments are moved down by pi/4. */
RDNA_SCALAR double scalar64_atan2(double y, double x) {
  const double inf = __builtin_inf();
  double ax = scalar64_abs(x), ay = scalar64_abs(y);
  if (x != x || y != y) return __builtin_nan("");
  if (ax == inf && ay == inf) ax = ay = 1;
  bool steep = ay > ax, behind = scalar64_bits(x) >> 63;
  double small = steep ? ax : ay, large = steep ? ay : ax;
  if (large == inf) small = 0, large = 1;
  if (!steep && !behind && small < 0x1p-60 * large) return scalar64_copysign(small / large, y);
  double unit = scalar64_unit_over_(large > 0 ? large : 1);
  small *= unit, large *= unit;
  if (large == 0) large = 1;
  bool moved = small > 0.4142135623730951 * large;
  struct scalar64_pair over = {small, 0}, under = {large, 0};
  if (moved) {
    over = scalar64_sum_(small, -large);
    under = scalar64_sum_(large, small);
  }
  struct scalar64_pair t = scalar64_over_(over, under);
  double z = t.h * t.h, p = 0x1.0b86a76b6a984p-6;
  p = scalar64_fma(p, z, -0x1.1b887ff5cf2e5p-5);
  p = scalar64_fma(p, z, 0x1.7500763997a74p-5);
  p = scalar64_fma(p, z, -0x1.ac8292a15b1c1p-5);
  p = scalar64_fma(p, z, 0x1.e19b393e75624p-5);
  p = scalar64_fma(p, z, -0x1.110e958f71ceap-4);
  p = scalar64_fma(p, z, 0x1.3b1393a6b0fb5p-4);
  p = scalar64_fma(p, z, -0x1.745d16658244bp-4);
  p = scalar64_fma(p, z, 0x1.c71c71c32e5bdp-4);
  p = scalar64_fma(p, z, -0x1.249249248db9cp-3);
  p = scalar64_fma(p, z, 0x1.9999999999957p-3);
  p = scalar64_fma(p, z, -0x1.5555555555555p-2);
  struct scalar64_pair angle = scalar64_sum_ordered_(t.h, scalar64_fma(p * z, t.h, t.l));
  /* quarters of pi, to which the angle is added, or from which it is taken */
  double quarters = moved ? 1 : 0, sign = 1;
  if (steep) quarters = 2 - quarters, sign = -sign;
  if (behind) quarters = 4 - quarters, sign = -sign;
  struct scalar64_pair sum = scalar64_sum_ordered_(quarters * 0x1.921fb54442d18p-1, sign * angle.h);
  sum.l += scalar64_fma(quarters, 0x1.1a62633145c07p-55, sign * angle.l);
  return scalar64_copysign(sum.h + sum.l, y);
}

/* --- error functions --- */

/* erf(x) = x + x P(x^2) for |x| <= 0.85. */
RDNA_SCALAR double scalar64_erf_small_(double x) {
  double z = x * x, p = 0x1.295d8b95c0463p-34;
  p = scalar64_fma(p, z, -0x1.4386a7d692496p-30);
  p = scalar64_fma(p, z, 0x1.faac0b1835832p-27);
  p = scalar64_fma(p, z, -0x1.5f5a76b4bb764p-23);
  p = scalar64_fma(p, z, 0x1.b9e51e0185c03p-20);
  p = scalar64_fma(p, z, -0x1.f4d24918e2269p-17);
  p = scalar64_fma(p, z, 0x1.f9a326635b228p-14);
  p = scalar64_fma(p, z, -0x1.c02db3fd28939p-11);
  p = scalar64_fma(p, z, 0x1.565bcd0e5fdbap-8);
  p = scalar64_fma(p, z, -0x1.b82ce312888aep-6);
  p = scalar64_fma(p, z, 0x1.ce2f21a042bdcp-4);
  p = scalar64_fma(p, z, -0x1.812746b0379e7p-2);
  p = scalar64_fma(p, z, 0x1.06eba8214db69p-3);
  return scalar64_fma(p, x, x);
}
/* erfc(x) = 2^n * the result for x in [0.4, 28.5], of which |square| is the square: (1 + 2 x) exp(x^2) erfc(x) is a
 * polynomial in (x - 3.5) / (x + 3.5) (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x",
 * 1981). */
RDNA_SCALAR struct scalar64_pair scalar64_erfc_large_(struct scalar64_pair x, struct scalar64_pair square,
                                                      int32_t *out_n) {
  double t = (x.h - 3.5) * scalar64_inverse_(x.h + 3.5), p = 0x1.b9ab13cb378acp-31;
  p = scalar64_fma(p, t, 0x1.57fce86db2e1cp-27);
  p = scalar64_fma(p, t, -0x1.1260ef286919ep-29);
  p = scalar64_fma(p, t, -0x1.8a98bd1baf77ep-24);
  p = scalar64_fma(p, t, -0x1.2e7cb4c8e8d3bp-28);
  p = scalar64_fma(p, t, 0x1.416f54e10c7dap-21);
  p = scalar64_fma(p, t, -0x1.935129e22437bp-25);
  p = scalar64_fma(p, t, -0x1.ffd2f641c5e60p-19);
  p = scalar64_fma(p, t, 0x1.38ac1db75707ap-19);
  p = scalar64_fma(p, t, 0x1.97061ceea95e7p-16);
  p = scalar64_fma(p, t, -0x1.66e2f6f36364cp-15);
  p = scalar64_fma(p, t, -0x1.fda8da012ae02p-14);
  p = scalar64_fma(p, t, 0x1.27e6676d63be8p-11);
  p = scalar64_fma(p, t, -0x1.3cf36b97af9a4p-12);
  p = scalar64_fma(p, t, -0x1.143c4cb14be78p-8);
  p = scalar64_fma(p, t, 0x1.38ec6671f5ddep-6);
  p = scalar64_fma(p, t, -0x1.8ff5ef76baae9p-5);
  p = scalar64_fma(p, t, 0x1.686106046bcf9p-4);
  p = scalar64_fma(p, t, -0x1.d76830c35388bp-4);
  p = scalar64_fma(p, t, 0x1.8f702ec6b3468p-4);
  p = scalar64_fma(p, t, -0x1.59e2c284b1133p-7);
  p = scalar64_fma(p, t, -0x1.1ebd220ea593cp-3);
  struct scalar64_pair factor = scalar64_sum_ordered_(0x1.3e0a99a0ee914p+0, p * t);
  factor.l += -0x1.9d7a2627c40b9p-57;
  struct scalar64_pair e = scalar64_exp_unscaled_(scalar64_pair_of_(-square.h, -square.l), out_n);
  struct scalar64_pair below = scalar64_sum_(1, 2 * x.h);
  below.l += 2 * x.l;
  return scalar64_over_(scalar64_times_(e, factor), below);
}
/* 1 - exp(log(erfc(a))), the logarithm as a polynomial in a - 0.84, for a in [0.84, 5.95], from where it is 1: erfc is
 * less than a quarter there, and needs less than its own precision. */
RDNA_SCALAR double scalar64_erf_large_(double a) {
  double t = a - 0.84, p = 0x1.b3d8b1e014efbp-40;
  p = scalar64_fma(p, t, -0x1.8c1c664ab0805p-35);
  p = scalar64_fma(p, t, 0x1.4d9f6de7a91ecp-31);
  p = scalar64_fma(p, t, -0x1.5928af9e0fc7bp-28);
  p = scalar64_fma(p, t, 0x1.e6e4e4c6d537cp-26);
  p = scalar64_fma(p, t, -0x1.e29b58f726d35p-24);
  p = scalar64_fma(p, t, 0x1.3a696a6f6893cp-22);
  p = scalar64_fma(p, t, -0x1.1975ed33b48a2p-22);
  p = scalar64_fma(p, t, -0x1.051d0afd98e5bp-19);
  p = scalar64_fma(p, t, 0x1.af0b131a10c9cp-17);
  p = scalar64_fma(p, t, -0x1.6b4120270f6e8p-15);
  p = scalar64_fma(p, t, 0x1.292bf6c45ea0fp-14);
  p = scalar64_fma(p, t, 0x1.83b210dc5cad3p-13);
  p = scalar64_fma(p, t, -0x1.1e5506604566ep-9);
  p = scalar64_fma(p, t, 0x1.7f74a09d99b2ep-7);
  p = scalar64_fma(p, t, -0x1.8d6022adae3cep-5);
  p = scalar64_fma(p, t, -0x1.a4a00887ed61fp-1);
  p = scalar64_fma(p, t, -0x1.2faf435ae6f4fp+1);
  p = scalar64_fma(p, t, -0x1.72e3108f0ac19p+0);
  double power, part = scalar64_exp_near_(p, &power);
  return scalar64_fma(-power, part, 1 - power);
}
RDNA_SCALAR double scalar64_erf(double x) {
  double a = scalar64_abs(x), small = scalar64_erf_small_(a);
  double large = scalar64_erf_large_(a > 5.95 ? 5.95 : a); /* of a NaN, a NaN */
  return scalar64_copysign(a < 0.84 ? small : large, x);
}
/* 2 Phi(x), Phi the normal distribution's, is 2^n * the result; for x above -40. */
RDNA_SCALAR struct scalar64_pair scalar64_twice_phi_(double x, int32_t *out_n) {
  double a = x * 0x1.6a09e667f3bcdp-1, limited = scalar64_limited_(scalar64_abs(x), 0.565, 40);
  struct scalar64_pair away = scalar64_product_(limited, 0x1.6a09e667f3bcdp-1);
  away.l = scalar64_fma(limited, -0x1.bdd3413b26456p-55, away.l);
  struct scalar64_pair square = scalar64_product_(limited, limited); /* half of it is exact */
  square.h *= 0.5, square.l *= 0.5;
  int32_t n;
  struct scalar64_pair large = scalar64_erfc_large_(away, square, &n);
  struct scalar64_pair small = scalar64_sum_ordered_(1, scalar64_erf_small_(scalar64_limited_(a, -0.85, 0.85)));
  struct scalar64_pair rest = scalar64_sum_ordered_(2, -scalar64_scale_(large.h + large.l, n));
  struct scalar64_pair other = a < 0.84 ? small : rest;
  *out_n = a < -0.4 ? n : 0;
  return a < -0.4 ? large : other;
}
/* x Phi(x) (Hendrycks and Gimpel, 2016). */
RDNA_SCALAR double scalar64_gelu(double x) {
  int32_t n;
  struct scalar64_pair twice = scalar64_twice_phi_(x, &n);
  twice.h *= 0.5, twice.l *= 0.5;
  double result = scalar64_gate_(x, twice, n);
  return x < -40 ? x * 0.0 : result;
}

#endif
