// Two sparse tensors: products of matrices, and what one has at the other's places.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "sparse_kernels.h"

namespace rdna_torch {

// An entry of |a| in column k meets all of row k of |b|: what comes of it are as many products, which are then sorted
// by their places and summed. How many there are the host must know.
at::Tensor sparse_product(const at::Tensor &a, const at::Tensor &b) {
  const at::ScalarType type = a.scalar_type();
  if ((!is_real(type) && !is_complex(type)) || b.scalar_type() != type || a.device() != b.device()) return {};
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0)) return {};
  const bool coordinates = a.is_sparse();
  if (coordinates != b.is_sparse()) return {};
  auto x = entries_of(coordinates ? a.coalesce() : a), y = entries_of(coordinates ? b.coalesce() : b);
  if (!x || !y || x->values.dim() != 1 || y->values.dim() != 1) return {};
  if (!y->starts.defined()) sort_rows(*y);
  const at::Tensor starts = y->starts.to(at::kLong), from = x->columns.to(at::kLong);
  const at::Tensor begins = starts.index_select(0, from),
                   counts = starts.narrow(0, 1, y->m).index_select(0, from) - begins;
  const at::Tensor ends = counts.cumsum(0);
  const int64_t count = x->count() ? ends.narrow(0, x->count() - 1, 1).item().toLong() : 0;
  const at::Tensor entry = at::repeat_interleave(counts, std::optional<int64_t>(count));
  const at::Tensor place = at::arange(count, ends.options()) + (begins + counts - ends).index_select(0, entry);
  // of 16 bits in 32, as there may be many of a place
  const at::ScalarType wide = is_float(type) ? at::kFloat : type;
  const at::Tensor values = x->values.to(wide).index_select(0, entry) * y->values.to(wide).index_select(0, place);
  const at::Tensor indices =
      at::stack({x->rows.to(at::kLong).index_select(0, entry), y->columns.to(at::kLong).index_select(0, place)});
  const at::Tensor sums =
      at::_sparse_coo_tensor_unsafe(indices, values, {x->m, y->n}, values.options(), false).coalesce();
  const at::Tensor product = wide == type ? sums : sums.to(type);
  return coordinates ? product : product.to_sparse_csr();
}

bool same_places(const at::Tensor &a, const at::Tensor &b) {
  return a.layout() == at::kSparse && b.layout() == at::kSparse && a.device() == b.device() && a.sizes() == b.sizes() &&
         a.sparse_dim() == b.sparse_dim() && a.sparse_dim() > 0;
}

at::Tensor places_of(const at::Tensor &t) {
  return flat_places(t._indices(), t.sizes().slice(0, static_cast<size_t>(t.sparse_dim())));
}

// f of what |given| has at the places, zeros where it has no entry.
template <class F>
static at::Tensor where_there(const at::Tensor &given, const at::Tensor &places, F f) {
  const at::Tensor t = given.coalesce(), values = t._values();
  std::vector<int64_t> shape = values.sizes().vec(), column(shape.size(), 1);
  shape[0] = column[0] = places.size(0);
  if (t._nnz() == 0 || shape[0] == 0) return at::zeros(shape, values.options());
  const at::Tensor there = places_of(t).contiguous();
  const at::Tensor at = at::searchsorted(there, places).clamp_max_(t._nnz() - 1);
  const at::Tensor is = at::eq(there.index_select(0, at), places).view(column);
  return at::where(is, f(values.index_select(0, at)), at::zeros({}, values.options()));
}

at::Tensor values_where(const at::Tensor &t, const at::Tensor &places) {
  return where_there(t, places, [](const at::Tensor &values) { return values; });
}

at::Tensor products_where(const at::Tensor &by, const at::Tensor &t, const at::Tensor &places) {
  return where_there(t, places, [&](const at::Tensor &values) { return at::mul(by, values); });
}

