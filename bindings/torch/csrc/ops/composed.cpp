// Operators that are made of others, all of which stay on the device. Formulas of one line that are not worth a kernel
// of their own yet; f16 and bf16 are computed in f32 and rounded once.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "complex.h"
#include "complex_functions.h"
#include "native.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/pool.h"
#include "rdna/op/reduce.h"
#include "read.h"

namespace rdna_torch {
namespace {

// Whether the first one or two arguments, as many as are tensors, promote to f64.
bool is_wide(const Call &call) {
  const size_t inputs = call.count() - (call.output().defined() ? 1 : 0);
  if (inputs > 1 && call[0].isTensor() && call[1].isTensor())
    return at::result_type(call.tensor(0), call.tensor(1)) == at::kDouble;
  return call.tensor(call[0].isTensor() ? 0 : 1).scalar_type() == at::kDouble;
}

// Argument |i| on the device in what the result is computed in: f64, or f32 where that is f32, f16 or bf16.
at::Tensor operand(const Call &call, size_t i) {
  const at::Tensor t = call[i].isTensor()           ? call.tensor(i)
                       : call.scalar(i).isComplex() ? at::scalar_tensor(call.scalar(i))
                                                    : at::scalar_tensor(call.scalar(i), at::kDouble);
  return t.to(c10::Device(kRdna, call.device()), is_wide(call) ? at::kDouble : at::kFloat, /*non_blocking=*/true);
}

bool fits(const Call &call) {
  const at::Tensor out = call.output();
  const at::ScalarType type = out.defined() ? out.scalar_type() : call.tensor(0).scalar_type();
  return is_float(type) || (type == at::kDouble && is_wide(call));
}

// Gradients come in the type of the input.
at::Tensor like(const at::Tensor &value, const at::Tensor &x) { return value.to(x.scalar_type()); }

at::Tensor within(const at::Tensor &x, const at::Scalar &low, const at::Scalar &high) {
  return at::logical_and(at::ge(x, low), at::le(x, high));
}

// --- of one tensor

at::Tensor sinc(const Call &call) {
  if (is_complex(call.tensor(0).scalar_type())) return complex_sinc(call.tensor(0));
  if (!fits(call)) return {};
  const at::Tensor x = operand(call, 0) * M_PI;
  return at::where(at::eq(x, 0), at::ones({}, x.options()), at::sin(x) / x);
}
at::Tensor sign_bit(const at::Tensor &x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return at::lt(x.view(at::kInt), 0);
    case at::kDouble:
      return at::lt(x.view(at::kLong), 0);
    case at::kHalf:
    case at::kBFloat16:
      return at::lt(x.view(at::kShort), 0);
    default:
      return has_dtype(x.scalar_type()) ? at::lt(x, 0) : at::Tensor();
  }
}
at::Tensor angle(const Call &call) {
  if (is_complex(call.tensor(0).scalar_type())) return measured(RDNA_COMPLEX_ANGLE, call.tensor(0));
  if (is_integer(call.tensor(0).scalar_type())) return at::angle(call.tensor(0).to(default_type()));
  if (!fits(call)) return {};
  const at::Tensor x = operand(call, 0);
  const at::Tensor value = at::where(at::isnan(x), x, at::lt(x, 0).to(x.scalar_type()) * M_PI);
  return call.output().defined() ? value : like(value, call.tensor(0));
}
at::Tensor round_decimals(const Call &call) {  // self, decimals, out
  if (!fits(call)) return {};
  const int64_t decimals = call.integer(1);
  const at::Tensor x = operand(call, 0);
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals < 0 ? at::round(x / scale) * scale : at::round(x * scale) / scale;
}
at::Tensor channel_shuffle(const Call &call) {  // self, groups
  const at::Tensor x = call.tensor(0);
  const int64_t groups = call.integer(1);
  if (!has_dtype(x.scalar_type()) || x.dim() < 3 || groups < 1 || x.size(1) % groups || x.numel() == 0) return {};
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] /= groups;
  shape.insert(shape.begin() + 1, groups);
  return x.reshape(shape).transpose(1, 2).reshape(x.sizes()).contiguous(x.suggest_memory_format());
}
// Distances are made of all differences of two rows, (…, n, m, k) values: |f| of as many rows of |a| at a time as make
// some 2^24 of them. It gets those rows and which they are.
template <class F>
void by_rows(const at::Tensor &a, const at::Tensor &b, int64_t batches, F f) {
  const int64_t most =
      std::max<int64_t>(1, (int64_t{1} << 24) / std::max<int64_t>(1, batches * b.size(-2) * b.size(-1)));
  for (int64_t i = 0; i < a.size(-2); i += most) {
    const int64_t n = std::min(most, a.size(-2) - i);
    f(a.narrow(-2, i, n), i, n);
  }
}
// Distances between rows: (…, n, m) of (…, n, k) and (…, m, k).
at::Tensor cdist(const Call &call) {  // x1, x2, p, compute_mode?
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  const double p = call[2].toDouble();
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  if (!is_real(a.scalar_type()) || a.scalar_type() != b.scalar_type() || a.dim() < 2 || b.dim() < 2 ||
      a.size(-1) != b.size(-1))
    return {};
  std::vector<int64_t> shape = at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  const int64_t batches = c10::multiply_integers(shape);
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-2));
  if (a.numel() == 0 || b.numel() == 0) return at::zeros(shape, a.options());  // of rows of nothing: 0
  const at::Tensor out = at::empty(shape, a.options());
  by_rows(a, b, batches, [&](const at::Tensor &rows, int64_t i, int64_t n) {
    out.narrow(-2, i, n).copy_(at::linalg_vector_norm(rows.unsqueeze(-2) - b.unsqueeze(-3), p, -1));
  });
  return out;
}
// d |a - b|_p / da = sign(a - b) (|a - b| / distance)^(p - 1), and 0 where that has no value, as PyTorch has it: where
// the distance is 0, and for p below 1 where two values are equal.
at::Tensor cdist_backward(const Call &call) {  // grad, x1, x2, p, cdist
  const at::Tensor grad = call.tensor(0), a = call.tensor(1), b = call.tensor(2), distances = call.tensor(4);
  const double p = call[3].toDouble();
  if (!is_real(a.scalar_type()) || a.scalar_type() != b.scalar_type()) return {};
  if (a.numel() == 0 || b.numel() == 0 || p == 0) return at::zeros(a.sizes(), a.options());
  std::vector<int64_t> shape = distances.sizes().vec();
  const int64_t batches = c10::multiply_integers(at::IntArrayRef(shape).slice(0, shape.size() - 2));
  shape.back() = a.size(-1);
  const at::Tensor out = at::empty(shape, a.options());
  by_rows(a, b, batches, [&](const at::Tensor &rows, int64_t i, int64_t n) {
    const at::Tensor apart = rows.unsqueeze(-2) - b.unsqueeze(-3), distance = distances.narrow(-2, i, n).unsqueeze(-1);
    const at::Tensor share = std::isinf(p) ? at::eq(at::abs(apart), distance).to(a.scalar_type())
                             : p == 1      ? at::ones_like(apart)
                                           : at::pow(at::abs(apart) / distance, p - 1);
    const at::Tensor none = at::logical_or(at::eq(distance, 0), at::eq(apart, 0));
    const at::Tensor slope = (at::sign(apart) * share).masked_fill(none, 0);
    out.narrow(-2, i, n).copy_(at::sum(grad.narrow(-2, i, n).unsqueeze(-1) * slope, {-2}));
  });
  return out;
}
// Distances of each two rows of one matrix, in the order of the upper triangle: (n (n - 1) / 2).
at::Tensor upper_places(int64_t n, const at::Tensor &on) {
  const at::Tensor rows = at::arange(n, on.options().dtype(at::kLong));
  const at::Tensor upper = at::lt(rows.unsqueeze(1), rows.unsqueeze(0));
  return upper.flatten().nonzero().flatten();
}
at::Tensor pdist(const Call &call) {  // self, p
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type()) || x.dim() != 2) return {};
  if (x.size(0) < 2) return at::zeros({0}, x.options());
  return at::_cdist_forward(x, x, call[1].toDouble(), std::nullopt)
      .flatten()
      .index_select(0, upper_places(x.size(0), x));
}
// The gradient of all distances of the matrix to itself, with both triangles filled: each row meets every other once.
at::Tensor pdist_backward(const Call &call) {  // grad, self, p, pdist
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), distances = call.tensor(3);
  if (!is_real(x.scalar_type()) || x.dim() != 2) return {};
  if (x.size(0) < 2 || x.size(1) == 0) return at::zeros(x.sizes(), x.options());
  const int64_t n = x.size(0);
  const at::Tensor places = upper_places(n, x);
  auto whole = [&](const at::Tensor &upper) {
    const at::Tensor half = at::zeros({n * n}, x.options()).index_copy_(0, places, upper).view({n, n});
    return half + half.t();
  };
  return at::_cdist_backward(whole(grad), x, x, call[2].toDouble(), whole(distances));
}
at::Tensor signbit(const Call &call) { return sign_bit(call.tensor(0)); }
at::Tensor nan_to_num(const Call &call) {  // self, nan?, posinf?, neginf?
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return has_dtype(x.scalar_type()) ? x.clone() : at::Tensor();
  const bool half = x.scalar_type() == at::kHalf, brain = x.scalar_type() == at::kBFloat16;
  const double most = half                             ? 65504
                      : brain                          ? 0x1.fep127
                      : x.scalar_type() == at::kDouble ? std::numeric_limits<double>::max()
                                                       : std::numeric_limits<float>::max();
  auto value = [&](size_t i, double none) { return call.none(i) ? none : call[i].toDouble(); };
  at::Tensor finite = at::clamp(x, -most, most);  // which leaves NaN as it is
  if (value(2, most) != most) finite.masked_fill_(at::isposinf(x), value(2, most));
  if (value(3, -most) != -most) finite.masked_fill_(at::isneginf(x), value(3, -most));
  return finite.masked_fill_(at::isnan(x), value(1, 0));
}
at::Tensor entr(const Call &call) {
  if (!fits(call)) return {};
  const at::Tensor x = operand(call, 0), some = at::where(at::gt(x, 0), -x * at::log(x), x);
  return some.masked_fill(at::lt(x, 0), -INFINITY);
}
at::Tensor logit(const Call &call) {  // self, eps?
  if (is_integer(call.tensor(0).scalar_type()))
    return at::logit(call.tensor(0).to(default_type()), call.none(1) ? std::nullopt : std::make_optional(call.real(1)));
  if (!fits(call)) return {};
  at::Tensor x = operand(call, 0);
  if (!call.none(1)) {  // below |low| it is |low|, also where that is above |high|
    const double low = call[1].toDouble(), high = 1 - low;
    x = low <= high ? at::clamp(x, low, high) : at::where(at::lt(x, low), low, at::clamp_max(x, high));
  }
  const at::Tensor value = at::log(x / (1 - x));
  return call.output().defined() ? value : like(value, call.tensor(0));
}
at::Tensor logit_backward(const Call &call) {  // grad_output, self, eps?
  const at::Tensor x = call.tensor(1);
  if (!is_real(x.scalar_type())) return {};
  const bool cut = !call.none(2);
  const double low = cut ? call[2].toDouble() : 0;
  const at::Tensor w = wide(x), some = wide(call.tensor(0)) / (w * (1 - w));
  return like(some.masked_fill(at::logical_not(within(w, low, 1 - low)), cut ? 0 : NAN), x);
}
at::Tensor softshrink(const Call &call) {  // self, lambd
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return {};
  const at::Scalar l = call.scalar(1);
  return at::where(at::gt(x, l), x - l, at::where(at::lt(x, -l), x + l, x * 0));
}
at::Tensor hardshrink(const Call &call) {  // self, lambd
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return {};
  return x.masked_fill(within(x, -call.scalar(1), call.scalar(1)), 0);
}
at::Tensor shrink_backward(const Call &call) {  // grad_output, self, lambd
  const at::Tensor x = call.tensor(1);
  if (!is_real(x.scalar_type())) return {};
  return call.tensor(0).masked_fill(within(x, -call.scalar(2), call.scalar(2)), 0);
}
at::Tensor threshold(const Call &call) {  // self, threshold, value
  const at::Tensor x = call.tensor(0);
  if (is_integer(x.scalar_type()) && x.scalar_type() != at::kBool)  // both numbers become integers first
    return x.masked_fill(at::le(x, call.scalar(1).toLong()), call.scalar(2).toLong());
  if (!is_real(x.scalar_type())) return {};
  return x.masked_fill(at::le(x, call.scalar(1)), call.scalar(2));
}
at::Tensor hardtanh_backward(const Call &call) {  // grad_output, self, min_val, max_val
  const at::Tensor x = call.tensor(1);
  if (!is_real(x.scalar_type())) return {};
  return call.tensor(0).masked_fill(at::logical_or(at::le(x, call.scalar(2)), at::ge(x, call.scalar(3))), 0);
}
at::Tensor log_sigmoid_backward(const Call &call) {  // grad_output, self, buffer
  const at::Tensor g = call.tensor(0), x = call.tensor(1);
  if (!is_real(x.scalar_type())) return {};
  return like(wide(g) * at::sigmoid(-wide(x)), x);
}
at::Tensor glu(const Call &call) {  // self, dim
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return {};
  const auto halves = wide(x).chunk(2, call.integer(1));
  return like(halves[0] * at::sigmoid(halves[1]), x);
}
at::Tensor glu_backward(const Call &call) {  // grad_output, self, dim
  const at::Tensor g = wide(call.tensor(0)), x = call.tensor(1);
  if (!is_real(x.scalar_type())) return {};
  const auto halves = wide(x).chunk(2, call.integer(2));
  const at::Tensor s = at::sigmoid(halves[1]);
  return like(at::cat({g * s, g * halves[0] * s * (1 - s)}, call.integer(2)), x);
}
at::Tensor prelu(const Call &call) {  // self, weight
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return {};
  return at::where(at::gt(x, 0), x, x * call.tensor(1));
}

