/* Rows of the operators of loss.h for arguments_test.c. */
#ifndef RDNA_MATH_LOSS_LOSS_ARGUMENTS_H
#define RDNA_MATH_LOSS_LOSS_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define LOSS (rdna_loss) number("loss", RDNA_LOSS_HUBER, "0 1 2 4 5 6 7", "-1 8")
#define REDUCTION(usual, good) (rdna_loss_reduction) number("reduction", usual, good, "-1 3")
#define BETA (float)number("beta", 1, "0", "-1 nan")
OPERATOR(loss, one, .types = FLOATS, .empty = "MN") {
  return rdna_op_loss(stream, LOSS, BETA, REDUCTION(RDNA_LOSS_REDUCTION_MEAN, "2"), in("x", MAIN, 0, SHAPE(M, N)),
                      in("target", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, OPTIONAL, SHAPE(M, N)),
                      out("out", MAIN_OR(F32), 0, ONE));
}
OPERATOR(loss, each, .types = FLOATS, .empty = "MN", .same = "out=x out=target out=weight") {
  return rdna_op_loss(stream, RDNA_LOSS_MSE, 1, RDNA_LOSS_REDUCTION_NONE, in("x", MAIN, 0, SHAPE(M, N)),
                      in("target", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, OPTIONAL, SHAPE(M, N)),
                      out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(loss_backward, one, .types = FLOATS, .empty = "MN", .same = "dx=x dx=target dx=weight") {
  return rdna_op_loss_backward(stream, LOSS, BETA, REDUCTION(RDNA_LOSS_REDUCTION_MEAN, "2"),
                               in("dout", MAIN_OR(F32), 0, ONE), in("x", MAIN, 0, SHAPE(M, N)),
                               in("target", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, OPTIONAL, SHAPE(M, N)),
                               out("dx", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(loss_backward, each, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=x dx=target dx=weight") {
  return rdna_op_loss_backward(stream, RDNA_LOSS_MSE, 1, RDNA_LOSS_REDUCTION_NONE, in("dout", MAIN, 0, SHAPE(M, N)),
                               in("x", MAIN, 0, SHAPE(M, N)), in("target", MAIN, 0, SHAPE(M, N)),
                               in("weight", MAIN, OPTIONAL, SHAPE(M, N)), out("dx", MAIN, 0, SHAPE(M, N)));
}
/* Zeros as spans: texts without labels and steps. */
#define TEXTS(free)                                                                               \
  in("x", MAIN, STRIDED | (free), SHAPE(M, B, N)), in("targets", ONLY(RDNA_I64), FREE, SHAPE(K)), \
      in("spans", ONLY(RDNA_I64), 0, SHAPE(B, 3)), (int64_t)number("blank", 1, "0", "-1 1000")
OPERATOR(ctc, plain, .empty = "MB") {
  return rdna_op_ctc(stream, TEXTS(FREE << 2), out("states", MAIN, 0, SHAPE(B, M, 5)), out("loss", MAIN, 0, SHAPE(B)),
                     NULL);
}
OPERATOR(ctc_backward, plain, .empty = "MB") {
  return rdna_op_ctc_backward(stream, in("dloss", MAIN, 0, SHAPE(B)), TEXTS(0), false,
                              in("states", MAIN, 0, SHAPE(B, M, 5)), in("loss", MAIN, 0, SHAPE(B)),
                              out("dx", MAIN, 0, SHAPE(M, B, N)));
}
static const rdna_cross_entropy *cross_entropy(rdna_loss_reduction reduction) {
  static rdna_cross_entropy options;
  options = (rdna_cross_entropy){
      RDNA_CROSS_ENTROPY_INIT, .reduction = (rdna_loss_reduction)number("reduction", reduction, "", "-1 3"),
      .ignore_index = -100, .label_smoothing = (float)number("label_smoothing", 0.1, "0 1", "-0.1 1.1 nan")};
  return given_options("options", &options);
}
OPERATOR(cross_entropy, one, .types = FLOATS, .empty = "M") {
  return rdna_op_cross_entropy(
      stream, cross_entropy(RDNA_LOSS_REDUCTION_MEAN), in("x", FIRST_OR(FLOATS), 0, SHAPE(M, N)),
      in("target", ANY(RDNA_I64, INDICES), 0, SHAPE(M)), in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),
      out("out", MAIN_OR(F32), 0, ONE), out("lse", ONLY(RDNA_F32), 0, SHAPE(M)), out("total", ONLY(RDNA_F32), 0, ONE));
}
OPERATOR(cross_entropy, each, .types = FLOATS, .empty = "M") {
  return rdna_op_cross_entropy(stream, cross_entropy(RDNA_LOSS_REDUCTION_NONE),
                               in("x", FIRST_OR(FLOATS), 0, SHAPE(M, N)),
                               in("target", ANY(RDNA_I64, INDICES), 0, SHAPE(M)),
                               in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)), out("out", MAIN_OR(F32), 0, SHAPE(M)),
                               out("lse", ONLY(RDNA_F32), 0, SHAPE(M)), out("total", ONLY(RDNA_F32), 0, ONE));
}
OPERATOR(cross_entropy_backward, one, .types = FLOATS, .empty = "M", .same = "dx=x") {
  return rdna_op_cross_entropy_backward(
      stream, cross_entropy(RDNA_LOSS_REDUCTION_MEAN), in("dout", MAIN_OR(F32), 0, ONE), in("x", MAIN, 0, SHAPE(M, N)),
      in("target", ANY(RDNA_I64, INDICES), 0, SHAPE(M)), in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),
      in("lse", ONLY(RDNA_F32), 0, SHAPE(M)), in("total", ONLY(RDNA_F32), 0, ONE), out("dx", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(cross_entropy_backward, each, .types = FLOATS, .empty = "M", .same = "dx=x") {
  return rdna_op_cross_entropy_backward(
      stream, cross_entropy(RDNA_LOSS_REDUCTION_NONE), in("dout", MAIN_OR(F32), 0, SHAPE(M)),
      in("x", MAIN, 0, SHAPE(M, N)), in("target", ANY(RDNA_I64, INDICES), 0, SHAPE(M)), NULL,
      in("lse", ONLY(RDNA_F32), 0, SHAPE(M)), in("total", ONLY(RDNA_F32), 0, ONE), out("dx", MAIN, 0, SHAPE(M, N)));
}

#endif
