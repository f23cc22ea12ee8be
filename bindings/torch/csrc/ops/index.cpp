// Values at places that indices say, and values that go there.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <limits>

#include "native.h"
#include "outside.h"
#include "rdna/op/index.h"
#include "rdna/op/pointwise.h"

namespace rdna_torch {
namespace {

// Values that only move: those of types that librdna does not have go as integers of their size. Undefined where
// there is none.
at::Tensor movable(const at::Tensor &t) {
  if (t.dim() > RDNA_MAX_RANK) return {};
  if (has_dtype(t.scalar_type())) return t;
  switch (t.element_size()) {
    case 1:
      return t.view(at::kByte);
    case 2:
      return t.view(at::kShort);
    case 4:
      return t.view(at::kInt);
    case 8:
      return t.view(at::kLong);
    default:
      return {};
  }
}

at::Tensor lined(const at::Tensor &t) { return t.dim() ? t : t.unsqueeze(0); }

bool are_indices(const at::Tensor &t) {
  return (t.scalar_type() == at::kLong || t.scalar_type() == at::kInt || t.numel() == 0) && t.dim() <= RDNA_MAX_RANK;
}

void check_here(const at::Tensor &t, const at::Tensor &self, const char *name, const char *argument) {
  TORCH_CHECK(t.device() == self.device(), name, ": Expected all tensors to be on the same device, but ", argument,
              " is on ", t.device(), " and self is on ", self.device());
}

void check_type(const at::Tensor &given, at::ScalarType type) {
  TORCH_CHECK(!given.defined() || given.scalar_type() == type, "Expected out tensor to have dtype ", type, ", but got ",
              given.defined() ? given.scalar_type() : type, " instead");
}

// The one that stays where several values go to one place is any, unless PyTorch is told to be deterministic.
rdna_scatter assign() {
  return at::globalContext().deterministicAlgorithms() ? RDNA_SCATTER_LAST : RDNA_SCATTER_ASSIGN;
}

bool gather(Call &call) {  // self, dim, index, sparse_grad, out
  const at::Tensor self = call.tensor(0), index = call.tensor(2), x = movable(self);
  const int64_t dim = wrap(call.integer(1), self.dim());
  if (!x.defined() || !are_indices(index)) return false;
  check_here(index, self, "gather", "index");
  check_type(call.output(), self.scalar_type());
  Output out(call.output(), index.sizes(), self.scalar_type(), self, false);
  if (index.numel() == 0) return call.give(out.finish());
  TORCH_CHECK(lined(index).dim() == lined(x).dim(),
              "Index tensor must have the same number of dimensions as input tensor");
  const rdna_tensor from = describe(lined(x)), at = describe(lined(index)), to = describe(lined(movable(out.get())));
  check(rdna_op_gather(stream_of(x), &from, static_cast<int>(dim), &at, &to, outside(x, "gather")));
  return call.give(out.finish());
}

bool index_select(Call &call) {  // self, dim, index, [out]
  const at::Tensor self = call.tensor(0), index = call.tensor(2), x = movable(self);
  const int64_t dim = wrap(call.integer(1), self.dim());
  if (!x.defined() || !are_indices(index)) return false;
  check_here(index, self, "index_select", "index");
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  std::vector<int64_t> shape = self.sizes().vec();
  if (self.dim())
    shape[static_cast<size_t>(dim)] = index.numel();
  else
    TORCH_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
                " value(s)");
  if (call.output().defined()) at::assert_no_internal_overlap(call.output());
  Output out(call.output(), shape, self.scalar_type(), self, false);
  if (out.get().numel() == 0) return call.give(out.finish());
  const rdna_tensor from = describe(lined(x)), at = describe(lined(index)), to = describe(lined(movable(out.get())));
  check(rdna_op_index_select(stream_of(x), &from, static_cast<int>(dim), &at, &to, outside(x, "index_select")));
  return call.give(out.finish());
}

// x[indices] as librdna takes it: one entry for each dimension of |self|, some undefined; masks as the places where
// they are true. Nothing where they are of a kind that is left to the CPU.
std::optional<std::vector<at::Tensor>> places(const at::Tensor &self, const c10::IValue &list) {
  std::vector<at::Tensor> out;
  bool any = false, wide = false;
  for (const c10::IValue &item : list.toListRef()) {
    if (!item.isTensor() || !item.toTensor().defined()) {
      out.emplace_back();
      continue;
    }
    at::Tensor t = item.toTensor();
    if (t.device() != self.device()) t = t.to(self.options().dtype(t.dtype()), /*non_blocking=*/true);
    any = true;
    if (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte) {
      if (t.dim() == 0) return {};
      for (int64_t d = 0; d < t.dim(); d++) {
        const int64_t at = static_cast<int64_t>(out.size()) + d;
        TORCH_CHECK_INDEX(at < self.dim() && t.size(d) == self.size(at), "The shape of the mask ", t.sizes(),
                          " at index ", d, " does not match the shape of the indexed tensor ", self.sizes(),
                          " at index ", at);
      }
      const at::Tensor found = t.nonzero();
      for (int64_t d = 0; d < t.dim(); d++) out.push_back(found.select(1, d));
      wide = true;
      continue;
    }
    if (!are_indices(t)) return {};
    wide = wide || t.scalar_type() == at::kLong;
    out.push_back(t);
  }
  TORCH_CHECK_INDEX(static_cast<int64_t>(out.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", out.size(), ")");
  if (!any || self.dim() == 0) return {};
  out.resize(static_cast<size_t>(self.dim()));
  for (at::Tensor &t : out)
    if (wide && t.defined()) t = converted(t, at::kLong);
  return out;
}

// The shape of x[indices], as NumPy has it.
std::vector<int64_t> indexed_shape(const at::Tensor &self, const std::vector<at::Tensor> &indices) {
  std::vector<int64_t> places;
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t i = 0; i < indices.size(); i++)
    if (indices[i].defined()) {
      for (size_t d = 1; d <= std::min(places.size(), indices[i].sizes().size()); d++) {
        const int64_t a = places[places.size() - d], b = indices[i].size(-static_cast<int64_t>(d));
        TORCH_CHECK_INDEX(a == b || a == 1 || b == 1,
                          "shape mismatch: indexing tensors could not be broadcast together with shapes ", places, ", ",
                          indices[i].sizes());
      }
      places = count ? at::infer_size(places, indices[i].sizes()) : indices[i].sizes().vec();
      first = std::min(first, i);
      last = i;
      count++;
    }
  const bool neighbours = last - first + 1 == count;
  std::vector<int64_t> shape;
  if (!neighbours) shape = places;
  for (size_t i = 0; i < indices.size(); i++) {
    if (neighbours && i == first) shape.insert(shape.end(), places.begin(), places.end());
    if (!indices[i].defined()) shape.push_back(self.size(static_cast<int64_t>(i)));
  }
  return shape;
}

// Entries for librdna, which live as long as this.
struct Entries {
  std::vector<at::Tensor> alive;
  std::vector<rdna_tensor> tensors;
  std::vector<const rdna_tensor *> list;
  explicit Entries(const std::vector<at::Tensor> &indices) : alive(indices), tensors(indices.size()) {
    for (size_t i = 0; i < indices.size(); i++) {
      if (indices[i].defined()) tensors[i] = describe(indices[i]);
      list.push_back(indices[i].defined() ? &tensors[i] : nullptr);
    }
  }
};

bool index(Call &call) {  // self, indices, out
  const at::Tensor self = call.tensor(0), x = movable(self);
  if (!x.defined()) return false;
  const auto indices = places(self, call[1]);
  if (!indices) return false;
  const std::vector<int64_t> shape = indexed_shape(self, *indices);
  if (shape.size() > RDNA_MAX_RANK) return false;
  Output out(call.output(), shape, self.scalar_type(), self, false);
  if (out.get().numel() == 0) return call.give(out.finish());
  TORCH_CHECK_INDEX(self.numel(), "index is out of bounds for dimension with size 0");
  const Entries entries(*indices);
  const rdna_tensor from = describe(x), to = describe(movable(out.get()));
  check(rdna_op_index(stream_of(x), &from, entries.list.data(), &to, outside(x, "index")));
  return call.give(out.finish());
}

// A single mask and one value: nothing has to be counted. The mask with |self|'s rank, or an undefined tensor.
at::Tensor only_mask(const at::Tensor &self, const c10::IValue &list) {
  at::Tensor mask;
  int64_t before = 0;
  for (const c10::IValue &item : list.toListRef()) {
    if (!item.isTensor() || !item.toTensor().defined()) {
      before += !mask.defined();
      continue;
    }
    if (mask.defined() || item.toTensor().scalar_type() != at::kBool || item.toTensor().device() != self.device())
      return {};
    mask = item.toTensor();
  }
  if (!mask.defined() || mask.dim() == 0 || before + mask.dim() > self.dim()) return {};
  for (int64_t d = 0; d < mask.dim(); d++)
    if (mask.size(d) != self.size(before + d)) return {};
  while (before + mask.dim() < self.dim()) mask = mask.unsqueeze(-1);
  return mask;
}

// self = value where mask, the value one on the device or the host.
bool fill_where(const at::Tensor &self, const at::Tensor &mask, const at::Tensor &value) {
  if (!describable(self) || !has_dtype(value.scalar_type()) || mask.dim() > self.dim()) return false;
  if (self.numel() == 0) return true;
  const rdna_tensor condition = describe(mask), out = describe(self);
  if (value.device().is_cpu()) {
    const rdna_scalar v = scalar_of(value.item(), self.scalar_type());
    check(rdna_op_masked_fill(stream_of(self), &condition, v, &out, &out));
  } else {
    const at::Tensor v = apart(converted(value.reshape({}), self.scalar_type()), self);
    const rdna_tensor one = describe(v);
    check(rdna_op_where(stream_of(self), &condition, &one, &out, &out));
  }
  return true;
}

bool index_put(Call &call) {  // self, indices, values, accumulate, unsafe
  const at::Tensor self = call.tensor(0), x = movable(self);
  at::Tensor values = call.tensor(2);
  const bool accumulate = call.flag(3);
  if (!x.defined() || (accumulate && !has_dtype(self.scalar_type()))) return false;
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(),
                    "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
                    " for the destination and ", values.scalar_type(), " for the source.");
  if (!accumulate && values.numel() == 1) {
    const at::Tensor mask = only_mask(self, call[1]);
    if (mask.defined() && fill_where(self, apart(mask, self), values)) return call.give(self);
  }
  auto indices = places(self, call[1]);
  if (!indices) return false;
  const std::vector<int64_t> shape = indexed_shape(self, *indices);
  if (shape.size() > RDNA_MAX_RANK) return false;
  if (c10::multiply_integers(shape) == 0 || values.numel() == 0) return call.give(self);
  if (values.device() != self.device()) {
    TORCH_CHECK(values.numel() == 1 && values.device().is_cpu(), "expected values on ", self.device(), ", got ",
                values.device());
    values = values.to(self.options().dtype(values.dtype()), /*non_blocking=*/true);
  }
  for (at::Tensor &t : *indices)
    if (t.defined()) t = apart(t, self);
  values = apart(movable(values), self);
  // PyTorch lets leading sizes of 1 stand before the shape that is written
  while (values.dim() > static_cast<int64_t>(shape.size()) && values.size(0) == 1) values = values.squeeze(0);
  values = values.expand(shape);
  const Entries entries(*indices);
  const rdna_tensor to = describe(x), from = describe(values);
  check(rdna_op_index_put(stream_of(x), &to, entries.list.data(), &from, accumulate ? RDNA_SCATTER_ADD : assign(),
                          outside(x, "index_put_")));
  return call.give(self);
}

