// Sparse tensors: indices and values are tensors on rdna. Here is what makes one, takes it apart and copies it;
// sparse_forms.cpp and sparse_products.cpp have what computes with them there; all else runs on the CPU, on copies.
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include <string>

#include "fallback.h"
#include "sparse_kernels.h"

namespace rdna_torch {
namespace {

void boxed(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) { fall_back(op, stack); }

// A backend's fallback is not asked where an operator has a kernel for any device, and those for structured operators
// make dense results. What the CPU has a kernel of its own for on sparse tensors is registered by name.
void add_fallbacks(torch::Library &m, c10::DispatchKey cpu, c10::DispatchKey own) {
  c10::Dispatcher &dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(cpu) || op->hasKernelForDispatchKey(own) || name.name.rfind("aten::", 0))
      continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    m.impl((name.name + overload).c_str(), torch::CppFunction::makeFromBoxedFunction<&boxed>());
  }
}

// Whether indices are those of a compressed layout (PyTorch's docs/sparse.rst, "Invariants"): the compressed ones from
// 0 to |nnz|, each at most |dim| more than the one before; the plain ones in [0, |dim|), rising within a row.
void check_compressed(bool rows, const at::Tensor &compressed, const at::Tensor &plain, int64_t cdim, int64_t dim,
                      int64_t nnz) {
  const std::string c = rows ? "crow_indices" : "ccol_indices", p = rows ? "col_indices" : "row_indices";
  const at::Tensor from = compressed.slice(-1, 0, cdim), to = compressed.slice(-1, 1), count = to - from;
  auto all = [](const at::Tensor &t) { return t.numel() == 0 || t.all().item().toBool(); };
  TORCH_CHECK(all(at::eq(compressed.select(-1, 0), 0)), "`", c, "[..., 0] == 0` is not satisfied.");
  TORCH_CHECK(all(at::eq(compressed.select(-1, cdim), nnz)), "`", c, "[..., -1] == nnz` is not satisfied.");
  TORCH_CHECK(all(at::logical_and(at::ge(count, 0), at::le(count, dim))), "`0 <= ", c, "[..., 1:] - ", c,
              "[..., :-1] <= ", rows ? "ncols" : "nrows", "` is not satisfied.");
  TORCH_CHECK(all(at::logical_and(at::ge(plain, 0), at::lt(plain, dim))), "`0 <= ", p, " < ", rows ? "ncols" : "nrows",
              "` is not satisfied.");
  if (nnz < 2) return;
  const at::Tensor places = at::arange(1, nnz, compressed.options()).expand({compressed.numel() / (cdim + 1), nnz - 1});
  const at::Tensor starts = compressed.reshape({-1, cdim + 1}).contiguous(),
                   row = at::searchsorted(starts, places.contiguous(), false, true);
  const at::Tensor before = at::searchsorted(starts, (places - 1).contiguous(), false, true);
  const at::Tensor at_row = plain.reshape({-1, nnz}), rises = at::lt(at_row.slice(1, 0, nnz - 1), at_row.slice(1, 1));
  TORCH_CHECK(all(at::logical_or(rises, at::ne(row, before))), "`", p, "[..., ", c, "[..., i - 1]:", c,
              "[..., i]] for all i = 1, ..., ", rows ? "nrows" : "ncols",
              " are sorted and distinct along the last dimension values` is not satisfied.");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_to_sparse",
         static_cast<at::Tensor (*)(const at::Tensor &, std::optional<at::Layout>, at::OptionalIntArrayRef,
                                    std::optional<int64_t>)>(&at::native::dense_to_sparse));
  m.impl("_to_sparse.sparse_dim",
         static_cast<at::Tensor (*)(const at::Tensor &, int64_t)>(&at::native::dense_to_sparse));
  m.impl("_to_sparse_csr", TORCH_FN(at::native::dense_to_sparse_csr));
  m.impl("_to_sparse_csc", TORCH_FN(at::native::dense_to_sparse_csc));
  m.impl("_to_sparse_bsr", TORCH_FN(at::native::dense_to_sparse_bsr));
  m.impl("_to_sparse_bsc", TORCH_FN(at::native::dense_to_sparse_bsc));
  m.impl("_validate_compressed_sparse_indices", TORCH_FN(check_compressed));
  m.impl("sspaddmm.out", TORCH_FN(at::native::_sspaddmm_out_only_sparse));  // which says so
}

// Functions that leave 0 as it is, which PyTorch has for sparse tensors of any device: of their values.
#define OF_VALUES(f)                                                                                            \
  f(abs) f(asin) f(asinh) f(atan) f(atanh) f(ceil) f(erf) f(erfinv) f(expm1) f(floor) f(frac) f(isinf) f(isnan) \
      f(log1p) f(neg) f(relu) f(round) f(sgn) f(sign) f(signbit) f(sin) f(sinh) f(sqrt) f(tan) f(tanh) f(trunc)
