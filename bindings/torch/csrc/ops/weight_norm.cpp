// torch.nn.utils.weight_norm: w = v g / |v|, with a norm for each index of one dimension. f16 and bf16 are computed in
// f32 and rounded once, and their norms stay f32.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"

namespace rdna_torch {
namespace {

// Sums over all dimensions but |dim|, which stay with a size of 1; over none where there is one alone.
at::Tensor summed(const at::Tensor &t, int64_t dim) {
  std::vector<int64_t> others;
  for (int64_t d = 0; d < t.dim(); d++)
    if (d != dim) others.push_back(d);
  return others.empty() ? t : at::sum(t, others, true);
}

// One scale for each index of |dim|, shaped to broadcast over v.
bool fits(const at::Tensor &v, const at::Tensor &g, int64_t dim) {
  if (!is_real(v.scalar_type()) || g.scalar_type() != v.scalar_type() || v.numel() == 0 || g.dim() != v.dim())
    return false;
  for (int64_t d = 0; d < v.dim(); d++)
    if (g.size(d) != (d == dim ? v.size(d) : 1)) return false;
  return true;
}

bool forward(Call &call) {  // v, g, dim
  const at::Tensor v = call.tensor(0), g = call.tensor(1);
  const int64_t dim = wrap(call.integer(2), v.dim());
  if (!fits(v, g, dim)) return false;
  std::vector<int64_t> others;
  for (int64_t d = 0; d < v.dim(); d++)
    if (d != dim) others.push_back(d);
  const at::Tensor x = wide(v), norm = others.empty() ? at::abs(x) : at::linalg_vector_norm(x, 2, others, true);
  return call.give({(x * (wide(g) / norm)).to(v.scalar_type()), norm});
}

// With s the sum of grad_w v: g's gradient is s / |v|, v's is (g / |v|) (grad_w - v s / |v|^2).
bool backward(Call &call) {  // grad_w, saved_v, saved_g, saved_norms, dim
  const at::Tensor v = call.tensor(1), g = call.tensor(2);
  const int64_t dim = wrap(call.integer(4), v.dim());
  if (!fits(v, g, dim) || call.tensor(3).sizes() != g.sizes() || call.tensor(0).sizes() != v.sizes()) return false;
  const at::Tensor grad = wide(call.tensor(0)), x = wide(v), norm = wide(call.tensor(3));
  const at::Tensor of_g = summed(grad * x, dim) / norm;
  const at::Tensor of_v = wide(g) / norm * (grad - x * (of_g / norm));
  return call.give({of_v.to(v.scalar_type()), of_g.to(g.scalar_type())});
}

const Single singles[] = {
    {"_weight_norm_interface", forward},
    {"_weight_norm_interface_backward", backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
