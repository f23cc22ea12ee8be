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
  int64_t count = pass->count, hidden = ffn->hidden, after_gate = (count * hidden + 3) / 4 * 4;
  rdna_tensor gate = rdna__nn_matrix(pass->gate_up, count, hidden);
  rdna_tensor up = rdna__nn_matrix((float *)pass->gate_up + after_gate, count, hidden);
  if (count == 1 && after_gate == hidden && ffn->gate_up.weight.data) {
    rdna_tensor both = rdna__nn_matrix(pass->gate_up, 1, 2 * hidden);
    RDNA_TRY(rdna__nn_linear(pass->stream, &ffn->gate_up, h, &both));
  } else {
    RDNA_TRY(rdna__nn_linear(pass->stream, &ffn->gate, h, &gate));
    RDNA_TRY(rdna__nn_linear(pass->stream, &ffn->up, h, &up));
  }
  RDNA_TRY(activate(pass->stream, ffn->activation, &gate, &up));
  return rdna__nn_linear(pass->stream, &ffn->down, &gate, projected);
}
