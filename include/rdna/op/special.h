/* Special functions of each value. */
#ifndef RDNA_OP_SPECIAL_H
#define RDNA_OP_SPECIAL_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are part of the interface: new ones go to the end. Errors are of f64, in units of the result's last place
 * ("of 1": of 1 where the result is smaller); f32 is computed in f64 and rounded once. */
typedef enum rdna_special {
  RDNA_SPECIAL_ERFC,      /* 1 - erf(x); 4 */
  RDNA_SPECIAL_ERFINV,    /* y of erf(y) = x; 8 */
  RDNA_SPECIAL_NDTRI,     /* y of Phi(y) = x, Phi the normal distribution's; 16 of 1 */
  RDNA_SPECIAL_LGAMMA,    /* log |Gamma(x)|; 8 for x > 0, else 16 of the larger of 1 and log |x Gamma(|x|)| */
  RDNA_SPECIAL_DIGAMMA,   /* the derivative of lgamma; 16 of 1 for x > 0, else of its terms, as it has roots there */
  RDNA_SPECIAL_POLYGAMMA, /* derivative number |order| of digamma, 0 to 100; 64 + 4 |order| for x > 0 */
  RDNA_SPECIAL_I0,        /* modified Bessel functions of the first kind, order 0; 16, and 2 |x| more from 20 on */
  RDNA_SPECIAL_I0E,       /* exp(-|x|) I0(x); 16 */
  RDNA_SPECIAL_I1,        /* the same of order 1 */
  RDNA_SPECIAL_I1E,
  RDNA_SPECIAL_J0, /* Bessel functions of the first kind; 8 of 1 */
  RDNA_SPECIAL_J1,
  RDNA_SPECIAL_Y0, /* of the second kind, a NaN below 0; 8 of 1 */
  RDNA_SPECIAL_Y1,
  RDNA_SPECIAL_K0, /* modified, of the second kind, a NaN below 0; 16, and 2 |x| more from 1 on */
  RDNA_SPECIAL_K1,
  RDNA_SPECIAL_K0E, /* exp(x) K0(x); 16 */
  RDNA_SPECIAL_K1E,
  RDNA_SPECIAL_AIRY_AI, /* Airy's Ai(x); with z = |x|^(3/2), 16 + 2 z for x > 0, else 16 + z of 1 */
  RDNA_SPECIAL_ASIN,    /* 4, as the rest */
  RDNA_SPECIAL_ACOS,
  RDNA_SPECIAL_ATAN,
  RDNA_SPECIAL_SINH,
  RDNA_SPECIAL_COSH,
  RDNA_SPECIAL_ASINH,
  RDNA_SPECIAL_ACOSH,
  RDNA_SPECIAL_ATANH,
  RDNA_SPECIAL_COUNT
} rdna_special;

/* "lgamma"; NULL for none of them. */
RDNA_API const char *rdna_special_name(rdna_special function);

/* out = |function| of x. |order| is polygamma's, and 0 of all others. |x| and |out| are contiguous, of one shape, both
 * f32 or both f64, and the same or without overlap. RDNA_INVALID_ARGUMENT: no such function or order, shapes or types
 * that disagree, missing data, partial overlap. RDNA_UNSUPPORTED: another type, or gaps. */
RDNA_CHECKED rdna_status rdna_op_special(rdna_stream *stream, rdna_special function, int order, const rdna_tensor *x,
                                         const rdna_tensor *out);

/* Functions of two arguments. Errors as above; iterations end after 20000, which |a| up to 1e7 does not need. */
typedef enum rdna_special_pair {
  RDNA_SPECIAL_PAIR_IGAMMA,      /* P(a, x), the share of the gamma function's integral below x; 32 + 4 a log(a) of 1 */
  RDNA_SPECIAL_PAIR_IGAMMAC,     /* 1 - P(a, x) */
  RDNA_SPECIAL_PAIR_ZETA,        /* Hurwitz's zeta(s, q), s > 1; 64 + 4 s for q > 0 */
  RDNA_SPECIAL_PAIR_CHEBYSHEV_T, /* polynomials (x, n), the whole part of n their degree: 0 of -1 and below, a NaN above
                                  * 2^20.
                                  */
  RDNA_SPECIAL_PAIR_CHEBYSHEV_U, /* Errors of n + 1 roundings of the recurrence's terms */
  RDNA_SPECIAL_PAIR_CHEBYSHEV_V,
  RDNA_SPECIAL_PAIR_CHEBYSHEV_W,
  RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T, /* of 2 x - 1 */
  RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_U,
  RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_V,
  RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W,
  RDNA_SPECIAL_PAIR_HERMITE_H,  /* the physicists' */
  RDNA_SPECIAL_PAIR_HERMITE_HE, /* the probabilists' */
  RDNA_SPECIAL_PAIR_LAGUERRE,
  RDNA_SPECIAL_PAIR_LEGENDRE,
  RDNA_SPECIAL_PAIR_LOGADDEXP,  /* log(exp(x) + exp(y)); 4 of the larger of 1, |x| and |y| */
  RDNA_SPECIAL_PAIR_LOGADDEXP2, /* log2(2^x + 2^y) */
  RDNA_SPECIAL_PAIR_XLOGY,      /* x log(y), 0 for x = 0 unless y is a NaN; 4 */
  RDNA_SPECIAL_PAIR_XLOG1PY,    /* x log(1 + y) */
  RDNA_SPECIAL_PAIR_HYPOT,      /* sqrt(x^2 + y^2), which does not overflow before the result does; 2 */
  RDNA_SPECIAL_PAIR_COPYSIGN,   /* |x| with the sign of y; exact, as the rest */
  RDNA_SPECIAL_PAIR_FMAX,       /* the larger, or the one that is no NaN */
  RDNA_SPECIAL_PAIR_FMIN,
  RDNA_SPECIAL_PAIR_COUNT
} rdna_special_pair;

/* "igamma"; NULL for none of them. */
RDNA_API const char *rdna_special_pair_name(rdna_special_pair function);

/* out = |function| of x and y, as rdna_op_special: contiguous, of one shape, all f32 or all f64; |out| may be either.
 */
RDNA_CHECKED rdna_status rdna_op_special_pair(rdna_stream *stream, rdna_special_pair function, const rdna_tensor *x,
                                              const rdna_tensor *y, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
