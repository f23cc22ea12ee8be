// Products of sparse matrices, by coordinates or in rows, with dense ones: bags of the dense one's rows, each with a
// weight.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/SparseTensorUtils.h>

#include <algorithm>

#include "sparse_kernels.h"

namespace rdna_torch {
namespace {

Entries transposed(const Entries &e) { return {e.n, e.m, e.columns, e.rows, e.values, {}}; }

}  // namespace

std::optional<Entries> entries_of(const at::Tensor &t) {
  if (t.dim() != 2) return {};
  const int64_t m = t.size(0), n = t.size(1);
  if (t.layout() == at::kSparse) {
    if (t.sparse_dim() != 2) return {};
    const at::Tensor indices = t._indices();
    Entries e{m, n, indices.select(0, 0), indices.select(0, 1), t._values(), {}};
    if (t.is_coalesced()) e.starts = at::searchsorted(e.rows.contiguous(), at::arange(m + 1, indices.options()));
    return e;
  }
  const bool by_rows = t.layout() == at::kSparseCsr;
  if ((!by_rows && t.layout() != at::kSparseCsc) || t.values().dim() != 1) return {};
  const at::Tensor starts = by_rows ? t.crow_indices() : t.ccol_indices(),
                   plain = by_rows ? t.col_indices() : t.row_indices();
  const Entries e{by_rows ? m : n, by_rows ? n : m, rows_of(starts, t._nnz()).to(plain.scalar_type()),
                  plain,           t.values(),      starts};
  return by_rows ? e : transposed(e);
}

void sort_rows(Entries &e) {
  const auto [rows, order] = e.rows.sort(true, 0, false);
  e = {e.m,
       e.n,
       rows,
       e.columns.index_select(0, order),
       e.values.index_select(0, order),
       at::searchsorted(rows.contiguous(), at::arange(e.m + 1, rows.options()))};
}

namespace {

// f of so many entries at a time that each has |width| values and all some 2^24.
template <class F>
void by_entries(int64_t count, int64_t width, F f) {
  const int64_t most = std::max<int64_t>(1, (int64_t{1} << 24) / std::max<int64_t>(1, width));
  for (int64_t i = 0; i < count; i += most) f(i, std::min(most, count - i));
}

// (m, k) of (n, k).
at::Tensor product(Entries e, const at::Tensor &dense) {
  const int64_t k = dense.size(1);
  at::Tensor out = at::zeros({e.m, k}, dense.options());
  if (e.count() == 0 || k == 0) return out;
  if (is_real(dense.scalar_type())) {
    if (!e.starts.defined()) sort_rows(e);
    return std::get<0>(at::_embedding_bag_forward_only(dense, e.columns, e.starts.to(e.columns.scalar_type()), false, 0,
                                                       false, e.values, true, -1));
  }
  by_entries(e.count(), k, [&](int64_t i, int64_t n) {
    const at::Tensor rows = dense.index_select(0, e.columns.narrow(0, i, n));
    out.index_add_(0, e.rows.narrow(0, i, n), rows * e.values.narrow(0, i, n).unsqueeze(1));
  });
  return out;
}

// Of two matrices one of which is sparse; undefined where that is not for these.
at::Tensor product_of(const at::Tensor &a, const at::Tensor &b) {
  const bool first = b.layout() == at::kStrided;
  if ((a.layout() == at::kStrided) == first || a.scalar_type() != b.scalar_type() || a.device() != b.device())
    return {};
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0)) return {};
  if (!is_real(a.scalar_type()) && !is_integer(a.scalar_type()) && !is_complex(a.scalar_type())) return {};
  if (a.scalar_type() == at::kBool) return {};
  const auto e = entries_of(first ? a : b);
  if (!e) return {};
  return first ? product(*e, b) : product(transposed(*e), a.t()).t().contiguous();
}

at::Tensor added(const at::Tensor &self, const at::Tensor &product, const at::Scalar &beta, const at::Scalar &alpha) {
  const at::Tensor some = alpha.equal(1) ? product : at::mul(product, alpha);
  return beta.equal(0) ? some : at::add(some, beta.equal(1) ? self : at::mul(self, beta));
}

// beta and alpha
bool keep(const Call &call, at::ScalarType type) { return keeps(type, call.scalar(3)) && keeps(type, call.scalar(4)); }

bool give(Call &call, const at::Tensor &value) {
  const at::Tensor given = call.output();
  if (given.defined() && (given.layout() != at::kStrided || given.scalar_type() != value.scalar_type())) return false;
  return give_or_write(call, value);
}

bool mm(Call &call) {  // self, mat2, [out]
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  if (a.layout() != at::kStrided && b.layout() != at::kStrided) {
    const at::Tensor value = call.output().defined() ? at::Tensor() : sparse_product(a, b);
    return value.defined() && call.give(value);
  }
  const at::Tensor value = product_of(a, b);
  return value.defined() && give(call, value);
}

