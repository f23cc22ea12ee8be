/* Samples of gamma, Poisson and binomial distributions, and how samples move with their parameters, in double: the same
 * bits on the device and on the host.
 *
 * Value i has the counter offset + i of its own, in the lower half of Philox's; the upper half counts the blocks of
 * four words that the value takes. Each way but inversion proposes and rejects; a block is one proposal. */
#ifndef RDNA_MATH_RANDOM_VARIATES_MATH_H
#define RDNA_MATH_RANDOM_VARIATES_MATH_H

#include "math/random/random_math.h"
#include "math/random/variates_kernels.h"
#include "math/special/special_functions.h"

/* Proposals below are accepted with 0.7 at least, so that all are rejected with less than 2^-110. */
enum { VARIATES_PROPOSALS = 64 };

RDNA_SCALAR struct random_words variates_words(uint64_t seed, uint64_t counter, uint32_t block) {
  return random_philox((uint32_t)counter, (uint32_t)(counter >> 32), block, 0, seed);
}
/* Uniform in (0, 1), as likely below 1/2 as above, from 52 bits or 32. */
RDNA_SCALAR double variates_unit(uint32_t high, uint32_t low) {
  return ((double)((uint64_t)high << 20 | low >> 12) + 0.5) * 0x1p-52;
}
RDNA_SCALAR double variates_short_unit(uint32_t word) { return ((double)word + 0.5) * 0x1p-32; }

/* --- gamma --- */

/* A gamma distribution's sample or, if |logarithm|, its logarithm, which does not underflow. Marsaglia and Tsang, "A
 * simple method for generating gamma variables", 2000: d v with v = (1 + x / sqrt(9 d))^3, x normal, d = shape - 1/3.
 * Below shape 1, by the same paper, a sample of shape + 1 times u^(1 / shape). */
RDNA_SCALAR double variates_gamma(uint64_t seed, uint64_t counter, double shape, bool logarithm) {
  if (shape == 0) return logarithm ? -__builtin_inf() : 0;
  if (!(shape > 0 && shape < __builtin_inf())) return shape > 0 ? shape : __builtin_nan("");
  bool boosted = shape < 1;
  double d = (boosted ? shape + 1 : shape) - 1.0 / 3, c = 1 / (3 * __builtin_sqrt(d)), v = 1;
  for (uint32_t block = 1; block <= VARIATES_PROPOSALS; block++) {
    struct random_words w = variates_words(seed, counter, block);
    /* a point in the unit circle, whose coordinate becomes a normal number: Marsaglia and Bray, 1964 */
    double p = 2 * variates_unit(w.word[0], w.word[1]) - 1, q = 2 * variates_short_unit(w.word[2]) - 1;
    double inside = p * p + q * q, x = p * __builtin_sqrt(-2 * scalar64_log(inside) / inside);
    double root = 1 + c * x, cube = root * root * root, u = variates_short_unit(w.word[3]), square = x * x;
    if (inside >= 1 || !(root > 0)) continue;
    if (u < 1 - 0.0331 * square * square || scalar64_log(u) < 0.5 * square + d * (1 - cube + scalar64_log(cube))) {
      v = cube;
      break;
    }
  }
  if (!boosted) return logarithm ? scalar64_log(d * v) : d * v;
  struct random_words w = variates_words(seed, counter, 0);
  double log = scalar64_log(d * v) + scalar64_log(variates_unit(w.word[0], w.word[1])) / shape;
  return logarithm ? log : scalar64_exp(log);
}

/* --- probabilities of Poisson and binomial distributions --- */

/* x log(x / (x - d)) - d, for x > 0 and d < x, without cancellation: Loader, "Fast and accurate computation of binomial
 * probabilities", 2000. With v = d / (2 x - d) the logarithm is 2 (v + v^3 / 3 + v^5 / 5 ...). */
