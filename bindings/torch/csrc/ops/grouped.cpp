// Products of groups of rows, as layers of experts have them: where groups end lies on the device and stays there.
#include <ATen/Functions.h>
#include <ATen/ops/empty_strided.h>

#include "native.h"
#include "rdna/op/gemm.h"

namespace rdna_torch {
namespace {

// As librdna reads matrices: one of the last two strides is 1.
at::Tensor readable(const at::Tensor &t) {
  const int64_t r = t.stride(-2), c = t.stride(-1);
  return (c == 1 && r >= t.size(-1)) || (r == 1 && c >= t.size(-2)) ? t : t.contiguous();
}

// Rows begin at multiples of 16 bytes, as PyTorch's own results do, which the gradient's operands must.
at::Tensor make_result(std::vector<int64_t> shape, const at::Tensor &like) {
  const int64_t unit = 16 / static_cast<int64_t>(like.element_size()), row = (shape.back() + unit - 1) / unit * unit;
  std::vector<int64_t> strides{row, 1};
  if (shape.size() == 3) strides.insert(strides.begin(), shape[1] * row);
  return at::empty_strided(shape, strides, like.options());
}

bool grouped_mm(Call &call) {  // self, mat2, offs?, bias?, out_dtype?
  const at::Tensor a = call.tensor(0), b = call.tensor(1), ends = call.tensor(2);
  const at::ScalarType type = a.scalar_type();
  // of other arguments PyTorch says what is wrong
  if (!is_float(type) || b.scalar_type() != type || !call.none(3) || call.type(4).value_or(type) != type) return false;
  const bool many_a = a.dim() == 3, many_b = b.dim() == 3;
  if ((!many_a && a.dim() != 2) || (!many_b && b.dim() != 2) || ends.defined() != !(many_a && many_b)) return false;
  if ((many_a || many_b) && a.size(-1) != b.size(-2)) return false;
  if (many_a && many_b) return a.size(0) == b.size(0) && call.give(at::bmm(a, b));
  if (a.size(-1) != b.size(-2) || ends.dim() != 1 || ends.scalar_type() != at::kInt) return false;
  if ((many_a || many_b) && ends.size(0) != (many_a ? a : b).size(0)) return false;
  std::vector<int64_t> shape{a.size(-2), b.size(-1)};
  if (!many_a && !many_b) shape.insert(shape.begin(), ends.size(0));
  const at::Tensor out = make_result(shape, a);
  if (out.numel() == 0) return call.give(out);
  if (ends.size(0) == 0) return call.give(out.zero_());
  const at::Tensor left = readable(a), right = readable(b), where = ends.contiguous();
  const rdna_tensor x = describe(left), y = describe(right), at = describe(where), to = describe(out);
  check(rdna_op_gemm_grouped(stream_of(a), &x, &y, &at, &to));
  return call.give(out);
}

const Single singles[] = {{"_grouped_mm", grouped_mm}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
