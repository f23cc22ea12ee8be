// Sorting, the largest and smallest values, searching in sorted rows.
#include "rdna/op/sort.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <c10/core/ScalarType.h>

#include "native.h"

namespace rdna_torch {
namespace {

bool sort(Call &call) {  // self, stable?, dim, descending, values!, indices!
  const at::Tensor values = call.tensor(4), indices = call.tensor(5), x = apart(call.tensor(0), values);
  if (!describable(x) || indices.scalar_type() != at::kLong || values.scalar_type() != x.scalar_type()) return false;
  const int64_t dim = wrap(call.integer(2), x.dim());
  Output v(values, x.sizes(), x.scalar_type(), x, false), i(indices, x.sizes(), at::kLong, x, false);
  if (x.dim() == 0) {
    v.get().copy_(x);
    i.get().zero_();
  } else if (x.numel()) {
    const rdna_tensor from = describe(x), to = describe(v.get()), at = describe(i.get());
    check(rdna_op_sort(stream_of(x), &from, static_cast<int>(dim), call.flag(3), &to, &at));
  }
  v.finish();
  i.finish();
  return call.give({values, indices});
}

// Of a tensor of no dimensions: its value, and the index 0.
bool only(Call &call, const at::Tensor &x, const at::Tensor &values, const at::Tensor &indices) {
  Output(values, {}, x.scalar_type(), x, false).get().copy_(x);
  Output(indices, {}, at::kLong, x, false).get().zero_();
  return call.give({values, indices});
}

bool topk(Call &call) {  // self, k, dim, largest, sorted, values!, indices!
  const at::Tensor values = call.tensor(5), indices = call.tensor(6), x = apart(call.tensor(0), values);
  const int64_t k = call.integer(1);
  if (x.dim() == 0 && k == 1 && describable(x) && values.scalar_type() == x.scalar_type() &&
      indices.scalar_type() == at::kLong) {
    wrap(call.integer(2), 0);
    return only(call, x, values, indices);
  }
  if (!describable(x) || x.dim() == 0 || x.numel() == 0 || indices.scalar_type() != at::kLong) return false;
  const int64_t dim = wrap(call.integer(2), x.dim());
  TORCH_CHECK(k >= 0 && k <= x.size(dim), "selected index k out of range");
  if (values.scalar_type() != x.scalar_type()) return false;
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape[static_cast<size_t>(dim)] = k;
  Output a(values, shape, x.scalar_type(), x, false), b(indices, shape, at::kLong, x, false);
  if (a.get().numel()) {
    const rdna_tensor from = describe(x), to = describe(a.get()), at = describe(b.get());
    check(rdna_op_topk(stream_of(x), &from, static_cast<int>(dim), call.flag(3), &to, &at));
  }
  a.finish();
  b.finish();
  return call.give({values, indices});
}

bool kth_value(Call &call) {  // self, k, dim, keepdim, values!, indices!
  const at::Tensor x = call.tensor(0), values = call.tensor(4), indices = call.tensor(5);
  const int64_t k = call.integer(1);
  if (x.dim() == 0 && k == 1 && describable(x) && values.scalar_type() == x.scalar_type() &&
      indices.scalar_type() == at::kLong) {
    wrap(call.integer(2), 0);
    return only(call, x, values, indices);
  }
  if (!describable(x) || x.dim() == 0 || x.numel() == 0 || indices.scalar_type() != at::kLong ||
      values.scalar_type() != x.scalar_type())
    return false;
  const int64_t dim = wrap(call.integer(2), x.dim());
  TORCH_CHECK(k >= 1 && k <= x.size(dim), "kthvalue(): selected number k out of range for dimension ", dim);
  at::assert_no_overlap(x, values);
  std::vector<int64_t> kept(x.sizes().begin(), x.sizes().end());
  kept[static_cast<size_t>(dim)] = 1;
  const at::Tensor v = make(kept, x.scalar_type(), x), i = make(kept, at::kLong, x);
  const rdna_tensor from = describe(x), to = describe(v), at = describe(i);
  check(rdna_op_kth_value(stream_of(x), &from, k, static_cast<int>(dim), &to, &at));
  const at::Tensor a = call.flag(3) ? v : v.squeeze(dim), b = call.flag(3) ? i : i.squeeze(dim);
  Output(values, a.sizes(), x.scalar_type(), x, false).get().copy_(a);
  Output(indices, b.sizes(), at::kLong, x, false).get().copy_(b);
  return call.give({values, indices});
}

// |x| and |sorted| in one type; |right| as librdna means it.
bool search(Call &call, const at::Tensor &sorted, const at::Tensor &x, bool right, bool narrow) {
  if (!describable(sorted) || !describable(x) || x.device() != sorted.device()) return false;
  const at::ScalarType type = c10::promoteTypes(sorted.scalar_type(), x.scalar_type());
  if (sorted.dim() == 0 || (x.dim() == 0 && sorted.dim() != 1)) return false;
  const at::Tensor given = call.output();
  const at::ScalarType result = narrow ? at::kInt : at::kLong;
  if (given.defined() && given.scalar_type() != result) return false;
  const at::Tensor s = converted(sorted, type).contiguous(),
                   q = converted(x.dim() ? x : x.reshape({1}), type).contiguous();
  Output out(given, x.sizes(), result, x);
  if (x.numel()) {
    const at::Tensor found = x.dim() ? out.get() : out.get().reshape({1});
    const rdna_tensor a = describe(s), b = describe(q), to = describe(found);
    check(rdna_op_search_sorted(stream_of(x), &a, &b, right, &to));
  }
  return call.give(out.finish());
}

bool searchsorted(Call &call) {  // sorted_sequence, self, out_int32, right, side?, sorter?
  const at::Tensor sorter = call.tensor(5);
  const bool right = call.none(4) ? call.flag(3) : call[4].toStringRef() == "right";
  if (!call.none(4) && call.flag(3) && !right) return false;  // contradiction: PyTorch has the words
  at::Tensor sorted = call.tensor(0), x = call.tensor(1);
  if (!describable(sorted)) return false;
  if (!x.defined()) {
    if (call.scalar(1).isComplex()) return false;
    x = at::full({}, call.scalar(1), sorted.options().dtype(at::result_type(sorted, call.scalar(1))));
  }
  if (sorter.defined()) {
    if (sorter.scalar_type() != at::kLong || !sorter.sizes().equals(sorted.sizes()) || sorted.dim() == 0) return false;
    sorted = sorted.gather(-1, sorter);
  }
  if (sorted.dim() != 1 && (sorted.dim() == 0 || sorted.dim() != x.dim() ||
                            !sorted.sizes()
                                 .slice(0, static_cast<size_t>(x.dim()) - 1)
                                 .equals(x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1))))
    return false;
  return search(call, sorted, x, right, call.flag(2));
}

bool bucketize(Call &call) {  // self, boundaries, out_int32, right
  const at::Tensor boundaries = call.tensor(1);
  if (!call[0].isTensor() || boundaries.dim() != 1) return false;
  return search(call, boundaries, call.tensor(0), call.flag(3), call.flag(2));
}

const Single singles[] = {
    {"sort.values_stable", sort},
    {"topk.values", topk},
    {"kthvalue.values", kth_value},
    {"searchsorted.Scalar", searchsorted},
    {"searchsorted.Scalar_out", searchsorted},
    {"searchsorted.Tensor", searchsorted},
    {"searchsorted.Tensor_out", searchsorted},
    {"bucketize.Tensor", bucketize},
    {"bucketize.Tensor_out", bucketize},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
