/* Rows of the operators of sample.h for arguments_test.c. */
#ifndef RDNA_MATH_SAMPLE_SAMPLE_ARGUMENTS_H
#define RDNA_MATH_SAMPLE_SAMPLE_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define SAMPLE_HOW                                                           \
  (rdna_sample_mode) number("mode", RDNA_SAMPLE_MODE_LINEAR, "1 2", "-1 3"), \
      (rdna_sample_padding)number("padding", 0, "1 2", "-1 3"), (rdna_sample_units)number("units", 0, "1 2", "-1 3")
#define SAMPLE_X MAIN, STRIDED | FREE << 2 | FREE << 3, SHAPE(M, N, 3, 4)
#define SAMPLE_OUT MAIN, STRIDED, SHAPE(M, N, 5, 6)
#define SAMPLE_PLACES MAIN, STRIDED, SHAPE(M, 5, 6, 2)
OPERATOR(sample, plain, .types = FLOATS, .besides = F64, .empty = "MN") {
  return rdna_op_sample(stream, SAMPLE_HOW, in("x", SAMPLE_X),
                        in("grid", (type){MAIN_TYPE, 0, F32}, STRIDED, SHAPE(M, 5, 6, 2)), out("out", SAMPLE_OUT));
}
OPERATOR(sample, double, .types = F64, .besides = FLOATS, .empty = "MN") {
  return rdna_op_sample(stream, SAMPLE_HOW, in("x", SAMPLE_X), in("grid", SAMPLE_PLACES), out("out", SAMPLE_OUT));
}
OPERATOR(sample_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_sample_backward(stream, SAMPLE_HOW, in("dout", SAMPLE_OUT), in("x", MAIN, STRIDED, SHAPE(M, N, 3, 4)),
                                 in("grid", SAMPLE_PLACES), out("dx", MAIN, STRIDED | OPTIONAL, SHAPE(M, N, 3, 4)),
                                 out("dgrid", MAIN, STRIDED | OPTIONAL, SHAPE(M, 5, 6, 2)));
}

#endif
