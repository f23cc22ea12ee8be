// Layer, batch and group normalization.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "native.h"
#include "rdna/op/channel_norm.h"
#include "rdna/op/norm.h"

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
  if (!is_real(t)) return false;
  auto fits = [&](const at::Tensor &p, at::ScalarType type) { return !p.defined() || p.scalar_type() == type; };
  return (fits(weight, t) && fits(bias, t)) || (fits(weight, at::kFloat) && fits(bias, at::kFloat));
}

rdna_tensor matrix(const at::Tensor &t, const Rows &r) {
  const int64_t shape[2] = {r.rows, r.cols};
  return rdna_tensor_contiguous(t.mutable_data_ptr(), *dtype_of(t.scalar_type()), 2, shape);
}

rdna_tensor flat(const at::Tensor &t, int rank, const int64_t *shape) {
  return rdna_tensor_contiguous(t.mutable_data_ptr(), *dtype_of(t.scalar_type()), rank, shape);
}

class Line {  // (cols), or NULL
 public:
  Line(const at::Tensor &t, int64_t cols) : keep_(t.defined() ? t.contiguous() : t) {
    if (t.defined()) tensor_ = flat(keep_, 1, &cols);
  }
  operator const rdna_tensor *() const { return keep_.defined() ? &tensor_ : nullptr; }

 private:
  at::Tensor keep_;
  rdna_tensor tensor_{};
};

