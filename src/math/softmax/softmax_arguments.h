/* Rows of the operators of softmax.h for arguments_test.c. */
#ifndef RDNA_MATH_SOFTMAX_SOFTMAX_ARGUMENTS_H
#define RDNA_MATH_SOFTMAX_SOFTMAX_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define DIM_OF_SOFTMAX (int)number("dim", 0, "1 -1 -2", "2 -3")
#define ALONG(name, strides) \
  rdna_op_##name(stream, in("x", MAIN, strides, SHAPE(M, N)), DIM_OF_SOFTMAX, 1, out("out", MAIN, strides, SHAPE(M, N)))
OPERATOR(softmax, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "out=x") { return ALONG(softmax, 0); }
OPERATOR(softmax, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "out=x") {
  return ALONG(softmax, STRIDED);
}
OPERATOR(log_softmax, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "out=x") {
  return ALONG(log_softmax, 0);
}
OPERATOR(log_softmax, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "out=x") {
  return ALONG(log_softmax, STRIDED);
}
#define BACK_ALONG(name, strides)                                                                       \
  rdna_op_##name(stream, in("dout", MAIN, strides, SHAPE(M, N)), in("out", MAIN, strides, SHAPE(M, N)), \
                 DIM_OF_SOFTMAX, 1, out("dx", MAIN, strides, SHAPE(M, N)))
OPERATOR(softmax_backward, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(softmax_backward, 0);
}
OPERATOR(softmax_backward, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(softmax_backward, STRIDED);
}
OPERATOR(log_softmax_backward, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(log_softmax_backward, 0);
}
OPERATOR(log_softmax_backward, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(log_softmax_backward, STRIDED);
}

#endif
