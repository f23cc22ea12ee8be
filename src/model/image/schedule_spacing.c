#include <math.h>
#include <string.h>

#include "model/image/schedule.h"

/* ---- the beta distribution ---- */

static const double shape = 0.6; /* both parameters, in Lee et al. (2024), "Beta Sampling is All You Need" */

/* The continued fraction of DLMF 8.17.22 for both parameters |shape|, from its end; of x below 1/2 twenty terms are
 * right to the last place. */
static double fraction(double x) {
  double value = 1;
  for (int m = 40; m > 0; m--) {
    double odd = -(shape + m - 1) * (2 * shape + m - 1) * x / ((shape + 2 * m - 2) * (shape + 2 * m - 1));
    double even = m * (shape - m) * x / ((shape + 2 * m - 1) * (shape + 2 * m));
    value = 1 + odd / (1 + even / value);
  }
  return 1 / value;
}

/* How likely a value below |x| is. */
static double likely(double x) {
  if (x > 0.5) return 1 - likely(1 - x);
  double whole = exp(2 * lgamma(shape) - lgamma(2 * shape));
  return pow(x * (1 - x), shape) / (shape * whole) * fraction(x);
}

/* Below which values are with that likelihood. */
static double value_of(double likelihood) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    *(likely(middle) < likelihood ? &low : &high) = middle;
  }
  return (low + high) / 2;
}

/* ---- "Align Your Steps" ---- */

enum { ALIGNED = 11 };

/* Sabour et al. (2024): levels of ten steps and behind them, for Stable Diffusion 1 and XL. */
static const double aligned[2][ALIGNED] = {
    {14.615, 6.475, 3.861, 2.697, 1.886, 1.396, 0.963, 0.652, 0.399, 0.152, 0.029},
    {14.615, 6.315, 3.771, 2.181, 1.342, 0.862, 0.555, 0.380, 0.234, 0.113, 0.029}};

/* Level |i| of |count|, of other numbers by their logarithms, as they advise. */
static double align(const double levels[ALIGNED], int i, int count) {
  double at = (double)i * (ALIGNED - 1) / count;
  int low = (int)at;
  return exp(log(levels[low]) + (at - low) * (log(levels[low + 1]) - log(levels[low])));
}

/* ---- all ---- */

static const char *const spacings[] = {"simple", "karras", "exponential", "beta", "ays", "ays_xl", "sgm_uniform"};

bool rdna__spacing_is_known(const char *name) {
  for (size_t i = 0; i < sizeof spacings / sizeof *spacings; i++)
    if (strcmp(name, spacings[i]) == 0) return true;
  return false;
}

void rdna__spacing_fill(const char *spacing, double most, double least, int count, double *sigma) {
  const double root = 1.0 / 7; /* Karras et al. (2022), rho */
  for (int i = 0; i < count; i++) {
    double at = count > 1 ? (double)i / (count - 1) : 0;
    if (strcmp(spacing, "karras") == 0)
      sigma[i] = pow(pow(most, root) + at * (pow(least, root) - pow(most, root)), 7);
    else if (strcmp(spacing, "exponential") == 0)
      sigma[i] = exp(log(most) + at * (log(least) - log(most)));
    else if (strcmp(spacing, "beta") == 0)
      sigma[i] = least + value_of(1 - at) * (most - least);
    else
      sigma[i] = align(aligned[strcmp(spacing, "ays_xl") == 0], i, count);
  }
}
