/* Functions that a product may apply to its result, the same bits in kernels and host twins. */
#ifndef RDNA_MATH_GEMM_ACTIVATION_H
#define RDNA_MATH_GEMM_ACTIVATION_H

#include "kernel/scalar.h"

enum {
  GEMM_ACTIVATION_NONE,
  GEMM_ACTIVATION_RELU, /* a NaN stays a NaN */
  GEMM_ACTIVATION_SIGMOID,
  GEMM_ACTIVATION_TANH,
  GEMM_ACTIVATION_SILU,
  GEMM_ACTIVATION_GELU_TANH,
  GEMM_ACTIVATION_GELU_ERF
};

RDNA_SCALAR float gemm_activate(uint32_t activation, float v) {
  switch (activation) {
    case GEMM_ACTIVATION_RELU:
      return v < 0 ? 0 : v;
    case GEMM_ACTIVATION_SIGMOID:
      return scalar_sigmoid(v);
    case GEMM_ACTIVATION_TANH:
      return scalar_tanh(v);
    case GEMM_ACTIVATION_SILU:
      return scalar_silu(v);
    case GEMM_ACTIVATION_GELU_TANH:
      return scalar_gelu_tanh(v);
    case GEMM_ACTIVATION_GELU_ERF:
      return scalar_gelu(v);
    default:
      return v;
  }
}

#endif