#define COO(name) m.impl(#name, static_cast<at::Tensor (*)(const at::Tensor &)>(&at::native::name##_sparse));
#define COMPRESSED(name) m.impl(#name, static_cast<at::Tensor (*)(const at::Tensor &)>(&at::native::name##_sparse_csr));

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed>()); }

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(at::native::empty_sparse));
  m.impl("_sparse_coo_tensor_with_dims", TORCH_FN(at::native::new_with_dims_sparse));
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", TORCH_FN(at::native::new_with_dims_and_tensor_sparse_symint));
  m.impl("sparse_dim", TORCH_FN(at::native::sparse_dim_sparse));
  m.impl("dense_dim", TORCH_FN(at::native::dense_dim_sparse));
  m.impl("_nnz", TORCH_FN(at::native::_nnz_sparse));
  m.impl("is_coalesced", TORCH_FN(at::native::is_coalesced_sparse));
  m.impl("_coalesced_", TORCH_FN(at::native::_coalesced_sparse_));
  m.impl("_indices", TORCH_FN(at::native::_indices_sparse));
  m.impl("_values", TORCH_FN(at::native::_values_sparse));
  m.impl("indices", TORCH_FN(at::native::indices_sparse));
  m.impl("values", TORCH_FN(at::native::values_sparse));
  m.impl("copy_", TORCH_FN(at::native::copy_sparse_wrapper_));
  m.impl("copy_sparse_to_sparse_", TORCH_FN(at::native::copy_sparse_));
  m.impl("clone", TORCH_FN(at::native::clone_sparse));
  m.impl("empty_like", TORCH_FN(at::native::empty_like_sparse_coo));
  m.impl("sparse_resize_", TORCH_FN(at::native::sparse_resize_));
  m.impl("sparse_resize_and_clear_", TORCH_FN(at::native::sparse_resize_and_clear_));
  m.impl("zero_", TORCH_FN(at::native::zero_sparse_));
  m.impl("cat", TORCH_FN(at::native::cat_sparse));
  m.impl("unsqueeze", TORCH_FN(at::native::unsqueeze_sparse));
  m.impl("narrow_copy", TORCH_FN(at::native::narrow_copy_sparse));
  m.impl("div.Tensor", static_cast<at::Tensor (*)(const at::Tensor &, const at::Tensor &)>(&at::native::div_sparse));
  m.impl("div.out", static_cast<at::Tensor &(*)(const at::Tensor &, const at::Tensor &, at::Tensor &)>(
                        &at::native::div_out_sparse_zerodim));
  m.impl("_to_sparse",
         static_cast<at::Tensor (*)(const at::Tensor &, std::optional<at::Layout>, at::OptionalIntArrayRef,
                                    std::optional<int64_t>)>(&at::native::sparse_coo_to_sparse));
  m.impl("_to_sparse.sparse_dim",
         static_cast<at::Tensor (*)(const at::Tensor &, int64_t)>(&at::native::sparse_coo_to_sparse));
  m.impl("_to_sparse_csr", TORCH_FN(at::native::coo_to_sparse_csr));
  m.impl("_to_sparse_csc", TORCH_FN(at::native::coo_to_sparse_csc));
  OF_VALUES(COO)
  add_coo_forms(m);
  add_coo_products(m);
  add_coo_pairs(m);
  add_fallbacks(m, c10::DispatchKey::SparseCPU, c10::DispatchKey::SparsePrivateUse1);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(at::native::empty_sparse_compressed));
  m.impl("sparse_dim", TORCH_FN(at::native::sparse_dim_sparse_csr));
  m.impl("dense_dim", TORCH_FN(at::native::dense_dim_sparse_csr));
  m.impl("_nnz", TORCH_FN(at::native::_nnz_sparse_csr));
  m.impl("crow_indices", TORCH_FN(at::native::crow_indices_sparse_csr));
  m.impl("col_indices", TORCH_FN(at::native::col_indices_sparse_csr));
  m.impl("ccol_indices", TORCH_FN(at::native::ccol_indices_sparse_csr));
  m.impl("row_indices", TORCH_FN(at::native::row_indices_sparse_csr));
  m.impl("values", TORCH_FN(at::native::values_sparse_csr));
  m.impl("copy_", TORCH_FN(at::native::copy_sparse_compressed_));
  m.impl("clone", TORCH_FN(at::native::clone_sparse_compressed));
  m.impl("empty_like", TORCH_FN(at::native::empty_like_sparse_csr));
  m.impl("zero_", TORCH_FN(at::native::zero_sparse_csr_));
  m.impl("_to_sparse",
         static_cast<at::Tensor (*)(const at::Tensor &, std::optional<at::Layout>, at::OptionalIntArrayRef,
                                    std::optional<int64_t>)>(&at::native::sparse_compressed_to_sparse));
  m.impl("_to_sparse.sparse_dim",
         static_cast<at::Tensor (*)(const at::Tensor &, int64_t)>(&at::native::sparse_compressed_to_sparse));
  m.impl("_to_sparse_csr", TORCH_FN(at::native::sparse_compressed_to_sparse_csr));
  m.impl("_to_sparse_csc", TORCH_FN(at::native::sparse_compressed_to_sparse_csc));
  OF_VALUES(COMPRESSED)
  add_compressed_products(m);
  add_fallbacks(m, c10::DispatchKey::SparseCsrCPU, c10::DispatchKey::SparseCsrPrivateUse1);
}

}  // namespace
}  // namespace rdna_torch
