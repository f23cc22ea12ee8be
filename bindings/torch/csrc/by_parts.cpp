#include "by_parts.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensor.h"

namespace rdna_torch {
namespace {

enum Kind {
  kPlain,     // dimensions are counted from the front, which is all that changes
  kExpanded,  // an index has as many dimensions as the values: it gets that of the pairs
  kPadded,    // padding begins with the last dimension, with zeros alone
  kApart,     // dimensions have meanings: each part alone
};
const std::unordered_map<std::string, Kind> table = {
    {"aten::cat.out", kPlain},
    {"aten::flip", kPlain},
    {"aten::roll", kPlain},
    {"aten::index_select", kPlain},
    {"aten::index_select.out", kPlain},
    {"aten::index.Tensor", kPlain},
    {"aten::index.Tensor_out", kPlain},
    {"aten::_index_put_impl_", kPlain},
    {"aten::index_add", kPlain},
    {"aten::index_add.out", kPlain},
    {"aten::index_copy", kPlain},
    {"aten::index_copy.out", kPlain},
    {"aten::gather", kExpanded},
    {"aten::gather.out", kExpanded},
    {"aten::scatter.src", kExpanded},
    {"aten::scatter.src_out", kExpanded},
    {"aten::scatter_add", kExpanded},
    {"aten::scatter_add.out", kExpanded},
    {"aten::constant_pad_nd", kPadded},
    {"aten::scatter.value", kApart},
    {"aten::scatter.value_out", kApart},
    {"aten::scatter.reduce", kApart},
    {"aten::scatter.reduce_out", kApart},
    {"aten::scatter.value_reduce", kApart},
    {"aten::scatter.value_reduce_out", kApart},
    {"aten::put_", kApart},
    {"aten::take", kApart},
    {"aten::take.out", kApart},
    {"aten::index_fill_.int_Scalar", kApart},
    {"aten::index_fill_.int_Tensor", kApart},
    {"aten::masked_fill_.Tensor", kApart},
    {"aten::trace", kApart},
    {"aten::channel_shuffle", kApart},
    {"aten::im2col", kApart},
    {"aten::im2col.out", kApart},
    {"aten::col2im", kApart},
    {"aten::col2im.out", kApart},
    {"aten::unfold_backward", kApart},
    {"aten::reflection_pad1d.out", kApart},
    {"aten::reflection_pad2d", kApart},
    {"aten::reflection_pad2d.out", kApart},
    {"aten::reflection_pad3d.out", kApart},
    {"aten::reflection_pad1d_backward.grad_input", kApart},
    {"aten::reflection_pad2d_backward", kApart},
    {"aten::reflection_pad2d_backward.grad_input", kApart},
    {"aten::reflection_pad3d_backward.grad_input", kApart},
    {"aten::replication_pad1d.out", kApart},
    {"aten::replication_pad2d.out", kApart},
    {"aten::replication_pad3d.out", kApart},
    {"aten::replication_pad1d_backward.grad_input", kApart},
    {"aten::replication_pad2d_backward", kApart},
    {"aten::replication_pad2d_backward.grad_input", kApart},
    {"aten::replication_pad3d_backward", kApart},
    {"aten::replication_pad3d_backward.grad_input", kApart},
};

const Kind *kind_of(const c10::OperatorHandle &op) {
  const c10::OperatorName &name = op.operator_name();
  const auto found = table.find(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  return found == table.end() ? nullptr : &found->second;
}

// What an argument becomes; |fits| is false where it cannot.
struct Parts {
  Kind kind;
  int64_t rank = -1;  // of the first complex tensor
  bool fits = true;

  at::Tensor tensor(const at::Tensor &t) {
    if (!t.defined()) return t;
    if (t.layout() != at::kStrided || t.device().type() != kRdna) return fits = false, t;
    if (is_complex(t.scalar_type())) {
      if (rank < 0) rank = t.dim();
      fits = fits && t.dim() > 0 && t.dim() < RDNA_MAX_RANK;
      return at::view_as_real(t.resolve_conj().resolve_neg());
    }
    fits = fits && is_integer(t.scalar_type());  // an index or a mask
    if (kind != kExpanded) return t;
    std::vector<int64_t> shape = t.sizes().vec();
    shape.push_back(2);
    return t.unsqueeze(-1).expand(shape);
  }
  int64_t dim(int64_t d) { return d < 0 ? d + rank : d; }
  c10::IValue value(const c10::IValue &v, const c10::Argument &argument) {
    if (v.isTensor()) return tensor(v.toTensor());
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor &t : v.toTensorVector()) {
        fits = fits && is_complex(t.scalar_type()) && t.numel() > 0;  // PyTorch lets an empty one join any
        list.push_back(tensor(t));
      }
      return list;
    }
    const bool dims = argument.name() == "dim" || argument.name() == "dims";
    if (dims && v.isInt()) return dim(v.toInt());
    if (!v.isIntList()) return fits = fits && !(v.isScalar() && v.toScalar().isComplex()), v;
    std::vector<int64_t> values = v.toIntVector();
    if (dims) {
      fits = fits && !values.empty();
      for (int64_t &d : values) d = dim(d);
    }
    if (kind == kPadded) values.insert(values.begin(), 2, 0);
    return values;
  }
};

// What one of the two parts is of an argument; |fits| is false where it has none.
struct Part {
  int64_t part;
  at::ScalarType type;  // of the parts
  bool fits = true;

