// What is done to a number's own bits: fraction and exponent, the exclusive or of many.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

// x = mantissa 2^exponent, 1/2 <= |mantissa| < 1.
bool frexp(Call &call) {  // self, mantissa!, exponent!
  const at::Tensor x = call.tensor(0), fraction = call.tensor(1), power = call.tensor(2);
  if (!is_real(x.scalar_type()) || fraction.scalar_type() != x.scalar_type() || power.scalar_type() != at::kInt)
    return false;
  const bool f64 = x.scalar_type() == at::kDouble;
  const at::Tensor w = x.to(f64 ? at::kDouble : at::kFloat).contiguous();
  const int64_t places = f64 ? 52 : 23, bias = f64 ? 1022 : 126, ones = f64 ? 2047 : 255;
  const double smallest = std::ldexp(1.0, static_cast<int>(1 - bias - 1));
  const at::Tensor small = at::lt(at::abs(w), smallest);
  const at::Tensor normal = at::where(small, w * std::ldexp(1.0, static_cast<int>(places + 1)), w);
  const at::Tensor bits = normal.view(f64 ? at::kLong : at::kInt);
  const at::Tensor biased = at::bitwise_and(at::bitwise_right_shift(bits, places), ones);
  const at::Tensor plain = at::logical_or(at::eq(w, 0), at::logical_not(at::isfinite(w)));
  const at::Tensor kept = at::bitwise_and(bits, ~(ones << places));
  const at::Tensor m = at::where(plain, w, at::bitwise_or(kept, bias << places).view(w.scalar_type()));
  const at::Tensor e = (biased - bias - small.to(biased.scalar_type()) * (places + 1)).masked_fill(plain, 0);
  Output a(fraction, x.sizes(), x.scalar_type(), x, false), b(power, x.sizes(), at::kInt, x, false);
  a.get().copy_(m);
  b.get().copy_(e);
  return call.give({a.finish(), b.finish()});
}

// The exclusive or of all values, floats as their bits in f64 and integers as of 64 bits, half with half until one is
// left. self, dim, keepdim, mode, out
bool hash_tensor(Call &call) {
  const at::Tensor x = call.tensor(0), out = call.output();
  const at::ScalarType type = x.scalar_type();
  if (!has_dtype(type) || call.integer(3) != 0 || out.scalar_type() != at::kUInt64) return false;
  const at::Tensor bits = is_real(type) ? x.to(at::kDouble).view(at::kLong) : x.to(at::kLong);
  std::vector<int64_t> order, left, kept;
  const std::vector<int64_t> dims = call.integers(1);
  const auto reduced = at::dim_list_to_bitset(dims.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims),
                                              static_cast<size_t>(x.dim()));
  int64_t count = 1;
  for (int64_t d = 0; d < x.dim(); d++) {
    const bool gone = reduced[static_cast<size_t>(d)];
    if (gone) count *= x.size(d);
    if (!gone) order.push_back(d), left.push_back(x.size(d));
    if (!gone || call.flag(2)) kept.push_back(gone ? 1 : x.size(d));
  }
  for (int64_t d = 0; d < x.dim(); d++)
    if (reduced[static_cast<size_t>(d)]) order.push_back(d);
  left.push_back(count);
  if (count == 0) return false;  // which the CPU refuses, in PyTorch's words
  at::Tensor rest = bits.permute(order).reshape(left);
  while (rest.size(-1) > 1) {
    const int64_t half = rest.size(-1) / 2, odd = rest.size(-1) - 2 * half;
    const at::Tensor both = at::bitwise_xor(rest.narrow(-1, 0, half), rest.narrow(-1, half, half));
    rest = odd ? at::cat({both, rest.narrow(-1, 2 * half, 1)}, -1) : both;
  }
  at::native::resize_output(out, kept);
  out.view(at::kLong).copy_(rest.view(kept));
  return call.give(out);
}

const Single singles[] = {
    {"frexp.Tensor_out", frexp},
    {"hash_tensor.out", hash_tensor},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
