/* Functions that a product may apply to its result, the same bits in kernels and host twins. */
#ifndef RDNA_MATH_RDNA_ACTIVATION_H
#define RDNA_MATH_RDNA_ACTIVATION_H

#include "kernel/scalar.h"
#include "rdna/op/activation.h"

/* |activation|: an rdna_activation. */
RDNA_SCALAR float gemm_activate(uint32_t activation, float v) {
  switch (activation) {
    case RDNA_ACTIVATION_RELU:
      return v < 0 ? 0 : v;
    case RDNA_ACTIVATION_SIGMOID:
      return scalar_sigmoid(v);
    case RDNA_ACTIVATION_TANH:
      return scalar_tanh(v);
    case RDNA_ACTIVATION_SILU:
      return scalar_silu(v);
    case RDNA_ACTIVATION_GELU_TANH:
      return scalar_gelu_tanh(v);
    case RDNA_ACTIVATION_GELU_ERF:
      return scalar_gelu(v);
    default:
      return v;
  }
}

#endif
