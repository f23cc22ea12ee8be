// Convolutions and transposed convolutions, forward and backward.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <array>
#include <optional>

#include "native.h"
#include "rdna/op/conv.h"
#include "rdna/op/reduce.h"

namespace rdna_torch {
namespace {

// The arguments that both directions share, from place |first| on: stride, padding, dilation, transposed,
// output_padding, groups.
struct Geometry {
  rdna_convolution conv{RDNA_CONVOLUTION_INIT};
  int64_t over[3] = {};
  bool transposed;

  Geometry(const Call &call, size_t first, int64_t spatial) : transposed(call.flag(first + 3)) {
    const std::vector<int64_t> stride = call.integers(first), padding = call.integers(first + 1),
                               dilation = call.integers(first + 2), extra = call.integers(first + 4);
    auto at = [](const std::vector<int64_t> &v, int64_t i) {  // one number stands for all
      return v.empty() ? 0 : v[v.size() == 1 ? 0 : static_cast<size_t>(i)];
    };
    conv.spatial_dims = static_cast<int>(spatial);
    for (int64_t i = 0; i < spatial && i < 3; i++) {
      conv.stride[i] = at(stride, i);
      conv.pad_before[i] = at(padding, i);
      // What a transposed convolution adds at its end is less padding there. Beyond none, the last values are those
      // that no window reaches, which the sizes themselves say.
      conv.pad_after[i] = at(padding, i) - (transposed ? at(extra, i) : 0);
      over[i] = conv.pad_after[i] < 0 ? -conv.pad_after[i] : 0;
      conv.pad_after[i] += over[i];
      conv.dilation[i] = at(dilation, i);
    }
    conv.groups = call.integer(first + 5);
  }

  bool expressible() const {
    for (int i = 0; i < conv.spatial_dims; i++)
      if (over[i] >= conv.stride[i]) return false;
    return true;
  }

  std::vector<int64_t> output(const at::Tensor &x, const at::Tensor &w) const {
    std::vector<int64_t> shape{x.size(0), transposed ? w.size(1) * conv.groups : w.size(0)};
    for (int i = 0; i < conv.spatial_dims; i++) {
      const int64_t reach = conv.dilation[i] * (w.size(2 + i) - 1) + 1;
      const int64_t pad = conv.pad_before[i] + conv.pad_after[i] - over[i];
      shape.push_back(transposed ? (x.size(2 + i) - 1) * conv.stride[i] + reach - pad
                                 : (x.size(2 + i) + pad - reach) / conv.stride[i] + 1);
    }
    return shape;
  }
};

// In f64, for which librdna has no convolution: a product for each place of the window, over all outputs at once.
class Wide {
 public:
  Wide(const rdna_convolution &conv, const at::Tensor &w, at::IntArrayRef outputs) : conv_(conv), w_(w) {
    for (int i = 0; i < conv.spatial_dims; i++) {
      TORCH_CHECK(w.size(2 + i) > 0, "kernel size should be greater than zero, but got ", w.sizes().slice(2));
      TORCH_CHECK(conv.dilation[i] > 0, "dilation should be greater than zero, but got ", conv.dilation[i]);
      outputs_.push_back(outputs[static_cast<size_t>(2 + i)]);
      places_ *= w.size(2 + i);
    }
  }

  void forward(const at::Tensor &x, const at::Tensor &y) const {
    const at::Tensor in = padded(x);
    at::Tensor sum = at::zeros(grouped_shape(y), y.options());
    for (int64_t k = 0; k < places_; k++) sum += at::matmul(weight(k), grouped(window(in, k)));
    y.copy_(sum.view(y.sizes()));
  }
  void data(const at::Tensor &dy, const at::Tensor &dx) const {
    const at::Tensor grad = grouped(dy), all = at::zeros(padded_shape(dx), dx.options());
    for (int64_t k = 0; k < places_; k++) {
      const at::Tensor part = window(all, k);
      part.add_(at::matmul(weight(k).transpose(1, 2), grad).view(part.sizes()));
    }
    dx.copy_(inside(all, dx));
  }
  void of_weight(const at::Tensor &dy, const at::Tensor &x, const at::Tensor &dw) const {
    const at::Tensor grad = grouped(dy), in = padded(x);
    at::Tensor all = at::empty({places_, w_.size(0), w_.size(1)}, dw.options());
    for (int64_t k = 0; k < places_; k++)
      all[k].copy_(at::matmul(grad, grouped(window(in, k)).transpose(2, 3)).sum(0).view({w_.size(0), w_.size(1)}));
    dw.copy_(all.permute({1, 2, 0}).reshape(dw.sizes()));
  }

