// Operators that are others in another form or under another name.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

// x << 1 is this, and not bitwise_left_shift. Of floats it would be x times 2.
at::Tensor shift(const Call &call, at::Tensor (*by_tensor)(const at::Tensor &, const at::Tensor &),
                 at::Tensor (*by_number)(const at::Tensor &, const at::Scalar &)) {
  if (!at::isIntegralType(call.tensor(0).scalar_type(), false)) return {};
  if (!call[1].isTensor()) return by_number(call.tensor(0), call.scalar(1));
  return at::isIntegralType(call.tensor(1).scalar_type(), false) ? by_tensor(call.tensor(0), call.tensor(1))
                                                                 : at::Tensor();
}
at::Tensor left(const Call &call) { return shift(call, at::bitwise_left_shift, at::bitwise_left_shift); }
at::Tensor right(const Call &call) { return shift(call, at::bitwise_right_shift, at::bitwise_right_shift); }

at::Tensor largest(const Call &call) { return at::max(call.tensor(0)); }
at::Tensor smallest(const Call &call) { return at::min(call.tensor(0)); }

// self, dim?, correction?, keepdim
at::Tensor spread(const Call &call, at::Tensor (*f)(const at::Tensor &, at::OptionalIntArrayRef,
                                                    const std::optional<at::Scalar> &, bool)) {
  const std::vector<int64_t> dims = call.integers(1);
  return f(call.tensor(0), call.none(1) ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims),
           call.none(2) ? std::nullopt : std::make_optional(call.scalar(2)), call.flag(3));
}
at::Tensor var(const Call &call) { return spread(call, at::var); }
at::Tensor std_(const Call &call) { return spread(call, at::std); }

at::Tensor bucketize(const Call &call) {  // number, boundaries, out_int32, right
  return at::searchsorted(call.tensor(1), call.scalar(0), call.flag(2), call.flag(3));
}
at::Tensor mvlgamma(const Call &call) { return at::mvlgamma(call.tensor(0), call.integer(1)); }
at::Tensor logit(const Call &call) {  // self, eps?
  return at::logit(call.tensor(0), call.none(1) ? std::nullopt : std::make_optional(call.real(1)));
}
at::Tensor addbmm(const Call &call) {  // self, batch1, batch2, beta, alpha
  return at::addbmm(call.tensor(0), call.tensor(1), call.tensor(2), call.scalar(3), call.scalar(4));
}
at::Tensor addmm_activation(const Call &call) {  // self, mat1, mat2, beta, alpha, use_gelu
  const at::Tensor y = at::addmm(call.tensor(0), call.tensor(1), call.tensor(2), call.scalar(3), call.scalar(4));
  return call.flag(5) ? at::gelu(y) : at::relu(y);
}

// elements or number, test elements or number, assume_unique, invert
at::Tensor is_in_number(const Call &call) {
  return call.flag(3) ? at::ne(call.tensor(0), call.scalar(1)) : at::eq(call.tensor(0), call.scalar(1));
}
at::Tensor number_is_in(const Call &call) {
  const at::Tensor found = at::eq(call.tensor(1), call.scalar(0)).any();
  return call.flag(3) ? at::logical_not(found) : found;
}

at::Tensor eye(const Call &call) {  // n
  return at::eye(call.integer(0), call.output().options());
}

// start, end, step: with the end, which arange has not
at::Tensor range(const Call &call) {
  const double start = call.real(0), end = call.real(1), step = call.real(2);
  TORCH_CHECK(step > 0 || step < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start) && std::isfinite(end), "unsupported range: ", start, " -> ", end);
  TORCH_CHECK((step > 0 && end >= start) || (step < 0 && end <= start),
              "upper bound and lower bound inconsistent with step sign");
  const at::TensorOptions like = call.output().options();
  const bool whole = at::isIntegralType(call.output().scalar_type(), false);
  const auto count = static_cast<int64_t>((end - start) / step + 1);
  const at::Tensor steps = at::arange(count, like.dtype(whole ? at::kLong : at::kDouble));
  return whole ? steps.mul(call.scalar(2).toLong()).add(call.scalar(0).toLong()) : steps.mul(step).add(start);
}

// row, col, offset, dtype?, layout?, device?, pin_memory?
at::Tensor triangle_indices(const Call &call, at::Tensor (*f)(const at::Tensor &, int64_t)) {
  TORCH_CHECK(call.integer(0) >= 0, "row must be non-negative, got", call.integer(0));
  TORCH_CHECK(call.integer(1) >= 0, "col must be non-negative, got", call.integer(1));
  const at::TensorOptions here = at::TensorOptions().device(c10::Device(kRdna, call.device()));
  const at::Tensor ones = at::ones({call.integer(0), call.integer(1)}, here.dtype(at::kBool));
  return f(ones, call.integer(2)).nonzero().t().contiguous().to(call.type(3).value_or(at::kLong));
}
at::Tensor tril_indices(const Call &call) { return triangle_indices(call, at::tril); }
at::Tensor triu_indices(const Call &call) { return triangle_indices(call, at::triu); }

// glu = a sigmoid(b) with x = (a, b) along dim; the derivative of sigmoid is s (1 - s).
at::Tensor glu_jvp(const Call &call) {  // glu, x, dx, dim
  const int64_t dim = call.integer(3);
  const at::Tensor s = at::sigmoid(call.tensor(1).chunk(2, dim)[1]);
  const auto d = call.tensor(2).chunk(2, dim);
  return d[0] * s + call.tensor(0) * (1 - s) * d[1];
}
at::Tensor glu_backward_jvp(const Call &call) {  // grad_x, grad_glu, x, dgrad_glu, dx, dim
  const int64_t dim = call.integer(5);
  const at::Tensor g = call.tensor(1), dg = call.tensor(3);
  const auto x = call.tensor(2).chunk(2, dim), d = call.tensor(4).chunk(2, dim);
  const at::Tensor s = at::sigmoid(x[1]), slope = s * (1 - s);
  const at::Tensor of_b = (dg * x[0] + g * d[0]) * slope + g * x[0] * slope * (1 - 2 * s) * d[1];
  return at::cat({dg * s + g * slope * d[1], of_b}, dim);
}

