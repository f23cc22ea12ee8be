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

/* rdna_op_linear, or rdna_op_linear_add, where the result may be that of rounded values: on the host x of f32 that
 * meets weights in blocks becomes whole numbers of 16 bits with one unit for 32 neighbours: each is off by at most
 * 2^-15.98 of the largest of them, or of 1e-30 if that is more, and products of random values by a relative squared
 * error of less than 1e-9. A row with an infinity or a NaN may give NaN throughout; it changes no other. On GPUs
 * nothing is rounded. */
rdna_status rdna__linear_rounded(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                 const rdna_tensor *bias, const rdna_tensor *out, bool add);

#endif
