// LU with partial pivoting, and what PyTorch makes of it by formulas of its own: solutions, inverses, determinants.
#include <ATen/Functions.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_linalg_det_native.h>
#include <ATen/ops/_linalg_slogdet_native.h>
#include <ATen/ops/_linalg_solve_ex_native.h>
#include <ATen/ops/linalg_inv_ex_native.h>
#include <ATen/ops/linalg_lu_factor_ex_meta.h>
#include <ATen/ops/linalg_lu_native.h>
#include <ATen/ops/linalg_lu_solve_meta.h>
#include <ATen/ops/lu_unpack_meta.h>

#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

// Complex matrices are factored whole, by one group of threads each.
bool offered(const at::Tensor &a) {
  return factorable(a) || (is_complex(a.scalar_type()) && (a.dim() < 2 || (a.size(-1) <= 1024 && a.size(-2) <= 1024)));
}

// |a| becomes its factors, in place. It is dense.
void factor_complex(const at::Tensor &a, bool pivoted, const at::Tensor &pivots, const at::Tensor &info) {
  const at::Tensor columns = a.mT().is_contiguous() ? a : at::native::cloneBatchedColumnMajor(a);
  const at::Tensor pairs = at::view_as_real(flat_written(columns.mT()));
  const rdna_tensor lu = describe(pairs), exchanges = describe(pivots), failed = describe(info);
  check(rdna_op_complex_lu(stream_of(a), pivoted, &lu, &exchanges, &failed));
  if (!columns.is_same(a)) a.copy_(columns);
}

bool lu_factor_ex(Call &call) {  // A, pivot, check_errors, LU, pivots, info
  const at::Tensor a = call.tensor(0);
  if (!offered(a)) return false;
  Results<at::meta::structured_linalg_lu_factor_ex, 3> out(call);
  out.meta(a, call.flag(1), call.flag(2));
  if (!out[0].is_same(a)) out[0].copy_(a);
  const at::Tensor exchanges = flat_vectors(out[1]), failed = out[2].view({-1});
  if (is_complex(a.scalar_type())) {
    factor_complex(out[0], call.flag(1), exchanges, failed);
  } else {
    const at::Tensor factors = flat_written(out[0]);
    const rdna_tensor lu = describe(factors), pivots = describe(exchanges), info = describe(failed);
    check(rdna_op_lu(stream_of(a), call.flag(1), &lu, &pivots, &info));
  }
  if (call.flag(2)) at::_linalg_check_errors(out[2], "torch.linalg.lu_factor_ex", a.dim() == 2);
  return out.give();
}

bool lu_unpack(Call &call) {  // LU_data, LU_pivots, unpack_data, unpack_pivots, P, L, U
  const at::Tensor lu = call.tensor(0), pivots = call.tensor(1);
  if (!solvable(lu)) return false;
  Results<at::meta::structured_lu_unpack, 3> out(call);
  out.meta(lu, pivots, call.flag(2), call.flag(3));
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  if (call.flag(2)) {
    const at::Tensor data = apart(apart(lu, out[1]), out[2]);  // linalg_lu keeps the factors in one of them
    at::triu_out(const_cast<at::Tensor &>(out[2]), data.narrow(-2, 0, k));
    at::tril_out(const_cast<at::Tensor &>(out[1]), data.narrow(-1, 0, k), -1);
    out[1].diagonal(0, -2, -1).fill_(1);
  }
  if (call.flag(3)) {
    const at::Tensor p = dense(out[0]) ? out[0] : make_columns(out[0].sizes(), lu.scalar_type(), lu);
    p.zero_().diagonal(0, -2, -1).fill_(1);
    swap_rows(pivots, true, p);
    if (!p.is_same(out[0])) out[0].copy_(p);
  }
  return out.give();
}

bool lu_solve(Call &call) {  // LU, pivots, B, left, adjoint, out
  const at::Tensor lu = call.tensor(0), pivots = call.tensor(1), b = call.tensor(2);
  const bool left = call.flag(3), adjoint = call.flag(4);
  if (!solvable(lu)) return false;
  Results<at::meta::structured_linalg_lu_solve, 1> out(call);
  out.meta(lu, pivots, b, left, adjoint);
  const at::Tensor x = left ? out[0] : out[0].mT();
  const at::IntArrayRef batch = x.sizes().slice(0, x.dim() - 2);
  const auto of_batch = [&](const at::Tensor &t, int64_t kept) {
    std::vector<int64_t> shape = batch.vec();
    for (int64_t i = t.dim() - kept; i < t.dim(); i++) shape.push_back(t.size(i));
    return t.expand(shape);
  };
  const at::Tensor given = apart(of_batch(lu, 2), out[0]), factors = adjoint ? given.conj() : given,
                   exchanges = of_batch(pivots, 1);
  if (!out[0].is_same(b)) out[0].copy_(b.expand(out[0].sizes()));
  if (adjoint == left) {  // from the right it is the transposed system
    solve_triangular(factors.mT(), false, true, false, x);
    solve_triangular(factors.mT(), true, true, true, x);
    swap_rows(exchanges, true, x);
  } else {
    swap_rows(exchanges, false, x);
    solve_triangular(factors, false, true, true, x);
    solve_triangular(factors, true, true, false, x);
  }
  return out.give();
}

// What follows is PyTorch's own, of the operators above.

bool lu(Call &call) {  // A, pivot, P, L, U
  const at::Tensor a = call.tensor(0);
  if (!offered(a)) return false;
  Results<at::native::structured_linalg_lu_out, 3> out(call);
  out.meta(a, call.flag(1));
  out.impl(a, call.flag(1), out[0], out[1], out[2]);
  return out.give();
}

bool solve_ex(Call &call) {  // A, B, left, check_errors, result, LU, pivots, info
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  if (!offered(a)) return false;
  Results<at::native::structured__linalg_solve_ex_out, 4> out(call);
  out.meta(a, b, call.flag(2), call.flag(3));
  out.impl(a, b, call.flag(2), call.flag(3), out[0], out[1], out[2], out[3]);
  return out.give();
}

bool inv_ex(Call &call) {  // A, check_errors, inverse, info
  const at::Tensor a = call.tensor(0);
  if (!offered(a)) return false;
  Results<at::native::structured_linalg_inv_ex_out, 2> out(call);
  out.meta(a, call.flag(1));
  out.impl(a, call.flag(1), out[0], out[1]);
  return out.give();
}

bool det(Call &call) {  // A, result, LU, pivots
  const at::Tensor a = call.tensor(0);
  if (!offered(a)) return false;
  Results<at::native::structured__linalg_det_out, 3> out(call);
  out.meta(a);
  out.impl(a, out[0], out[1], out[2]);
  return out.give();
}

bool slogdet(Call &call) {  // A, sign, logabsdet, LU, pivots
  const at::Tensor a = call.tensor(0);
  if (!offered(a)) return false;
  Results<at::native::structured__linalg_slogdet_out, 4> out(call);
  out.meta(a);
  out.impl(a, out[0], out[1], out[2], out[3]);
  return out.give();
}

const Single singles[] = {
    {"linalg_lu_factor_ex.out", lu_factor_ex},
    {"lu_unpack.out", lu_unpack},
    {"linalg_lu_solve.out", lu_solve},
    {"linalg_lu.out", lu},
    {"_linalg_solve_ex.result", solve_ex},
    {"linalg_inv_ex.inverse", inv_ex},
    {"_linalg_det.result", det},
    {"_linalg_slogdet.sign", slogdet},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