// --- of matrices and dimensions

at::Tensor trace(const Call &call) {
  const at::Tensor x = call.tensor(0);
  return has_dtype(x.scalar_type()) && x.dim() == 2 ? x.diagonal().sum() : at::Tensor();
}
at::Tensor addbmm(const Call &call) {  // self, batch1, batch2, beta, alpha
  const at::Tensor a = call.tensor(1), b = call.tensor(2);
  if (!(is_real(a.scalar_type()) || is_complex(a.scalar_type())) || a.dim() != 3 || b.dim() != 3 ||
      a.size(0) != b.size(0) || a.size(2) != b.size(1))
    return {};
  const at::Tensor rows = a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)});
  return at::addmm(call.tensor(0), rows, b.reshape({b.size(0) * b.size(1), b.size(2)}), call.scalar(3), call.scalar(4));
}
at::Tensor cross(const Call &call) {  // self, other, dim
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  const int64_t dim = call.integer(2);
  const bool there = has_dtype(a.scalar_type()) || is_complex(a.scalar_type());
  if (!there || a.scalar_type() != b.scalar_type()) return {};
  return a.roll(-1, dim) * b.roll(-2, dim) - a.roll(-2, dim) * b.roll(-1, dim);
}
at::Tensor norm(const Call &call) {  // self, p?, dim, keepdim, [dtype]
  const at::Tensor x = call.tensor(0);
  const double p = call.none(1) ? 2 : call.scalar(1).isComplex() ? NAN : call.real(1);
  const at::ScalarType type = call.output().scalar_type();
  if (is_complex(x.scalar_type())) return at::norm(at::abs(x), p, call.integers(2), call.flag(3)).to(type);
  if (!is_real(x.scalar_type()) || std::isnan(p) || x.numel() == 0) return {};
  if (type == x.scalar_type()) return at::linalg_vector_norm(x, p, call.integers(2), call.flag(3));
  return p >= 0 ? at::linalg_vector_norm(x, p, call.integers(2), call.flag(3), type) : at::Tensor();
}
at::Tensor nansum(const Call &call) {  // self, dim?, keepdim, dtype?
  const at::Tensor x = call.tensor(0);
  if (is_integer(x.scalar_type())) return at::sum(x, call.integers(1), call.flag(2), call.type(3));
  if (!is_real(x.scalar_type()) && !is_complex(x.scalar_type())) return {};
  return at::sum(x.masked_fill(at::isnan(x), 0), call.integers(1), call.flag(2), call.type(3));
}
at::Tensor renorm(const Call &call) {  // self, p, dim, maxnorm
  const at::Tensor x = call.tensor(0);
  const bool complex = is_complex(x.scalar_type());
  if ((!is_real(x.scalar_type()) && !complex) || !(call.real(1) > 0) || x.numel() == 0) return {};
  TORCH_CHECK(call.real(3) >= 0, "renorm: expected maxnorm to be >= 0 but got ", call.real(3));
  TORCH_CHECK(x.dim() > 1, "renorm: input needs at least 2 dimensions, got ", x.dim(), " dimensions");
  std::vector<int64_t> others;
  for (int64_t d = 0; d < x.dim(); d++)
    if (d != wrap(call.integer(2), x.dim())) others.push_back(d);
  const at::Tensor n = at::linalg_vector_norm(complex ? x : wide(x), call.real(1), others, true);
  // a NaN is not above it, and leaves the rest of its row as it was
  const at::Tensor factor = (call.scalar(3) / (n + 1e-7)).masked_fill_(at::gt(n, call.scalar(3)).logical_not_(), 1);
  return complex ? x * factor : like(wide(x) * factor, x);
}
at::Tensor count_nonzero(const Call &call) {  // self, dim
  const at::Tensor x = call.tensor(0);
  if (!has_dtype(x.scalar_type()) && !is_complex(x.scalar_type())) return {};
  return at::sum(at::ne(x, 0), call.integers(1));
}
// In f64, from both ends, so that both are met.
at::Tensor linspace_from_ends(int64_t start, int64_t end, int64_t n, const at::TensorOptions &options) {
  const at::Tensor i = at::arange(n, options.dtype(at::kLong)).to(at::kDouble);
  const double a = static_cast<double>(start), b = static_cast<double>(end),
               step = n > 1 ? (b - a) / static_cast<double>(n - 1) : 0;
  return n == 1 ? at::full_like(i, a)
                : at::where(at::lt(i, n / 2), i * step + a, b - (static_cast<double>(n - 1) - i) * step);
}

