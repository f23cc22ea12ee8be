// Sums, means and largest values of bags of rows: what nn.EmbeddingBag calls.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"
#include "outside.h"
#include "rdna/op/index.h"

namespace rdna_torch {
namespace {

enum Mode : int64_t { kSum = RDNA_BAG_SUM, kMean = RDNA_BAG_MEAN, kMax = RDNA_BAG_MAX };

// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights?, include_last_offset, padding_idx
bool combine(Call &call, bool for_gradient) {
  const at::Tensor weight = call.tensor(0), given = call.tensor(1), starts = call.tensor(2), each = call.tensor(6);
  const int64_t mode = call.integer(4), padding = call.integer(8);
  const at::ScalarType type = at::promoteTypes(given.scalar_type(), starts.scalar_type());
  if (!is_real(weight.scalar_type()) || weight.dim() != 2 || given.dim() != 1 || starts.dim() != 1) return false;
  if ((type != at::kLong && type != at::kInt) || mode < kSum || mode > kMax) return false;
  if (given.device() != weight.device() || starts.device() != weight.device()) return false;
  if (each.defined() && (mode != kSum || each.scalar_type() != weight.scalar_type() || each.sizes() != given.sizes()))
    return false;
  const int64_t bags = starts.numel() - call.flag(7);
  if (bags < 0 || padding < -1 || padding >= weight.size(0)) return false;
  const at::Tensor table = weight.stride(1) == 1 ? weight : weight.contiguous();
  const at::Tensor indices = given.to(type).contiguous(), offsets = starts.to(type).contiguous();
  const at::Tensor weights = each.defined() ? each.contiguous() : each;
  const int64_t count = indices.numel(), cols = weight.size(1);
  const at::TensorOptions options = indices.options().dtype(at::kLong);
  const at::Tensor out = make({bags, cols}, weight.scalar_type(), weight);
  at::Tensor largest, bag_of, sizes = make({bags}, at::kLong, weight);
  if (mode == kMax) largest = make({bags, cols}, at::kLong, weight);
  if (for_gradient) bag_of = at::full({count}, -1, options);  // of what no bag has: a gradient would be an error
  const rdna_tensor t = describe(table), i = describe(indices), o = describe(offsets), to = describe(out);
  check(rdna_op_embedding_bag(stream_of(weight), static_cast<rdna_bag>(mode), &t, &i, &o, call.flag(7),
                              Operand(weights), padding, &to, Operand(largest), Operand(bag_of), Operand(sizes),
                              outside(weight, "embedding_bag")));
  const at::Tensor none = at::empty({0}, options);
  auto like_indices = [&](const at::Tensor &x) { return (x.defined() ? x : none).to(type); };
  return call.give({out, like_indices(bag_of), like_indices(sizes), like_indices(largest)});
}
bool forward(Call &call) { return combine(call, true); }
bool forward_only(Call &call) { return combine(call, false); }

// grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
// per_sample_weights?, padding_idx
bool backward(Call &call) {
  const at::Tensor indices = call.tensor(1), bag = call.tensor(3), size = call.tensor(4), each = call.tensor(10);
  const int64_t mode = call.integer(8), rows = call.integer(6);
  at::Tensor grad = call.tensor(0);
  if (!is_real(grad.scalar_type()) || grad.dim() != 2 || mode < kSum || mode > kMax || bag.dim() != 1) return false;
  if (mode == kMax) {
    if (call.flag(9)) return false;  // PyTorch has the words
    const at::Tensor some = grad.masked_fill(at::eq(size, 0).unsqueeze(1), 0), to = call.tensor(5).to(at::kLong);
    const at::Tensor out = at::zeros({rows, grad.size(1)}, grad.options());
    return call.give(grad.numel() ? out.scatter_add_(0, to, some) : out);
  }
  if (mode == kMean) grad = grad / at::clamp_min(size, 1).unsqueeze(1).to(grad.scalar_type());
  grad = grad.index_select(0, bag);
  if (each.defined()) grad = grad * each.unsqueeze(1);
  return call.give(at::embedding_backward(grad, indices, rows, call.integer(11), call.flag(7), call.flag(9)));
}

bool weights_backward(Call &call) {  // grad, weight, indices, offsets, offset2bag, mode, padding_idx
  const at::Tensor grad = call.tensor(0), weight = call.tensor(1), indices = call.tensor(2), bag = call.tensor(4);
  if (!is_real(grad.scalar_type()) || call.integer(5) != kSum || bag.dim() != 1) return false;
  const at::Tensor out = (grad.index_select(0, bag) * weight.index_select(0, indices)).sum(1);
  if (call.integer(6) >= 0) out.masked_fill_(at::eq(indices, call.integer(6)), 0);
  return call.give(out);
}

const Single singles[] = {
    {"_embedding_bag", forward},
    {"_embedding_bag_forward_only", forward_only},
    {"_embedding_bag_backward", backward},
    {"_embedding_bag_per_sample_weights_backward", weights_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
