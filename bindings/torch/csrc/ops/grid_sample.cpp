// grid_sample: out[n, c, p] is the input at the place grid[n, p], in two or three dimensions, with gradients of both.
#include <ATen/Functions.h>
#include <ATen/native/GridSamplerUtils.h>

#include <vector>

#include "native.h"
#include "rdna/op/sample.h"

namespace rdna_torch {
namespace {

using Mode = at::native::GridSamplerInterpolation;
using Padding = at::native::GridSamplerPadding;

struct How {
  rdna_sample_mode mode;
  rdna_sample_padding padding;
  rdna_sample_units units;
};

How how_of(const Call &call, size_t first) {
  const Mode mode = static_cast<Mode>(call.integer(first));
  const Padding padding = static_cast<Padding>(call.integer(first + 1));
  return {mode == Mode::Bilinear  ? RDNA_SAMPLE_MODE_LINEAR
          : mode == Mode::Nearest ? RDNA_SAMPLE_MODE_NEAREST
                                  : RDNA_SAMPLE_MODE_CUBIC,
          padding == Padding::Zeros    ? RDNA_SAMPLE_PADDING_ZEROS
          : padding == Padding::Border ? RDNA_SAMPLE_PADDING_BORDER
                                       : RDNA_SAMPLE_PADDING_REFLECTION,
          call.flag(first + 2) ? RDNA_SAMPLE_UNITS_CENTERS : RDNA_SAMPLE_UNITS_EDGES};
}
bool takes(const at::Tensor &input, const at::Tensor &grid, const Call &call, size_t first) {
  const Mode mode = static_cast<Mode>(call.integer(first));
  const Padding padding = static_cast<Padding>(call.integer(first + 1));
  return is_real(input.scalar_type()) && input.scalar_type() == grid.scalar_type() && grid.dim() == input.dim() &&
         mode >= Mode::Bilinear && mode <= Mode::Bicubic && padding >= Padding::Zeros &&
         padding <= Padding::Reflection && (input.dim() == 4 || mode != Mode::Bicubic);
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
  if (!takes(input, grid, call, 2)) return false;
  const How how = how_of(call, 2);
  std::vector<int64_t> shape{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); d++) shape.push_back(grid.size(d));
  const at::Tensor out = make(shape, input.scalar_type(), input);
  if (out.numel()) {
    const rdna_tensor from = describe(input), at = describe(grid), to = describe(out);
    check(rdna_op_sample(stream_of(input), how.mode, how.padding, how.units, &from, &at, &to));
  }
  return call.give(out);
}

bool backward(Call &call) {  // grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
  const at::Tensor grad = call.tensor(0), input = call.tensor(1), grid = call.tensor(2);
  check_input(input, grid, call.integer(3));
  if (!takes(input, grid, call, 3) || grad.scalar_type() != input.scalar_type()) return false;
  const How how = how_of(call, 3);
  const auto wanted = call[6].toBoolList();
  const at::Tensor grad_input = wanted.get(0) ? make_like(input) : at::Tensor(), grad_grid = make_like(grid);
  if (grad.numel()) {
    const rdna_tensor from = describe(grad), x = describe(input), at = describe(grid), to = describe(grad_grid);
    const Operand dx(grad_input);
    const rdna_tensor *dgrid = wanted.get(1) ? &to : nullptr;
    if (dx || dgrid)
      check(rdna_op_sample_backward(stream_of(input), how.mode, how.padding, how.units, &from, &x, &at, dx, dgrid));
    if (!dgrid) grad_grid.zero_();
  } else {
    if (grad_input.defined()) grad_input.zero_();
    grad_grid.zero_();
  }
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
