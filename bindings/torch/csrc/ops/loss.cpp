// Losses and their gradients.
#include "rdna/op/loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "native.h"
#include "outside.h"

namespace rdna_torch {
namespace {

// PyTorch's numbers for reductions.
rdna_loss_reduction reduction_of(int64_t r) {
  return r == 0 ? RDNA_LOSS_REDUCTION_NONE : r == 1 ? RDNA_LOSS_REDUCTION_MEAN : RDNA_LOSS_REDUCTION_SUM;
}

bool fits(const at::Tensor &x, const at::Tensor &target, const at::Tensor &weight) {
  return is_real(x.scalar_type()) && target.scalar_type() == x.scalar_type() && target.sizes().equals(x.sizes()) &&
         target.device() == x.device() && x.numel() && describable(x) &&
         (!weight.defined() || (weight.scalar_type() == x.scalar_type() && weight.sizes().equals(x.sizes())));
}

// Where a loss's arguments are. -1: it has none.
struct Row {
  const char *name;
  rdna_loss loss;
  int reduction, beta, weight;
};

double beta_of(const Row &row, const Call &call) {
  return row.beta < 0 ? 1 : call[static_cast<size_t>(row.beta)].toDouble();
}

// --- in f64, of other operators

at::Tensor reduced(const at::Tensor &value, rdna_loss_reduction reduction) {
  return reduction == RDNA_LOSS_REDUCTION_NONE   ? value
         : reduction == RDNA_LOSS_REDUCTION_MEAN ? at::mean(value)
                                                 : at::sum(value);
}

at::Tensor wide_loss(rdna_loss loss, double beta, const at::Tensor &x, const at::Tensor &t) {
  if (loss == RDNA_LOSS_BCE)
    return -(t * at::clamp_min(at::log(x), -100) + (1 - t) * at::clamp_min(at::log1p(-x), -100));
  const at::Tensor d = x - t, a = at::abs(d);
  if (loss == RDNA_LOSS_MSE) return d * d;
  if (loss == RDNA_LOSS_HUBER) return at::where(at::le(a, beta), 0.5 * d * d, beta * (a - 0.5 * beta));
  return at::where(at::lt(a, beta), 0.5 * d * d / beta, a - 0.5 * beta);
}
at::Tensor wide_slope(rdna_loss loss, double beta, const at::Tensor &x, const at::Tensor &t) {
  const at::Tensor d = x - t;
  if (loss == RDNA_LOSS_BCE) return d / at::clamp_min((1 - x) * x, 1e-12);
  if (loss == RDNA_LOSS_MSE) return 2 * d;
  if (loss == RDNA_LOSS_HUBER) return at::clamp(d, -beta, beta);
  return at::where(at::lt(at::abs(d), beta), d / beta, at::sign(d));
}

bool forward(const Row &row, Call &call) {  // self, target, …
  const at::Tensor x = call.tensor(0), t = call.tensor(1),
                   w = row.weight < 0 ? at::Tensor() : call.tensor(static_cast<size_t>(row.weight));
  const double beta = beta_of(row, call);
  TORCH_CHECK(row.loss != RDNA_LOSS_HUBER || beta > 0, "huber_loss does not support non-positive values for delta.");
  if (!fits(x, t, w) || !(beta >= 0)) return false;
  const rdna_loss_reduction reduction = reduction_of(call.integer(static_cast<size_t>(row.reduction)));
  if (x.scalar_type() == at::kDouble) {
    at::Tensor value = wide_loss(row.loss, beta, x, t);
    if (w.defined()) value = value * w;
    value = reduced(value, reduction);
    Output out(call.output(), value.sizes(), value.scalar_type(), x);
    out.get().copy_(value);
    return call.give(out.finish());
  }
  const at::Tensor a = x.contiguous(), b = t.contiguous(), c = w.defined() ? w.contiguous() : w;
  Output out(call.output(), reduction == RDNA_LOSS_REDUCTION_NONE ? x.sizes() : at::IntArrayRef{}, x.scalar_type(), x);
  const rdna_tensor in = describe(a), target = describe(b), result = describe(out.get());
  check(rdna_op_loss(stream_of(x), row.loss, static_cast<float>(beta), reduction, &in, &target, Operand(c), &result));
  return call.give(out.finish());
}

const Row forwards[] = {
    {"mse_loss.out", RDNA_LOSS_MSE, 2, -1, -1},        {"smooth_l1_loss.out", RDNA_LOSS_SMOOTH_L1, 2, 3, -1},
    {"huber_loss", RDNA_LOSS_HUBER, 2, 3, -1},         {"huber_loss.out", RDNA_LOSS_HUBER, 2, 3, -1},
    {"binary_cross_entropy", RDNA_LOSS_BCE, 3, -1, 2}, {"binary_cross_entropy.out", RDNA_LOSS_BCE, 3, -1, 2},
};

bool backward(const Row &row, Call &call) {  // grad_output, self, target, …
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), t = call.tensor(2),
                   w = row.weight < 0 ? at::Tensor() : call.tensor(static_cast<size_t>(row.weight));
  const double beta = beta_of(row, call);
  if (!fits(x, t, w) || !(beta >= 0) || grad.scalar_type() != x.scalar_type()) return false;
  const rdna_loss_reduction reduction = reduction_of(call.integer(static_cast<size_t>(row.reduction)));
  if (reduction == RDNA_LOSS_REDUCTION_NONE ? !grad.sizes().equals(x.sizes()) : grad.numel() != 1) return false;
  if (x.scalar_type() == at::kDouble) {
    at::Tensor value =
        wide_slope(row.loss, beta, x, t) * (reduction == RDNA_LOSS_REDUCTION_NONE ? grad : grad.reshape({}));
    if (w.defined()) value = value * w;
    if (reduction == RDNA_LOSS_REDUCTION_MEAN) value = value / static_cast<double>(x.numel());
    Output out(call.output(), x.sizes(), x.scalar_type(), x);
    out.get().copy_(value);
    return call.give(out.finish());
  }
  const at::Tensor g = grad.contiguous(), a = x.contiguous(), b = t.contiguous(), c = w.defined() ? w.contiguous() : w;
  Output out(call.output(), x.sizes(), x.scalar_type(), x);
  const at::Tensor one = reduction == RDNA_LOSS_REDUCTION_NONE ? g : g.reshape({});
  const rdna_tensor dout = describe(one), in = describe(a), target = describe(b), dx = describe(out.get());
  check(rdna_op_loss_backward(stream_of(x), row.loss, static_cast<float>(beta), reduction, &dout, &in, &target,
                              Operand(c), &dx));
  return call.give(out.finish());
}

const Row backwards[] = {
    {"mse_loss_backward", RDNA_LOSS_MSE, 3, -1, -1},
    {"mse_loss_backward.grad_input", RDNA_LOSS_MSE, 3, -1, -1},
    {"smooth_l1_loss_backward.grad_input", RDNA_LOSS_SMOOTH_L1, 3, 4, -1},
    {"huber_loss_backward.out", RDNA_LOSS_HUBER, 3, 4, -1},
    {"binary_cross_entropy_backward", RDNA_LOSS_BCE, 4, -1, 3},
    {"binary_cross_entropy_backward.grad_input", RDNA_LOSS_BCE, 4, -1, 3},
};

// The negative log-likelihood: x holds logarithms of probabilities, of shape (rows, classes), or of one row, or with
// |spatial| of (n, classes, height, width), whose places are rows.
struct Likelihood {
  bool spatial;
  at::Tensor x, target, weight;  // as librdna takes them