RDNA_SCALAR double variates_deviance(double x, double d) {
  double mean = x - d, v = d / (x + mean), z = v * v, s = 1.0 / 19;
  if (scalar64_abs(v) > 0.1) return x * scalar64_log(x / mean) - d;
  s = scalar64_fma(s, z, 1.0 / 17);
  s = scalar64_fma(s, z, 1.0 / 15);
  s = scalar64_fma(s, z, 1.0 / 13);
  s = scalar64_fma(s, z, 1.0 / 11);
  s = scalar64_fma(s, z, 1.0 / 9);
  s = scalar64_fma(s, z, 1.0 / 7);
  s = scalar64_fma(s, z, 1.0 / 5);
  s = scalar64_fma(s, z, 1.0 / 3);
  return d * v + 2 * x * v * z * s;
}

/* log of rate^k exp(-rate) / k!, k a whole number */
RDNA_SCALAR double variates_log_poisson(double k, double rate) {
  if (k < 10) {
    double factorial = 1;
    for (double j = 2; j <= k; j += 1) factorial *= j;
    return k * scalar64_log(rate) - rate - scalar64_log(factorial);
  }
  return -special_stirling_(k) - variates_deviance(k, k - rate) - 0.5 * scalar64_log(2 * SPECIAL_PI * k);
}

/* log of (n choose k) p^k (1 - p)^(n - k) */
RDNA_SCALAR double variates_log_binomial(double k, double n, double p) {
  double rest = n - k, q = 1 - p, few = k < rest ? k : rest;
  if (few < 10) {
    double ways = 1;
    for (double j = 0; j < few; j += 1) ways *= (n - j) / (j + 1);
    return scalar64_log(ways) + k * scalar64_log(p) + rest * scalar64_log1p(-p);
  }
  double d = k - n * p;
  return special_stirling_(n) - special_stirling_(k) - special_stirling_(rest) - variates_deviance(k, d) -
         variates_deviance(rest, rest - n * q) + 0.5 * scalar64_log(n / (2 * SPECIAL_PI * k * rest));
}

/* --- Poisson --- */

/* Both distributions: the least k whose probability to be at most k is above a uniform number, which is found by adding
 * up from 0. |first| is the probability of 0, and that of k + 1 is that of k times (a / (k + 1) - b). A value above
 * |VARIATES_MOST| is less likely than 2^-52 where this is called. */
enum { VARIATES_MOST = 64 };
RDNA_SCALAR double variates_inverse(uint64_t seed, uint64_t counter, double first, double a, double b) {
  struct random_words w = variates_words(seed, counter, 0);
  double u = variates_unit(w.word[0], w.word[1]), k = 0, p = first;
  while (u > p && k < VARIATES_MOST) {
    u -= p;
    k += 1;
    p *= a / k - b;
  }
  return k;
}

/* Hörmann, "The transformed rejection method for generating Poisson random variables", 1993: PTRS from rate 10 on. */
RDNA_SCALAR double variates_poisson(uint64_t seed, uint64_t counter, double rate) {
  if (!(rate >= 0)) return __builtin_nan("");
  if (rate < 10) return variates_inverse(seed, counter, scalar64_exp(-rate), rate, 0);
  double b = 0.931 + 2.53 * __builtin_sqrt(rate), a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4);
  double most = 0.9277 - 3.6224 / (b - 2);
  if (!(b < __builtin_inf())) return rate;
  for (uint32_t block = 0; block < VARIATES_PROPOSALS; block++) {
    struct random_words w = variates_words(seed, counter, block);
    double u = variates_unit(w.word[0], w.word[1]) - 0.5, v = variates_unit(w.word[2], w.word[3]);
    double edge = 0.5 - scalar64_abs(u), k = __builtin_floor((2 * a / edge + b) * u + rate + 0.43);
    if (edge >= 0.07 && v <= most) return k;
    if (k < 0 || (edge < 0.013 && v > edge)) continue;
    if (scalar64_log(v * inverse / (a / (edge * edge) + b)) <= variates_log_poisson(k, rate)) return k;
  }
  return __builtin_floor(rate);
}

/* --- binomial --- */

