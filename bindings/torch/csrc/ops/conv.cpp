// Convolutions and transposed convolutions, forward and backward.
#include <ATen/Functions.h>

#include <array>
#include <optional>

#include "native.h"
#include "rdna/op/conv.h"
#include "rdna/op/reduce_dims.h"

namespace rdna_torch {
namespace {

// The arguments that both directions share, from place |first| on: stride, padding, dilation, transposed,
// output_padding, groups.
struct Geometry {
  rdna_convolution conv{};
  int64_t over[3] = {};
  bool transposed;

  Geometry(const Call &call, size_t first, int64_t spatial) : transposed(call.flag(first + 3)) {
    const std::vector<int64_t> stride = call.integers(first), padding = call.integers(first + 1),
                               dilation = call.integers(first + 2), extra = call.integers(first + 4);
    auto at = [](const std::vector<int64_t> &v, int64_t i) {  // one number stands for all
      return v.empty() ? 0 : v[v.size() == 1 ? 0 : static_cast<size_t>(i)];
    };
    conv.dims = static_cast<int>(spatial);
    for (int64_t i = 0; i < spatial && i < 3; i++) {
      conv.stride[i] = at(stride, i);
      conv.before[i] = at(padding, i);
      // What a transposed convolution adds at its end is less padding there. Beyond none, the last values are those
      // that no window reaches, which the sizes themselves say.
      conv.after[i] = at(padding, i) - (transposed ? at(extra, i) : 0);
      over[i] = conv.after[i] < 0 ? -conv.after[i] : 0;
      conv.after[i] += over[i];
      conv.dilation[i] = at(dilation, i);
    }
    conv.groups = call.integer(first + 5);
  }

  bool expressible() const {
    for (int i = 0; i < conv.dims; i++)
      if (over[i] >= conv.stride[i]) return false;
    return true;
  }

  std::vector<int64_t> output(const at::Tensor &x, const at::Tensor &w) const {
    std::vector<int64_t> shape{x.size(0), transposed ? w.size(1) * conv.groups : w.size(0)};
    for (int i = 0; i < conv.dims; i++) {
      const int64_t reach = conv.dilation[i] * (w.size(2 + i) - 1) + 1;
      const int64_t pad = conv.before[i] + conv.after[i] - over[i];
      shape.push_back(transposed ? (x.size(2 + i) - 1) * conv.stride[i] + reach - pad
                                 : (x.size(2 + i) + pad - reach) / conv.stride[i] + 1);
    }
    return shape;
  }
};

bool same_type(std::initializer_list<at::Tensor> tensors) {
  const at::ScalarType type = tensors.begin()->scalar_type();
  for (const at::Tensor &t : tensors)
    if (t.defined() && (t.scalar_type() != type || t.device() != tensors.begin()->device())) return false;
  return is_float(type);
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
  if (!g.expressible() || (g.transposed && activation != RDNA_ACTIVATION_NONE)) return {};
  const std::vector<int64_t> shape = g.output(x, w);
  for (int64_t n : shape)
    TORCH_CHECK(n >= 0, "Given input size per channel: ", x.sizes().slice(2), ". Calculated output size is negative");
  const at::Tensor y = result(shape, x);
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
    check(rdna_op_reduce(stream, RDNA_REDUCE_SUM, all & ~2u, 0, &grad, &out));
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
