// Fractional max pooling: windows of one size at places that random numbers move.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"

namespace rdna_torch {
namespace {

// The first place of each window along one dimension, of each plane: (planes, outputs). |samples| is (planes).
at::Tensor begins(const at::Tensor &samples, int64_t size, int64_t outputs, int64_t window) {
  const at::Tensor i = at::arange(outputs, samples.options().dtype(at::kLong));
  const at::Tensor last = at::full({samples.size(0), 1}, size - window, i.options());
  if (outputs == 1) return last;
  const at::Tensor step =
      at::full({}, static_cast<double>(size - window), samples.options()) / static_cast<double>(outputs - 1);
  const at::Tensor u = samples.unsqueeze(1);
  const at::Tensor at = at::trunc((i + u) * step) - at::trunc(u * step);
  return at::cat({at.narrow(1, 0, outputs - 1).to(at::kLong), last}, 1);
}

// Places in the windows of a dimension, where |dim| and |window_dim| of |rank| dimensions behind the planes are its
// own.
at::Tensor spread(const at::Tensor &first, int64_t window, int64_t rank, int64_t dim) {
  const at::Tensor within = at::arange(window, first.options());
  std::vector<int64_t> shape(static_cast<size_t>(2 * rank + 1), 1);
  shape[0] = first.size(0);
  shape[static_cast<size_t>(1 + dim)] = first.size(1);
  shape[static_cast<size_t>(1 + rank + dim)] = window;
  return (first.unsqueeze(2) + within).reshape(shape);
}

template <int64_t rank>
bool forward(Call &call) {  // self, kernel_size, output_size, random_samples, output!, indices!
  const at::Tensor x = call.tensor(0), samples = call.tensor(3);
  const auto window = call.integers(1), outputs = call.integers(2);
  const bool batch = x.dim() == rank + 2;
  if (!is_real(x.scalar_type()) || (!batch && x.dim() != rank + 1) || c10::multiply_integers(x.sizes().slice(1)) == 0)
    return false;
  if (window.size() != rank || outputs.size() != rank || samples.scalar_type() != x.scalar_type()) return false;
  const int64_t planes = c10::multiply_integers(x.sizes().slice(0, x.dim() - rank));
  if (samples.dim() != 3 || samples.numel() != planes * rank || samples.device() != x.device()) return false;
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end() - rank);
  shape.insert(shape.end(), outputs.begin(), outputs.end());
  if (planes == 0) {
    Output none(call.tensor(4), shape, x.scalar_type(), x, false), nowhere(call.tensor(5), shape, at::kLong, x, false);
    return call.give({none.finish(), nowhere.finish()});
  }
  const at::Tensor u = samples.reshape({planes, rank});
  at::Tensor place;
  int64_t values = 1;
  for (int64_t d = 0; d < rank; d++) {
    const size_t i = static_cast<size_t>(d);
    const int64_t size = x.size(x.dim() - rank + d);
    if (outputs[i] < 1 || window[i] < 1 || outputs[i] + window[i] - 1 > size) return false;
    // random numbers are for the last dimension first, except of three dimensions
    const int64_t own = rank == 3 ? d : rank - 1 - d;
    const at::Tensor here = spread(begins(u.select(1, own), size, outputs[i], window[i]), window[i], rank, d);
    place = place.defined() ? place * size + here : here;
    values *= outputs[i];
  }
  place = place.flatten(rank + 1).reshape({planes, values, -1});
  const int64_t each = place.size(2);
  const at::Tensor seen = x.reshape({planes, -1}).gather(1, place.view({planes, -1})).view({planes, values, each});
  const at::Tensor best = at::argmax(seen, 2, true);
  const at::Tensor v = seen.gather(2, best).view(shape), at = place.gather(2, best).view(shape);
  Output out(call.tensor(4), shape, x.scalar_type(), x, false), indices(call.tensor(5), shape, at::kLong, x, false);
  out.get().copy_(v);
  indices.get().copy_(at);
  return call.give({out.finish(), indices.finish()});
}

template <int64_t rank>
bool backward(Call &call) {  // grad_output, self, kernel_size, output_size, indices, [grad_input!]
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), indices = call.tensor(4);
  if (!is_real(x.scalar_type()) || grad.scalar_type() != x.scalar_type() || x.dim() < rank + 1 ||
      grad.sizes() != indices.sizes())
    return false;
  at::Tensor sums = at::zeros(x.sizes(), x.options());
  if (x.numel())
    sums.flatten(x.dim() - rank).scatter_add_(-1, indices.flatten(x.dim() - rank), grad.flatten(x.dim() - rank));
  return give_or_write(call, sums);
}

const Single singles[] = {
    {"fractional_max_pool2d.output", forward<2>},
    {"fractional_max_pool3d.output", forward<3>},
    {"fractional_max_pool2d_backward.grad_input", backward<2>},
    {"fractional_max_pool3d_backward", backward<3>},
    {"fractional_max_pool3d_backward.grad_input", backward<3>},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
