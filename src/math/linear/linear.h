/* What the files of linear share. */
#ifndef RDNA_MATH_LINEAR_H
#define RDNA_MATH_LINEAR_H

#include "base/status.h"
#include "math/gemm/gemm_kernels.h"
#include "rdna/op/linear.h"

/* A checked call; |args| is the product of |x| with |weight| as gemm.h has it, without m, n and k. */
typedef struct rdna__linear {
  rdna_stream *stream;
  const char *op_name;
  const rdna_tensor *x, *weight, *bias, *out;
  struct gemm_args args;
  int64_t m, n, k;
} rdna__linear;

/* x of f16 or bf16 times a weight of another type. */
rdna_status rdna__linear_halves(const rdna__linear *of);

#endif
