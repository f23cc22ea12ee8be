/* Functions of complex numbers, in double, for the host and the GPU; both compute the same bits. Branches and the cases
 * that overflow follow Kahan, "Branch cuts for complex elementary functions", 1987. */
#ifndef RDNA_MATH_COMPLEX_MATH_H
#define RDNA_MATH_COMPLEX_MATH_H

#include "kernel/scalar64.h"
#include "math/complex/complex_kernels.h"
#include "rdna/op/complex.h"

#define COMPLEX_T float
#define COMPLEX_(name) complex_##name##_f32
#include "math/complex/complex_arithmetic.h"

#define COMPLEX_T double
#define COMPLEX_(name) complex_##name##_f64
#include "math/complex/complex_arithmetic.h"

typedef struct complex_pair_f64 complex_value;

RDNA_SCALAR double complex_abs(complex_value x) {
  double a = scalar64_abs(x.re), b = scalar64_abs(x.im), most = a > b ? a : b, back = 1;
  if (a == __builtin_inf() || b == __builtin_inf()) return __builtin_inf();
  if (most > 0x1p500) a *= 0x1p-600, b *= 0x1p-600, back = 0x1p600;
  if (most < 0x1p-500) a *= 0x1p600, b *= 0x1p600, back = 0x1p-600;
  return __builtin_sqrt(scalar64_fma(a, a, b * b)) * back;
}
RDNA_SCALAR double complex_angle(complex_value x) { return scalar64_atan2(x.im, x.re); }

RDNA_SCALAR complex_value complex_conj(complex_value x) { return (complex_value){x.re, -x.im}; }
RDNA_SCALAR complex_value complex_neg(complex_value x) { return (complex_value){-x.re, -x.im}; }
RDNA_SCALAR complex_value complex_reciprocal(complex_value x) { return complex_div_f64((complex_value){1, 0}, x); }
RDNA_SCALAR complex_value complex_sgn(complex_value x) {
  double size = complex_abs(x);
  if (x.re == 0 && x.im == 0) return (complex_value){0, 0};
  return (complex_value){x.re / size, x.im / size};
}

RDNA_SCALAR complex_value complex_sqrt(complex_value x) {
  double a = scalar64_abs(x.re), b = scalar64_abs(x.im);
  if (a == 0 && b == 0) return (complex_value){0, x.im};
  if (b == __builtin_inf()) return (complex_value){b, x.im};
  int tiny = a < 0x1p-1000 && b < 0x1p-1000; /* halves of subnormals are not exact */
  if (tiny) a *= 0x1p200, b *= 0x1p200;
  double root = __builtin_sqrt(a * 0.5 + complex_abs((complex_value){a, b}) * 0.5), other = b * 0.5 / root;
  if (tiny) root *= 0x1p-100, other *= 0x1p-100;
  if (x.re >= 0) return (complex_value){root, scalar64_copysign(other, x.im)};
  if (x.re < 0) return (complex_value){other, scalar64_copysign(root, x.im)};
  return (complex_value){root, root}; /* not a number */
}

/* What is infinite, or nothing, in one part has no angle in the other: C's annex G says what is left then. */
RDNA_SCALAR int complex_endless_(double v) { return !(v - v == 0); } /* or not a number */

/* exp(x) of a half of x, twice, where that of x would overflow before it is multiplied. */
RDNA_SCALAR complex_value complex_exp(complex_value x) {
  int large = x.re > 700;
  if (x.re == __builtin_inf() && complex_endless_(x.im)) return (complex_value){x.re, __builtin_nan("")};
  double e = scalar64_exp(large ? x.re * 0.5 : x.re);
  double more = large ? e : 1;
  if (x.re == -__builtin_inf() && complex_endless_(x.im)) return (complex_value){0, 0};
  if (x.im == 0) return (complex_value){e * more, x.im};
  return (complex_value){e * scalar64_cos(x.im) * more, e * scalar64_sin(x.im) * more};
}

/* Near |x| = 1 from |x|^2 - 1, whose parts do not cancel. */
RDNA_SCALAR complex_value complex_log(complex_value x) {
  double a = scalar64_abs(x.re), b = scalar64_abs(x.im), most = a > b ? a : b, least = a > b ? b : a;
  double size;
  if (most > 0.5 && most < 2) {
    size = scalar64_log1p(scalar64_fma(least, least, (most - 1) * (most + 1))) * 0.5;
  } else if (most > 0x1p1000) { /* |x| may overflow */
    size = scalar64_log(complex_abs((complex_value){a * 0.25, b * 0.25})) + 1.3862943611198906;
  } else {
    size = scalar64_log(complex_abs(x));
  }
  return (complex_value){size, complex_angle(x)};
}