// The type of means and inverse deviations.
at::ScalarType statistics(const at::Tensor &x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

class Saved {
 public:
  Saved(at::IntArrayRef shape, const at::Tensor &x) : tensor_(make(shape, statistics(x), x)) {}
  rdna_tensor as(int rank, const int64_t *shape) const { return flat(tensor_, rank, shape); }
  const at::Tensor &tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
};

// With an epsilon below 0, which librdna refuses: normalized rows in the type of statistics, means, inverse deviations.
std::tuple<at::Tensor, at::Tensor, at::Tensor> step_by_step(const at::Tensor &given, int64_t rows, double eps) {
  const at::Tensor x = given.to(statistics(given)).reshape({rows, -1});
  const auto [var, mean] = at::var_mean(x, at::IntArrayRef{1}, /*correction=*/at::Scalar(0), /*keepdim=*/true);
  const at::Tensor inverse = at::rsqrt(var + eps);
  return {((x - mean) * inverse).view(given.sizes()), mean, inverse};
}

// Of doubles a row is a sample with one group of |cols| channels.
bool layer_norm(Call &call) {  // input, normalized_shape, weight?, bias?, eps
  const at::Tensor given = call.tensor(0), weight = call.tensor(2), bias = call.tensor(3);
  const std::vector<int64_t> normalized = call.integers(1);
  const Rows r(given, normalized);
  TORCH_CHECK(r.match, "Given normalized_shape=", normalized,
              ", expected input with shape that ends with it, but got input of size ", given.sizes());
  for (const auto &[name, p] : {std::pair("weight", weight), std::pair("bias", bias)})
    TORCH_CHECK(!p.defined() || p.sizes().equals(normalized), "Expected ", name,
                " to be of same shape as normalized_shape, but got ", name, " of shape ", p.sizes(),
                " and normalized_shape = ", normalized);
  const double eps = call[4].toDouble();
  if (!one_type(given, weight, bias) || r.cols == 0) return false;
  if (eps < 0) {
    at::Tensor y, mean, inverse;
    std::tie(y, mean, inverse) = step_by_step(given, r.rows, eps);
    if (weight.defined()) y = y * weight;
    if (bias.defined()) y = y + bias;
    std::vector<int64_t> kept(given.sizes().begin(), given.sizes().end());
    for (size_t i = kept.size() - normalized.size(); i < kept.size(); i++) kept[i] = 1;
    return call.give({y.to(given.scalar_type()), mean.view(kept), inverse.view(kept)});
  }
  const at::Tensor x = given.contiguous(), y = make(x.sizes(), x.scalar_type(), x);
  std::vector<int64_t> stats(x.sizes().begin(), x.sizes().end());
  for (size_t i = stats.size() - normalized.size(); i < stats.size(); i++) stats[i] = 1;
  const Saved mean(stats, x), inverse(stats, x);
  const int64_t shape[2] = {r.rows, 1};
  const bool grouped = x.scalar_type() == at::kDouble;
  const int rank = grouped ? 2 : 1;
  const rdna_tensor in = matrix(x, r), out = matrix(y, r), m = mean.as(rank, shape), v = inverse.as(rank, shape);
  const Line scale(weight, r.cols), shift(bias, r.cols);
  check(grouped ? rdna_op_group_norm(stream_of(x), &in, 1, scale, shift, eps, &out, &m, &v)
                : rdna_op_layer_norm(stream_of(x), &in, scale, shift, eps, &out, &m, &v));
  return call.give({y, mean.tensor(), inverse.tensor()});
}

// grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask
bool layer_norm_backward(Call &call) {
  const at::Tensor weight = call.tensor(5), bias = call.tensor(6);
  const at::Tensor dy = call.tensor(0).contiguous(), x = call.tensor(1).contiguous();
  const Rows r(x, call.integers(2));
  if (!r.match || !one_type(x, weight, bias) || r.cols == 0 || dy.scalar_type() != x.scalar_type()) return false;
  const c10::List<bool> wanted = call[7].toBoolList();
  if (r.rows == 0) {
    auto none = [&](size_t i, const at::Tensor &p) {
      return wanted.get(i) && p.defined() ? at::zeros_like(p) : at::Tensor();
    };
    return call.give({none(0, x), none(1, weight), none(2, bias)});
  }
  const at::Tensor mean = converted(call.tensor(3), statistics(x)).contiguous(),
                   inverse = converted(call.tensor(4), statistics(x)).contiguous();
  at::Tensor dx, dw, db;
  if (wanted.get(0)) dx = make_like(x);
  if (wanted.get(1) && weight.defined()) dw = make_like(weight);
  if (wanted.get(2) && bias.defined()) db = make_like(bias);
  const int64_t shape[2] = {r.rows, 1};
  const rdna_tensor grad = matrix(dy, r), in = matrix(x, r);
  // One pass over the rows; of one value the other way gives the exact 0, where this one rounds.
  if (dx.defined() && is_float(x.scalar_type()) && r.cols > 1) {
    const rdna_tensor out = matrix(dx, r), m = flat(mean, 1, shape), v = flat(inverse, 1, shape);
    check(rdna_op_layer_norm_backward(stream_of(x), &grad, &in, Line(weight, r.cols), 0, &m, &v, &out, Line(dw, r.cols),
                                      Line(db, r.cols)));
    return call.give({dx, dw, db});
  }
  const rdna_tensor m = flat(mean, 2, shape), v = flat(inverse, 2, shape);
  const rdna_tensor out = dx.defined() ? matrix(dx, r) : rdna_tensor{};
  check(rdna_op_group_norm_backward(stream_of(x), &grad, &in, 1, Line(weight, r.cols), &m, &v,
                                    dx.defined() ? &out : nullptr, Line(dw, r.cols), Line(db, r.cols)));
  return call.give({dx, dw, db});
}

// Batch norm of x as it lies, contiguous or channels-last. Layouts that are neither are made contiguous.
at::Tensor laid_out(const at::Tensor &x) {
  if (x.is_contiguous()) return x;
  if (x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast)) return x;
  if (x.dim() == 5 && x.is_contiguous(at::MemoryFormat::ChannelsLast3d)) return x;
  return x.contiguous();
}

// What can be given to librdna: statistics and parameters of one type, x's or f32.
bool parameters_fit(const at::Tensor &x, std::initializer_list<at::Tensor> parameters) {
  at::ScalarType type = at::kFloat;
  bool first = true;
  for (const at::Tensor &p : parameters) {
    if (!p.defined()) continue;
    if (p.numel() != x.size(1) || (p.scalar_type() != x.scalar_type() && p.scalar_type() != at::kFloat)) return false;
    if (!first && p.scalar_type() != type) return false;
    type = p.scalar_type();
    first = false;
  }
  return true;
}

