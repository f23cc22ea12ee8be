// Layer and RMS normalization.
#include <ATen/Functions.h>

#include <limits>

#include "native.h"
#include "rdna/op/norm.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/reduce_dims.h"

namespace rdna_torch {
namespace {

// (rows, cols): what is normalized is the last |k| dimensions together.
struct Rows {
  int64_t rows = 1, cols = 1;
  bool match = true;
  Rows(const at::Tensor &x, const std::vector<int64_t> &shape) {
    const size_t k = shape.size(), n = static_cast<size_t>(x.dim());
    match = k >= 1 && k <= n && x.sizes().slice(n - k).equals(shape);
    for (size_t i = 0; match && i < n; i++) (i < n - k ? rows : cols) *= x.size(static_cast<int64_t>(i));
  }
};

bool one_type(const at::Tensor &x, const at::Tensor &weight, const at::Tensor &bias) {
  const at::ScalarType t = x.scalar_type();
  if (!is_float(t)) return false;
  auto fits = [&](const at::Tensor &p, at::ScalarType type) { return !p.defined() || p.scalar_type() == type; };
  return (fits(weight, t) && fits(bias, t)) || (fits(weight, at::kFloat) && fits(bias, at::kFloat));
}

rdna_tensor matrix(const at::Tensor &t, const Rows &r) {
  const int64_t shape[2] = {r.rows, r.cols};
  return rdna_tensor_contiguous(t.mutable_data_ptr(), *dtype_of(t.scalar_type()), 2, shape);
}

class Line {  // (cols), or NULL
 public:
  Line(const at::Tensor &t, const Rows &r) : keep_(t.defined() ? t.contiguous() : t) {
    if (t.defined()) tensor_ = rdna_tensor_contiguous(keep_.mutable_data_ptr(), *dtype_of(t.scalar_type()), 1, &r.cols);
  }
  operator const rdna_tensor *() const { return keep_.defined() ? &tensor_ : nullptr; }

 private:
  at::Tensor keep_;
  rdna_tensor tensor_{};
};

bool layer_norm(Call &call) {  // input, normalized_shape, weight?, bias?, eps
  const at::Tensor given = call.tensor(0), weight = call.tensor(2), bias = call.tensor(3);
  const Rows r(given, call.integers(1));
  TORCH_CHECK(r.match, "Given normalized_shape=", call.integers(1),
              ", expected input with shape that ends with it, but got input of size ", given.sizes());
  if (!one_type(given, weight, bias) || r.cols == 0) return false;
  const double eps = call[4].toDouble();
  if (!(eps >= 0)) return false;
  const at::Tensor x = given.contiguous(), y = make(x.sizes(), x.scalar_type(), x);
  std::vector<int64_t> stats(x.sizes().begin(), x.sizes().end());
  for (size_t i = stats.size() - call.integers(1).size(); i < stats.size(); i++) stats[i] = 1;
  const at::ScalarType type = x.scalar_type() == at::kFloat || (weight.defined() && weight.scalar_type() == at::kFloat)
                                  ? at::kFloat
                                  : x.scalar_type();
  const at::Tensor mean = make(stats, type, x), rstd = make(stats, type, x);
  if (r.rows) {
    rdna_stream *s = stream_of(x);
    const rdna_tensor in = matrix(x, r), out = matrix(y, r);
    check(rdna_op_layer_norm(s, &in, Line(weight, r), Line(bias, r), static_cast<float>(eps), &out));
    // librdna's gradient needs neither, but they are results that can be looked at
    const rdna_tensor m = rdna_tensor_contiguous(mean.mutable_data_ptr(), *dtype_of(type), 1, &r.rows);
    const rdna_tensor v = rdna_tensor_contiguous(rstd.mutable_data_ptr(), *dtype_of(type), 1, &r.rows);
    check(rdna_op_reduce(s, RDNA_REDUCE_MEAN, 2, 0, &in, &m));
    check(rdna_op_reduce(s, RDNA_REDUCE_VAR, 2, 0, &in, &v));
    check(rdna_op_map(s, RDNA_MAP_AFFINE, &v, rdna_scalar_real(1), rdna_scalar_real(eps), &v));
    check(rdna_op_map(s, RDNA_MAP_RSQRT, &v, {}, {}, &v));
  }
  return call.give({y, mean, rstd});
}

// From the formula, through pointwise operators and reductions: librdna's own gradient wants epsilon, which PyTorch
// does not hand on. With h = (x - mean) rstd and g = grad weight: dx = rstd (g - mean(g) - h mean(g h)).
// grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask
bool layer_norm_backward(Call &call) {
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), mean = call.tensor(3), rstd = call.tensor(4),
                   weight = call.tensor(5), bias = call.tensor(6);
  const Rows r(x, call.integers(2));
  if (!r.match || !one_type(x, weight, bias) || x.numel() == 0 || grad.scalar_type() != x.scalar_type()) return false;
  const c10::List<bool> wanted = call[7].toBoolList();
  const std::vector<int64_t> shape{r.rows, r.cols}, column{r.rows, 1};
  const at::Tensor dy = converted(grad.reshape(shape), at::kFloat);
  const at::Tensor m = converted(mean.reshape(column), at::kFloat), s = converted(rstd.reshape(column), at::kFloat);
  const at::Tensor h = converted(x.reshape(shape), at::kFloat).sub(m).mul_(s);
  at::Tensor dx, dw, db;
  if (wanted.get(0)) {
    const at::Tensor g = weight.defined() ? dy.mul(weight.reshape({1, r.cols})) : dy;
    const at::Tensor along = g.mul(h).mean({1}, true);
    dx = g.sub(g.mean({1}, true)).sub_(h.mul(along)).mul_(s);
    dx = converted(dx, x.scalar_type()).reshape(x.sizes());
  }
  if (wanted.get(1) && weight.defined())
    dw = converted(dy.mul(h).sum({0}), weight.scalar_type()).reshape(weight.sizes());
  if (wanted.get(2) && bias.defined()) db = converted(dy.sum({0}), bias.scalar_type()).reshape(bias.sizes());
  return call.give({dx, dw, db});
}

const Single singles[] = {
    {"native_layer_norm", layer_norm},
    {"native_layer_norm_backward", layer_norm_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
