// Pooling over windows, fixed and adaptive, with gradients.
#include <ATen/ops/empty.h>

#include "native.h"
#include "rdna/op/pool.h"

namespace rdna_torch {
namespace {

// (n, channels, spatial…) from that or (channels, spatial…).
at::Tensor batched(const at::Tensor &t, int dims) { return t.dim() == dims + 1 ? t.unsqueeze(0) : t; }

bool takes(const at::Tensor &x, int dims) {
  if (!is_real(x.scalar_type()) || (x.dim() != dims + 1 && x.dim() != dims + 2)) return false;
  for (int64_t d = x.dim() - dims - 1; d < x.dim(); d++)
    if (x.size(d) == 0) return false;  // the CPU says whether that is allowed
  return true;
}

// One number for all dimensions, or one for each; |none| where there is none.
void spread(const std::vector<int64_t> &given, int dims, const int64_t *none, int64_t *out) {
  TORCH_CHECK(given.empty() || given.size() == 1 || given.size() == static_cast<size_t>(dims),
              "pooling: expected one number or one for each of ", dims, " dimensions, got ", given);
  for (int d = 0; d < dims; d++)
    out[d] = given.empty() ? none[d] : given.size() == 1 ? given[0] : given[static_cast<size_t>(d)];
}

// The arguments from |first| on: kernel_size, stride, padding.
rdna_pooling describe_pool(const Call &call, size_t first, int dims) {
  static const int64_t zeros[3] = {0, 0, 0};
  rdna_pooling p{RDNA_POOLING_INIT};
  p.spatial_dims = dims;
  spread(call.integers(first), dims, zeros, p.window);
  spread(call.integers(first + 1), dims, p.window, p.stride);
  spread(call.integers(first + 2), dims, zeros, p.pad_before);
  for (int d = 0; d < dims; d++) p.pad_after[d] = p.pad_before[d], p.dilation[d] = 1;
  return p;
}

rdna_pooling max_pool(const Call &call, size_t first, int dims) {  // …, dilation, ceil_mode
  static const int64_t ones[3] = {1, 1, 1};
  rdna_pooling p = describe_pool(call, first, dims);
  spread(call.integers(first + 3), dims, ones, p.dilation);
  p.ceil = call.flag(first + 4);
  for (int d = 0; d < dims; d++) {
    const int64_t reach = (p.window[d] - 1) * p.dilation[d] + 1;
    TORCH_CHECK(p.pad_before[d] >= 0 && p.pad_before[d] <= reach / 2,
                "pad should be at most half of effective kernel size, but got pad=", p.pad_before[d],
                ", kernel_size=", p.window[d], " and dilation=", p.dilation[d]);
  }
  return p;
}

rdna_pooling average_pool(const Call &call, size_t first,
                          int dims) {  // …, ceil_mode, count_include_pad, divisor_override
  rdna_pooling p = describe_pool(call, first, dims);
  p.ceil = call.flag(first + 3);
  p.count_padding = call.flag(first + 4);
  p.divisor = call.none(first + 5) ? 0 : call.integer(first + 5);
  return p;
}

// x's shape with the spatial sizes of the result.
template <class Size>
std::vector<int64_t> pooled(const at::Tensor &x, int dims, Size size) {
  std::vector<int64_t> shape = x.sizes().vec();
  for (int d = 0; d < dims; d++) {
    int64_t &n = shape[shape.size() - static_cast<size_t>(dims - d)];
    n = size(d, n);
  }
  return shape;
}

std::vector<int64_t> pooled(const at::Tensor &x, const rdna_pooling &p) {
  return pooled(x, p.spatial_dims, [&](int d, int64_t n) {
    const int64_t windows = rdna_pooling_size(&p, d, n);
    TORCH_CHECK(windows > 0, "pooling: dimension ", d, " of size ", n, " is too small for its window");
    return windows;
  });
}

// A new result with x's order of values: channels last stays so.
at::Tensor make_pooled(const at::Tensor &given, const std::vector<int64_t> &shape, at::ScalarType type,
                       const at::Tensor &x) {
  if (given.defined()) return given;
  return at::empty(shape, x.options().dtype(type).memory_format(x.suggest_memory_format()));
}

struct Row {
  const char *name;
  int dims;
};

bool max_forward(const Row &row,
                 Call &call) {  // self, kernel_size, stride, padding, dilation, ceil_mode, out!, indices!
  const at::Tensor x = call.tensor(0), values = call.tensor(6), indices = call.tensor(7);
  if (!takes(x, row.dims) || indices.scalar_type() != at::kLong) return false;
  const rdna_pooling p = max_pool(call, 1, row.dims);
  const std::vector<int64_t> shape = pooled(x, p);
  Output v(values, shape, x.scalar_type(), x, false), i(indices, shape, at::kLong, x, false);
  if (v.get().numel()) {
    const rdna_tensor from = describe(batched(x, row.dims)), to = describe(batched(v.get(), row.dims)),
                      at = describe(batched(i.get(), row.dims));
    check(rdna_op_max_pool(stream_of(x), &p, &from, &to, &at));
  }
  v.finish();
  i.finish();
  return call.give({values, indices});
}
const Row max_forwards[] = {{"max_pool2d_with_indices.out", 2}, {"max_pool3d_with_indices.out", 3}};

// The functional overload, which is not structured in three dimensions.
bool max_forward_new(const Row &row, Call &call) {  // self, kernel_size, stride, padding, dilation, ceil_mode
  const at::Tensor x = call.tensor(0);
  if (!takes(x, row.dims)) return false;
  const rdna_pooling p = max_pool(call, 1, row.dims);
  const std::vector<int64_t> shape = pooled(x, p);
  const at::Tensor values = make_pooled({}, shape, x.scalar_type(), x), indices = make_pooled({}, shape, at::kLong, x);
  if (values.numel()) {
    const rdna_tensor from = describe(batched(x, row.dims)), to = describe(batched(values, row.dims)),
                      at = describe(batched(indices, row.dims));
    check(rdna_op_max_pool(stream_of(x), &p, &from, &to, &at));
  }
  return call.give({values, indices});
}
const Row max_forwards_new[] = {{"max_pool3d_with_indices", 3}};

// Of compiled graphs in which nobody reads the indices: their 8 bytes are most of what the operator above writes.
bool max_alone(Call &call) {  // self, kernel_size, stride, padding, dilation, ceil_mode
  const at::Tensor x = call.tensor(0);
  const int dims = static_cast<int>(call.integers(1).size());
  TORCH_CHECK((dims == 2 || dims == 3) && takes(x, dims),
              "rdna::max_pool takes images of two or three dimensions that are not empty, got ", x.sizes(),
              " and windows of ", dims);
  const rdna_pooling p = max_pool(call, 1, dims);
  const at::Tensor values = make_pooled({}, pooled(x, p), x.scalar_type(), x);
  if (values.numel()) {
    const rdna_tensor from = describe(batched(x, dims)), to = describe(batched(values, dims));
    check(rdna_op_max_pool(stream_of(x), &p, &from, &to, nullptr));
  }
  return call.give(values);
}

// grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, [grad_input!]
bool max_backward(const Row &row, Call &call) {
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), indices = call.tensor(7);
  if (!takes(x, row.dims) || grad.scalar_type() != x.scalar_type() || indices.scalar_type() != at::kLong) return false;
  const rdna_pooling p = max_pool(call, 2, row.dims);
  Output out(make_pooled(call.output(), x.sizes().vec(), x.scalar_type(), x), x.sizes(), x.scalar_type(), x, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(batched(grad, row.dims)), at = describe(batched(indices, row.dims)),
                      to = describe(batched(out.get(), row.dims));
    check(rdna_op_max_pool_backward(stream_of(x), &p, &from, &at, &to));
  }
  return call.give(out.finish());
}
const Row max_backwards[] = {{"max_pool2d_with_indices_backward.grad_input", 2},
                             {"max_pool3d_with_indices_backward.grad_input", 3},
                             {"max_pool3d_with_indices_backward", 3}};

// self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out
bool average_forward(const Row &row, Call &call) {
  const at::Tensor x = call.tensor(0);
  if (!takes(x, row.dims)) return false;
  const rdna_pooling p = average_pool(call, 1, row.dims);
  Output out(call.output(), pooled(x, p), x.scalar_type(), x, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(batched(x, row.dims)), to = describe(batched(out.get(), row.dims));
    check(rdna_op_average_pool(stream_of(x), &p, &from, &to));
  }
  return call.give(out.finish());
}
const Row average_forwards[] = {{"avg_pool2d.out", 2}, {"avg_pool3d.out", 3}};

// grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_input
bool average_backward(const Row &row, Call &call) {
  const at::Tensor grad = call.tensor(0), x = call.tensor(1);
  if (!takes(x, row.dims) || grad.scalar_type() != x.scalar_type()) return false;
  const rdna_pooling p = average_pool(call, 2, row.dims);
  Output out(call.output(), x.sizes(), x.scalar_type(), x, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(batched(grad, row.dims)), to = describe(batched(out.get(), row.dims));
    check(rdna_op_average_pool_backward(stream_of(x), &p, &from, &to));
  }
  return call.give(out.finish());
}
const Row average_backwards[] = {{"avg_pool2d_backward.grad_input", 2}, {"avg_pool3d_backward.grad_input", 3}};

std::vector<int64_t> adapted(const at::Tensor &x, int dims, const std::vector<int64_t> &sizes) {
  TORCH_CHECK(sizes.size() == static_cast<size_t>(dims), "adaptive pooling: output_size must have ", dims,
              " entries, got ", sizes);
  return pooled(x, dims, [&](int d, int64_t n) {
    TORCH_CHECK(n > 0,
                "adaptive pooling: expected input to have non-zero size for non-batch dimensions, but input has "
                "sizes ",
                x.sizes());
    return sizes[static_cast<size_t>(d)];
  });
}

bool adaptive_average(const Row &row, Call &call) {  // self, output_size, [out]
  const at::Tensor x = call.tensor(0);
  if (!takes(x, row.dims)) return false;
  const std::vector<int64_t> shape = adapted(x, row.dims, call.integers(1));
  Output out(make_pooled(call.output(), shape, x.scalar_type(), x), shape, x.scalar_type(), x, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(batched(x, row.dims)), to = describe(batched(out.get(), row.dims));
    check(rdna_op_adaptive_average_pool(stream_of(x), &from, &to));
  }
  return call.give(out.finish());
}
const Row adaptive_averages[] = {{"_adaptive_avg_pool2d", 2},
                                 {"_adaptive_avg_pool3d", 3},
                                 {"adaptive_avg_pool2d.out", 2},
                                 {"adaptive_avg_pool3d.out", 3}};

bool adaptive_average_backward(const Row &row, Call &call) {  // grad_output, self, [grad_input]
  const at::Tensor grad = call.tensor(0), x = call.tensor(1);
  if (!takes(x, row.dims) || grad.scalar_type() != x.scalar_type()) return false;
  Output out(make_pooled(call.output(), x.sizes().vec(), x.scalar_type(), x), x.sizes(), x.scalar_type(), x, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(batched(grad, row.dims)), to = describe(batched(out.get(), row.dims));
    check(rdna_op_adaptive_average_pool_backward(stream_of(x), &from, &to));
  }
  return call.give(out.finish());
}
const Row adaptive_average_backwards[] = {{"_adaptive_avg_pool2d_backward", 2},
                                          {"_adaptive_avg_pool3d_backward", 3},
                                          {"adaptive_avg_pool3d_backward.grad_input", 3}};

bool adaptive_max(const Row &row, Call &call) {  // self, output_size, out!, indices!
  const at::Tensor x = call.tensor(0), values = call.tensor(2), indices = call.tensor(3);
  if (!takes(x, row.dims) || indices.scalar_type() != at::kLong) return false;
  const std::vector<int64_t> shape = adapted(x, row.dims, call.integers(1));
  Output v(values, shape, x.scalar_type(), x, false), i(indices, shape, at::kLong, x, false);
  if (v.get().numel()) {
    const rdna_tensor from = describe(batched(x, row.dims)), to = describe(batched(v.get(), row.dims)),
                      at = describe(batched(i.get(), row.dims));
    check(rdna_op_adaptive_max_pool(stream_of(x), &from, &to, &at));
  }
  v.finish();
  i.finish();
  return call.give({values, indices});
}
const Row adaptive_maxima[] = {{"adaptive_max_pool2d.out", 2}, {"adaptive_max_pool3d.out", 3}};

bool adaptive_max_backward(const Row &row, Call &call) {  // grad_output, self, indices, grad_input
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), indices = call.tensor(2);
  if (!takes(x, row.dims) || grad.scalar_type() != x.scalar_type() || indices.scalar_type() != at::kLong) return false;
  Output out(call.output(), x.sizes(), x.scalar_type(), x, false);
  if (out.get().numel()) {
    const rdna_tensor from = describe(batched(grad, row.dims)), at = describe(batched(indices, row.dims)),
                      to = describe(batched(out.get(), row.dims));
    check(rdna_op_adaptive_max_pool_backward(stream_of(x), &from, &at, &to));
  }
  return call.give(out.finish());
}
const Row adaptive_max_backwards[] = {{"adaptive_max_pool2d_backward.grad_input", 2},
                                      {"adaptive_max_pool3d_backward.grad_input", 3}};

const Single fused[] = {{"max_pool", max_alone}};

TORCH_LIBRARY_IMPL(rdna, PrivateUse1, m) { add(m, fused); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, max_forwards, max_forward);
  add(m, max_forwards_new, max_forward_new);
  add(m, max_backwards, max_backward);
  add(m, average_forwards, average_forward);
  add(m, average_backwards, average_backward);
  add(m, adaptive_averages, adaptive_average);
  add(m, adaptive_average_backwards, adaptive_average_backward);
  add(m, adaptive_maxima, adaptive_max);
  add(m, adaptive_max_backwards, adaptive_max_backward);
}

}  // namespace
}  // namespace rdna_torch