bool batch_norm_fits(const at::Tensor &x, const at::Tensor &weight, const at::Tensor &bias, const at::Tensor &mean,
                     const at::Tensor &var, double eps) {
  return x.dim() >= 2 && describable(x) && is_real(x.scalar_type()) && parameters_fit(x, {weight, bias}) &&
         parameters_fit(x, {mean, var}) && eps >= 0;
}

at::Tensor like(const at::Tensor &x) { return at::empty_strided(x.sizes(), x.strides(), x.options()); }

// A tensor that is written: itself, or a contiguous stand-in that finish() brings back.
class Written {
 public:
  explicit Written(const at::Tensor &t) : given_(t), work_(t.defined() ? t.contiguous() : t) {}
  const at::Tensor &get() const { return work_; }
  void finish() {
    if (given_.defined() && !given_.is_same(work_)) given_.copy_(work_);
  }

 private:
  at::Tensor given_, work_;
};

struct BatchNorm {
  at::Tensor x, weight, bias, mean, var;  // var: of the running statistics
  bool training;
  double momentum, eps;
};

bool run_batch_norm(Call &call, const BatchNorm &b) {
  if (!batch_norm_fits(b.x, b.weight, b.bias, b.mean, b.var, b.eps)) return false;
  const at::Tensor x = laid_out(b.x), y = like(x);
  const int64_t channels = x.size(1);
  const rdna_tensor in = describe(x), out = describe(y);
  rdna_stream *stream = stream_of(x);
  if (!b.training) {
    if (!b.mean.defined() || !b.var.defined()) return false;
    const at::Tensor none = make({0}, statistics(x), x);
    if (x.numel())
      check(rdna_op_batch_norm_inference(stream, &in, Line(b.weight, channels), Line(b.bias, channels),
                                         Line(b.mean, channels), Line(b.var, channels), b.eps, nullptr, false, &out));
    return call.give({y, none, none});
  }
  const Saved mean({channels}, x), inverse({channels}, x);
  Written running_mean(b.mean), running_var(b.var);
  const rdna_tensor m = mean.as(1, &channels), v = inverse.as(1, &channels);
  check(rdna_op_batch_norm(stream, &in, Line(b.weight, channels), Line(b.bias, channels),
                           Line(running_mean.get(), channels), Line(running_var.get(), channels), b.momentum, b.eps,
                           &out, &m, &v));
  running_mean.finish();
  running_var.finish();
  return call.give({y, mean.tensor(), inverse.tensor()});
}

// What PyTorch's schema does not mark as written, the running statistics, a fallback would lose: what librdna does not
// take is computed here through operators that write them.
bool batch_norm(Call &call) {  // input, weight?, bias?, running_mean?, running_var?, training, momentum, eps
  const BatchNorm b{call.tensor(0), call.tensor(1), call.tensor(2),     call.tensor(3),
                    call.tensor(4), call.flag(5),   call[6].toDouble(), call[7].toDouble()};
  if (run_batch_norm(call, b)) return true;
  if (!b.training || !b.mean.defined()) return false;
  count_fallback("aten::native_batch_norm");
  auto cpu = [](const at::Tensor &t) { return t.defined() ? std::make_optional(t.cpu()) : std::nullopt; };
  const auto mean = cpu(b.mean), var = cpu(b.var);
  auto [y, m, v] = at::native_batch_norm(b.x.cpu(), cpu(b.weight), cpu(b.bias), mean, var, true, b.momentum, b.eps);
  b.mean.copy_(*mean);
  b.var.copy_(*var);
  return call.give({y.to(b.x.device()), m.to(b.x.device()), v.to(b.x.device())});
}
bool batch_norm_no_stats(Call &call) {  // input, weight?, bias?, training, momentum, eps
  return run_batch_norm(
      call,
      {call.tensor(0), call.tensor(1), call.tensor(2), {}, {}, call.flag(3), call[4].toDouble(), call[5].toDouble()});
}

