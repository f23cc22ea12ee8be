/* Rows of the operators of sort.h for arguments_test.c. */
#ifndef RDNA_MATH_SORT_SORT_ARGUMENTS_H
#define RDNA_MATH_SORT_SORT_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(sort, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_sort(stream, in("x", MAIN, STRIDED, SHAPE(M, N)), DIM, false,
                      out("values", MAIN, STRIDED | OPTIONAL, SHAPE(M, N)),
                      out("indices", ONLY(RDNA_I64), STRIDED | OPTIONAL, SHAPE(M, N)));
}
OPERATOR(sort, values, .types = PLAIN) {
  return rdna_op_sort(stream, in("x", MAIN, STRIDED, SHAPE(M, N)), 1, false, out("values", MAIN, STRIDED, SHAPE(M, N)),
                      NULL);
}
OPERATOR(topk, plain, .types = PLAIN, .empty = "M") {
  return rdna_op_topk(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), (int)number("dim", 1, "-1", "2 -3"),
                      true, out("values", MAIN, STRIDED | OPTIONAL, SHAPE(M, 4)),
                      out("indices", ONLY(RDNA_I64), STRIDED | OPTIONAL, SHAPE(M, 4)));
}
OPERATOR(topk, values, .types = PLAIN) {
  int64_t k = (int64_t)number("values", 4, "0 1 8", "9");
  return rdna_op_topk(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), 1, true,
                      out("values", MAIN, STRIDED | FREE << 1, SHAPE(M, k)), NULL);
}
OPERATOR(kth_value, plain, .types = PLAIN, .empty = "M") {
  return rdna_op_kth_value(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)),
                           (int64_t)number("k", 2, "1 8", "0 -1 9"), (int)number("dim", 1, "-1", "2 -3"),
                           out("values", MAIN, STRIDED | OPTIONAL, SHAPE(M, 1)),
                           out("indices", ONLY(RDNA_I64), STRIDED | OPTIONAL, SHAPE(M, 1)));
}
OPERATOR(kth_value, values, .types = PLAIN) {
  return rdna_op_kth_value(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), 2, 1,
                           out("values", MAIN, STRIDED, SHAPE(M, 1)), NULL);
}
OPERATOR(search_sorted, rows, .types = PLAIN, .empty = "MNB") {
  return rdna_op_search_sorted(stream, in("sorted", MAIN, STRIDED | FREE << 1 | FEWER_DIMS, SHAPE(M, N)),
                               in("x", MAIN, STRIDED, SHAPE(M, B)), false,
                               out("out", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)));
}
OPERATOR(search_sorted, one, .types = PLAIN, .empty = "MNB") {
  return rdna_op_search_sorted(stream, in("sorted", MAIN, STRIDED | FREE, SHAPE(N)),
                               in("x", MAIN, STRIDED, SHAPE(M, B)), false,
                               out("out", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)));
}
OPERATOR(random_permutation, plain, .types = INDICES, .empty = "N") {
  return rdna_op_random_permutation(stream, 1, 2, out("out", MAIN_OR(INDICES), FREE, SHAPE(N)));
}

#endif
