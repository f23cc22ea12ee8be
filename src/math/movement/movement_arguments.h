/* Rows of the operators of movement.h for arguments_test.c. */
#ifndef RDNA_MATH_MOVEMENT_MOVEMENT_ARGUMENTS_H
#define RDNA_MATH_MOVEMENT_MOVEMENT_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(copy, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_copy(stream, in("x", MAIN_OR(PLAIN), STRIDED | FEWER_DIMS, SHAPE(M, N)),
                      out("out", MAIN_OR(PLAIN), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(fill, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_fill(stream, two, out("out", MAIN_OR(PLAIN), ANY_PLACES, SHAPE(M, N)));
}
OPERATOR(arange, plain, .types = PLAIN, .empty = "N") {
  return rdna_op_arange(stream, two, two, out("out", MAIN_OR(PLAIN), STRIDED | FREE, SHAPE(N)));
}
OPERATOR(cat, plain, .types = PLAIN, .empty = "MN") {
  const rdna_tensor *inputs[] = {in("inputs[0]", MAIN, STRIDED, SHAPE(M, N)),
                                 in("inputs[1]", MAIN, STRIDED, SHAPE(2, N))};
  return rdna_op_cat(stream, given("inputs", inputs), (int)number("count", 2, "", "-1"),
                     (int)number("dim", 0, "-2", "2 -3"), out("out", MAIN, STRIDED, SHAPE(M + 2, N)));
}
OPERATOR(flip, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_flip(stream, in("x", MAIN, STRIDED, SHAPE(M, N)), (uint32_t)number("dims", 1, "0 3", "4"),
                      out("out", MAIN, STRIDED, SHAPE(M, N)));
}
OPERATOR(pad, constant, .types = PLAIN, .empty = "MN") {
  static const int64_t before[] = {1, -1};
  return rdna_op_pad(stream, (rdna_pad_mode)number("mode", RDNA_PAD_MODE_CONSTANT, "", "-1 4"),
                     in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), given("before", before), two,
                     out("out", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)));
}
OPERATOR(pad, reflect, .types = PLAIN) {
  const int64_t before[] = {(int64_t)number("before", 2, "", "3 -1 -10"), 0};
  return rdna_op_pad(stream, RDNA_PAD_MODE_REFLECT, in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), before, two,
                     out("out", MAIN, STRIDED | FREE_ALL, SHAPE(M + 2, N)));
}
OPERATOR(pad, circular, .types = PLAIN) {
  const int64_t before[] = {(int64_t)number("before", 2, "3 -1", "4 -10"), 0};
  return rdna_op_pad(stream, RDNA_PAD_MODE_CIRCULAR, in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), before, two,
                     out("out", MAIN, STRIDED | FREE_ALL, SHAPE(M + 2, N)));
}
OPERATOR(triangle, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_triangle(stream, in("x", MAIN, STRIDED, SHAPE(M, N)), true, 0, out("out", MAIN, STRIDED, SHAPE(M, N)));
}
OPERATOR(triangle, of_a_row, .types = PLAIN) {
  return rdna_op_triangle(stream, in("x", MAIN, STRIDED, SHAPE(1, M, N)), true, 0,
                          out("out", MAIN, STRIDED, SHAPE(1, M, N)));
}

#endif
