/* Rows of the operators of norm.h and channel_norm.h for arguments_test.c. */
#ifndef RDNA_MATH_NORM_NORM_ARGUMENTS_H
#define RDNA_MATH_NORM_NORM_ARGUMENTS_H

#include "math/common/test/arguments.h"

/* ---- norm.h ---- */

OPERATOR(rms_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_rms_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)),
                          EPSILON, out("out", FIRST_OR(HALVES), 0, SHAPE(M, N)));
}
#define NARROW(type)                                                          \
  rdna_op_rms_norm(stream, in("x", ANY(RDNA_F32, BIT(type)), 0, SHAPE(M, N)), \
                   in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)), EPSILON, \
                   out("out", MAIN_OR(FLOATS), 0, SHAPE(M, N)))
OPERATOR(rms_norm, f32_to_f16, .types = BIT(RDNA_F16), .besides = FLOATS, .empty = "MN") { return NARROW(RDNA_F16); }
OPERATOR(rms_norm, f32_to_bf16, .types = BIT(RDNA_BF16), .besides = FLOATS, .empty = "MN") { return NARROW(RDNA_BF16); }
#undef NARROW
OPERATOR(add_rms_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_add_rms_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), out("residual", MAIN, 0, SHAPE(M, N)),
                              in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), EPSILON,
                              out("out", FIRST_OR(HALVES), 0, SHAPE(M, N)));
}
#define NARROW(x_type, residual_type, also)                                                                     \
  rdna_op_add_rms_norm(stream, in("x", x_type, 0, SHAPE(M, N)), out("residual", residual_type, 0, SHAPE(M, N)), \
                       in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)), EPSILON,                               \
                       out("out", MAIN_OR(also), 0, SHAPE(M, N)))
OPERATOR(add_rms_norm, f32_to_f16, .types = BIT(RDNA_F16), .besides = FLOATS, .empty = "MN") {
  return NARROW(ANY(RDNA_F32, BIT(RDNA_F16)), ONLY(RDNA_F32), FLOATS);
}
OPERATOR(add_rms_norm, f32_to_bf16, .types = BIT(RDNA_BF16), .besides = FLOATS, .empty = "MN") {
  return NARROW(ANY(RDNA_F32, BIT(RDNA_BF16)), ONLY(RDNA_F32), FLOATS);
}
OPERATOR(add_rms_norm, f16_and_f32, .types = BIT(RDNA_F16), .besides = FLOATS, .empty = "MN", .same = "out=x") {
  return NARROW(MAIN_OR(F32), ANY(RDNA_F32, BIT(RDNA_F16)), 0);
}
OPERATOR(add_rms_norm, bf16_and_f32, .types = BIT(RDNA_BF16), .besides = FLOATS, .empty = "MN", .same = "out=x") {
  return NARROW(MAIN_OR(F32), ANY(RDNA_F32, BIT(RDNA_BF16)), 0);
}
#undef NARROW
OPERATOR(layer_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_layer_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, OPTIONAL, SHAPE(N)),
                            in("bias", MAIN, OPTIONAL, SHAPE(N)), EPSILON, out("out", MAIN, 0, SHAPE(M, N)),
                            out("mean", ONLY(RDNA_F32), OPTIONAL, SHAPE(M)),
                            out("inverse", ONLY(RDNA_F32), OPTIONAL, SHAPE(M)));
}
OPERATOR(layer_norm, f32_rows, .types = FLOATS, .same = "out=x") {
  return rdna_op_layer_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),
                            in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)), 0, out("out", MAIN, 0, SHAPE(M, N)), NULL,
                            NULL);
}
OPERATOR(rms_norm_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=x") {
  return rdna_op_rms_norm_backward(stream, in("dout", MAIN, 0, SHAPE(M, N)), in("x", MAIN, 0, SHAPE(M, N)),
                                   in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), EPSILON,
                                   out("dx", MAIN, 0, SHAPE(M, N)), out("dweight", MAIN_OR(F32), OPTIONAL, SHAPE(N)));
}
OPERATOR(layer_norm_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=x") {
  return rdna_op_layer_norm_backward(stream, in("dout", MAIN, 0, SHAPE(M, N)), in("x", MAIN, 0, SHAPE(M, N)),
                                     in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), EPSILON, NULL, NULL,
                                     out("dx", MAIN, 0, SHAPE(M, N)), out("dweight", MAIN_OR(F32), OPTIONAL, SHAPE(N)),
                                     out("dbias", MAIN_OR(F32), OPTIONAL, SHAPE(N)));
}
OPERATOR(layer_norm_backward, saved, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=x") {
  return rdna_op_layer_norm_backward(stream, in("dout", MAIN, 0, SHAPE(M, N)), in("x", MAIN, 0, SHAPE(M, N)), NULL, 0,
                                     in("mean", ONLY(RDNA_F32), 0, SHAPE(M)),
                                     in("inverse", ONLY(RDNA_F32), 0, SHAPE(M)), out("dx", MAIN, 0, SHAPE(M, N)), NULL,
                                     NULL);
}

