// What training for weights and activations of 8 bits does in one operator: follow the range of values, choose the
// steps for it, and round the values to them. Switches are tensors on the device, which the host need not wait for.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "native.h"

namespace rdna_torch {
namespace {

// A scale, in f64, and a zero point, in whole steps, for each of the ranges.
struct Steps {
  at::Tensor scale, zero;
};

// |least| to |most| in steps hold |low| to |high|, and 0 exactly. |symmetric|: 0 is in the middle, where there are
// values of both signs. Scales below |SMALL|, which the inverse of a float would not bear, become it, and the range
// with them.
Steps choose(const at::Tensor &low, const at::Tensor &high, int64_t least, int64_t most, bool symmetric) {
  constexpr double SMALL = 6.1e-5;
  const double count = static_cast<double>(most - least), bottom = static_cast<double>(least),
               top = static_cast<double>(most);
  at::Tensor from = at::clamp_max(low, 0), to = at::clamp_min(high, 0);
  const at::Tensor middle = at::logical_and(from.lt(0), to.gt(0));
  if (symmetric) {
    const int64_t half = (most - least) / 2;
    const at::Tensor size = at::maximum(from.div(-(half + 1)), to.div(half));
    from = at::where(middle, size.mul(-(half + 1)), from), to = at::where(middle, size.mul(half), to);
  }
  from = from.to(at::kDouble), to = to.to(at::kDouble);
  at::Tensor scale = to.sub(from).div_(count);
  const at::Tensor rounded = scale.to(at::kFloat);
  scale = at::where(at::logical_or(rounded.eq(0), at::isinf(at::reciprocal(rounded))),
                    at::full({}, 0.1, scale.options()), scale);
  const at::Tensor little = scale.lt(SMALL), larger = at::reciprocal(scale).mul_(SMALL), none_below = from.eq(0),
                   none_above = to.eq(0);
  const at::Tensor all = at::full({}, SMALL * count, scale.options());
  const at::Tensor wide_to = at::where(none_below, all, at::where(none_above, to, to.mul(larger)));
  const at::Tensor wide_from = at::where(none_below, from, at::where(none_above, all.neg(), from.mul(larger)));
  from = at::where(little, wide_from, from), to = at::where(little, wide_to, to);
  scale = at::clamp_min(scale, SMALL);
  // of the two ends the one that loses fewer digits says where 0 is
  const at::Tensor below = from.div(scale), above = to.div(scale);
  at::Tensor zero = at::where(below.abs().neg_().add_(std::abs(bottom)).lt(above.abs().neg_().add_(std::abs(top))),
                              below.neg().add_(bottom), above.neg().add_(top));
  if (symmetric) zero = at::where(middle, at::full({}, static_cast<double>(least + most) / 2, zero.options()), zero);
  return {scale, at::round(zero).clamp_(least, most)};
}

// self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
// ch_axis, per_row_fake_quant, symmetric_quant
bool follow_and_round(Call &call) {
  const at::Tensor x = call.tensor(0), low = call.tensor(3), high = call.tensor(4), scale = call.tensor(5),
                   zero = call.tensor(6);
  const int64_t least = call.integer(8), most = call.integer(9), axis = call.integer(10);
  const bool by_rows = call.flag(11);
  if (x.scalar_type() != at::kFloat || low.scalar_type() != at::kFloat || x.numel() == 0) return false;
  TORCH_CHECK(!by_rows || axis == 0,
              "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0");
  const at::Tensor watched = call.tensor(1).reshape({-1}).select(0, 0).ne(0),
                   rounds = call.tensor(2).reshape({-1}).select(0, 0).ne(0);
  if (by_rows && low.numel() == 0) {
    if (!watched.item().toBool()) return false;
    low.resize_({x.size(0)}).fill_(std::numeric_limits<double>::infinity());
    high.resize_({x.size(0)}).fill_(-std::numeric_limits<double>::infinity());
    scale.resize_({x.size(0)}), zero.resize_({x.size(0)});
  }
  const at::Tensor rows = by_rows ? x.reshape({x.size(0), -1}) : x.reshape({1, -1});
  const auto [least_now, most_now] = at::aminmax(rows, 1);
  const auto follow = [&](const at::Tensor &running, const at::Tensor &now) {
    const at::Tensor value = now.view(running.sizes());
    const at::Tensor next = at::where(at::isinf(running), value, value.sub(running).mul_(call.real(7)).add_(running));
    running.copy_(at::where(watched, next, running));
  };
  follow(low, least_now), follow(high, most_now);
  const Steps steps = choose(low, high, least, most, call.flag(12));
  scale.copy_(at::where(rounds, steps.scale.view(scale.sizes()), scale.to(at::kDouble)));
  zero.copy_(at::where(rounds, steps.zero.view(zero.sizes()), zero.to(at::kDouble)));
  const auto [value, mask] = by_rows ? at::fake_quantize_per_channel_affine_cachemask(x, scale, zero, axis, least, most)
                                     : at::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
                                           x, scale, zero, call.tensor(2), least, most);
  if (!by_rows) return call.give({value, mask});
  return call.give({at::where(rounds, value, x), at::logical_or(mask, at::logical_not(rounds))});
}

const Single singles[] = {{"_fused_moving_avg_obs_fq_helper", follow_and_round}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
