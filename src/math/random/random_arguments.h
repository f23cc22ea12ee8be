/* Rows of the operators of random.h for arguments_test.c. */
#ifndef RDNA_MATH_RANDOM_RANDOM_ARGUMENTS_H
#define RDNA_MATH_RANDOM_RANDOM_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define DRAWN out("out", MAIN_OR(FLOATS), MORE_DIMS | FEWER_DIMS | FREE_ALL, SHAPE(M, N))
OPERATOR(random_uniform, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_random_uniform(stream, 1, 2, 0, (float)number("high parameters", 1, "", "-1 nan inf"), DRAWN);
}
OPERATOR(random_normal, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_random_normal(stream, 1, 2, 0, (float)number("deviation", 1, "0", "-1 nan"), DRAWN);
}
OPERATOR(random_bernoulli, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_random_bernoulli(stream, 1, 2, (float)number("probability", 0.5, "0 1", "-0.1 1.1 nan"), DRAWN);
}
OPERATOR(random_exponential, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_random_exponential(stream, 1, 2, (float)number("rate", 1, "", "0 -1 nan"), DRAWN);
}
OPERATOR(random_integers, plain, .types = INDICES, .empty = "MN") {
  return rdna_op_random_integers(stream, 1, 2, (int64_t)number("low", 0, "4", "5 6"), 5,
                                 out("out", MAIN_OR(INDICES), MORE_DIMS | FEWER_DIMS | FREE_ALL, SHAPE(M, N)));
}
OPERATOR(random_integers, i32, .types = BIT(RDNA_I32), .besides = BIT(RDNA_I64)) {
  return rdna_op_random_integers(stream, 1, 2, (int64_t)number("low", 0, "-2147483648", "-2147483649"),
                                 (int64_t)number("high", 5, "2147483648", "2147483649"),
                                 out("out", MAIN_OR(INDICES), MORE_DIMS | FEWER_DIMS | FREE_ALL, SHAPE(M, N)));
}
#define PROBABILITY (float)number("probability", 0.5, "0 1", "-0.1 1.1 nan")
OPERATOR(dropout, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_dropout(stream, 1, 2, PROBABILITY, in("x", MAIN, 0, SHAPE(M, N)), out("out", MAIN, 0, SHAPE(M, N)),
                         out("mask", ANY(RDNA_U8, BYTES), 0, SHAPE(M, N)));
}
OPERATOR(dropout_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout") {
  return rdna_op_dropout_backward(stream, PROBABILITY, in("dout", MAIN, 0, SHAPE(M, N)),
                                  in("mask", ANY(RDNA_U8, BYTES), 0, SHAPE(M, N)), out("dx", MAIN, 0, SHAPE(M, N)));
}

#endif
