/* The gated feed-forward block of a layer. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

static bool is_dense(const rdna_tensor *t) { return t->rank < 3 || t->stride[1] == t->shape[2]; }

rdna_status rdna__nn_gate_with(rdna_stream *stream, rdna__nn_gate activation, const rdna_tensor *gate,
                               const rdna_tensor *up) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (activation == RDNA__NN_GATE_CLAMPED)
    return rdna_op_zip(stream, RDNA_ZIP_SWIGLU_CLAMPED, gate, up, rdna_scalar_real(RDNA__NN_CLAMP_SLOPE),
                       rdna_scalar_real(RDNA__NN_CLAMP_LIMIT), gate);
  if (activation == RDNA__NN_GATE_SILU && is_dense(gate)) return rdna_op_swiglu(stream, gate, up, gate);
  rdna_map f = activation == RDNA__NN_GATE_SILU   ? RDNA_MAP_SILU
               : activation == RDNA__NN_GATE_GELU ? RDNA_MAP_GELU_ERF
                                                  : RDNA_MAP_GELU_TANH;
  RDNA_TRY(rdna_op_map(stream, f, gate, zero, zero, gate));
  return rdna_op_zip(stream, RDNA_ZIP_MUL, gate, up, zero, zero, gate);
}

/* A block without a gate, activated in f32. */
static rdna_status feed_without_gate(const rdna__nn_pass *pass, const rdna__nn_ffn *ffn, const rdna_tensor *h,
                                     const rdna_tensor *projected) {
  const rdna_scalar zero = rdna_scalar_real(0);
  bool squared = ffn->activation == RDNA__NN_GATE_RELU_SQUARED;
  const double part = ffn->wide && pass->type == RDNA_F16 && !ffn->down.bias.data ? 0x1p-6 : 1; /* as below */
  rdna_tensor up = rdna__nn_matrix(pass->gate_up, pass->count, ffn->hidden);
  rdna_tensor read =
      rdna__nn_input(pass, (float *)pass->gate_up + (pass->count * ffn->hidden + 7) / 8 * 8, ffn->hidden);
  RDNA_TRY(rdna__nn_linear(pass, &ffn->up, h, &up));
  rdna_map f = squared ? RDNA_MAP_RELU : ffn->activation == RDNA__NN_GATE_GELU ? RDNA_MAP_GELU_ERF : RDNA_MAP_GELU_TANH;
  RDNA_TRY(rdna_op_map(pass->stream, f, &up, zero, zero, &up));
  if (squared) RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_SQUARE, &up, zero, zero, &up));
  RDNA_TRY(rdna__nn_scale(pass->stream, &up, part));
  if (pass->type == RDNA_F32) return rdna__nn_linear_out(pass, &ffn->down, &up, projected); /* and part is 1 */
  RDNA_TRY(rdna_op_cast(pass->stream, &up, &read));
  RDNA_TRY(rdna__nn_linear(pass, &ffn->down, &read, projected));
  return rdna__nn_scale(pass->stream, projected, 1 / part);
}

rdna_status rdna__nn_feed_forward(const rdna__nn_pass *pass, const rdna__nn_ffn *ffn, const rdna_tensor *h,
                                  const rdna_tensor *projected) {
  if (!ffn->gate.weight.data) return feed_without_gate(pass, ffn, h, projected);
  int64_t count = pass->count, hidden = ffn->hidden, after_gate = (count * hidden + 7) / 8 * 8;
  rdna_tensor gate = rdna__nn_input(pass, pass->gate_up, hidden);
  bool has_bias = ffn->gate.bias.data || ffn->up.bias.data; /* which is f32, and so must be what it is added to */
  if (has_bias) gate.dtype = RDNA_F32;
  rdna_tensor up = gate;
  up.data = (char *)gate.data + rdna_dtype_bytes(gate.dtype, after_gate); /* at a multiple of 16 bytes */
  if (rdna__nn_is_gated(pass, &ffn->gate_up, ffn->activation, h, &gate)) {
    RDNA_TRY(rdna__nn_linear_gated(pass, &ffn->gate_up, ffn->activation, h, &gate));
    return rdna__nn_linear_out(pass, &ffn->down, &gate, projected);
  }
  if (count == 1 && after_gate == hidden && ffn->gate_up.weight.data) {
    rdna_tensor both = rdna__nn_matrix(pass->gate_up, 1, 2 * hidden);
    RDNA_TRY(rdna__nn_linear_in(pass, &ffn->gate_up, h, &both));
  } else {
    RDNA_TRY(rdna__nn_linear_in(pass, &ffn->gate, h, &gate));
    RDNA_TRY(rdna__nn_linear_in(pass, &ffn->up, h, &up));
  }
  /* Values beyond f16's range fit once divided by 64. Those that become subnormal and lose bits by it are too small to
   * matter beside the rest of their sum. */
  const double part = ffn->wide && gate.dtype == RDNA_F16 && !ffn->down.bias.data ? 0x1p-6 : 1;
  RDNA_TRY(rdna__nn_scale(pass->stream, &up, part));
  RDNA_TRY(rdna__nn_gate_with(pass->stream, ffn->activation, &gate, &up));
  if (gate.dtype == pass->type) {
    RDNA_TRY(rdna__nn_linear_out(pass, &ffn->down, &gate, projected));
    return rdna__nn_scale(pass->stream, projected, 1 / part); /* part is 1 where it adds, in f32 */
  }
  up.dtype = pass->type;
  RDNA_TRY(rdna_op_cast(pass->stream, &gate, &up));
  return rdna__nn_linear_out(pass, &ffn->down, &up, projected);
}