// Of compiled graphs, in which nothing is written: the new running statistics are results.
bool batch_norm_functional(Call &call) {  // input, weight?, bias?, running_mean, running_var, training, momentum, eps
  const at::Tensor mean = call.tensor(3).clone(), var = call.tensor(4).clone();
  auto [y, m, v] = at::native_batch_norm(call.tensor(0), call.tensor(1), call.tensor(2), mean, var, call.flag(5),
                                         call[6].toDouble(), call[7].toDouble());
  return call.give({y, m, v, mean, var});
}

// By running statistics, with what often follows.
bool batch_norm_fused(Call &call) {  // input, weight?, bias?, mean, variance, epsilon, residual?, relu
  const at::Tensor x = laid_out(call.tensor(0)), weight = call.tensor(1), bias = call.tensor(2), mean = call.tensor(3),
                   var = call.tensor(4);
  at::Tensor residual = call.tensor(6);
  const double eps = call.real(5);
  TORCH_CHECK(batch_norm_fits(x, weight, bias, mean, var, eps) && mean.defined() && var.defined(),
              "rdna::batch_norm takes floating values and as many parameters as channels");
  const at::Tensor y = like(x);
  if (residual.defined() && !residual.strides().equals(x.strides())) {
    TORCH_CHECK(residual.sizes() == x.sizes(), "the residual of rdna::batch_norm has shape ", residual.sizes(),
                ", its input ", x.sizes());
    const at::Tensor laid = like(x);
    laid.copy_(residual);
    residual = laid;
  }
  const int64_t channels = x.size(1);
  const rdna_tensor in = describe(x), out = describe(y);
  if (x.numel())
    check(rdna_op_batch_norm_inference(stream_of(x), &in, Line(weight, channels), Line(bias, channels),
                                       Line(mean, channels), Line(var, channels), eps, Operand(residual), call.flag(7),
                                       &out));
  return call.give(y);
}

// Results into the last arguments.
bool give_into(Call &call, const std::vector<at::Tensor> &results) {
  std::vector<at::Tensor> given;
  for (size_t i = 0; i < results.size(); i++) {
    Output out(call.tensor(call.count() - results.size() + i), results[i].sizes(), results[i].scalar_type(),
               call.tensor(0), false);
    out.get().copy_(results[i]);
    given.push_back(out.finish());
  }
  return call.give(given);
}
// A fallback would lose the running statistics here too.
bool batch_norm_out(
    Call &call) {  // input, weight?, bias?, running_mean?, running_var?, training, momentum, eps, 3 outs
  auto [y, mean, inverse] =
      at::native_batch_norm(call.tensor(0), call.optional(1), call.optional(2), call.optional(3), call.optional(4),
                            call.flag(5), call[6].toDouble(), call[7].toDouble());
  return give_into(call, {y, mean, inverse});
}

bool batch_norm_no_stats_out(Call &call) {  // input, weight?, bias?, training, momentum, eps, 3 outs
  auto [y, mean, inverse] = at::native_batch_norm(call.tensor(0), call.optional(1), call.optional(2), {}, {},
                                                  call.flag(3), call[4].toDouble(), call[5].toDouble());
  return give_into(call, {y, mean, inverse});
}
bool batch_norm_with_update_out(Call &call) {  // input, weight?, bias?, 2 running, momentum, eps, 4 outs
  auto [y, mean, inverse] = at::native_batch_norm(call.tensor(0), call.optional(1), call.optional(2), call.optional(3),
                                                  call.optional(4), true, call[5].toDouble(), call[6].toDouble());
  return give_into(call, {y, mean, inverse, make({0}, at::kByte, call.tensor(0))});
}
// Mean and variance of each channel, which the running ones move towards.
bool batch_norm_update_stats(Call &call) {  // input, running_mean?, running_var?, momentum
  auto [y, mean, inverse] =
      at::native_batch_norm(call.tensor(0), {}, {}, call.optional(1), call.optional(2), true, call[3].toDouble(), 0);
  return call.give({mean, at::reciprocal(at::square(inverse))});
}

