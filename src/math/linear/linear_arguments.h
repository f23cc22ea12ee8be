/* Rows of the operators of linear.h for arguments_test.c. */
#ifndef RDNA_MATH_LINEAR_LINEAR_ARGUMENTS_H
#define RDNA_MATH_LINEAR_LINEAR_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define LINEAR(x_type, w_type, out_type)                                         \
  stream, in("x", x_type, 0, SHAPE(M, K)), in("weight", w_type, 0, SHAPE(N, K)), \
      in("bias", out_type, OPTIONAL, SHAPE(N)), out("out", out_type, 0, SHAPE(M, N))
OPERATOR(linear, f32, .types = F32, .besides = HALVES, .empty = "MNK") {
  return rdna_op_linear(LINEAR(MAIN_OR(FLOATS), ANY(RDNA_F32, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear, halves, .types = HALVES, .besides = F32, .empty = "MNK") {
  return rdna_op_linear(LINEAR(MAIN, MAIN_OR(FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear, halves_and_blocks, .types = HALVES, .besides = F32, .empty = "MNK") {
  return rdna_op_linear(LINEAR(MAIN, ANY(RDNA_Q4_0, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear, blocks, .types = QUANTIZED, .besides = FLOATS, .empty = "MN") {
  return rdna_op_linear(LINEAR(ANY(RDNA_F32, FLOATS), MAIN_OR(FLOATS | QUANTIZED), ONLY(RDNA_F32)));
}
OPERATOR(linear_add, f32, .types = F32, .besides = HALVES, .empty = "MNK") {
  return rdna_op_linear_add(LINEAR(MAIN_OR(FLOATS), ANY(RDNA_F32, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear_add, halves, .types = HALVES, .besides = F32, .empty = "MNK") {
  return rdna_op_linear_add(LINEAR(MAIN, MAIN_OR(FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear_add, halves_and_blocks, .types = HALVES, .besides = F32, .empty = "MNK") {
  return rdna_op_linear_add(LINEAR(MAIN, ANY(RDNA_Q4_0, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear_add, blocks, .types = QUANTIZED, .besides = FLOATS, .empty = "MN") {
  return rdna_op_linear_add(LINEAR(ANY(RDNA_F32, FLOATS), MAIN_OR(FLOATS | QUANTIZED), ONLY(RDNA_F32)));
}

#endif
