// Operators on lists of tensors, which optimizers and the clipping of gradients are made of: one operation on many
// tensors in few launches, with the bits of the operators for one tensor. Where operands differ in type, shape or
// device, PyTorch's own form computes one tensor after the other.
#include <ATen/Functions.h>
#include <ATen/OpMathType.h>

#include <algorithm>

#include "native.h"
#include "rdna/op/optim.h"
#include "rdna/op/pointwise.h"

namespace rdna_torch {
namespace {

using Tensors = std::vector<at::Tensor>;

bool one_by_one(Call &call) {
  call.redispatch(c10::DispatchKey::CompositeExplicitAutograd);
  return true;
}

bool usable(const at::Tensor &t, const at::Tensor &like) {
  return t.defined() && t.device() == like.device() && is_real(t.scalar_type()) && describable(t);
}

bool usable(const Tensors &list) {
  return !list.empty() && list[0].device().type() == kRdna &&
         std::all_of(list.begin(), list.end(), [&](const at::Tensor &t) { return usable(t, list[0]); });
}

// Whether |others| has the shapes and types of |list|, which is usable.
bool match(const Tensors &list, const Tensors &others) {
  if (list.size() != others.size()) return false;
  for (size_t i = 0; i < list.size(); i++) {
    const at::Tensor &t = others[i];
    if (!usable(t, list[0]) || t.scalar_type() != list[i].scalar_type() || !t.sizes().equals(list[i].sizes()))
      return false;
  }
  return true;
}

// The tensors of a call as librdna takes them.
class Items {
 public:
  Items(size_t count, size_t operands) : items_(count) { tensors_.reserve(count * operands); }
  void set(const rdna_tensor *rdna_pointwise::*operand, const Tensors &list) {
    for (size_t i = 0; i < items_.size(); i++) {
      tensors_.push_back(describe(list[i]));
      items_[i].*operand = &tensors_.back();
    }
  }
  // The same tensor for each.
  void set(const rdna_tensor *rdna_pointwise::*operand, const at::Tensor &t) {
    tensors_.push_back(describe(t));
    for (rdna_pointwise &item : items_) item.*operand = &tensors_.back();
  }
  const rdna_pointwise *data() const { return items_.data(); }
  int count() const { return static_cast<int>(items_.size()); }

