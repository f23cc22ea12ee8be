/* For tests: 8-bit floats by the definition of their fields. */
#ifndef RDNA_MATH_COMMON_TEST_FLOAT8_H
#define RDNA_MATH_COMMON_TEST_FLOAT8_H

#include <math.h>
#include <stdbool.h>

#include "rdna/tensor.h"

/* What a code stands for. */
static inline double float8_value(rdna_dtype type, int code) {
  int m = type == RDNA_F8_E4M3FN || type == RDNA_F8_E4M3FNUZ ? 3 : 2;
  bool odd_zero = type == RDNA_F8_E4M3FNUZ || type == RDNA_F8_E5M2FNUZ;
  int bias = (1 << (6 - m)) - (odd_zero ? 0 : 1), exponent = code % 128 >> m, fraction = code % (1 << m);
  if (odd_zero && code == 128) return (double)NAN;
  if (type == RDNA_F8_E4M3FN && code % 128 == 127) return (double)NAN;
  if (type == RDNA_F8_E5M2 && exponent == 31)
    return fraction ? (double)NAN : code < 128 ? (double)INFINITY : -(double)INFINITY;
  double v = exponent ? ldexp((1 << m) + fraction, exponent - bias - m) : ldexp(fraction, 1 - bias - m);
  return code < 128 ? v : -v;
}

#endif
