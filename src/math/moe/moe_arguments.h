/* Rows of the operators of moe.h for arguments_test.c. */
#ifndef RDNA_MATH_MOE_MOE_ARGUMENTS_H
#define RDNA_MATH_MOE_MOE_ARGUMENTS_H

#include "math/common/test/arguments.h"

/* Tokens M, N = 8 experts in 4 groups, of which 2 are chosen. */
OPERATOR(moe_route, plain, .empty = "M") {
  const rdna_moe_routing options = {RDNA_MOE_ROUTING_INIT,
                                    .score = (rdna_moe_score)number("score", 0, "1 2", "-1 3"),
                                    .groups = (int32_t)number("groups", 4, "0 1 2 8", "-1 3 16"),
                                    .groups_kept = (int32_t)number("groups_kept", 2, "1 4", "0 -1 5"),
                                    .group_best = (int32_t)number("group_best", 1, "2", "0 3"),
                                    .scale = 1,
                                    .bias = in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(N))};
  return rdna_op_moe_route(stream, given_options("options", &options), in("logits", ONLY(RDNA_F32), 0, SHAPE(M, N)),
                           out("indices", ONLY(RDNA_I32), 0, SHAPE(M, 2)),
                           out("weights", ONLY(RDNA_F32), 0, SHAPE(M, 2)));
}

/* 5 experts, N by K, of which each of M tokens has 2. */
static rdna_status moe_linear(type of_x, type weights, bool with_shares, bool x_of_slots) {
  const rdna_moe_product options = {RDNA_MOE_PRODUCT_INIT, .bias = in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(5, N)),
                                    .add = with_shares && number("add", 1, "0", "") != 0,
                                    .shares = with_shares ? in("shares", ONLY(RDNA_F32), 0, SHAPE(M, 2)) : NULL};
  const rdna_tensor *x = x_of_slots ? in("x", of_x, 0, SHAPE(M, 2, K)) : in("x", of_x, 0, SHAPE(M, K));
  return rdna_op_moe_linear(
      stream, given_options("options", &options), x, in("weights", weights, 0, SHAPE(5, N, K)),
      in("indices", ONLY(RDNA_I32), 0, SHAPE(M, 2)),
      with_shares ? out("out", ONLY(RDNA_F32), 0, SHAPE(M, N)) : out("out", ONLY(RDNA_F32), 0, SHAPE(M, 2, N)));
}
#define MOE_X ANY(RDNA_F32, FLOATS)
OPERATOR(moe_linear, slots, .types = FLOATS, .besides = QUANTIZED, .empty = "MN") {
  return moe_linear(MOE_X, MAIN_OR(FLOATS | QUANTIZED), false, false);
}
OPERATOR(moe_linear, blocks, .types = QUANTIZED, .besides = FLOATS, .empty = "MN") {
  return moe_linear(MOE_X, MAIN_OR(FLOATS | QUANTIZED), false, false);
}
OPERATOR(moe_linear, halves, .types = FLOATS, .besides = QUANTIZED, .empty = "MN") {
  return moe_linear(MAIN_OR(FLOATS), ANY(RDNA_Q4_0, FLOATS | QUANTIZED), false, false);
}
OPERATOR(moe_linear, shares, .types = FLOATS, .besides = QUANTIZED, .empty = "MN") {
  return moe_linear(MAIN_OR(FLOATS), ANY(RDNA_F32, FLOATS | QUANTIZED), true, true);
}
#undef MOE_X

#endif
