// Eigenvalues of matrices that need not be symmetric.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>

#include "complex_matrices.h"
#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

// Larger ones, of which there are mostly few, the CPU finds in less time than one group of threads.
bool offered(const at::Tensor &a) {
  return solvable(a) && (a.dim() < 2 || a.size(-1) <= (is_complex(a.scalar_type()) ? 128 : 256));
}

void check_found(const char *name, const at::Tensor &a, const at::Tensor &info) {
  if (!at::any(info).item().toBool()) return;
  TORCH_CHECK(at::isfinite(a).all().item().toBool(), name, ": input tensor should not contain infs or NaNs.");
  at::_linalg_check_errors(info, name, a.dim() == 2);
}

// Of complex matrices by the real ones that they are, whose values are theirs and the conjugates of theirs. Which is
// whose is known where a multiple of i was added that leaves all of theirs above the real line: the first of each pair.
// Undefined where they were not found though all is finite: LAPACK looks in another way.
std::pair<at::Tensor, at::Tensor> complex_eigen(const char *name, const at::Tensor &a, bool wanted) {
  const int64_t n = a.size(-1);
  const at::Tensor most = a.abs().sum(-1).amax(-1);
  const at::Tensor usual = at::logical_and(at::gt(most, 0), at::isfinite(most));
  const at::Tensor size = at::where(usual, most, at::ones({}, most.options())).unsqueeze(-1);
  const c10::complex<double> above(0, 2);
  at::Tensor moved = a / size.unsqueeze(-1);
  moved.diagonal(0, -2, -1).add_(above);
  const at::Tensor matrices = flat(real_matrix(moved)), info = make({matrices.size(0)}, at::kInt, a);
  const at::Tensor found = make({matrices.size(0), 2 * n, 2}, matrices.scalar_type(), a);
  const at::Tensor rows = wanted ? make({matrices.size(0), 2 * n, 2 * n, 2}, matrices.scalar_type(), a) : at::Tensor();
  const rdna_tensor in = describe(matrices), out = describe(found), count = describe(info);
  check(rdna_op_eigen(stream_of(a), &in, &out, Operand(rows), &count));
  if (at::any(info).item().toBool()) {
    if (at::isfinite(a).all().item().toBool()) return {};
    check_found(name, a, info);
  }
  const at::Tensor values =
      (at::view_as_complex(found).slice(1, 0, std::nullopt, 2) - above).view(a.sizes().slice(0, a.dim() - 1)) * size;
  if (!wanted) return {values, {}};
  // of (x, y) that it turns into a multiple, x + i y is what the complex matrix does
  const at::Tensor pairs = at::view_as_complex(rows).slice(1, 0, std::nullopt, 2).unflatten(-1, {n, 2});
  at::Tensor v = pairs.select(-1, 0) + pairs.select(-1, 1) * c10::complex<double>(0, 1);
  v = v / at::linalg_vector_norm(v, 2, at::IntArrayRef{-1}, true);
  const at::Tensor largest = v.gather(-1, v.abs().argmax(-1, true));  // made real, as LAPACK does
  v = v * (largest.conj() / largest.abs());
  return {values, v.view(a.sizes()).mT().resolve_conj()};
}

// (values, vectors): the vectors by columns; undefined where they are not |wanted|.
std::pair<at::Tensor, at::Tensor> eigen(const at::Tensor &a, bool wanted) {
  const char *name = wanted ? "torch.linalg.eig" : "torch.linalg.eigvals";
  at::native::squareCheckInputs(a, wanted ? "linalg.eig" : "linalg.eigvals");
  if (is_complex(a.scalar_type()) && a.numel() > 0) return complex_eigen(name, a, wanted);
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
    check_found(name, a, info);
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
  return values.defined() && call.give({values, vectors});
}

bool eig_out(Call &call) {  // self, eigenvalues, eigenvectors
  const at::Tensor a = call.tensor(0), values = call.tensor(1), vectors = call.tensor(2);
  if (!offered(a)) return false;
  check_written("torch.linalg.eig", values, a, "eigenvalues");
  check_written("torch.linalg.eig", vectors, a, "eigenvectors");
  const auto [found, columns] = eigen(a, true);
  if (!found.defined()) return false;
  at::native::resize_output(values, found.sizes());
  if (at::native::resize_output(vectors, columns.sizes())) vectors.as_strided_(columns.sizes(), columns.strides());
  values.copy_(found), vectors.copy_(columns);
  return call.give({values, vectors});
}

bool eigvals(Call &call) {  // self
  if (!offered(call.tensor(0))) return false;
  const at::Tensor values = eigen(call.tensor(0), false).first;
  return values.defined() && call.give(values);
}

bool eigvals_out(Call &call) {  // self, out
  const at::Tensor a = call.tensor(0), out = call.tensor(1);
  if (!offered(a)) return false;
  check_written("torch.linalg.eigvals", out, a, "eigenvalues");
  const at::Tensor values = eigen(a, false).first;
  if (!values.defined()) return false;
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
