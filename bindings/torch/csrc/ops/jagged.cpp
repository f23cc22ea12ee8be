// Rows of several lengths one behind the other, as nested tensors keep them, and the same filled up to one length.
//
//   offsets 0 2 3 6      a b | c | d e f      a b . .
//                                             c . . .
//                                             d e f .
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"

namespace rdna_torch {
namespace {

bool usable(const at::Tensor &x, const std::vector<at::Tensor> &offsets) {
  return offsets.size() == 1 && offsets[0].dim() == 1 && offsets[0].numel() > 0 && is_real(x.scalar_type()) &&
         offsets[0].device() == x.device();
}

bool padded(Call &call) {  // values (total, …), offsets[], max_lengths[], padding_value
  const at::Tensor values = call.tensor(0);
  const std::vector<at::Tensor> all = call.tensors(1);
  const std::vector<int64_t> lengths = call.integers(2);
  if (!usable(values, all) || lengths.size() != 1 || values.dim() == 0) return false;
  const at::Tensor offsets = all[0].to(at::kLong);
  const int64_t rows = offsets.numel() - 1, length = lengths[0];
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = length;
  shape.insert(shape.begin(), rows);
  if (values.size(0) == 0) return call.give(at::full(shape, call.scalar(3), values.options()));
  const at::Tensor place = offsets.slice(0, 0, rows).unsqueeze(1) + at::arange(length, offsets.options());
  const at::Tensor beyond = at::ge(place, offsets.slice(0, 1).unsqueeze(1));
  const at::Tensor out = values.index_select(0, place.clamp(0, values.size(0) - 1).reshape({-1})).view(shape);
  std::vector<int64_t> along(shape.size(), 1);
  along[0] = rows, along[1] = length;
  return call.give(out.masked_fill(beyond.view(along), call.scalar(3)));
}

bool jagged(Call &call) {  // dense (rows, length, …), offsets[], total?
  const at::Tensor dense = call.tensor(0);
  const std::vector<at::Tensor> all = call.tensors(1);
  if (!usable(dense, all) || dense.dim() < 2) return false;
  const at::Tensor offsets = all[0].to(at::kLong);
  const int64_t rows = dense.size(0), length = dense.size(1);
  const int64_t total = call.none(2) ? offsets.select(0, -1).item().toLong() : call.integer(2);
  std::vector<int64_t> shape = dense.sizes().slice(1).vec();
  shape[0] = total;
  if (rows * length == 0) return call.give(at::zeros(shape, dense.options()));
  const at::Tensor value = at::arange(total, offsets.options());
  const at::Tensor row = at::searchsorted(offsets, value, false, true).sub_(1).clamp_(0, rows - 1);
  const at::Tensor place = value - offsets.index_select(0, row), beyond = at::ge(place, length);
  std::vector<int64_t> flat = shape, along(shape.size(), 1);
  flat[0] = rows * length, along[0] = total;
  const at::Tensor out = dense.reshape(flat).index_select(0, row * length + place.clamp(0, length - 1));
  return call.give(out.masked_fill(beyond.view(along), 0));
}

const Single singles[] = {{"_jagged_to_padded_dense_forward", padded}, {"_padded_dense_to_jagged_forward", jagged}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
