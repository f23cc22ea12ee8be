/* The first products of experts whose gate multiplies, in one launch: for whoever decodes a token. */
#ifndef RDNA_MATH_MOE_GATED_H
#define RDNA_MATH_MOE_GATED_H

#include <stdbool.h>

#include "rdna/op/activation.h"
#include "rdna/status.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* What becomes of the gate g and of u, which it multiplies. */
typedef struct rdna__moe_gate {
  rdna_activation activation; /* f of f(g) u */
  float limit, slope;         /* above 0: min(g, limit) sigmoid(slope min(g, limit)) (max(min(u, limit), -limit) + 1)
                                 instead, RDNA_ZIP_SWIGLU_CLAMPED */
  const rdna_tensor *gate_bias, *up_bias; /* (experts, n), f32 and contiguous, added to g and u; both or none */
  bool may_round;                         /* as in rdna_moe_product */
  const rdna_tensor *norm; /* (k), f32: x is divided by its root mean square and multiplied by these; NULL: it is not */
  double epsilon;          /* added to the mean square */
} rdna__moe_gate;

/* out (tokens, top, n) = f(x G^T + a) * (x U^T + b), with the weights |gate| and |up| (experts, n, k) and the biases of
 * the experts that |indices| (tokens, top) chose; x (tokens, k) and |out| are f32 and contiguous. Weights of one type
 * of blocks, whose experts lie one stride apart in both, which may be more than n rows; and few slots for each expert.
 */
bool rdna__moe_is_gated(const rdna_tensor *x, const rdna_tensor *gate, const rdna_tensor *up,
                        const rdna_tensor *indices);
/* RDNA_UNSUPPORTED where that is false. */
rdna_status rdna__moe_gated(rdna_stream *stream, const rdna__moe_gate *options, const rdna_tensor *x,
                            const rdna_tensor *gate, const rdna_tensor *up, const rdna_tensor *indices,
                            const rdna_tensor *out);

#endif