/* Hörmann, "The generation of binomial random variates", 1993: BTRS, for n p >= 10 and p <= 1/2. */
RDNA_SCALAR double variates_btrs(uint64_t seed, uint64_t counter, double n, double p) {
  double deviation = __builtin_sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  double center = n * p + 0.5, most = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
  double mode = __builtin_floor((n + 1) * p), of_mode = variates_log_binomial(mode, n, p);
  for (uint32_t block = 0; block < VARIATES_PROPOSALS; block++) {
    struct random_words w = variates_words(seed, counter, block);
    double u = variates_unit(w.word[0], w.word[1]) - 0.5, v = variates_unit(w.word[2], w.word[3]);
    double edge = 0.5 - scalar64_abs(u), k = __builtin_floor((2 * a / edge + b) * u + center);
    if (k < 0 || k > n) continue;
    if (edge >= 0.07 && v <= most) return k;
    if (scalar64_log(v * alpha / (a / (edge * edge) + b)) <= variates_log_binomial(k, n, p) - of_mode) return k;
  }
  return mode;
}
RDNA_SCALAR double variates_binomial(uint64_t seed, uint64_t counter, double count, double p) {
  double n = __builtin_floor(count);
  if (n <= 0 || p <= 0) return 0;
  if (n != n || p != p) return __builtin_nan("");
  if (p >= 1 || n == __builtin_inf()) return count;
  bool flipped = p > 0.5;
  double least = flipped ? 1 - p : p, k;
  if (n * least < 10) {
    double ratio = least / (1 - least);
    k = variates_inverse(seed, counter, scalar64_exp(n * scalar64_log1p(-least)), (n + 1) * ratio, ratio);
    k = k > n ? n : k;
  } else {
    k = variates_btrs(seed, counter, n, least);
  }
  return flipped ? n - k : k;
}

/* --- how samples move with their parameters ---
 *
 * A sample x of the cumulative distribution F(x; a) that keeps its probability moves by dx/da = -(dF/da) / (dF/dx)
 * (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018; Jankowiak and Obermeyer, "Pathwise
 * derivatives beyond the reparameterization trick", 2018). Below the mean F is written as the density times a sum,
 * above it 1 - F is: the density then cancels, and the terms that remain have one sign. */
enum { VARIATES_TERMS = 20000 };
/* From this parameter on, expansions for large ones, whose error there is 1e-12, or 1e-8 of the beta distribution.
 * Below it, sums end after about 10 sqrt(parameter) terms. */
#define VARIATES_LARGE 1e5

/* The gamma distribution of large |a|: Temme, "The asymptotic expansion of the incomplete gamma functions", 1979: 1 - F
 * is erfc(eta sqrt(a / 2)) / 2 + E (c0 + c1 / a + ...), E = exp(-a eta^2 / 2) / sqrt(2 pi a), with eta^2 / 2 = t - 1 -
 * log(t) for t = x / a. The density is E a / (x G), log(G) being Stirling's series. Coefficients c by their Taylor
 * series, |eta| up to 0.25. */
RDNA_SCALAR double variates_gamma_gradient_large(double a, double x) {
  const double c[8] = {1.0 / 12,        -2.0 / 135,  1.0 / 864,          1.0 / 2835,
                       -139.0 / 777600, 1.0 / 25515, -571.0 / 261273600, -281.0 / 151559100};
  double d = a - x, eta = scalar64_copysign(__builtin_sqrt(2 * variates_deviance(a, d) / a), -d);
  double slope = d == 0 ? 1 : -d / (a * eta), c0 = c[7], c0_slope = 0;
  for (int k = 6; k >= 0; k--) c0_slope = scalar64_fma(c0_slope, eta, c0), c0 = scalar64_fma(c0, eta, c[k]);
  c0_slope = scalar64_fma(c0_slope, eta, c0), c0 = scalar64_fma(c0, eta, -1.0 / 3);
  double c1 = -1.0 / 540 + eta * (-1.0 / 288 + eta * (1.0 / 378));
  double sum = slope - 0.5 * eta + (scalar64_log1p(-d / a) - 0.5 / a) * (c0 + c1 / a) - c0_slope * slope / a;
  return x / a * scalar64_exp(special_stirling_(a)) * sum;
}

