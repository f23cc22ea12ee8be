/* The argument struct of a chain's own kernel, for the host and, as text, for the GPU. */
#ifndef RDNA_MATH_FUSED_CHAIN_ARGS_H
#define RDNA_MATH_FUSED_CHAIN_ARGS_H

#include <stdint.h>

enum { CHAIN_THREADS = 256, CHAIN_STEPS = 16, CHAIN_INPUTS = 6 };

/* n / size is n * magic >> shift, as in struct strided_shape. */
struct chain_divisor {
  uint32_t size, magic, shift;
};
struct chain_input {
  const void *data;
  struct chain_divisor inner, size; /* value i of the output belongs to value i / inner % size of the input */
};
struct chain_args {
  void *out;
  struct chain_input input[CHAIN_INPUTS];
  float p[CHAIN_STEPS], q[CHAIN_STEPS];
  uint32_t count; /* values of |out| */
};

#endif
