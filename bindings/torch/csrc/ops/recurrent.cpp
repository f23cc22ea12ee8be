// Cells of recurrent networks, in PyTorch's order of gates: what nn.LSTM and nn.GRU call once for each step.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>

#include "native.h"

namespace rdna_torch {
namespace {

at::Tensor with(const at::Tensor &gates, const at::Tensor &bias) { return bias.defined() ? gates + bias : gates; }

bool lstm(Call &call) {  // input_gates, hidden_gates, cx, input_bias?, hidden_bias?
  const at::Tensor c = call.tensor(2);
  if (!is_real(c.scalar_type())) return false;
  const at::Tensor gates = with(call.tensor(0), call.tensor(3)) + with(call.tensor(1), call.tensor(4));
  const auto g = gates.chunk(4, 1);  // in, forget, cell, out
  const at::Tensor in = at::sigmoid(g[0]), forget = at::sigmoid(g[1]), cell = at::tanh(g[2]), out = at::sigmoid(g[3]);
  const at::Tensor next = forget * c + in * cell;
  return call.give({out * at::tanh(next), next, at::cat({in, forget, cell, out}, 1)});
}

bool lstm_backward(Call &call) {  // grad_hy?, grad_cy?, cx, cy, workspace, has_bias
  const at::Tensor dh = call.tensor(0), dc = call.tensor(1), c = call.tensor(2);
  if (!dh.defined() && !dc.defined()) return call.give({at::Tensor(), at::Tensor(), at::Tensor()});
  if (!is_real(c.scalar_type())) return false;
  const at::Tensor t = at::tanh(call.tensor(3));
  const auto g = call.tensor(4).chunk(4, 1);
  const at::Tensor in = g[0], forget = g[1], cell = g[2], out = g[3];
  at::Tensor d;  // of the next cell state
  if (dh.defined()) d = dh * out * (1 - t * t);
  if (dc.defined()) d = d.defined() ? d + dc : dc;
  const at::Tensor d_out = dh.defined() ? dh * t * out * (1 - out) : at::zeros_like(out);
  const at::Tensor gates =
      at::cat({d * cell * in * (1 - in), d * c * forget * (1 - forget), d * in * (1 - cell * cell), d_out}, 1);
  return call.give({gates, d * forget, call.flag(5) ? at::sum(gates, {0}) : at::Tensor()});
}

bool gru(Call &call) {  // input_gates, hidden_gates, hx, input_bias?, hidden_bias?
  const at::Tensor h = call.tensor(2);
  if (!is_real(h.scalar_type())) return false;
  const at::Tensor from_input = with(call.tensor(0), call.tensor(3)),
                   from_hidden = with(call.tensor(1), call.tensor(4));
  const auto a = from_input.chunk(3, 1), b = from_hidden.chunk(3, 1);  // reset, update, new
  const at::Tensor reset = at::sigmoid(a[0] + b[0]), update = at::sigmoid(a[1] + b[1]);
  const at::Tensor fresh = at::tanh(a[2] + reset * b[2]);
  return call.give({fresh + update * (h - fresh), at::cat({reset, update, fresh, h, b[2]}, 1)});
}

bool gru_backward(Call &call) {  // grad_hy, workspace, has_bias
  const at::Tensor d = call.tensor(0);
  if (!is_real(d.scalar_type())) return false;
  const auto w = call.tensor(1).chunk(5, 1);
  const at::Tensor reset = w[0], update = w[1], fresh = w[2], h = w[3], hidden = w[4];
  const at::Tensor d_new = d * (1 - update) * (1 - fresh * fresh), d_update = d * (h - fresh) * update * (1 - update);
  const at::Tensor d_reset = d_new * hidden * reset * (1 - reset);
  const at::Tensor to_input = at::cat({d_reset, d_update, d_new}, 1),
                   to_hidden = at::cat({d_reset, d_update, d_new * reset}, 1);
  const bool bias = call.flag(2);
  return call.give({to_input, to_hidden, d * update, bias ? at::sum(to_input, {0}) : at::Tensor(),
                    bias ? at::sum(to_hidden, {0}) : at::Tensor()});
}

const Single singles[] = {
    {"_thnn_fused_lstm_cell", lstm},
    {"_thnn_fused_lstm_cell_backward_impl", lstm_backward},
    {"_thnn_fused_gru_cell", gru},
    {"_thnn_fused_gru_cell_backward", gru_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