/* dx / d shape of a sample x of the gamma distribution. */
RDNA_SCALAR double variates_gamma_gradient(double a, double x) {
  if (!(a > 0 && x >= 0 && x < __builtin_inf())) return __builtin_nan("");
  if (x == 0) return 0;
  if (a >= VARIATES_LARGE && scalar64_abs(x - a) < 0.2 * a) return variates_gamma_gradient_large(a, x);
  if (x <= 1 || x <= a) { /* F is the density times x / a times the sum of x^k / ((a + 1) ... (a + k)) */
    double term = 1, sum = 1, slope = 0, all_slopes = 0;
    for (int k = 1; k < VARIATES_TERMS && (term > sum * 0x1p-56 || term * slope > all_slopes * 0x1p-56); k++) {
      double inverse = 1 / (a + (double)k);
      term *= x * inverse, slope += inverse;
      sum += term, all_slopes += term * slope;
    }
    return x / a * (all_slopes + sum * (special_digamma_positive_(a + 1) - scalar64_log(x)));
  }
  /* 1 - F is the density times x times the fraction 1 / (x + 1 - a + (a - 1) / (x + 3 - a + ...)) (A&S 6.5.31), by
   * Lentz, "Generating Bessel functions", 1976: the product of c and d, with their derivatives by a. */
  double b = x + 1 - a, c = 1e300, d = 1 / b, c_slope = 0, d_slope = d * d, whole = d, slope = d, more = 1;
  for (int k = 1; k < VARIATES_TERMS && scalar64_abs(more) > 0x1p-54 * slope; k++) {
    double n = (double)k * (a - (double)k), inverse = 1 / c, step = 1 / (n * d + (b += 2));
    c_slope = ((double)k - n * inverse * c_slope) * inverse - 1;
    c = b + n * inverse;
    d_slope = (1 - (double)k * d - n * d_slope) * step * step;
    d = step;
    more = c_slope / c + d_slope / d;
    whole *= c * d, slope += more;
  }
  return x * whole * (scalar64_log(x) - special_digamma_positive_(a) + slope);
}

/* The fraction 1 / (1 + n1 / (1 + n2 / (1 + ...))) of the incomplete beta function (A&S 26.5.8), for x below the mean;
 * |*out_slope| is the derivative of its logarithm by a if |by_first|, else by b. */
RDNA_SCALAR double variates_beta_fraction(double a, double b, double x, bool by_first, double *out_slope) {
  double c = 1, d = 0, c_slope = 0, d_slope = 0, whole = 1, slope = 0, more = 1;
  for (int k = 1; k < VARIATES_TERMS && scalar64_abs(more) > 0x1p-54 * scalar64_abs(slope); k++) {
    double m = (double)(k / 2), n, n_slope, under = 1 / ((a + (double)k - 1) * (a + (double)k));
    double shrinks = (2 * a + 2 * (double)k - 1) * under; /* of 1 / under */
    if (k == 1) {                                         /* a cancels */
      n = -(a + b) * x / (a + 1);
      n_slope = by_first ? (b - 1) * x / ((a + 1) * (a + 1)) : -x / (a + 1);
    } else if (k % 2) {
      n = -(a + m) * (a + b + m) * x * under;
      n_slope = by_first ? -(2 * a + b + 2 * m) * x * under - n * shrinks : -(a + m) * x * under;
    } else {
      n = m * (b - m) * x * under;
      n_slope = by_first ? -n * shrinks : m * x * under;
    }
    double inverse = 1 / c, step = 1 / (1 + n * d);
    c_slope = (n_slope - n * inverse * c_slope) * inverse;
    c = 1 + n * inverse;
    d_slope = -(n_slope * d + n * d_slope) * step * step;
    d = step;
    more = c_slope / c + d_slope / d;
    whole *= c * d, slope += more;
  }
  *out_slope = -slope;
  return 1 / whole;
}

