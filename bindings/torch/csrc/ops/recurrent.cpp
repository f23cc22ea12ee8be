// The cells of LSTM and GRU, in PyTorch's order of gates. Whole sequences are in recurrent_layer.cpp.
#include <ATen/ops/sum.h>

#include "native.h"
#include "rdna/op/recurrent.h"
#include "rows.h"

namespace rdna_torch {
namespace {

void lstm_step(const at::Tensor &input, const at::Tensor &hidden, const at::Tensor &input_bias,
               const at::Tensor &hidden_bias, const at::Tensor &c, const at::Tensor &h_out, const at::Tensor &c_out,
               const at::Tensor &gates) {
  const rdna_tensor a = describe(input), b = describe(hidden), from = describe(c), h = describe(h_out),
                    next = describe(c_out), all = describe(gates);
  check(rdna_op_lstm_cell(stream_of(c), &a, &b, Operand(input_bias), Operand(hidden_bias), &from, &h, &next, &all));
}

void lstm_step_backward(const at::Tensor &dh, const at::Tensor &dc, const at::Tensor &gates, const at::Tensor &c,
                        const at::Tensor &next, const at::Tensor &dgates, const at::Tensor &dc_out) {
  const rdna_tensor g = describe(gates), from = describe(c), to = describe(next), dg = describe(dgates),
                    d = describe(dc_out);
  check(rdna_op_lstm_cell_backward(stream_of(c), Operand(dh), nullptr, Operand(dc), &g, &from, &to, &dg, &d));
}

// Whether a cell's tensors are those of the kernels: (rows, parts * n) of one type.
bool like_state(const at::Tensor &t, int64_t parts, const at::Tensor &c) {
  return t.device() == c.device() && t.scalar_type() == c.scalar_type() && t.dim() == 2 && t.size(0) == c.size(0) &&
         t.size(1) == parts * c.size(1);
}
bool like_bias(const at::Tensor &t, int64_t parts, const at::Tensor &c) {
  return !t.defined() || (t.device() == c.device() && t.scalar_type() == c.scalar_type() && t.dim() == 1 &&
                          t.size(0) == parts * c.size(1));
}

bool lstm(Call &call) {  // input_gates, hidden_gates, cx, input_bias?, hidden_bias?
  const at::Tensor c = call.tensor(2);
  if (!is_real(c.scalar_type()) || c.dim() != 2) return false;
  for (size_t i = 0; i < 2; i++)
    if (!like_state(call.tensor(i), 4, c) || !like_bias(call.tensor(3 + i), 4, c)) return false;
  const at::Tensor biases[] = {call.tensor(3), call.tensor(4)};
  const at::Tensor h_out = make(c.sizes(), c.scalar_type(), c), c_out = make(c.sizes(), c.scalar_type(), c),
                   gates = make({c.size(0), 4 * c.size(1)}, c.scalar_type(), c);
  lstm_step(dense_rows(call.tensor(0)), dense_rows(call.tensor(1)),
            biases[0].defined() ? biases[0].contiguous() : biases[0],
            biases[1].defined() ? biases[1].contiguous() : biases[1], dense_rows(c), h_out, c_out, gates);
  return call.give({h_out, c_out, gates});
}

bool lstm_backward(Call &call) {  // grad_hy?, grad_cy?, cx, cy, workspace, has_bias
  const at::Tensor dh = call.tensor(0), dc = call.tensor(1), c = call.tensor(2);
  if (!dh.defined() && !dc.defined()) return call.give({at::Tensor(), at::Tensor(), at::Tensor()});
  if (!is_real(c.scalar_type()) || c.dim() != 2) return false;
  for (const at::Tensor &t : {dh, dc})
    if (t.defined() && !like_state(t, 1, c)) return false;
  if (!like_state(call.tensor(3), 1, c) || !like_state(call.tensor(4), 4, c)) return false;
  const at::Tensor dgates = make({c.size(0), 4 * c.size(1)}, c.scalar_type(), c),
                   dc_out = make(c.sizes(), c.scalar_type(), c);
  lstm_step_backward(dense_rows(dh), dense_rows(dc), dense_rows(call.tensor(4)), dense_rows(c),
                     dense_rows(call.tensor(3)), dgates, dc_out);
  return call.give({dgates, dc_out, call.flag(5) ? at::sum(dgates, {0}) : at::Tensor()});
}

void gru_step(const at::Tensor &input, const at::Tensor &hidden, const at::Tensor &input_bias,
              const at::Tensor &hidden_bias, const at::Tensor &h, const at::Tensor &h_out, const at::Tensor &gates,
              const at::Tensor &inner) {
  const rdna_tensor a = describe(input), b = describe(hidden), from = describe(h), to = describe(h_out),
                    all = describe(gates), in = describe(inner);
  check(rdna_op_gru_cell(stream_of(h), &a, &b, Operand(input_bias), Operand(hidden_bias), &from, &to, &all, &in));
}

void gru_step_backward(const at::Tensor &dh, const at::Tensor &dout, const at::Tensor &gates, const at::Tensor &inner,
                       const at::Tensor &h, const at::Tensor &dinput, const at::Tensor &dhidden,
                       const at::Tensor &dh_out) {
  const rdna_tensor g = describe(gates), in = describe(inner), from = describe(h), di = describe(dinput),
                    dn = describe(dhidden), d = describe(dh_out);
  check(rdna_op_gru_cell_backward(stream_of(h), Operand(dh), Operand(dout), &g, &in, &from, &di, &dn, &d));
}

// What a step keeps for its gradient is gates, h and the inner sum, in one tensor: (rows, 5 n).
bool gru(Call &call) {  // input_gates, hidden_gates, hx, input_bias?, hidden_bias?
  const at::Tensor h = call.tensor(2);
  if (!is_real(h.scalar_type()) || h.dim() != 2) return false;
  for (size_t i = 0; i < 2; i++)
    if (!like_state(call.tensor(i), 3, h) || !like_bias(call.tensor(3 + i), 3, h)) return false;
  const int64_t n = h.size(1);
  const at::Tensor biases[] = {call.tensor(3), call.tensor(4)};
  const at::Tensor h_out = make(h.sizes(), h.scalar_type(), h), kept = make({h.size(0), 5 * n}, h.scalar_type(), h);
  kept.narrow(1, 3 * n, n).copy_(h);
  gru_step(dense_rows(call.tensor(0)), dense_rows(call.tensor(1)),
           biases[0].defined() ? biases[0].contiguous() : biases[0],
           biases[1].defined() ? biases[1].contiguous() : biases[1], dense_rows(h), h_out, kept.narrow(1, 0, 3 * n),
           kept.narrow(1, 4 * n, n));
  return call.give({h_out, kept});
}

bool gru_backward(Call &call) {  // grad_hy, workspace, has_bias
  const at::Tensor d = call.tensor(0), kept = dense_rows(call.tensor(1));
  if (!is_real(d.scalar_type()) || d.dim() != 2 || !like_state(kept, 5, d)) return false;
  const int64_t n = d.size(1);
  const at::Tensor to_input = make({d.size(0), 3 * n}, d.scalar_type(), d), to_hidden = make_like(to_input),
                   to_h = make(d.sizes(), d.scalar_type(), d);
  gru_step_backward(dense_rows(d), {}, kept.narrow(1, 0, 3 * n), kept.narrow(1, 4 * n, n), kept.narrow(1, 3 * n, n),
                    to_input, to_hidden, to_h);
  const bool bias = call.flag(2);
  return call.give({to_input, to_hidden, to_h, bias ? at::sum(to_input, {0}) : at::Tensor(),
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
