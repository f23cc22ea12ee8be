// interpolate(antialias=True): along each of two dimensions an output is a weighted mean of the inputs that a filter
// around its place covers, which widens as the output shrinks, so that no input is left out. The dimensions are done
// one after another: inputs are gathered, weighted and added; backward, they are scattered back. What a filter lacks at
// an edge is gathered from a zero behind the last input. f16 and bf16 are computed in f32 and rounded once.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

struct Row {
  const char *name;
  double reach;  // of the filter where nothing shrinks
  at::Tensor (*filter)(const at::Tensor &distance);
};

at::Tensor triangle(const at::Tensor &distance) { return at::clamp_min(1 - at::abs(distance), 0); }

// Cubic convolution with a = -1/2, Keys' own choice ("Cubic convolution interpolation for digital image processing",
// 1981); interpolate without antialias has -3/4.
at::Tensor cubic(const at::Tensor &distance) {
  const at::Tensor t = at::abs(distance);
  const at::Tensor near = ((1.5 * t - 2.5) * t) * t + 1, far = ((-0.5 * t + 2.5) * t - 4) * t + 2;
  return at::where(at::lt(t, 1), near, far.masked_fill(at::ge(t, 2), 0));
}

// sin(pi t) / (pi t) times itself three times as wide (Duchon, "Lanczos filtering in one and two dimensions", 1979).
at::Tensor lanczos(const at::Tensor &distance) {
  return (at::sinc(distance) * at::sinc(distance / 3)).masked_fill(at::ge(at::abs(distance), 3), 0);
}

// Of each output, |taps| inputs, |in| where there is none, and their weights.
struct Filters {
  at::Tensor index, weight;  // (out, taps)
};

Filters filters_of(const Row &row, int64_t in, int64_t out, bool align, double factor, const at::Tensor &like) {
  const double n = static_cast<double>(in), m = static_cast<double>(out);
  const double scale = align ? (out > 1 ? (n - 1) / (m - 1) : 0) : factor > 0 ? 1 / factor : n / m;
  const double shrink = std::max(scale, 1.0), reach = row.reach * shrink;
  const int64_t taps = std::min<int64_t>(static_cast<int64_t>(std::ceil(reach)) * 2 + 1, in + 1);
  // which inputs there are is decided in f64: a few numbers, but one wrong by a rounding moves an edge
  const at::Tensor place = (at::arange(out, like.options().dtype(at::kDouble)) + 0.5) * scale;
  const at::Tensor first = at::clamp_min(at::trunc(place - reach + 0.5), 0).unsqueeze(1);
  const at::Tensor end = at::clamp_max(at::trunc(place + reach + 0.5), n).unsqueeze(1);
  const at::Tensor input = first + at::arange(taps, place.options());
  const at::Tensor covered = at::lt(input, end);
  at::Tensor weight = row.filter((input - place.unsqueeze(1) + 0.5) / shrink) * covered;
  const at::Tensor total = at::sum(weight, 1, true);
  weight = at::where(at::eq(total, 0), weight, weight / total);
  return {at::where(covered, input, at::full({}, n, place.options())).to(at::kLong), weight.to(like.scalar_type())};
}

at::Tensor resampled(const at::Tensor &x, int64_t dim, const Filters &f) {
  const int64_t out = f.index.size(0), taps = f.index.size(1);
  const at::Tensor with_zero = at::constant_pad_nd(x.movedim(dim, -1), {0, 1});
  std::vector<int64_t> shape = with_zero.sizes().vec();
  shape.back() = out, shape.push_back(taps);
  const at::Tensor values = with_zero.index_select(-1, f.index.reshape({-1})).view(shape);
  return at::sum(values * f.weight, -1).movedim(-1, dim);
}

at::Tensor spread(const at::Tensor &grad, int64_t dim, int64_t in, const Filters &f) {
  const at::Tensor shares = (grad.movedim(dim, -1).unsqueeze(-1) * f.weight).flatten(-2);
  std::vector<int64_t> shape = shares.sizes().vec();
  shape.back() = in + 1;
  const at::Tensor sums = at::zeros(shape, shares.options()).index_add_(-1, f.index.reshape({-1}), shares);
  return sums.narrow(-1, 0, in).movedim(-1, dim);
}

double factor(const Call &call, size_t i) { return call.none(i) ? 0 : call[i].toDouble(); }

bool forward(const Row &row, Call &call) {  // self, output_size, align_corners, scales_h, scales_w, out
  const at::Tensor x = call.tensor(0);
  const std::vector<int64_t> sizes = call.integers(1);
  if (!is_real(x.scalar_type()) || x.dim() != 4 || sizes.size() != 2) return false;
  Output out(call.output(), {x.size(0), x.size(1), sizes[0], sizes[1]}, x.scalar_type(), x, false);
  if (out.get().numel()) {
    at::Tensor value = wide(x);
    for (size_t d : {1, 0}) {
      const int64_t dim = static_cast<int64_t>(d) + 2;
      value = resampled(value, dim, filters_of(row, x.size(dim), sizes[d], call.flag(2), factor(call, 3 + d), value));
    }
    out.get().copy_(value);
  }
  return call.give(out.finish());
}

bool backward(const Row &row, Call &call) {
  // grad_output, output_size, input_size, align_corners, scales_h, scales_w, grad_input
  const at::Tensor grad = call.tensor(0);
  const std::vector<int64_t> sizes = call.integers(2);
  if (!is_real(grad.scalar_type()) || grad.dim() != 4 || sizes.size() != 4) return false;
  Output out(call.output(), sizes, grad.scalar_type(), grad, false);
  if (out.get().numel()) {
    at::Tensor value = wide(grad);
    for (size_t d : {0, 1}) {
      const int64_t dim = static_cast<int64_t>(d) + 2, in = sizes[d + 2];
      value = spread(value, dim, in, filters_of(row, in, grad.size(dim), call.flag(3), factor(call, 4 + d), value));
    }
    out.get().copy_(value);
  }
  return call.give(out.finish());
}

const Row forwards[] = {
    {"_upsample_bilinear2d_aa.out", 1, triangle},
    {"_upsample_bicubic2d_aa.out", 2, cubic},
    {"_upsample_lanczos2d_aa.out", 3, lanczos},
};
const Row backwards[] = {
    {"_upsample_bilinear2d_aa_backward.grad_input", 1, triangle},
    {"_upsample_bicubic2d_aa_backward.grad_input", 2, cubic},
    {"_upsample_lanczos2d_aa_backward.grad_input", 3, lanczos},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, forwards, forward);
  add(m, backwards, backward);
}

}  // namespace
}  // namespace rdna_torch
