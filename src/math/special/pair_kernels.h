/* Special functions of two arguments: out[i] = f(x[i], y[i]), computed in f64 as those of special_kernels.h. */
#ifndef RDNA_MATH_SPECIAL_PAIR_KERNELS_H
#define RDNA_MATH_SPECIAL_PAIR_KERNELS_H

#include <stdint.h>

enum { PAIR_THREADS = 256 };

/* Grid x: ceil(count / PAIR_THREADS) groups. */
struct pair_args {
  const void *x, *y;
  void *out; /* may be x or y */
  uint64_t count;
  uint32_t function; /* rdna_special_pair */
};

/* Each family has a kernel for each type: F(family, suffix, type). */
#define RDNA_PAIR_FAMILIES(F) \
  F(gamma, f32, float)        \
  F(gamma, f64, double)       \
  F(zeta, f32, float)         \
  F(zeta, f64, double)        \
  F(polynomial, f32, float)   \
  F(polynomial, f64, double)  \
  F(add, f32, float)          \
  F(add, f64, double)         \
  F(log, f32, float)          \
  F(log, f64, double)         \
  F(choice, f32, float)       \
  F(choice, f64, double)

#define RDNA_PAIR_KERNELS(X)                                              \
  X(pair_gamma_f32, struct pair_args, PAIR_THREADS, rdna__pair_case)      \
  X(pair_gamma_f64, struct pair_args, PAIR_THREADS, rdna__pair_case)      \
  X(pair_zeta_f32, struct pair_args, PAIR_THREADS, rdna__pair_case)       \
  X(pair_zeta_f64, struct pair_args, PAIR_THREADS, rdna__pair_case)       \
  X(pair_polynomial_f32, struct pair_args, PAIR_THREADS, rdna__pair_case) \
  X(pair_polynomial_f64, struct pair_args, PAIR_THREADS, rdna__pair_case) \
  X(pair_add_f32, struct pair_args, PAIR_THREADS, rdna__pair_case)        \
  X(pair_add_f64, struct pair_args, PAIR_THREADS, rdna__pair_case)        \
  X(pair_log_f32, struct pair_args, PAIR_THREADS, rdna__pair_case)        \
  X(pair_log_f64, struct pair_args, PAIR_THREADS, rdna__pair_case)        \
  X(pair_choice_f32, struct pair_args, PAIR_THREADS, rdna__pair_case)     \
  X(pair_choice_f64, struct pair_args, PAIR_THREADS, rdna__pair_case)

#endif
