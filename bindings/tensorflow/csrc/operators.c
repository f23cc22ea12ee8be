/* Operators that TensorFlow has not: tensors shared by DLPack, and what the graph pass makes. */
#include "kernel.h"

static void any_shape(TF_ShapeInferenceContext *ctx, TF_Status *status) {
  tf.ShapeInferenceContextSetUnknownShape(ctx, status);
}

struct definition {
  const char *name;
  const char *attributes[12], *inputs[8], *output;
  bool stateful;
};

static const struct definition operators[] = {
    {"RdnaToDlpack", {"T: type"}, {"x: T"}, "managed: int64", true},
    {"RdnaFromDlpack", {"dtype: type", "versioned: bool"}, {"managed: int64"}, "x: dtype", true},
    {"RdnaMatMul",
     {"T: {float, half, bfloat16}", "transpose_a: bool = false", "transpose_b: bool = false", "activation: string",
      "shape_count: int >= 0 = 0"},
     {"a: T", "b: T", "bias: T", "shape: shape_count * int32"},
     "product: T",
     false},
    {"RdnaConv2D",
     {"T: {float, half, bfloat16}", "strides: list(int)", "padding: string", "explicit_paddings: list(int) = []",
      "data_format: string = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", "activation: string"},
     {"input: T", "filter: T", "bias: T"},
     "output: T",
     false},
    {"RdnaConv2DBatchNorm",
     {"T: {float}", "strides: list(int)", "padding: string", "explicit_paddings: list(int) = []",
      "data_format: string = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", "activation: string", "epsilon: float",
      "scale_count: int >= 0", "offset_count: int >= 0", "bias_count: int >= 0", "residual_count: int >= 0"},
     {"input: T", "filter: T", "mean: T", "variance: T", "scale: scale_count * T", "offset: offset_count * T",
      "bias: bias_count * T", "residual: residual_count * T"},
     "output: T",
     false},
    {"RdnaLayerNorm",
     {"T: {float, half, bfloat16}", "epsilon: float", "scale_count: int >= 0", "offset_count: int >= 0"},
     {"x: T", "scale: scale_count * T", "offset: offset_count * T"},
     "y: T",
     false},
};

void register_operators(TF_Status *status) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    const struct definition *o = &operators[i];
    TF_OpDefinitionBuilder *builder = tf.NewOpDefinitionBuilder(o->name);
    for (int k = 0; k < 12 && o->attributes[k]; k++) tf.OpDefinitionBuilderAddAttr(builder, o->attributes[k]);
    for (int k = 0; k < 8 && o->inputs[k]; k++) tf.OpDefinitionBuilderAddInput(builder, o->inputs[k]);
    tf.OpDefinitionBuilderAddOutput(builder, o->output);
    tf.OpDefinitionBuilderSetIsStateful(builder, o->stateful);
    tf.OpDefinitionBuilderSetShapeInferenceFunction(builder, any_shape);
    tf.RegisterOpDefinition(builder, status);
  }
}
