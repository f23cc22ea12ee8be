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

#define PARAMETER(name) in(name, MAIN, 0, SHAPE(M, N))
#define SAMPLE out("out", MAIN, 0, SHAPE(M, N))
OPERATOR(random_gamma, plain, .types = REALS, .empty = "MN", .same = "out=shape") {
  return rdna_op_random_gamma(stream, 1, 2, PARAMETER("shape"), SAMPLE);
}
OPERATOR(random_poisson, plain, .types = REALS, .empty = "MN", .same = "out=rate") {
  return rdna_op_random_poisson(stream, 1, 2, PARAMETER("rate"), SAMPLE);
}
OPERATOR(random_binomial, plain, .types = REALS, .empty = "MN", .same = "out=count out=probability") {
  return rdna_op_random_binomial(stream, 1, 2, PARAMETER("count"), PARAMETER("probability"), SAMPLE);
}
OPERATOR(random_dirichlet, plain, .types = REALS, .empty = "MN", .same = "out=concentration") {
  return rdna_op_random_dirichlet(stream, 1, 2, PARAMETER("concentration"), SAMPLE);
}
OPERATOR(random_gamma_gradient, plain, .types = REALS, .empty = "MN", .same = "out=shape out=sample") {
  return rdna_op_random_gamma_gradient(stream, PARAMETER("shape"), PARAMETER("sample"), SAMPLE);
}
OPERATOR(random_dirichlet_gradient, plain, .types = REALS, .empty = "MN",
         .same = "out=sample out=concentration out=total") {
  return rdna_op_random_dirichlet_gradient(stream, PARAMETER("sample"), PARAMETER("concentration"), PARAMETER("total"),
                                           SAMPLE);
}

#endif
