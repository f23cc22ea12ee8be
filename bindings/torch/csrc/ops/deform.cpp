// torchvision's deformable convolution: what a window sees lies at its places and offsets from them, between pixels.
//
//     columns   (n, channels, window, outputs): the image sampled at the places, times the mask
//     out       weights x columns, one product for each sample and group
//
// Backward the columns are sampled again. Samples are taken in pieces, so that the columns of one fit into PIECE
// values. Offsets belong to groups of channels: the image is seen as (n * offset groups, channels of one, height,
// width). Places are f32 beside f16 and bf16, which do not hold a quarter of a pixel from 512 and from 64 on.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "native.h"
#include "rdna/op/sample.h"

namespace rdna_torch {
namespace {

constexpr int64_t PIECE = int64_t{1} << 24;  // about what a second-level cache holds

struct Deformed {
  at::Tensor x, w, offset, mask;  // mask: undefined without one
  // outputs: channels of the result; shared: groups of channels with offsets of their own
  int64_t n, channels, outputs, rows, columns, groups, shared;
  int64_t stride[2], pad[2], dilation[2], window[2];

  // The arguments that both directions share, from input on.
  Deformed(const Call &call, size_t first)
      : x(call.tensor(first)), w(call.tensor(first + 1)), offset(call.tensor(first + 2)) {
    if (call.flag(first + 13)) mask = call.tensor(first + 3);
    TORCH_CHECK(x.dim() == 4 && w.dim() == 4 && offset.dim() == 4 && (!mask.defined() || mask.dim() == 4),
                "deform_conv2d: input, weight, offset and mask have four dimensions, but have the shapes ", x.sizes(),
                ", ", w.sizes(), ", ", offset.sizes(), mask.defined() ? ", " : "",
                mask.defined() ? mask.sizes() : at::IntArrayRef{});
    for (size_t d = 0; d < 2; d++) {
      stride[d] = call.integer(first + 5 + d), pad[d] = call.integer(first + 7 + d);
      dilation[d] = call.integer(first + 9 + d), window[d] = w.size(static_cast<int64_t>(2 + d));
      TORCH_CHECK(stride[d] > 0 && pad[d] >= 0 && dilation[d] > 0 && window[d] > 0, "deform_conv2d: a window of ",
                  window[d], " with stride ", stride[d], ", padding ", pad[d], " and dilation ", dilation[d]);
    }
    groups = call.integer(first + 11), shared = call.integer(first + 12);
    n = x.size(0), channels = x.size(1), outputs = w.size(0);
    rows = size_of(0), columns = size_of(1);
    check_shapes();
  }

  bool takes() const {
    const at::ScalarType type = x.scalar_type();
    for (const at::Tensor &t : {w, offset, mask})
      TORCH_CHECK(!t.defined() || t.scalar_type() == type, "deform_conv2d: the input is ", type, " and another tensor ",
                  t.scalar_type(), "; all must have the same type");
    return is_real(type);
  }

  int64_t most_samples() const {
    const int64_t values = channels * places() * rows * columns;
    return std::max<int64_t>(1, PIECE / std::max<int64_t>(values, 1));
  }

  // (groups, channels out of one, channels in and places)
  at::Tensor factor() const { return w.reshape({groups, outputs / groups, w.size(1) * places()}); }

  // Where the window would look without offsets along a dimension, to be broadcast to places.
  at::Tensor window_places(int64_t dim, const at::TensorOptions &options) const {
    const size_t d = static_cast<size_t>(dim);
    const at::Tensor first = at::arange(d ? columns : rows, options).mul_(stride[d]).sub_(pad[d]);
    const at::Tensor inside = at::arange(window[d], options).mul_(dilation[d]);
    return d ? inside.view({-1, 1, 1}) + first : inside.view({-1, 1, 1, 1}) + first.view({-1, 1});
  }

  int64_t size_of(size_t d) const {
    const int64_t more = x.size(static_cast<int64_t>(2 + d)) + 2 * pad[d] - dilation[d] * (window[d] - 1) - 1;
    return more < 0 ? 0 : more / stride[d] + 1;
  }
  int64_t places() const { return window[0] * window[1]; }

