// Sparse tensors by coordinates: sums of entries of one place, dense ones of them and the other way, sums and products
// with others of the same shape. Entries are rows of a matrix whose rows are the places.
#include <ATen/Functions.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/result_type.h>

#include "sparse_kernels.h"

namespace rdna_torch {

at::Tensor flat_places(const at::Tensor &indices, at::IntArrayRef sizes) {
  at::Tensor flat = indices.select(0, 0);
  for (int64_t d = 1; d < indices.size(0); d++) flat = flat * sizes[static_cast<size_t>(d)] + indices.select(0, d);
  return flat;
}

at::Tensor rows_of(const at::Tensor &starts, int64_t count) {
  return at::searchsorted(starts.contiguous(), at::arange(count, starts.options()), false, true).sub_(1);
}

namespace {

bool sums(at::ScalarType type) { return (has_dtype(type) && type != at::kBool) || is_complex(type); }

at::IntArrayRef sparse_sizes(const at::Tensor &t) { return t.sizes().slice(0, static_cast<size_t>(t.sparse_dim())); }

// Rows of |values| added to rows of |out|; of 16 bits in 32, as there may be many of a place.
void add_rows(const at::Tensor &out, const at::Tensor &places, const at::Tensor &values) {
  const bool narrow = out.scalar_type() == at::kHalf || out.scalar_type() == at::kBFloat16;
  const at::Tensor to = narrow ? out.to(at::kFloat) : out;
  to.index_add_(0, places, values.to(to.scalar_type()));
  if (narrow) out.copy_(to);
}

// (places, …) of (rows of |sizes|, dense dimensions).
std::vector<int64_t> flat_shape(const at::Tensor &sparse) {
  std::vector<int64_t> shape{c10::multiply_integers(sparse_sizes(sparse))};
  for (int64_t d = sparse.sparse_dim(); d < sparse.dim(); d++) shape.push_back(sparse.size(d));
  return shape;
}

at::Tensor with_parts(const at::Tensor &indices, const at::Tensor &values, const at::Tensor &like, bool coalesced) {
  return at::_sparse_coo_tensor_unsafe(indices, values, like.sizes(), like.options().dtype(values.scalar_type()),
                                       coalesced);
}

bool coalesce(Call &call) {  // self
  const at::Tensor t = call.tensor(0), indices = t._indices(), values = t._values();
  if (t.is_coalesced()) return call.give(t);
  const int64_t count = t._nnz();
  if (count < 2) return call.give(with_parts(indices.clone(), values.clone(), t, true));
  if (!sums(values.scalar_type()) || t.sparse_dim() == 0) return false;
  const auto [places, order] = flat_places(indices, sparse_sizes(t)).sort(true, 0, false);
  const at::Tensor begins = at::ones({count}, places.options().dtype(at::kBool));
  begins.narrow(0, 1, count - 1).copy_(at::ne(places.narrow(0, 1, count - 1), places.narrow(0, 0, count - 1)));
  const at::Tensor first = begins.nonzero().flatten(), number = begins.cumsum(0).sub_(1);
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = first.size(0);
  const at::Tensor sums = at::zeros(shape, values.options());
  add_rows(sums, number, values.index_select(0, order));
  return call.give(with_parts(indices.index_select(1, order.index_select(0, first)), sums, t, true));
}

bool to_dense(Call &call) {  // self, dtype?, masked_grad?
  const at::Tensor t = call.tensor(0), values = t._values();
  const at::ScalarType type = call.type(1).value_or(values.scalar_type());
  if (!sums(values.scalar_type()) || t.sparse_dim() == 0) return false;
  const at::Tensor out = at::zeros(flat_shape(t), values.options());
  if (t._nnz() && out.numel()) {
    const at::Tensor places = flat_places(t._indices(), sparse_sizes(t));
    if (t.is_coalesced())
      out.index_copy_(0, places, values);
    else
      add_rows(out, places, values);
  }
  return call.give(out.view(t.sizes()).to(type));
}

// What |dense| has where |sparse| has entries, as its values.
at::Tensor values_at(const at::Tensor &dense, const at::Tensor &sparse) {
  return dense.reshape(flat_shape(sparse)).index_select(0, flat_places(sparse._indices(), sparse_sizes(sparse)));
}

bool fits(const at::Tensor &dense, const at::Tensor &sparse) {
  return dense.layout() == at::kStrided && sparse.layout() == at::kSparse && dense.device() == sparse.device() &&
         dense.sizes() == sparse.sizes() && sparse.sparse_dim() > 0 && dense.numel() > 0;
}

bool mask(Call &call) {  // self, mask
  const at::Tensor dense = call.tensor(0), t = call.tensor(1);
  if (same_places(dense, t)) {
    if (dense.is_same(t)) return call.give(t);
    return call.give(with_parts(t._indices().clone(), values_where(dense, places_of(t)), t.to(dense.scalar_type()),
                                t.is_coalesced()));
  }
  if (!fits(dense, t)) return false;
  return call.give(with_parts(t._indices().clone(), values_at(dense, t), t.to(dense.scalar_type()), t.is_coalesced()));
}

// What |self| has where the mask has entries, too; with |accumulate| as often as it has.
bool mask_projection(Call &call) {  // self, mask, accumulate_matches
  const at::Tensor self = call.tensor(0), t = call.tensor(1);
  if (!same_places(self, t)) return false;
  const at::Tensor ones = at::ones({t._nnz()}, t._values().options().dtype(at::kDouble));
  const at::Tensor marks =
      at::_sparse_coo_tensor_unsafe(t._indices(), ones, sparse_sizes(t), ones.options(), t.is_coalesced());
  at::Tensor count = values_where(marks, places_of(self));
  if (!call.flag(2)) count = at::gt(count, 0);
  std::vector<int64_t> shape(static_cast<size_t>(self._values().dim()), 1);
  shape[0] = self._nnz();
  const at::Tensor values = self._values() * count.to(self.scalar_type()).view(shape);
  return call.give(with_parts(self._indices().clone(), values, self, self.is_coalesced()));
}

// self becomes |value|, a sparse tensor.
void become(const at::Tensor &self, const at::Tensor &value) {
  auto *parts = at::sparse::get_sparse_impl(self);
  parts->raw_resize_(value.sparse_dim(), value.dense_dim(), value.sizes());
  parts->set_indices_and_values_unsafe(value._indices(), value._values());
  parts->set_coalesced(value.is_coalesced());
}

bool add_dense(Call &call, const at::Tensor &dense, const at::Tensor &t, const at::Scalar &alpha) {
  if (!fits(dense, t) || dense.scalar_type() != t.scalar_type() || !sums(t.scalar_type()) ||
      !keeps(t.scalar_type(), alpha))
    return false;
  const bool here = call.in_place();
  if (here && !dense.is_contiguous()) return false;
  const at::Tensor out = here ? dense : dense.clone(at::MemoryFormat::Contiguous);
  if (t._nnz())
    add_rows(out.view(flat_shape(t)), flat_places(t._indices(), sparse_sizes(t)),
             at::mul(t._values(), alpha).to(t.scalar_type()));
  return call.give(out);
}

bool add(Call &call) {  // self, other, alpha
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  if (a.layout() == at::kStrided) return add_dense(call, a, b, call.scalar(2));
  if (a.layout() != at::kSparse || b.layout() != at::kSparse || a.device() != b.device() || a.sizes() != b.sizes() ||
      a.scalar_type() != b.scalar_type() || a.sparse_dim() != b.sparse_dim() || !sums(a.scalar_type()) ||
      !keeps(a.scalar_type(), call.scalar(2)))
    return false;
  const at::Tensor more = at::mul(b._values(), call.scalar(2)).to(a.scalar_type());
  at::Tensor sum = with_parts(at::cat({a._indices(), b._indices()}, 1), at::cat({a._values(), more}), a, false);
  if (a.is_coalesced() && b.is_coalesced()) sum = at::_coalesce(sum);
  if (!call.in_place()) return call.give(sum);
  become(a, sum);
  return call.give(a);
}

bool multiply(Call &call) {  // self, other
  const bool first = call.tensor(0).is_sparse();
  const at::Tensor t = call.tensor(first ? 0 : 1), other = call.tensor(first ? 1 : 0), values = t._values();
  if (!sums(values.scalar_type())) return false;
  if (same_places(t, other) && other.scalar_type() == t.scalar_type()) {
    // the one that may name places twice stays as it is
    const bool turned = t.is_coalesced() && (!other.is_coalesced() || other._nnz() < t._nnz());
    const at::Tensor &each = turned ? other : t, &found = turned ? t : other;
    const at::Tensor product = products_where(each._values(), found, places_of(each));
    return call.give(with_parts(each._indices().clone(), product, each, each.is_coalesced()));
  }
  if (other.layout() != at::kStrided) return false;
  at::Tensor product;
  if (other.dim() == 0)
    product = at::mul(values, other);
  else if (fits(other, t) && other.scalar_type() == t.scalar_type())
    product = at::mul(values, values_at(other, t));
  else
    return false;
  return call.give(with_parts(t._indices().clone(), product, t, t.is_coalesced()));
}

bool sum(Call &call) {  // self, dtype?
  const at::Tensor values = call.tensor(0)._values();
  return sums(values.scalar_type()) && call.give(at::sum(values, call.type(1)));
}

const Single singles[] = {
    {"_coalesce", coalesce},
    {"_to_dense", to_dense},
    {"sparse_mask", mask},
    {"add.Tensor", add},
    {"_sparse_mask_projection", mask_projection},
    {"add_.Tensor", add},
    {"mul.Tensor", multiply},
    {"sum", sum},
};

}  // namespace

void add_coo_forms(torch::Library &m) { rdna_torch::add(m, singles); }

}  // namespace rdna_torch
