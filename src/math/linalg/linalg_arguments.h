/* Rows of the operators of linalg.h for arguments_test.c. */
#ifndef RDNA_MATH_LINALG_LINALG_ARGUMENTS_H
#define RDNA_MATH_LINALG_LINALG_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(cholesky, plain, .types = F32 | F64, .empty = "MB") {
  return rdna_op_cholesky(stream, false, out("a", MAIN_OR(F32 | F64), 0, SHAPE(B, M, M)),
                          out("info", ONLY(RDNA_I32), 0, SHAPE(B)));
}
OPERATOR(solve_triangular, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_solve_triangular(stream, false, false, in("a", MAIN, 0, SHAPE(B, M, M)),
                                  out("x", MAIN, FREE << 2, SHAPE(B, M, N)));
}
OPERATOR(lu, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_lu(stream, true, out("a", MAIN_OR(F32 | F64), FREE << 2, SHAPE(B, M, N)),
                    out("pivots", ONLY(RDNA_I32), 0, SHAPE(B, M < N ? M : N)),
                    out("info", ONLY(RDNA_I32), 0, SHAPE(B)));
}
OPERATOR(complex_lu, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_complex_lu(stream, true, out("a", MAIN_OR(F32 | F64), FREE << 1, SHAPE(B, N, M, 2)),
                            out("pivots", ONLY(RDNA_I32), 0, SHAPE(B, M < N ? M : N)),
                            out("info", ONLY(RDNA_I32), 0, SHAPE(B)));
}
OPERATOR(ldl, plain, .types = F32 | F64, .empty = "MB") {
  return rdna_op_ldl(stream, out("a", MAIN_OR(F32 | F64), 0, SHAPE(B, M, M)),
                     out("pivots", ONLY(RDNA_I32), 0, SHAPE(B, M)), out("info", ONLY(RDNA_I32), 0, SHAPE(B)));
}
OPERATOR(swap_rows, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_swap_rows(stream, false, in("pivots", ONLY(RDNA_I32), FREE << 1, SHAPE(B, M)),
                           out("x", MAIN_OR(F32 | F64), (FREE << 1) | (FREE << 2), SHAPE(B, 2 * M, N)));
}
OPERATOR(qr, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_qr(stream, out("a", MAIN, FREE << 2, SHAPE(B, M, N)), out("tau", MAIN, 0, SHAPE(B, M < N ? M : N)));
}
OPERATOR(reflect, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_reflect(stream, false, false, in("a", MAIN, FREE << 2, SHAPE(B, 2 * M, 2 * M)),
                         in("tau", MAIN, FREE << 1, SHAPE(B, M)), out("x", MAIN, FREE << 2, SHAPE(B, 2 * M, N)));
}
OPERATOR(orthogonalize, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_orthogonalize(stream, 0, out("a", MAIN_OR(F32 | F64), (FREE << 1) | (FREE << 2), SHAPE(B, M, N)),
                               out("turned", ONLY(RDNA_I32), FREE << 1, SHAPE(B, 4)));
}
OPERATOR(diagonalize, plain, .types = F32 | F64, .empty = "MNB") {
  return rdna_op_diagonalize(stream, out("a", MAIN, 0, SHAPE(B, M, M)),
                             out("v", MAIN, OPTIONAL | (FREE << 1), SHAPE(B, N, M)),
                             out("turned", ONLY(RDNA_I32), FREE << 1, SHAPE(B, 4)));
}
OPERATOR(eigen, plain, .types = F32 | F64, .empty = "MB") {
  return rdna_op_eigen(stream, in("a", MAIN, 0, SHAPE(B, M, M)), out("values", MAIN, 0, SHAPE(B, M, 2)),
                       out("vectors", MAIN, OPTIONAL, SHAPE(B, M, M, 2)), out("info", ONLY(RDNA_I32), 0, SHAPE(B)));
}

#endif