  bool prepare(const at::Tensor &given, const at::Tensor &labels, const at::Tensor &w) {
    if (!is_real(given.scalar_type()) || (labels.scalar_type() != at::kLong && labels.scalar_type() != at::kInt) ||
        labels.device() != given.device() || given.numel() == 0)
      return false;
    if (spatial) {
      if (given.dim() != 4 || labels.dim() != 3 || labels.size(0) != given.size(0) || labels.size(1) != given.size(2) ||
          labels.size(2) != given.size(3))
        return false;
      x = given.permute({0, 2, 3, 1}).contiguous().view({-1, given.size(1)});
    } else {
      if (given.dim() > 2 || given.dim() < 1 || labels.numel() != (given.dim() == 2 ? given.size(0) : 1)) return false;
      x = given.contiguous().view({-1, given.size(-1)});
    }
    target = labels.contiguous().view({-1});
    if (w.defined()) {
      if (w.numel() != x.size(1) || !is_real(w.scalar_type())) return false;
      weight = converted(w, x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).contiguous();
    }
    return true;
  }

  // For f64: whether each row is ignored, its class as an index, any where it is, and its weight, then 0.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> rows(int64_t ignored) const {
    const at::Tensor out = at::eq(target, ignored), index = target.to(at::kLong).masked_fill(out, 0);
    const at::Tensor w = weight.defined() ? weight.index_select(0, index) : at::ones(index.sizes(), x.options());
    return {out, index.unsqueeze(1), w.masked_fill(out, 0)};
  }
};

constexpr char kTarget[] = "the target of nll_loss or cross_entropy";

