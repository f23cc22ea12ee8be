// Whether a tensor may take another's data: `p.data = …`, and so nn.Module.to, which then changes its Parameters in
// place. Those keep their hooks, attributes and places in optimizers, and modules that share one go on sharing it.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "device.h"

namespace rdna_torch {
namespace {

// A strided tensor of a device whose tensors are PyTorch's own objects. Sparse ones ask PyTorch's rule again as they
// are copied, so that nothing can be allowed for them here.
bool is_plain(const at::Tensor &t) {
  return t.key_set().has(c10::DispatchKey::Dense) && (t.device().type() == kRdna || t.is_cpu() || t.is_cuda());
}

// PyTorch's own rule knows no device that is registered from outside.
bool has_compatible_type(const at::Tensor &self, const at::Tensor &from) {
  return self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set()) ||
         (is_plain(self) && is_plain(from));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_has_compatible_shallow_copy_type", &has_compatible_type); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("_has_compatible_shallow_copy_type", &has_compatible_type); }

}  // namespace
}  // namespace rdna_torch