  void check_shapes() const {
    TORCH_CHECK(groups > 0 && channels % groups == 0 && outputs % groups == 0 && w.size(1) * groups == channels,
                "deform_conv2d: ", groups, " groups of an input of shape ", x.sizes(), " and weights of shape ",
                w.sizes());
    TORCH_CHECK(rows > 0 && columns > 0, "deform_conv2d: an input of shape ", x.sizes(), " has ", rows, " x ", columns,
                " outputs");
    TORCH_CHECK(shared > 0 && channels % shared == 0, "deform_conv2d: ", shared, " groups of offsets for ", channels,
                " channels");
    auto check_map = [&](const char *name, const at::Tensor &t, int64_t each) {
      const std::vector<int64_t> want{n, shared * places() * each, rows, columns};
      TORCH_CHECK(t.sizes() == want, "deform_conv2d: ", name, " has the shape ", t.sizes(), "; it must be ", want);
    };
    check_map("the offset", offset, 2);
    if (mask.defined()) check_map("the mask", mask, 1);
  }
};

// One piece: samples |begin| to |begin| + |count|.
class Piece {
 public:
  Piece(const Deformed &all, int64_t begin, int64_t count)
      : all_(all),
        begin_(begin),
        count_(count),
        images_(part(all.x).reshape({count * all.shared, all.channels / all.shared, all.x.size(2), all.x.size(3)})),
        places_(new_places()) {
    const at::Tensor given = part(all.offset).reshape(places_.sizes());
    for (int64_t d = 0; d < 2; d++) {
      at::Tensor to = coordinate(places_, d);
      at::add_out(to, given.select(4, d), all.window_places(d, places_.options()));
    }
  }

  at::Tensor sampled() const {
    const at::Tensor out = make(sampled_shape(), images_.scalar_type(), images_);
    const rdna_tensor from = describe(images_), to = describe(out), at = describe(last(places_));
    check(rdna_op_sample(stream_of(out), RDNA_SAMPLE_MODE_LINEAR, RDNA_SAMPLE_PADDING_ZEROS, RDNA_SAMPLE_UNITS_NUMBERS,
                         &from, &at, &to));
    return out;
  }
  // Of what sampled() gave: dx and doffset of these samples.
  void backward(const at::Tensor &dsampled, const at::Tensor &dx, const at::Tensor &doffset) const {
    const at::Tensor dplaces = new_places(), dimages = part(dx).view(images_.sizes());
    const rdna_tensor from = describe(dsampled), image = describe(images_), at = describe(last(places_)),
                      to = describe(dimages), dat = describe(last(dplaces));
    check(rdna_op_sample_backward(stream_of(dx), RDNA_SAMPLE_MODE_LINEAR, RDNA_SAMPLE_PADDING_ZEROS,
                                  RDNA_SAMPLE_UNITS_NUMBERS, &from, &image, &at, &to, &dat));
    const at::Tensor given = part(doffset).view(dplaces.sizes());
    for (int64_t d = 0; d < 2; d++) given.select(4, d).copy_(coordinate(dplaces, d));
  }

  at::Tensor part(const at::Tensor &t) const { return t.narrow(0, begin_, count_); }
  // Of the mask or its gradient, with a dimension for the channels that share it.
  at::Tensor mask_part(const at::Tensor &t) const {
    return part(t).reshape({count_ * all_.shared, 1, all_.places(), all_.rows, all_.columns});
  }
  std::vector<int64_t> sampled_shape() const {
    return {count_ * all_.shared, all_.channels / all_.shared, all_.places(), all_.rows, all_.columns};
  }
  // (count, groups, channels of one and places, outputs of a channel)
  at::Tensor factor(const at::Tensor &columns) const {
    return columns.view({count_, all_.groups, all_.channels / all_.groups * all_.places(), all_.rows * all_.columns});
  }
  // (count, groups, channels out of one, outputs of a channel)
  at::Tensor grouped(const at::Tensor &out) const {
    return part(out).reshape({count_, all_.groups, all_.outputs / all_.groups, all_.rows * all_.columns});
  }