  at::Tensor of_value(const at::Tensor &t) {
    if (is_complex(t.scalar_type())) return at::view_as_real(t.resolve_conj().resolve_neg()).select(-1, part);
    return part == 0 ? t.to(type) : at::zeros_like(t, t.options().dtype(type));
  }
  c10::IValue value(const c10::IValue &v, const c10::Argument &argument) {
    if (v.isTensor()) {
      const at::Tensor t = v.toTensor();
      if (!t.defined()) return v;
      if (t.layout() != at::kStrided || t.device().type() != kRdna) return fits = false, v;
      if (is_complex(t.scalar_type()) || argument.name() == "value") return of_value(t);
      if (argument.name() == "src" || argument.name() == "source") fits = false;  // not of self's type: refused
      return t;
    }
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor &t : v.toTensorVector()) list.push_back(of_value(t));
      return list;
    }
    if (v.isString()) return fits = fits && v.toStringRef() != "multiply", v;  // the only one that is not linear
    if (!v.isScalar() || argument.type()->kind() != c10::TypeKind::NumberType) return v;
    const auto number = v.toScalar().toComplexDouble();
    if (argument.name() == "value") return at::Scalar(part == 0 ? number.real() : number.imag());
    return fits = fits && number.imag() == 0, v;
  }
};

at::ScalarType type_of(const torch::jit::Stack &arguments) {
  at::ScalarType type = at::kFloat;
  auto look = [&](const at::Tensor &t) {
    if (t.defined() && is_complex(t.scalar_type())) type = at::promoteTypes(type, at::toRealValueType(t.scalar_type()));
    if (t.defined() && t.scalar_type() == at::kDouble) type = at::kDouble;
  };
  for (const c10::IValue &v : arguments) {
    if (v.isTensor()) look(v.toTensor());
    if (v.isTensorList())
      for (const at::Tensor &t : v.toTensorVector()) look(t);
  }
  return type;
}

// Of operators that are linear in their complex tensors.
bool by_each_part(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const auto &arguments = op.schema().arguments();
  const size_t count = arguments.size();
  const torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const at::ScalarType type = type_of(given);
  at::Tensor written, found[2];
  bool in_place = false, complex = false;
  torch::jit::Stack inner[2];
  for (int64_t part = 0; part < 2; part++) {
    Part p{part, type};
    for (size_t i = 0; i < count; i++) {
      const c10::IValue &v = given[i];
      if (v.isTensor() && v.toTensor().defined()) complex = complex || is_complex(v.toTensor().scalar_type());
      if (v.isTensorList())
        for (const at::Tensor &t : v.toTensorVector()) complex = complex || is_complex(t.scalar_type());
      if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite()) {
        written = v.toTensor(), in_place = !arguments[i].is_out();
        if (!is_complex(written.scalar_type()) || written.is_conj() || written.is_neg()) return false;
        if (!in_place) {
          inner[part].push_back(at::empty({0}, written.options().dtype(type)));
          continue;
        }
      }
      inner[part].push_back(p.value(v, arguments[i]));
    }
    if (!p.fits || !complex) return false;
  }
  for (int64_t part = 0; part < 2; part++) {
    op.callBoxed(&inner[part]);
    found[part] = inner[part].back().toTensor();
  }
  torch::jit::drop(*stack, count);
  if (in_place) {
    stack->emplace_back(written);
    return true;
  }
  const at::Tensor result = at::complex(found[0].contiguous(), found[1].contiguous());
  if (written.defined()) {
    at::native::resize_output(written, result.sizes());
    written.copy_(result);
  }
  stack->emplace_back(written.defined() ? written : result);
  return true;
}

bool by_pairs(const c10::OperatorHandle &op, torch::jit::Stack *stack, const Kind *kind) {
  const auto &arguments = op.schema().arguments();
  const size_t count = arguments.size(), base = stack->size() - count;
  Parts parts{*kind};
  torch::jit::Stack inner;
  at::Tensor given;
  bool in_place = false;
  for (size_t i = 0; i < count && parts.fits; i++) {
    const c10::IValue &v = (*stack)[base + i];
    if (arguments[i].is_out()) {
      given = v.toTensor();
      inner.push_back(at::empty({0}, given.options().dtype(at::toRealValueType(given.scalar_type()))));
      continue;
    }
    if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite()) {
      given = v.toTensor(), in_place = true;
      if (given.is_conj() || given.is_neg()) return false;
    }
    inner.push_back(parts.value(v, arguments[i]));
  }
  if (!parts.fits || parts.rank < 0 || (given.defined() && !is_complex(given.scalar_type()))) return false;
  if (*kind == kPadded && !(*stack)[base + 2].toScalar().equal(0)) return false;
  op.callBoxed(&inner);
  at::Tensor result = inner.back().toTensor();
  if (!in_place) result = at::view_as_complex(result.contiguous());
  if (given.defined() && !in_place) {
    at::native::resize_output(given, result.sizes());
    given.copy_(result);
  }
  torch::jit::drop(*stack, count);
  stack->emplace_back(given.defined() ? given : result);
  return true;
}

}  // namespace

bool by_parts(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const Kind *kind = kind_of(op);
  return kind && ((*kind != kApart && by_pairs(op, stack, kind)) || by_each_part(op, stack));
}

}  // namespace rdna_torch
