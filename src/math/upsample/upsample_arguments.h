/* Rows of the operators of upsample.h for arguments_test.c. */
#ifndef RDNA_MATH_UPSAMPLE_UPSAMPLE_ARGUMENTS_H
#define RDNA_MATH_UPSAMPLE_UPSAMPLE_ARGUMENTS_H

#include "math/common/test/arguments.h"

static const rdna_upsample *resampling(void) {
  static rdna_upsample how;
  how = (rdna_upsample){RDNA_UPSAMPLE_INIT,
                        .mode = (rdna_upsample_mode)number("mode", RDNA_UPSAMPLE_MODE_LINEAR, "0 1 3", "-1 4"),
                        .factor = {number("factor", 0, "1.5", "-1 nan inf")}};
  return given_options("options", &how);
}
OPERATOR(upsample, plain, .types = REALS, .empty = "MN") {
  return rdna_op_upsample(stream, resampling(), in("x", MAIN, ADAPTED, SHAPE(M, N, 3, 4)),
                          out("out", MAIN, ADAPTED, SHAPE(M, N, 6, 8)));
}
OPERATOR(upsample_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_upsample_backward(stream, resampling(), in("dout", MAIN, ADAPTED, SHAPE(M, N, 6, 8)),
                                   out("dx", MAIN, ADAPTED, SHAPE(M, N, 3, 4)));
}

#endif