 private:
  const rdna_convolution &conv_;
  const at::Tensor &w_;  // (channels out, channels in of a group, window…)
  std::vector<int64_t> outputs_;
  int64_t places_ = 1;

  // (n, groups, channels of one, values)
  std::vector<int64_t> grouped_shape(const at::Tensor &t) const {
    return {t.size(0), conv_.groups, t.size(1) / conv_.groups, c10::multiply_integers(outputs_)};
  }
  at::Tensor grouped(const at::Tensor &t) const { return t.reshape(grouped_shape(t)); }
  // (groups, channels out of one, channels in)
  at::Tensor weight(int64_t k) const {
    return w_.reshape({w_.size(0), w_.size(1), places_})
        .select(2, k)
        .reshape({conv_.groups, w_.size(0) / conv_.groups, w_.size(1)});
  }
  std::vector<int64_t> padded_shape(const at::Tensor &t) const {
    std::vector<int64_t> shape = t.sizes().vec();
    for (size_t i = 0; i < outputs_.size(); i++) shape[2 + i] += conv_.pad_before[i] + conv_.pad_after[i];
    return shape;
  }
  at::Tensor inside(at::Tensor all, const at::Tensor &t) const {
    for (int i = 0; i < conv_.spatial_dims; i++) all = all.narrow(2 + i, conv_.pad_before[i], t.size(2 + i));
    return all;
  }
  at::Tensor padded(const at::Tensor &t) const {
    const at::Tensor all = at::zeros(padded_shape(t), t.options());
    inside(all, t).copy_(t);
    return all;
  }
  // What place |k| of the window sees, a value for each output.
  at::Tensor window(at::Tensor t, int64_t k) const {
    for (int i = conv_.spatial_dims; i-- > 0; k /= w_.size(2 + i)) {
      const int64_t first = k % w_.size(2 + i) * conv_.dilation[i];
      t = t.slice(2 + i, first, first + (outputs_[static_cast<size_t>(i)] - 1) * conv_.stride[i] + 1, conv_.stride[i]);
    }
    return t;
  }
};

bool same_type(std::initializer_list<at::Tensor> tensors) {
  const at::ScalarType type = tensors.begin()->scalar_type();
  for (const at::Tensor &t : tensors)
    if (t.defined() && (t.scalar_type() != type || t.device() != tensors.begin()->device())) return false;
  return is_real(type);
}

// A result that lies as |like| does: channels-last stays channels-last.
at::Tensor result(at::IntArrayRef shape, const at::Tensor &like) {
  return at::empty(shape, like.options(), like.suggest_memory_format());
}

// PyTorch has no CPU kernel under these two names, only one that throws: falling back is calling what it has.
at::Tensor cpu(const at::Tensor &t) { return t.defined() ? t.cpu() : t; }

bool forward_on_cpu(Call &call) {
  const at::Tensor x = call.tensor(0), b = call.tensor(2);
  count_fallback("aten::convolution_overrideable");
  const at::Tensor y = at::convolution(
      cpu(x), cpu(call.tensor(1)), b.defined() ? std::make_optional(cpu(b)) : std::nullopt, call.integers(3),
      call.integers(4), call.integers(5), call.flag(6), call.integers(7), call.integer(8));
  return call.give(y.to(x.device()));
}

bool backward_on_cpu(Call &call) {
  const at::Tensor x = call.tensor(1);
  count_fallback("aten::convolution_backward_overrideable");
  const c10::List<bool> wanted = call[9].toBoolList();
  const std::vector<int64_t> bias{call.tensor(0).size(1)};
  auto [dx, dw, db] =
      at::convolution_backward(cpu(call.tensor(0)), cpu(x), cpu(call.tensor(2)), bias, call.integers(3),
                               call.integers(4), call.integers(5), call.flag(6), call.integers(7), call.integer(8),
                               std::array<bool, 3>{wanted.get(0), wanted.get(1), wanted.get(2)});
  auto home = [&](const at::Tensor &t) { return t.defined() ? t.to(x.device()) : t; };
  return call.give({home(dx), home(dw), home(db)});
}

// torch's layer makes the checks that need words of its own before it comes here. A non-batched input has got its
// batch. Without a |y| the values are not for librdna.
at::Tensor convolve(Call &call, rdna_activation activation) {
  const at::Tensor x = call.tensor(0), w = call.tensor(1), b = call.tensor(2);
  const int64_t spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3 || !same_type({x, w, b})) return {};
  const Geometry g(call, 3, spatial);
  const bool wide = x.scalar_type() == at::kDouble;
  if (!g.expressible() || ((g.transposed || wide) && activation != RDNA_ACTIVATION_NONE)) return {};
  const std::vector<int64_t> shape = g.output(x, w);
  for (int64_t n : shape)
    TORCH_CHECK(n >= 0, "Given input size per channel: ", x.sizes().slice(2), ". Calculated output size is negative");
  const at::Tensor y = result(shape, x);
  if (wide) {
    if (y.numel() == 0) return y;
    if (g.transposed)
      Wide(g.conv, w, x.sizes()).data(x, y);
    else
      Wide(g.conv, w, shape).forward(x, y);
    if (b.defined()) {
      std::vector<int64_t> across(static_cast<size_t>(spatial) + 1, 1);
      across[0] = b.numel();
      y.add_(b.reshape(across));
    }
    return y;
  }
  const at::Tensor bias = b.defined() ? b.contiguous() : b;
  const rdna_tensor in = describe(x), weight = describe(w), out = describe(y);
  rdna_stream *stream = stream_of(x);
  check(g.transposed ? rdna_op_conv_backward_data(stream, &g.conv, &in, &weight, Operand(bias), &out)
                     : rdna_op_conv_activate(stream, &g.conv, &in, &weight, Operand(bias), activation, &out));
  return y;
}

bool forward(Call &call) {  // input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups
  const at::Tensor y = convolve(call, RDNA_ACTIVATION_NONE);
  return y.defined() ? call.give(y) : forward_on_cpu(call);
}

bool activated(Call &call) {  // the same, activation
  const at::Tensor y = convolve(call, static_cast<rdna_activation>(call.integer(9)));
  TORCH_CHECK(y.defined(), "rdna::convolution takes 1 to 3 spatial dimensions, one floating type and no transposition");
  return call.give(y);
}

// grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask
bool backward(Call &call) {
  const at::Tensor dy = call.tensor(0), x = call.tensor(1), w = call.tensor(2);
  const int64_t spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3 || !same_type({dy, x, w})) return backward_on_cpu(call);
  const Geometry g(call, 3, spatial);
  if (!g.expressible()) return backward_on_cpu(call);
  const c10::List<bool> wanted = call[9].toBoolList();
  at::Tensor dx, dw, db;
  if (x.scalar_type() == at::kDouble) {
    if (dy.numel() == 0 || x.numel() == 0) return backward_on_cpu(call);
    const Wide of(g.conv, w, g.transposed ? x.sizes() : dy.sizes());
    if (wanted.get(0)) {
      dx = result(x.sizes(), x);
      if (g.transposed)
        of.forward(dy, dx);
      else
        of.data(dy, dx);
    }
    if (wanted.get(1)) {
      dw = result(w.sizes(), w);
      if (g.transposed)
        of.of_weight(x, dy, dw);
      else
        of.of_weight(dy, x, dw);
    }
    if (wanted.get(2)) db = dy.transpose(0, 1).reshape({dy.size(1), -1}).sum(1);
    return call.give({dx, dw, db});
  }
  const rdna_tensor grad = describe(dy), in = describe(x), weight = describe(w);
  rdna_stream *stream = stream_of(x);
  if (wanted.get(0)) {
    dx = result(x.sizes(), x);
    const rdna_tensor out = describe(dx);
    check(g.transposed ? rdna_op_conv(stream, &g.conv, &grad, &weight, nullptr, &out)
                       : rdna_op_conv_backward_data(stream, &g.conv, &grad, &weight, nullptr, &out));
  }
  if (wanted.get(1)) {
    dw = result(w.sizes(), w);
    const rdna_tensor out = describe(dw);
    check(g.transposed ? rdna_op_conv_backward_weight(stream, &g.conv, &in, &grad, &out)
                       : rdna_op_conv_backward_weight(stream, &g.conv, &grad, &in, &out));
  }
  if (wanted.get(2)) {
    db = make({dy.size(1)}, dy.scalar_type(), dy);
    const rdna_tensor out = describe(db);
    const uint32_t all = (1u << dy.dim()) - 1;
    check(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &grad, all & ~2u, 0, &out));
  }
  return call.give({dx, dw, db});
}

const Single singles[] = {
    {"convolution_overrideable", forward},
    {"convolution_backward_overrideable", backward},
};

const Single fused[] = {{"convolution", activated}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }
TORCH_LIBRARY_IMPL(rdna, PrivateUse1, m) { add(m, fused); }

}  // namespace
}  // namespace rdna_torch
