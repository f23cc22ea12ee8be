/* Device code: the norm before a product with one row of A, and the gate behind it. Each work-group squares the row
 * itself, as it reads all of it anyway. The root is known only once all of the row was read, and multiplies sums. */
#ifndef RDNA_MATH_GEMV_STEPS_H
#define RDNA_MATH_GEMV_STEPS_H

#include "kernel/prelude.h"
#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemv_kernels.h"

/* Multiplies 4 values |v| of A by the norm's from |weight| on, and adds their squares to |squares|. */
RDNA_DEVICE float4 gemv_weigh(float4 v, const float *weight, float &squares) {
  float4 w = load_f32x4(weight);
#pragma unroll
  for (int i = 0; i < 4; ++i) squares = fma_f32(v[i], v[i], squares);
  return v * w;
}
/* What sums are multiplied by, from the sum of all squares. */
RDNA_DEVICE float gemv_norm_scale(const struct gemv_steps &steps, int k, float squares) {
  return 1.0f / sqrt_f32(squares / (float)k + steps.epsilon);
}

#endif