bool addmm(Call &call) {  // self, mat1, mat2, beta, alpha, [out]
  const at::Tensor self = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  if (self.layout() != at::kStrided || self.scalar_type() != a.scalar_type() || !keep(call, a.scalar_type()))
    return false;
  if (a.dim() != 2 || b.dim() != 2 || !at::is_expandable_to(self.sizes(), {a.size(0), b.size(1)})) return false;
  const at::Tensor value = product_of(a, b);
  return value.defined() && give(call, added(self, value, call.scalar(3), call.scalar(4)));
}

bool addmv(Call &call) {  // self, mat, vec, beta, alpha, out
  const at::Tensor self = call.tensor(0), a = call.tensor(1), x = call.tensor(2);
  if (self.layout() != at::kStrided || self.scalar_type() != a.scalar_type() || x.dim() != 1 || a.dim() != 2)
    return false;
  if (!at::is_expandable_to(self.sizes(), {a.size(0)}) || !keep(call, a.scalar_type())) return false;
  const at::Tensor value = product_of(a, x.unsqueeze(1));
  return value.defined() && give(call, added(self, value.squeeze(1), call.scalar(3), call.scalar(4)));
}

bool mv(Call &call) {  // self, vec
  const at::Tensor x = call.tensor(1), value = x.dim() == 1 ? product_of(call.tensor(0), x.unsqueeze(1)) : at::Tensor();
  return value.defined() && call.give(value.squeeze(1));
}

// What a product has in rows that have entries, and self's: as on the CPU, not summed by places.
bool sspaddmm(Call &call) {  // self, mat1, mat2, beta, alpha, out
  const at::Tensor self = call.tensor(0), a = call.tensor(1), b = call.tensor(2), out = call.output();
  for (const at::Tensor &t : {self, a})
    if (!t.is_sparse() || t.sparse_dim() != 2 || t.dim() != 2) return false;
  if (!out.is_sparse() || b.layout() != at::kStrided || self.size(0) != a.size(0) || self.size(1) != b.size(-1))
    return false;
  if (self.scalar_type() != a.scalar_type() || out.scalar_type() != a.scalar_type() || !keep(call, a.scalar_type()))
    return false;
  const at::Tensor whole = product_of(a, b);
  if (!whole.defined()) return false;
  const at::Tensor rows = std::get<0>(at::_unique(a._indices().select(0, 0))),
                   columns = at::arange(b.size(1), rows.options());
  const int64_t count = rows.size(0) * columns.size(0);
  const at::Tensor places =
      at::stack({rows.unsqueeze(1).expand({-1, columns.size(0)}).reshape({count}), columns.repeat({rows.size(0)})});
  const at::Tensor values = at::mul(whole.index_select(0, rows).reshape({count}), call.scalar(4)).to(a.scalar_type());
  const at::Tensor mine = at::mul(self._values(), call.scalar(3)).to(a.scalar_type()),
                   indices = at::cat({self._indices(), places}, 1);
  auto *parts = at::sparse::get_sparse_impl(out);
  parts->raw_resize_(2, 0, self.sizes());
  parts->set_indices_and_values_unsafe(indices, at::cat({mine, values}));
  parts->set_coalesced(false);
  return call.give(out);
}

// --- compressed rows alone

bool by_rows(const at::Tensor &t) { return t.layout() == at::kSparseCsr && t.dim() == 2 && t.values().dim() == 1; }

at::Tensor with_values(const at::Tensor &like, const at::Tensor &values) {
  return at::_sparse_csr_tensor_unsafe(like.crow_indices(), like.col_indices(), values, like.sizes(),
                                       values.scalar_type(), at::kSparseCsr, like.device(), std::nullopt);
}

// A row of |a| with one of |b| for each entry: the sums of their products.
at::Tensor sums_of_rows(const at::Tensor &a, const at::Tensor &rows, const at::Tensor &b, const at::Tensor &columns) {
  const at::Tensor out = at::empty(rows.sizes(), a.options());
  by_entries(rows.size(0), a.size(1), [&](int64_t i, int64_t n) {
    const at::Tensor x = a.index_select(0, rows.narrow(0, i, n)), y = b.index_select(0, columns.narrow(0, i, n));
    out.narrow(0, i, n).copy_(at::matmul(x.unsqueeze(1), y.unsqueeze(2)).flatten());
  });
  return out;
}

