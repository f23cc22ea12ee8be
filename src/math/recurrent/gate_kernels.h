/* Results that are multiplied by a function of a gate: after RMS norm by SiLU, or as they are by the logistic function.
 */
#ifndef RDNA_MATH_RECURRENT_GATE_KERNELS_H
#define RDNA_MATH_RECURRENT_GATE_KERNELS_H

#include <stdint.h>

enum { GATE_THREADS = 256 };

/* Elements from a token and a head to the next. */
struct gate_strides {
  int64_t token, head;
};

/* The kernel's name ends in the type of |out|. A row is a head of a token; rms_norm_gated: a wave has one. mul_sigmoid:
 * a thread has four values of a row, or one where not all addresses are aligned. Groups go on after one another, so any
 * grid is right. */
struct gate_args {
  const float *x;      /* (tokens, heads, d) */
  const float *gate;   /* (tokens, heads, d), or with |one_gate| (tokens, heads) */
  const float *weight; /* (d) or NULL; of rms_norm_gated */
  void *out;           /* (tokens, heads, d); may be x or gate */
  struct gate_strides x_at, gate_at, out_at;
  int64_t rows; /* tokens * heads */
  int32_t heads, d;
  int32_t one_gate; /* of mul_sigmoid */
  float epsilon;    /* of rms_norm_gated */
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_GATE_KERNELS(X)                                              \
  X(rms_norm_gated_f32, struct gate_args, GATE_THREADS, rdna__gate_case)  \
  X(rms_norm_gated_f16, struct gate_args, GATE_THREADS, rdna__gate_case)  \
  X(rms_norm_gated_bf16, struct gate_args, GATE_THREADS, rdna__gate_case) \
  X(mul_sigmoid_f32, struct gate_args, GATE_THREADS, rdna__gate_case)     \
  X(mul_sigmoid_f16, struct gate_args, GATE_THREADS, rdna__gate_case)     \
  X(mul_sigmoid_bf16, struct gate_args, GATE_THREADS, rdna__gate_case)

#endif
