// grid_sample: out[n, c, p] is the input at the place grid[n, p], in two or three dimensions, with gradients of both.
//
// A place lies between inputs of each dimension: its taps, one (nearest), two (linear) or four (cubic). A corner is one
// tap of every dimension. For each corner the inputs are gathered, weighted and added; what lies outside is gathered
// from a zero that stands behind the plane's last value. f16 and bf16 are computed in f32 and rounded once.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/GridSamplerUtils.h>

#include <vector>

#include "native.h"

namespace rdna_torch {
namespace {

using Mode = at::native::GridSamplerInterpolation;
using Padding = at::native::GridSamplerPadding;

at::Tensor wide(const at::Tensor &t) { return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat); }

struct How {
  Mode mode;
  Padding padding;
  bool align;
};

// Where something lies along a dimension, and its derivative by what it was made of.
struct Place {
  at::Tensor at, slope;
};
struct Tap {
  at::Tensor index, inside;  // clamped to the dimension; whether it needed no clamping
  at::Tensor weight, slope;  // undefined: 1 and 0
};

// From [-1, 1] to inputs: -1 and 1 are the centers of the outermost ones with align_corners, their outer edges without.
Place unnormalized(const at::Tensor &grid, int64_t size, bool align) {
  const double n = static_cast<double>(size);
  const at::Tensor at = align ? (grid + 1) / 2 * (n - 1) : ((grid + 1) * n - 1) / 2;
  return {at, at::full({}, (align ? n - 1 : n) / 2, grid.options())};
}

Place clipped(const Place &p, int64_t size) {
  const double last = static_cast<double>(size - 1);
  const at::Tensor between = at::logical_and(at::gt(p.at, 0), at::lt(p.at, last));
  // a NaN becomes 0, as on the CPU
  const at::Tensor at = at::where(at::gt(p.at, 0), at::clamp_max(p.at, last), at::zeros({}, p.at.options()));
  return {at, p.slope * between};
}

// Folds at the mirrors, which stand at the outermost centers with align_corners, at the outer edges without.
Place reflected(const Place &p, int64_t size, bool align) {
  if (align && size == 1) return {at::zeros_like(p.at), at::zeros_like(p.at)};
  const double low = align ? 0 : -0.5, span = static_cast<double>(align ? size - 1 : size);
  const at::Tensor from = p.at - low, far = at::abs(from), flips = at::floor(far / span), rest = at::fmod(far, span);
  const at::Tensor odd = at::ne(at::fmod(flips, 2), 0), falls = at::logical_xor(odd, at::lt(from, 0));
  return {at::where(odd, span - rest, rest) + low, at::where(falls, -p.slope, p.slope)};
}

// Numbers that no index holds become one that is outside of everything.
at::Tensor in_range(const at::Tensor &at) {
  return at::where(at::lt(at::abs(at), 1e9), at, at::full({}, -100, at.options()));
}

Place padded(Place p, int64_t size, const How &how) {
  if (how.padding == Padding::Reflection) p = reflected(p, size, how.align);
  return how.padding == Padding::Zeros ? p : clipped(p, size);
}

Tap tap(const at::Tensor &at, int64_t size, const at::Tensor &weight, const at::Tensor &slope) {
  const at::Tensor index = in_range(at).to(at::kLong);
  const at::Tensor inside = at::logical_and(at::ge(index, 0), at::lt(index, size));
  return {at::clamp(index, 0, size - 1), inside, weight, slope};
}

// Cubic convolution with a = -3/4 (Keys, "Cubic convolution interpolation for digital image processing", 1981): weights
// of inputs at a distance up to 1, and from 1 to 2, and their derivatives.
at::Tensor near(const at::Tensor &t) { return ((1.25 * t - 2.25) * t) * t + 1; }
at::Tensor far(const at::Tensor &t) { return ((-0.75 * t + 3.75) * t - 6) * t + 3; }
at::Tensor near_slope(const at::Tensor &t) { return (3.75 * t - 4.5) * t; }
at::Tensor far_slope(const at::Tensor &t) { return (-2.25 * t + 7.5) * t - 6; }

// The taps of a dimension; their slopes are by the grid. Cubic pads each tap, the others the place.
std::vector<Tap> taps_of(const at::Tensor &grid, int64_t size, const How &how) {
  Place p = unnormalized(grid, size, how.align);
  if (how.mode != Mode::Bicubic) p = padded(p, size, how);
  if (how.mode == Mode::Nearest) return {tap(at::round(p.at), size, {}, {})};
  const at::Tensor low = at::floor(p.at), t = p.at - low;
  if (how.mode == Mode::Bilinear) return {tap(low, size, 1 - t, -p.slope), tap(low + 1, size, t, p.slope)};
  const at::Tensor weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  const at::Tensor slopes[] = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
  std::vector<Tap> taps;
  for (int k = 0; k < 4; k++) {
    const Place one = padded({low + (k - 1), p.slope}, size, how);
    taps.push_back(tap(at::round(one.at), size, weights[k], p.slope * slopes[k]));
  }
  return taps;
}

at::Tensor times(const at::Tensor &a, const at::Tensor &b) { return !a.defined() ? b : !b.defined() ? a : a * b; }

// A corner by the number of its tap in each dimension: dimension 0 is the outermost of the input, the last of the grid.
struct Corner {
  at::Tensor index;                // into a plane that ends with a zero
  at::Tensor weight;               // undefined: 1
  std::vector<at::Tensor> slopes;  // of the weight, by each of the grid's coordinates; empty unless asked for
};

class Corners {
 public:
  Corners(const at::Tensor &input, const at::Tensor &grid, const How &how) : values_(1) {
    const at::Tensor places = wide(grid).flatten(1, -2);
    const int64_t dims = input.dim() - 2;
    for (int64_t d = 0; d < dims; d++) {
      sizes_.push_back(input.size(d + 2));
      taps_.push_back(taps_of(places.select(-1, dims - 1 - d), sizes_.back(), how));
      values_ *= sizes_.back();
    }
  }
  size_t count() const {
    size_t n = 1;
    for (const auto &taps : taps_) n *= taps.size();
    return n;
  }
  Corner corner(size_t i, bool slopes) const {
    std::vector<const Tap *> of;
    for (const auto &taps : taps_) of.push_back(&taps[i % taps.size()]), i /= taps.size();
    Corner c{of[0]->index, of[0]->weight, {}};
    at::Tensor inside = of[0]->inside;
    for (size_t d = 1; d < of.size(); d++) {
      c.index = c.index * sizes_[d] + of[d]->index;
      inside = at::logical_and(inside, of[d]->inside);
      c.weight = times(c.weight, of[d]->weight);
    }
    c.index = at::where(inside, c.index, at::full({}, values_, c.index.options()));
    for (size_t by = of.size(); slopes && by-- > 0;) {
      at::Tensor slope = of[by]->slope;
      for (size_t d = 0; d < of.size(); d++)
        if (d != by) slope = times(slope, of[d]->weight);
      c.slopes.push_back(slope);
    }
    return c;
  }

