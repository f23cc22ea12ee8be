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

#endif
