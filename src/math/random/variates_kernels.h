/* Samples whose distribution tensors give, and their gradients: out[i] = f(first[i], second[i], third[i]), computed in
 * f64. */
#ifndef RDNA_MATH_RANDOM_VARIATES_KERNELS_H
#define RDNA_MATH_RANDOM_VARIATES_KERNELS_H

#include <stdint.h>

enum { VARIATES_THREADS = 256 };

/* Grid x: ceil(count / VARIATES_THREADS) groups. A kernel reads as many of the tensors as it has arguments. */
struct variates_args {
  const void *first, *second, *third; /* (count) of |dtype| */
  void *out;                          /* (count) of |out_dtype| */
  uint64_t count;
  uint64_t seed, offset;     /* of samples: value i has the counter offset + i */
  double least;              /* of gamma: no sample is below it */
  uint32_t dtype, out_dtype; /* rdna_dtype: f32, f16, bf16 or f64 */
  uint32_t logarithm;        /* of gamma: the samples' logarithms instead */
};

/* F(kernel, arguments): the kernel's value is variates_<kernel>_value(args, i, first, …). */
#define RDNA_VARIATES_FUNCTIONS(F) \
  F(gamma, 1)                      \
  F(poisson, 1)                    \
  F(binomial, 2)                   \
  F(gamma_gradient, 2)             \
  F(dirichlet_gradient, 3)

#define RDNA_VARIATES_KERNELS(X)                                                          \
  X(variates_gamma, struct variates_args, VARIATES_THREADS, rdna__variates_case)          \
  X(variates_poisson, struct variates_args, VARIATES_THREADS, rdna__variates_case)        \
  X(variates_binomial, struct variates_args, VARIATES_THREADS, rdna__variates_case)       \
  X(variates_gamma_gradient, struct variates_args, VARIATES_THREADS, rdna__variates_case) \
  X(variates_dirichlet_gradient, struct variates_args, VARIATES_THREADS, rdna__variates_case)

#endif
