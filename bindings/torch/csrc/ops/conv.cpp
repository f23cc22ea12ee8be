// Convolutions and transposed convolutions, forward and backward.
#include <ATen/ops/empty.h>

#include "native.h"
#include "rdna/op/conv.h"
#include "rdna/op/reduce_dims.h"

namespace rdna_torch {
namespace {

// The arguments that both directions share, from place |first| on: stride, padding, dilation, transposed,
// output_padding, groups.
struct Geometry {
  rdna_convolution conv{};
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
      // what a transposed convolution adds at the end is read only by less padding there
      conv.after[i] = at(padding, i) - (transposed ? at(extra, i) : 0);
      conv.dilation[i] = at(dilation, i);
    }
    conv.groups = call.integer(first + 5);
  }

  bool expressible() const {
    for (int i = 0; i < conv.dims; i++)
      if (conv.after[i] < 0) return false;
    return true;
  }

  std::vector<int64_t> output(const at::Tensor &x, const at::Tensor &w) const {
    std::vector<int64_t> shape{x.size(0), transposed ? w.size(1) * conv.groups : w.size(0)};
    for (int i = 0; i < conv.dims; i++) {
      const int64_t reach = conv.dilation[i] * (w.size(2 + i) - 1) + 1;
      const int64_t pad = conv.before[i] + conv.after[i];
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

// torch's layer makes the checks that need words of its own before it comes here. A non-batched input has got its batch.
bool forward(Call &call) {  // input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups
  const at::Tensor x = call.tensor(0), w = call.tensor(1), b = call.tensor(2);
  const int64_t spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3 || !same_type({x, w, b})) return false;
  const Geometry g(call, 3, spatial);
  if (!g.expressible()) return false;
  const std::vector<int64_t> shape = g.output(x, w);
  for (int64_t n : shape) TORCH_CHECK(n >= 0, "Given input size per channel: ", x.sizes().slice(2), ". Calculated output size is negative");
  const at::Tensor y = result(shape, x);
  const at::Tensor bias = b.defined() ? b.contiguous() : b;
  const rdna_tensor in = describe(x), weight = describe(w), out = describe(y);
  check(g.transposed ? rdna_op_conv_backward_data(stream_of(x), &g.conv, &in, &weight, Operand(bias), &out)
                     : rdna_op_conv(stream_of(x), &g.conv, &in, &weight, Operand(bias), &out));
  return call.give(y);
}

// grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask
bool backward(Call &call) {
  const at::Tensor dy = call.tensor(0), x = call.tensor(1), w = call.tensor(2);
  const int64_t spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3 || !same_type({dy, x, w})) return false;
  const Geometry g(call, 3, spatial);
  if (!g.expressible()) return false;
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
