// Kinds of tensors that rdna has none of: what asks for one is told so, and what there is instead.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "device.h"

namespace rdna_torch {
namespace {

constexpr auto kNested =
    "rdna has no nested tensors of the strided layout; torch.nested's layout=torch.jagged works, and so do padded "
    "tensors with a mask (nn.TransformerEncoder: enable_nested_tensor=False)";
constexpr auto kQuantized =
    "rdna has no quantized tensors; quantize on the CPU, or keep plain int8 values and their scales, which rdna has";

void no_nested(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.schema().name(), ": ", kNested);
}
void no_quantized(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.schema().name(), ": ", kQuantized);
}

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&no_nested>());
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&no_quantized>());
}

// These make nested tensors of others. nn.TransformerEncoder asks first whether a padding mask allows it: where it does
// not, the layers see the mask, and what they say of padding is what is left there instead of zeros.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned", [](const at::Tensor &, const at::Tensor &) { return false; });
  for (const char *name : {"_nested_tensor_from_mask", "_nested_from_padded"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&no_nested>());
}

}  // namespace
}  // namespace rdna_torch
