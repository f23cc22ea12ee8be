// QR, and what PyTorch makes of it by functions of its own: they check and lay out, and call these by the device's
// type.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/geqrf_native.h>
#include <ATen/ops/linalg_householder_product_native.h>
#include <ATen/ops/linalg_lstsq_native.h>
#include <ATen/ops/linalg_qr_native.h>
#include <ATen/ops/ormqr_native.h>

#include <algorithm>
#include <limits>

#include "complex_matrices.h"
#include "matrices.h"
#include "rdna/op/linalg.h"

namespace rdna_torch {
namespace {

void factor(const at::Tensor &a, const at::Tensor &tau) {
  if (a.numel() == 0) return;
  if (is_complex(a.scalar_type())) return complex_qr(a, tau);
  const at::Tensor matrices = flat_written(a), numbers = flat_vectors(tau);
  const rdna_tensor qr = describe(matrices), t = describe(numbers);
  check(rdna_op_qr(stream_of(a), &qr, &t));
}

// x becomes q x or q^H x.
void reflect(const at::Tensor &a, const at::Tensor &tau, bool transposed, bool upper, const at::Tensor &x) {
  if (x.numel() == 0 || tau.numel() == 0) return;
  if (is_complex(x.scalar_type())) {
    x.copy_(complex_reflected(a, tau, transposed, x));
    return;
  }
  const at::Tensor matrices = flat(a), numbers = flat_vectors(tau.contiguous()), v = flat_written(x);
  const rdna_tensor qr = describe(matrices), t = describe(numbers), to = describe(v);
  check(rdna_op_reflect(stream_of(x), transposed, upper, &qr, &t, &to));
}

at::Tensor &product(at::Tensor &result, const at::Tensor &tau) {
  const at::Tensor vectors = result.clone();
  result.zero_().diagonal(0, -2, -1).fill_(1);
  reflect(vectors, tau, false, true, result);
  return result;
}

void multiply(const at::Tensor &a, const at::Tensor &tau, const at::Tensor &x, bool left, bool transpose) {
  if (left || !is_complex(x.scalar_type()))
    reflect(a, tau, left == transpose, false, left ? x : x.mT());
  else
    x.copy_(complex_reflected(a, tau, !transpose, x.mH()).mH());
}

// The number, from 1, of the first column of r whose diagonal is 0: LAPACK's word for a rank that is not full.
void first_zero(const at::Tensor &r, const at::Tensor &info) {
  const at::Tensor zero = r.diagonal(0, -2, -1).eq(0);
  if (zero.size(-1) == 0) return;
  info.copy_(
      at::where(zero.any(-1), zero.to(at::kInt).argmax(-1).add(1), at::zeros({}, zero.options().dtype(at::kLong)))
          .view_as(info));
}

// The drivers besides gels. PyTorch's function knows that one alone on other devices than the CPU; asked for it, it
// checks and lays out the same, and what else is wanted waits here for the kernel that it calls.
struct Wanted {
  std::string driver;
  at::Tensor rank, singular_values;
};
thread_local Wanted *wanted = nullptr;

// Which singular values count, of those that fall: as LAPACK's drivers have it, each its own way.
at::Tensor counted(const std::string &driver, double rcond, const at::Tensor &s) {
  const double eps = s.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                    : static_cast<double>(std::numeric_limits<float>::epsilon());
  const at::Tensor most = s.narrow(-1, 0, 1);
  if (driver == "gelsy") return at::logical_and(at::ge(s, most * std::clamp(rcond, 0.0, 1.0)), at::gt(s, 0));
  if (driver == "gelss") return at::gt(s, most * (rcond < 0 ? eps : rcond));
  return at::gt(s, most * (rcond <= 0 || rcond >= 1 ? eps / 2 : rcond));
}

// b becomes the solution of the least length, and in its next row, where there is one, the lengths of what is left.
void solve_by_svd(const at::Tensor &a, const at::Tensor &b, double rcond, Wanted &w) {
  const int64_t m = a.size(-2), n = a.size(-1);
  const auto [u, s, vh] = at::linalg_svd(a, false);
  const at::Tensor some = counted(w.driver, rcond, s), right = b.narrow(-2, 0, m);
  w.rank = some.sum(-1);
  w.singular_values = s;
  const at::Tensor parts = at::matmul(u.mH(), right);
  const at::Tensor shares = at::where(some.unsqueeze(-1), parts / s.unsqueeze(-1), at::zeros({}, parts.options()));
  const at::Tensor x = at::matmul(vh.mH(), shares);
  at::Tensor left;
  if (m > n) {  // twice, so that nothing of the columns stays in what is left
    left = right - at::matmul(u, parts);
    left = at::linalg_vector_norm(left - at::matmul(u, at::matmul(u.mH(), left)), 2, at::IntArrayRef{-2});
  }
  b.zero_().narrow(-2, 0, n).copy_(x);
  if (m > n) b.select(-2, n).copy_(left);
}

// b becomes the solution; of more columns than rows that of the least length.
void least_squares(const at::Tensor &a, at::Tensor &b, at::Tensor &, at::Tensor &, at::Tensor &info, double rcond,
                   std::string) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  if (k == 0 && !(wanted && n == 0)) b.zero_();  // as LAPACK does: of no columns gels too
  if (a.numel() == 0) return;
  if (wanted) return solve_by_svd(a, b, rcond, *wanted);
  const at::Tensor qr = m >= n ? a : at::native::cloneBatchedColumnMajor(a.mH());
  std::vector<int64_t> shape = a.sizes().slice(0, a.dim() - 2).vec();
  shape.push_back(k);
  const at::Tensor tau = at::empty(shape, a.options());
  factor(qr, tau);
  const at::Tensor r = qr.narrow(-2, 0, k);
  first_zero(r, info);
  if (m >= n) {
    reflect(qr, tau, true, false, b);
    at::Tensor x = at::native::cloneBatchedColumnMajor(b.narrow(-2, 0, k));
    solve_triangular(r, true, true, false, x);
    b.narrow(-2, 0, k).copy_(x);
  } else {
    at::Tensor x = at::native::cloneBatchedColumnMajor(b.narrow(-2, 0, k));
    solve_triangular(r.mH(), false, true, false, x);
    b.zero_().narrow(-2, 0, k).copy_(x);
    reflect(qr, tau, false, false, b);
  }
}

bool qr(Call &call) {  // A, mode, Q, R
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  Results<at::native::structured_linalg_qr_out, 2> out(call);
  out.meta(a, call[1].toStringView());
  out.impl(a, call[1].toStringView(), out[0], out[1]);
  return out.give();
}

bool geqrf(Call &call) {  // self
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  const auto [r, tau] = at::native::geqrf(a);
  return call.give({r, tau});
}
bool geqrf_out(Call &call) {  // self, a, tau
  const at::Tensor a = call.tensor(0);
  if (!solvable(a)) return false;
  at::Tensor r = call.tensor(1), tau = call.tensor(2);
  at::native::geqrf_out(a, r, tau);
  return call.give({r, tau});
}

bool householder_product(Call &call) {  // input, tau, [out]
  const at::Tensor a = call.tensor(0), tau = call.tensor(1);
  if (!solvable(a)) return false;
  at::Tensor out = call.output();
  if (!out.defined()) return call.give(at::native::linalg_householder_product(a, tau));
  return call.give(at::native::linalg_householder_product_out(a, tau, out));
}

bool ormqr(Call &call) {  // self, input2, input3, left, transpose, [out]
  const at::Tensor a = call.tensor(0), tau = call.tensor(1), x = call.tensor(2);
  if (!solvable(a)) return false;
  at::Tensor out = call.output();
  if (!out.defined()) return call.give(at::native::ormqr(a, tau, x, call.flag(3), call.flag(4)));
  return call.give(at::native::ormqr_out(a, tau, x, call.flag(3), call.flag(4), out));
}

// As PyTorch does on GPUs: the driver is gels where none is named.
bool lstsq(Call &call) {  // self, b, rcond, driver, solution, residuals, rank, singular_values
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  if (!solvable(a)) return false;
  Wanted w{call.none(3) ? "gels" : call[3].toStringRef(), {}, {}};
  std::transform(w.driver.begin(), w.driver.end(), w.driver.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool plain = w.driver == "gels";
  TORCH_CHECK(plain || w.driver == "gelsy" || w.driver == "gelsd" || w.driver == "gelss",
              "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  at::Tensor out[4];
  for (size_t i = 0; i < 4; i++) out[i] = call.tensor(4 + i);
  const auto rcond = call.none(2) ? std::nullopt : std::make_optional(call.real(2));
  {
    struct Waiting {
      explicit Waiting(Wanted *w) { wanted = w; }
      ~Waiting() { wanted = nullptr; }
    } waiting(plain ? nullptr : &w);
    at::Tensor rank = out[2], values = out[3];  // of gels they are empty
    if (!plain) rank = at::empty({0}, rank.options()), values = at::empty({0}, values.options());
    at::native::linalg_lstsq_out(a, b, rcond, "gels", out[0], out[1], rank, values);
  }
  if (plain) return call.give({out[0], out[1], out[2], out[3]});
  const std::vector<int64_t> batch = a.sizes().slice(0, a.dim() - 2).vec();
  std::vector<int64_t> each = batch;
  each.push_back(std::min(a.size(-2), a.size(-1)));
  if (!w.rank.defined()) w.rank = at::zeros(batch, a.options().dtype(at::kLong));
  if (!w.singular_values.defined()) w.singular_values = at::zeros(each, out[3].options());
  at::native::resize_output(out[2], batch);
  out[2].copy_(w.rank);
  const bool by_values = w.driver != "gelsy";
  at::native::resize_output(out[3], by_values ? at::IntArrayRef(each) : at::IntArrayRef{0});
  if (by_values) out[3].copy_(w.singular_values);
  // what is left is known of full ranks alone, as on the CPU
  if (!by_values || (out[1].numel() && at::ne(w.rank, a.size(-1)).any().item().toBool())) out[1].resize_({0});
  return call.give({out[0], out[1], out[2], out[3]});
}

const Single singles[] = {
    {"linalg_qr.out", qr},
    {"geqrf", geqrf},
    {"geqrf.a", geqrf_out},
    {"linalg_householder_product", householder_product},
    {"linalg_householder_product.out", householder_product},
    {"ormqr", ormqr},
    {"ormqr.out", ormqr},
    {"linalg_lstsq.out", lstsq},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(geqrf_stub, &rdna_torch::factor)
REGISTER_PRIVATEUSE1_DISPATCH(orgqr_stub, &rdna_torch::product)
REGISTER_PRIVATEUSE1_DISPATCH(ormqr_stub, &rdna_torch::multiply)
REGISTER_PRIVATEUSE1_DISPATCH(lstsq_stub, &rdna_torch::least_squares)
}  // namespace at::native
