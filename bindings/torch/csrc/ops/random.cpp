// Random numbers, dropout, permutations.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/DistributionTemplates.h>

#include <cmath>
#include <limits>

#include "generator.h"
#include "native.h"
#include "rdna/op/random.h"
#include "rdna/op/sort.h"

namespace rdna_torch {
namespace {

constexpr uint64_t float_counters(int64_t n) { return (static_cast<uint64_t>(n) + 3) / 4; }
constexpr uint64_t integer_counters(int64_t n) { return (static_cast<uint64_t>(n) + 1) / 2; }

// Draws into |self| through |f|(seed, offset, out), by way of a contiguous tensor of |type| where it is not one.
template <class F>
bool fill(Call &call, const at::Tensor &self, at::ScalarType type, uint64_t counters, size_t generator, F f) {
  if (self.numel() == 0) return call.give(self);
  const Draw d = draw(call.generator(generator), self.device().index(), counters);
  const bool direct = self.scalar_type() == type && self.is_contiguous();
  const at::Tensor work = direct ? self : make(self.sizes(), type, self);
  const rdna_tensor out = describe(work);
  check(f(d.seed, d.offset, &out));
  if (!direct) self.copy_(work);
  return call.give(self);
}

// [0, 1) in f64, in steps of 2^-53: what distributions of doubles are made of.
at::Tensor wide_uniform(const Call &call, const at::Tensor &like, size_t generator) {
  const at::Tensor bits = make(like.sizes(), at::kLong, like);
  const Draw d = draw(call.generator(generator), like.device().index(), integer_counters(like.numel()));
  const rdna_tensor out = describe(bits);
  check(rdna_op_random_integers(stream_of(like), d.seed, d.offset, 0, int64_t{1} << 53, &out));
  return bits.to(at::kDouble) * 0x1p-53;
}

bool uniform(Call &call) {  // self, from, to, generator
  const at::Tensor self = call.tensor(0);
  if (is_complex(self.scalar_type()) && !self.is_conj() && !self.is_neg()) {
    at::view_as_real(self).uniform_(call.real(1), call.real(2), call.generator(3));
    return call.give(self);
  }
  if (!is_real(self.scalar_type())) return false;
  const double low = call[1].toDouble(), high = call[2].toDouble();
  TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low, " > to=", high);
  if (self.scalar_type() == at::kDouble) {
    TORCH_CHECK(std::isfinite(high - low), "uniform_ expects to-from to be a finite double, but found to=", high,
                " and from=", low);
    if (self.numel() == 0) return call.give(self);
    const at::Tensor value = wide_uniform(call, self, 3) * (high - low) + low;  // |high| by rounding
    self.copy_(at::clamp_max(value, low < high ? std::nextafter(high, low) : high));
    return call.give(self);
  }
  return fill(call, self, self.scalar_type(), float_counters(self.numel()), 3, [&](auto seed, auto offset, auto out) {
    return rdna_op_random_uniform(stream_of(self), seed, offset, static_cast<float>(low), static_cast<float>(high),
                                  out);
  });
}

bool normal(Call &call) {  // self, mean, std, generator
  const at::Tensor self = call.tensor(0);
  if (is_complex(self.scalar_type()) && !self.is_conj()) {  // half of the variance in either part
    at::view_as_real(self).normal_(call[1].toDouble(), call[2].toDouble() * M_SQRT1_2, call.generator(3));
    return call.give(self);
  }
  if (!is_real(self.scalar_type())) return false;
  const double mean = call[1].toDouble(), deviation = call[2].toDouble();
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  if (self.scalar_type() == at::kDouble) {
    if (self.numel() == 0) return call.give(self);
    // Box and Muller, "A note on the generation of random normal deviates", 1958
    const at::Tensor radius = at::sqrt(-2 * at::log1p(-wide_uniform(call, self, 3)));
    self.copy_(radius * at::cos(wide_uniform(call, self, 3) * (2 * M_PI)) * deviation + mean);
    return call.give(self);
  }
  return fill(call, self, self.scalar_type(), float_counters(self.numel()), 3, [&](auto seed, auto offset, auto out) {
    return rdna_op_random_normal(stream_of(self), seed, offset, static_cast<float>(mean), static_cast<float>(deviation),
                                 out);
  });
}

bool exponential(Call &call) {  // self, lambd, generator
  const at::Tensor self = call.tensor(0);
  const double rate = call[1].toDouble();
  if (!is_real(self.scalar_type()) || !(rate > 0) || !std::isfinite(rate)) return false;
  if (self.scalar_type() == at::kDouble) {
    if (self.numel() == 0) return call.give(self);
    const at::Tensor value = at::log1p(-wide_uniform(call, self, 2)) / -rate;
    self.copy_(at::clamp_min(value, std::numeric_limits<double>::min()));  // never 0
    return call.give(self);
  }
  return fill(call, self, self.scalar_type(), float_counters(self.numel()), 2, [&](auto seed, auto offset, auto out) {
    return rdna_op_random_exponential(stream_of(self), seed, offset, static_cast<float>(rate), out);
  });
}

bool bernoulli(Call &call) {  // self, p, generator
  const at::Tensor self = call.tensor(0);
  const double p = call[1].toDouble();
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (!has_dtype(self.scalar_type())) return false;
  const at::ScalarType type = is_float(self.scalar_type()) ? self.scalar_type() : at::kFloat;
  return fill(call, self, type, float_counters(self.numel()), 2, [&](auto seed, auto offset, auto out) {
    return rdna_op_random_bernoulli(stream_of(self), seed, offset, static_cast<float>(p), out);
  });
}

// The largest whole number up to |v| that a floating type of |digits| bits has.
int64_t whole_up_to(int64_t v, int digits) {
  int extra = 0;
  while (v >> extra > int64_t{1} << digits || v >> extra < -(int64_t{1} << digits)) extra++;
  return v >> extra << extra;
}

// [low, high) in any type, floats included.
bool integers(Call &call, const at::Tensor &self, int64_t low, int64_t high, size_t generator) {
  if (!has_dtype(self.scalar_type())) return false;
  TORCH_CHECK(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  at::native::templates::check_from_to_in_range(low, high - 1, self.dtype());
  if (is_real(self.scalar_type())) {  // the ends are values of the type, so that rounding does not pass them
    const int digits = self.scalar_type() == at::kDouble  ? 53
                       : self.scalar_type() == at::kFloat ? 24
                       : self.scalar_type() == at::kHalf  ? 11
                                                          : 8;
    const int64_t from = low, to = high;
    if (low != std::numeric_limits<int64_t>::min()) low = -whole_up_to(-low, digits);
    high = whole_up_to(high - 1, digits) + 1;
    TORCH_CHECK(low < high, "random_: ", self.scalar_type(), " has no whole number from ", from, " to ", to - 1);
  }
  const at::ScalarType type = self.scalar_type() == at::kInt ? at::kInt : at::kLong;
  return fill(call, self, type, integer_counters(self.numel()), generator, [&](auto seed, auto offset, auto out) {
    return rdna_op_random_integers(stream_of(self), seed, offset, low, high, out);
  });
}

// One past the largest whole number below which the type has all of them; for i64 the last of them is left out.
int64_t limit(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return (1 << 24) + 1;
    case at::kHalf:
      return (1 << 11) + 1;
    case at::kBFloat16:
      return (1 << 8) + 1;
    case at::kDouble:
      return (1ll << 53) + 1;
    case at::kChar:
      return 1 << 7;
    case at::kByte:
      return 1 << 8;
    case at::kShort:
      return 1 << 15;
    case at::kInt:
      return 1ll << 31;
    case at::kBool:
      return 2;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

bool random(Call &call) {  // self, generator
  return integers(call, call.tensor(0), 0, limit(call.tensor(0).scalar_type()), 1);
}
bool random_to(Call &call) {  // self, to, generator
  return integers(call, call.tensor(0), 0, call.integer(1), 2);
}
bool random_from(Call &call) {  // self, from, to?, generator
  return integers(call, call.tensor(0), call.integer(1),
                  call.none(2) ? limit(call.tensor(0).scalar_type()) : call.integer(2), 3);
}

bool permutation(Call &call) {  // n, generator, out
  const int64_t n = call.integer(0);
  const at::Tensor out = call.tensor(2);
  const at::ScalarType type = out.scalar_type();
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  if (type != at::kLong && type != at::kInt) return false;
  out.resize_({n});
  if (n == 0) return call.give(out);
  return fill(call, out, type, integer_counters(n), 1, [&](auto seed, auto offset, auto t) {
    return rdna_op_random_permutation(stream_of(out), seed, offset, t);
  });
}

bool dropout(Call &call) {  // input, p, train?
  const at::Tensor x = call.tensor(0);
  const double p = call[1].toDouble();
  if (!is_real(x.scalar_type()) || !describable(x)) return false;
  const bool train = call.none(2) || call.flag(2);
  const at::Tensor in = x.contiguous(), y = make(x.sizes(), x.scalar_type(), x), mask = make(x.sizes(), at::kBool, x);
  if (!train || p == 0) {
    y.copy_(in);
    mask.fill_(true);
  } else if (p == 1) {
    y.zero_();
    mask.zero_();
  } else if (x.scalar_type() == at::kDouble) {
    mask.bernoulli_(1 - p);
    y.copy_(in * mask / (1 - p));
  } else if (x.numel()) {
    const Draw d = draw(std::nullopt, x.device().index(), float_counters(x.numel()));
    const rdna_tensor from = describe(in), to = describe(y), kept = describe(mask);
    check(rdna_op_dropout(stream_of(x), d.seed, d.offset, static_cast<float>(p), &from, &to, &kept));
  }
  return call.give({y, mask});
}

// Older forms: |p| is the share that stays, the mask of bytes.
bool dropout_of_share(Call &call) {  // self, p, generator?
  const at::Tensor x = call.tensor(0);
  const double kept = call.real(1);
  if (!is_real(x.scalar_type())) return false;
  const at::Tensor mask = at::empty(x.sizes(), x.options().dtype(at::kByte)).bernoulli_(kept, call.generator(2));
  return call.give({kept == 0 ? at::zeros_like(x) : x * mask / kept, mask});
}
bool masked_scale(Call &call) {  // self, mask, scale
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return false;
  return call.give(x * call.tensor(1) * call.real(2));
}

bool dropout_backward(Call &call) {  // grad_output, mask, scale
  const at::Tensor grad = call.tensor(0), mask = call.tensor(1);
  const double scale = call[2].toDouble();
  if (!is_real(grad.scalar_type()) || mask.scalar_type() != at::kBool || !describable(grad)) return false;
  if (scale < 1 || grad.scalar_type() == at::kDouble)
    return call.give(at::mul(at::mul(grad, mask), scale));  // 0 where everything was dropped
  const at::Tensor dy = grad.contiguous(), kept = mask.contiguous(), dx = make(grad.sizes(), grad.scalar_type(), grad);
  if (grad.numel()) {
    const rdna_tensor from = describe(dy), m = describe(kept), to = describe(dx);
    check(rdna_op_dropout_backward(stream_of(grad), static_cast<float>(1 - 1 / scale), &from, &m, &to));
  }
  return call.give(dx);
}

const Single singles[] = {
    {"uniform_", uniform},
    {"normal_", normal},
    {"exponential_", exponential},
    {"bernoulli_.float", bernoulli},
    {"random_", random},
    {"random_.to", random_to},
    {"random_.from", random_from},
    {"randperm.generator_out", permutation},
    {"_fused_dropout", dropout_of_share},
    {"_masked_scale", masked_scale},
    {"native_dropout", dropout},
    {"native_dropout_backward", dropout_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
