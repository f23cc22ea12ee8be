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

}  // namespace

bool by_parts(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const Kind *kind = kind_of(op);
  if (!kind) return false;
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

}  // namespace rdna_torch
