/* Rows of the operators of cast.h for arguments_test.c. */
#ifndef RDNA_MATH_CAST_CAST_ARGUMENTS_H
#define RDNA_MATH_CAST_CAST_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(cast, plain, .types = PLAIN, .besides = QUANTIZED, .empty = "MN", .same = "out=x") {
  return rdna_op_cast(stream, in("x", MAIN_OR(PLAIN), 0, SHAPE(M, N)), out("out", MAIN_OR(PLAIN), 0, SHAPE(M, N)));
}
OPERATOR(cast_saturating, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_cast_saturating(stream, in("x", MAIN_OR(FLOATS), 0, SHAPE(M, N)),
                                 out("out", ANY(RDNA_F8_E4M3FN, FLOATS8), 0, SHAPE(M, N)));
}

#endif
