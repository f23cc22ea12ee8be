// Joining, turning, padding.
#include "rdna/op/movement.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>

#include "native.h"

namespace rdna_torch {
namespace {

bool cat(Call &call) {  // tensors, dim, out
  std::vector<at::Tensor> parts;
  const std::vector<at::Tensor> all = call.tensors(0);
  if (all.empty()) return false;
  at::ScalarType type = all[0].scalar_type();
  for (const at::Tensor &t : all) type = c10::promoteTypes(type, t.scalar_type());
  if (!has_dtype(type)) return false;
  for (const at::Tensor &t : all) {
    if (!describable(t) || t.device() != all[0].device()) return false;
    if (t.dim() == 1 && t.numel() == 0) continue;  // PyTorch lets these join anything
    parts.push_back(converted(t, type));
  }
  if (parts.empty()) {
    Output out(call.output(), {0}, type, all[0], false);
    return call.give(out.finish());
  }
  const int64_t rank = parts[0].dim(), dim = wrap(call.integer(1), rank);
  std::vector<int64_t> shape(parts[0].sizes().begin(), parts[0].sizes().end());
  TORCH_CHECK(rank > 0, "zero-dimensional tensor (at position 0) cannot be concatenated");
  for (size_t i = 1; i < parts.size(); i++) {
    TORCH_CHECK(parts[i].dim() == rank, "Tensors must have same number of dimensions: got ", rank, " and ",
                parts[i].dim());
    for (int64_t d = 0; d < rank; d++)
      TORCH_CHECK(d == dim || parts[i].size(d) == shape[static_cast<size_t>(d)],
                  "Sizes of tensors must match except in dimension ", dim, ". Expected size ",
                  shape[static_cast<size_t>(d)], " but got size ", parts[i].size(d), " for tensor number ", i,
                  " in the list.");
    shape[static_cast<size_t>(dim)] += parts[i].size(dim);
  }
  const at::Tensor given = call.output();
  if (given.defined())
    for (const at::Tensor &t : all) at::assert_no_overlap(given, t);
  const bool grows = given.defined() && !given.sizes().equals(shape);
  Output out(given, shape, type, parts[0], false);
  if (grows) {  // lies as the parts do, where all lie alike
    const at::MemoryFormat format = all[0].suggest_memory_format();
    bool alike = true;
    for (const at::Tensor &t : all) alike = alike && t.suggest_memory_format() == format;
    if (alike && out.get().dim() == all[0].dim()) out.get().unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  std::vector<rdna_tensor> tensors;
  for (const at::Tensor &t : parts) tensors.push_back(describe(t));
  std::vector<const rdna_tensor *> list;
  for (const rdna_tensor &t : tensors) list.push_back(&t);
  if (out.get().numel()) {
    const rdna_tensor to = describe(out.get());
    check(rdna_op_cat(stream_of(out.get()), list.data(), static_cast<int>(list.size()), static_cast<int>(dim), &to));
  }
  return call.give(out.finish());
}

bool flip(Call &call) {  // self, dims
  const at::Tensor x = call.tensor(0);
  if (!describable(x)) return false;
  uint32_t dims = 0;
  for (int64_t d : call.integers(1)) {
    const uint32_t bit = 1u << wrap(d, x.dim());
    TORCH_CHECK(!(dims & bit), "dim ", wrap(d, x.dim()), " appears multiple times in the list of dims");
    dims |= bit;
  }
  const at::Tensor y = at::empty_like(x);
  if (x.numel()) {
    const rdna_tensor from = describe(x), to = describe(y);
    check(rdna_op_flip(stream_of(x), &from, x.dim() ? dims : 0, &to));
  }
  return call.give(y);
}

bool roll(Call &call) {  // self, shifts, dims
  const at::Tensor x = call.tensor(0);
  const std::vector<int64_t> shifts = call.integers(1), dims = call.integers(2);
  if (!describable(x)) return false;
  if (dims.empty() && shifts.size() == 1) return call.give(x.flatten().roll(shifts[0], 0).view(x.sizes()));
  if (shifts.size() != dims.size() || dims.empty()) return false;
  if (x.numel() == 0) return call.give(x.clone());
  if (x.dim() == 0) return false;
  std::vector<int64_t> before(static_cast<size_t>(x.dim()), 0);
  for (size_t i = 0; i < dims.size(); i++) before[static_cast<size_t>(wrap(dims[i], x.dim()))] += shifts[i];
  for (size_t d = 0; d < before.size(); d++) {
    const int64_t n = x.size(static_cast<int64_t>(d));
    before[d] = (before[d] % n + n) % n;
  }
  const at::Tensor y = make_like(x);
  const rdna_tensor from = describe(x), to = describe(y);
  check(rdna_op_pad(stream_of(x), RDNA_PAD_MODE_CIRCULAR, &from, before.data(), {}, &to));
  return call.give(y);
}

struct PadRow {
  const char *name;
  rdna_pad_mode mode;
  int64_t dims;
};

bool pad(const PadRow &row, Call &call) {  // self, padding (last dimension first, before and after), out
  const at::Tensor x = call.tensor(0);
  const std::vector<int64_t> padding = call.integers(1);
  if (!describable(x) || x.dim() < row.dims + 1 || x.dim() > row.dims + 2 ||
      padding.size() != static_cast<size_t>(2 * row.dims))
    return false;
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end()), before(shape.size(), 0);
  for (int64_t i = 0; i < row.dims; i++) {
    const size_t d = shape.size() - 1 - static_cast<size_t>(i);
    const int64_t low = padding[static_cast<size_t>(2 * i)], high = padding[static_cast<size_t>(2 * i + 1)];
    if (row.mode == RDNA_PAD_MODE_REFLECT && (low >= shape[d] || high >= shape[d]))
      return false;  // PyTorch has the words
    before[d] = low;
    shape[d] += low + high;
    if (shape[d] < 1) return false;
  }
  // a batch may be empty, nothing else
  if (x.numel() == 0 && (x.dim() != row.dims + 2 || c10::multiply_integers(x.sizes().slice(1)) == 0)) return false;
  Output out(call.output(), shape, x.scalar_type(), x);
  if (x.numel() == 0) return call.give(out.finish());
  const rdna_tensor from = describe(x), to = describe(out.get());
  check(rdna_op_pad(stream_of(x), row.mode, &from, before.data(), {}, &to));
  return call.give(out.finish());
}

const PadRow pads[] = {
    {"reflection_pad1d.out", RDNA_PAD_MODE_REFLECT, 1},    {"reflection_pad2d", RDNA_PAD_MODE_REFLECT, 2},
    {"reflection_pad2d.out", RDNA_PAD_MODE_REFLECT, 2},    {"reflection_pad3d.out", RDNA_PAD_MODE_REFLECT, 3},
    {"replication_pad1d.out", RDNA_PAD_MODE_REPLICATE, 1}, {"replication_pad2d.out", RDNA_PAD_MODE_REPLICATE, 2},
    {"replication_pad3d.out", RDNA_PAD_MODE_REPLICATE, 3},
};

// What comes of one dimension's padding goes back to the value that was copied. |l| and |r| as they were padded.
at::Tensor padded_grad(const at::Tensor &grad, int64_t d, int64_t n, int64_t l, int64_t r, bool reflect) {
  if (l == 0 && r == 0) return grad;
  if (l < 0 || r < 0) {
    at::Tensor place = at::arange(grad.size(d), grad.options().dtype(at::kLong)) - l;
    place = reflect ? n - 1 - at::abs(n - 1 - at::abs(place)) : place.clamp_(0, n - 1);
    std::vector<int64_t> shape = grad.sizes().vec();
    shape[static_cast<size_t>(d)] = n;
    return at::zeros(shape, grad.options()).index_add_(d, place, grad);
  }
  const at::Tensor out = grad.narrow(d, l, n).clone();
  auto share = [&](int64_t at, int64_t from, int64_t count) {
    if (count == 0) return;
    const at::Tensor part = grad.narrow(d, from, count);
    if (reflect)
      out.narrow(d, at, count).add_(part.flip(d));
    else
      out.narrow(d, at, 1).add_(part.sum(at::IntArrayRef{d}, true));
  };
  share(reflect ? 1 : 0, 0, l);
  share(reflect ? n - 1 - r : n - 1, l + n, r);
  return out;
}

bool pad_backward(const PadRow &row, Call &call) {  // grad_output, self, padding, [grad_input!]
  const at::Tensor x = call.tensor(1);
  const std::vector<int64_t> padding = call.integers(2);
  if (!is_real(x.scalar_type()) || call.tensor(0).scalar_type() != x.scalar_type() || x.dim() < row.dims ||
      padding.size() != 2 * static_cast<size_t>(row.dims))
    return false;
  const bool reflect = row.mode == RDNA_PAD_MODE_REFLECT;
  std::vector<int64_t> shape = x.sizes().vec();
  for (int d = 0; d < row.dims; d++) {
    int64_t &n = shape[static_cast<size_t>(x.dim() - 1 - d)];
    const int64_t l = padding[static_cast<size_t>(2 * d)], r = padding[static_cast<size_t>(2 * d + 1)];
    if (n == 0 || (reflect && (l >= n || r >= n))) return false;
    n += l + r;
  }
  if (call.tensor(0).sizes() != shape) return false;
  at::Tensor grad = x.scalar_type() == at::kDouble ? call.tensor(0) : call.tensor(0).to(at::kFloat);
  for (int d = 0; x.numel() && d < row.dims; d++) {
    const int64_t dim = x.dim() - 1 - d;
    grad = padded_grad(grad, dim, x.size(dim), padding[static_cast<size_t>(2 * d)],
                       padding[static_cast<size_t>(2 * d + 1)], reflect);
  }
  Output out(call.output(), x.sizes(), x.scalar_type(), x, false);
  if (x.numel()) out.get().copy_(grad);
  return call.give(out.finish());
}
const PadRow pads_backward[] = {
    {"reflection_pad1d_backward.grad_input", RDNA_PAD_MODE_REFLECT, 1},
    {"reflection_pad2d_backward", RDNA_PAD_MODE_REFLECT, 2},
    {"reflection_pad2d_backward.grad_input", RDNA_PAD_MODE_REFLECT, 2},
    {"reflection_pad3d_backward.grad_input", RDNA_PAD_MODE_REFLECT, 3},
    {"replication_pad1d_backward.grad_input", RDNA_PAD_MODE_REPLICATE, 1},
    {"replication_pad2d_backward", RDNA_PAD_MODE_REPLICATE, 2},
    {"replication_pad2d_backward.grad_input", RDNA_PAD_MODE_REPLICATE, 2},
    {"replication_pad3d_backward", RDNA_PAD_MODE_REPLICATE, 3},
    {"replication_pad3d_backward.grad_input", RDNA_PAD_MODE_REPLICATE, 3},
};

bool eye(Call &call) {  // n, m, out
  const at::Tensor out = call.tensor(2);
  const int64_t n = call.integer(0), m = call.integer(1);
  TORCH_CHECK(n >= 0 && m >= 0, "n and m must be greater or equal to 0, got ", n, " and ", m);
  out.resize_({n, m}).zero_();
  if (n && m) out.diagonal().fill_(1);
  return call.give(out);
}

const Single singles[] = {{"cat.out", cat}, {"flip", flip}, {"roll", roll}, {"eye.m_out", eye}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, pads, pad);
  add(m, pads_backward, pad_backward);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
