/* Special functions: out[i] = f(x[i]). All are computed in f64, f32 as well: they are for distributions and windows,
 * where what counts is that the result is right; 100 to 1000 operations a value, each operand read or written once. */
#ifndef RDNA_MATH_SPECIAL_KERNELS_H
#define RDNA_MATH_SPECIAL_KERNELS_H

#include <stdint.h>

enum { SPECIAL_THREADS = 256 };

/* Grid x: ceil(count / SPECIAL_THREADS) groups. */
struct special_args {
  const void *x;
  void *out; /* may be x */
  uint64_t count;
  uint32_t function; /* rdna_special */
  uint32_t order;
};

/* Each family of functions has a kernel for each type: F(family, suffix, type). */
#define RDNA_SPECIAL_FAMILIES(F)   \
  F(erf_complement, f32, float)    \
  F(erf_complement, f64, double)   \
  F(erf_inverse, f32, float)       \
  F(erf_inverse, f64, double)      \
  F(log_gamma, f32, float)         \
  F(log_gamma, f64, double)        \
  F(gamma_derivative, f32, float)  \
  F(gamma_derivative, f64, double) \
  F(bessel, f32, float)            \
  F(bessel, f64, double)           \
  F(wave, f32, float)              \
  F(wave, f64, double)             \
  F(decay, f32, float)             \
  F(decay, f64, double)            \
  F(airy, f32, float)              \
  F(airy, f64, double)             \
  F(arc, f32, float)               \
  F(arc, f64, double)              \
  F(hyperbolic, f32, float)        \
  F(hyperbolic, f64, double)       \
  F(area, f32, float)              \
  F(area, f64, double)

#define RDNA_SPECIAL_KERNELS(X)                                                             \
  X(special_erf_complement_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)   \
  X(special_erf_complement_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)   \
  X(special_erf_inverse_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)      \
  X(special_erf_inverse_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)      \
  X(special_log_gamma_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)        \
  X(special_log_gamma_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)        \
  X(special_gamma_derivative_f32, struct special_args, SPECIAL_THREADS, rdna__special_case) \
  X(special_gamma_derivative_f64, struct special_args, SPECIAL_THREADS, rdna__special_case) \
  X(special_bessel_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)           \
  X(special_bessel_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)           \
  X(special_wave_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)             \
  X(special_wave_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)             \
  X(special_decay_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)            \
  X(special_decay_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)            \
  X(special_airy_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)             \
  X(special_airy_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)             \
  X(special_arc_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)              \
  X(special_arc_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)              \
  X(special_hyperbolic_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)       \
  X(special_hyperbolic_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)       \
  X(special_area_f32, struct special_args, SPECIAL_THREADS, rdna__special_case)             \
  X(special_area_f64, struct special_args, SPECIAL_THREADS, rdna__special_case)

#endif
