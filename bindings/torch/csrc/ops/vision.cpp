// torchvision's operators on boxes. Their schemas and gradients are torchvision's, and come with it when a program
// imports it; the kernels are registered before, and wait for them.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>

#include "native.h"
#include "outside.h"
#include "rdna/op/vision.h"

namespace rdna_torch {
namespace {

bool nms(Call &call) {  // dets, scores, iou_threshold
  const at::Tensor boxes = call.tensor(0), scores = call.tensor(1);
  TORCH_CHECK(boxes.dim() == 2 && boxes.size(1) == 4, "nms: boxes are (n, 4), but have the shape ", boxes.sizes());
  TORCH_CHECK(scores.dim() == 1 && scores.size(0) == boxes.size(0), "nms: there is one score for each of ",
              boxes.size(0), " boxes, but scores have the shape ", scores.sizes());
  TORCH_CHECK(boxes.scalar_type() == scores.scalar_type(), "nms: boxes are ", boxes.scalar_type(), " and scores ",
              scores.scalar_type(), "; they must have the same type");
  if (!is_real(boxes.scalar_type())) return false;
  const at::Tensor kept = make({boxes.size(0)}, at::kLong, boxes), count = make({}, at::kLong, boxes);
  const rdna_tensor b = describe(boxes), s = describe(scores), k = describe(kept), c = describe(count);
  check(rdna_op_nms(stream_of(boxes), &b, &s, call.real(2), &k, &c));
  return call.give(kept.narrow(0, 0, count.item().toLong()));
}

struct Row {
  const char *name;
  rdna_roi_mode mode;
};

bool position_sensitive(const Row &row) {
  return row.mode == RDNA_ROI_MODE_PS_ALIGN || row.mode == RDNA_ROI_MODE_PS_MEAN;
}
bool sampled(const Row &row) { return row.mode == RDNA_ROI_MODE_ALIGN || row.mode == RDNA_ROI_MODE_PS_ALIGN; }

void check_rois(const Row &row, const at::Tensor &x, const at::Tensor &rois) {
  TORCH_CHECK(rois.dim() == 2 && rois.size(1) == 5, row.name, ": rois are (k, 5), but have the shape ", rois.sizes());
  TORCH_CHECK(x.scalar_type() == rois.scalar_type(), row.name, ": the input is ", x.scalar_type(), " and rois are ",
              rois.scalar_type(), "; they must have the same type");
}

bool forward(const Row &row, Call &call) {  // input, rois, spatial_scale, rows, columns, [sampling_ratio, [aligned]]
  const at::Tensor x = call.tensor(0), rois = call.tensor(1);
  const int64_t rows = call.integer(3), columns = call.integer(4);
  TORCH_CHECK(x.dim() == 4, row.name, ": the input is (n, channels, height, width), but has the shape ", x.sizes());
  TORCH_CHECK(rows >= 0 && columns >= 0, row.name, ": ", rows, " rows and ", columns, " columns of bins");
  check_rois(row, x, rois);
  if (!is_real(x.scalar_type())) return false;
  rdna_roi how{RDNA_ROI_INIT};
  how.mode = row.mode;
  how.scale = call.real(2);
  if (sampled(row)) how.grid = std::max<int64_t>(call.integer(5), 0);
  if (row.mode == RDNA_ROI_MODE_ALIGN) how.half_pixel = call.flag(6);
  int64_t channels = x.size(1);
  if (position_sensitive(row)) {
    TORCH_CHECK(rows * columns > 0 && channels % (rows * columns) == 0, row.name, ": ", channels,
                " channels, of which there must be as many for each of ", rows, " x ", columns, " bins");
    channels /= rows * columns;
  }
  const at::Tensor out = make({rois.size(0), channels, rows, columns}, x.scalar_type(), x);
  at::Tensor places;
  if (row.mode == RDNA_ROI_MODE_MAX) places = make(out.sizes(), at::kInt, x);
  if (out.numel()) {
    const rdna_tensor from = describe(x), boxes = describe(rois), to = describe(out);
    check(rdna_op_roi_pool(stream_of(x), &how, &from, &boxes, &to, Operand(places), outside(x, row.name)));
  }
  if (row.mode == RDNA_ROI_MODE_ALIGN) return call.give(out);
  if (position_sensitive(row)) {  // which channel of the input each bin was made of
    const at::Tensor all = at::arange(x.size(1), x.options().dtype(at::kInt)).view({1, channels, rows, columns});
    places = all.expand(out.sizes()).contiguous();
  }
  return call.give({out, places});
}

// grad, rois, [places], spatial_scale, rows, columns, [sampling_ratio of ps], n, channels, height, width,
// [sampling_ratio, aligned]
bool backward(const Row &row, Call &call) {
  const at::Tensor grad = call.tensor(0), rois = call.tensor(1);
  check_rois(row, grad, rois);
  if (!is_real(grad.scalar_type())) return false;
  rdna_roi how{RDNA_ROI_INIT};
  how.mode = row.mode;
  size_t at = 2;
  at::Tensor places;
  if (row.mode != RDNA_ROI_MODE_ALIGN) places = call.tensor(at++).contiguous();
  how.scale = call.real(at);
  at += 3;
  if (row.mode == RDNA_ROI_MODE_PS_ALIGN) how.grid = std::max<int64_t>(call.integer(at++), 0);
  std::vector<int64_t> shape;
  for (int d = 0; d < 4; d++) shape.push_back(call.integer(at++));
  if (row.mode == RDNA_ROI_MODE_ALIGN) {
    how.grid = std::max<int64_t>(call.integer(at), 0);
    how.half_pixel = call.flag(at + 1);
  }
  const at::Tensor dx = make(shape, grad.scalar_type(), grad);
  if (dx.numel() && grad.numel()) {
    const rdna_tensor from = describe(grad), boxes = describe(rois), to = describe(dx);
    const at::Tensor maxima = row.mode == RDNA_ROI_MODE_MAX ? places : at::Tensor();
    check(
        rdna_op_roi_pool_backward(stream_of(grad), &how, &from, &boxes, Operand(maxima), &to, outside(grad, row.name)));
  } else {
    dx.zero_();
  }
  return call.give(dx);
}

const Single singles[] = {{"nms", nms}};
const Row forwards[] = {
    {"roi_align", RDNA_ROI_MODE_ALIGN},
    {"roi_pool", RDNA_ROI_MODE_MAX},
    {"ps_roi_align", RDNA_ROI_MODE_PS_ALIGN},
    {"ps_roi_pool", RDNA_ROI_MODE_PS_MEAN},
};
const Row backwards[] = {
    {"_roi_align_backward", RDNA_ROI_MODE_ALIGN},
    {"_roi_pool_backward", RDNA_ROI_MODE_MAX},
    {"_ps_roi_align_backward", RDNA_ROI_MODE_PS_ALIGN},
    {"_ps_roi_pool_backward", RDNA_ROI_MODE_PS_MEAN},
};

TORCH_LIBRARY_IMPL(torchvision, PrivateUse1, m) {
  add(m, singles);
  add(m, forwards, forward);
  add(m, backwards, backward);
}

// Under autocast all are computed in f32 and give what their first input was, as torchvision has it on other devices.
void in_f32(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const c10::impl::ExcludeDispatchKeyGuard apart(c10::DispatchKey::AutocastPrivateUse1);
  const size_t arguments = op.schema().arguments().size(), results = op.schema().returns().size();
  const auto given = torch::jit::peek(*stack, 0, arguments).toTensor().scalar_type();
  for (size_t i = 0; i < arguments; i++) {
    c10::IValue &v = torch::jit::peek(*stack, i, arguments);
    if (v.isTensor()) v = at::autocast::cached_cast(at::kFloat, v.toTensor(), c10::DeviceType::PrivateUse1);
  }
  op.callBoxed(stack);
  for (size_t i = 0; i < results; i++) {
    c10::IValue &v = torch::jit::peek(*stack, i, results);
    if (v.isTensor() && v.toTensor().is_floating_point()) v = v.toTensor().to(given);
  }
}

TORCH_LIBRARY_IMPL(torchvision, AutocastPrivateUse1, m) {
  for (const char *name : {"nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&in_f32>());
}

}  // namespace
}  // namespace rdna_torch
