// Recurrent networks, in PyTorch's order of gates: the LSTM as one node of autograd for each layer and direction, and
// the cells, which layers of other kinds call once for each step.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "native.h"
#include "rdna/op/recurrent.h"

namespace rdna_torch {
namespace {

at::Tensor with(const at::Tensor &gates, const at::Tensor &bias) { return bias.defined() ? gates + bias : gates; }

// As the kernels take matrices: rows of any distance, each dense.
at::Tensor dense_rows(const at::Tensor &t) {
  return !t.defined() || (t.stride(1) == 1 && t.stride(0) >= t.size(1)) ? t : t.contiguous();
}

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
  check(rdna_op_lstm_cell_backward(stream_of(c), Operand(dh), Operand(dc), &g, &from, &to, &dg, &d));
}

// Whether a cell's tensors are those of the kernels: (rows, parts * n) of one type.
bool like_state(const at::Tensor &t, int64_t parts, const at::Tensor &c) {
  return t.device() == c.device() && t.scalar_type() == c.scalar_type() && t.dim() == 2 && t.size(0) == c.size(0) &&
         t.size(1) == parts * c.size(1);
}
bool like_bias(const at::Tensor &t, const at::Tensor &c) {
  return !t.defined() ||
         (t.device() == c.device() && t.scalar_type() == c.scalar_type() && t.dim() == 1 && t.size(0) == 4 * c.size(1));
}

bool lstm(Call &call) {  // input_gates, hidden_gates, cx, input_bias?, hidden_bias?
  const at::Tensor c = call.tensor(2);
  if (!is_real(c.scalar_type()) || c.dim() != 2) return false;
  for (size_t i = 0; i < 2; i++)
    if (!like_state(call.tensor(i), 4, c) || !like_bias(call.tensor(3 + i), c)) return false;
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

// ---- whole sequences ----

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// One layer in one direction. All steps' products with the inputs are one product before the first step, and the
// gradients of both weights one product each after the last: a step is the product with the state, and the cell.
//
//     x (steps, rows, inputs)  -- W_ih --> gates (steps, rows, 4 n), which the steps turn into what they keep
//                                            + W_hh h  --> cell --> out[t], cells[t]
class LstmLayer : public torch::autograd::Function<LstmLayer> {
 public:
  // x, h, c, both weights, and both biases or neither
  static variable_list forward(AutogradContext *ctx, const at::Tensor &x, const at::Tensor &h, const at::Tensor &c,
                               const at::Tensor &w_ih, const at::Tensor &w_hh, const std::optional<at::Tensor> &b_ih,
                               const std::optional<at::Tensor> &b_hh, bool reverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    const int64_t steps = x.size(0), rows = x.size(1), n = c.size(1);
    const at::Tensor inputs = x.reshape({steps * rows, x.size(2)});
    const at::Tensor gates =
        (b_ih ? at::addmm(*b_ih + *b_hh, inputs, w_ih.t()) : at::mm(inputs, w_ih.t())).view({steps, rows, 4 * n});
    const at::Tensor out = make({steps, rows, n}, x.scalar_type(), x), cells = make_like(out);
    at::Tensor hidden = make({rows, 4 * n}, x.scalar_type(), x), last = h, cell = dense_rows(c);
    const at::Tensor by = w_hh.t();
    for (int64_t i = 0; i < steps; i++) {
      const int64_t t = reverse ? steps - 1 - i : i;
      const at::Tensor h_out = out.select(0, t), c_out = cells.select(0, t), g = gates.select(0, t);
      at::mm_out(hidden, last, by);
      lstm_step(g, hidden, {}, {}, cell, h_out, c_out, g);
      last = h_out, cell = c_out;
    }
    ctx->save_for_backward(
        {x, h, c, w_ih, w_hh, b_ih.value_or(at::Tensor()), b_hh.value_or(at::Tensor()), out, cells, gates});
    ctx->saved_data["reverse"] = reverse;
    return {out, last.clone(), cell.clone()};
  }

  static variable_list backward(AutogradContext *ctx, const variable_list &grads) {
    const variable_list saved = ctx->get_saved_variables();
    const bool reverse = ctx->saved_data["reverse"].toBool();
    variable_list result =
        at::GradMode::is_enabled() ? differentiable(ctx, saved, grads, reverse) : gradients(ctx, saved, grads, reverse);
    result.emplace_back();
    return result;
  }

 private:
  static variable_list gradients(AutogradContext *ctx, const variable_list &saved, const variable_list &grads,
                                 bool reverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor &x = saved[0], &h = saved[1], &c = saved[2], &w_ih = saved[3], &w_hh = saved[4];
    const at::Tensor &out = saved[7], &cells = saved[8], &gates = saved[9], &of_out = grads[0];
    const int64_t steps = x.size(0), rows = x.size(1), n = c.size(1);
    const at::Tensor all = make({steps, rows, 4 * n}, x.scalar_type(), x), dc = make({rows, n}, x.scalar_type(), x);
    const at::Tensor first = dense_rows(c);
    at::Tensor dh = grads[1], of_cell = dense_rows(grads[2]);
    for (int64_t i = steps - 1; i >= 0; i--) {
      const int64_t t = reverse ? steps - 1 - i : i, before = reverse ? t + 1 : t - 1;
      if (i < steps - 1) {  // the gradient that the next step hands back, and the output's own
        const at::Tensor next = all.select(0, reverse ? t - 1 : t + 1);
        dh = of_out.defined() ? at::addmm(of_out.select(0, t), next, w_hh) : at::mm(next, w_hh);
      } else if (of_out.defined()) {
        dh = dh.defined() ? dh + of_out.select(0, t) : of_out.select(0, t);
      }
      lstm_step_backward(dense_rows(dh), of_cell, gates.select(0, t), i ? cells.select(0, before) : first,
                         cells.select(0, t), all.select(0, t), dc);
      of_cell = dc;
    }
    const at::Tensor flat = all.view({steps * rows, 4 * n});
    const at::Tensor start = h.unsqueeze(0);
    variable_list result(7);
    if (ctx->needs_input_grad(0)) result[0] = at::mm(flat, w_ih).view(x.sizes());
    if (ctx->needs_input_grad(1)) result[1] = at::mm(all.select(0, reverse ? steps - 1 : 0), w_hh);
    if (ctx->needs_input_grad(2)) result[2] = dc;
    if (ctx->needs_input_grad(3)) result[3] = at::mm(flat.t(), x.reshape({steps * rows, x.size(2)}));
    if (ctx->needs_input_grad(4)) {
      const at::Tensor states =
          reverse ? at::cat({out.narrow(0, 1, steps - 1), start}) : at::cat({start, out.narrow(0, 0, steps - 1)});
      result[4] = at::mm(flat.t(), states.view({steps * rows, n}));
    }
    const bool of_bias[] = {saved[5].defined() && ctx->needs_input_grad(5),
                            saved[6].defined() && ctx->needs_input_grad(6)};
    if (of_bias[0] || of_bias[1]) {
      const at::Tensor sum = at::sum(flat, {0});
      if (of_bias[0]) result[5] = sum;
      if (of_bias[1]) result[6] = of_bias[0] ? sum.clone() : sum;
    }
    return result;
  }

  // For a second derivative: the layer again by PyTorch's own operators, which have all derivatives.
  static variable_list differentiable(AutogradContext *ctx, const variable_list &saved, const variable_list &grads,
                                      bool reverse) {
    const bool biased = saved[5].defined();
    std::vector<at::Tensor> weights(saved.begin() + 3, saved.begin() + (biased ? 7 : 5));
    const at::Tensor x = reverse ? saved[0].flip({0}) : saved[0];
    const auto [out, h, c] =
        at::native::lstm(x, {saved[1].unsqueeze(0), saved[2].unsqueeze(0)}, weights, biased, 1, 0, false, false, false);
    const variable_list made = {reverse ? out.flip({0}) : out, h.squeeze(0), c.squeeze(0)};
    variable_list from, to, given;
    std::vector<size_t> places;
    for (size_t i = 0; i < 3; i++)
      if (grads[i].defined()) from.push_back(made[i]), given.push_back(grads[i]);
    for (size_t i = 0; i < 7; i++)
      if (saved[i].defined() && saved[i].requires_grad()) to.push_back(saved[i]), places.push_back(i);
    const variable_list found = torch::autograd::grad(from, to, given, true, true, true);
    variable_list result(7);
    for (size_t i = 0; i < found.size(); i++) result[places[i]] = found[i];
    return result;
  }
};

// Tensors that only PyTorch's own operators know: of torch.func's transforms, and with forward derivatives.
bool plain(const at::Tensor &t) {
  return !t.key_set().has(c10::DispatchKey::FuncTorchBatched) &&
         !t.key_set().has(c10::DispatchKey::FuncTorchGradWrapper) && !t._fw_grad(0).defined();
}

// Whether these are the arguments of an LSTM without projections that has something to do. What is wrong with others
// PyTorch says itself.
bool layers_fit(const at::Tensor &x, at::TensorList hx, at::TensorList params, bool biased, int64_t layers,
                int64_t directions, bool batch_first) {
  const size_t each = biased ? 4 : 2;
  if (x.dim() != 3 || x.numel() == 0 || !is_real(x.scalar_type()) || hx.size() != 2 || layers < 1 ||
      params.size() != static_cast<size_t>(layers * directions) * each)
    return false;
  auto fits = [&](const at::Tensor &t, at::IntArrayRef shape) {
    return t.defined() && t.device() == x.device() && t.scalar_type() == x.scalar_type() && t.sizes() == shape &&
           plain(t);
  };
  if (!plain(x) || hx[1].dim() != 3 || hx[1].numel() == 0) return false;
  const int64_t rows = x.size(batch_first ? 0 : 1), n = hx[1].size(2);
  for (const at::Tensor &state : hx)
    if (!fits(state, {layers * directions, rows, n})) return false;
  for (size_t i = 0; i < params.size(); i++) {
    const int64_t inputs = i / each < static_cast<size_t>(directions) ? x.size(2) : directions * n;
    const size_t kind = i % each;
    if (kind < 2 ? !fits(params[i], {4 * n, kind ? n : inputs}) : !fits(params[i], {4 * n})) return false;
  }
  return true;
}

Three lstm_layers(const at::Tensor &input, at::TensorList hx, at::TensorList params, bool biased, int64_t layers,
                  double dropout, bool train, bool both, bool batch_first) {
  const int64_t directions = both ? 2 : 1;
  if (!layers_fit(input, hx, params, biased, layers, directions, batch_first))
    return at::native::lstm(input, hx, params, biased, layers, dropout, train, both, batch_first);
  CurrentDevice here(input.device().index());
  follow_deterministic();
  at::Tensor x = batch_first ? input.transpose(0, 1) : input;
  const size_t each = biased ? 4 : 2;
  std::vector<at::Tensor> h, c;
  for (int64_t layer = 0; layer < layers; layer++) {
    std::vector<at::Tensor> out;
    for (int64_t d = 0; d < directions; d++) {
      const int64_t i = layer * directions + d;
      const at::Tensor *w = &params[static_cast<size_t>(i) * each];
      const variable_list made = LstmLayer::apply(x, hx[0].select(0, i), hx[1].select(0, i), w[0], w[1],
                                                  biased ? std::make_optional(w[2]) : std::nullopt,
                                                  biased ? std::make_optional(w[3]) : std::nullopt, d == 1);
      out.push_back(made[0]), h.push_back(made[1]), c.push_back(made[2]);
    }
    x = both ? at::cat(out, 2) : out[0];
    if (dropout != 0 && train && layer < layers - 1) x = at::dropout(x, dropout, true);
  }
  return {batch_first ? x.transpose(0, 1) : x, at::stack(h), at::stack(c)};
}

// As torch.autocast runs recurrent layers on its other devices: whole, in the lower precision.
Three lstm_autocast(const at::Tensor &input, at::TensorList hx, at::TensorList params, bool biased, int64_t layers,
                    double dropout, bool train, bool both, bool batch_first) {
  const at::ScalarType type = at::autocast::get_lower_precision_fp_from_device_type(kRdna);
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  auto cast = [&](const at::Tensor &t) { return at::autocast::cached_cast(type, t, kRdna); };
  std::vector<at::Tensor> states, weights;
  for (const at::Tensor &t : hx) states.push_back(cast(t));
  for (const at::Tensor &t : params) weights.push_back(cast(t));
  return at::lstm(cast(input), states, weights, biased, layers, dropout, train, both, batch_first);
}

const Single singles[] = {
    {"_thnn_fused_lstm_cell", lstm},
    {"_thnn_fused_lstm_cell_backward_impl", lstm_backward},
    {"_thnn_fused_gru_cell", gru},
    {"_thnn_fused_gru_cell_backward", gru_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, singles);
  m.impl("lstm.input", &lstm_layers);  // of tensors made in inference mode
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("lstm.input", &lstm_layers); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) { m.impl("lstm.input", &lstm_autocast); }

}  // namespace
}  // namespace rdna_torch
