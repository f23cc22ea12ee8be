/* Rows of the operators of quant.h for arguments_test.c. */
#ifndef RDNA_MATH_QUANT_QUANT_ARGUMENTS_H
#define RDNA_MATH_QUANT_QUANT_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(dequantize, plain, .types = QUANTIZED, .empty = "MK") {
  return rdna_op_dequantize(stream, in("blocks", MAIN_OR(QUANTIZED), 0, SHAPE(M, K)),
                            out("out", ANY(RDNA_F32, FLOATS), ALIGNED, SHAPE(M, K)));
}
OPERATOR(quantize, plain, .types = QUANTIZED, .empty = "MK") {
  return rdna_op_quantize(stream, in("x", ONLY(RDNA_F32), ALIGNED, SHAPE(M, K)),
                          out("blocks", MAIN_OR(QUANTIZED), 0, SHAPE(M, K)));
}
#define WEIGHTED (QUANTIZED - BIT(RDNA_Q8_0))
OPERATOR(quantize_weighted, plain, .types = WEIGHTED, .empty = "M") {
  return rdna_op_quantize_weighted(stream, in("x", ONLY(RDNA_F32), ALIGNED, SHAPE(M, K)),
                                   in("weights", ONLY(RDNA_F32), ALIGNED, SHAPE(K)),
                                   out("blocks", MAIN_OR(WEIGHTED), 0, SHAPE(M, K)));
}
/* Weights (N, K) in groups of 128, to be read and to be written. */
#define SCALES in("scales", ANY(RDNA_F16, FLOATS), STRIDED, SHAPE(N, K / 128))
#define WEIGHTS(type, codes)                                                                                        \
  given_options("weights",                                                                                          \
                &(rdna_quant_groups){RDNA_QUANT_GROUPS_INIT, in("codes", ONLY(type), ALIGNED, SHAPE(N, K / codes)), \
                                     SCALES, in("zeros", ONLY(type), OPTIONAL, SHAPE(N, K / 128))})
#define WRITTEN_WEIGHTS(type, codes)                                                                                 \
  given_options("weights",                                                                                           \
                &(rdna_quant_groups){RDNA_QUANT_GROUPS_INIT, out("codes", ONLY(type), ALIGNED, SHAPE(N, K / codes)), \
                                     out("scales", ONLY(RDNA_F16), 0, SHAPE(N, K / 128)),                            \
                                     out("zeros", ONLY(type), OPTIONAL, SHAPE(N, K / 128))})
#define DEQUANTIZED out("out", ANY(RDNA_F32, FLOATS), ALIGNED, SHAPE(N, K))
OPERATOR(dequantize_groups, bytes, .empty = "N") {
  return rdna_op_dequantize_groups(stream, WEIGHTS(RDNA_I8, 1), DEQUANTIZED);
}
OPERATOR(dequantize_groups, nibbles, .empty = "N") {
  return rdna_op_dequantize_groups(stream, WEIGHTS(RDNA_U8, 2), DEQUANTIZED);
}
#define WITHOUT_ZEROS(kind, scales) \
  &(rdna_quant_groups) { RDNA_QUANT_GROUPS_INIT, kind("codes", ONLY(RDNA_I8), ALIGNED, SHAPE(N, K)), scales, NULL }
OPERATOR(dequantize_groups, without_zeros, .types = F32, .empty = "N") {
  return rdna_op_dequantize_groups(stream, WITHOUT_ZEROS(in, SCALES), DEQUANTIZED);
}
#define QUANTIZED_X in("x", ONLY(RDNA_F32), 0, SHAPE(N, K))
OPERATOR(quantize_groups, bytes, .empty = "N") {
  return rdna_op_quantize_groups(stream, QUANTIZED_X, WRITTEN_WEIGHTS(RDNA_I8, 1));
}
OPERATOR(quantize_groups, nibbles, .empty = "N") {
  return rdna_op_quantize_groups(stream, QUANTIZED_X, WRITTEN_WEIGHTS(RDNA_U8, 2));
}
OPERATOR(quantize_groups, without_zeros, .types = F32, .empty = "N") {
  return rdna_op_quantize_groups(stream, QUANTIZED_X,
                                 WITHOUT_ZEROS(out, out("scales", ONLY(RDNA_F16), 0, SHAPE(N, K / 128))));
}
#define LINEAR_GROUPS(type, codes)                                                                   \
  rdna_op_linear_quant_groups(stream, in("x", ONLY(RDNA_F32), 0, SHAPE(M, K)), WEIGHTS(type, codes), \
                              in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),                        \
                              out("out", ONLY(RDNA_F32), 0, SHAPE(M, N)))
OPERATOR(linear_quant_groups, bytes, .empty = "MN") { return LINEAR_GROUPS(RDNA_I8, 1); }
OPERATOR(linear_quant_groups, nibbles, .empty = "MN") { return LINEAR_GROUPS(RDNA_U8, 2); }

#endif