/* The beta distribution of large parameters: Temme, "Incomplete Laplace integrals", 1987, to the first order. With r =
 * a + b, m = a / r, F is Phi(z sqrt(r)) + E c0, E = exp(-r z^2 / 2) / sqrt(2 pi r), with r z^2 / 2 = a log(m / x) + b
 * log((1 - m) / (1 - x)) and c0 = 1 / z - s / (x - m), s = sqrt(m (1 - m)). The density is E r s g / (x (1 - x)),
 * log(g) of Stirling's series. d is r (m - x). c0 changes slowly, so that it is taken where its terms still differ. */
RDNA_SCALAR double variates_beta_z(double a, double b, double d) {
  double deviance = variates_deviance(a, d) + variates_deviance(b, -d);
  return scalar64_copysign(__builtin_sqrt(2 * deviance / (a + b)), -d);
}
RDNA_SCALAR double variates_beta_gradient_large(double a, double b, double x) {
  double r = a + b, m = a / r, s = __builtin_sqrt(a * b) / r, d = a * (1 - x) - b * x;
  double log_x = scalar64_log1p(-d / a), ratio = d == 0 ? s / m : log_x / variates_beta_z(a, b, d);
  double least = 1e-3 * s * __builtin_sqrt(r), away = scalar64_abs(d) > least ? d : scalar64_copysign(least, d);
  double z = variates_beta_z(a, b, away), lever = r / away, c0 = 1 / z + s * lever;
  double z_slope = -(scalar64_log1p(-away / a) + 0.5 * z * z) / (r * z);
  double s_slope = (1 - 2 * m) * (1 - m) / (2 * r * s), m_slope = (1 - m) / r;
  double c0_slope = -z_slope / (z * z) + (s_slope - s * m_slope * lever) * lever;
  double log_g = special_stirling_(r) - special_stirling_(a) - special_stirling_(b);
  return x / (r * s) * scalar64_exp(-log_g) * (ratio - (log_x - 0.5 / r) * c0 - c0_slope);
}

/* dx / da / (1 - x) of a sample x of the beta distribution of a and b: what a Dirichlet distribution's sample has for
 * each of its values, b being the sum of all other parameters. */
RDNA_SCALAR double variates_dirichlet_gradient(double x, double a, double total) {
  double b = total - a, y = 1 - x, slope;
  if (!(a > 0 && b >= 0 && x >= 0 && x <= 1)) return __builtin_nan("");
  if (x == 0 || b == 0) return 0;
  if (a >= VARIATES_LARGE && b >= VARIATES_LARGE) {
    double d = scalar64_abs(a * y - b * x), least = a < b ? a : b;
    if (d < 0.2 * least) return variates_beta_gradient_large(a, b, x);
  }
  double log_x = scalar64_log(x) + special_digamma_positive_(total);
  if (x < (a + 1) / (total + 2)) {
    double whole = variates_beta_fraction(a, b, x, true, &slope);
    return x / a * whole * (special_digamma_positive_(a + 1) - log_x - slope);
  }
  double whole = variates_beta_fraction(b, a, y, false, &slope);
  return x / b * whole * (log_x - special_digamma_positive_(a) + slope);
}

/* --- value i of each kernel, of the arguments v --- */

RDNA_SCALAR double variates_gamma_value(const struct variates_args *args, uint64_t i, const double *v) {
  double sample = variates_gamma(args->seed, args->offset + i, v[0], args->logarithm);
  return sample < args->least ? args->least : sample;
}
RDNA_SCALAR double variates_poisson_value(const struct variates_args *args, uint64_t i, const double *v) {
  return variates_poisson(args->seed, args->offset + i, v[0]);
}
RDNA_SCALAR double variates_binomial_value(const struct variates_args *args, uint64_t i, const double *v) {
  return variates_binomial(args->seed, args->offset + i, v[0], v[1]);
}
RDNA_SCALAR double variates_gamma_gradient_value(const struct variates_args *args, uint64_t i, const double *v) {
  (void)args, (void)i;
  return variates_gamma_gradient(v[0], v[1]);
}
RDNA_SCALAR double variates_dirichlet_gradient_value(const struct variates_args *args, uint64_t i, const double *v) {
  (void)args, (void)i;
  return variates_dirichlet_gradient(v[0], v[1], v[2]);
}

#endif
