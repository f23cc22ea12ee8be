// Eigenvalues of matrices that need not be symmetric.
#include <ATen/Functions.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>

#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

// Larger ones, of which there are mostly few, the CPU finds in less time than one group of threads.
bool offered(const at::Tensor &a) { return factorable(a) && (a.dim() < 2 || a.size(-1) <= 256); }

// (values, vectors): the vectors by columns; undefined where they are not |wanted|.
std::pair<at::Tensor, at::Tensor> eigen(const at::Tensor &a, bool wanted) {
  const char *name = wanted ? "torch.linalg.eig" : "torch.linalg.eigvals";
  at::native::squareCheckInputs(a, wanted ? "linalg.eig" : "linalg.eigvals");
  const at::ScalarType type = c10::toComplexType(a.scalar_type());
  const at::Tensor values = make(a.sizes().slice(0, a.dim() - 1), type, a);
  const at::Tensor rows = wanted ? make(a.sizes(), type, a) : at::Tensor();
  const at::Tensor info = make(a.sizes().slice(0, a.dim() - 2), at::kInt, a);
  if (a.numel() > 0) {
    const at::Tensor matrices = flat(a), failed = info.view({-1}),
                     found = at::view_as_real(values).view({-1, a.size(-1), 2});
    const at::Tensor vectors = wanted ? at::view_as_real(rows).view({-1, a.size(-1), a.size(-1), 2}) : rows;
    const rdna_tensor in = describe(matrices), out = describe(found), count = describe(failed);
    check(rdna_op_eigen(stream_of(a), &in, &out, Operand(vectors), &count));
    if (at::any(info).item().toBool()) {
      TORCH_CHECK(at::isfinite(a).all().item().toBool(), name, ": input tensor should not contain infs or NaNs.");
      at::_linalg_check_errors(info, name, a.dim() == 2);
    }
  }
  return {values, wanted ? rows.mT() : rows};
}

void check_written(const char *name, const at::Tensor &out, const at::Tensor &a, const char *what) {
  at::native::checkSameDevice(name, out, a, what);
  at::native::checkLinalgCompatibleDtype(name, out.scalar_type(), c10::toComplexType(a.scalar_type()), what);
}

bool eig(Call &call) {  // self
  if (!offered(call.tensor(0))) return false;
  const auto [values, vectors] = eigen(call.tensor(0), true);
  return call.give({values, vectors});
}

bool eig_out(Call &call) {  // self, eigenvalues, eigenvectors
  const at::Tensor a = call.tensor(0), values = call.tensor(1), vectors = call.tensor(2);
  if (!offered(a)) return false;
  check_written("torch.linalg.eig", values, a, "eigenvalues");
  check_written("torch.linalg.eig", vectors, a, "eigenvectors");
  const auto [found, columns] = eigen(a, true);
  at::native::resize_output(values, found.sizes());
  if (at::native::resize_output(vectors, columns.sizes())) vectors.as_strided_(columns.sizes(), columns.strides());
  values.copy_(found), vectors.copy_(columns);
  return call.give({values, vectors});
}

bool eigvals(Call &call) {  // self
  return offered(call.tensor(0)) && call.give(eigen(call.tensor(0), false).first);
}

bool eigvals_out(Call &call) {  // self, out
  const at::Tensor a = call.tensor(0), out = call.tensor(1);
  if (!offered(a)) return false;
  check_written("torch.linalg.eigvals", out, a, "eigenvalues");
  const at::Tensor values = eigen(a, false).first;
  at::native::resize_output(out, values.sizes());
  return call.give(out.copy_(values));
}

const Single singles[] = {
    {"linalg_eig", eig},
    {"linalg_eig.out", eig_out},
    {"_linalg_eigvals", eigvals},
    {"linalg_eigvals.out", eigvals_out},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