// Of complex numbers, each part from its start to its end.
at::Tensor complex_linspace(const at::Scalar &start, const at::Scalar &end, int64_t n, const at::Tensor &out) {
  const auto a = start.toComplexDouble(), b = end.toComplexDouble();
  const at::TensorOptions real = out.options().dtype(at::toRealValueType(out.scalar_type()));
  return at::complex(at::linspace(a.real(), b.real(), n, real), at::linspace(a.imag(), b.imag(), n, real));
}

at::Tensor linspace(const Call &call) {  // start, end, steps, out
  const at::Tensor out = call.output();
  if (is_complex(out.scalar_type())) return complex_linspace(call.scalar(0), call.scalar(1), call.integer(2), out);
  if (is_integer(out.scalar_type()) && !call.scalar(0).isComplex() && !call.scalar(1).isComplex()) {
    const int64_t n = call.integer(2);
    TORCH_CHECK(n >= 0, "number of steps must be non-negative");
    const at::Tensor value = linspace_from_ends(call.scalar(0).toLong(), call.scalar(1).toLong(), n, out.options());
    return value.to(at::kLong).to(out.scalar_type());  // cut off, not rounded
  }
  if (!is_real(out.scalar_type()) || call.scalar(0).isComplex() || call.scalar(1).isComplex()) return {};
  const int64_t n = call.integer(2);
  TORCH_CHECK(n >= 0, "number of steps must be non-negative");
  const double start = call.real(0), step = n > 1 ? (call.real(1) - start) / static_cast<double>(n - 1) : 0;
  if (n == 0) return at::empty({0}, out.options());
  at::Tensor value = at::empty({n}, out.options());
  // half a step past the end, so that rounding does not change the count
  at::arange_out(value, start, start + (static_cast<double>(n) - 0.5) * (step != 0 ? step : 1), step != 0 ? step : 1);
  if (step == 0)
    value.fill_(start);
  else
    value[n - 1].fill_(call.scalar(1));  // which start and all steps together may miss by a rounding
  return value;
}

