// Eigenvalues of symmetric matrices and singular values, by rotations that make columns orthogonal; the exponential.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_linalg_eigh_native.h>
#include <ATen/ops/_linalg_svd_native.h>

#include <cmath>
#include <limits>

#include "complex_matrices.h"
#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

double epsilon_of(const at::Tensor &t) {
  return at::toRealValueType(t.scalar_type()) == at::kDouble
             ? std::numeric_limits<double>::epsilon()
             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

// (…, 1, 1): the largest magnitude of each matrix, 1 where that is 0, NaN where any is NaN.
at::Tensor size_of(const at::Tensor &a) {
  const at::Tensor most = a.abs().amax({-2, -1}, true);
  return at::where(most.eq(0), at::ones({}, most.options()), most);
}

// The columns of w become orthogonal, and are returned with their lengths. Columns that are lost in the errors of w,
// whose largest value is near 1, are left alone. info becomes |failure| where that does not end.
at::Tensor orthogonalize(const at::Tensor &w, int64_t failure, const at::Tensor &info) {
  const at::Tensor columns = flat_written(w);
  const at::Tensor turned = at::empty({columns.size(0), 20}, w.options().dtype(at::kInt));
  const rdna_tensor a = describe(columns), sweeps = describe(turned);
  check(rdna_op_orthogonalize(stream_of(w), epsilon_of(w), &a, &sweeps));
  info.copy_(turned.select(-1, -1).mul(failure).view_as(info));
  return at::linalg_vector_norm(w, 2, at::IntArrayRef{-2});
}

at::Tensor gather_columns(const at::Tensor &a, const at::Tensor &order) {
  return at::native::cloneBatchedColumnMajor(a.gather(-1, order.unsqueeze(-2).expand(a.sizes())));
}

// w, symmetric, becomes diagonal, and v, if it is defined, v times its vectors. Returns whether a batch's sweeps have
// not come to an end. Matrices of more than 32 rows take a launch and another for every 16 of them in a sweep, so that
// it pays to ask after each few whether that was all.
at::Tensor diagonalize(const at::Tensor &w, const at::Tensor &v) {
  const bool small = w.size(-1) <= 32;
  const at::Tensor rows = flat_written(w), columns = v.defined() ? flat_written(v) : v;
  const at::Tensor turned = at::empty({rows.size(0), small ? 30 : 4}, w.options().dtype(at::kInt)),
                   on = turned.select(-1, -1);
  const rdna_tensor a = describe(rows), sweeps = describe(turned);
  for (int done = 0; done < 30; done += small ? 30 : 4) {
    check(rdna_op_diagonalize(stream_of(w), &a, Operand(columns), &sweeps));
    if (small || !on.any().item().toBool()) break;
  }
  return on;
}

// Of x, nearly orthogonal, and nearly vectors of the symmetric a, those vectors, and the values, by first order (Ogita
// and Aishima, 2018): x + x (r / 2 + e), with r = 1 - x^T x, s = x^T a x, e_ij = (s_ij + (l_i + l_j) r_ij / 2) / (l_j -
// l_i) where that is small enough. The numerator is made symmetric, and so e antisymmetric: x becomes no less
// orthogonal.
std::pair<at::Tensor, at::Tensor> refine(const at::Tensor &x, const at::Tensor &a) {
  const at::Tensor s = at::matmul(x.mT(), at::matmul(a, x)), r = at::matmul(x.mT(), x).neg_();
  r.diagonal(0, -2, -1).add_(1);
  r.div_(2);
  const at::Tensor values = r.diagonal(0, -2, -1).mul(2).add_(1).mul_(s.diagonal(0, -2, -1));
  const at::Tensor i = values.unsqueeze(-1), j = values.unsqueeze(-2);
  const at::Tensor half = i.add(j).mul_(r).add_(s), e = half.add(half.mT()).div_(j.sub(i).mul_(2));
  const at::Tensor small = e.abs().lt(std::sqrt(epsilon_of(x)) / 10);
  return {values, at::matmul(x, at::where(small, e, at::zeros({}, e.options())).add_(r)).add_(x)};
}

// The first of each two that are alike.
at::Tensor every_second(const at::Tensor &values) { return values.slice(-1, 0, std::nullopt, 2); }

// Hermitian ones, as the real ones that they are: each value is there twice.
void complex_eigh(const at::Tensor &values, const at::Tensor &vectors, bool upper, bool wanted) {
  const at::Tensor lower = upper ? vectors.mH() : vectors;
  const at::Tensor below = lower.tril(-1), diagonal = at::real(lower.diagonal(0, -2, -1));
  const at::Tensor a = below + below.mH() + at::diag_embed(diagonal);
  const at::Tensor twice = real_matrix(a);
  if (!wanted) {
    values.copy_(every_second(at::linalg_eigvalsh(twice)));
    return;
  }
  const auto [found, v] = at::linalg_eigh(twice);
  values.copy_(every_second(found));
  vectors.copy_(complex_basis(v));
}

// Rotations from both sides keep the digits of what is small in a graded matrix, which a shift would lose. Of more than
// 32 rows there are so many that their own errors are worth a correction.
void eigh(const at::Tensor &values, const at::Tensor &vectors, const at::Tensor &info, bool upper, bool wanted) {
  if (is_complex(vectors.scalar_type())) return complex_eigh(values, vectors, upper, wanted);
  const at::Tensor lower = upper ? vectors.mT() : vectors;
  at::Tensor a = lower.tril().add_(lower.tril(-1).mT());
  const int64_t n = a.size(-1);
  const at::Tensor size = size_of(a);
  a.div_(size);
  const at::Tensor w = a.clone(at::MemoryFormat::Contiguous);
  const bool refined = n > 32;
  at::Tensor v;
  if (wanted || refined) {
    v = make_columns(a.sizes(), a.scalar_type(), a).zero_();
    v.diagonal(0, -2, -1).fill_(1);
  }
  info.copy_(diagonalize(w, v).mul(n).view_as(info));
  info.masked_fill_(size.isnan().view_as(info), std::max<int64_t>(wanted ? n - 1 : 1, 1));
  at::Tensor found = w.diagonal(0, -2, -1);
  if (refined) std::tie(found, v) = refine(v, a);
  const auto [sorted, order] = found.sort(-1);
  values.copy_(sorted.mul(size.squeeze(-1)));
  if (wanted) vectors.copy_(gather_columns(v, order));
}

// u of a v = u s with |v| unitary, by QR, whose diagonal has the signs; |more| columns than those of v.
at::Tensor left_vectors(const at::Tensor &a, const at::Tensor &v, bool more) {
  const auto [q, r] = at::linalg_qr(at::matmul(a, v), more ? "complete" : "reduced");
  const at::Tensor diagonal = r.diagonal(0, -2, -1);
  const at::Tensor negative = at::lt(is_complex(a.scalar_type()) ? at::real(diagonal) : diagonal, 0).unsqueeze(-2);
  const at::Tensor first = q.narrow(-1, 0, v.size(-1));
  first.copy_(at::where(negative, first.neg(), first));
  return q;
}

// As the real matrix that it is, of which each singular value is there twice.
void complex_svd(const at::Tensor &tall, bool turned, bool full, bool wanted, const at::Tensor &u, const at::Tensor &s,
                 const at::Tensor &vh) {
  const at::Tensor twice = real_matrix(tall);
  if (!wanted) {
    s.copy_(every_second(at::linalg_svdvals(twice)));
    return;
  }
  const auto [left, values, right] = at::linalg_svd(twice, false);
  s.copy_(every_second(values));
  const at::Tensor v = complex_basis(right.mT()), q = left_vectors(tall, v, full);
  u.copy_(turned ? v : q);
  vh.copy_(turned ? q.mH() : v.mH());
}

// a = q r, and rotations turn r^T into v s; a v = u s. Of both QR makes what is orthogonal also where s is 0. With
// fewer rows than columns it is the transpose's.
void svd(const at::Tensor &a, bool full, bool wanted, const std::optional<std::string_view> &, const at::Tensor &u,
         const at::Tensor &s, const at::Tensor &vh, const at::Tensor &info) {
  const bool turned = a.size(-2) < a.size(-1);
  const at::Tensor tall = turned ? a.mH() : a;
  if (is_complex(a.scalar_type())) return complex_svd(tall.resolve_conj(), turned, full, wanted, u, s, vh);
  const int64_t k = tall.size(-1);
  const at::Tensor size = size_of(tall), x = tall.div(size);
  const at::Tensor r = std::get<1>(at::linalg_qr(x, "r"));
  const at::Tensor w = at::native::cloneBatchedColumnMajor(r.mT());
  const at::Tensor lengths = orthogonalize(w, k, info);
  info.masked_fill_(size.isnan().view_as(info), -4);  // LAPACK's number for what is not finite
  const auto [sorted, order] = lengths.sort(-1, true);
  s.copy_(sorted.mul(size.squeeze(-1)));
  if (!wanted) return;
  const at::Tensor v = std::get<0>(at::linalg_qr(gather_columns(w, order)));
  const at::Tensor q = left_vectors(x, v, full);
  u.copy_(turned ? v : q);
  vh.copy_(turned ? q.mT() : v.mT());
}

bool eigh_values(Call &call) {  // A, UPLO, compute_v, eigenvalues, eigenvectors
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  Results<at::native::structured__linalg_eigh_out, 2> out(call);
  out.meta(a, call[1].toStringView(), call.flag(2));
  out.impl(a, call[1].toStringView(), call.flag(2), out[0], out[1]);
  return out.give();
}

bool svd_out(Call &call) {  // A, full_matrices, compute_uv, driver, U, S, Vh
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  const auto driver = call.none(3) ? std::nullopt : std::make_optional(call[3].toStringView());
  Results<at::native::structured__linalg_svd_out, 3> out(call);
  out.meta(a, call.flag(1), call.flag(2), driver);
  out.impl(a, call.flag(1), call.flag(2), driver, out[0], out[1], out[2]);
  return out.give();
}

// Taylor's polynomial of degree 16 in six products (Paterson and Stockmeyer, 1973), of the matrix halved until what
// follows is below eps, squared as often again. Of a batch each is as often as it needs.
bool matrix_exp(Call &call) {  // self
  const at::Tensor a = call.tensor(0);
  if (a.scalar_type() == at::kHalf || a.scalar_type() == at::kBFloat16)
    return call.give(at::linalg_matrix_exp(a.to(at::kFloat)).to(a.scalar_type()));
  if (!solvable(a)) return false;
  at::native::squareCheckInputs(a, "linalg.matrix_exp");
  if (a.numel() == 0) return call.give(at::empty_like(a));
  if (a.size(-1) == 1) return call.give(a.exp());
  const double reach = at::toRealValueType(a.scalar_type()) == at::kDouble ? 0.75 : 2.5;  // reach^17 / 17! < eps / 2
  const at::Tensor norm = a.abs().sum(-2, true).amax(-1, true), halvings = norm.div(reach).log2().ceil().clamp(0, 1200);
  const at::Tensor finite = norm.isfinite(), often = at::where(finite, halvings, at::zeros({}, norm.options()));
  // In two steps, as the power may be out of the type's range where the matrix is not.
  const at::Tensor some = often.div(2).floor_(), one = a.mul(at::exp2(some.neg())).mul_(at::exp2(some.sub(often))),
                   two = at::matmul(one, one), three = at::matmul(two, one), four = at::matmul(two, two);
  at::Tensor sum = four.div(std::tgamma(17.0));
  for (int k = 12; k >= 0; k -= 4) {
    sum.add_(one, 1 / std::tgamma(k + 2.0)).add_(two, 1 / std::tgamma(k + 3.0)).add_(three, 1 / std::tgamma(k + 4.0));
    sum.diagonal(0, -2, -1).add_(1 / std::tgamma(k + 1.0));
    if (k > 0) sum = at::matmul(sum, four);
  }
  const int64_t most = often.max().item().toLong();
  for (int64_t i = 0; i < most; i++) sum = at::where(often.gt(static_cast<double>(i)), at::matmul(sum, sum), sum);
  return call.give(sum.masked_fill_(finite.logical_not(), std::numeric_limits<double>::quiet_NaN()));
}

const Single singles[] = {
    {"_linalg_eigh.eigenvalues", eigh_values},
    {"_linalg_svd.U", svd_out},
    {"linalg_matrix_exp", matrix_exp},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(linalg_eigh_stub, &rdna_torch::eigh)
REGISTER_PRIVATEUSE1_DISPATCH(svd_stub, &rdna_torch::svd)
}  // namespace at::native
