// Cholesky's factors, and systems that triangular matrices solve.
#include <ATen/Functions.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/linalg_cholesky_ex_meta.h>
#include <ATen/ops/triangular_solve_meta.h>

#include "complex_matrices.h"
#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

// The factor of the real matrix that it is, is that of the complex one: both have a positive diagonal. Of a triangle's
// diagonal the real parts count.
void complex_cholesky(const at::Tensor &a, bool upper, const at::Tensor &factor, const at::Tensor &failed) {
  const at::Tensor matrix = (upper ? a.mH() : a).tril();
  at::view_as_real(matrix.diagonal(0, -2, -1)).select(-1, 1).zero_();
  const at::Tensor twice = real_matrix(matrix), rows = flat_written(twice);
  const rdna_tensor l = describe(rows), info = describe(failed);
  check(rdna_op_cholesky(stream_of(a), false, &l, &info));
  failed.add_(1).floor_divide_(2);
  const at::Tensor found = complex_matrix(twice);
  factor.copy_(upper ? found.mH() : found);
}

bool cholesky_ex(Call &call) {  // self, upper, check_errors, L, info
  const at::Tensor a = call.tensor(0);
  const bool upper = call.flag(1);
  if (!solvable(a)) return false;
  Results<at::meta::structured_linalg_cholesky_ex, 2> out(call);
  out.meta(a, upper, call.flag(2));
  const at::Tensor failed = out[1].view({-1});
  if (is_complex(a.scalar_type())) {
    failed.zero_();
    if (a.numel()) complex_cholesky(a, upper, out[0], failed);
  } else {
    if (!out[0].is_same(a)) out[0].copy_(a);
    const at::Tensor factor = flat_written(out[0]);
    const rdna_tensor l = describe(factor), info = describe(failed);
    check(rdna_op_cholesky(stream_of(a), upper, &l, &info));
  }
  if (call.flag(2)) at::_linalg_check_errors(out[1], "linalg.cholesky_ex", a.dim() == 2);
  return out.give();
}

// The older name; its results are new tensors, and it always raises.
bool cholesky(Call &call) {  // self, upper
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  if (a.numel() == 0) return call.give(at::empty_like(a));
  at::native::squareCheckInputs(a, "cholesky");
  const auto [l, info] = at::linalg_cholesky_ex(a, call.flag(1));
  at::_linalg_check_errors(info, "cholesky", a.dim() == 2);
  return call.give(l);
}

bool cholesky_out(Call &call) {  // self, upper, out
  const at::Tensor a = call.tensor(0), out = call.tensor(2);
  if (!solvable(a)) return false;
  at::native::checkSameDevice("cholesky", out, a);
  at::native::checkLinalgCompatibleDtype("cholesky", out, a);
  const at::Tensor l = at::cholesky(a, call.flag(1));
  at::native::resize_output(out, l.sizes());
  return call.give(out.copy_(l));
}

bool cholesky_solve(Call &call) {  // self, A, upper; batches are those of both already
  const at::Tensor b = call.tensor(0), a = call.tensor(1);
  const bool upper = call.flag(2);
  if (!solvable(a) || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = at::native::cloneBatchedColumnMajor(b);
  solve_triangular(upper ? a.mH() : a, false, true, false, x);
  solve_triangular(upper ? a : a.mH(), true, true, false, x);
  return call.give(x);
}

at::Tensor inverse_by_cholesky(const at::Tensor &a, bool upper) {
  const at::Tensor x = make_columns(a.sizes(), a.scalar_type(), a);
  x.zero_().diagonal(0, -2, -1).fill_(1);
  solve_triangular(upper ? a.mH() : a, false, true, false, x);
  solve_triangular(upper ? a : a.mH(), true, true, false, x);
  return x;
}
bool cholesky_inverse(Call &call) {  // self, upper
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  at::native::squareCheckInputs(a, "cholesky_inverse");
  return call.give(inverse_by_cholesky(a, call.flag(1)));
}
bool cholesky_inverse_out(Call &call) {  // self, upper, out
  const at::Tensor a = call.tensor(0), out = call.tensor(2);
  if (!solvable(a)) return false;
  at::native::squareCheckInputs(a, "cholesky_inverse");
  at::native::checkSameDevice("cholesky_inverse", out, a);
  at::native::checkLinalgCompatibleDtype("cholesky_inverse", out, a);
  const at::Tensor x = inverse_by_cholesky(a, call.flag(1));
  if (at::native::resize_output(out, x.sizes())) out.as_strided_(x.sizes(), x.strides());
  return call.give(out.copy_(x));
}

// A, B, upper, left, unitriangular, [out]. A result that lies by columns or rows is solved in place, also where it is
// B.
bool triangular(Call &call) {
  const at::Tensor a = call.tensor(0), b = call.tensor(1), given = call.output();
  const bool upper = call.flag(2), left = call.flag(3), unit = call.flag(4);
  if (!solvable(a) || b.scalar_type() != a.scalar_type() || b.device() != a.device()) return false;
  if (given.defined() && given.scalar_type() != a.scalar_type()) return false;
  at::native::checkInputsSolver(a, b, left, "linalg.solve_triangular");
  const auto [right, system] = at::native::_linalg_broadcast_batch_dims(b, a, nullptr);
  if (given.defined() && at::native::resize_output(given, right.sizes()))
    given.as_strided_(right.sizes(), at::native::batched_matrix_contiguous_strides(right.sizes(), true));
  const bool here = given.defined() && dense(given);
  const at::Tensor x = here ? given : make_columns(right.sizes(), a.scalar_type(), a);
  const at::Tensor m = apart(system, x);
  if (!x.is_same(b)) x.copy_(right);
  solve_triangular(m, upper, left, unit, x);
  if (!given.defined()) return call.give(x);
  if (!here) given.copy_(x);
  return call.give(given);
}

bool triangular_solve(Call &call) {  // self, A, upper, transpose, unitriangular, X, M
  const at::Tensor b = call.tensor(0), a = call.tensor(1);
  const bool upper = call.flag(2), transpose = call.flag(3);
  if (!solvable(a) || !solvable(b)) return false;
  Results<at::meta::structured_triangular_solve, 2> out(call);
  out.meta(b, a, upper, transpose, call.flag(4));
  if (!out[0].is_same(b)) out[0].copy_(b.expand(out[0].sizes()));
  if (!out[1].is_same(a)) out[1].copy_(a.expand(out[1].sizes()));
  solve_triangular(transpose ? out[1].mT() : out[1], upper != transpose, true, call.flag(4), out[0]);
  return out.give();
}

const Single singles[] = {
    {"linalg_cholesky_ex.L", cholesky_ex},    {"cholesky", cholesky},
    {"cholesky.out", cholesky_out},           {"_cholesky_solve_helper", cholesky_solve},
    {"cholesky_inverse", cholesky_inverse},   {"cholesky_inverse.out", cholesky_inverse_out},
    {"linalg_solve_triangular", triangular},  {"linalg_solve_triangular.out", triangular},
    {"triangular_solve.X", triangular_solve},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
