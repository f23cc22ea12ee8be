/* The row of the operator of special.h for arguments_test.c. */
#ifndef RDNA_MATH_SPECIAL_SPECIAL_ARGUMENTS_H
#define RDNA_MATH_SPECIAL_SPECIAL_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(special, plain, .types = F32 | F64, .empty = "MN", .same = "out=x") {
  rdna_special function = (rdna_special)number("function", RDNA_SPECIAL_POLYGAMMA, "5", "-1 10");
  int order = (int)number("order", 1, "0 100", "-1 101");
  return rdna_op_special(stream, function, order, in("x", MAIN, 0, SHAPE(M, N)), out("out", MAIN, 0, SHAPE(M, N)));
}

#endif
