/* The functions of kernels.def's rows, and numbers of operations that librdna has no enumeration for. */
#ifndef RDNA_TENSORFLOW_OPS_H
#define RDNA_TENSORFLOW_OPS_H

#include "kernel.h"

enum { OR_ZERO_DIV, OR_ZERO_MUL, OR_ZERO_XDIVY, OR_ZERO_XLOGY, OR_ZERO_XLOG1PY };
enum { NATIVE, DEPTHWISE };                                                 /* convolutions */
enum { FROM_STATE, FROM_KEY, FROM_SEED, FROM_VARIABLE };                    /* random numbers */
enum { LARGEST, AVERAGE };                                                  /* pools */
enum { GRADIENT_SQRT, GRADIENT_RSQRT, GRADIENT_TANH, GRADIENT_RECIPROCAL }; /* of complex numbers */
enum { INVERSE_ASIN, INVERSE_ACOS, INVERSE_ATAN };
enum {
  OPTIMIZE_GRADIENT_DESCENT,
  OPTIMIZE_MOMENTUM,
  OPTIMIZE_KERAS_MOMENTUM,
  OPTIMIZE_ADAM,
  OPTIMIZE_AMSGRAD,
  OPTIMIZE_ADA_MAX,
  OPTIMIZE_RMS_PROP,
  OPTIMIZE_CENTERED_RMS_PROP,
  OPTIMIZE_ADAGRAD,
  OPTIMIZE_ADAGRAD_V2,
  OPTIMIZE_PROXIMAL_ADAGRAD,
  OPTIMIZE_ADADELTA,
  OPTIMIZE_ADD_SIGN,
  OPTIMIZE_POWER_SIGN,
  OPTIMIZE_FTRL,
  OPTIMIZE_FTRL_V2
};
enum { SCATTER_SUB = 100, SEGMENT_SQRT_N }; /* beside rdna_scatter */

#define KERNEL(op, compute, ...) rdna_status compute(call *c);
#define PAIR(op, compute, ...) rdna_status compute(call *c);
#define ON_HOST(op, compute, ...) rdna_status compute(call *c);
#define COMPLEX(op, compute, ...) rdna_status compute(call *c);
#include "kernels.def"
#undef KERNEL
#undef PAIR
#undef ON_HOST
#undef COMPLEX

#endif
