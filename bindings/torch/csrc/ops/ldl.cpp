// L D L^T of symmetric matrices, and the systems that it solves.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/linalg_ldl_factor_ex_meta.h>
#include <ATen/ops/linalg_ldl_solve_meta.h>

#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

bool factor_ex(Call &call) {  // A, hermitian, check_errors, LD, pivots, info
  const at::Tensor a = call.tensor(0);
  if (!factorable(a) || (a.dim() >= 2 && a.size(-1) > 1024)) return false;
  Results<at::meta::structured_linalg_ldl_factor_ex, 3> out(call);
  out.meta(a, call.flag(1), call.flag(2));
  at::tril_out(const_cast<at::Tensor &>(out[0]), a);
  const at::Tensor columns = out[0].mT().is_contiguous() ? out[0] : at::native::cloneBatchedColumnMajor(out[0]);
  const at::Tensor matrices = flat_written(columns.mT()), exchanges = flat_vectors(out[1]), failed = out[2].view({-1});
  const rdna_tensor x = describe(matrices), pivots = describe(exchanges), info = describe(failed);
  check(rdna_op_ldl(stream_of(a), &x, &pivots, &info));
  if (!columns.is_same(out[0])) out[0].copy_(columns);
  if (call.flag(2)) at::_linalg_check_errors(out[2], "torch.linalg.ldl_factor_ex", a.dim() == 2);
  return out.give();
}

// The factors as other systems are solved: all rows in their last order, and D apart.
struct Factors {
  at::Tensor lower;      // L, of which what is below the diagonal counts
  at::Tensor exchanges;  // of rows, as LU has them
  at::Tensor paired;     // whether a row is one of two of a block
  at::Tensor partner;    // the block's other row, or itself
  at::Tensor first;      // the block's first row
};
Factors factors_of(const at::Tensor &ld, const at::Tensor &pivots) {
  const int64_t n = ld.size(-1);
  const at::Tensor row = at::arange(n, pivots.options()), paired = at::lt(pivots, 0);
  const at::Tensor begins = at::logical_and(paired, at::remainder(paired.cumsum(-1, at::kInt), 2));
  Factors f{{}, at::where(begins, row + 1, at::abs(pivots)), paired, {}, {}};
  const at::Tensor ends = at::logical_and(paired, at::logical_not(begins));
  f.partner = (row + begins.to(at::kInt) - ends.to(at::kInt)).to(at::kLong);
  f.first = at::minimum(row.to(at::kLong), f.partner);
  // Each column of L meets the exchanges of the blocks behind its own.
  at::Tensor columns = at::tril(ld, -1).mT().contiguous();
  columns.diagonal(1, -2, -1).masked_fill_(begins.narrow(-1, 0, std::max<int64_t>(n - 1, 0)), 0);
  const at::Tensor last = at::maximum(row.to(at::kLong), f.partner).unsqueeze(-1);
  const at::Tensor later = at::where(at::gt(row, last), f.exchanges.unsqueeze(-2), row + 1);
  swap_rows(later, false, columns.unsqueeze(-1));
  f.lower = columns.mT();
  return f;
}

// x = D^-1 x. A block's values are divided by the one across first, which is the largest.
void divide(const at::Tensor &ld, const Factors &f, const at::Tensor &x) {
  const at::Tensor d = ld.diagonal(0, -2, -1), other = d.gather(-1, f.partner);
  std::vector<int64_t> one = d.sizes().vec();
  one.back() = 1;
  const at::Tensor below = at::cat({ld.diagonal(-1, -2, -1), at::ones(one, d.options())}, -1);
  const at::Tensor across = at::where(f.paired, below.gather(-1, f.first), at::ones({}, d.options()));
  const at::Tensor mine = d / across, theirs = other / across;
  const at::Tensor beside = x.gather(-2, f.partner.unsqueeze(-1).expand(x.sizes()));
  auto column = [](const at::Tensor &t) { return t.unsqueeze(-1); };
  const at::Tensor two = (column(theirs) * x - beside) / column(across * (mine * theirs - 1));
  x.copy_(at::where(column(f.paired), two, x / column(d)));
}

bool solve(Call &call) {  // LD, pivots, B, hermitian, out
  const at::Tensor given = call.tensor(0), b = call.tensor(2);
  if (!factorable(given)) return false;
  Results<at::meta::structured_linalg_ldl_solve, 1> out(call);
  out.meta(given, call.tensor(1), b, call.flag(3));
  const at::Tensor x = out[0];
  if (x.numel() == 0) return out.give();
  std::vector<int64_t> shape = x.sizes().slice(0, x.dim() - 1).vec();
  const at::Tensor pivots = call.tensor(1).expand(shape);
  shape.push_back(shape.back());
  const at::Tensor ld = apart(given, x).expand(shape);
  if (!x.is_same(b)) x.copy_(b.expand(x.sizes()));
  const Factors f = factors_of(ld, pivots);
  swap_rows(f.exchanges, false, x);
  solve_triangular(f.lower, false, true, true, x);
  divide(ld, f, x);
  solve_triangular(f.lower.mT(), true, true, true, x);
  swap_rows(f.exchanges, true, x);
  return out.give();
}

const Single singles[] = {
    {"linalg_ldl_factor_ex.out", factor_ex},
    {"linalg_ldl_solve.out", solve},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
