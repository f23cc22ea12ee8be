// Resampling of spatial dimensions: nearest, linear, cubic, with gradients.
#include <ATen/ops/empty.h>

#include "native.h"
#include "rdna/op/upsample.h"

namespace rdna_torch {
namespace {

struct Row {
  const char *name;
  int dims;
  rdna_upsample_mode mode;
};

// The last arguments but the written one, from |first| on: align_corners, which the nearest do not have, and the
// factor of each dimension, in which 0 says what the sizes say.
rdna_upsample how(const Row &row, const Call &call, size_t first) {
  rdna_upsample h{RDNA_UPSAMPLE_INIT};
  h.mode = row.mode;
  if (row.mode == RDNA_UPSAMPLE_MODE_LINEAR || row.mode == RDNA_UPSAMPLE_MODE_CUBIC)
    h.align_corners = call.flag(first++);
  for (size_t d = 0; d < static_cast<size_t>(row.dims); d++)
    if (!call.none(first + d) && call[first + d].toDouble() > 0) h.factor[d] = call[first + d].toDouble();
  return h;
}

bool takes(const at::Tensor &t, int dims) { return is_real(t.scalar_type()) && t.dim() == dims + 2; }

bool forward(const Row &row, Call &call) {  // self, output_size, [align_corners], factors…, out
  const bool nearest = row.mode == RDNA_UPSAMPLE_MODE_NEAREST || row.mode == RDNA_UPSAMPLE_MODE_NEAREST_EXACT;
  // pictures of bytes: f16 has all their values
  const bool bytes = nearest && call.tensor(0).scalar_type() == at::kByte;
  const at::Tensor x = bytes ? call.tensor(0).to(at::kHalf) : call.tensor(0);
  const std::vector<int64_t> sizes = call.integers(1);
  if (!takes(x, row.dims) || sizes.size() != static_cast<size_t>(row.dims)) return false;
  std::vector<int64_t> shape{x.size(0), x.size(1)};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  const rdna_upsample h = how(row, call, 2);
  Output out(call.output(), shape, bytes ? at::kByte : x.scalar_type(), x, false);
  if (out.get().numel()) {
    const at::Tensor value = bytes ? at::empty_like(out.get(), x.options()) : out.get();
    const rdna_tensor from = describe(x), to = describe(value);
    check(rdna_op_upsample(stream_of(x), &h, &from, &to));
    if (bytes) out.get().copy_(value);
  }
  return call.give(out.finish());
}

bool backward(const Row &row,
              Call &call) {  // grad_output, output_size, input_size, [align_corners], factors…, grad_input
  const at::Tensor grad = call.tensor(0);
  if (!takes(grad, row.dims)) return false;
  const rdna_upsample h = how(row, call, 3);
  Output out(call.output(), call.integers(2), grad.scalar_type(), grad, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(grad), to = describe(out.get());
    check(rdna_op_upsample_backward(stream_of(grad), &h, &from, &to));
  }
  return call.give(out.finish());
}

const Row forwards[] = {
    {"upsample_nearest1d.out", 1, RDNA_UPSAMPLE_MODE_NEAREST},
    {"upsample_nearest2d.out", 2, RDNA_UPSAMPLE_MODE_NEAREST},
    {"upsample_nearest3d.out", 3, RDNA_UPSAMPLE_MODE_NEAREST},
    {"_upsample_nearest_exact1d.out", 1, RDNA_UPSAMPLE_MODE_NEAREST_EXACT},
    {"_upsample_nearest_exact2d.out", 2, RDNA_UPSAMPLE_MODE_NEAREST_EXACT},
    {"_upsample_nearest_exact3d.out", 3, RDNA_UPSAMPLE_MODE_NEAREST_EXACT},
    {"upsample_linear1d.out", 1, RDNA_UPSAMPLE_MODE_LINEAR},
    {"upsample_bilinear2d.out", 2, RDNA_UPSAMPLE_MODE_LINEAR},
    {"upsample_trilinear3d.out", 3, RDNA_UPSAMPLE_MODE_LINEAR},
    {"upsample_bicubic2d.out", 2, RDNA_UPSAMPLE_MODE_CUBIC},
};
const Row backwards[] = {
    {"upsample_nearest1d_backward.grad_input", 1, RDNA_UPSAMPLE_MODE_NEAREST},
    {"upsample_nearest2d_backward.grad_input", 2, RDNA_UPSAMPLE_MODE_NEAREST},
    {"upsample_nearest3d_backward.grad_input", 3, RDNA_UPSAMPLE_MODE_NEAREST},
    {"_upsample_nearest_exact1d_backward.grad_input", 1, RDNA_UPSAMPLE_MODE_NEAREST_EXACT},
    {"_upsample_nearest_exact2d_backward.grad_input", 2, RDNA_UPSAMPLE_MODE_NEAREST_EXACT},
    {"_upsample_nearest_exact3d_backward.grad_input", 3, RDNA_UPSAMPLE_MODE_NEAREST_EXACT},
    {"upsample_linear1d_backward.grad_input", 1, RDNA_UPSAMPLE_MODE_LINEAR},
    {"upsample_bilinear2d_backward.grad_input", 2, RDNA_UPSAMPLE_MODE_LINEAR},
    {"upsample_trilinear3d_backward.grad_input", 3, RDNA_UPSAMPLE_MODE_LINEAR},
    {"upsample_bicubic2d_backward.grad_input", 2, RDNA_UPSAMPLE_MODE_CUBIC},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, forwards, forward);
  add(m, backwards, backward);
}

}  // namespace
}  // namespace rdna_torch
