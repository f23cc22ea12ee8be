/* Every public operator refuses arguments that its header excludes, with a sentence that names them and nothing
 * written, and takes those at the edge of what the header allows. Each has a row: see arguments.h. */
#include "math/common/test/arguments.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

/* ---- norm.h ---- */
#define EPSILON number("epsilon", 1e-5, "0 1", "-1 nan inf")

OPERATOR(rms_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_rms_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)),
                          EPSILON, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(add_rms_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_add_rms_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), out("residual", MAIN, 0, SHAPE(M, N)),
                              in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), EPSILON,
                              out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(layer_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_layer_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, OPTIONAL, SHAPE(N)),
                            in("bias", MAIN, OPTIONAL, SHAPE(N)), EPSILON, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(layer_norm, f32_rows, .types = FLOATS, .same = "out=x") {
  return rdna_op_layer_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),
                            in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)), 0, out("out", MAIN, 0, SHAPE(M, N)));
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
  int64_t groups = (int64_t)number("groups", 2, "1 8", "0 -1 3 16"), saved = groups > 0 ? groups : 1;
  return rdna_op_group_norm(stream, in("x", MAIN, 0, IMAGES), groups, NULL, NULL, 0, out("out", MAIN, 0, IMAGES),
                            out("saved_mean", SUMS, 0, SHAPE(M, saved)),
                            out("saved_inverse", SUMS, 0, SHAPE(M, saved)));
}
OPERATOR(group_norm_backward, plain, .types = REALS, .empty = "MB", .same = "dx=dout dx=x") {
  int64_t groups = (int64_t)number("groups", 2, "", "0 -1 3 16"), saved = groups > 0 ? groups : 1;
  return rdna_op_group_norm_backward(stream, in("dout", MAIN, 0, IMAGES), in("x", MAIN, 0, IMAGES), groups,
                                     in("weight", MAIN_OR(F32), OPTIONAL, CHANNELS),
                                     in("saved_mean", SUMS, 0, SHAPE(M, saved)),
                                     in("saved_inverse", SUMS, 0, SHAPE(M, saved)), out("dx", MAIN, OPTIONAL, IMAGES),
                                     out("dweight", MAIN, OPTIONAL, CHANNELS), out("dbias", MAIN, OPTIONAL, CHANNELS));
}

/* ---- conv.h: samples M, channels N to B ---- */
static const rdna_convolution *convolution(void) {
  static rdna_convolution c;
  c = (rdna_convolution){RDNA_CONVOLUTION_INIT,
                         .spatial_dims = (int)number("spatial_dims", 2, "", "0 4"),
                         .stride = {(int64_t)number("stride", 1, "", "0 -1"), 1},
                         .pad_before = {(int64_t)number("before padding", 0, "", "-1"), 0},
                         .pad_after = {0, (int64_t)number("after padding", 0, "", "-1")},
                         .dilation = {1, (int64_t)number("dilation", 1, "", "0 -1")},
                         .groups = (int64_t)number("groups", 1, "", "0 -1 3")};
  return given("conv", &c);
}
#define CONV_X MAIN, STRIDED, SHAPE(M, N, 5, 6)
#define CONV_WEIGHT MAIN, STRIDED, SHAPE(B, N, 3, 3)
#define CONV_Y MAIN, STRIDED, SHAPE(M, B, 3, 4)
#define ACTIVATION (rdna_activation) number("activation", RDNA_ACTIVATION_RELU, "0 1 6", "-1 7")
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

/* ---- fused.h ---- */
OPERATOR(fused, plain, .types = FLOATS, .empty = "MN", .same = "out=inputs[0] out=inputs[1]") {
  static rdna_fused_step steps[RDNA_FUSED_MAX_STEPS + 1];
  for (int i = 0; i <= RDNA_FUSED_MAX_STEPS; i++) steps[i] = (rdna_fused_step){.op = RDNA_MAP_ABS};
  steps[1] = (rdna_fused_step){.op = (int)number("op operation", RDNA_ZIP_ADD, "", "-1 1000"),
                               .is_zip = true,
                               .input = (int)number("input", 1, "0", "-1 2")};
  const rdna_tensor *inputs[] = {in("inputs[0]", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)),
                                 in("inputs[1]", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_fused(stream, given("steps", steps), (int)number("steps", 2, "8", "0 -1 9"), given("inputs", inputs),
                       (int)number("inputs", 2, "", "0 -1 7"), out("out", MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)));
}