/* ---- channel_norm.h: samples M, channels N, positions B ---- */

#define IMAGES SHAPE(M, N, B)
#define CHANNELS SHAPE(N)

OPERATOR(batch_norm, plain, .types = REALS, .empty = "MNB", .same = "out=x") {
  return rdna_op_batch_norm(stream, in("x", MAIN, 0, IMAGES), in("weight", MAIN, OPTIONAL, CHANNELS),
                            in("bias", MAIN, OPTIONAL, CHANNELS), out("running_mean", MAIN, OPTIONAL, CHANNELS),
                            out("running_var", MAIN, OPTIONAL, CHANNELS), 0.1, EPSILON, out("out", MAIN, 0, IMAGES),
                            out("saved_mean", SUMS, 0, CHANNELS), out("saved_inverse", SUMS, 0, CHANNELS));
}
OPERATOR(batch_norm_backward, plain, .types = REALS, .empty = "MNB", .same = "dx=dout dx=x") {
  return rdna_op_batch_norm_backward(
      stream, in("dout", MAIN, 0, IMAGES), in("x", MAIN, 0, IMAGES), in("weight", MAIN_OR(F32), OPTIONAL, CHANNELS),
      in("saved_mean", SUMS, 0, CHANNELS), in("saved_inverse", SUMS, 0, CHANNELS), out("dx", MAIN, OPTIONAL, IMAGES),
      out("dweight", MAIN, OPTIONAL, CHANNELS), out("dbias", MAIN, OPTIONAL, CHANNELS));
}
OPERATOR(batch_norm_inference, plain, .types = REALS, .empty = "MNB", .same = "out=x out=residual") {
  return rdna_op_batch_norm_inference(stream, in("x", MAIN, 0, IMAGES), in("weight", MAIN, OPTIONAL, CHANNELS),
                                      in("bias", MAIN, OPTIONAL, CHANNELS), in("mean", MAIN, 0, CHANNELS),
                                      in("variance", MAIN, 0, CHANNELS), EPSILON,
                                      in("residual", MAIN, OPTIONAL, IMAGES), true, out("out", MAIN, 0, IMAGES));
}
OPERATOR(batch_norm_inference_backward, plain, .types = REALS, .empty = "MNB", .same = "dx=dout dx=x") {
  return rdna_op_batch_norm_inference_backward(
      stream, in("dout", MAIN, 0, IMAGES), in("x", MAIN, 0, IMAGES), in("weight", MAIN_OR(F32), OPTIONAL, CHANNELS),
      in("mean", MAIN, 0, CHANNELS), in("variance", MAIN, 0, CHANNELS), EPSILON, out("dx", MAIN, OPTIONAL, IMAGES),
      out("dweight", MAIN, OPTIONAL, CHANNELS), out("dbias", MAIN, OPTIONAL, CHANNELS));
}
OPERATOR(group_norm, plain, .types = REALS, .empty = "MB", .same = "out=x") {
  return rdna_op_group_norm(stream, in("x", MAIN, 0, IMAGES), 2, in("weight", MAIN, OPTIONAL, CHANNELS),
                            in("bias", MAIN, OPTIONAL, CHANNELS), EPSILON, out("out", MAIN, 0, IMAGES),
                            out("saved_mean", SUMS, 0, SHAPE(M, 2)), out("saved_inverse", SUMS, 0, SHAPE(M, 2)));
}
OPERATOR(group_norm, groups, .types = REALS, .same = "out=x") {
  int64_t groups = (int64_t)number("channel_groups", 2, "1 8", "0 -1 3 16"), saved = groups > 0 ? groups : 1;
  return rdna_op_group_norm(stream, in("x", MAIN, 0, IMAGES), groups, NULL, NULL, 0, out("out", MAIN, 0, IMAGES),
                            out("saved_mean", SUMS, 0, SHAPE(M, saved)),
                            out("saved_inverse", SUMS, 0, SHAPE(M, saved)));
}
OPERATOR(group_norm_backward, plain, .types = REALS, .empty = "MB", .same = "dx=dout dx=x") {
  int64_t groups = (int64_t)number("channel_groups", 2, "", "0 -1 3 16"), saved = groups > 0 ? groups : 1;
  return rdna_op_group_norm_backward(stream, in("dout", MAIN, 0, IMAGES), in("x", MAIN, 0, IMAGES), groups,
                                     in("weight", MAIN_OR(F32), OPTIONAL, CHANNELS),
                                     in("saved_mean", SUMS, 0, SHAPE(M, saved)),
                                     in("saved_inverse", SUMS, 0, SHAPE(M, saved)), out("dx", MAIN, OPTIONAL, IMAGES),
                                     out("dweight", MAIN, OPTIONAL, CHANNELS), out("dbias", MAIN, OPTIONAL, CHANNELS));
}

#endif