at::Tensor logspace(const Call &call) {  // start, end, steps, base, out
  const at::Tensor out = call.output();
  if (is_complex(out.scalar_type()))
    return at::pow(call.real(3), complex_linspace(call.scalar(0), call.scalar(1), call.integer(2), out));
  if (is_integer(out.scalar_type()) && !call.scalar(0).isComplex() && !call.scalar(1).isComplex()) {
    const int64_t n = call.integer(2);
    TORCH_CHECK(n >= 0, "number of steps must be non-negative");
    const at::Tensor power = linspace_from_ends(call.scalar(0).toLong(), call.scalar(1).toLong(), n, out.options());
    return at::pow(call.real(3), power).to(at::kLong).to(out.scalar_type());
  }
  if (!is_real(out.scalar_type()) || call.scalar(0).isComplex() || call.scalar(1).isComplex()) return {};
  const int64_t n = call.integer(2);
  TORCH_CHECK(n >= 0, "number of steps must be non-negative");
  const double start = call.real(0), end = call.real(1), step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  const at::TensorOptions options = out.options().dtype(out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor i = at::arange(n, options.dtype(at::kLong)).to(options.dtype());
  // from both ends, so that both are met
  const at::Tensor power = at::where(at::lt(i, n / 2), i * step + start, (i - (n - 1)) * step + end);
  return at::pow(call.real(3), n == 1 ? at::full({1}, start, options) : power);
}

// --- of windows

at::Tensor unfold_backward(const Call &call) {  // grad_in, input_sizes, dim, size, step
  const at::Tensor grad = call.tensor(0);
  const std::vector<int64_t> sizes = call.integers(1);
  if (!has_dtype(grad.scalar_type())) return {};
  if (sizes.empty()) return call.integer(3) == 1 ? grad.reshape({}).clone() : at::Tensor();
  const int64_t rank = static_cast<int64_t>(sizes.size()), dim = wrap(call.integer(2), rank);
  const at::Tensor places = at::arange(sizes[static_cast<size_t>(dim)], grad.options().dtype(at::kLong));
  const at::Tensor index = places.unfold(0, call.integer(3), call.integer(4)).reshape({-1});
  const at::Tensor rows = grad.movedim(-1, dim + 1).flatten(dim, dim + 1);
  return at::zeros(sizes, grad.options()).index_add_(dim, index, rows);
}

void check_windows(at::IntArrayRef window, at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride) {
  for (size_t i = 0; i < 2; i++) {
    TORCH_CHECK(window[i] > 0, "kernel size should be greater than zero, but got ", window);
    TORCH_CHECK(dilation[i] > 0, "dilation should be greater than zero, but got ", dilation);
    TORCH_CHECK(padding[i] >= 0, "padding should be non-negative, but got ", padding);
    TORCH_CHECK(stride[i] > 0, "stride should be greater than zero, but got ", stride);
  }
}

at::Tensor im2col(const Call &call) {  // self, kernel_size, dilation, padding, stride
  const bool batch = call.tensor(0).dim() == 4;
  const at::Tensor x = batch ? call.tensor(0) : call.tensor(0).unsqueeze(0);
  if (!has_dtype(x.scalar_type()) || x.dim() != 4 || c10::multiply_integers(x.sizes().slice(1)) == 0) return {};
  const auto window = call.integers(1), dilation = call.integers(2), padding = call.integers(3),
             stride = call.integers(4);
  if (window.size() != 2 || dilation.size() != 2 || padding.size() != 2 || stride.size() != 2) return {};
  check_windows(window, dilation, padding, stride);
  const int64_t h = (x.size(2) + 2 * padding[0] - dilation[0] * (window[0] - 1) - 1) / stride[0] + 1;
  const int64_t w = (x.size(3) + 2 * padding[1] - dilation[1] * (window[1] - 1) - 1) / stride[1] + 1;
  if (h < 1 || w < 1) return {};
  const bool pads = padding[0] || padding[1];
  const at::Tensor from = pads ? at::constant_pad_nd(x, {padding[1], padding[1], padding[0], padding[0]}) : x;
  const int64_t down = from.stride(2), right = from.stride(3);
  const at::Tensor out = from.as_strided({x.size(0), x.size(1), window[0], window[1], h, w},
                                         {from.stride(0), from.stride(1), down * dilation[0], right * dilation[1],
                                          down * stride[0], right * stride[1]},
                                         from.storage_offset())
                             .clone(at::MemoryFormat::Contiguous)
                             .view({x.size(0), x.size(1) * window[0] * window[1], h * w});
  return batch ? out : out.squeeze(0);
}
at::Tensor col2im(const Call &call) {  // self, output_size, kernel_size, dilation, padding, stride
  const bool batch = call.tensor(0).dim() == 3, truth = call.tensor(0).scalar_type() == at::kBool;
  const at::Tensor given = batch ? call.tensor(0) : call.tensor(0).unsqueeze(0),
                   x = truth ? given.to(at::kFloat) : given;
  if (!is_real(x.scalar_type()) || x.dim() != 3 || x.size(1) * x.size(2) == 0) return {};
  const auto size = call.integers(1), window = call.integers(2), dilation = call.integers(3),
             padding = call.integers(4), stride = call.integers(5);
  if (size.size() != 2 || window.size() != 2 || dilation.size() != 2 || padding.size() != 2 || stride.size() != 2)
    return {};
  check_windows(window, dilation, padding, stride);
  rdna_pooling windows{};
  windows.size = sizeof windows;
  windows.spatial_dims = 2;
  int64_t taps = 1, count = 1;
  for (size_t d = 0; d < 2; d++) {
    windows.window[d] = window[d], windows.stride[d] = stride[d], windows.dilation[d] = dilation[d];
    windows.pad_before[d] = windows.pad_after[d] = padding[d];
    taps *= window[d], count *= std::max(rdna_pooling_size(&windows, static_cast<int>(d), size[d]), int64_t{0});
  }
  if (count == 0 || x.size(2) != count || x.size(1) % taps != 0) return {};  // PyTorch has the words
  const at::Tensor out = make({x.size(0), x.size(1) / taps, size[0], size[1]}, x.scalar_type(), x);
  const at::Tensor columns = x.contiguous();
  const rdna_tensor from = describe(columns), to = describe(out);
  check(rdna_op_fold(stream_of(x), &windows, &from, &to));
  const at::Tensor result = truth ? at::ne(out, 0) : out;
  return batch ? result : result.squeeze(0);
}
at::Tensor max_unpool(const Call &call) {  // self, indices, output_size, …
  const at::Tensor x = call.tensor(0), indices = call.tensor(1);
  const std::vector<int64_t> sizes = call.integers(2);
  const int64_t dims = static_cast<int64_t>(sizes.size());
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  if (!is_real(x.scalar_type()) || x.sizes() != indices.sizes() || x.dim() < dims + 1 || x.numel() == 0) return {};
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end() - dims);
  const std::vector<int64_t> planes = [&] {
    std::vector<int64_t> s = shape;
    s.push_back(c10::multiply_integers(sizes));
    return s;
  }();
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  const at::Tensor out = at::zeros(planes, x.options())
                             .scatter_(-1, indices.flatten(x.dim() - dims), x.flatten(x.dim() - dims))
                             .view(shape);
  return dims == 2 ? out.contiguous(x.suggest_memory_format()) : out;
}

