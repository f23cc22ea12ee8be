/* Rows of the operators of gemm.h for arguments_test.c. */
#ifndef RDNA_MATH_GEMM_GEMM_ARGUMENTS_H
#define RDNA_MATH_GEMM_GEMM_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(gemm, plain, .types = REALS, .empty = "MNK") {
  return rdna_op_gemm(stream, 1, in("a", MAIN, STRIDED, SHAPE(M, K)), in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)),
                      0, in("bias", MAIN, OPTIONAL, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm, batched, .types = FLOATS, .besides = F64, .empty = "MNKB") {
  return rdna_op_gemm(stream, 1, in("a", MAIN, STRIDED, SHAPE(B, M, K)),
                      in("b", FIRST_OR(HALVES), STRIDED, SHAPE(B, K, N)), 1, NULL,
                      out("c", MAIN_OR(F32), 0, SHAPE(B, M, N)));
}
OPERATOR(gemm_epilogue, plain, .types = FLOATS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)), .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_epilogue(stream, given_options("epilogue", &epilogue), in("a", MAIN, STRIDED, SHAPE(M, K)),
                               in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_epilogue, bias_per_row, .types = REALS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(M)), .bias_per_row = 1};
  return rdna_op_gemm_epilogue(stream, &epilogue, in("a", MAIN, STRIDED, SHAPE(M, K)),
                               in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)), out("c", MAIN, 0, SHAPE(M, N)));
}
#define A_I8 in("a", ONLY(RDNA_I8), STRIDED, SHAPE(M, K))
#define B_I8 in("b", ONLY(RDNA_I8), STRIDED, SHAPE(K, N))
OPERATOR(gemm_i8, floats, .types = FLOATS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)), .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_i8(stream, &epilogue, A_I8, in("scale_a", ONLY(RDNA_F32), 0, SHAPE(M)), B_I8,
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_i8, one_scale, .types = FLOATS) {
  return rdna_op_gemm_i8(stream, NULL, A_I8, in("scale_a", ONLY(RDNA_F32), 0, SHAPE(1)), B_I8,
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(1)), out("c", MAIN_OR(FLOATS), 0, SHAPE(M, N)));
}
OPERATOR(gemm_i8, integers, .empty = "MNK") {
  return rdna_op_gemm_i8(stream, NULL, A_I8, NULL, B_I8, NULL, out("c", ONLY(RDNA_I32), 0, SHAPE(M, N)));
}

#define A_F8(types) in("a", types, STRIDED, SHAPE(M, K))
#define B_F8(types) in("b", types, STRIDED, SHAPE(K, N))
#define E4M3 ANY(RDNA_F8_E4M3FN, BIT(RDNA_F8_E5M2)) /* one of the two; not both */
OPERATOR(gemm_f8, epilogue, .types = FLOATS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)), .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_f8(stream, &epilogue, A_F8(E4M3), in("scale_a", ONLY(RDNA_F32), 0, SHAPE(M)), B_F8(E4M3),
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_f8, one_scale, .types = FLOATS) {
  return rdna_op_gemm_f8(stream, NULL, A_F8(ANY(RDNA_F8_E5M2FNUZ, BIT(RDNA_F8_E4M3FNUZ))), in("scale_a", ONLY(RDNA_F32), 0, SHAPE(1)),
                         B_F8(ONLY(RDNA_F8_E4M3FNUZ)), in("scale_b", ONLY(RDNA_F32), 0, SHAPE(1)),
                         out("c", MAIN_OR(FLOATS), 0, SHAPE(M, N)));
}

OPERATOR(gemm_grouped, rows, .types = FLOATS, .empty = "MNKB") {
  return rdna_op_gemm_grouped(stream, in("a", MAIN, 0, SHAPE(M, K)), in("b", MAIN, 0, SHAPE(B, K, N)),
                              in("ends", ONLY(RDNA_I32), 0, SHAPE(B)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_grouped, columns, .types = FLOATS, .empty = "MNKB") {
  return rdna_op_gemm_grouped(stream, in("a", MAIN, 0, SHAPE(B, M, K)), in("b", MAIN, 0, SHAPE(K, N)),
                              in("ends", ONLY(RDNA_I32), 0, SHAPE(B)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_grouped, sums, .types = FLOATS, .empty = "MNKB") {
  return rdna_op_gemm_grouped(stream, in("a", MAIN, 0, SHAPE(M, K)), in("b", MAIN, 0, SHAPE(K, N)),
                              in("ends", ONLY(RDNA_I32), 0, SHAPE(B)), out("c", MAIN, 0, SHAPE(B, M, N)));
}

#endif