/* ---- gemm.h ---- */
#define HALVES (BIT(RDNA_F16) | BIT(RDNA_BF16))
OPERATOR(gemm, plain, .types = REALS, .empty = "MNK") {
  return rdna_op_gemm(stream, 1, in("a", MAIN, STRIDED, SHAPE(M, K)), in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)),
                      0, in("bias", MAIN, OPTIONAL, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm, batched, .types = FLOATS, .besides = F64, .empty = "MNKB") {
  return rdna_op_gemm(stream, 1, in("a", MAIN, STRIDED, SHAPE(B, M, K)),
                      in("b", FIRST_OR(HALVES), STRIDED, SHAPE(B, K, N)), 1, NULL,
                      out("c", MAIN_OR(F32), 0, SHAPE(B, M, N)));
}
OPERATOR(gemm_epilogue, plain, .types = FLOATS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)), .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_epilogue(stream, given("epilogue", &epilogue), in("a", MAIN, STRIDED, SHAPE(M, K)),
                               in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_epilogue, bias_per_row, .types = REALS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(M)), .bias_per_row = 1};
  return rdna_op_gemm_epilogue(stream, &epilogue, in("a", MAIN, STRIDED, SHAPE(M, K)),
                               in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)), out("c", MAIN, 0, SHAPE(M, N)));
}
#define A_I8 in("a", ONLY(RDNA_I8), STRIDED, SHAPE(M, K))
#define B_I8 in("b", ONLY(RDNA_I8), STRIDED, SHAPE(K, N))
OPERATOR(gemm_i8, floats, .types = FLOATS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)), .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_i8(stream, &epilogue, A_I8, in("scale_a", ONLY(RDNA_F32), 0, SHAPE(M)), B_I8,
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_i8, one_scale, .types = FLOATS) {
  return rdna_op_gemm_i8(stream, NULL, A_I8, in("scale_a", ONLY(RDNA_F32), 0, SHAPE(1)), B_I8,
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(1)), out("c", MAIN_OR(FLOATS), 0, SHAPE(M, N)));
}
OPERATOR(gemm_i8, integers, .empty = "MNK") {
  return rdna_op_gemm_i8(stream, NULL, A_I8, NULL, B_I8, NULL, out("c", ONLY(RDNA_I32), 0, SHAPE(M, N)));
}

/* ---- linear.h ---- */
#define LINEAR(x_type, w_type, out_type)                                         \
  stream, in("x", x_type, 0, SHAPE(M, K)), in("weight", w_type, 0, SHAPE(N, K)), \
      in("bias", out_type, OPTIONAL, SHAPE(N)), out("out", out_type, 0, SHAPE(M, N))
