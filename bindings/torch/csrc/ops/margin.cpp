// Losses of classes by margins, and their gradients, of other operators: multi_margin_loss, multilabel_margin_loss.
// f16 and bf16 are computed in f32 and rounded once.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "native.h"

namespace rdna_torch {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1 };

// One row of classes, or a batch of them, or one class alone. Other shapes are PyTorch's to refuse.
bool fits(const at::Tensor &x) { return is_real(x.scalar_type()) && x.dim() <= 2 && x.numel() > 0; }
int64_t classes_of(const at::Tensor &x) { return x.dim() == 0 ? 1 : x.size(-1); }
// What is not above 0 is 0, NaN too, as PyTorch has it here.
at::Tensor above_zero(const at::Tensor &t) { return t.masked_fill(at::logical_not(at::gt(t, 0)), 0); }
at::Tensor batch(const at::Tensor &t) { return t.dim() == 2 ? t : t.reshape({1, -1}); }

at::Tensor reduced(const at::Tensor &losses, int64_t reduction) {
  return reduction == kNone ? losses : reduction == kMean ? losses.mean() : losses.sum();
}
// A factor for each row of the batch: the gradient of its loss.
at::Tensor slopes(const at::Tensor &grad, int64_t rows, int64_t reduction) {
  const at::Tensor g = wide(grad).reshape({-1, 1});
  return reduction == kMean ? g / static_cast<double>(rows) : g;
}

bool give_as(Call &call, const at::Tensor &value, at::IntArrayRef shape, const at::Tensor &like) {
  Output out(call.output(), shape, like.scalar_type(), like);
  out.get().copy_(value.reshape(shape));
  return call.give(out.finish());
}

// --- multi_margin_loss: mean over classes j other than the target y of weight[y] max(0, margin - x[y] + x[j])^p

struct MultiMargin {
  at::Tensor classes, apart, weight;  // (rows, 1) the target; (rows, classes) the terms before the power; of the target
  bool square;
};

bool multi_margin_fits(const at::Tensor &x, const at::Tensor &target, const at::Tensor &weight, const at::Scalar &p) {
  if (!fits(x) || p.isComplex() || (p.toDouble() != 1 && p.toDouble() != 2)) return false;
  const int64_t rows = x.dim() == 2 ? x.size(0) : 1;
  if (target.scalar_type() != at::kLong || target.dim() > 1 || target.numel() != rows) return false;
  return !weight.defined() ||
         (weight.scalar_type() == x.scalar_type() && weight.dim() <= 1 && weight.numel() == classes_of(x));
}

MultiMargin multi_margin_of(const at::Tensor &given, const at::Tensor &target, const at::Scalar &p,
                            const at::Scalar &margin, const at::Tensor &weight) {
  const at::Tensor x = wide(batch(given)), y = target.reshape({-1, 1});
  const at::Tensor terms = above_zero(x - x.gather(1, y) + margin).scatter(1, y, 0);
  return {y, terms,
          weight.defined() ? wide(weight).reshape({-1}).index_select(0, y.reshape({-1})).unsqueeze(1) : weight,
          p.toDouble() == 2};
}

bool multi_margin(Call &call) {  // self, target, p, margin, weight?, reduction, [out]
  const at::Tensor x = call.tensor(0), target = call.tensor(1), weight = call.tensor(4);
  if (!multi_margin_fits(x, target, weight, call.scalar(2))) return false;
  const MultiMargin m = multi_margin_of(x, target, call.scalar(2), call.scalar(3), weight);
  at::Tensor terms = m.square ? m.apart * m.apart : m.apart;
  if (m.weight.defined()) terms = terms * m.weight;
  const int64_t reduction = call.integer(5);
  return give_as(call, reduced(terms.mean(1), reduction), reduction == kNone ? target.sizes() : at::IntArrayRef{}, x);
}

bool multi_margin_backward(Call &call) {  // grad_output, self, target, p, margin, weight?, reduction, [grad_input]
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), target = call.tensor(2), weight = call.tensor(5);
  if (!multi_margin_fits(x, target, weight, call.scalar(3))) return false;
  const MultiMargin m = multi_margin_of(x, target, call.scalar(3), call.scalar(4), weight);
  at::Tensor slope = m.square ? 2 * m.apart : at::gt(m.apart, 0).to(m.apart.scalar_type());
  if (m.weight.defined()) slope = slope * m.weight;
  slope = slope * slopes(grad, m.apart.size(0), call.integer(6)) / static_cast<double>(classes_of(x));
  return give_as(call, slope.scatter(1, m.classes, -slope.sum(1, true)), x.sizes(), x);
}

// --- multilabel_margin_loss: mean over classes j that are no target, summed over targets t, of max(0, 1 - x[t] + x[j])