const Made rows[] = {
    {"sinc.out", sinc},
    {"signbit.out", signbit},
    {"angle", angle},
    {"angle.out", angle},
    {"round.decimals_out", round_decimals},
    {"channel_shuffle", channel_shuffle},
    {"_cdist_forward", cdist},
    {"_cdist_backward", cdist_backward},
    {"_pdist_forward", pdist},
    {"_pdist_backward", pdist_backward},
    {"nan_to_num", nan_to_num},
    {"nan_to_num.out", nan_to_num},
    {"special_entr.out", entr},
    {"logit", logit},
    {"logit.out", logit},
    {"logit_backward.grad_input", logit_backward},
    {"softshrink.out", softshrink},
    {"softshrink_backward.grad_input", shrink_backward},
    {"hardshrink.out", hardshrink},
    {"hardshrink_backward.grad_input", shrink_backward},
    {"threshold.out", threshold},
    {"hardtanh_backward", hardtanh_backward},
    {"hardtanh_backward.grad_input", hardtanh_backward},
    {"log_sigmoid_backward", log_sigmoid_backward},
    {"log_sigmoid_backward.grad_input", log_sigmoid_backward},
    {"glu.out", glu},
    {"glu_backward", glu_backward},
    {"glu_backward.grad_input", glu_backward},
    {"_prelu_kernel", prelu},
    {"trace", trace},
    {"addbmm", addbmm},
    {"addbmm.out", addbmm},
    {"linalg_cross.out", cross},
    {"norm.out", norm},
    {"norm.dtype_out", norm},
    {"nansum", nansum},
    {"nansum.out", nansum},
    {"count_nonzero.dim_IntList", count_nonzero},
    {"linspace.out", linspace},
    {"logspace.out", logspace},
    {"unfold_backward", unfold_backward},
    {"im2col", im2col},
    {"im2col.out", im2col},
    {"col2im", col2im},
    {"col2im.out", col2im},
    {"max_unpool2d", max_unpool},
    {"max_unpool2d.out", max_unpool},
    {"max_unpool3d", max_unpool},
    {"max_unpool3d.out", max_unpool},
};

