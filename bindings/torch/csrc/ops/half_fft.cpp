// Transforms of f16. PyTorch's own functions refuse it on every device but CUDA and a few others, before a kernel is
// asked.
#include <ATen/Functions.h>
#include <torch/library.h>

#include <string>

#include "device.h"

namespace rdna_torch {
namespace {

// The same of f32, rounded: by PyTorch's function for all devices.
void in_float(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
  const size_t base = stack->size() - op.schema().arguments().size();
  bool half = false;
  for (size_t i = base; i < stack->size(); i++) {
    c10::IValue &v = (*stack)[i];
    if (!v.isTensor() || !v.toTensor().defined() || v.toTensor().scalar_type() != at::kHalf) continue;
    half = true;
    v = v.toTensor().to(at::kFloat);
  }
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
  if (!half) return;
  const at::Tensor result = stack->back().toTensor();
  stack->back() = result.to(result.is_complex() ? at::kComplexHalf : at::kHalf);
}

void add_all(torch::Library &m) {
  for (const char *kind : {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"})
    for (const char *dims : {"", "2", "n"})
      m.impl(("fft_" + std::string(kind) + dims).c_str(), torch::CppFunction::makeFromBoxedFunction<&in_float>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_all(m); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { add_all(m); }

}  // namespace
}  // namespace rdna_torch
