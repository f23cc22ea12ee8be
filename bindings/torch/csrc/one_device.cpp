#include "one_device.h"

#include <ATen/core/Tensor.h>

#include <string_view>

#include "device.h"

namespace rdna_torch {
namespace {

// What may be elsewhere: indices, lengths, and the lists of foreach operators.
bool takes_both(std::string_view name) {
  static constexpr std::string_view exact[] = {"aten::index",
                                               "aten::_unsafe_index",
                                               "aten::index_put",
                                               "aten::index_put_",
                                               "aten::_index_put_impl_",
                                               "aten::_unsafe_index_put",
                                               "aten::_pack_padded_sequence",
                                               "aten::_pack_padded_sequence_backward",
                                               "aten::_ctc_loss",
                                               "aten::_ctc_loss_backward",
                                               "aten::copy_",
                                               "aten::copy",
                                               "aten::_copy_from"};
  for (std::string_view other : exact)
    if (name == other) return true;
  return name.substr(0, 14) == "aten::_foreach";
}

struct Found {
  c10::Device here{kRdna, -1};
  std::optional<c10::Device> other;  // with dimensions, on another device
  bool any = false;

  void see(const at::Tensor &t) {
    if (!t.defined()) return;
    const c10::Device d = t.device();
    if (d.type() == kRdna && (!any || d == here)) {
      here = d;
      any = true;
    } else if (t.dim() > 0 || d.type() == kRdna) {
      other = d;
    }
  }
};

}  // namespace

c10::DeviceIndex one_device(const c10::OperatorHandle &op, const torch::jit::Stack &stack) {
  const size_t count = op.schema().arguments().size();
  Found found;
  c10::DeviceIndex asked = -1;
  for (size_t i = stack.size() - count; i < stack.size(); i++) {
    const c10::IValue &v = stack[i];
    if (v.isTensor()) {
      found.see(v.toTensor());
    } else if (v.isTensorList()) {
      for (const at::Tensor &t : v.toTensorVector()) found.see(t);
    } else if (v.isList()) {
      for (const c10::IValue &item : v.toListRef())
        if (item.isTensor()) found.see(item.toTensor());
    } else if (v.isDevice() && v.toDevice().type() == kRdna && asked < 0) {
      asked = v.toDevice().index();
    }
  }
  if (found.any && found.other && !takes_both(op.schema().name()))
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", found.here,
                " and ", *found.other, "! (when running ", op.schema().name(), ")");
  return found.any ? found.here.index() : asked;
}

}  // namespace rdna_torch
