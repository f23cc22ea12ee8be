/* Every public operator refuses arguments that its header excludes, with a sentence that names them and nothing
 * written, and takes those at the edge of what the header allows. Each has a row: see arguments.h. */
#include "math/arguments.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

/* ---- norm.h ---- */
#define EPSILON number("epsilon", 1e-5, "0 1", "-1 nan inf")

OPERATOR(rms_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_rms_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)),
                          (float)EPSILON, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(add_rms_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_add_rms_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), out("residual", MAIN, 0, SHAPE(M, N)),
                              in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), (float)EPSILON,
                              out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(layer_norm, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_layer_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", MAIN, OPTIONAL, SHAPE(N)),
                            in("bias", MAIN, OPTIONAL, SHAPE(N)), (float)EPSILON, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(layer_norm, f32_rows, .types = FLOATS) {
  return rdna_op_layer_norm(stream, in("x", MAIN, 0, SHAPE(M, N)), in("weight", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)),
                            in("bias", ONLY(RDNA_F32), OPTIONAL, SHAPE(N)), 0, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(rms_norm_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=x") {
  return rdna_op_rms_norm_backward(stream, in("dout", MAIN, 0, SHAPE(M, N)), in("x", MAIN, 0, SHAPE(M, N)),
                                   in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), (float)EPSILON,
                                   out("dx", MAIN, 0, SHAPE(M, N)), out("dweight", MAIN_OR(F32), OPTIONAL, SHAPE(N)));
}
OPERATOR(layer_norm_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=x") {
  return rdna_op_layer_norm_backward(stream, in("dout", MAIN, 0, SHAPE(M, N)), in("x", MAIN, 0, SHAPE(M, N)),
                                     in("weight", MAIN_OR(F32), OPTIONAL, SHAPE(N)), (float)EPSILON, NULL, NULL,
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
                            in("bias", MAIN, OPTIONAL, CHANNELS), out("running_mean", MAIN, 0, CHANNELS),
                            out("running_var", MAIN, 0, CHANNELS), 0.1, EPSILON, out("out", MAIN, 0, IMAGES),
                            out("saved_mean", SUMS, 0, CHANNELS), out("saved_inverse", SUMS, 0, CHANNELS));
}
OPERATOR(batch_norm_backward, plain, .types = REALS, .empty = "MNB", .same = "dx=dout dx=x") {
  return rdna_op_batch_norm_backward(
      stream, in("dout", MAIN, 0, IMAGES), in("x", MAIN, 0, IMAGES), in("weight", MAIN_OR(F32), OPTIONAL, CHANNELS),
      in("saved_mean", SUMS, 0, CHANNELS), in("saved_inverse", SUMS, 0, CHANNELS), out("dx", MAIN, OPTIONAL, IMAGES),
      out("dweight", MAIN, OPTIONAL, CHANNELS), out("dbias", MAIN, OPTIONAL, CHANNELS));
}
OPERATOR(batch_norm_inference, plain, .types = REALS, .empty = "MNB", .same = "out=x") {
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
OPERATOR(group_norm, groups, .types = REALS) {
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
  c = (rdna_convolution){.dims = (int)number("dims", 2, "", "0 4"),
                         .stride = {(int64_t)number("stride", 1, "", "0 -1"), 1},
                         .before = {(int64_t)number("padding", 0, "", "-1"), 0},
                         .after = {0, (int64_t)number("padding", 0, "", "-1")},
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

/* ---- elementwise.h ---- */
OPERATOR(binary, plain, .types = FLOATS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_binary(stream, (rdna_binary)number("op", RDNA_MUL, "0 3", "-1 4"), in("a", MAIN, 0, SHAPE(M, N)),
                        in("b", MAIN, FEWER_DIMS, SHAPE(M, N)), out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(binary, row, .types = FLOATS, .empty = "MN", .same = "out=a") {
  return rdna_op_binary(stream, RDNA_ADD, in("a", MAIN, 0, SHAPE(M, N)), in("b", MAIN, 0, SHAPE(N)),
                        out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(unary, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_unary(stream, (rdna_unary)number("op", RDNA_EXP, "0 7", "-1 8"), in("x", MAIN, 0, SHAPE(M, N)),
                       out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(affine, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_affine(stream, in("x", MAIN, 0, SHAPE(M, N)), 2, 3, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(swiglu, plain, .types = FLOATS, .empty = "MN", .same = "out=gate out=up") {
  return rdna_op_swiglu(stream, in("gate", MAIN, 0, SHAPE(M, N)), in("up", MAIN, 0, SHAPE(M, N)),
                        out("out", MAIN, 0, SHAPE(M, N)));
}

/* ---- fused.h ---- */
OPERATOR(fused, plain, .types = FLOATS, .empty = "MN", .same = "out=input_0 out=input_1") {
  static rdna_fused_step steps[RDNA_FUSED_MAX_STEPS + 1];
  for (int i = 0; i <= RDNA_FUSED_MAX_STEPS; i++) steps[i] = (rdna_fused_step){.op = RDNA_MAP_ABS};
  steps[1] = (rdna_fused_step){.op = (int)number("step 1", RDNA_ZIP_ADD, "", "-1 1000"),
                               .is_zip = true,
                               .input = (int)number("input", 1, "0", "-1 2")};
  const rdna_tensor *inputs[] = {in("input 0", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)),
                                 in("input 1", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_fused(stream, given("steps", steps), (int)number("steps", 2, "8", "0 -1 9"), given("inputs", inputs),
                       (int)number("inputs", 2, "", "0 -1 7"), out("out", MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)));
}

/* ---- gemm.h ---- */
#define HALVES (BIT(RDNA_F16) | BIT(RDNA_BF16))
OPERATOR(gemm, plain, .types = REALS, .empty = "MNK") {
  return rdna_op_gemm(stream, 1, in("a", MAIN, STRIDED, SHAPE(M, K)), in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)),
                      0, in("bias", MAIN, OPTIONAL, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm, batched, .types = HALVES, .empty = "MNKB") {
  return rdna_op_gemm(stream, 1, in("a", MAIN, STRIDED, SHAPE(B, M, K)), in("b", MAIN, STRIDED, SHAPE(B, K, N)), 1,
                      NULL, out("c", MAIN_OR(F32), 0, SHAPE(B, M, N)));
}
OPERATOR(gemm_epilogue, plain, .types = REALS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {.alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)),
                                       .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_epilogue(stream, given("epilogue", &epilogue), in("a", MAIN, STRIDED, SHAPE(M, K)),
                               in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_epilogue, bias_of_rows, .types = REALS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {.alpha = 1, .bias = in("bias", MAIN, OPTIONAL, SHAPE(M)), .bias_of_rows = 1};
  return rdna_op_gemm_epilogue(stream, &epilogue, in("a", MAIN, STRIDED, SHAPE(M, K)),
                               in("b", FIRST_OR(HALVES), STRIDED, SHAPE(K, N)), out("c", MAIN, 0, SHAPE(M, N)));
}
#define A_I8 in("a", ONLY(RDNA_I8), STRIDED, SHAPE(M, K))
#define B_I8 in("b", ONLY(RDNA_I8), STRIDED, SHAPE(K, N))
OPERATOR(gemm_i8, floats, .types = FLOATS, .empty = "MNK") {
  const rdna_gemm_epilogue epilogue = {.alpha = 1,
                                       .bias = in("bias", MAIN, OPTIONAL, SHAPE(N)),
                                       .activation = ACTIVATION,
                                       .residual = in("residual", MAIN, OPTIONAL, SHAPE(M, N))};
  return rdna_op_gemm_i8(stream, &epilogue, A_I8, in("scale_a", ONLY(RDNA_F32), 0, SHAPE(M)), B_I8,
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(N)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_i8, one_scale, .types = FLOATS) {
  return rdna_op_gemm_i8(stream, NULL, A_I8, in("scale_a", ONLY(RDNA_F32), 0, SHAPE(1)), B_I8,
                         in("scale_b", ONLY(RDNA_F32), 0, SHAPE(1)), out("c", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(gemm_i8, integers, .empty = "MNK") {
  return rdna_op_gemm_i8(stream, NULL, A_I8, NULL, B_I8, NULL, out("c", ONLY(RDNA_I32), 0, SHAPE(M, N)));
}

/* ---- linear.h ---- */
#define BLOCKS_OF_256 (BIT(RDNA_Q4_K) | BIT(RDNA_Q6_K) | BIT(RDNA_Q2_K) | BIT(RDNA_Q3_K) | BIT(RDNA_Q5_K))
#define LINEAR(x_type, w_type, out_type)                                         \
  stream, in("x", x_type, 0, SHAPE(M, K)), in("weight", w_type, 0, SHAPE(N, K)), \
      in("bias", out_type, OPTIONAL, SHAPE(N)), out("out", out_type, 0, SHAPE(M, N))
OPERATOR(linear, f32, .types = F32, .empty = "MNK") {
  return rdna_op_linear(LINEAR(MAIN, ANY(RDNA_F32, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear, halves, .types = HALVES, .empty = "MNK") { return rdna_op_linear(LINEAR(MAIN, MAIN, MAIN)); }
OPERATOR(linear, blocks, .types = QUANTIZED, .empty = "MN") {
  return rdna_op_linear(LINEAR(ONLY(RDNA_F32), MAIN_OR(FLOATS | QUANTIZED), ONLY(RDNA_F32)));
}
OPERATOR(linear_add, f32, .types = F32, .empty = "MNK") {
  return rdna_op_linear_add(LINEAR(MAIN, ANY(RDNA_F32, FLOATS | QUANTIZED), MAIN));
}
OPERATOR(linear_add, halves, .types = HALVES, .empty = "MNK") { return rdna_op_linear_add(LINEAR(MAIN, MAIN, MAIN)); }
OPERATOR(linear_add, blocks, .types = QUANTIZED, .empty = "MN") {
  return rdna_op_linear_add(LINEAR(ONLY(RDNA_F32), MAIN_OR(FLOATS | QUANTIZED), ONLY(RDNA_F32)));
}

/* ---- pointwise.h ---- */
#define VALUES_IN MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)
#define VALUES_OUT MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)
static const rdna_scalar two = {2, 2};
OPERATOR(map, numbers, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  return rdna_op_map(stream, (rdna_map)number("op", RDNA_MAP_ABS, "1 5", "-1 38"), in("x", VALUES_IN), two, two,
                     out("out", VALUES_OUT));
}
OPERATOR(map, integers, .types = INTEGERS) {
  return rdna_op_map(stream, RDNA_MAP_BITWISE_NOT, in("x", VALUES_IN), two, two, out("out_", VALUES_OUT));
}
OPERATOR(map, reals, .types = REALS) {
  return rdna_op_map(stream, RDNA_MAP_EXP, in("x", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip, numbers, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_zip(stream, (rdna_zip)number("op", RDNA_ZIP_ADD, "1 11", "-1 34"), in("a", VALUES_IN),
                     in("b", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip, reals, .types = REALS, .same = "out=a out=b") {
  return rdna_op_zip(stream, RDNA_ZIP_LERP, in("a", VALUES_IN), in("b", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip_scalar, plain, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  return rdna_op_zip_scalar(stream, (rdna_zip)number("op", RDNA_ZIP_ADD, "1 11", "-1 34"), in("x", VALUES_IN), two,
                            number("scalar_first", 0, "1", "") != 0, two, two, out("out", VALUES_OUT));
}
OPERATOR(zip3, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b out=c") {
  return rdna_op_zip3(stream, (rdna_zip3)number("op", RDNA_ZIP3_FMA, "1 2", "-1 5"), in("a", VALUES_IN),
                      in("b", VALUES_IN), in("c", VALUES_IN), two, out("out", VALUES_OUT));
}
OPERATOR(compare, two, .types = PLAIN, .empty = "MN") {
  return rdna_op_compare(stream, (rdna_compare)number("op", RDNA_LT, "0 8", "-1 13"), in("a", VALUES_IN),
                         in("b", VALUES_IN), out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(compare, one, .types = PLAIN, .empty = "MN") {
  return rdna_op_compare(stream, (rdna_compare)number("op", RDNA_ISNAN, "9 11 12", ""), in("a", VALUES_IN), NULL,
                         out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(compare_scalar, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_compare_scalar(stream, (rdna_compare)number("op", RDNA_LT, "0 8", "-1 13"), in("a", VALUES_IN), two,
                                out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
#define CONDITION in("condition", ONLY(RDNA_BOOL), STRIDED | FEWER_DIMS, SHAPE(M, N))
OPERATOR(where, plain, .types = PLAIN, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_where(stream, CONDITION, in("a", VALUES_IN), in("b", VALUES_IN), out("out", VALUES_OUT));
}
OPERATOR(masked_fill, plain, .types = PLAIN, .empty = "MN", .same = "out=b") {
  return rdna_op_masked_fill(stream, CONDITION, two, in("b", VALUES_IN), out("out", VALUES_OUT));
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
  const rdna_tensor *inputs[] = {in("input 0", MAIN, STRIDED, SHAPE(M, N)), in("input 1", MAIN, STRIDED, SHAPE(2, N))};
  return rdna_op_cat(stream, given("inputs", inputs), (int)number("count", 2, "", "-1"),
                     (int)number("dimension", 0, "-2", "2 -3"), out("out", MAIN, STRIDED, SHAPE(M + 2, N)));
}
OPERATOR(flip, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_flip(stream, in("x", MAIN, STRIDED, SHAPE(M, N)), (uint32_t)number("dimensions", 1, "0 3", "4"),
                      out("out", MAIN, STRIDED, SHAPE(M, N)));
}
OPERATOR(pad, constant, .types = PLAIN, .empty = "MN") {
  static const int64_t before[] = {1, -1};
  return rdna_op_pad(stream, (rdna_pad_mode)number("mode", RDNA_PAD_CONSTANT, "", "-1 4"),
                     in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), given("before", before), two,
                     out("out", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)));
}
OPERATOR(pad, reflect, .types = PLAIN) {
  const int64_t before[] = {(int64_t)number("before", 2, "-1", "3 -10"), 0};
  return rdna_op_pad(stream, RDNA_PAD_REFLECT, in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), before, two,
                     out("out", MAIN, STRIDED | FREE_ALL, SHAPE(M + 2, N)));
}
OPERATOR(pad, circular, .types = PLAIN) {
  const int64_t before[] = {(int64_t)number("before", 2, "3 -1", "4 -10"), 0};
  return rdna_op_pad(stream, RDNA_PAD_CIRCULAR, in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), before, two,
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
OPERATOR(cast, plain, .types = PLAIN, .empty = "MN", .same = "out=x") {
  return rdna_op_cast(stream, in("x", MAIN_OR(PLAIN), 0, SHAPE(M, N)), out("out", MAIN_OR(PLAIN), 0, SHAPE(M, N)));
}
OPERATOR(cast_saturating, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_cast_saturating(stream, in("x", MAIN, 0, SHAPE(M, N)),
                                 out("out", ANY(RDNA_F8_E4M3FN, FLOATS8), 0, SHAPE(M, N)));
}

/* ---- reduce.h ---- */
OPERATOR(argmax_rows, plain, .empty = "M", .never_empty = "N") {
  return rdna_op_argmax_rows(stream, in("x", MAIN, FREE << 1, SHAPE(M, N)), out("out", ONLY(RDNA_I32), 0, SHAPE(M)));
}
OPERATOR(sum_rows, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_sum_rows(stream, in("x", MAIN_OR(FLOATS), FREE << 1, SHAPE(M, N)),
                          out("out", ONLY(RDNA_F32), 0, SHAPE(M)));
}
OPERATOR(mean_rows, plain, .types = FLOATS, .empty = "MN") {
  return rdna_op_mean_rows(stream, in("x", MAIN_OR(FLOATS), FREE << 1, SHAPE(M, N)),
                           out("out", ONLY(RDNA_F32), 0, SHAPE(M)));
}
OPERATOR(max_rows, plain, .types = FLOATS, .empty = "M", .never_empty = "N") {
  return rdna_op_max_rows(stream, in("x", MAIN_OR(FLOATS), FREE << 1, SHAPE(M, N)),
                          out("out", ONLY(RDNA_F32), 0, SHAPE(M)));
}

/* ---- reduce_dims.h ---- */
#define REDUCED (REALS | INDICES | BYTES)
#define REDUCE_X in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N))
OPERATOR(reduce, sum, .types = FLOATS, .empty = "MN") {
  return rdna_op_reduce(stream, (rdna_reduction)number("reduction", RDNA_REDUCE_SUM, "1 2 3 4 10 11 12", "-1 13"),
                        (uint32_t)number("axes", 2, "", "4 6"), 0,
                        in("x", MAIN_OR(F32), STRIDED | FREE << 1, SHAPE(M, N)), out("out", MAIN_OR(F32), 0, SHAPE(M)));
}
OPERATOR(reduce, f64, .types = F64) {
  return rdna_op_reduce(stream, RDNA_REDUCE_MEAN, 2, 0, REDUCE_X, out("out", MAIN, 0, SHAPE(M)));
}
OPERATOR(reduce, sum_of_integers, .types = INDICES | BYTES, .empty = "MN") {
  return rdna_op_reduce(stream, RDNA_REDUCE_SUM, 2, 0,
                        in("x", MAIN_OR(INDICES | BYTES), STRIDED | FREE << 1, SHAPE(M, N)),
                        out("out", ONLY(RDNA_I64), 0, SHAPE(M)));
}
OPERATOR(reduce, max, .types = REDUCED, .empty = "M", .never_empty = "N") {
  return rdna_op_reduce(stream, RDNA_REDUCE_MAX, 2, 0, in("x", MAIN_OR(0), STRIDED | FREE << 1, SHAPE(M, N)),
                        out("out", MAIN_OR(0), 0, SHAPE(M)));
}
OPERATOR(reduce, argmax, .types = REDUCED, .empty = "M", .never_empty = "N") {
  return rdna_op_reduce(stream, RDNA_REDUCE_ARGMAX, 2, 0, in("x", MAIN_OR(REDUCED), STRIDED | FREE << 1, SHAPE(M, N)),
                        out("out", ANY(RDNA_I64, INDICES), 0, SHAPE(M)));
}
OPERATOR(reduce, any, .types = REDUCED, .empty = "MN") {
  return rdna_op_reduce(stream, RDNA_REDUCE_ANY, 2, 0, in("x", MAIN_OR(REDUCED), STRIDED | FREE << 1, SHAPE(M, N)),
                        out("out", ANY(RDNA_BOOL, BYTES), 0, SHAPE(M)));
}
OPERATOR(reduce, norm, .types = FLOATS, .empty = "MN") {
  return rdna_op_reduce(stream, RDNA_REDUCE_NORM, 2, number("parameter", 2, "0 1 1.5 inf", "-1 nan"),
                        in("x", MAIN_OR(F32), STRIDED | FREE << 1, SHAPE(M, N)), out("out", MAIN_OR(F32), 0, SHAPE(M)));
}

/* ---- scan.h, softmax.h ---- */
#define SCANNED (FLOATS | F64 | INDICES)
#define DIM (int)number("dim", 1, "0", "2 -3")
#define SCAN(name) rdna_op_##name(stream, DIM, in("x", MAIN, 0, SHAPE(M, N)), out("out", MAIN, 0, SHAPE(M, N)))
OPERATOR(cumsum, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cumsum); }
OPERATOR(cumprod, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cumprod); }
OPERATOR(cummax, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cummax); }
OPERATOR(cummin, plain, .types = SCANNED, .empty = "MN", .same = "out=x") { return SCAN(cummin); }
OPERATOR(logcumsumexp, plain, .types = FLOATS, .empty = "MN", .same = "out=x") { return SCAN(logcumsumexp); }
#define SCAN_INDICES(name)                                                                        \
  rdna_op_##name(stream, DIM, in("x", MAIN, 0, SHAPE(M, N)), out("values", MAIN, 0, SHAPE(M, N)), \
                 out("indices", ONLY(RDNA_I64), 0, SHAPE(M, N)))
OPERATOR(cummax_indices, plain, .types = PLAIN, .empty = "MN", .same = "values=x") {
  return SCAN_INDICES(cummax_indices);
}
OPERATOR(cummin_indices, plain, .types = PLAIN, .empty = "MN", .same = "values=x") {
  return SCAN_INDICES(cummin_indices);
}

OPERATOR(softmax, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_softmax(stream, in("x", MAIN, 0, SHAPE(M, N)), 1, out("out", MAIN, 0, SHAPE(M, N)));
}
OPERATOR(log_softmax, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return rdna_op_log_softmax(stream, in("x", MAIN, 0, SHAPE(M, N)), 1, out("out", MAIN, 0, SHAPE(M, N)));
}
#define DIMENSION (int)number("dimension", 0, "1 -1 -2", "2 -3")
#define ALONG(name, strides) \
  rdna_op_##name(stream, in("x", MAIN, strides, SHAPE(M, N)), DIMENSION, 1, out("out", MAIN, strides, SHAPE(M, N)))
OPERATOR(softmax_along, plain, .types = FLOATS, .empty = "MN", .same = "out=x") { return ALONG(softmax_along, 0); }
OPERATOR(softmax_along, f64, .types = F64, .empty = "MN", .same = "out=x") { return ALONG(softmax_along, STRIDED); }
OPERATOR(log_softmax_along, plain, .types = FLOATS, .empty = "MN", .same = "out=x") {
  return ALONG(log_softmax_along, 0);
}
OPERATOR(log_softmax_along, f64, .types = F64, .empty = "MN", .same = "out=x") {
  return ALONG(log_softmax_along, STRIDED);
}
#define BACK_ALONG(name, strides)                                                                                     \
  rdna_op_##name(stream, in("dout", MAIN, strides, SHAPE(M, N)), in("out", MAIN, strides, SHAPE(M, N)), DIMENSION, 1, \
                 out("dx", MAIN, strides, SHAPE(M, N)))
OPERATOR(softmax_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(softmax_backward, 0);
}
OPERATOR(softmax_backward, f64, .types = F64, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(softmax_backward, STRIDED);
}
OPERATOR(log_softmax_backward, plain, .types = FLOATS, .empty = "MN", .same = "dx=dout dx=out") {
  return BACK_ALONG(log_softmax_backward, 0);
}
OPERATOR(log_softmax_backward, f64, .types = F64, .empty = "MN", .same = "dx=dout dx=out") {
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
  return rdna_op_topk(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), (int)number("dim", 1, "", "2 -3"), true,
                      out("values", MAIN, STRIDED | OPTIONAL, SHAPE(M, 4)),
                      out("indices", ONLY(RDNA_I64), STRIDED | OPTIONAL, SHAPE(M, 4)));
}
OPERATOR(topk, values, .types = PLAIN) {
  int64_t k = (int64_t)number("values", 4, "0 1 8", "9");
  return rdna_op_topk(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), 1, true,
                      out("values", MAIN, STRIDED | FREE << 1, SHAPE(M, k)), NULL);
}
OPERATOR(kth_value, plain, .types = PLAIN, .empty = "M") {
  return rdna_op_kth_value(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)),
                           (int64_t)number("k", 2, "1 8", "0 -1 9"), (int)number("dim", 1, "", "2 -3"),
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
  return rdna_op_random_uniform(stream, 1, 2, 0, (float)number("high", 1, "", "-1 nan inf"), DRAWN);
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
OPERATOR(random_integers, i32, .types = BIT(RDNA_I32)) {
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
static const rdna_pool *pooling(bool average) {
  static rdna_pool p;
  p = (rdna_pool){.dims = (int)number("dims", 2, "", "0 4"),
                  .window = {2, (int64_t)number("window", 2, "", "0 -1")},
                  .stride = {(int64_t)number("stride", 2, "", "0 -1"), 2},
                  .before = {(int64_t)number("padding", 0, "", "-1"), 0},
                  .dilation = {1, (int64_t)number("dilation", 1, "", average ? "0 -1 2" : "0 -1")}};
  return given("pool", &p);
}
#define POOL_X MAIN, STRIDED, SHAPE(M, N, 6, 8)
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
  how = (rdna_upsample){.mode = (rdna_upsample_mode)number("mode", RDNA_UPSAMPLE_LINEAR, "0 1 3", "-1 4"),
                        .factor = {number("factor", 0, "1.5", "-1 nan inf")}};
  return given("how", &how);
}
OPERATOR(upsample, plain, .types = REALS, .empty = "MN") {
  return rdna_op_upsample(stream, resampling(), in("x", MAIN, ADAPTED, SHAPE(M, N, 3, 4)),
                          out("out", MAIN, ADAPTED, SHAPE(M, N, 6, 8)));
}
OPERATOR(upsample_backward, plain, .types = REALS, .empty = "MN") {
  return rdna_op_upsample_backward(stream, resampling(), in("dout", MAIN, ADAPTED, SHAPE(M, N, 6, 8)),
                                   out("dx", MAIN, ADAPTED, SHAPE(M, N, 3, 4)));
}

static bool has_row(const char *operator, size_t length) {
  for (const row *r = rows; r; r = r->next) {
    if (strlen(r->operator) == length && strncmp(r->operator, operator, length) == 0) return true;
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
  fflush(stdout); /* best effort: what was said so far is worth more than being safe here */
  dprintf(1, "rdna_op_%s (%s): %s ends in signal %d\n", in_call->operator, in_call->variant, what, signal_number);
  _exit(1);
}

static void test_arguments(void **state) {
  const char *only = getenv("RDNA_TEST_OPERATOR");
  complaints = 0;
  signal(SIGSEGV, tell_of_a_crash);
  signal(SIGFPE, tell_of_a_crash);
  set_sizes(0);
  for (const row *r = rows; r; r = r->next) {
    if (!only || strcmp(only, r->operator) == 0) test_row(r);
  }
  printf("%ld calls\n", calls);
  assert_int_equal(complaints, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator_has_a_row),
      cmocka_unit_test(test_arguments),
  };
  return cmocka_run_group_tests(tests, test_device_open, test_device_close);
}