// Whose results have the types of their arguments: PyTorch's own form that makes a new tensor is left out too.
const Made new_rows[] = {{"renorm.out", renorm}};

bool log_sigmoid(Call &call) {  // self, [output!, buffer!]; the buffer is the CPU's alone
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return false;
  const at::Tensor w = wide(x), value = like(at::clamp_max(w, 0) - at::log1p(at::exp(-at::abs(w))), x);
  if (call.count() == 1) return call.give({value, at::empty({0}, x.options())});
  const at::Tensor out = call.tensor(1), buffer = call.tensor(2);
  out.resize_(x.sizes()).copy_(value);
  return call.give({out, buffer});
}
bool prelu_backward(Call &call) {  // grad_output, self, weight
  const at::Tensor g = call.tensor(0), x = call.tensor(1), w = call.tensor(2);
  if (!is_real(x.scalar_type())) return false;
  const at::Tensor above = at::gt(x, 0);
  return call.give({at::where(above, g, g * w), (x * g).masked_fill(above, 0)});
}
bool equal(Call &call) {  // self, other
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  const bool there = describable(a) || is_complex(a.scalar_type());
  if (!there || a.scalar_type() != b.scalar_type() || a.device() != b.device()) return false;
  if (!a.sizes().equals(b.sizes())) return call.give_value(false);
  if (a.numel() == 0) return call.give_value(true);
  if (is_complex(a.scalar_type())) return call.give_value(at::eq(a, b).all().item().toBool());
  const at::Tensor same = make(a.sizes(), at::kBool, a), all = make({}, at::kBool, a);
  const rdna_tensor x = describe(a), y = describe(b), each = describe(same), one = describe(all);
  check(rdna_op_compare(stream_of(a), RDNA_COMPARE_EQ, &x, &y, &each));
  check(rdna_op_reduce(stream_of(a), RDNA_REDUCTION_ALL, &each, (1u << each.rank) - 1, 0, &one));
  bool answer;
  read(all, &answer);
  return call.give_value(answer);
}
bool aminmax(Call &call) {  // self, dim?, keepdim, min!, max!
  const at::Tensor x = call.tensor(0);
  at::Tensor low = call.tensor(3), high = call.tensor(4);
  const std::vector<int64_t> dims = call.integers(1);
  if (!has_dtype(x.scalar_type()) ||
      (x.numel() == 0 && (dims.empty() || x.dim() == 0 || x.size(wrap(dims[0], x.dim())) == 0)))
    return false;
  for (const at::Tensor &t : {low, high})
    TORCH_CHECK(t.scalar_type() == x.scalar_type(), "Expected out tensor to have dtype ", x.scalar_type(), ", but got ",
                t.scalar_type(), " instead");
  at::amin_out(low, x, dims, call.flag(2));
  at::amax_out(high, x, dims, call.flag(2));
  return call.give({low, high});
}
bool lowest_and_highest(Call &call) {  // self, [dim, keepdim]: what aminmax was called
  if (call.count() == 1) {
    auto [low, high] = at::aminmax(call.tensor(0));
    return call.give({low, high});
  }
  auto [low, high] = at::aminmax(call.tensor(0), call.integer(1), call.flag(2));
  return call.give({low, high});
}
// Added to what |out| holds.
bool linear_combination(Call &call) {  // input (n, …), coefficients (m, n), out (m, …)
  const at::Tensor x = call.tensor(0), weights = call.tensor(1);
  if (x.dim() == 0 || weights.dim() != 2 || weights.size(1) != x.size(0) || x.scalar_type() != weights.scalar_type())
    return false;
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = weights.size(0);
  const at::Tensor out = call.output();
  if (!out.sizes().equals(shape) || out.scalar_type() != x.scalar_type()) return false;
  const int64_t each = c10::multiply_integers(x.sizes().slice(1));
  return call.give(out.add_(at::matmul(weights, x.reshape({x.size(0), each})).view(shape)));
}
bool rrelu(Call &call) {  // self, noise!, lower, upper, training, generator, [out]
  const at::Tensor x = call.tensor(0), noise = call.tensor(1);
  const double low = call.real(2), high = call.real(3);
  if (!is_real(x.scalar_type()) || noise.scalar_type() != x.scalar_type()) return false;
  at::Tensor value;
  if (call.flag(4)) {
    const at::Tensor slope = at::empty(x.sizes(), x.options()).uniform_(low, high, call.generator(5));
    noise.resize_(x.sizes()).copy_(at::where(at::le(x, 0), slope, at::ones({}, x.options())));
    value = x * noise;
  } else {
    value = at::leaky_relu(x, (low + high) / 2);
  }
  return give_or_write(call, value);
}
// PyTorch's own refuses devices that it does not know.
bool mode(Call &call) {  // self, dim, keepdim, values!, indices!
  const at::Tensor x = call.tensor(0), values = call.tensor(3), indices = call.tensor(4);
  TORCH_CHECK(values.scalar_type() == x.scalar_type() && indices.scalar_type() == at::kLong,
              "mode: expected outputs of types ", x.scalar_type(), " and Long, but got ", values.scalar_type(), " and ",
              indices.scalar_type());
  auto [v, i] = at::mode(x, call.integer(1), call.flag(2));
  Output a(values, v.sizes(), v.scalar_type(), v, false), b(indices, i.sizes(), at::kLong, i, false);
  a.get().copy_(v);
  b.get().copy_(i);
  return call.give({a.finish(), b.finish()});
}
bool embedding_renorm(Call &call) {  // self, indices, max_norm, norm_type
  const at::Tensor self = call.tensor(0), indices = call.tensor(1);
  if (!is_real(self.scalar_type()) || self.dim() != 2 || indices.numel() == 0) return false;
  const at::Tensor ids = std::get<0>(at::_unique(indices.reshape({-1})));
  const at::Tensor chosen = self.index_select(0, ids), n = at::linalg_vector_norm(wide(chosen), call.real(3), 1, true);
  const at::Tensor factor =
      at::where(at::gt(n, call.scalar(2)), call.scalar(2) / (n + 1e-7), at::ones({}, n.options()));
  self.index_copy_(0, ids, like(wide(chosen) * factor, self));
  return call.give(self);
}

const Single singles[] = {
    {"log_sigmoid_forward", log_sigmoid},
    {"log_sigmoid_forward.output", log_sigmoid},
    {"_prelu_kernel_backward", prelu_backward},
    {"equal", equal},
    {"aminmax.out", aminmax},
    {"_aminmax", lowest_and_highest},
    {"_aminmax.dim", lowest_and_highest},
    {"_compute_linear_combination.out", linear_combination},
    {"embedding_renorm_", embedding_renorm},
    {"mode.values", mode},
    {"rrelu_with_noise", rrelu},
    {"rrelu_with_noise.out", rrelu},
    {"rrelu_with_noise_", rrelu},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, rows, run_made);
  add_new_forms(m, new_rows, run_made);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