namespace {

bool matmul(Call &call) {  // self, other
  const at::Tensor value = sparse_product(call.tensor(0), call.tensor(1));
  return value.defined() && call.give(value);
}

// The entries of a sparse tensor that differ in dimension |dim| alone are a group: its number for each, and how many
// there are.
struct Groups {
  at::Tensor number;
  int64_t count;
  at::Tensor sums(const at::Tensor &values) const {
    std::vector<int64_t> shape = values.sizes().vec();
    shape[0] = count;
    return at::zeros(shape, values.options()).index_add_(0, number, values).index_select(0, number);
  }
  at::Tensor largest(const at::Tensor &values) const {
    std::vector<int64_t> shape = values.sizes().vec();
    shape[0] = count;
    return at::empty(shape, values.options()).index_reduce_(0, number, values, "amax", false).index_select(0, number);
  }
};
Groups groups_of(const at::Tensor &t, int64_t dim) {
  const at::Tensor indices = t._indices().clone();
  indices.select(0, dim).zero_();
  const auto [keys, number] =
      at::_unique(flat_places(indices, t.sizes().slice(0, static_cast<size_t>(t.sparse_dim()))), true, true);
  return {number, keys.size(0)};
}

at::Tensor with_values(const at::Tensor &like, const at::Tensor &values) {
  return at::_sparse_coo_tensor_unsafe(like._indices().clone(), values, like.sizes(),
                                       like.options().dtype(values.scalar_type()), true);
}

// Of the entries alone: what is not there has no share.
bool softmax(Call &call, bool log) {  // self, dim, half_to_float
  if (!is_real(call.tensor(0).scalar_type()) || call.flag(2)) return false;
  const at::Tensor t = call.tensor(0).coalesce(), values = t._values();
  const int64_t dim = wrap(call.integer(1), t.dim());
  if (dim >= t.sparse_dim()) {
    const int64_t d = dim - t.sparse_dim() + 1;
    return call.give(with_values(t, log ? at::log_softmax(values, d) : at::softmax(values, d)));
  }
  if (values.numel() == 0) return call.give(with_values(t, values.clone()));
  const Groups groups = groups_of(t, dim);
  const at::Tensor x = wide(values), rest = x - groups.largest(x), shares = at::exp(rest), sum = groups.sums(shares);
  return call.give(with_values(t, (log ? rest - at::log(sum) : shares / sum).to(values.scalar_type())));
}

bool softmax_backward(Call &call, bool log) {  // grad_output, output, dim, self
  const at::Tensor grad = call.tensor(0);
  if (!is_real(call.tensor(1).scalar_type()) || !same_places(grad, call.tensor(1)) ||
      grad.scalar_type() != call.tensor(1).scalar_type())
    return false;
  const at::Tensor t = call.tensor(1).coalesce(), values = t._values(), slopes = values_where(grad, places_of(t));
  const int64_t dim = wrap(call.integer(2), t.dim());
  if (dim >= t.sparse_dim()) {
    const int64_t d = dim - t.sparse_dim() + 1;
    const at::ScalarType type = values.scalar_type();
    return call.give(with_values(t, log ? at::_log_softmax_backward_data(slopes, values, d, type)
                                        : at::_softmax_backward_data(slopes, values, d, type)));
  }
  if (values.numel() == 0) return call.give(with_values(t, values.clone()));
  const Groups groups = groups_of(t, dim);
  const at::Tensor y = wide(values), g = wide(slopes);
  const at::Tensor dx = log ? g - at::exp(y) * groups.sums(g) : y * (g - groups.sums(y * g));
  return call.give(with_values(t, dx.to(values.scalar_type())));
}

const Single singles[] = {
    {"_sparse_sparse_matmul", matmul},
    {"_sparse_softmax", [](Call &call) { return softmax(call, false); }},
    {"_sparse_log_softmax", [](Call &call) { return softmax(call, true); }},
    {"_sparse_softmax_backward_data", [](Call &call) { return softmax_backward(call, false); }},
    {"_sparse_log_softmax_backward_data", [](Call &call) { return softmax_backward(call, true); }},
};

}  // namespace

void add_coo_pairs(torch::Library &m) { add(m, singles); }

}  // namespace rdna_torch