 private:
  std::vector<rdna_pointwise> items_;
  std::vector<rdna_tensor> tensors_;
};

// Computes |inputs|, b and c (each of them may be absent) into new tensors, or in place, as the overload says.
template <class Launch>
bool compute(Call &call, const Tensors &inputs, const Tensors *b, const Tensors *c, Launch launch) {
  Tensors made;
  if (!call.in_place())
    for (const at::Tensor &t : inputs) made.push_back(at::empty_like(t));
  Items items(inputs.size(), 4);
  items.set(&rdna_pointwise::a, inputs);
  items.set(&rdna_pointwise::out, call.in_place() ? inputs : made);
  if (b && b->size() == 1) items.set(&rdna_pointwise::b, (*b)[0]);
  if (b && b->size() > 1) items.set(&rdna_pointwise::b, *b);
  if (c) items.set(&rdna_pointwise::c, *c);
  launch(stream_of(inputs[0]), items);
  if (!call.in_place()) return call.give_value(made);
  for (const at::Tensor &t : inputs) t.unsafeGetTensorImpl()->bump_version();  // for lists autograd leaves it to us
  return call.give_nothing();
}

// The numbers of a call: one for each tensor, from a list or from one for all. Nothing where they are complex, of
// bool, or too few or many.
std::optional<std::vector<at::Scalar>> numbers(Call &call, size_t i, size_t count) {
  std::vector<at::Scalar> values;
  if (call[i].isList())
    for (const c10::IValue &v : call[i].toListRef()) values.push_back(v.toScalar());
  else
    values.assign(count, call.scalar(i));
  for (const at::Scalar &s : values)
    if (s.isComplex() || s.isBoolean()) return std::nullopt;
  if (values.size() != count) return std::nullopt;
  return values;
}

// The same; raises where the type that a tensor is computed in does not hold its number.
std::optional<std::vector<at::Scalar>> held_numbers(Call &call, size_t i, const Tensors &x) {
  const auto values = numbers(call, i, x.size());
  if (values)
    for (size_t k = 0; k < x.size(); k++) scalar_of((*values)[k], at::toOpMathType(x[k].scalar_type()));
  return values;
}

// Calls |launch(items, how many, number)| for each run of tensors whose numbers are equal.
template <class Launch>
void by_runs(const Items &items, const std::vector<at::Scalar> &values, Launch launch) {
  for (size_t i = 0, end; i < values.size(); i = end) {
    const double value = values[i].toDouble();
    for (end = i + 1; end < values.size() && values[end].toDouble() == value; end++) {
    }
    launch(items.data() + i, static_cast<int>(end - i), rdna_scalar_real(value));
  }
}

struct Map {
  const char *name;
  rdna_map op;
};

bool map(const Map &row, Call &call) {  // self
  const Tensors x = call.tensors(0);
  if (!usable(x)) return one_by_one(call);
  return compute(call, x, nullptr, nullptr, [&](rdna_stream *stream, const Items &items) {
    check(rdna_op_map_each(stream, row.op, items.data(), items.count(), {}, {}));
  });
}

const Map maps[] = {
    {"_foreach_abs", RDNA_MAP_ABS},
    {"_foreach_abs_", RDNA_MAP_ABS},
    {"_foreach_neg", RDNA_MAP_NEG},
    {"_foreach_neg_", RDNA_MAP_NEG},
    {"_foreach_sign", RDNA_MAP_SIGN},
    {"_foreach_sign_", RDNA_MAP_SIGN},
    {"_foreach_ceil", RDNA_MAP_CEIL},
    {"_foreach_ceil_", RDNA_MAP_CEIL},
    {"_foreach_floor", RDNA_MAP_FLOOR},
    {"_foreach_floor_", RDNA_MAP_FLOOR},
    {"_foreach_round", RDNA_MAP_ROUND},
    {"_foreach_round_", RDNA_MAP_ROUND},
    {"_foreach_trunc", RDNA_MAP_TRUNC},
    {"_foreach_trunc_", RDNA_MAP_TRUNC},
    {"_foreach_sqrt", RDNA_MAP_SQRT},
    {"_foreach_sqrt_", RDNA_MAP_SQRT},
    {"_foreach_rsqrt", RDNA_MAP_RSQRT},
    {"_foreach_rsqrt_", RDNA_MAP_RSQRT},
    {"_foreach_reciprocal", RDNA_MAP_RECIPROCAL},
    {"_foreach_reciprocal_", RDNA_MAP_RECIPROCAL},
};

bool pow_number(Call &call) {  // self, exponent
  const at::Scalar e = call.scalar(1);
  if (e.isComplex()) return one_by_one(call);
  for (const auto &[exponent, op] :
       {std::pair{2.0, RDNA_MAP_SQUARE}, {0.5, RDNA_MAP_SQRT}, {-1.0, RDNA_MAP_RECIPROCAL}})
    if (e.toDouble() == exponent) return map({"", op}, call);
  return one_by_one(call);
}

struct Zip {
  const char *name;
  rdna_zip op;
  double sign = 1;  // of alpha
};

// With a number, or one for each tensor.
bool zip_numbers(const Zip &row, Call &call) {  // self, scalar or scalars
  const Tensors x = call.tensors(0);
  const auto values = usable(x) ? numbers(call, 1, x.size()) : std::nullopt;
  if (!values) return one_by_one(call);
  return compute(call, x, nullptr, nullptr, [&](rdna_stream *stream, const Items &items) {
    by_runs(items, *values, [&](const rdna_pointwise *run, int count, rdna_scalar value) {
      check(rdna_op_zip_scalar_each(stream, row.op, run, count, value, false, {}, {}));
    });
  });
}

// self with |b|, times the call's alpha where there is one.
bool zip(const Zip &row, Call &call, const Tensors &x, const Tensors &b) {
  const at::Scalar alpha = call.count() > 2 ? call.scalar(2) : at::Scalar(1);
  if (alpha.isComplex()) return one_by_one(call);
  const bool scaled = alpha.toDouble() != 1;
  const rdna_zip op = scaled ? RDNA_ZIP_ADD_SCALED : row.op;
  const rdna_scalar p = rdna_scalar_real(row.sign * alpha.toDouble());
  if (scaled)
    for (const at::Tensor &t : x) scalar_of(alpha, t.scalar_type());  // raises where the type does not hold it
  return compute(call, x, &b, nullptr, [&](rdna_stream *stream, const Items &items) {
    check(rdna_op_zip_each(stream, op, items.data(), items.count(), p, {}));
  });
}

bool zip_lists(const Zip &row, Call &call) {  // self, other, alpha?
  const Tensors x = call.tensors(0), b = call.tensors(1);
  return usable(x) && match(x, b) ? zip(row, call, x, b) : one_by_one(call);
}

// With a tensor of one value, the norm of all gradients for instance, which is read where it is.
bool zip_tensor(const Zip &row, Call &call) {  // self, other, alpha?
  const Tensors x = call.tensors(0);
  const at::Tensor b = call.tensor(1);
  if (!usable(x) || !usable(b, x[0]) || b.dim() != 0) return one_by_one(call);
  for (const at::Tensor &t : x)
    if (t.scalar_type() != b.scalar_type()) return one_by_one(call);
  return zip(row, call, x, {b});
}

const Zip numbered[] = {
    {"_foreach_add.Scalar", RDNA_ZIP_ADD},           {"_foreach_add_.Scalar", RDNA_ZIP_ADD},
    {"_foreach_add.ScalarList", RDNA_ZIP_ADD},       {"_foreach_add_.ScalarList", RDNA_ZIP_ADD},
    {"_foreach_sub.Scalar", RDNA_ZIP_SUB},           {"_foreach_sub_.Scalar", RDNA_ZIP_SUB},
    {"_foreach_sub.ScalarList", RDNA_ZIP_SUB},       {"_foreach_sub_.ScalarList", RDNA_ZIP_SUB},
    {"_foreach_mul.Scalar", RDNA_ZIP_MUL},           {"_foreach_mul_.Scalar", RDNA_ZIP_MUL},
    {"_foreach_mul.ScalarList", RDNA_ZIP_MUL},       {"_foreach_mul_.ScalarList", RDNA_ZIP_MUL},
    {"_foreach_div.Scalar", RDNA_ZIP_DIV},           {"_foreach_div_.Scalar", RDNA_ZIP_DIV},
    {"_foreach_div.ScalarList", RDNA_ZIP_DIV},       {"_foreach_div_.ScalarList", RDNA_ZIP_DIV},
    {"_foreach_maximum.Scalar", RDNA_ZIP_MAXIMUM},   {"_foreach_maximum_.Scalar", RDNA_ZIP_MAXIMUM},
    {"_foreach_minimum.Scalar", RDNA_ZIP_MINIMUM},   {"_foreach_minimum_.Scalar", RDNA_ZIP_MINIMUM},
    {"_foreach_clamp_min.Scalar", RDNA_ZIP_MAXIMUM}, {"_foreach_clamp_min_.Scalar", RDNA_ZIP_MAXIMUM},
    {"_foreach_clamp_max.Scalar", RDNA_ZIP_MINIMUM}, {"_foreach_clamp_max_.Scalar", RDNA_ZIP_MINIMUM},
};
const Zip listed[] = {
    {"_foreach_add.List", RDNA_ZIP_ADD},           {"_foreach_add_.List", RDNA_ZIP_ADD},
    {"_foreach_sub.List", RDNA_ZIP_SUB, -1},       {"_foreach_sub_.List", RDNA_ZIP_SUB, -1},
    {"_foreach_mul.List", RDNA_ZIP_MUL},           {"_foreach_mul_.List", RDNA_ZIP_MUL},
    {"_foreach_div.List", RDNA_ZIP_DIV},           {"_foreach_div_.List", RDNA_ZIP_DIV},
    {"_foreach_maximum.List", RDNA_ZIP_MAXIMUM},   {"_foreach_maximum_.List", RDNA_ZIP_MAXIMUM},
    {"_foreach_minimum.List", RDNA_ZIP_MINIMUM},   {"_foreach_minimum_.List", RDNA_ZIP_MINIMUM},
    {"_foreach_clamp_min.List", RDNA_ZIP_MAXIMUM}, {"_foreach_clamp_min_.List", RDNA_ZIP_MAXIMUM},
    {"_foreach_clamp_max.List", RDNA_ZIP_MINIMUM}, {"_foreach_clamp_max_.List", RDNA_ZIP_MINIMUM},
};
const Zip with_tensor[] = {
    {"_foreach_add.Tensor", RDNA_ZIP_ADD}, {"_foreach_add_.Tensor", RDNA_ZIP_ADD},
    {"_foreach_mul.Tensor", RDNA_ZIP_MUL}, {"_foreach_mul_.Tensor", RDNA_ZIP_MUL},
    {"_foreach_div.Tensor", RDNA_ZIP_DIV}, {"_foreach_div_.Tensor", RDNA_ZIP_DIV},
};

bool lerp_numbers(Call &call) {  // self, tensors1, weight or weights
  const Tensors x = call.tensors(0), b = call.tensors(1);
  const auto values = usable(x) && match(x, b) ? held_numbers(call, 2, x) : std::nullopt;
  if (!values) return one_by_one(call);
  return compute(call, x, &b, nullptr, [&](rdna_stream *stream, const Items &items) {
    by_runs(items, *values, [&](const rdna_pointwise *run, int count, rdna_scalar weight) {
      check(rdna_op_zip_each(stream, RDNA_ZIP_LERP, run, count, weight, {}));
    });
  });
}

bool lerp_lists(Call &call) {  // self, tensors1, weights
  const Tensors x = call.tensors(0), b = call.tensors(1), c = call.tensors(2);
  if (!usable(x) || !match(x, b) || !match(x, c)) return one_by_one(call);
  return compute(call, x, &b, &c, [&](rdna_stream *stream, const Items &items) {
    check(rdna_op_zip3_each(stream, RDNA_ZIP3_LERP, items.data(), items.count(), {}));
  });
}

struct Zip3 {
  const char *name;
  rdna_zip3 op;
};

bool zip3(const Zip3 &row, Call &call) {  // self, tensor1, tensor2, value or scalars
  const Tensors x = call.tensors(0), b = call.tensors(1), c = call.tensors(2);
  const auto values = usable(x) && match(x, b) && match(x, c) ? held_numbers(call, 3, x) : std::nullopt;
  if (!values) return one_by_one(call);
  return compute(call, x, &b, &c, [&](rdna_stream *stream, const Items &items) {
    by_runs(items, *values, [&](const rdna_pointwise *run, int count, rdna_scalar value) {
      check(rdna_op_zip3_each(stream, row.op, run, count, value));
    });
  });
}

const Zip3 zip3s[] = {
    {"_foreach_addcmul.Scalar", RDNA_ZIP3_ADDCMUL},     {"_foreach_addcmul_.Scalar", RDNA_ZIP3_ADDCMUL},
    {"_foreach_addcmul.ScalarList", RDNA_ZIP3_ADDCMUL}, {"_foreach_addcmul_.ScalarList", RDNA_ZIP3_ADDCMUL},
    {"_foreach_addcdiv.Scalar", RDNA_ZIP3_ADDCDIV},     {"_foreach_addcdiv_.Scalar", RDNA_ZIP3_ADDCDIV},
    {"_foreach_addcdiv.ScalarList", RDNA_ZIP3_ADDCDIV}, {"_foreach_addcdiv_.ScalarList", RDNA_ZIP3_ADDCDIV},
};

// The 2-norm of each tensor, in two launches for all. Results are parts of one tensor, as CUDA has it.
bool norms(Call &call) {  // self, ord, dtype
  const Tensors x = call.tensors(0);
  const at::Scalar ord = call.scalar(1);
  if (!usable(x) || ord.isComplex() || ord.toDouble() != 2) return one_by_one(call);
  const at::ScalarType in = x[0].scalar_type(), out = call.type(2).value_or(in);
  std::vector<rdna_tensor> lines;
  std::vector<const rdna_tensor *> list;
  lines.reserve(x.size());
  for (const at::Tensor &t : x) {
    if (t.scalar_type() != in || !is_float(in) || !is_float(out) || !t.is_non_overlapping_and_dense())
      return one_by_one(call);
    lines.push_back(line(t));
    list.push_back(&lines.back());
  }
  const at::Tensor results = make({static_cast<int64_t>(x.size())}, at::kFloat, x[0]);
  const rdna_tensor described = describe(results);
  check(rdna_op_grad_norms(stream_of(x[0]), list.data(), static_cast<int>(list.size()), &described));
  return call.give_value(results.to(out).unbind());
}

const Single singles[] = {
    {"_foreach_norm.Scalar", norms},
    {"_foreach_pow.Scalar", pow_number},
    {"_foreach_pow_.Scalar", pow_number},
    {"_foreach_lerp.Scalar", lerp_numbers},
    {"_foreach_lerp_.Scalar", lerp_numbers},
    {"_foreach_lerp.ScalarList", lerp_numbers},
    {"_foreach_lerp_.ScalarList", lerp_numbers},
    {"_foreach_lerp.List", lerp_lists},
    {"_foreach_lerp_.List", lerp_lists},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, maps, map);
  add(m, numbered, zip_numbers);
  add(m, listed, zip_lists);
  add(m, with_tensor, zip_tensor);
  add(m, zip3s, zip3);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
