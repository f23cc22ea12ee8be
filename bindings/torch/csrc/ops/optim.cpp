// Optimizer steps over many tensors at once.
#include "rdna/op/optim.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"

namespace rdna_torch {
namespace {

bool usable(const std::vector<at::Tensor> &tensors, bool parameters, at::ScalarType type) {
  for (const at::Tensor &t : tensors)
    if (!describable(t) || !t.is_non_overlapping_and_dense() || t.scalar_type() != (parameters ? at::kFloat : type))
      return false;
  return true;
}

bool alike(const at::Tensor &a, const at::Tensor &b) {
  return a.sizes().equals(b.sizes()) && a.strides().equals(b.strides());
}

struct Step {
  std::vector<at::Tensor> parameters, gradients;
  std::vector<at::Tensor> states[3];
  at::Tensor scale, found;
  std::vector<at::Tensor> steps;  // Adam's counts of steps, on the device
};

bool fits(const Step &s) {
  if (s.parameters.empty()) return true;
  const at::ScalarType type = s.gradients[0].scalar_type();
  if (!is_float(type) || !usable(s.parameters, true, type) || !usable(s.gradients, false, type)) return false;
  for (const auto &state : s.states)
    if (!usable(state, true, type)) return false;
  for (size_t i = 0; i < s.parameters.size(); i++) {
    if (!alike(s.parameters[i], s.gradients[i])) return false;
    for (const auto &state : s.states)
      if (!state.empty() && !alike(s.parameters[i], state[i])) return false;
  }
  return true;
}

// One launch for all parameters that are not empty.
void launch(const Step &s, const rdna_optim &options) {
  std::vector<rdna_tensor> tensors;
  tensors.reserve(s.parameters.size() * 6);
  std::vector<rdna_optim_item> items;
  auto hold = [&](const at::Tensor &t) {
    tensors.push_back(line(t));
    return &tensors.back();
  };
  for (size_t i = 0; i < s.parameters.size(); i++) {
    if (s.parameters[i].numel() == 0) continue;
    rdna_optim_item item{};
    item.param = hold(s.parameters[i]);
    item.grad = hold(s.gradients[i]);
    for (int k = 0; k < 3; k++)
      if (!s.states[k].empty()) item.state[k] = hold(s.states[k][i]);
    if (!s.steps.empty()) item.step = hold(s.steps[i]);
    items.push_back(item);
  }
  const at::Tensor scale = s.scale.defined() ? s.scale.reshape({1}) : s.scale,
                   found = s.found.defined() ? s.found.reshape({1}) : s.found;
  check(rdna_op_optim_step(stream_of(s.parameters[0]), &options, items.data(), static_cast<int>(items.size()),
                           Operand(scale), Operand(found)));
}

// self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
// maximize, grad_scale?, found_inf?
bool adam(Call &call, bool decoupled) {
  Step s{call.tensors(0), call.tensors(1), {call.tensors(2), call.tensors(3), call.tensors(4)},
         call.tensor(13), call.tensor(14), call.tensors(5)};
  if (!fits(s)) return false;
  for (const at::Tensor &t : s.steps)
    if (t.device() != s.parameters[0].device() || t.scalar_type() != at::kFloat || t.numel() != 1) return false;
  if (s.parameters.empty()) return call.give_nothing();
  rdna_optim o{RDNA_OPTIM_INIT};
  o.kind = RDNA_OPTIM_KIND_ADAM;
  o.learning_rate = static_cast<float>(call[6].isTensor() ? call.tensor(6).item().toDouble() : call[6].toDouble());
  o.beta1 = static_cast<float>(call[7].toDouble());
  o.beta2 = static_cast<float>(call[8].toDouble());
  o.weight_decay = static_cast<float>(call[9].toDouble());
  o.epsilon = call[10].toDouble();
  o.amsgrad = call.flag(11);
  o.maximize = call.flag(12);
  o.decoupled = decoupled;
  if (!o.amsgrad) s.states[2].clear();
  o.step = 1;
  launch(s, o);
  return call.give_nothing();
}
bool adam_coupled(Call &call) { return adam(call, false); }
bool adam_decoupled(Call &call) { return adam(call, true); }

// self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
// grad_scale?, found_inf?
bool sgd(Call &call) {
  Step s{call.tensors(0), call.tensors(1), {call.tensors(2), {}, {}}, call.tensor(10), call.tensor(11), {}};
  if (!fits(s)) return false;
  if (s.parameters.empty()) return call.give_nothing();
  rdna_optim o{RDNA_OPTIM_INIT};
  o.kind = RDNA_OPTIM_KIND_SGD;
  o.weight_decay = static_cast<float>(call[3].toDouble());
  o.momentum = static_cast<float>(call[4].toDouble());
  o.learning_rate = static_cast<float>(call[5].isTensor() ? call.tensor(5).item().toDouble() : call[5].toDouble());
  o.dampening = static_cast<float>(call[6].toDouble());
  o.nesterov = call.flag(7);
  o.maximize = call.flag(8);
  o.step = call.flag(9) ? 1 : 2;
  if (o.momentum == 0) s.states[0].clear();
  launch(s, o);
  return call.give_nothing();
}

// self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale?, found_inf?
bool adagrad(Call &call) {
  const std::vector<at::Tensor> parameters = call.tensors(0), gradients = call.tensors(1), sums = call.tensors(2),
                                steps = call.tensors(3);
  const double rate = call[4].isTensor() ? call.tensor(4).item().toDouble() : call.real(4), decay = call.real(5);
  for (const at::Tensor &p : parameters)
    if (!is_real(p.scalar_type())) return false;
  if (parameters.empty() || (!call.none(10) && call.tensor(10).item().toBool())) return call.give_nothing();
  if (!call.none(9)) at::_foreach_div_(gradients, call.tensor(9).reshape({}));  // the caller sees them unscaled
  std::vector<at::Tensor> g = call.flag(8) ? at::_foreach_neg(gradients) : gradients;
  if (call.real(6) != 0) g = at::_foreach_add(g, parameters, call.real(6));
  at::_foreach_addcmul_(sums, g, g, 1);
  const std::vector<at::Tensor> root = at::_foreach_sqrt(sums);
  at::_foreach_add_(root, call.real(7));
  if (decay == 0) {
    at::_foreach_addcdiv_(parameters, g, root, -rate);
    return call.give_nothing();
  }
  for (size_t i = 0; i < parameters.size(); i++) {
    const at::Tensor slower = (steps[i] - 1).mul_(decay).add_(1).to(parameters[i].device());
    parameters[i].sub_(g[i] / root[i] / slower, rate);
  }
  return call.give_nothing();
}

const Single singles[] = {
    {"_fused_adam_", adam_coupled},
    {"_fused_adam_.tensor_lr", adam_coupled},
    {"_fused_adamw_", adam_decoupled},
    {"_fused_adamw_.tensor_lr", adam_decoupled},
    {"_fused_adagrad_", adagrad},
    {"_fused_adagrad_.tensor_lr", adagrad},
    {"_fused_sgd_", sgd},
    {"_fused_sgd_.tensor_lr", sgd},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