OPERATOR(linear, f32, .types = F32, .empty = "MNK") {
  return rdna_op_linear(LINEAR(MAIN, ANY(RDNA_F32, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear, halves, .types = HALVES, .besides = F32, .empty = "MNK") {
  return rdna_op_linear(LINEAR(MAIN, MAIN, MAIN));
}
OPERATOR(linear, blocks, .types = QUANTIZED, .besides = FLOATS, .empty = "MN") {
  return rdna_op_linear(LINEAR(ONLY(RDNA_F32), MAIN_OR(FLOATS | QUANTIZED), ONLY(RDNA_F32)));
}
OPERATOR(linear_add, f32, .types = F32, .empty = "MNK") {
  return rdna_op_linear_add(LINEAR(MAIN, ANY(RDNA_F32, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear_add, halves, .types = HALVES, .besides = F32, .empty = "MNK") {
  return rdna_op_linear_add(LINEAR(MAIN, MAIN, MAIN));
}
OPERATOR(linear_add, blocks, .types = QUANTIZED, .besides = FLOATS, .empty = "MN") {
  return rdna_op_linear_add(LINEAR(ONLY(RDNA_F32), MAIN_OR(FLOATS | QUANTIZED), ONLY(RDNA_F32)));
}

/* ---- pointwise.h ---- */
#define VALUES_IN MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)
#define VALUES_OUT MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)
static const rdna_scalar two = {2, 2};
OPERATOR(map, numbers, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  return rdna_op_map(stream, (rdna_map)number("op operation", RDNA_MAP_ABS, "1 5", "-1 1000"), in("x", VALUES_IN), two,
                     two, out("out", VALUES_OUT));
}
OPERATOR(map, integers, .types = INTEGERS, .same = "out=x") {
  return rdna_op_map(stream, RDNA_MAP_BITWISE_NOT, in("x", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(map, reals, .types = REALS, .same = "out=x") {
  return rdna_op_map(stream, RDNA_MAP_EXP, in("x", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip, numbers, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_zip(stream, (rdna_zip)number("op operation", RDNA_ZIP_ADD, "1 11", "-1 1000"), in("a", VALUES_IN),
                     in("b", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip, reals, .types = REALS, .same = "out=a out=b") {
  return rdna_op_zip(stream, RDNA_ZIP_LERP, in("a", VALUES_IN), in("b", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip_scalar, plain, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  return rdna_op_zip_scalar(stream, (rdna_zip)number("op operation", RDNA_ZIP_ADD, "1 11", "-1 1000"),
                            in("x", VALUES_IN), two, number("scalar_first", 0, "1", "") != 0, two, two,
                            out("out", VALUES_OUT));
}
OPERATOR(zip3, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b out=c") {
  return rdna_op_zip3(stream, (rdna_zip3)number("op operation", RDNA_ZIP3_FMA, "1 2", "-1 1000"), in("a", VALUES_IN),
                      in("b", VALUES_IN), in("c", VALUES_IN), two, out("out", VALUES_OUT));
}
OPERATOR(compare, two, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_compare(stream, (rdna_compare)number("op operation", RDNA_COMPARE_LT, "0 8", "-1 1000"),
                         in("a", VALUES_IN), in("b", VALUES_IN),
                         out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(compare, one, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_compare(stream, (rdna_compare)number("op operation", RDNA_COMPARE_ISNAN, "9 11 12", ""),
                         in("a", MAIN_OR(NUMBERS), STRIDED | FEWER_DIMS, SHAPE(M, N)), NULL,
                         out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(compare_scalar, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_compare_scalar(stream, (rdna_compare)number("op operation", RDNA_COMPARE_LT, "0 8", "-1 1000"),
                                in("a", MAIN_OR(NUMBERS), STRIDED | FEWER_DIMS, SHAPE(M, N)), two,
                                out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
#define CONDITION in("condition", ONLY(RDNA_BOOL), STRIDED | FEWER_DIMS, SHAPE(M, N))
OPERATOR(where, plain, .types = PLAIN, .empty = "MN", .same = "out=a out=b out=condition") {
  return rdna_op_where(stream, CONDITION, in("a", VALUES_IN), in("b", VALUES_IN), out("out", VALUES_OUT));
}
OPERATOR(masked_fill, plain, .types = PLAIN, .empty = "MN", .same = "out=b out=condition") {
  return rdna_op_masked_fill(stream, CONDITION, two, in("b", VALUES_IN), out("out", VALUES_OUT));
}

OPERATOR(swiglu, plain, .types = FLOATS, .empty = "MN", .same = "out=gate out=up") {
  return rdna_op_swiglu(stream, in("gate", MAIN, 0, SHAPE(M, N)), in("up", MAIN, 0, SHAPE(M, N)),
                        out("out", MAIN, 0, SHAPE(M, N)));
}

/* ---- movement.h ---- */
#define ANY_PLACES (STRIDED | MORE_DIMS | FEWER_DIMS | FREE_ALL)
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

/* ---- cast.h ---- */
OPERATOR(cast, plain, .types = PLAIN, .besides = QUANTIZED, .empty = "MN", .same = "out=x") {
  return rdna_op_cast(stream, in("x", MAIN_OR(PLAIN), 0, SHAPE(M, N)), out("out", MAIN_OR(PLAIN), 0, SHAPE(M, N)));
}
OPERATOR(cast_saturating, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_cast_saturating(stream, in("x", MAIN_OR(FLOATS), 0, SHAPE(M, N)),
                                 out("out", ANY(RDNA_F8_E4M3FN, FLOATS8), 0, SHAPE(M, N)));
}

/* ---- reduce.h ---- */
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

/* ---- scan.h, softmax.h ---- */
#define SCANNED (FLOATS | F64 | INDICES)
#define DIM (int)number("dim", 1, "0 -1 -2", "2 -3")
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

#define DIM_OF_SOFTMAX (int)number("dim", 0, "1 -1 -2", "2 -3")
#define ALONG(name, strides) \
  rdna_op_##name(stream, in("x", MAIN, strides, SHAPE(M, N)), DIM_OF_SOFTMAX, 1, out("out", MAIN, strides, SHAPE(M, N)))
OPERATOR(softmax, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "out=x") { return ALONG(softmax, 0); }
OPERATOR(softmax, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "out=x") {
  return ALONG(softmax, STRIDED);
}
OPERATOR(log_softmax, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "out=x") {
  return ALONG(log_softmax, 0);
}
OPERATOR(log_softmax, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "out=x") {
  return ALONG(log_softmax, STRIDED);
}
#define BACK_ALONG(name, strides)                                                                       \
  rdna_op_##name(stream, in("dout", MAIN, strides, SHAPE(M, N)), in("out", MAIN, strides, SHAPE(M, N)), \
                 DIM_OF_SOFTMAX, 1, out("dx", MAIN, strides, SHAPE(M, N)))
OPERATOR(softmax_backward, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(softmax_backward, 0);
}
OPERATOR(softmax_backward, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(softmax_backward, STRIDED);
}
OPERATOR(log_softmax_backward, plain, .types = FLOATS, .besides = F64, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(log_softmax_backward, 0);
}
OPERATOR(log_softmax_backward, f64, .types = F64, .besides = FLOATS, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(log_softmax_backward, STRIDED);
}

/* ---- sort.h ---- */
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

/* ---- random.h ---- */
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

/* ---- pool.h ---- */
static const rdna_pooling *pooling(bool average) {
  static rdna_pooling p;
  p = (rdna_pooling){RDNA_POOLING_INIT,
                     .spatial_dims = (int)number("spatial_dims", 2, "", "0 4"),
                     .window = {2, (int64_t)number("window", 2, "", "0 -1")},
                     .stride = {(int64_t)number("stride", 2, "", "0 -1"), 2},
                     .pad_before = {(int64_t)number("before padding", 0, "", "-1"), 0},
                     .dilation = {1, (int64_t)number("dilation", 1, "", average ? "0 -1 2" : "0 -1")}};
  return given("pooling", &p);
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
#define ADAPTED (STRIDED | FREE << 2 | FREE << 3)
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

/* ---- upsample.h ---- */
static const rdna_upsample *resampling(void) {
  static rdna_upsample how;
  how = (rdna_upsample){RDNA_UPSAMPLE_INIT,
                        .mode = (rdna_upsample_mode)number("mode", RDNA_UPSAMPLE_MODE_LINEAR, "0 1 3", "-1 4"),
                        .factor = {number("factor", 0, "1.5", "-1 nan inf")}};
  return given("options", &how);
}
OPERATOR(upsample, plain, .types = REALS, .empty = "MN") {
  return rdna_op_upsample(stream, resampling(), in("x", MAIN, ADAPTED, SHAPE(M, N, 3, 4)),
                          out("out", MAIN, ADAPTED, SHAPE(M, N, 6, 8)));
}
OPERATOR(upsample_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_upsample_backward(stream, resampling(), in("dout", MAIN, ADAPTED, SHAPE(M, N, 6, 8)),
                                   out("dx", MAIN, ADAPTED, SHAPE(M, N, 3, 4)));
}

/* ---- index.h ---- */
#define DIM_OF_TWO (int)number("dim", 1, "-1", "2 -3")
#define OUTSIDE outside_word()
static uint32_t *outside_word(void) {
  static uint32_t word;
  return &word;
}
#define IDS(name) in(name, ANY(RDNA_I64, INDICES), STRIDED, SHAPE(B))

OPERATOR(gather, plain, .types = PLAIN, .empty = "B") {
  return rdna_op_gather(stream, in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                        in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                        out("out", MAIN, STRIDED, SHAPE(M, B)), OUTSIDE);
}
OPERATOR(index_select, plain, .types = PLAIN, .empty = "MB") {
  return rdna_op_index_select(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), DIM_OF_TWO, IDS("indices"),
                              out("out", MAIN, STRIDED, SHAPE(M, B)), OUTSIDE);
}
OPERATOR(index, plain, .types = PLAIN, .empty = "MB") {
  const rdna_tensor *indices[RDNA_MAX_RANK] = {NULL,
                                               in("indices[1] indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(B))};
  return rdna_op_index(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), given("indices", indices),
                       out("out", MAIN, STRIDED, SHAPE(M, B)), OUTSIDE);
}
OPERATOR(embedding, plain, .types = PLAIN, .empty = "NB") {
  return rdna_op_embedding(stream, in("table", MAIN, STRIDED | FREE, SHAPE(M, N)), IDS("ids"),
                           out("out", MAIN, STRIDED, SHAPE(B, N)), OUTSIDE);
}
#define EMBED_AS_F32(also)                                                               \
  rdna_op_embedding(stream, in("table", MAIN_OR(FLOATS | QUANTIZED), FREE, SHAPE(M, K)), \
                    in("ids", ONLY(RDNA_I32), 0, SHAPE(B)), out("out", ANY(RDNA_F32, also), 0, SHAPE(B, K)), NULL)
OPERATOR(embedding, f16, .types = BIT(RDNA_F16), .besides = PLAIN | QUANTIZED, .empty = "KB") {
  return EMBED_AS_F32(BIT(RDNA_F16));
}
OPERATOR(embedding, bf16, .types = BIT(RDNA_BF16), .besides = PLAIN | QUANTIZED, .empty = "KB") {
  return EMBED_AS_F32(BIT(RDNA_BF16));
}
OPERATOR(embedding, blocks, .types = QUANTIZED, .besides = PLAIN, .empty = "KB") { return EMBED_AS_F32(0); }
#define MODE(bad) (rdna_scatter) number("mode", RDNA_SCATTER_ADD, "0 1", bad)
OPERATOR(scatter, joined, .types = NUMBERS, .empty = "MB") {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), MODE("-1 7"), true, OUTSIDE);
}
OPERATOR(scatter, assigned, .types = PLAIN, .empty = "MB") {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), 1,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), RDNA_SCATTER_ASSIGN, true, OUTSIDE);
}
OPERATOR(scatter, last, .types = PLAIN) {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), 1,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), RDNA_SCATTER_LAST, true, OUTSIDE);
}
OPERATOR(scatter, mean, .types = NUMBERS - BIT(RDNA_BOOL)) {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), 1,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), RDNA_SCATTER_MEAN, true, OUTSIDE);
}
OPERATOR(scatter_value, plain, .types = PLAIN, .empty = "MB") {
  return rdna_op_scatter_value(stream, out("dst", MAIN_OR(PLAIN), STRIDED | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                               in("indices", ANY(RDNA_I64, INDICES), STRIDED | FREE << 1, SHAPE(M, B)), two, OUTSIDE);
}
OPERATOR(index_copy, plain, .types = NUMBERS, .empty = "MB") {
  return rdna_op_index_copy(stream, out("dst", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), DIM_OF_TWO, IDS("indices"),
                            in("src", MAIN, STRIDED, SHAPE(M, B)), MODE("-1 7"), true, OUTSIDE);
}
OPERATOR(index_fill, plain, .types = PLAIN, .empty = "MB") {
  return rdna_op_index_fill(stream, out("dst", MAIN_OR(PLAIN), STRIDED | MORE_DIMS | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                            in("indices", ANY(RDNA_I64, INDICES), STRIDED | FREE, SHAPE(B)), two, OUTSIDE);
}
OPERATOR(index_put, plain, .types = NUMBERS, .empty = "MB") {
  const rdna_tensor *indices[RDNA_MAX_RANK] = {NULL,
                                               in("indices[1] indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(B))};
  return rdna_op_index_put(stream, out("dst", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), given("indices", indices),
                           in("values", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, B)), MODE("-1 3 4 5 6 7"), OUTSIDE);
}
OPERATOR(embedding_backward, plain, .types = REALS, .empty = "NB") {
  return rdna_op_embedding_backward(stream, in("dout", MAIN, STRIDED, SHAPE(B, N)), IDS("ids"),
                                    (int64_t)number("padding", 1, "-1 0", "3 -2"), true,
                                    out("dtable", MAIN, STRIDED | FREE, SHAPE(M, N)), OUTSIDE);
}
OPERATOR(nonzero_count, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_nonzero_count(stream, in("x", MAIN_OR(PLAIN), ANY_PLACES, SHAPE(M, N)),
                               out("out", ONLY(RDNA_I64), 0, ONE));
}
OPERATOR(nonzero, plain, .types = PLAIN, .empty = "MNB") {
  return rdna_op_nonzero(stream, in("x", MAIN_OR(PLAIN), STRIDED | FREE_ALL, SHAPE(M, N)),
                         out("out", ONLY(RDNA_I64), FREE, SHAPE(B, 2)));
}
OPERATOR(masked_select, plain, .types = PLAIN, .empty = "MNB") {
  return rdna_op_masked_select(stream, in("x", MAIN, STRIDED, SHAPE(M, N)),
                               in("mask", ANY(RDNA_BOOL, BYTES), STRIDED, SHAPE(M, N)),
                               out("out", MAIN, FREE, SHAPE(B)));
}
OPERATOR(masked_scatter, plain, .types = PLAIN, .empty = "MNB") {
  return rdna_op_masked_scatter(stream, out("dst", MAIN, STRIDED, SHAPE(M, N)),
                                in("mask", ANY(RDNA_BOOL, BYTES), STRIDED, SHAPE(M, N)),
                                in("src", MAIN, STRIDED | FREE | MORE_DIMS | FEWER_DIMS, SHAPE(B)));
}

/* ---- loss.h ---- */
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
static const rdna_cross_entropy *cross_entropy(rdna_loss_reduction reduction) {
  static rdna_cross_entropy options;
  options = (rdna_cross_entropy){
      RDNA_CROSS_ENTROPY_INIT, .reduction = (rdna_loss_reduction)number("reduction", reduction, "", "-1 3"),
      .ignore_index = -100, .label_smoothing = (float)number("label_smoothing", 0.1, "0 1", "-0.1 1.1 nan")};
  return given("options", &options);
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

/* ---- optim.h ---- */
#define GRAD in("grad", MAIN_OR(FLOATS), 0, SHAPE(M, N))
#define STATE(name) out(name, ONLY(RDNA_F32), 0, SHAPE(M, N))
static rdna_status optimize(rdna_optim options, const rdna_optim_item *item) {
  options.learning_rate = (float)number("learning_rate", 0.1, "0", "-1 nan");
  options.weight_decay = (float)number("weight_decay", 0.1, "0", "-1 nan");
  options.step = (int64_t)number("step", 2, "1", "0 -1");
  return rdna_op_optim_step(stream, given("options", &options), given("items", item),
                            (int)number("count", 1, "0", "-1"), in("grad_scale", ONLY(RDNA_F32), OPTIONAL, ONE),
                            in("found_inf", ONLY(RDNA_F32), OPTIONAL, ONE));
}
OPERATOR(optim_step, sgd, .types = FLOATS, .empty = "MN") {
  return optimize(
      (rdna_optim){RDNA_OPTIM_INIT, .kind = (rdna_optim_kind)number("kind", RDNA_OPTIM_KIND_SGD, "", "-1 3"),
                   .momentum = (float)number("momentum", 0.9, "", "-1 nan")},
      &(rdna_optim_item){.param = STATE("param"), .grad = GRAD, .state = {STATE("state 0")}});
}
OPERATOR(optim_step, adam, .types = FLOATS, .empty = "MN") {
  return optimize(
      (rdna_optim){RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_ADAM, .beta1 = (float)number("beta1", 0.9, "0", "-1 1 nan"),
                   .beta2 = (float)number("beta2", 0.9, "0", "-1 1 nan"), .amsgrad = true,
                   .epsilon = number("epsilon", 1e-8, "0", "-1 nan")},
      &(rdna_optim_item){.param = STATE("param"),
                         .grad = GRAD,
                         .state = {STATE("state 0"), STATE("state 1"), STATE("state 2")},
                         .step = in("step", ONLY(RDNA_F32), OPTIONAL, ONE)});
}
OPERATOR(optim_step, rmsprop, .types = FLOATS, .empty = "MN") {
  return optimize(
      (rdna_optim){RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_RMSPROP, .beta1 = 0.9f, .momentum = 0.5f, .centered = true,
                   .epsilon = number("epsilon", 1e-8, "0", "-1 nan")},
      &(rdna_optim_item){
          .param = STATE("param"), .grad = GRAD, .state = {STATE("state 0"), STATE("state 1"), STATE("state 2")}});
}
OPERATOR(grad_norm, plain, .types = FLOATS, .empty = "MN") {
  const rdna_tensor *grads[] = {in("grad", MAIN_OR(FLOATS), FREE_ALL | MORE_DIMS | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_grad_norm(stream, given("grads", grads), (int)number("count", 1, "0", "-1"),
                           (float)number("largest", 1, "0 inf", "-1 nan"), out("norm", ONLY(RDNA_F32), 0, ONE),
                           out("factor", ONLY(RDNA_F32), OPTIONAL, ONE));
}
OPERATOR(grad_scale, plain, .types = FLOATS, .empty = "MN") {
  const rdna_tensor *grads[] = {out("grad", MAIN_OR(FLOATS), FREE_ALL | MORE_DIMS | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_grad_scale(stream, given("grads", grads), (int)number("count", 1, "0", "-1"),
                            in("factor", ONLY(RDNA_F32), 0, ONE), out("found_inf", ONLY(RDNA_F32), OPTIONAL, ONE));
}
static const rdna_tensor *const *no_tensors(void) { return NULL; }
OPERATOR(grad_norm, of_none, .types = F32) {
  return rdna_op_grad_norm(stream, no_tensors(), 0, 1, out("norm", ONLY(RDNA_F32), 0, ONE), NULL);
}
OPERATOR(grad_scale, of_none, .types = F32) {
  return rdna_op_grad_scale(stream, no_tensors(), 0, in("factor", ONLY(RDNA_F32), 0, ONE), NULL);
}

/* ---- quant.h ---- */
OPERATOR(dequantize, plain, .types = QUANTIZED, .empty = "MK") {
  return rdna_op_dequantize(stream, in("blocks", MAIN_OR(QUANTIZED), 0, SHAPE(M, K)),
                            out("out", ANY(RDNA_F32, FLOATS), ALIGNED, SHAPE(M, K)));
}
enum { ROUNDED = QUANTIZED - BIT(RDNA_IQ4_NL) - BIT(RDNA_IQ4_XS) - BIT(RDNA_MXFP4) };
OPERATOR(quantize, plain, .types = ROUNDED, .empty = "MK") {
  return rdna_op_quantize(stream, in("x", ONLY(RDNA_F32), ALIGNED, SHAPE(M, K)),
                          out("blocks", MAIN_OR(ROUNDED), 0, SHAPE(M, K)));
}
/* Weights (N, K) in groups of 128. */
#define WEIGHTS(kind, type, codes)                                                                            \
  given("weights",                                                                                            \
        &(rdna_quant_groups){RDNA_QUANT_GROUPS_INIT, kind("codes", ONLY(type), ALIGNED, SHAPE(N, K / codes)), \
                             kind("scales", ONLY(RDNA_F16), 0, SHAPE(N, K / 128)),                            \
                             kind("zeros", ONLY(type), OPTIONAL, SHAPE(N, K / 128))})
#define DEQUANTIZED out("out", ANY(RDNA_F32, FLOATS), ALIGNED, SHAPE(N, K))
OPERATOR(dequantize_groups, bytes, .empty = "N") {
  return rdna_op_dequantize_groups(stream, WEIGHTS(in, RDNA_I8, 1), DEQUANTIZED);
}
OPERATOR(dequantize_groups, nibbles, .empty = "N") {
  return rdna_op_dequantize_groups(stream, WEIGHTS(in, RDNA_U8, 2), DEQUANTIZED);
}
#define WITHOUT_ZEROS(kind)                                                     \
  &(rdna_quant_groups) {                                                        \
    RDNA_QUANT_GROUPS_INIT, kind("codes", ONLY(RDNA_I8), ALIGNED, SHAPE(N, K)), \
        kind("scales", ONLY(RDNA_F16), 0, SHAPE(N, K / 128)), NULL              \
  }
OPERATOR(dequantize_groups, without_zeros, .types = F32, .empty = "N") {
  return rdna_op_dequantize_groups(stream, WITHOUT_ZEROS(in), DEQUANTIZED);
}
#define QUANTIZED_X in("x", ONLY(RDNA_F32), 0, SHAPE(N, K))
OPERATOR(quantize_groups, bytes, .empty = "N") {
  return rdna_op_quantize_groups(stream, QUANTIZED_X, WEIGHTS(out, RDNA_I8, 1));
}
OPERATOR(quantize_groups, nibbles, .empty = "N") {
  return rdna_op_quantize_groups(stream, QUANTIZED_X, WEIGHTS(out, RDNA_U8, 2));
}
OPERATOR(quantize_groups, without_zeros, .types = F32, .empty = "N") {
  return rdna_op_quantize_groups(stream, QUANTIZED_X, WITHOUT_ZEROS(out));
}
#define LINEAR_GROUPS(type, codes)                                                                       \
  rdna_op_linear_quant_groups(stream, in("x", ONLY(RDNA_F32), 0, SHAPE(M, K)), WEIGHTS(in, type, codes), \
                              in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),                            \
                              out("out", ONLY(RDNA_F32), 0, SHAPE(M, N)))
OPERATOR(linear_quant_groups, bytes, .empty = "MN") { return LINEAR_GROUPS(RDNA_I8, 1); }
OPERATOR(linear_quant_groups, nibbles, .empty = "MN") { return LINEAR_GROUPS(RDNA_U8, 2); }

/* ---- rope.h: tokens M, heads B, heads of N, of which 4 are turned ---- */
static const rdna_rope *rope(void) {
  static rdna_rope r;
  r = (rdna_rope){RDNA_ROPE_INIT, .layout = (rdna_rope_layout)number("layout", RDNA_ROPE_LAYOUT_HALVES, "0", "-1 2"),
                  .positions = in("positions", ONLY(RDNA_I32), 0, SHAPE(M)),
                  .inv_freq = in("inv_freq", ONLY(RDNA_F32), FREE, SHAPE(2)), .scale = 1};
  return given("rope", &r);
}
#define HALF_OR_F32 (BIT(RDNA_F32) | BIT(RDNA_F16))
OPERATOR(rope, plain, .types = HALF_OR_F32, .empty = "MB", .same = "out=x") {
  return rdna_op_rope(stream, rope(), in("x", MAIN, 0, SHAPE(M, B, N)), out("out", MAIN, 0, SHAPE(M, B, N)));
}
OPERATOR(rope, a_table_too_long, .types = F32, .besides = BIT(RDNA_F16), .same = "out=x") {
  const rdna_rope r = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_HALVES, in("positions", ONLY(RDNA_I32), 0, SHAPE(M)),
                       in("inv_freq", ONLY(RDNA_F32), 0, SHAPE(N / 2)), 1};
  return rdna_op_rope(stream, &r, in("x", MAIN, 0, SHAPE(M, B, N)), out("out", MAIN, 0, SHAPE(M, B, N)));
}
#define KV(name) in(name, ONLY(RDNA_F32), 0, SHAPE(M, B, N))
#define CACHE(name) out(name, MAIN, 0, SHAPE(5, B, N))
#define CACHE_ROW in("cache_row", ONLY(RDNA_I32), 0, SHAPE(M))
OPERATOR(rope_kv_write, plain, .types = HALF_OR_F32, .empty = "MB") {
  return rdna_op_rope_kv_write(stream, rope(), KV("k"), KV("v"), CACHE_ROW, CACHE("k_cache"), CACHE("v_cache"));
}
OPERATOR(rope_qkv_write, plain, .types = HALF_OR_F32, .empty = "M") {
  return rdna_op_rope_qkv_write(stream, rope(), out("q", ONLY(RDNA_F32), FREE << 1, SHAPE(M, 4, N)), KV("k"), KV("v"),
                                CACHE_ROW, CACHE("k_cache"), CACHE("v_cache"));
}

/* ---- attention.h ---- */
static const rdna_attention *attention_options(void) {
  static rdna_attention a;
  a = (rdna_attention){RDNA_ATTENTION_INIT,
                       .scale = 1,
                       .softcap = (float)number("softcap", 0, "5", ""),
                       .window = (int32_t)number("window", 0, "3", "-1"),
                       .max_queries = (int32_t)number("max_queries", 1, "", "0 -1"),
                       .max_length = 5};
  return given("options", &a);
}
_Alignas(64) static char workspace[1 << 20];
#define CACHED(name) in(name, MAIN, ALIGNED, SHAPE(5, B, N))
#define OF_TOKENS(name) in(name, ONLY(RDNA_I32), 0, SHAPE(M))
#define QUERIES (int)number("rank", 3, "", "2 4"), (int64_t[]){M, 4, N, 1} /* of q and out together */
OPERATOR(attention, plain, .types = FLOATS, .empty = "M", .same = "out=q") {
  return rdna_op_attention(stream, attention_options(), in("q", ONLY(RDNA_F32), ALIGNED, QUERIES), CACHED("k_cache"),
                           CACHED("v_cache"), OF_TOKENS("cache_base"), OF_TOKENS("position"), workspace,
                           sizeof workspace, out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
OPERATOR(attention, caches_like_q, .types = FLOATS, .same = "out=q") {
  return rdna_op_attention(stream, attention_options(), in("q", ONLY(RDNA_F32), ALIGNED, QUERIES),
                           in("k_cache", MAIN, ALIGNED, SHAPE(M, 4, N)), in("v_cache", MAIN, ALIGNED, SHAPE(M, 4, N)),
                           OF_TOKENS("cache_base"), OF_TOKENS("position"), workspace, sizeof workspace,
                           out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
OPERATOR(attention, long_caches, .types = FLOATS, .same = "out=q") {
  const rdna_attention options = {RDNA_ATTENTION_INIT, .scale = 1, .max_queries = 1, .max_length = 1 << 20};
  size_t needed = rdna_op_attention_workspace(device, &options, M, 4, B, N);
  size_t size = (size_t)number("workspace", sizeof workspace, "", needed > 1 ? "0 1" : "");
  return rdna_op_attention(stream, &options, in("q", ONLY(RDNA_F32), ALIGNED, QUERIES), CACHED("k_cache"),
                           CACHED("v_cache"), OF_TOKENS("cache_base"), OF_TOKENS("position"), workspace, size,
                           out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
#define PAGED(name) in(name, MAIN, ALIGNED, SHAPE(5, 4, B, N))
OPERATOR(attention_paged, plain, .types = FLOATS, .empty = "M", .same = "out=q") {
  return rdna_op_attention_paged(
      stream, attention_options(), in("q", ONLY(RDNA_F32), ALIGNED, QUERIES), PAGED("k_cache"), PAGED("v_cache"),
      in("block_table", ONLY(RDNA_I32), FREE_ALL, SHAPE(2, 3)), OF_TOKENS("sequence"), OF_TOKENS("position"), workspace,
      sizeof workspace, out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
/* Queries and keys M, two heads of keys to four, N values each. */
static rdna_sdpa sdpa_options(void) {
  return (rdna_sdpa){RDNA_SDPA_INIT,
                     .scale = 1,
                     .softcap = (float)number("softcap", 0, "5", ""),
                     .dropout = (float)number("dropout", 0, "0.5", "-0.1 1 nan"),
                     .windowed = true,
                     .diagonal = (rdna_diagonal)number("diagonal", 0, "1", "-1 2"),
                     .left = (int32_t)number("left", 1, "0", "-1"),
                     .right = (int32_t)number("right", 1, "0", "-1")};
}
#define Q4 MAIN, STRIDED, SHAPE(B, 4, M, N)
#define K4 MAIN, STRIDED, SHAPE(B, 2, 5, N)
#define V4 MAIN, STRIDED, SHAPE(B, 2, 5, 16)
#define OUT4 MAIN, STRIDED, SHAPE(B, 4, M, 16)
#define LSE ONLY(RDNA_F32), 0, SHAPE(B, 4, M)
#define MASK MAIN_OR(F32 | BIT(RDNA_BOOL)), STRIDED | OPTIONAL, SHAPE(B, 4, M, 5)
OPERATOR(sdpa, plain, .types = FLOATS, .empty = "MB") {
  rdna_sdpa options = sdpa_options();
  options.mask = in("mask", MASK), options.slopes = in("slopes", ONLY(RDNA_F32), OPTIONAL | FEWER_DIMS, SHAPE(B, 4));
  return rdna_op_sdpa(stream, given("options", &options), in("q", Q4), in("k", K4), in("v", V4), out("out", OUT4),
                      out("lse", ONLY(RDNA_F32), OPTIONAL, SHAPE(B, 4, M)));
}
OPERATOR(sdpa_backward, plain, .types = FLOATS, .empty = "MB") {
  rdna_sdpa options = sdpa_options();
  options.mask = in("mask", MAIN, STRIDED, SHAPE(B, 4, M, 5)),
  options.slopes = in("slopes", ONLY(RDNA_F32), OPTIONAL | FEWER_DIMS, SHAPE(B, 4));
  return rdna_op_sdpa_backward(
      stream, given("options", &options), in("q", Q4), in("k", K4), in("v", V4), in("out", OUT4), in("lse", LSE),
      in("dout", OUT4), out("dq", MAIN, STRIDED | OPTIONAL, SHAPE(B, 4, M, N)),
      out("dk", MAIN, STRIDED | OPTIONAL, SHAPE(B, 2, 5, N)), out("dv", MAIN, STRIDED | OPTIONAL, SHAPE(B, 2, 5, 16)),
      out("dmask", MAIN, STRIDED | OPTIONAL, SHAPE(B, 4, M, 5)));
}
#define STARTS(name) in(name, ONLY(RDNA_I32), 0, SHAPE(B + 1))
OPERATOR(sdpa, of_rows, .types = FLOATS) {
  const rdna_sdpa options = {
      RDNA_SDPA_INIT,   .scale = 1,   .q_starts = STARTS("q_starts"), .k_starts = STARTS("k_starts"),
      .max_queries = 3, .max_keys = 3};
  return rdna_op_sdpa(stream, &options, in("q", MAIN, STRIDED, SHAPE(M, 4, N)), in("k", MAIN, STRIDED, SHAPE(5, 2, N)),
                      in("v", MAIN, STRIDED, SHAPE(5, 2, N)), out("out", MAIN, STRIDED, SHAPE(M, 4, N)),
                      out("lse", ONLY(RDNA_F32), OPTIONAL, SHAPE(4, M)));
}
OPERATOR(sdpa_backward, of_rows, .types = FLOATS) {
  const rdna_sdpa options = {
      RDNA_SDPA_INIT,   .scale = 1,   .q_starts = STARTS("q_starts"), .k_starts = STARTS("k_starts"),
      .max_queries = 3, .max_keys = 3};
#define ROWS_OF(heads, count) MAIN, STRIDED, SHAPE(count, heads, N)
  return rdna_op_sdpa_backward(stream, &options, in("q", ROWS_OF(4, M)), in("k", ROWS_OF(2, 5)), in("v", ROWS_OF(2, 5)),
                               in("out", ROWS_OF(4, M)), in("lse", ONLY(RDNA_F32), 0, SHAPE(4, M)),
                               in("dout", ROWS_OF(4, M)), out("dq", MAIN, STRIDED | OPTIONAL, SHAPE(M, 4, N)),
                               out("dk", MAIN, STRIDED | OPTIONAL, SHAPE(5, 2, N)),
                               out("dv", MAIN, STRIDED | OPTIONAL, SHAPE(5, 2, N)), NULL);
}

static bool has_row(const char *op_name, size_t length) {
  for (const row *r = rows; r; r = r->next) {
    if (strlen(r->op_name) == length && strncmp(r->op_name, op_name, length) == 0) return true;
  }
  return false;
}

/* The declarations of one header of rdna/op. */
static int look_for_rows(const char *path) {
  static char text[65536];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t length = fread(text, 1, sizeof text - 1, file);
  assert_true(feof(file) && fclose(file) == 0);
  text[length] = 0;
  static const char declared[] = "rdna_status rdna_op_";
  int found = 0;
  for (const char *at = text; (at = strstr(at, declared)) != NULL; found++) {
    at += sizeof declared - 1;
    size_t name = strcspn(at, "(");
    if (!has_row(at, name)) {
      printf("rdna_op_%.*s of %s has no row in arguments_test.c: add one\n", (int)name, at, path);
      complaints++;
    }
  }
  return found;
}

static void test_every_operator_has_a_row(void **state) {
  complaints = 0;
  int found = 0;
  DIR *folder = opendir(TEST_HEADERS);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char path[4096];
    if (!strstr(entry->d_name, ".h")) continue;
    snprintf(path, sizeof path, "%s/%s", TEST_HEADERS, entry->d_name);
    found += look_for_rows(path);
  }
  closedir(folder);
  assert_true(found > 100);
  assert_int_equal(complaints, 0);
}

/* A call that reads what it was not given ends the process: say which. */
static void tell_of_a_crash(int signal_number) {
  fflush(stdout);
  dprintf(1, "rdna_op_%s (%s): %s ends in signal %d\n", in_call->op_name, in_call->variant, what, signal_number);
  _exit(1);
}

static void test_arguments(void **state) {
  const char *only = getenv("RDNA_TEST_OPERATOR"); /* "gemm": its rows alone */
  complaints = 0;
  signal(SIGSEGV, tell_of_a_crash);
  signal(SIGFPE, tell_of_a_crash);
  set_sizes(0);
  for (const row *r = rows; r; r = r->next) {
    if (!only || strcmp(only, r->op_name) == 0) test_row(r);
  }
  printf("%ld calls\n", calls);
  assert_int_equal(complaints, 0);
}

int main(void) {
  unsetenv("RDNA_TEST_DEVICE"); /* checks are the same for every device, and the memory here is the host's */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator_has_a_row),
      cmocka_unit_test(test_arguments),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
