/* The first products of experts whose gate multiplies, in one launch: for whoever decodes a token. */
#ifndef RDNA_MATH_MOE_GATED_H
#define RDNA_MATH_MOE_GATED_H

#include <stdbool.h>

#include "rdna/op/activation.h"
#include "rdna/status.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* out (tokens, top, n) = activation(x G^T) * (x U^T), with the weights |gate| and |up| (experts, n, k) of the experts
 * that |indices| (tokens, top) chose; x (tokens, k) and |out| are f32 and contiguous. Weights of one type of blocks,
 * whose experts lie one stride apart in both, which may be more than n rows; and few slots for each expert. */
bool rdna__moe_is_gated(const rdna_tensor *x, const rdna_tensor *gate, const rdna_tensor *up,
                        const rdna_tensor *indices);
/* RDNA_UNSUPPORTED where that is false. |may_round| as in rdna_moe_product. */
rdna_status rdna__moe_gated(rdna_stream *stream, rdna_activation activation, bool may_round, const rdna_tensor *x,
                            const rdna_tensor *gate, const rdna_tensor *up, const rdna_tensor *indices,
                            const rdna_tensor *out);

#endif