/* sinh |b| and cosh |b|. */
RDNA_SCALAR complex_value complex_hyperbolic_(double b) {
  b = scalar64_abs(b);
  if (b < 22) {
    double t = scalar64_expm1(b);
    return (complex_value){0.5 * (t + t / (t + 1)), 1 + t * t / (2 * (t + 1))};
  }
  double half = scalar64_exp(0.5 * b), e = half * 0.5 * half; /* the other power is below half a unit of it */
  return (complex_value){e, e};
}
/* 0 wins over infinity. */
RDNA_SCALAR double complex_times_(double a, double b) { return b == 0 ? scalar64_copysign(1, a) * b : a * b; }

RDNA_SCALAR complex_value complex_sinh(complex_value x) {
  complex_value h = complex_hyperbolic_(x.re);
  double s = scalar64_copysign(h.re, x.re);
  if (h.re == __builtin_inf() && complex_endless_(x.im) && complex_endless_(x.re))
    return (complex_value){s, __builtin_nan("")};
  return (complex_value){complex_times_(scalar64_cos(x.im), s), complex_times_(h.im, scalar64_sin(x.im))};
}
RDNA_SCALAR complex_value complex_cosh(complex_value x) {
  complex_value h = complex_hyperbolic_(x.re);
  double s = scalar64_copysign(h.re, x.re);
  if (h.re == __builtin_inf() && complex_endless_(x.im) && complex_endless_(x.re))
    return (complex_value){h.re, __builtin_nan("")};
  if (s == 0 && complex_endless_(x.im)) return (complex_value){__builtin_nan(""), s};
  return (complex_value){h.im * scalar64_cos(x.im), complex_times_(s, scalar64_sin(x.im))};
}
/* From the tangent of the imaginary part and the hyperbolic sine of the real one (Kahan's CTANH). */
RDNA_SCALAR complex_value complex_tanh(complex_value x) {
  if (x.re == 0 && complex_endless_(x.im)) return (complex_value){x.re, __builtin_nan("")};
  if (x.re != x.re && x.im == 0) return x;
  if (x.re - x.re == 0 && complex_endless_(x.im)) return (complex_value){__builtin_nan(""), __builtin_nan("")};
  if (scalar64_abs(x.re) >= 22) {
    double e = scalar64_exp(-2 * scalar64_abs(x.re));
    double im = 4 * scalar64_sin(x.im) * scalar64_cos(x.im) * e;
    return (complex_value){scalar64_copysign(1, x.re), complex_endless_(x.re) ? scalar64_copysign(0, x.im) : im};
  }
  complex_value h = complex_hyperbolic_(x.re);
  double t = scalar64_tan(x.im), s = scalar64_copysign(h.re, x.re), beta = scalar64_fma(t, t, 1);
  double whole = scalar64_fma(beta * s, s, 1);
  return (complex_value){beta * h.im * s / whole, t / whole};
}
/* sin x = -i sinh(i x), tan x = -i tanh(i x), cos x = cosh(i x) */
RDNA_SCALAR complex_value complex_sin(complex_value x) {
  complex_value v = complex_sinh((complex_value){-x.im, x.re});
  return (complex_value){v.im, -v.re};
}
RDNA_SCALAR complex_value complex_cos(complex_value x) { return complex_cosh((complex_value){-x.im, x.re}); }
RDNA_SCALAR complex_value complex_tan(complex_value x) {
  complex_value v = complex_tanh((complex_value){-x.im, x.re});
  return (complex_value){v.im, -v.re};
}

RDNA_SCALAR complex_value complex_pow(complex_value a, complex_value b) {
  if (b.re == 0 && b.im == 0) return (complex_value){1, 0};
  if (a.re == 0 && a.im == 0) {
    double v = b.re > 0 ? 0 : __builtin_nan("");
    return (complex_value){v, v};
  }
  return complex_exp(complex_mul_f64(b, complex_log(a)));
}
RDNA_SCALAR complex_value complex_polar(double size, double angle) {
  return (complex_value){size * scalar64_cos(angle), size * scalar64_sin(angle)};
}

#define COMPLEX_CASE_(NAME, name) \
  case RDNA_COMPLEX_##NAME:       \
    return complex_##name(x);
RDNA_SCALAR complex_value complex_map(uint32_t op, complex_value x) {
  switch (op) {
    RDNA_COMPLEX_MAPS(COMPLEX_CASE_)
    default:
      return x;
  }
}
RDNA_SCALAR double complex_measure(uint32_t op, complex_value x) {
  switch (op) {
    RDNA_COMPLEX_MEASURES(COMPLEX_CASE_)
    default:
      return 0;
  }
}

#endif
