// Fourier transforms: PyTorch's three, of any dimensions, by those of one dimension after the other.
#include "rdna/op/fft.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/native/SpectralOpsUtils.h>

#include <algorithm>
#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

bool is_offered(const at::Tensor &t) {
  const at::ScalarType type = at::toRealValueType(t.scalar_type());
  return (type == at::kFloat || type == at::kDouble) && t.dim() > 0;
}

double scale_of(int64_t normalization, at::IntArrayRef shape, at::IntArrayRef dims) {
  double values = 1;
  for (int64_t d : dims) values *= static_cast<double>(shape[static_cast<size_t>(d)]);
  const auto mode = static_cast<at::native::fft_norm_mode>(normalization);
  return mode == at::native::fft_norm_mode::none
             ? 1
             : 1 / (mode == at::native::fft_norm_mode::by_n ? values : std::sqrt(values));
}

// Whether librdna offers it; what it says of others is not an error here, as the CPU takes them.
bool offers(rdna_status status) {
  if (status == RDNA_UNSUPPORTED) return false;
  check(status);
  return true;
}

bool c2c(const at::Tensor &from, int64_t dim, bool forward, double scale, const at::Tensor &to) {
  const at::Tensor x = at::view_as_real(from), out = at::view_as_real(to);
  const rdna_tensor a = describe(x), b = describe(out);
  return offers(rdna_op_fft_c2c(stream_of(to), !forward, scale, &a, static_cast<int>(dim), &b));
}
// The result of a transform of |dims| of |x|, laid out as the CPU does: of the dimensions that are not transformed,
// those of larger strides are further out, and within all of them are the transformed ones, in the same order, but for
// the last of |dims|, which is the innermost where |keep_last|.
at::Tensor result_of(const at::Tensor &x, at::IntArrayRef dims, bool keep_last, at::IntArrayRef shape,
                     at::ScalarType type) {
  std::vector<int64_t> order, inner = dims.vec(), strides(shape.size());
  for (int64_t d = 0; d < x.dim(); d++)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  auto further_out = [&](int64_t a, int64_t b) { return x.stride(a) > x.stride(b); };
  std::stable_sort(order.begin(), order.end(), further_out);
  std::stable_sort(inner.begin(), inner.end() - keep_last, further_out);
  order.insert(order.end(), inner.begin(), inner.end());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= shape[static_cast<size_t>(order[i])])
    strides[static_cast<size_t>(order[i])] = stride;
  return at::empty_strided(shape, strides, x.options().dtype(type));
}

// The first transform reads |from|, the others are in place.
bool c2c(const at::Tensor &from, at::IntArrayRef dims, bool forward, double scale, const at::Tensor &to) {
  for (size_t i = 0; i < dims.size(); i++)
    if (!c2c(i ? to : from, dims[i], forward, i ? 1 : scale, to)) return false;
  return true;
}

bool give(Call &call, const at::Tensor &result) {
  const at::Tensor given = call.output();
  if (!given.defined()) return call.give(result);
  at::native::resize_output(given, result.sizes());
  return call.give(given.copy_(result));
}

bool fft_c2c(Call &call) {  // self, dim, normalization, forward, [out]
  const at::Tensor x = call.tensor(0);
  const std::vector<int64_t> dims = call.integers(1);
  if (!x.is_complex() || !is_offered(x)) return false;
  if (dims.empty()) return give(call, x.clone());
  const at::Tensor to = result_of(x, dims, false, x.sizes(), x.scalar_type());
  if (x.numel() && !c2c(x, dims, call.flag(3), scale_of(call.integer(2), x.sizes(), dims), to)) return false;
  return give(call, to);
}

bool fft_r2c(Call &call) {  // self, dim, normalization, onesided, [out]
  const at::Tensor x = call.tensor(0);
  const std::vector<int64_t> dims = call.integers(1);
  if (x.scalar_type() == at::kHalf)
    return give(call, at::_fft_r2c(x.to(at::kFloat), dims, call.integer(2), call.flag(3)).to(at::kComplexHalf));
  if (x.is_complex() || !is_offered(x) || dims.empty()) return false;
  const double scale = scale_of(call.integer(2), x.sizes(), dims);
  std::vector<int64_t> shape = x.sizes().vec();
  const auto last = static_cast<size_t>(dims.back());
  if (call.flag(3)) shape[last] = shape[last] / 2 + 1;
  const at::Tensor to = result_of(x, dims, true, shape, at::toComplexType(x.scalar_type()));
  if (to.numel() == 0) return give(call, to);
  if (!call.flag(3)) {
    to.copy_(x);
    return c2c(to, dims, true, scale, to) && give(call, to);
  }
  const at::Tensor pairs = at::view_as_real(to);
  const rdna_tensor a = describe(x), b = describe(pairs);
  if (!offers(rdna_op_fft_r2c(stream_of(x), scale, &a, static_cast<int>(last), &b))) return false;
  return c2c(to, at::IntArrayRef(dims).slice(0, dims.size() - 1), true, 1, to) && give(call, to);
}

bool fft_c2r(Call &call) {  // self, dim, normalization, last_dim_size, [out]
  at::Tensor x = call.tensor(0);
  const std::vector<int64_t> dims = call.integers(1);
  if (!x.is_complex() || !is_offered(x) || dims.empty()) return false;
  std::vector<int64_t> shape = x.sizes().vec();
  const auto last = static_cast<size_t>(dims.back());
  shape[last] = call.integer(3);
  if (dims.size() > 1 && x.numel()) {
    const at::IntArrayRef others = at::IntArrayRef(dims).slice(0, dims.size() - 1);
    const at::Tensor middle = result_of(x, others, false, x.sizes(), x.scalar_type());
    if (!c2c(x, others, false, 1, middle)) return false;
    x = middle;
  }
  const at::Tensor to = result_of(x, {dims.back()}, true, shape, at::toRealValueType(x.scalar_type()));
  if (to.numel() == 0) return give(call, to);
  const at::Tensor pairs = at::view_as_real(x).narrow(static_cast<int64_t>(last), 0, shape[last] / 2 + 1);
  const rdna_tensor a = describe(pairs), b = describe(to);
  const double scale = scale_of(call.integer(2), shape, dims);
  return offers(rdna_op_fft_c2r(stream_of(to), scale, &a, static_cast<int>(last), &b)) && give(call, to);
}

const Single singles[] = {
    {"_fft_c2c", fft_c2c},     {"_fft_c2c.out", fft_c2c}, {"_fft_r2c", fft_r2c},
    {"_fft_r2c.out", fft_r2c}, {"_fft_c2r", fft_c2r},     {"_fft_c2r.out", fft_c2r},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
