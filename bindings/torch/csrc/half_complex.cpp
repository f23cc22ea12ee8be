#include "half_complex.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>

#include <optional>
#include <utility>
#include <vector>

#include "device.h"

namespace rdna_torch {
namespace {

bool is_half_complex(const at::Tensor &t) {
  return t.defined() && t.scalar_type() == at::kComplexHalf && t.device().type() == kRdna && t.layout() == at::kStrided;
}

bool is_type(const c10::Argument &argument) {
  c10::TypePtr type = argument.real_type();
  if (type->kind() == c10::TypeKind::OptionalType) type = type->castRaw<c10::OptionalType>()->getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

at::ScalarType wider(at::ScalarType type) {
  return type == at::kComplexHalf ? at::kComplexFloat : type == at::kHalf ? at::kFloat : type;
}
at::ScalarType narrower(at::ScalarType type) {
  return type == at::kComplexFloat ? at::kComplexHalf : type == at::kFloat ? at::kHalf : type;
}

// The tensors that were given, and what is computed with; one that is given twice is one there too.
class Widened {
 public:
  at::Tensor of(const at::Tensor &t) {
    // beside one of 32 bits in each part results are of its type
    if (t.defined() && t.dim() > 0 && narrower(t.scalar_type()) != t.scalar_type()) wide_ = true;
    if (!t.defined() || wider(t.scalar_type()) == t.scalar_type()) return t;
    for (const auto &[given, used] : pairs_)
      if (given.is_same(t)) return used;
    pairs_.emplace_back(t, t.to(wider(t.scalar_type())));
    return pairs_.back().second;
  }
  c10::IValue value(const c10::IValue &v, const c10::Argument &argument) {
    if (v.isTensor()) return of(v.toTensor());
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor &t : v.toTensorVector()) list.push_back(of(t));
      return list;
    }
    if (v.isList() && v.toListRef().size() && argument.type()->str().find("Tensor?") != std::string::npos) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue &item : v.toListRef())
        list.push_back(item.isNone() ? std::nullopt : std::make_optional(of(item.toTensor())));
      return list;
    }
    if (!v.isInt() || !is_type(argument)) return v;
    const auto type = static_cast<at::ScalarType>(v.toInt());
    asked_wide_ = wider(type) == type;
    return static_cast<int64_t>(wider(type));
  }
  at::Tensor result(const at::Tensor &t) const {
    if (!t.defined()) return t;
    for (const auto &[given, used] : pairs_)
      if (used.is_same(t)) return given;
    return asked_wide_.value_or(wide_) ? t : t.to(narrower(t.scalar_type()));
  }
  c10::IValue result(const c10::IValue &v) const {
    if (v.isTensor()) return result(v.toTensor());
    if (!v.isTensorList()) return v;
    c10::List<at::Tensor> list;
    for (const at::Tensor &t : v.toTensorVector()) list.push_back(result(t));
    return list;
  }
  void write_back(const at::Tensor &given) const {
    for (const auto &[t, used] : pairs_)
      if (t.is_same(given)) {
        at::native::resize_output(t, used.sizes());
        t.copy_(used);
      }
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
  bool wide_ = false;
  std::optional<bool> asked_wide_;  // a result's type that was given
};

}  // namespace

bool by_wider_complex(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const auto &arguments = op.schema().arguments();
  const size_t count = arguments.size();
  const torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  bool any = false, half = false, number = false;  // a complex number makes complex32 of f16
  auto look = [&](const at::Tensor &t) {
    any = any || is_half_complex(t);
    half = half || (t.defined() && t.scalar_type() == at::kHalf && t.device().type() == kRdna);
    number = number || (t.defined() && t.dim() == 0 && t.is_complex() && t.device().is_cpu());
  };
  for (size_t i = 0; i < count; i++) {
    const c10::IValue &v = given[i];
    if (v.isTensor()) look(v.toTensor());
    if (v.isTensorList())
      for (const at::Tensor &t : v.toTensorVector()) look(t);
    if (v.isInt() && is_type(arguments[i])) any = any || static_cast<at::ScalarType>(v.toInt()) == at::kComplexHalf;
    number = number || v.isComplexDouble();
  }
  any = any || (half && number);
  if (!any) return false;
  Widened widened;
  torch::jit::Stack inner;
  for (size_t i = 0; i < count; i++) inner.push_back(widened.value(given[i], arguments[i]));
  op.callBoxed(&inner);
  for (size_t i = 0; i < count; i++) {
    if (!arguments[i].alias_info() || !arguments[i].alias_info()->isWrite()) continue;
    if (given[i].isTensor()) widened.write_back(given[i].toTensor());
    if (given[i].isTensorList())
      for (const at::Tensor &t : given[i].toTensorVector()) widened.write_back(t);
  }
  torch::jit::drop(*stack, count);
  for (const c10::IValue &v : inner) stack->push_back(widened.result(v));
  return true;
}

}  // namespace rdna_torch