bool take(Call &call) {  // self, index, [out]
  const at::Tensor self = call.tensor(0), index = call.tensor(1), flat = self.reshape({-1}), x = movable(flat);
  if (!x.defined() || !are_indices(index)) return false;
  TORCH_CHECK_INDEX(self.numel() || !index.numel(), "take(): tried to take from an empty tensor");
  Output out(call.output(), index.sizes(), self.scalar_type(), self, false);
  if (index.numel() == 0) return call.give(out.finish());
  const Entries entries({lined(index)});
  const rdna_tensor from = describe(x), to = describe(lined(movable(out.get())));
  check(rdna_op_index(stream_of(x), &from, entries.list.data(), &to, outside(x, "take")));
  return call.give(out.finish());
}

bool put(Call &call) {  // self, index, source, accumulate
  const at::Tensor self = call.tensor(0), index = call.tensor(1), source = call.tensor(2);
  if (!describable(self) || !are_indices(index) || source.scalar_type() != self.scalar_type()) return false;
  TORCH_CHECK_INDEX(source.numel() == index.numel(),
                    "put_(): Expected source and index to have the same number of "
                    "elements, but got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() || !index.numel(), "put_(): Tried to put elements into an empty tensor");
  if (index.numel() == 0) return call.give(self);
  const at::Tensor work = self.is_contiguous() ? self : self.contiguous();
  const Entries entries({apart(index, self).reshape({-1})});
  const at::Tensor flat = work.view({-1}), values = apart(source, self).reshape({-1});
  const rdna_tensor to = describe(flat), from = describe(values);
  check(rdna_op_index_put(stream_of(self), &to, entries.list.data(), &from, call.flag(3) ? RDNA_SCATTER_ADD : assign(),
                          outside(self, "put_")));
  if (!work.is_same(self)) self.copy_(work);
  return call.give(self);
}

// out = self with |src| at the places that |index| says along |dim|; by rows where |index| has rank 1 in its own right.
bool join(Call &call, const char *name, const at::Tensor &index, const at::Tensor &src, rdna_scatter mode,
          bool include_self, bool rows) {
  const at::Tensor self = call.tensor(0);
  const bool moves = mode == RDNA_SCATTER_ASSIGN || mode == RDNA_SCATTER_LAST;
  if (!are_indices(index) || !movable(self).defined() || (!moves && !describable(self))) return false;
  const int64_t dim = wrap(call.integer(1), self.dim());
  TORCH_CHECK(src.scalar_type() == self.scalar_type(), name, "(): Expected self.dtype to be equal to src.dtype, got ",
              self.scalar_type(), " and ", src.scalar_type());
  check_here(index, self, name, "index");
  check_here(src, self, name, "source");
  Output out(call.output(), self.sizes(), self.scalar_type(), self, false);
  const at::Tensor &to = out.get();
  const at::Tensor from = apart(movable(src), to), places = apart(index, to);
  if (!to.is_same(self)) to.copy_(self);
  if (index.numel() == 0 || self.numel() == 0) return call.give(out.finish());
  const rdna_tensor dst = describe(lined(movable(to))), at = describe(lined(places)), values = describe(lined(from));
  check((rows ? rdna_op_index_copy : rdna_op_scatter)(stream_of(to), &dst, static_cast<int>(dim), &at, &values, mode,
                                                      include_self, outside(to, name)));
  return call.give(out.finish());
}

bool scatter(Call &call) {  // self, dim, index, src, out
  return join(call, "scatter", call.tensor(2), call.tensor(3), assign(), true, false);
}
bool scatter_add(Call &call) {  // self, dim, index, src, out
  return join(call, "scatter_add", call.tensor(2), call.tensor(3), RDNA_SCATTER_ADD, true, false);
}

bool scatter_value(Call &call) {  // self, dim, index, value, out
  const at::Tensor self = call.tensor(0), index = call.tensor(2);
  const at::Scalar value = call.scalar(3);
  if (!are_indices(index) || !describable(self) || value.isComplex()) return false;
  const int64_t dim = wrap(call.integer(1), self.dim());
  check_here(index, self, "scatter", "index");
  Output out(call.output(), self.sizes(), self.scalar_type(), self, false);
  const at::Tensor &to = out.get();
  const at::Tensor places = apart(index, to);
  if (!to.is_same(self)) to.copy_(self);
  if (index.numel() == 0 || self.numel() == 0) return call.give(out.finish());
  const rdna_tensor dst = describe(lined(to)), at = describe(lined(places));
  check(rdna_op_scatter_value(stream_of(to), &dst, static_cast<int>(dim), &at, scalar_of(value, to.scalar_type()),
                              outside(to, "scatter")));
  return call.give(out.finish());
}

std::optional<rdna_scatter> mode_of(const std::string &name) {
  if (name == "add" || name == "sum") return RDNA_SCATTER_ADD;
  if (name == "multiply" || name == "prod") return RDNA_SCATTER_PROD;
  if (name == "mean") return RDNA_SCATTER_MEAN;
  if (name == "amax") return RDNA_SCATTER_MAX;
  if (name == "amin") return RDNA_SCATTER_MIN;
  return std::nullopt;
}

bool scatter_reduce_old(Call &call) {  // self, dim, index, src, reduce, out
  const auto mode = mode_of(call[4].toStringRef());
  return mode && join(call, "scatter", call.tensor(2), call.tensor(3), *mode, true, false);
}
bool scatter_value_reduce(Call &call) {  // self, dim, index, value, reduce, out
  const auto mode = mode_of(call[4].toStringRef());
  const at::Tensor self = call.tensor(0), index = call.tensor(2);
  if (!mode || !describable(self) || call.scalar(3).isComplex()) return false;
  const at::Tensor value = at::full({}, call.scalar(3), self.options()).expand(index.sizes());
  return join(call, "scatter", index, value, *mode, true, false);
}
bool scatter_reduce(Call &call) {  // self, dim, index, src, reduce, include_self, out
  const auto mode = mode_of(call[4].toStringRef());
  return mode && join(call, "scatter_reduce", call.tensor(2), call.tensor(3), *mode, call.flag(5), false);
}

bool row_shapes(Call &call, const at::Tensor &index, const at::Tensor &source) {
  const at::Tensor self = call.tensor(0);
  return index.dim() <= 1 && (source.dim() == self.dim() || (source.dim() <= 1 && self.dim() <= 1));
}

bool index_add(Call &call) {  // self, dim, index, source, alpha, out
  at::Tensor source = call.tensor(3);
  const at::Scalar alpha = call.scalar(4);
  if (!row_shapes(call, call.tensor(2), source) || alpha.isComplex() || !describable(source)) return false;
  if (alpha.toDouble() != 1) {
    if (!at::isFloatingType(source.scalar_type()) && alpha.isFloatingPoint()) return false;
    source = source.mul(alpha).to(source.scalar_type());
  }
  return join(call, "index_add", call.tensor(2), source, RDNA_SCATTER_ADD, true, true);
}
bool index_copy(Call &call) {  // self, dim, index, source, out
  if (!row_shapes(call, call.tensor(2), call.tensor(3))) return false;
  return join(call, "index_copy", call.tensor(2), call.tensor(3), assign(), true, true);
}
bool index_reduce(Call &call) {  // self, dim, index, source, reduce, include_self, out
  const auto mode = mode_of(call[4].toStringRef());
  if (!mode || !row_shapes(call, call.tensor(2), call.tensor(3))) return false;
  return join(call, "index_reduce", call.tensor(2), call.tensor(3), *mode, call.flag(5), true);
}

bool index_fill(Call &call) {  // self, dim, index, value
  const at::Tensor self = call.tensor(0), index = call.tensor(2);
  if (!describable(self) || !are_indices(index) || index.dim() > 1) return false;
  if (call[3].isTensor())
    TORCH_CHECK(call.tensor(3).dim() == 0,
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", call.tensor(3).dim(),
                " dimension(s).");
  const at::Scalar value = call[3].isTensor() ? call.tensor(3).item() : call.scalar(3);
  if (value.isComplex() || (!at::isFloatingType(self.scalar_type()) && value.isFloatingPoint())) return false;
  const int64_t dim = wrap(call.integer(1), self.dim());
  if (index.numel() == 0 || self.numel() == 0) return call.give(self);
  const at::Tensor places = apart(index, self);
  const rdna_tensor dst = describe(lined(self)), at = describe(lined(places));
  check(rdna_op_index_fill(stream_of(self), &dst, static_cast<int>(dim), &at, scalar_of(value, self.scalar_type()),
                           outside(self, "index_fill_")));
  return call.give(self);
}

bool embedding_backward(Call &call) {  // grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
  const at::Tensor grad = call.tensor(0), indices = call.tensor(1);
  if (!is_real(grad.scalar_type()) || !are_indices(indices) || grad.dim() > RDNA_MAX_RANK) return false;
  const int64_t rows = call.integer(2), padding = call.integer(3), columns = grad.size(-1);
  const at::Tensor out = make({rows, columns}, grad.scalar_type(), grad);
  if (out.numel() == 0) return call.give(out);
  if (grad.numel() == 0) {
    out.zero_();
    return call.give(out);
  }
  const at::Tensor dout = grad.reshape({-1, columns}), ids = indices.reshape({-1});
  const rdna_tensor from = describe(dout), at = describe(ids), to = describe(out);
  check(rdna_op_embedding_backward(stream_of(grad), &from, &at, padding < 0 ? -1 : padding, call.flag(4), &to,
                                   outside(grad, "embedding_dense_backward")));
  return call.give(out);
}

// How many values are not 0, which the size of a result waits for.
int64_t count_of(const at::Tensor &x) {
  const at::Tensor count = make({}, at::kLong, x);
  const rdna_tensor from = describe(x), to = describe(count);
  check(rdna_op_nonzero_count(stream_of(x), &from, &to));
  return count.item().toLong();
}

// The places in a tensor of more values than librdna counts: those in halves of its first dimension, whose order is the
// whole's.
at::Tensor nonzero_in_halves(const at::Tensor &x) {
  int64_t d = 0;
  while (x.size(d) == 1) d++;
  const int64_t half = x.size(d) / 2;
  const at::Tensor low = at::nonzero(x.narrow(d, 0, half)), high = at::nonzero(x.narrow(d, half, x.size(d) - half));
  high.select(1, d).add_(half);
  return at::cat({low, high});
}

bool nonzero(Call &call) {  // self, [out]
  const at::Tensor self = is_complex(call.tensor(0).scalar_type()) ? at::ne(call.tensor(0), 0) : call.tensor(0);
  if (!describable(self)) return false;
  const at::Tensor given = call.output();
  check_type(given, at::kLong);
  if (given.defined()) at::assert_no_overlap(given, self);
  if (self.numel() > std::numeric_limits<int32_t>::max()) {
    const at::Tensor places = nonzero_in_halves(self);
    if (!given.defined()) return call.give(places);
    Output out(given, places.sizes(), at::kLong, self, false);
    out.get().copy_(places);
    return call.give(out.finish());
  }
  const int64_t count = self.numel() ? count_of(self) : 0;
  if (!given.defined() || given.numel() != count * self.dim()) {
    at::Tensor places = make({count, self.dim()}, at::kLong, self);
    if (places.numel()) {
      const rdna_tensor from = describe(self), to = describe(places);
      check(rdna_op_nonzero(stream_of(self), &from, &to));
    }
    // each dimension's coordinates lie together, as PyTorch has them on every device and compiled graphs expect
    if (self.dim() > 1) places = places.t().contiguous().t();
    if (!given.defined()) return call.give(places);
    Output out(given, places.sizes(), at::kLong, self, false);
    return call.give(out.get().as_strided_(places.sizes(), places.strides()).copy_(places));
  }
  Output out(given, {count, self.dim()}, at::kLong, self);
  if (out.get().numel()) {
    const rdna_tensor from = describe(self), to = describe(out.get());
    check(rdna_op_nonzero(stream_of(self), &from, &to));
  }
  return call.give(out.finish());
}

bool nonzero_static(Call &call) {  // self, size, fill_value, [out]
  const at::Tensor given = call.tensor(0), self = is_complex(given.scalar_type()) ? at::ne(given, 0) : given;
  if (!describable(self)) return false;
  TORCH_CHECK(call.integer(1) >= 0, "nonzero_static: 'size' must be an non-negative integer");
  Output out(call.output(), {call.integer(1), self.dim()}, at::kLong, self);
  out.get().fill_(call.integer(2));
  if (out.get().numel() && self.numel()) {
    const rdna_tensor from = describe(self), to = describe(out.get());
    check(rdna_op_nonzero(stream_of(self), &from, &to));
  }
  return call.give(out.finish());
}

bool masked_select(Call &call) {  // self, mask, [out]
  const at::Tensor self = call.tensor(0), mask = call.tensor(1), x = movable(self);
  if (!x.defined() || mask.scalar_type() != at::kBool || mask.device() != self.device()) return false;
  const std::vector<int64_t> shape = at::infer_size(self.sizes(), mask.sizes());
  if (shape.size() > RDNA_MAX_RANK) return false;
  check_type(call.output(), self.scalar_type());
  if (call.output().defined())
    for (const at::Tensor &t : {self, mask}) at::assert_no_overlap(call.output(), t);
  const at::Tensor wide = mask.expand(shape);
  const int64_t count = wide.numel() ? count_of(wide) : 0;
  Output out(call.output(), {count}, self.scalar_type(), self);
  if (count) {
    const rdna_tensor from = describe(x.expand(shape)), chosen = describe(wide), to = describe(movable(out.get()));
    check(rdna_op_masked_select(stream_of(self), &from, &chosen, &to));
  }
  return call.give(out.finish());
}

bool masked_scatter(Call &call) {  // self, mask, source
  const at::Tensor self = call.tensor(0), mask = call.tensor(1), source = call.tensor(2), x = movable(self);
  if (!x.defined() || mask.scalar_type() != at::kBool || mask.device() != self.device()) return false;
  TORCH_CHECK(source.scalar_type() == self.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
              source.scalar_type());
  const at::Tensor chosen = apart(mask.expand(self.sizes()), self), from = apart(movable(source), self).reshape({-1});
  if (self.numel() == 0) return call.give(self);
  if (source.numel() < self.numel()) {  // waiting for the count is rare
    const int64_t wanted = count_of(chosen);
    TORCH_CHECK(wanted <= source.numel(),
                "masked_scatter: expected the source to have as many values as the mask "
                "chooses, ",
                wanted, ", but it has ", source.numel());
    if (wanted == 0) return call.give(self);
  }
  const rdna_tensor dst = describe(x), which = describe(chosen), src = describe(from);
  check(rdna_op_masked_scatter(stream_of(self), &dst, &which, &src));
  return call.give(self);
}

bool masked_fill(Call &call) {  // self, mask, value
  const at::Tensor self = call.tensor(0), mask = call.tensor(1), value = call.tensor(2);
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  if (mask.scalar_type() != at::kBool || mask.device() != self.device()) return false;
  if (!at::isFloatingType(self.scalar_type()) && at::isFloatingType(value.scalar_type())) return false;
  return fill_where(self, apart(mask, self), value) && call.give(self);
}

const Single singles[] = {
    {"gather.out", gather},
    {"index_select", index_select},
    {"index_select.out", index_select},
    {"index.Tensor_out", index},
    {"_index_put_impl_", index_put},
    {"take", take},
    {"take.out", take},
    {"put_", put},
    {"scatter.src_out", scatter},
    {"scatter.value_out", scatter_value},
    {"scatter.reduce_out", scatter_reduce_old},
    {"scatter.value_reduce_out", scatter_value_reduce},
    {"scatter_add.out", scatter_add},
    {"scatter_reduce.two_out", scatter_reduce},
    {"index_add.out", index_add},
    {"index_copy.out", index_copy},
    {"index_reduce.out", index_reduce},
    {"index_fill_.int_Scalar", index_fill},
    {"index_fill_.int_Tensor", index_fill},
    {"embedding_dense_backward", embedding_backward},
    {"nonzero", nonzero},
    {"nonzero.out", nonzero},
    {"nonzero_static", nonzero_static},
    {"nonzero_static.out", nonzero_static},
    {"masked_select", masked_select},
    {"masked_select.out", masked_select},
    {"masked_scatter_", masked_scatter},
    {"masked_fill_.Tensor", masked_fill},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_new_forms(m, singles); }

}  // namespace
}  // namespace rdna_torch
