/* Rows of the operators of pool.h for arguments_test.c. */
#ifndef RDNA_MATH_POOL_POOL_ARGUMENTS_H
#define RDNA_MATH_POOL_POOL_ARGUMENTS_H

#include "math/common/test/arguments.h"

static const rdna_pooling *pooling(bool average) {
  static rdna_pooling p;
  p = (rdna_pooling){RDNA_POOLING_INIT,
                     .spatial_dims = (int)number("spatial_dims", 2, "", "0 4"),
                     .window = {2, (int64_t)number("window", 2, "", "0 -1")},
                     .stride = {(int64_t)number("stride", 2, "", "0 -1"), 2},
                     .pad_before = {(int64_t)number("before padding", 0, "", "-1"), 0},
                     .dilation = {1, (int64_t)number("dilation", 1, "", average ? "0 -1 2" : "0 -1")}};
  return given_options("pooling", &p);
}
#define POOL_OUT MAIN, STRIDED, SHAPE(M, N, 3, 4)
#define POOL_INDICES ONLY(RDNA_I64), STRIDED, SHAPE(M, N, 3, 4)
OPERATOR(max_pool, plain, .types = REALS, .empty = "MN") {
  return rdna_op_max_pool(stream, pooling(false), in("x", MAIN, STRIDED | FREE << 2 | FREE << 3, SHAPE(M, N, 6, 8)),
                          out("out", POOL_OUT), out("indices", ONLY(RDNA_I64), STRIDED | OPTIONAL, SHAPE(M, N, 3, 4)));
}
OPERATOR(max_pool_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_max_pool_backward(stream, pooling(false), in("dout", POOL_OUT), in("indices", POOL_INDICES),
                                   out("dx", MAIN, STRIDED | FREE << 2 | FREE << 3, SHAPE(M, N, 6, 8)));
}
OPERATOR(average_pool, plain, .types = REALS, .empty = "MN") {
  return rdna_op_average_pool(stream, pooling(true), in("x", MAIN, STRIDED | FREE << 2 | FREE << 3, SHAPE(M, N, 6, 8)),
                              out("out", POOL_OUT));
}
OPERATOR(average_pool_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_average_pool_backward(stream, pooling(true), in("dout", POOL_OUT),
                                       out("dx", MAIN, STRIDED | FREE << 2 | FREE << 3, SHAPE(M, N, 6, 8)));
}
OPERATOR(adaptive_max_pool, plain, .types = REALS, .empty = "MN") {
  return rdna_op_adaptive_max_pool(stream, in("x", MAIN, ADAPTED, SHAPE(M, N, 6, 8)), out("out", POOL_OUT),
                                   out("indices", ONLY(RDNA_I64), STRIDED | OPTIONAL, SHAPE(M, N, 3, 4)));
}
OPERATOR(adaptive_max_pool_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_adaptive_max_pool_backward(stream, in("dout", POOL_OUT), in("indices", POOL_INDICES),
                                            out("dx", MAIN, ADAPTED, SHAPE(M, N, 6, 8)));
}
OPERATOR(adaptive_average_pool, plain, .types = REALS, .empty = "MN") {
  return rdna_op_adaptive_average_pool(stream, in("x", MAIN, ADAPTED, SHAPE(M, N, 6, 8)),
                                       out("out", MAIN, ADAPTED, SHAPE(M, N, 3, 4)));
}
OPERATOR(adaptive_average_pool_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_adaptive_average_pool_backward(stream, in("dout", MAIN, ADAPTED, SHAPE(M, N, 3, 4)),
                                                out("dx", MAIN, ADAPTED, SHAPE(M, N, 6, 8)));
}
OPERATOR(fold, plain, .types = REALS, .empty = "MN") {
  return rdna_op_fold(stream, pooling(false), in("columns", MAIN, 0, SHAPE(M, N * 4, 12)),
                      out("out", MAIN, FREE << 2 | FREE << 3, SHAPE(M, N, 6, 8)));
}

#endif