// self, target, weight?, reduction, ignore_index, [output!, total_weight!]
bool likelihood(Call &call, bool spatial) {
  const at::Tensor x = call.tensor(0), labels = call.tensor(1);
  Likelihood l{spatial, {}, {}, {}};
  if (!l.prepare(x, labels, call.tensor(2))) return false;
  const rdna_loss_reduction reduction = reduction_of(call.integer(3));
  const rdna_cross_entropy options{RDNA_CROSS_ENTROPY_INIT, .reduction = reduction, .ignore_index = call.integer(4),
                                   .log_probabilities = true, .outside = outside(x, kTarget)};
  const at::Tensor given = call.count() > 5 ? call.tensor(5) : at::Tensor();
  const at::Tensor given_total = call.count() > 5 ? call.tensor(6) : at::Tensor();
  Output out(given, reduction == RDNA_LOSS_REDUCTION_NONE ? labels.sizes() : at::IntArrayRef{}, x.scalar_type(), x);
  Output total(given_total, {}, x.scalar_type(), x);
  if (x.scalar_type() == at::kDouble) {
    const auto [ignored, index, w] = l.rows(call.integer(4));
    const at::Tensor all = w.sum();
    const at::Tensor each = (-l.x.gather(1, index).squeeze(1) * w).masked_fill(ignored, 0);
    const at::Tensor value = reduction == RDNA_LOSS_REDUCTION_NONE   ? each.view(labels.sizes())
                             : reduction == RDNA_LOSS_REDUCTION_MEAN ? each.sum() / all
                                                                     : each.sum();
    out.get().copy_(value);
    if (reduction == RDNA_LOSS_REDUCTION_NONE)
      total.get().zero_();
    else
      total.get().copy_(all);
    const at::Tensor a = out.finish(), b = total.finish();
    return call.give({a, b});
  }
  const at::Tensor lse = make({l.x.size(0)}, at::kFloat, x), sum = make({1}, at::kFloat, x);
  const at::Tensor result = reduction == RDNA_LOSS_REDUCTION_NONE ? out.get().view({-1}) : out.get();
  const rdna_tensor in = describe(l.x), target = describe(l.target), to = describe(result), norm = describe(lse),
                    of = describe(sum);
  check(rdna_op_cross_entropy(stream_of(x), &options, &in, &target, Operand(l.weight), &to, &norm, &of));
  if (reduction == RDNA_LOSS_REDUCTION_NONE)
    total.get().zero_();
  else
    copy_values(sum.select(0, 0), total.get());
  const at::Tensor a = out.finish(), b = total.finish();
  return call.give({a, b});
}

// grad_output, self, target, weight?, reduction, ignore_index, total_weight, [grad_input!]
bool likelihood_backward(Call &call, bool spatial) {
  const at::Tensor grad = call.tensor(0), x = call.tensor(1);
  Likelihood l{spatial, {}, {}, {}};
  if (!l.prepare(x, call.tensor(2), call.tensor(3)) || grad.scalar_type() != x.scalar_type()) return false;
  const rdna_loss_reduction reduction = reduction_of(call.integer(4));
  const rdna_cross_entropy options{RDNA_CROSS_ENTROPY_INIT, .reduction = reduction, .ignore_index = call.integer(5),
                                   .log_probabilities = true, .outside = outside(x, kTarget)};
  const at::Tensor g = reduction == RDNA_LOSS_REDUCTION_NONE ? grad.contiguous().view({-1}) : grad.reshape({});
  const at::Tensor dx = make_like(l.x);
  if (x.scalar_type() == at::kDouble) {
    const auto [ignored, index, w] = l.rows(call.integer(5));
    at::Tensor slope = -w * g;
    if (reduction == RDNA_LOSS_REDUCTION_MEAN) slope = slope / call.tensor(6);
    dx.zero_().scatter_(1, index, slope.masked_fill(ignored, 0).unsqueeze(1));
  } else {
    const at::Tensor total = converted(call.tensor(6), at::kFloat).reshape({1});
    const at::Tensor lse = make({l.x.size(0)}, at::kFloat, x);  // of no use to logarithms
    lse.zero_();
    const rdna_tensor dout = describe(g), in = describe(l.x), target = describe(l.target), norm = describe(lse),
                      of = describe(total), to = describe(dx);
    check(rdna_op_cross_entropy_backward(stream_of(x), &options, &dout, &in, &target, Operand(l.weight), &norm, &of,
                                         &to));
  }
  const at::Tensor shaped =
      spatial ? dx.view({x.size(0), x.size(2), x.size(3), x.size(1)}).permute({0, 3, 1, 2}) : dx.view(x.sizes());
  const at::Tensor given = call.output();
  if (!given.defined()) return call.give(shaped.contiguous());
  Output out(given, x.sizes(), x.scalar_type(), x, false);
  out.get().copy_(shaped);
  return call.give(out.finish());
}

bool nll(Call &call) { return likelihood(call, false); }
bool nll_backward(Call &call) { return likelihood_backward(call, false); }
bool nll2d(Call &call) { return likelihood(call, true); }
bool nll2d_backward(Call &call) { return likelihood_backward(call, true); }

const Single singles[] = {
    {"nll_loss_forward.output", nll},        {"nll_loss_backward.grad_input", nll_backward},
    {"nll_loss2d_forward", nll2d},           {"nll_loss2d_forward.output", nll2d},
    {"nll_loss2d_backward", nll2d_backward}, {"nll_loss2d_backward.grad_input", nll2d_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, forwards, forward);
  add(m, backwards, backward);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
