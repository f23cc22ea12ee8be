// What GradScaler needs: unscaling gradients, looking for infinities, adapting the scale.
#include <cmath>

#include "native.h"
#include "rdna/op/optim.h"

namespace rdna_torch {
namespace {

bool unscale(Call &call) {  // Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale
  const std::vector<at::Tensor> grads = call.tensors(0);
  const at::Tensor found = call.tensor(1), inverse = call.tensor(2);
  if (grads.empty()) return call.give_nothing();
  std::vector<at::Tensor> work;
  std::vector<rdna_tensor> tensors;
  for (const at::Tensor &g : grads) {
    if (!describable(g) || !is_float(g.scalar_type()) || g.scalar_type() != grads[0].scalar_type()) return false;
    work.push_back(g.is_contiguous() ? g : g.contiguous());
    tensors.push_back(describe(work.back()));
  }
  std::vector<const rdna_tensor *> list;
  for (const rdna_tensor &t : tensors) list.push_back(&t);
  const rdna_tensor f = describe(found.reshape({1})), s = describe(inverse.reshape({1}));
  check(rdna_op_grad_scale(stream_of(found), list.data(), static_cast<int>(list.size()), &s, &f));
  for (size_t i = 0; i < grads.size(); i++)
    if (!work[i].is_same(grads[i])) grads[i].copy_(work[i]);
  return call.give_nothing();
}

// Three values: whether to grow is decided on the host, as it has to wait for the step's infinities anyway.
bool update(Call &call) {  // scale!, growth_tracker!, found_inf, growth_factor, backoff_factor, growth_interval
  const at::Tensor scale = call.tensor(0), tracker = call.tensor(1);
  const bool found = call.tensor(2).item().toDouble() != 0;
  const int64_t grown = found ? 0 : tracker.item().toLong() + 1;
  if (found) {
    scale.mul_(call.real(4));
  } else if (grown == call.integer(5)) {
    const double next = static_cast<float>(scale.item().toDouble()) * call.real(3);
    if (std::isfinite(static_cast<float>(next))) scale.fill_(next);
  }
  tracker.fill_(grown == call.integer(5) ? 0 : grown);
  return call.give(scale);
}

const Single singles[] = {
    {"_amp_foreach_non_finite_check_and_unscale_", unscale},
    {"_amp_update_scale_", update},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
