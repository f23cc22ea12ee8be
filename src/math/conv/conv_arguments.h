/* Rows of the operators of conv.h for arguments_test.c: samples M, channels N to B. */
#ifndef RDNA_MATH_CONV_CONV_ARGUMENTS_H
#define RDNA_MATH_CONV_CONV_ARGUMENTS_H

#include "math/common/test/arguments.h"

static const rdna_convolution *convolution(void) {
  static rdna_convolution c;
  c = (rdna_convolution){RDNA_CONVOLUTION_INIT,
                         .spatial_dims = (int)number("spatial_dims", 2, "", "0 4"),
                         .stride = {(int64_t)number("stride", 1, "", "0 -1"), 1},
                         .pad_before = {(int64_t)number("before padding", 0, "", "-1"), 0},
                         .pad_after = {0, (int64_t)number("after padding", 0, "", "-1")},
                         .dilation = {1, (int64_t)number("dilation", 1, "", "0 -1")},
                         .groups = (int64_t)number("groups", 1, "", "0 -1 3")};
  return given_options("conv", &c);
}
#define CONV_X MAIN, STRIDED, SHAPE(M, N, 5, 6)
#define CONV_WEIGHT MAIN, STRIDED, SHAPE(B, N, 3, 3)
#define CONV_Y MAIN, STRIDED, SHAPE(M, B, 3, 4)
OPERATOR(conv, plain, .types = FLOATS, .empty = "MNB") {
  return rdna_op_conv(stream, convolution(), in("x", CONV_X), in("weight", CONV_WEIGHT),
                      in("bias", MAIN, OPTIONAL, SHAPE(B)), out("y", CONV_Y));
}
OPERATOR(conv_activate, plain, .types = FLOATS, .empty = "MNB") {
  return rdna_op_conv_activate(stream, convolution(), in("x", CONV_X), in("weight", CONV_WEIGHT),
                               in("bias", MAIN, OPTIONAL, SHAPE(B)), ACTIVATION, out("y", CONV_Y));
}
OPERATOR(conv_backward_data, plain, .types = FLOATS, .empty = "MNB") {
  return rdna_op_conv_backward_data(stream, convolution(), in("y", CONV_Y), in("weight", CONV_WEIGHT),
                                    in("bias", MAIN, OPTIONAL, SHAPE(N)), out("x", CONV_X));
}
OPERATOR(conv_backward_weight, plain, .types = FLOATS, .empty = "MNB") {
  return rdna_op_conv_backward_weight(stream, convolution(), in("y", CONV_Y), in("x", CONV_X),
                                      out("weight", CONV_WEIGHT));
}

#endif