 private:
  std::vector<int64_t> sizes_;
  std::vector<std::vector<Tap>> taps_;
  int64_t values_;
};

// (n, channels, values of a plane, and a zero)
at::Tensor planes_of(const at::Tensor &input) { return at::constant_pad_nd(wide(input).flatten(2), {0, 1}); }
at::Tensor for_channels(const at::Tensor &index, int64_t channels) {
  return index.unsqueeze(1).expand({index.size(0), channels, index.size(1)});
}

How how_of(const Call &call, size_t first) {
  return {static_cast<Mode>(call.integer(first)), static_cast<Padding>(call.integer(first + 1)), call.flag(first + 2)};
}
bool takes(const at::Tensor &input, const at::Tensor &grid, const How &how) {
  return is_real(input.scalar_type()) && input.scalar_type() == grid.scalar_type() && grid.dim() == input.dim() &&
         how.mode >= Mode::Bilinear && how.mode <= Mode::Bicubic && how.padding >= Padding::Zeros &&
         how.padding <= Padding::Reflection && (input.dim() == 4 || how.mode != Mode::Bicubic);
}
void check_input(const at::Tensor &input, const at::Tensor &grid, int64_t mode) {
  at::native::check_grid_sampler_common(input, grid);
  if (input.dim() == 5)
    at::native::check_grid_sampler_3d(input, grid, mode);
  else
    at::native::check_grid_sampler_2d(input, grid);
}

bool forward(Call &call) {  // input, grid, interpolation_mode, padding_mode, align_corners
  const at::Tensor input = call.tensor(0), grid = call.tensor(1);
  check_input(input, grid, call.integer(2));
  const How how = how_of(call, 2);
  if (!takes(input, grid, how)) return false;
  std::vector<int64_t> shape{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); d++) shape.push_back(grid.size(d));
  if (c10::multiply_integers(shape) == 0) return call.give(at::empty(shape, input.options()));
  const Corners corners(input, grid, how);
  const at::Tensor planes = planes_of(input);
  at::Tensor sum;
  for (size_t i = 0; i < corners.count(); i++) {
    const Corner c = corners.corner(i, false);
    const at::Tensor values = at::gather(planes, 2, for_channels(c.index, shape[1]));
    if (!c.weight.defined())
      sum = values;
    else if (!sum.defined())
      sum = values * c.weight.unsqueeze(1);
    else
      sum.addcmul_(values, c.weight.unsqueeze(1));
  }
  return call.give(sum.view(shape).to(input.scalar_type()));
}