 private:
  const Deformed &all_;
  int64_t begin_, count_;
  at::Tensor images_, places_;  // places: (count, offset groups, window rows, window columns, 2, rows, columns)

  at::Tensor new_places() const {
    const at::ScalarType type = all_.x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return make({count_, all_.shared, all_.window[0], all_.window[1], 2, all_.rows, all_.columns}, type, all_.x);
  }
  // The grid of sampling has x before y, offsets y before x.
  static at::Tensor coordinate(const at::Tensor &places, int64_t d) { return places.select(4, 1 - d); }
  at::Tensor last(const at::Tensor &places) const {
    return places.view({count_ * all_.shared, all_.places(), 2, all_.rows, all_.columns}).permute({0, 1, 3, 4, 2});
  }
};

bool forward(Call &call) {  // input, weight, offset, mask, bias, stride, pad, dilation (2 each), groups, offset_groups,
                            // use_mask
  const Deformed of(call, 0);
  const at::Tensor bias = call.tensor(4);
  TORCH_CHECK(bias.numel() == of.outputs, "deform_conv2d: the bias has the shape ", bias.sizes(),
              "; it must be one for ", "each of ", of.outputs, " channels");
  if (!of.takes()) return false;
  const at::Tensor out = make({of.n, of.outputs, of.rows, of.columns}, of.x.scalar_type(), of.x), w = of.factor();
  const int64_t most = of.most_samples();
  for (int64_t begin = 0; begin < of.n; begin += most) {
    const Piece piece(of, begin, std::min(most, of.n - begin));
    const at::Tensor columns = piece.sampled();
    if (of.mask.defined()) columns.mul_(piece.mask_part(of.mask));
    piece.grouped(out).copy_(at::matmul(w, piece.factor(columns)));
  }
  out.add_(bias.reshape({1, of.outputs, 1, 1}));
  return call.give(out);
}

bool backward(Call &call) {  // grad, and the arguments of forward
  const Deformed of(call, 1);
  const at::Tensor grad = call.tensor(0), bias = call.tensor(5);
  TORCH_CHECK(grad.sizes() == at::IntArrayRef({of.n, of.outputs, of.rows, of.columns}),
              "_deform_conv2d_backward: the gradient has the shape ", grad.sizes());
  if (!of.takes()) return false;
  const at::Tensor w = of.factor(), dx = make(of.x.sizes(), of.x.scalar_type(), of.x), doffset = make_like(of.offset);
  const at::Tensor dmask = of.mask.defined() ? make_like(of.mask) : at::zeros_like(call.tensor(4));
  // Sums over samples, rounded to 16 bits once.
  const at::ScalarType wide = of.x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor dw = at::zeros(w.sizes(), w.options().dtype(wide));
  const int64_t most = of.most_samples();
  for (int64_t begin = 0; begin < of.n; begin += most) {
    const Piece piece(of, begin, std::min(most, of.n - begin));
    const at::Tensor dout = piece.grouped(grad), sampled = piece.sampled();
    const at::Tensor dcolumns = at::matmul(w.transpose(1, 2), dout).view(sampled.sizes());
    at::Tensor columns = sampled;
    if (of.mask.defined()) {
      const at::Tensor mask = piece.mask_part(of.mask);
      columns = sampled * mask;
      piece.mask_part(dmask).copy_(sampled.mul_(dcolumns).sum(1, true));
      dcolumns.mul_(mask);
    }
    dw.add_(at::matmul(dout, piece.factor(columns).transpose(2, 3)).sum(0, false, wide));
    piece.backward(dcolumns, dx, doffset);
  }
  const at::Tensor dbias = grad.sum({0, 2, 3});
  return call.give({dx, dw.view(of.w.sizes()).to(of.w.scalar_type()), doffset, dmask, dbias.to(bias.scalar_type())});
}

const Single singles[] = {{"deform_conv2d", forward}, {"_deform_conv2d_backward", backward}};

TORCH_LIBRARY_IMPL(torchvision, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
