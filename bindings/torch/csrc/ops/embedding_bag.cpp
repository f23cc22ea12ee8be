// Sums and means of bags of rows: what nn.EmbeddingBag calls. The largest of a bag is left to the CPU.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"

namespace rdna_torch {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1 };

// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights?, include_last_offset, padding_idx
bool forward(Call &call) {
  const at::Tensor weight = call.tensor(0), indices = call.tensor(1), offsets = call.tensor(2), each = call.tensor(6);
  const int64_t mode = call.integer(4), padding = call.integer(8);
  const int64_t bags = offsets.numel() - call.flag(7);
  if (!is_real(weight.scalar_type()) || weight.dim() != 2 || indices.dim() != 1 || offsets.dim() != 1) return false;
  if ((mode != kSum && mode != kMean) || indices.numel() == 0 || bags <= 0) return false;
  const at::Tensor begins = offsets.narrow(0, 0, bags).to(at::kLong);
  const at::Tensor bag = at::searchsorted(begins, at::arange(indices.numel(), begins.options()), false, true) - 1;
  at::Tensor rows = weight.index_select(0, indices);
  if (each.defined()) rows = rows * each.unsqueeze(1);
  at::Tensor counted = at::ones({indices.numel()}, begins.options());
  if (padding >= 0) {
    const at::Tensor hidden = at::eq(indices, padding);
    rows = rows.masked_fill(hidden.unsqueeze(1), 0);
    counted.masked_fill_(hidden, 0);
  }
  at::Tensor out = at::zeros({bags, weight.size(1)}, weight.options()).index_add_(0, bag, rows);
  const at::Tensor size = at::zeros({bags}, begins.options()).index_add_(0, bag, counted);
  if (mode == kMean) out = out / at::clamp_min(size, 1).unsqueeze(1).to(out.scalar_type());
  return call.give(
      {out, bag.to(indices.scalar_type()), size.to(indices.scalar_type()), at::empty({0}, indices.options())});
}

// grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
// per_sample_weights?, padding_idx
bool backward(Call &call) {
  const at::Tensor indices = call.tensor(1), bag = call.tensor(3), size = call.tensor(4), each = call.tensor(10);
  const int64_t mode = call.integer(8);
  if (!is_real(call.tensor(0).scalar_type()) || (mode != kSum && mode != kMean) || call.flag(9) || bag.numel() == 0)
    return false;
  at::Tensor grad = call.tensor(0);
  if (mode == kMean) grad = grad / at::clamp_min(size, 1).unsqueeze(1).to(grad.scalar_type());
  grad = grad.index_select(0, bag);
  if (each.defined()) grad = grad * each.unsqueeze(1);
  return call.give(at::embedding_dense_backward(grad, indices, call.integer(6), call.integer(11), call.flag(7)));
}

bool weights_backward(Call &call) {  // grad, weight, indices, offsets, offset2bag, mode, padding_idx
  const at::Tensor grad = call.tensor(0), weight = call.tensor(1), indices = call.tensor(2), bag = call.tensor(4);
  if (!is_real(grad.scalar_type()) || call.integer(5) != kSum || bag.numel() == 0) return false;
  const at::Tensor out = (grad.index_select(0, bag) * weight.index_select(0, indices)).sum(1);
  if (call.integer(6) >= 0) out.masked_fill_(at::eq(indices, call.integer(6)), 0);
  return call.give(out);
}

const Single singles[] = {
    {"_embedding_bag", forward},
    {"_embedding_bag_forward_only", forward},
    {"_embedding_bag_backward", backward},
    {"_embedding_bag_per_sample_weights_backward", weights_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
