/* Rows of the operators of complex.h for arguments_test.c. */
#ifndef RDNA_MATH_COMPLEX_COMPLEX_ARGUMENTS_H
#define RDNA_MATH_COMPLEX_COMPLEX_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(complex_map, plain, .types = F32 | F64, .empty = "MN", .same = "out=x") {
  rdna_complex_map op = (rdna_complex_map)number("op", RDNA_COMPLEX_EXP, "0", "-1 13");
  return rdna_op_complex_map(stream, op, in("x", MAIN, FEWER_DIMS, SHAPE(M, N, 2)),
                             out("out", MAIN, MORE_DIMS, SHAPE(M, N, 2)));
}
OPERATOR(complex_zip, plain, .types = F32 | F64, .empty = "MN", .same = "out=a out=b") {
  rdna_complex_zip op = (rdna_complex_zip)number("op", RDNA_COMPLEX_MUL, "0 5", "-1 6");
  return rdna_op_complex_zip(stream, op, in("a", MAIN, FEWER_DIMS, SHAPE(M, N, 2)),
                             in("b", MAIN, FEWER_DIMS, SHAPE(M, N, 2)), (rdna_complex){1, 2},
                             out("out", MAIN, MORE_DIMS, SHAPE(M, N, 2)));
}
OPERATOR(complex_zip_scalar, plain, .types = F32 | F64, .empty = "MN", .same = "out=x") {
  rdna_complex_zip op = (rdna_complex_zip)number("op", RDNA_COMPLEX_MUL, "0 5", "-1 6");
  bool first = number("scalar_first", 0, "1", "") != 0;
  return rdna_op_complex_zip_scalar(stream, op, in("x", MAIN, FEWER_DIMS, SHAPE(M, N, 2)), (rdna_complex){3, 4}, first,
                                    (rdna_complex){1, 2}, out("out", MAIN, MORE_DIMS, SHAPE(M, N, 2)));
}
OPERATOR(complex_measure, plain, .types = F32 | F64, .empty = "MN") {
  rdna_complex_measure op = (rdna_complex_measure)number("op", RDNA_COMPLEX_ABS, "1", "-1 2");
  return rdna_op_complex_measure(stream, op, in("x", MAIN, FEWER_DIMS, SHAPE(M, N, 2)),
                                 out("out", MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(complex_polar, plain, .types = F32 | F64, .empty = "MN") {
  return rdna_op_complex_polar(stream, in("abs", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)),
                               in("angle", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)),
                               out("out", MAIN, MORE_DIMS, SHAPE(M, N, 2)));
}
OPERATOR(complex_gemm, plain, .types = F32 | F64, .empty = "BMNK") {
  return rdna_op_complex_gemm(stream, (rdna_complex){1, 2}, in("a", MAIN, 0, SHAPE(B, M, K, 2)),
                              number("conjugate_a", 0, "1", "") != 0, in("b", MAIN, 0, SHAPE(B, K, N, 2)),
                              number("conjugate_b", 1, "0", "") != 0, number("add", 0, "1", "") != 0,
                              out("c", MAIN, 0, SHAPE(B, M, N, 2)));
}

#endif