// The operators that exported graphs have: with one more result, which is for libraries that keep something.
bool batch_norm_with_update(Call &call) {  // input, weight?, bias?, running_mean!, running_var!, momentum, eps
  const at::Tensor x = call.tensor(0);
  auto [y, mean, inverse] = at::native_batch_norm(x, call.optional(1), call.optional(2), call.optional(3),
                                                  call.optional(4), true, call[5].toDouble(), call[6].toDouble());
  return call.give({y, mean, inverse, make({0}, at::kByte, x)});
}
// grad_out, input, weight, running_mean?, running_var?, save_mean?, save_var?, update, eps, output_mask, reserve
bool batch_norm_backward_of_update(Call &call) {
  const c10::List<bool> wanted = call[9].toBoolList();
  auto [dx, dw, db] = at::native_batch_norm_backward(call.tensor(0), call.tensor(1), call.optional(2), call.optional(3),
                                                     call.optional(4), call.optional(5), call.optional(6), call.flag(7),
                                                     call[8].toDouble(), {wanted[0], wanted[1], wanted[2]});
  return call.give({dx, dw, db});
}

// grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask
bool batch_norm_backward(Call &call) {
  const at::Tensor weight = call.tensor(2), mean = call.tensor(3), var = call.tensor(4);
  const bool train = call.flag(7);
  const double eps = call[8].toDouble();
  const at::Tensor x = laid_out(call.tensor(1));
  if (!batch_norm_fits(x, weight, {}, mean, var, eps) || x.numel() == 0) return false;
  if (call.tensor(0).scalar_type() != x.scalar_type()) return false;
  if (!train && (!mean.defined() || !var.defined())) return false;
  at::Tensor dy = call.tensor(0);
  if (!dy.strides().equals(x.strides())) {
    dy = like(x);
    dy.copy_(call.tensor(0));
  }
  const c10::List<bool> wanted = call[9].toBoolList();
  const int64_t channels = x.size(1);
  at::Tensor dx, dw, db;
  const at::ScalarType type = weight.defined() ? weight.scalar_type() : statistics(x);
  if (wanted.get(0)) dx = like(x);
  if (wanted.get(1)) dw = make({channels}, type, x);
  if (wanted.get(2)) db = make({channels}, type, x);
  const rdna_tensor grad = describe(dy), in = describe(x);
  rdna_stream *stream = stream_of(x);
  if (train)
    check(rdna_op_batch_norm_backward(stream, &grad, &in, Line(weight, channels), Line(call.tensor(5), channels),
                                      Line(call.tensor(6), channels), Operand(dx), Line(dw, channels),
                                      Line(db, channels)));
  else
    check(rdna_op_batch_norm_inference_backward(stream, &grad, &in, Line(weight, channels), Line(mean, channels),
                                                Line(var, channels), eps, Operand(dx), Line(dw, channels),
                                                Line(db, channels)));
  return call.give({dx, dw, db});
}

bool group_norm(Call &call) {  // input, weight?, bias?, N, C, HxW, group, eps
  const at::Tensor weight = call.tensor(1), bias = call.tensor(2);
  const int64_t n = call.integer(3), channels = call.integer(4), groups = call.integer(6);
  const double eps = call[7].toDouble();
  const at::Tensor x = laid_out(call.tensor(0));
  if (!is_real(x.scalar_type()) || x.dim() < 2 || !describable(x) || !parameters_fit(x, {weight, bias})) return false;
  if (n == 0 && channels % groups == 0) {
    const at::Tensor none = at::empty({0, groups}, x.options());
    return call.give({at::empty_like(x), none, none.clone()});
  }
  if (x.numel() == 0) return false;
  if (eps < 0) {
    at::Tensor y, mean, inverse;
    std::tie(y, mean, inverse) = step_by_step(x.contiguous(), n * groups, eps);
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    shape[1] = channels;
    if (weight.defined()) y = y * weight.view(shape);
    if (bias.defined()) y = y + bias.view(shape);
    const at::ScalarType type = x.scalar_type();
    return call.give({y.to(type).contiguous(x.suggest_memory_format()), mean.view({n, groups}).to(type),
                      inverse.view({n, groups}).to(type)});
  }
  const at::Tensor y = like(x);
  const Saved mean({n, groups}, x), inverse({n, groups}, x);
  const int64_t shape[2] = {n, groups};
  const rdna_tensor in = describe(x), out = describe(y), m = mean.as(2, shape), v = inverse.as(2, shape);
  check(rdna_op_group_norm(stream_of(x), &in, groups, Line(weight, channels), Line(bias, channels), eps, &out, &m, &v));
  // Unlike the others', group norm's statistics have the type of x on every device, or of the parameters where it is
  // another.
  const at::ScalarType type = weight.defined() ? weight.scalar_type()
                              : bias.defined() ? bias.scalar_type()
                                               : x.scalar_type();
  return call.give({y, converted(mean.tensor(), type), converted(inverse.tensor(), type)});
}

// grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask
bool group_norm_backward(Call &call) {
  const at::Tensor weight = call.tensor(4), x = laid_out(call.tensor(1));
  const int64_t n = call.integer(5), channels = call.integer(6), groups = call.integer(8);
  if (!is_real(x.scalar_type()) || x.dim() < 2 || !describable(x) || !parameters_fit(x, {weight}) ||
      (x.numel() == 0 && n != 0) || call.tensor(0).scalar_type() != x.scalar_type())
    return false;
  if (n == 0) {
    const c10::List<bool> asked = call[9].toBoolList();
    const at::Tensor none = at::zeros({channels}, weight.defined() ? weight.options() : x.options());
    return call.give({asked.get(0) ? at::empty_like(x) : at::Tensor(), asked.get(1) ? none : at::Tensor(),
                      asked.get(2) ? none.clone() : at::Tensor()});
  }
  at::Tensor dy = call.tensor(0);
  if (!dy.strides().equals(x.strides())) {
    dy = like(x);
    dy.copy_(call.tensor(0));
  }
  const c10::List<bool> wanted = call[9].toBoolList();
  const at::Tensor mean = converted(call.tensor(2), statistics(x)).contiguous(),
                   inverse = converted(call.tensor(3), statistics(x)).contiguous();
  at::Tensor dx, dw, db;
  const at::ScalarType type = weight.defined() ? weight.scalar_type() : statistics(x);
  if (wanted.get(0)) dx = like(x);
  if (wanted.get(1)) dw = make({channels}, type, x);
  if (wanted.get(2)) db = make({channels}, type, x);
  const int64_t shape[2] = {n, groups};
  const rdna_tensor grad = describe(dy), in = describe(x);
  const rdna_tensor m = flat(mean, 2, shape), v = flat(inverse, 2, shape);
  check(rdna_op_group_norm_backward(stream_of(x), &grad, &in, groups, Line(weight, channels), &m, &v, Operand(dx),
                                    Line(dw, channels), Line(db, channels)));
  return call.give({dx, dw, db});
}

const Single singles[] = {
    {"native_layer_norm", layer_norm},
    {"native_layer_norm_backward", layer_norm_backward},
    {"native_batch_norm", batch_norm},
    {"native_batch_norm.out", batch_norm_out},
    {"_native_batch_norm_legit.out", batch_norm_out},
    {"_native_batch_norm_legit", batch_norm},
    {"_native_batch_norm_legit.no_stats", batch_norm_no_stats},
    {"_native_batch_norm_legit_functional", batch_norm_functional},
    {"native_batch_norm_backward", batch_norm_backward},
    {"_batch_norm_with_update", batch_norm_with_update},
    {"_batch_norm_with_update.out", batch_norm_with_update_out},
    {"_native_batch_norm_legit.no_stats_out", batch_norm_no_stats_out},
    {"batch_norm_update_stats", batch_norm_update_stats},
    {"batch_norm_backward", batch_norm_backward_of_update},
    {"native_group_norm", group_norm},
    {"native_group_norm_backward", group_norm_backward},
};

const Single fused[] = {{"batch_norm", batch_norm_fused}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }
TORCH_LIBRARY_IMPL(rdna, PrivateUse1, m) { add(m, fused); }

}  // namespace
}  // namespace rdna_torch