at::Tensor sampled(const Call &call) {  // self, mat1, mat2, beta, alpha
  const at::Tensor self = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  if (!by_rows(self) || a.layout() != at::kStrided || b.layout() != at::kStrided || a.dim() != 2 || b.dim() != 2)
    return {};
  if (a.size(0) != self.size(0) || b.size(1) != self.size(1) || a.size(1) != b.size(0)) return {};
  if (a.scalar_type() != self.scalar_type() || b.scalar_type() != a.scalar_type()) return {};
  if ((!is_real(a.scalar_type()) && !is_complex(a.scalar_type())) || !keep(call, a.scalar_type())) return {};
  for (const at::Tensor &t : {a, b})
    if (t.device() != self.device()) return {};
  const Entries e = *entries_of(self);
  at::Tensor found;
  if (e.count() * 4 >= e.m * e.n)  // so many of them that the whole product is less work
    found = at::mm(a, b).flatten().index_select(0, e.rows * e.n + e.columns);
  else
    found = sums_of_rows(a, e.rows, b.t(), e.columns);
  return with_values(self, added(e.values, found, call.scalar(3), call.scalar(4)).to(self.scalar_type()));
}

bool sampled_addmm(Call &call) {
  const at::Tensor value = sampled(call);
  return value.defined() && call.give(value);
}
bool sampled_addmm_out(Call &call) {
  const at::Tensor value = sampled(call), out = call.output();
  if (!value.defined() || !by_rows(out) || out.scalar_type() != value.scalar_type()) return false;
  at::sparse_csr::get_sparse_csr_impl(out)->set_member_tensors(value.crow_indices(), value.col_indices(),
                                                               value.values(), value.sizes());
  return call.give(out);
}

at::Tensor lengths(const Entries &e, const at::Tensor &like) {
  const at::Tensor count = e.starts.narrow(0, 1, e.m) - e.starts.narrow(0, 0, e.m);
  return at::clamp_min(count, 1).to(like.scalar_type()).unsqueeze(1);
}

// The least or largest of a row's products, and which entry has it: that many as there are where none has.
std::pair<at::Tensor, at::Tensor> extremes(const Entries &e, const at::Tensor &b, bool largest) {
  const int64_t count = e.count(), k = b.size(1);
  const at::Tensor rows = e.rows.to(at::kLong), products = b.index_select(0, e.columns) * e.values.unsqueeze(1);
  const at::Tensor out = at::zeros({e.m, k}, b.options());
  out.index_reduce_(0, rows, products, largest ? "amax" : "amin", false);
  const at::Tensor best = out.index_select(0, rows), is = at::logical_or(at::eq(products, best), at::isnan(products));
  const at::Tensor number = at::arange(count, rows.options()).unsqueeze(1);
  const at::Tensor which = at::full({e.m, k}, count, rows.options());
  which.index_reduce_(0, rows, at::where(is, number, at::full({}, count, rows.options())), "amin", true);
  return {out, which};
}

bool reduced_product(Call &call) {  // self, other, reduce
  const at::Tensor self = call.tensor(0), b = call.tensor(1);
  const std::string how = call[2].toStringRef();
  if (!by_rows(self) || b.layout() != at::kStrided || b.dim() != 2 || self.size(1) != b.size(0)) return false;
  if (!is_real(b.scalar_type()) || self.scalar_type() != b.scalar_type() || self.device() != b.device()) return false;
  const Entries e = *entries_of(self);
  const at::Tensor none = at::empty({0}, e.columns.options());
  if (how == "sum") return call.give({product(e, b), none});
  if (how == "mean") return call.give({product(e, b) / lengths(e, b), none});
  if (how != "amax" && how != "amin") return false;
  if (e.count() == 0 || b.numel() == 0)
    return call.give({at::zeros({e.m, b.size(1)}, b.options()), at::zeros({e.m, b.size(1)}, none.options())});
  const auto [out, which] = extremes(e, b, how == "amax");
  return call.give({out, which.to(none.scalar_type())});
}

bool reduced_product_backward(Call &call) {  // self, grad_out, weight, reduce, arg_out, output_mask
  const at::Tensor self = call.tensor(0), b = call.tensor(2);
  at::Tensor grad = call.tensor(1);
  const std::string how = call[3].toStringRef();
  const std::vector<bool> wanted = call[5].toBoolList().vec();
  if (!by_rows(self) || b.layout() != at::kStrided || grad.layout() != at::kStrided || !is_real(b.scalar_type()))
    return false;
  const Entries e = *entries_of(self);
  at::Tensor of_values, of_b;
  if (how == "sum" || how == "mean") {
    if (how == "mean") grad = grad / lengths(e, grad);
    if (wanted[0]) of_values = sums_of_rows(grad, e.rows, b, e.columns);
    if (wanted[1]) of_b = product(transposed(e), grad);
  } else {  // each value's goes to the one entry that it is of, if to any
    const at::Tensor which = call.tensor(4).to(at::kLong).clamp_max(std::max<int64_t>(e.count() - 1, 0));
    const at::Tensor there = at::lt(call.tensor(4), e.count());
    if (e.count() == 0) {
      of_values = at::zeros({0}, b.options()), of_b = at::zeros_like(b);
    } else {
      const at::Tensor columns = e.columns.to(at::kLong).index_select(0, which.flatten()).view(which.sizes());
      const at::Tensor some = at::where(there, grad, at::zeros({}, grad.options()));
      if (wanted[0])
        of_values = at::zeros({e.count()}, b.options())
                        .scatter_add_(0, which.flatten(), (some * b.gather(0, columns)).flatten());
      if (wanted[1])
        of_b = at::zeros_like(b).scatter_add_(0, columns,
                                              some * e.values.index_select(0, which.flatten()).view(which.sizes()));
    }
  }
  return call.give({wanted[0] ? with_values(self, of_values) : at::Tensor(), wanted[1] ? of_b : at::Tensor()});
}

