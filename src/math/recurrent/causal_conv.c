#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/recurrent/causal_conv_kernels.h"
#include "math/recurrent/check_sequences.h"

static const rdna__route routes[] = {
    {.name = "conv", .kernels = {"causal_conv_{2|3|4}"}, .when = "by the width: a thread has a channel"},
};
RDNA_FIXED_ROUTES(rdna__causal_conv_routes, "causal_conv", routes)

static const char op_name[] = "causal_conv";

/* Checks (tokens, channels) of f32 with rows that are dense. */
static rdna_status check_rows(const char *argument, const rdna_tensor *rows) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, rows));
  RDNA_TRY(rdna__check_dtype(op_name, argument, rows, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, argument, rows, 2));
  return rdna__check_dense_tail(op_name, argument, rows, 1);
}

static rdna_status check_weight(const rdna_tensor *weight, int64_t channels) {
  RDNA_TRY(rdna__check_tensor(op_name, "weight", weight));
  RDNA_TRY(rdna__check_dtype(op_name, "weight", weight, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, "weight", weight, 2));
  RDNA_TRY(rdna__check_contiguous(op_name, "weight", weight));
  RDNA_TRY(rdna__check_size(op_name, "weight", weight, 0, channels, "the number of channels"));
  if (weight->shape[1] >= 2 && weight->shape[1] <= 4) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: weight has a width of %lld; those offered are 2, 3 and 4", op_name,
                    (long long)weight->shape[1]);
}

static rdna_status check_state(const rdna_tensor *state, int64_t channels, int64_t width) {
  RDNA_TRY(rdna__check_tensor(op_name, "state", state));
  RDNA_TRY(rdna__check_dtype(op_name, "state", state, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, "state", state, 3));
  RDNA_TRY(rdna__check_contiguous(op_name, "state", state));
  RDNA_TRY(rdna__check_size(op_name, "state", state, 1, channels, "the number of channels"));
  return rdna__check_size(op_name, "state", state, 2, width - 1, "the width less one");
}

static rdna_status check_activation(rdna_activation activation) {
  if ((unsigned)activation >= RDNA_ACTIVATION_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the activation is number %d; there are 0 to %d", op_name,
                      (int)activation, RDNA_ACTIVATION_COUNT - 1);
  }
  if (activation == RDNA_ACTIVATION_NONE || activation == RDNA_ACTIVATION_SILU) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: the activation is number %d; those offered are none (%d) and SiLU (%d)",
                    op_name, (int)activation, RDNA_ACTIVATION_NONE, RDNA_ACTIVATION_SILU);
}

rdna_status rdna_op_causal_conv(rdna_stream *stream, const rdna_sequences *sequences, const rdna_tensor *x,
                                const rdna_tensor *weight, rdna_activation activation, const rdna_tensor *state,
                                const rdna_tensor *out) {
  rdna_sequences known;
  RDNA_TRY(check_rows("x", x));
  RDNA_TRY(check_rows("out", out));
  RDNA_TRY(rdna__check_same_shape(op_name, "out", out, "x", x));
  RDNA_TRY(rdna__check_written_rows(op_name, "out", out, out->shape[0], out->shape[1], out->stride[0]));
  RDNA_TRY(check_weight(weight, x->shape[1]));
  RDNA_TRY(check_state(state, x->shape[1], weight->shape[1]));
  RDNA_TRY(check_activation(activation));
  struct causal_conv_args args = {.x = x->data,
                                  .weight = weight->data,
                                  .state = state->data,
                                  .out = out->data,
                                  .x_stride = x->stride[0],
                                  .out_stride = out->stride[0],
                                  .channels = (int32_t)x->shape[1],
                                  .silu = activation == RDNA_ACTIVATION_SILU};
  RDNA_TRY(rdna__check_sequences(op_name, sequences, x->shape[0], state, &known, &args.sequences));
  const rdna__named written[] = {{"out", out}, {"state", state}};
  const rdna__named read[] = {{"x", x}, {"weight", weight}, {"starts", known.starts}, {"slots", known.slots}};
  RDNA_TRY(rdna__check_written_apart(op_name, written, 2, read, 4, 0));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (x->shape[1] > INT32_MAX / 4) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x has %lld channels; up to %d are offered", op_name,
                      (long long)x->shape[1], INT32_MAX / 4);
  }
  int64_t most = known.max_tokens < x->shape[0] ? known.max_tokens : x->shape[0];
  int64_t parts = rdna__divide_up(most, CAUSAL_CONV_PIECE);
  rdna_grid grid = {0, (uint32_t)args.sequences.count,
                    (uint32_t)(parts < RDNA__GRID_YZ_MAX ? parts : RDNA__GRID_YZ_MAX)};
  RDNA_TRY(rdna__check_groups(op_name, x->shape[1], CAUSAL_CONV_THREADS, &grid.x));
  const char *widths[] = {"2", "3", "4"};
  return RDNA__ROUTE_LAUNCH(stream, &routes[0], 0, grid, &args, widths[weight->shape[1] - 2]);
}
