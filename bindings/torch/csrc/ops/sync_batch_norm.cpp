// What torch.nn.SyncBatchNorm is made of: batch norm whose statistics are those of several processes. Statistics are
// f32, or f64 for f64; torch.nn.modules._functions calls these in turn and communicates between them.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

// All dimensions but that of the channels.
std::vector<int64_t> others(const at::Tensor &x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.dim(); d++)
    if (d != 1) dims.push_back(d);
  return dims;
}

// A value a channel, so that it broadcasts over |x|.
at::Tensor spread(const at::Tensor &value, const at::Tensor &x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = -1;
  return wide(value).reshape(shape);
}

bool takes(const at::Tensor &x) { return is_real(x.scalar_type()) && x.dim() >= 2 && describable(x); }

bool stats(Call &call) {  // input, eps
  const at::Tensor x = call.tensor(0);
  if (!takes(x)) return false;
  const auto [variance, mean] = at::var_mean(wide(x), others(x), /*correction=*/at::Scalar(0), /*keepdim=*/false);
  return call.give({mean, at::rsqrt(variance + call[1].toDouble())});
}

// Mean and variance of all from those of parts (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
// for computing sample variances", 1979).
bool gather_stats(Call &call) {  // input, mean, invstd, running_mean?, running_var?, momentum, eps, counts
  const at::Tensor x = call.tensor(0), running_mean = call.tensor(3), running_var = call.tensor(4);
  if (!takes(x)) return false;
  const at::Tensor means = wide(call.tensor(1)), scales = wide(call.tensor(2));  // (parts, channels)
  const at::Tensor counts = call.tensor(7).to(means.scalar_type()).reshape({-1, 1});
  const double momentum = call[5].toDouble(), eps = call[6].toDouble();
  const at::Tensor count = counts.sum(), mean = (means * counts).sum(at::IntArrayRef{0}) / count;
  const at::Tensor apart = means - mean;
  const at::Tensor squares = ((1 / (scales * scales) - eps + apart * apart) * counts).sum(at::IntArrayRef{0});
  if (running_mean.defined()) running_mean.copy_(wide(running_mean) * (1 - momentum) + mean * momentum);
  if (running_var.defined()) running_var.copy_(wide(running_var) * (1 - momentum) + squares / (count - 1) * momentum);
  return call.give({mean, at::rsqrt(squares / count + eps)});
}

bool normalize(Call &call) {  // input, weight?, bias?, mean, invstd, eps, [out!]
  const at::Tensor x = call.tensor(0), weight = call.tensor(1), bias = call.tensor(2);
  if (!takes(x)) return false;
  at::Tensor scale = spread(call.tensor(4), x);
  if (weight.defined()) scale = scale * spread(weight, x);
  at::Tensor y = (wide(x) - spread(call.tensor(3), x)) * scale;
  if (bias.defined()) y = y + spread(bias, x);
  y = y.to(x.scalar_type());
  return give_or_write(call, y);
}

bool reduce_gradient(Call &call) {  // grad_out, input, mean, invstd, weight?, input_g, weight_g, bias_g
  const at::Tensor x = call.tensor(1), weight = call.tensor(4);
  if (!takes(x)) return false;
  const at::Tensor dy = wide(call.tensor(0)), sum = dy.sum(others(x));
  const at::Tensor sum_apart = (dy * (wide(x) - spread(call.tensor(2), x))).sum(others(x));
  at::Tensor d_weight, d_bias;
  if (weight.defined() && call.flag(6)) d_weight = (sum_apart * wide(call.tensor(3))).to(weight.scalar_type());
  if (weight.defined() && call.flag(7)) d_bias = sum.to(weight.scalar_type());
  return call.give({sum, sum_apart, d_weight, d_bias});
}

bool spread_gradient(Call &call) {  // grad_out, input, mean, invstd, weight?, sum_dy, sum_dy_xmu, count
  const at::Tensor x = call.tensor(1), weight = call.tensor(4);
  if (!takes(x)) return false;
  const at::Tensor scale = spread(call.tensor(3), x);
  const at::Tensor count = wide(call.tensor(7).sum());
  const at::Tensor mean_dy = spread(call.tensor(5), x) / count, mean_apart = spread(call.tensor(6), x) / count;
  at::Tensor dx =
      (wide(call.tensor(0)) - mean_dy - (wide(x) - spread(call.tensor(2), x)) * (scale * scale * mean_apart)) * scale;
  if (weight.defined()) dx = dx * spread(weight, x);
  return call.give(dx.to(x.scalar_type()));
}

const Single singles[] = {
    {"batch_norm_stats", stats},
    {"batch_norm_gather_stats_with_counts", gather_stats},
    {"batch_norm_elemt", normalize},
    {"batch_norm_elemt.out", normalize},
    {"batch_norm_backward_reduce", reduce_gradient},
    {"batch_norm_backward_elemt", spread_gradient},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
