/* The gated feed-forward block of a layer. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

/* gate = f(gate) * up */
static rdna_status activate(rdna_stream *stream, rdna__nn_gate activation, const rdna_tensor *gate,
                            const rdna_tensor *up) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (activation == RDNA__NN_GATE_SILU) return rdna_op_swiglu(stream, gate, up, gate);
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_GELU_TANH, gate, zero, zero, gate));
  return rdna_op_zip(stream, RDNA_ZIP_MUL, gate, up, zero, zero, gate);
}

rdna_status rdna__nn_feed_forward(const rdna__nn_pass *pass, const rdna__nn_ffn *ffn, const rdna_tensor *h,
                                  const rdna_tensor *projected) {
  int64_t count = pass->count, hidden = ffn->hidden, after_gate = (count * hidden + 7) / 8 * 8;
  rdna_tensor gate = rdna__nn_input(pass, pass->gate_up, hidden);
  bool has_bias = ffn->gate.bias.data || ffn->up.bias.data; /* which is f32, and so must be what it is added to */
  if (has_bias) gate.dtype = RDNA_F32;
  rdna_tensor up = gate;
  up.data = (char *)gate.data + rdna_dtype_bytes(gate.dtype, after_gate); /* at a multiple of 16 bytes */
  if (count == 1 && after_gate == hidden && ffn->gate_up.weight.data) {
    rdna_tensor both = rdna__nn_matrix(pass->gate_up, 1, 2 * hidden);
    RDNA_TRY(rdna__nn_linear(pass->stream, &ffn->gate_up, h, &both));
  } else {
    RDNA_TRY(rdna__nn_linear(pass->stream, &ffn->gate, h, &gate));
    RDNA_TRY(rdna__nn_linear(pass->stream, &ffn->up, h, &up));
  }
  RDNA_TRY(activate(pass->stream, ffn->activation, &gate, &up));
  if (gate.dtype == pass->type) return rdna__nn_linear(pass->stream, &ffn->down, &gate, projected);
  up.dtype = pass->type;
  RDNA_TRY(rdna_op_cast(pass->stream, &gate, &up));
  return rdna__nn_linear(pass->stream, &ffn->down, &up, projected);
}
