#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/recurrent/gate_kernels.h"
#include "rdna/op/recurrent.h"

enum { NORM, SIGMOID };
static const rdna__route routes[] = {
    [NORM] = {.name = "norm", .kernels = {"rms_norm_gated_{float}"}, .when = "rms_norm_gated: a wave has a row"},
    [SIGMOID] = {.name = "sigmoid", .kernels = {"mul_sigmoid_{float}"}, .when = "mul_sigmoid"},
};
RDNA_FIXED_ROUTES(rdna__gate_routes, "rms_norm_gated, mul_sigmoid", routes)

static rdna_status check_heads(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  RDNA_TRY(rdna__check_rank(op_name, argument, tensor, 3));
  return rdna__check_dense_tail(op_name, argument, tensor, 1);
}

/* Checks what both operators have, and fills in their arguments. */
static rdna_status check_gate(const char *op_name, const rdna_tensor *x, const rdna_tensor *gate,
                              const rdna_tensor *out, struct gate_args *out_args) {
  RDNA_TRY(check_heads(op_name, "x", x));
  RDNA_TRY(check_heads(op_name, "gate", gate));
  RDNA_TRY(check_heads(op_name, "out", out));
  RDNA_TRY(rdna__check_dtype(op_name, "x", x, RDNA_F32));
  RDNA_TRY(rdna__check_dtype(op_name, "gate", gate, RDNA_F32));
  RDNA_TRY(rdna__check_float(op_name, "out", out));
  RDNA_TRY(rdna__check_same_shape(op_name, "out", out, "x", x));
  RDNA_TRY(rdna__check_distinct(op_name, out));
  RDNA_TRY((out->dtype == RDNA_F32 ? rdna__check_overlap : rdna__check_apart)(op_name, "out", out, "x", x));
  if (rdna_tensor_count(x) > INT32_MAX) {
    char text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x is %s; up to %d values are offered", op_name, rdna__tensor_text(x, text),
                      INT32_MAX);
  }
  *out_args = (struct gate_args){.x = x->data,
                                 .gate = gate->data,
                                 .out = out->data,
                                 .x_at = {x->stride[0], x->stride[1]},
                                 .gate_at = {gate->stride[0], gate->stride[1]},
                                 .out_at = {out->stride[0], out->stride[1]},
                                 .rows = x->shape[2] ? x->shape[0] * x->shape[1] : 0,
                                 .heads = (int32_t)x->shape[1],
                                 .d = (int32_t)x->shape[2]};
  return RDNA_OK;
}

rdna_status rdna_op_rms_norm_gated(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *gate,
                                   const rdna_tensor *weight, double epsilon, const rdna_tensor *out) {
  static const char op_name[] = "rms_norm_gated";
  struct gate_args args;
  RDNA_TRY(check_gate(op_name, x, gate, out, &args));
  RDNA_TRY(rdna__check_same_shape(op_name, "gate", gate, "x", x));
  RDNA_TRY((out->dtype == RDNA_F32 ? rdna__check_overlap : rdna__check_apart)(op_name, "out", out, "gate", gate));
  RDNA_TRY(rdna__check_epsilon(op_name, epsilon));
  if (weight) {
    RDNA_TRY(rdna__check_tensor(op_name, "weight", weight));
    RDNA_TRY(rdna__check_dtype(op_name, "weight", weight, RDNA_F32));
    RDNA_TRY(rdna__check_rank(op_name, "weight", weight, 1));
    RDNA_TRY(rdna__check_size(op_name, "weight", weight, 0, x->shape[2], "the length of a head"));
    RDNA_TRY(rdna__check_contiguous(op_name, "weight", weight));
    RDNA_TRY(rdna__check_apart(op_name, "out", out, "weight", weight));
    args.weight = weight->data;
  }
  args.epsilon = (float)epsilon;
  RDNA_TRY(rdna__check_stream(op_name, stream));
  rdna_grid grid = {rdna__groups_of_waves(stream, args.rows, args.d * (int64_t)sizeof(float), GATE_THREADS), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &routes[NORM], 0, grid, &args, rdna_dtype_name(out->dtype));
}

rdna_status rdna_op_mul_sigmoid(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *gate,
                                const rdna_tensor *out) {
  static const char op_name[] = "mul_sigmoid";
  struct gate_args args;
  RDNA_TRY(check_gate(op_name, x, gate, out, &args));
  args.one_gate = gate->shape[2] == 1 && x->shape[2] != 1;
  if (args.one_gate) {
    RDNA_TRY(rdna__check_size(op_name, "gate", gate, 0, x->shape[0], "the number of tokens"));
    RDNA_TRY(rdna__check_size(op_name, "gate", gate, 1, x->shape[1], "the number of heads"));
    RDNA_TRY(rdna__check_apart(op_name, "out", out, "gate", gate));
  } else {
    RDNA_TRY(rdna__check_same_shape(op_name, "gate", gate, "x", x));
    RDNA_TRY((out->dtype == RDNA_F32 ? rdna__check_overlap : rdna__check_apart)(op_name, "out", out, "gate", gate));
  }
  RDNA_TRY(rdna__check_stream(op_name, stream));
  rdna_grid grid = {rdna__groups_in_turn(rdna__divide_up(args.rows * args.d, GATE_THREADS * 4)), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &routes[SIGMOID], 0, grid, &args, rdna_dtype_name(out->dtype));
}
