/* Rows of the operators of scan.h for arguments_test.c. */
#ifndef RDNA_MATH_SCAN_SCAN_ARGUMENTS_H
#define RDNA_MATH_SCAN_SCAN_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define SCANNED (FLOATS | F64 | INDICES)
#define SCAN(name) rdna_op_##name(stream, in("x", MAIN, 0, SHAPE(M, N)), DIM, out("out", MAIN, 0, SHAPE(M, N)))
OPERATOR(cumsum, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cumsum); }
OPERATOR(cumprod, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cumprod); }
OPERATOR(cummax, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cummax); }
OPERATOR(cummin, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cummin); }
OPERATOR(logcumsumexp, plain, .types = FLOATS, .empty = "MN", .same = "out=x") { return SCAN(logcumsumexp); }
#define SCAN_INDICES(name)                                                                        \
  rdna_op_##name(stream, in("x", MAIN, 0, SHAPE(M, N)), DIM, out("values", MAIN, 0, SHAPE(M, N)), \
                 out("indices", ONLY(RDNA_I64), 0, SHAPE(M, N)))
OPERATOR(cummax_indices, plain, .types = PLAIN, .empty = "MN", .same = "values=x") {
  return SCAN_INDICES(cummax_indices);
}
OPERATOR(cummin_indices, plain, .types = PLAIN, .empty = "MN", .same = "values=x") {
  return SCAN_INDICES(cummin_indices);
}

#endif