bool backward(Call &call) {  // grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
  const at::Tensor input = call.tensor(1), grid = call.tensor(2);
  check_input(input, grid, call.integer(3));
  const How how = how_of(call, 3);
  if (!takes(input, grid, how) || call.tensor(0).scalar_type() != input.scalar_type()) return false;
  const auto wanted = call[6].toBoolList();
  const bool of_input = wanted.get(0), of_grid = wanted.get(1) && how.mode != Mode::Nearest;
  at::Tensor grad_input = of_input ? at::zeros(input.sizes(), input.options()) : at::Tensor();
  at::Tensor grad_grid = at::zeros(grid.sizes(), grid.options());
  if (input.numel() == 0 || grid.numel() == 0) return call.give({grad_input, grad_grid});
  const Corners corners(input, grid, how);
  const at::Tensor planes = planes_of(input), grad = wide(call.tensor(0)).flatten(2);
  const at::Tensor gathered = of_input ? at::zeros_like(planes) : at::Tensor();
  std::vector<at::Tensor> by(static_cast<size_t>(input.dim() - 2));
  for (size_t i = 0; i < corners.count(); i++) {
    const Corner c = corners.corner(i, of_grid);
    const at::Tensor index = for_channels(c.index, input.size(1));
    if (of_input) gathered.scatter_add_(2, index, c.weight.defined() ? grad * c.weight.unsqueeze(1) : grad);
    if (!of_grid) continue;
    const at::Tensor dot = at::sum(at::gather(planes, 2, index) * grad, 1);
    for (size_t d = 0; d < by.size(); d++) by[d] = by[d].defined() ? by[d] + dot * c.slopes[d] : dot * c.slopes[d];
  }
  if (of_input) grad_input = gathered.narrow(2, 0, planes.size(2) - 1).reshape(input.sizes()).to(input.scalar_type());
  if (of_grid) grad_grid = at::stack(by, -1).view(grid.sizes()).to(grid.scalar_type());
  return call.give({grad_input, grad_grid});
}

const Single singles[] = {
    {"grid_sampler_2d", forward},
    {"grid_sampler_2d_backward", backward},
    {"grid_sampler_3d", forward},
    {"grid_sampler_3d_backward", backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
