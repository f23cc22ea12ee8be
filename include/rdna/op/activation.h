/* Functions that products and convolutions may apply to their results before they are stored. */
#ifndef RDNA_OP_ACTIVATION_H
#define RDNA_OP_ACTIVATION_H

typedef enum rdna_activation {
  RDNA_ACTIVATION_NONE = 0,
  RDNA_ACTIVATION_RELU, /* a NaN stays a NaN */
  RDNA_ACTIVATION_SIGMOID,
  RDNA_ACTIVATION_TANH,
  RDNA_ACTIVATION_SILU,      /* v * sigmoid(v) */
  RDNA_ACTIVATION_GELU_TANH, /* v/2 (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))) */
  RDNA_ACTIVATION_GELU_ERF,  /* v/2 (1 + erf(v / sqrt(2))) */
  RDNA_ACTIVATION_COUNT
} rdna_activation;

#endif
