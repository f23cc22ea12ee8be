/* The row of the operator of special.h for arguments_test.c. */
#ifndef RDNA_MATH_SPECIAL_SPECIAL_ARGUMENTS_H
#define RDNA_MATH_SPECIAL_SPECIAL_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(special, plain, .types = F32 | F64, .empty = "MN", .same = "out=x") {
  rdna_special function = (rdna_special)number("function", RDNA_SPECIAL_POLYGAMMA, "5", "-1 27");
  int order = (int)number("order", 1, "0 100", "-1 101");
  return rdna_op_special(stream, function, order, in("x", MAIN, 0, SHAPE(M, N)), out("out", MAIN, 0, SHAPE(M, N)));
}

OPERATOR(special_pair, plain, .types = F32 | F64, .empty = "MN", .same = "out=x out=y") {
  rdna_special_pair function = (rdna_special_pair)number("function", RDNA_SPECIAL_PAIR_CHEBYSHEV_T, "0 2 22", "-1 23");
  return rdna_op_special_pair(stream, function, in("x", MAIN, 0, SHAPE(M, N)), in("y", MAIN, 0, SHAPE(M, N)),
                              out("out", MAIN, 0, SHAPE(M, N)));
}

#endif