at::Tensor combination(const Call &call) {  // input (n, …), coefficients (m, n)
  const at::Tensor x = call.tensor(0), c = call.tensor(1);
  if (x.dim() == 0 || c.dim() != 2 || x.size(0) != c.size(1)) return {};
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = c.size(0);
  return at::matmul(c, x.reshape({x.size(0), -1})).reshape(shape);
}

at::Tensor row_starts(const Call &call) {  // sorted rows, how many, out_int32
  const at::Tensor rows = call.tensor(0);
  return at::searchsorted(rows, at::arange(call.integer(1) + 1, rows.options()), call.flag(2));
}
at::Tensor rows_and_columns(const Call &call) {  // crow_indices, col_indices, out_int32, transpose
  const at::Tensor starts = call.tensor(0), columns = call.tensor(1);
  if (starts.dim() != 1) return {};
  const at::ScalarType type = call.flag(2) ? at::kInt : at::kLong;
  const at::Tensor rows = at::repeat_interleave(at::arange(starts.numel() - 1, starts.options()), starts.diff());
  return call.flag(3) ? at::stack({columns.to(type), rows.to(type)}) : at::stack({rows.to(type), columns.to(type)});
}

// self, weight, kernel_size, bias?, stride, padding, dilation; of as many groups as the input has channels a filter
at::Tensor convolution(const Call &call) {
  const at::Tensor x = call.tensor(0), w = call.tensor(1);
  const size_t rank = static_cast<size_t>(w.dim()) - 2;
  const int64_t channels = x.size(x.dim() - static_cast<int64_t>(rank) - 1);
  return at::convolution(x, w, call.optional(3), call.integers(4), call.integers(5), call.integers(6), false,
                         std::vector<int64_t>(rank, 0), channels / std::max<int64_t>(w.size(1), 1));
}
at::Tensor transposed_convolution(const Call &call) {  // …, stride, padding, output_padding, dilation
  return at::convolution(call.tensor(0), call.tensor(1), call.optional(3), call.integers(4), call.integers(5),
                         call.integers(7), true, call.integers(6), 1);
}

const Made rows[] = {
    {"__lshift__.Scalar", left},
    {"__lshift__.Tensor", left},
    {"__ilshift__.Scalar", left},
    {"__ilshift__.Tensor", left},
    {"__rshift__.Scalar", right},
    {"__rshift__.Tensor", right},
    {"__irshift__.Scalar", right},
    {"__irshift__.Tensor", right},
    {"max.unary_out", largest},
    {"min.unary_out", smallest},
    {"var.correction_out", var},
    {"std.correction_out", std_},
    {"bucketize.Scalar", bucketize},
    {"mvlgamma.out", mvlgamma},
    {"logit_", logit},
    {"addbmm_", addbmm},
    {"_addmm_activation.out", addmm_activation},
    {"isin.Tensor_Scalar_out", is_in_number},
    {"isin.Scalar_Tensor_out", number_is_in},
    {"eye.out", eye},
    {"range.out", range},
    {"tril_indices", tril_indices},
    {"triu_indices", triu_indices},
    {"glu_jvp", glu_jvp},
    {"glu_backward_jvp", glu_backward_jvp},
    {"_compute_linear_combination", combination},
    {"_convert_indices_from_coo_to_csr.out", row_starts},
    {"_convert_indices_from_csr_to_coo.out", rows_and_columns},
    {"_conv_depthwise2d", convolution},
    {"conv_depthwise3d", convolution},
    {"slow_conv_dilated2d", convolution},
    {"slow_conv_dilated3d", convolution},
    {"slow_conv_transpose2d.out", transposed_convolution},
    {"slow_conv_transpose3d", transposed_convolution},
    {"slow_conv_transpose3d.out", transposed_convolution},
};

bool is_set_to(Call &call) {  // self, tensor
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  return call.give_value(a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
                         a.strides() == b.strides());
}

// The host waits for the answer, as it does on the CPU.
bool assert_true(Call &call) {  // self, [message]
  const at::Tensor t = call.tensor(0);
  TORCH_CHECK(t.numel() == 1, "Boolean value of Tensor with ", t.numel() ? "more than one value" : "no values",
              " is ambiguous");
  const std::string message =
      call.count() > 1 ? call[1].toStringRef() : "Expected Tensor with single nonzero value, but got zero";
  TORCH_CHECK(t.ne(0).item().toBool(), message);
  return call.give_nothing();
}

bool gather_stats(Call &call) {  // input, mean, invstd, running_mean?, running_var?, momentum, eps, count
  const at::Tensor mean = call.tensor(1);
  if (mean.dim() != 2) return false;
  const at::Tensor counts = at::full({mean.size(0)}, call.integer(7), mean.options());
  const auto [m, s] = at::batch_norm_gather_stats_with_counts(call.tensor(0), mean, call.tensor(2), call.optional(3),
                                                              call.optional(4), call.real(5), call.real(6), counts);
  return call.give({m, s});
}

const Single singles[] = {
    {"is_set_to", is_set_to},
    {"_assert_async", assert_true},
    {"_assert_async.msg", assert_true},
    {"batch_norm_gather_stats", gather_stats},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, rows, run_made);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
