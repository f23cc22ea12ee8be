/* A product of one row with what a network has around it, in one launch: for whoever decodes a token, whose launches
 * cost as much as their bytes. */
#ifndef RDNA_MATH_LINEAR_STEPS_H
#define RDNA_MATH_LINEAR_STEPS_H

#include <stdbool.h>

#include "rdna/op/activation.h"
#include "rdna/status.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* All zero: none. */
typedef struct rdna__linear_steps {
  const rdna_tensor *norm; /* (k), f32: x is divided by its root mean square and multiplied by these; NULL: it is not */
  double epsilon;          /* added to the mean square */
  bool add;                /* out += the product */
  bool gated; /* the weight is (2 n, k), and out = activation(x G^T) * x U^T, of which the first n rows are G; neither
                 a bias nor |add| */
  rdna_activation activation; /* of the gate */
  bool may_round;             /* as rdna__linear_rounded does */
} rdna__linear_steps;

/* Whether one launch does it: x (1, k) and out (1, n) of f32, contiguous, and rows of weights where vectors are loaded.
 */
bool rdna__linear_is_stepped(rdna_stream *stream, const rdna__linear_steps *steps, const rdna_tensor *x,
                             const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *out);
/* out = rdna_op_linear of these with the steps, which rdna__linear_is_stepped has allowed. |out| may be no operand. */
rdna_status rdna__linear_stepped(rdna_stream *stream, const rdna__linear_steps *steps, const rdna_tensor *x,
                                 const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *out);

#endif
