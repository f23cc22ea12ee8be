// Random numbers whose distribution tensors give, and those that are made from uniform and normal ones.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "graph.h"
#include "native.h"

namespace rdna_torch {
namespace {

// What numbers beside |t| are drawn in.
at::ScalarType wide(const at::Tensor &t) { return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor uniform(at::IntArrayRef shape, const at::Tensor &on, at::ScalarType type,
                   std::optional<at::Generator> generator) {
  return at::empty(shape, on.options().dtype(type)).uniform_(0, 1, std::move(generator));
}

// Without replacement, and for one sample: the largest of p / e with e exponential, which is an index with
// probability p (the order of such clocks is that of drawing without putting back). With it: where a uniform number
// lies among the running sums.
bool multinomial(Call &call) {  // self, num_samples, replacement, generator, [out]
  const at::Tensor p = call.tensor(0);
  const int64_t count = call.integer(1);
  const bool replacement = call.flag(2);
  if (!is_real(p.scalar_type()) || p.dim() < 1 || p.dim() > 2 || p.numel() == 0) return false;
  TORCH_CHECK(p.size(-1) <= 1 << 24, "number of categories cannot exceed 2^24");
  TORCH_CHECK(!call.output().defined() || call.output().scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", call.output().scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= p.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  at::Tensor w = p.to(wide(p));
  const at::Tensor largest = w.amax({-1}, true);
  const at::Tensor fine =
      at::logical_and(at::ge(w, 0).all(), at::logical_and(at::gt(largest, 0), at::isfinite(largest)).all());
  TORCH_CHECK(fine.item().toBool(), "probability tensor contains either `inf`, `nan` or element < 0, or sums to 0");
  w = w / largest;  // neither sums nor keys overflow
  at::Tensor chosen;
  if (replacement && count > 1) {
    std::vector<int64_t> shape = w.sizes().vec();
    shape.back() = count;
    // Of f64: f32's sums differ by rounding where a weight is 0, and would give it a share.
    const at::Tensor sums = w.cumsum(-1, at::kDouble), at_most = sums.narrow(-1, sums.size(-1) - 1, 1);
    // 1 - u is above 0 and at most 1: the first sum that reaches it belongs to a probability that is not 0
    chosen = at::searchsorted(sums, ((1 - uniform(shape, w, at::kDouble, call.generator(3))) * at_most).contiguous());
    chosen = at::clamp_max(chosen, w.size(-1) - 1);
  } else {
    const at::Tensor clocks = at::empty_like(w).exponential_(1, call.generator(3));
    const at::Tensor key = (w / clocks).masked_fill(at::eq(w, 0), -1);  // a clock of 0 is no choice either
    chosen = count == 1 ? key.argmax(-1, true) : std::get<1>(key.topk(count, -1));
  }
  Output out(call.output(), chosen.sizes(), at::kLong, p, false);
  out.get().copy_(chosen);
  return call.give(out.finish());
}

// Not while a graph is recorded, which cannot wait for the answer.
void check_probabilities(const at::Tensor &p) {
  if (p.numel() == 0 || is_capturing()) return;
  const at::Tensor fine = at::logical_and(at::ge(p, 0), at::le(p, 1)).all();
  TORCH_CHECK(fine.item().toBool(), "bernoulli expects each probability to be in [0, 1]");
}

bool bernoulli_by(Call &call) {  // self, p, generator
  const at::Tensor self = call.tensor(0), p = call.tensor(1);
  if (!has_dtype(self.scalar_type()) || !is_real(p.scalar_type())) return false;
  check_probabilities(p);
  self.copy_(at::lt(uniform(self.sizes(), self, wide(p), call.generator(2)),
                    p.to(self.device(), wide(p), /*non_blocking=*/true)));
  return call.give(self);
}

bool bernoulli(Call &call) {  // self, generator, out
  const at::Tensor p = call.tensor(0);
  if (!is_real(p.scalar_type())) return false;
  check_probabilities(p);
  Output out(call.output(), p.sizes(), p.scalar_type(), p, false);
  out.get().copy_(at::lt(uniform(p.sizes(), p, wide(p), call.generator(1)), p.to(wide(p))));
  return call.give(out.finish());
}

bool normal(Call &call) {  // mean, std, generator, [out]; each a tensor or a number
  const bool mean = call[0].isTensor(), deviation = call[1].isTensor();
  const at::Tensor like = mean ? call.tensor(0) : call.tensor(1);
  if (!is_real(like.scalar_type()) || like.device().type() != kRdna) return false;
  const double least = !deviation                    ? call[1].toDouble()
                       : call.tensor(1).numel() == 0 ? 0
                                                     : call.tensor(1).min().item().toDouble();
  TORCH_CHECK(least >= 0, "normal expects all elements of std >= 0.0, but found ", least);
  const std::vector<int64_t> shape =
      mean && deviation ? at::infer_size(call.tensor(0).sizes(), call.tensor(1).sizes()) : like.sizes().vec();
  at::Tensor value = at::empty(shape, like.options()).normal_(0, 1, call.generator(2));
  value = deviation ? value * call.tensor(1) : value * call[1].toDouble();
  value = mean ? value + call.tensor(0) : value + call[0].toDouble();
  Output out(call.output(), value.sizes(), like.scalar_type(), like, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

bool log_normal(Call &call) {  // self, mean, std, generator
  const at::Tensor self = call.tensor(0);
  if (!is_real(self.scalar_type())) return false;
  TORCH_CHECK(call[2].toDouble() > 0, "log_normal_ expects std > 0.0, but found std=", call[2].toDouble());
  const at::Tensor work = at::empty(self.sizes(), self.options().dtype(wide(self)));  // rounded once, at the end
  self.copy_(work.normal_(call[1].toDouble(), call[2].toDouble(), call.generator(3)).exp_());
  return call.give(self);
}

bool cauchy(Call &call) {  // self, median, sigma, generator
  const at::Tensor self = call.tensor(0);
  if (!is_real(self.scalar_type())) return false;
  TORCH_CHECK(call[2].toDouble() > 0, "cauchy_ expects sigma > 0.0, but found sigma=", call[2].toDouble());
  // in f64: f32's steps of 2^-24 are far apart in the tails
  const at::Tensor u = uniform(self.sizes(), self, at::kDouble, call.generator(3));
  self.copy_(at::tan((u - 0.5) * M_PI) * call[2].toDouble() + call[1].toDouble());
  return call.give(self);
}

bool geometric(Call &call) {  // self, p, generator
  const at::Tensor self = call.tensor(0);
  const double p = call[1].toDouble();
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  if (!has_dtype(self.scalar_type())) return false;
  const at::Tensor u = uniform(self.sizes(), self, at::kDouble, call.generator(2));  // in [0, 1), fine enough for any p
  self.copy_(at::clamp_min(at::ceil(at::log1p(-u) / std::log1p(-p)), 1));
  return call.give(self);
}

const Single singles[] = {
    {"multinomial", multinomial},        {"multinomial.out", multinomial},
    {"bernoulli_.Tensor", bernoulli_by}, {"bernoulli.out", bernoulli},
    {"normal.Tensor_float", normal},     {"normal.Tensor_float_out", normal},
    {"normal.float_Tensor", normal},     {"normal.float_Tensor_out", normal},
    {"normal.Tensor_Tensor", normal},    {"normal.Tensor_Tensor_out", normal},
    {"log_normal_", log_normal},         {"cauchy_", cauchy},
    {"geometric_", geometric},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
