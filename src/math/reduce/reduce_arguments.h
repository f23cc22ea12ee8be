/* Rows of the operators of reduce.h for arguments_test.c. */
#ifndef RDNA_MATH_REDUCE_REDUCE_ARGUMENTS_H
#define RDNA_MATH_REDUCE_REDUCE_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define REDUCED (REALS | INDICES | BYTES)
#define REDUCE_X in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N))
OPERATOR(reduce, sum, .types = FLOATS, .besides = F64 | BIT(RDNA_I64), .empty = "MN") {
  return rdna_op_reduce(stream, (rdna_reduction)number("reduction", RDNA_REDUCTION_SUM, "1 2 3 4 10 11 12", "-1 13"),
                        in("x", FIRST_OR(FLOATS), STRIDED | FREE << 1, SHAPE(M, N)),
                        (uint32_t)number("dims", 2, "", "4 6"), 0, out("out", MAIN_OR(F32), ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, f64, .types = F64, .besides = FLOATS) {
  return rdna_op_reduce(stream, RDNA_REDUCTION_MEAN, REDUCE_X, 2, 0, out("out", MAIN, ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, sum_of_integers, .types = INDICES | BYTES, .empty = "MN") {
  return rdna_op_reduce(stream, RDNA_REDUCTION_SUM, in("x", MAIN_OR(INDICES | BYTES), STRIDED | FREE << 1, SHAPE(M, N)),
                        2, 0, out("out", ONLY(RDNA_I64), ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, max, .types = REDUCED - FLOATS, .besides = FLOATS, .empty = "M", .never_empty = "N") {
  return rdna_op_reduce(stream, RDNA_REDUCTION_MAX, REDUCE_X, 2, 0, out("out", MAIN, ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, min, .types = FLOATS, .besides = REDUCED, .empty = "M", .never_empty = "N") {
  return rdna_op_reduce(stream, RDNA_REDUCTION_MIN, in("x", FIRST_OR(FLOATS), STRIDED | FREE << 1, SHAPE(M, N)), 2, 0,
                        out("out", MAIN_OR(F32), ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, argmax, .types = REDUCED, .empty = "M", .never_empty = "N") {
  return rdna_op_reduce(stream, RDNA_REDUCTION_ARGMAX, in("x", MAIN_OR(REDUCED), STRIDED | FREE << 1, SHAPE(M, N)), 2,
                        0, out("out", ANY(RDNA_I64, INDICES), ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, any, .types = REDUCED, .empty = "MN") {
  return rdna_op_reduce(stream, RDNA_REDUCTION_ANY, in("x", MAIN_OR(REDUCED), STRIDED | FREE << 1, SHAPE(M, N)), 2, 0,
                        out("out", ANY(RDNA_BOOL, BYTES), ONE_BEHIND, SHAPE(M)));
}
OPERATOR(reduce, norm, .types = FLOATS, .besides = F64, .empty = "MN") {
  return rdna_op_reduce(stream, RDNA_REDUCTION_NORM, in("x", FIRST_OR(FLOATS), STRIDED | FREE << 1, SHAPE(M, N)), 2,
                        number("parameter", 2, "0 1 1.5 inf", "-1 nan"),
                        out("out", MAIN_OR(F32), ONE_BEHIND, SHAPE(M)));
}

#endif