bool compressed_to_dense(Call &call) {  // self, dtype?, masked_grad?
  const at::Tensor t = call.tensor(0);
  const at::ScalarType type = call.type(1).value_or(t.scalar_type());
  const auto e = entries_of(t);
  if (!e || !(has_dtype(type) || is_complex(type)) || !(has_dtype(t.scalar_type()) || is_complex(t.scalar_type())))
    return false;
  const at::Tensor places = t.layout() == at::kSparseCsr || t.layout() == at::kSparseCsc
                                ? e->rows.to(at::kLong) * t.size(1) + e->columns
                                : at::Tensor();
  const at::Tensor out = at::zeros({t.numel()}, t.values().options());
  if (e->count()) out.index_copy_(0, places, e->values);
  return call.give(out.view(t.sizes()).to(type));
}

at::Tensor values_at(const at::Tensor &dense, const Entries &e) {
  if (e.count() == 0) return at::empty({0}, dense.options());
  return dense.reshape({-1}).index_select(0, e.rows.to(at::kLong) * e.n + e.columns);
}

bool multiply(Call &call) {  // self, other
  const bool first = call.tensor(0).layout() != at::kStrided;
  const at::Tensor t = call.tensor(first ? 0 : 1), other = call.tensor(first ? 1 : 0);
  if (by_rows(t) && by_rows(other) && t.sizes() == other.sizes()) {
    const at::ScalarType type = at::promoteTypes(t.scalar_type(), other.scalar_type());
    return call.give(at::mul(t.to_sparse().to(type), other.to_sparse().to(type)).to_sparse_csr());
  }
  if (!by_rows(t) || other.layout() != at::kStrided) return false;
  if (other.dim() == 0) return call.give(with_values(t, at::mul(t.values(), other)));
  if (other.sizes() != t.sizes() || other.device() != t.device()) return false;
  return call.give(with_values(t, at::mul(t.values(), values_at(other, *entries_of(t)))));
}

bool multiply_by_number(Call &call) {  // self, other
  const at::Tensor t = call.tensor(0);
  return by_rows(t) && call.give(with_values(t, at::mul(t.values(), call.scalar(1))));
}

bool sum(Call &call) {  // self, dtype?
  return by_rows(call.tensor(0)) && call.give(at::sum(call.tensor(0).values(), call.type(1)));
}

bool compressed_mask(Call &call) {  // self, mask
  const at::Tensor dense = call.tensor(0), t = call.tensor(1);
  if (by_rows(dense) && by_rows(t) && dense.sizes() == t.sizes())
    return call.give(with_values(t, values_where(dense.to_sparse(), places_of(t.to_sparse()))));
  if (dense.layout() != at::kStrided || !by_rows(t) || dense.sizes() != t.sizes()) return false;
  return call.give(with_values(t, values_at(dense, *entries_of(t))));
}

const Single coo[] = {
    {"mm", mm},        {"mm.out", mm}, {"addmm", addmm},           {"addmm.out", addmm},
    {"addmm_", addmm}, {"mv", mv},     {"sspaddmm.out", sspaddmm},
};
const Single compressed[] = {
    {"mm", mm},
    {"mm.out", mm},
    {"addmm", addmm},
    {"addmm.out", addmm},
    {"addmv.out", addmv},
    {"mv", mv},
    {"sparse_sampled_addmm", sampled_addmm},
    {"sparse_sampled_addmm.out", sampled_addmm_out},
    {"_sparse_mm_reduce_impl", reduced_product},
    {"_sparse_mm_reduce_impl_backward", reduced_product_backward},
    {"_to_dense", compressed_to_dense},
    {"sparse_mask", compressed_mask},
    {"mul.Tensor", multiply},
    {"mul.Scalar", multiply_by_number},
    {"sum", sum},
};

}  // namespace

void add_coo_products(torch::Library &m) { add(m, coo); }
void add_compressed_products(torch::Library &m) { add(m, compressed); }

}  // namespace rdna_torch
