// torch.autocast('rdna'): which operators run in the lower precision, in float32, or in the widest of their inputs'
// types. The lists are PyTorch's own, as its other devices use them.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define RDNA_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(RDNA_LOWER_PRECISION)
#undef RDNA_LOWER_PRECISION
#define RDNA_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(RDNA_FP32)
#undef RDNA_FP32
#define RDNA_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(RDNA_FP32_SET_OPT_DTYPE)
#undef RDNA_FP32_SET_OPT_DTYPE
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define RDNA_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(RDNA_PROMOTE)
#undef RDNA_PROMOTE
  m.impl("binary_cross_entropy",
         [](const at::Tensor &, const at::Tensor &, const std::optional<at::Tensor> &, int64_t) -> at::Tensor {
           TORCH_CHECK(false,
                       "binary_cross_entropy is unsafe to autocast: combine it with the sigmoid before it into "
                       "binary_cross_entropy_with_logits");
         });
}

}  // namespace
}  // namespace at