// Targets of a row end at the first negative number. What is behind it gets a class of its own, |classes|, one past the
// last, which is cut off in the end.
at::Tensor targets_of(const at::Tensor &target, int64_t classes) {
  const at::Tensor over = at::gt(at::cumsum(at::lt(target, 0).to(at::kLong), 1), 0);
  return target.masked_fill(over, classes);
}

bool multilabel_fits(const at::Tensor &x, const at::Tensor &target) {
  return fits(x) && target.scalar_type() == at::kLong && target.sizes() == x.sizes();
}

// f(terms, first row, rows) for as many rows at a time as make some 2^24 values: (rows, targets, classes), 0 where
// there is no term.
template <class F>
void by_terms(const at::Tensor &x, const at::Tensor &labels, const at::Tensor &is_target, F f) {
  const int64_t classes = x.size(1);
  const int64_t most = std::max<int64_t>(1, (int64_t{1} << 24) / (classes * classes));
  for (int64_t i = 0; i < x.size(0); i += most) {
    const int64_t n = std::min(most, x.size(0) - i);
    const at::Tensor some = x.narrow(0, i, n), label = labels.narrow(0, i, n);
    const at::Tensor of_target = some.gather(1, at::clamp_max(label, classes - 1)).unsqueeze(2);
    const at::Tensor none =
        at::logical_or(at::eq(label, classes).unsqueeze(2), at::ne(is_target.narrow(0, i, n), 0).unsqueeze(1));
    f(above_zero(1 - of_target + some.unsqueeze(1)).masked_fill(none, 0), i, n);
  }
}

bool multilabel(Call &call) {  // self, target, reduction, [output!, is_target!]
  const at::Tensor given = call.tensor(0), target = call.tensor(1);
  if (!multilabel_fits(given, target)) return false;
  const int64_t reduction = call.integer(2), classes = classes_of(given);
  const at::Tensor x = wide(batch(given)), labels = targets_of(batch(target), classes);
  const at::Tensor is_target =
      at::zeros({x.size(0), classes + 1}, x.options()).scatter_(1, labels, 1).narrow(1, 0, classes);
  const at::Tensor losses = at::empty({x.size(0)}, x.options());
  by_terms(x, labels, is_target, [&](const at::Tensor &terms, int64_t i, int64_t n) {
    losses.narrow(0, i, n).copy_(terms.sum({1, 2}) / static_cast<double>(classes));
  });
  const bool each = reduction == kNone && given.dim() == 2;
  const at::Tensor value = reduced(losses, reduction);
  const bool asked = call.count() > 3;
  const std::vector<int64_t> shape = each ? std::vector<int64_t>{x.size(0)} : std::vector<int64_t>{};
  Output out(asked ? call.tensor(3) : at::Tensor(), shape, given.scalar_type(), given);
  Output is(asked ? call.tensor(4) : at::Tensor(), target.sizes(), given.scalar_type(), given);
  out.get().copy_(value.reshape(shape));
  is.get().copy_(is_target.reshape(target.sizes()));
  return call.give({out.finish(), is.finish()});
}

bool multilabel_backward(Call &call) {  // grad_output, self, target, reduction, is_target, [grad_input]
  const at::Tensor grad = call.tensor(0), given = call.tensor(1), target = call.tensor(2), is = call.tensor(4);
  if (!multilabel_fits(given, target) || is.sizes() != target.sizes()) return false;
  const int64_t classes = classes_of(given);
  const at::Tensor x = wide(batch(given)), labels = targets_of(batch(target), classes);
  const at::Tensor slope = at::empty(x.sizes(), x.options());
  by_terms(x, labels, batch(is), [&](const at::Tensor &terms, int64_t i, int64_t n) {
    const at::Tensor some = at::gt(terms, 0).to(x.scalar_type());
    const at::Tensor down = at::zeros({n, classes + 1}, x.options())
                                .scatter_add_(1, labels.narrow(0, i, n), some.sum(2))
                                .narrow(1, 0, classes);
    slope.narrow(0, i, n).copy_(some.sum(1) - down);
  });
  const at::Tensor value = slope * slopes(grad, x.size(0), call.integer(3)) / static_cast<double>(classes);
  return give_as(call, value, given.sizes(), given);
}

const Single singles[] = {
    {"multi_margin_loss", multi_margin},
    {"multi_margin_loss.out", multi_margin},
    {"multi_margin_loss_backward", multi_margin_backward},
    {"multi_margin_loss_backward.grad_input", multi_margin_backward},
    {"multilabel_margin_loss_forward", multilabel},
    {"multilabel_margin_loss_forward.output", multilabel},
    {"multilabel_margin_loss_backward", multilabel_backward},
    {"multilabel_margin_loss_backward.grad_input", multilabel_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
