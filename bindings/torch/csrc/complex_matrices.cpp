#include "complex_matrices.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <vector>

#include "matrices.h"

namespace rdna_torch {

at::Tensor real_matrix(const at::Tensor &a) {
  const at::Tensor pairs = at::view_as_real(a.resolve_conj()), re = pairs.select(-1, 0), im = pairs.select(-1, 1);
  std::vector<int64_t> twice = a.sizes().vec();
  twice.end()[-1] *= 2, twice.end()[-2] *= 2;
  return at::stack({at::stack({re, im.neg()}, -1), at::stack({im, re}, -1)}, -3).reshape(twice);
}

at::Tensor complex_matrix(const at::Tensor &real) {
  const at::Tensor columns = real.slice(-1, 0, std::nullopt, 2);
  return at::complex(columns.slice(-2, 0, std::nullopt, 2).contiguous(),
                     columns.slice(-2, 1, std::nullopt, 2).contiguous());
}

namespace {

at::Tensor identity(int64_t n, const at::Tensor &like) { return at::eye(n, like.options()); }

// The reflection that makes a column's values behind its first ones 0, as LAPACK's larfg has it: of |column| (…, rows)
// its new values, which are the first one's and the vector, and its factor (…, 1).
std::pair<at::Tensor, at::Tensor> reflection(const at::Tensor &column) {
  const at::Tensor first = column.narrow(-1, 0, 1), rest = column.narrow(-1, 1, column.size(-1) - 1);
  const at::Tensor pair = at::view_as_real(first.resolve_conj()), re = pair.select(-1, 0), im = pair.select(-1, 1);
  const at::Tensor below = at::linalg_vector_norm(rest, 2, at::IntArrayRef{-1}, true);
  const at::Tensor none = at::logical_and(at::eq(below, 0), at::eq(im, 0));
  const at::Tensor length = at::hypot(below, at::abs(first)), one = at::ones({}, length.options());
  const at::Tensor beta = at::where(none, re, at::where(at::lt(re, 0), length, length.neg()));
  const at::Tensor by = at::where(none, one, beta), factor = at::complex((by - re) / by, im.neg() / by);
  const at::Tensor tau = factor.masked_fill(none, 0);
  const at::Tensor vector = rest / (first - beta).masked_fill(none, 1);
  return {at::cat({beta.to(column.scalar_type()), vector}, -1), tau};
}

// The vectors of reflections, with the ones on their diagonal.
at::Tensor vectors_of(const at::Tensor &a, int64_t count) {
  at::Tensor v = a.narrow(-1, 0, count).tril(-1);
  v.diagonal(0, -2, -1).fill_(1);
  return v;
}

void factor_panel(const at::Tensor &panel, const at::Tensor &tau) {
  const int64_t rows = panel.size(-2), columns = panel.size(-1);
  for (int64_t k = 0; k < std::min(rows, columns); k++) {
    const at::Tensor below = panel.narrow(-2, k, rows - k), column = below.select(-1, k);
    const auto [values, factor] = reflection(column);
    tau.narrow(-1, k, 1).copy_(factor);
    if (k + 1 < columns) {
      const at::Tensor others = below.narrow(-1, k + 1, columns - k - 1);
      at::Tensor v = values.clone();
      v.narrow(-1, 0, 1).fill_(1);
      v = v.unsqueeze(-1);
      others.sub_(at::matmul(v * factor.unsqueeze(-1).conj(), at::matmul(v.mH(), others)));
    }
    column.copy_(values);
  }
}

}  // namespace

// Columns of a panel one by one, what is right of it by products.
void complex_qr(const at::Tensor &a, const at::Tensor &tau) {
  constexpr int64_t kPanel = 32;
  const int64_t m = a.size(-2), n = a.size(-1), count = std::min(m, n);
  at::Tensor size = a.abs().amax({-2, -1}, true);  // squares are computed, which should not leave the type's range
  size = at::where(at::logical_and(at::gt(size, 0), at::isfinite(size)), size, at::ones({}, size.options()));
  at::Tensor w = a / size;
  for (int64_t j = 0; j < count; j += kPanel) {
    const int64_t columns = std::min(kPanel, count - j), right = n - j - columns;
    const at::Tensor rows = w.narrow(-2, j, m - j), panel = rows.narrow(-1, j, columns),
                     factors = tau.narrow(-1, j, columns);
    factor_panel(panel, factors);
    const at::Tensor rest = rows.narrow(-1, j + columns, right);
    if (right) rest.copy_(complex_reflected(panel, factors, true, rest));
  }
  a.copy_(w.tril(-1) + w.triu() * size);
}

// All reflections at once, 1 - v t v^H: t is (1 + diag(tau) s)^-1 diag(tau), with what is above the diagonal of v^H v
// in s (Puglisi, 1992, without the quotients by factors that may be 0).
at::Tensor complex_reflected(const at::Tensor &a, const at::Tensor &tau, bool adjoint, const at::Tensor &x) {
  const at::Tensor v = vectors_of(a, tau.size(-1)), factors = tau.unsqueeze(-1);
  const at::Tensor system = at::matmul(v.mH(), v).triu(1) * factors;
  at::Tensor t = make_columns(system.sizes(), tau.scalar_type(), tau);
  t.zero_().diagonal(0, -2, -1).copy_(tau);
  solve_triangular(system, true, true, true, t);
  return x - at::matmul(v, at::matmul(adjoint ? t.mH() : t, at::matmul(v.mH(), x)));
}

namespace {

// x, whose columns are nearly orthogonal and of length 1, with columns that are, each hardly elsewhere.
at::Tensor straightened(at::Tensor x) {
  for (int i = 0; i < 3; i++) {
    const at::Tensor off = identity(x.size(-1), x) - at::matmul(x.mH(), x);
    x = x + at::matmul(x, off) / 2;
  }
  return x;
}

// n of the columns of x (…, n, 2 n), each the one that is most out of the space of those before it.
at::Tensor chosen_columns(const at::Tensor &x) {
  const int64_t n = x.size(-2);
  at::Tensor left = x.clone();
  std::vector<at::Tensor> vectors, places;
  for (int64_t k = 0; k < n; k++) {
    const at::Tensor place = at::linalg_vector_norm(left, 2, at::IntArrayRef{-2}).argmax(-1, true);
    std::vector<int64_t> one = left.sizes().vec();
    one.back() = 1;
    const at::Tensor column = left.gather(-1, place.unsqueeze(-2).expand(one));
    const at::Tensor vector = column / at::linalg_vector_norm(column, 2, at::IntArrayRef{-2}, true);
    left.sub_(at::matmul(vector, at::matmul(vector.mH(), left)));
    vectors.push_back(vector);
    places.push_back(place);
  }
  const at::Tensor basis = at::cat(vectors, -1), order = at::cat(places, -1).argsort(-1, false);
  return basis.gather(-1, order.unsqueeze(-2).expand(basis.sizes()));
}

}  // namespace

at::Tensor complex_basis(const at::Tensor &v) {
  const int64_t n = v.size(-1) / 2;
  std::vector<int64_t> shape = v.sizes().vec();
  shape.end()[-2] = n;
  shape.insert(shape.end() - 1, 2);
  const at::Tensor x = at::view_as_complex(v.reshape(shape).transpose(-1, -2).contiguous());
  if (n == 0) return x.narrow(-1, 0, 0);
  // Of a value that stands alone the two are the same but for a phase; of values that are alike they may be any.
  const at::Tensor every_second = x.slice(-1, 0, std::nullopt, 2);
  const at::Tensor off = at::matmul(every_second.mH(), every_second) - identity(n, x);
  const bool apart = at::lt(off.abs(), 1e-2).all().item().toBool();
  return straightened(apart ? every_second : chosen_columns(x));
}

}  // namespace rdna_torch
