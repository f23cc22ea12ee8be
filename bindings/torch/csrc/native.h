// How an operator of PyTorch becomes operators of librdna.
//
// A family is a file in ops/ with a table: a row names an overload as PyTorch's schema does ("exp.out") and says what
// of librdna computes it. Kernels are boxed: they see their arguments on PyTorch's stack, so that one function serves
// all rows of a table, and handing a call to the CPU fallback is returning false before anything was written. How to
// add an operator: README.md.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.h"
#include "fallback.h"
#include "tensor.h"

namespace rdna_torch {

// The arguments of one call, and its results.
class Call {
 public:
  Call(const c10::OperatorHandle &op, torch::jit::Stack *stack)
      : op_(op), stack_(stack), count_(op.schema().arguments().size()) {}

  size_t count() const { return count_; }
  const c10::IValue &operator[](size_t i) const { return (*stack_)[stack_->size() - count_ + i]; }
  // Undefined for None.
  at::Tensor tensor(size_t i) const {
    const c10::IValue &v = (*this)[i];
    return v.isTensor() ? v.toTensor() : at::Tensor();
  }
  std::optional<at::Tensor> optional(size_t i) const { return none(i) ? std::nullopt : std::make_optional(tensor(i)); }
  std::vector<at::Tensor> tensors(size_t i) const { return (*this)[i].toTensorVector(); }
  at::Scalar scalar(size_t i) const { return (*this)[i].toScalar(); }
  double real(size_t i) const { return scalar(i).toDouble(); }
  int64_t integer(size_t i) const { return (*this)[i].toInt(); }
  bool flag(size_t i) const { return (*this)[i].toBool(); }
  bool none(size_t i) const { return (*this)[i].isNone(); }
  std::vector<int64_t> integers(size_t i) const {
    const c10::IValue &v = (*this)[i];
    return v.isNone() ? std::vector<int64_t>{} : v.isInt() ? std::vector<int64_t>{v.toInt()} : v.toIntVector();
  }
  std::optional<at::ScalarType> type(size_t i) const {
    return none(i) ? std::nullopt : std::optional<at::ScalarType>((*this)[i].toScalarType());
  }
  std::optional<at::Generator> generator(size_t i) const {
    return none(i) ? std::nullopt : std::optional<at::Generator>((*this)[i].toGenerator());
  }

  // Where the result goes: the argument that the schema marks as written (out= or in place), or an undefined tensor
  // when the overload makes a new one.
  at::Tensor output() const {
    const auto &arguments = op_.schema().arguments();
    if (arguments.back().is_out()) return tensor(count_ - 1);
    return in_place() ? tensor(0) : at::Tensor();
  }

  // Whether the overload writes its first argument, a tensor or a list of them.
  bool in_place() const {
    const c10::AliasInfo *alias = op_.schema().arguments().front().alias_info();
    return alias && alias->isWrite();
  }

  // Ends the call with the kernel that PyTorch has for |key|.
  void redispatch(c10::DispatchKey key) { op_.callBoxedForDispatchKey(key, *stack_); }

  // Ends the call: its results take the place of its arguments.
  bool give(const at::Tensor &result) {
    torch::jit::drop(*stack_, count_);
    stack_->emplace_back(result);
    return true;
  }
  bool give(at::ArrayRef<at::Tensor> results) {
    torch::jit::drop(*stack_, count_);
    for (const at::Tensor &r : results) stack_->emplace_back(r);
    return true;
  }
  bool give_nothing() {
    torch::jit::drop(*stack_, count_);
    return true;
  }
  bool give_values(std::initializer_list<c10::IValue> results) {
    torch::jit::drop(*stack_, count_);
    for (const c10::IValue &r : results) stack_->push_back(r);
    return true;
  }
  bool give_value(c10::IValue value) {
    torch::jit::drop(*stack_, count_);
    stack_->push_back(std::move(value));
    return true;
  }

  // The first tensor on rdna among the arguments says where the work is done.
  c10::DeviceIndex device() const;

 private:
  const c10::OperatorHandle &op_;
  torch::jit::Stack *stack_;
  size_t count_;
};

// A row of a table with what computes it. False: not for these arguments; nothing was written and the arguments are
// still on the stack.
template <class Row>
using Run = bool (*)(const Row &, Call &);

template <class Row>
class Native final : public c10::OperatorKernel {
 public:
  Native(const Row &row, Run<Row> run) : row_(row), run_(run) {}
  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
    Call call(op, stack);
    CurrentDevice here(call.device());
    follow_deterministic();
    if (!run_(row_, call)) fall_back(op, stack);
  }

 private:
  Row row_;
  Run<Row> run_;
};

// Registers every row; a row's first member is its name.
template <class Row, size_t N>
void add(torch::Library &m, const Row (&rows)[N], Run<Row> run) {
  for (const Row &row : rows)
    m.impl(row.name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Native<Row>>(row, run)));
}

// The forms of the out= overload |name| ("mul.out") that PyTorch makes of it: the one that makes a new tensor
// ("mul.Tensor") and, where |in_place|, the one that writes its first ("mul_.Tensor"). They take the same arguments.
std::vector<std::string> made_of(const char *name, bool in_place);

template <class Row, size_t N>
void add_forms(torch::Library &m, const Row (&rows)[N], Run<Row> run, bool in_place) {
  add<Row, N>(m, rows, run);
  for (const Row &row : rows)
    for (const std::string &name : made_of(row.name, in_place))
      m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Native<Row>>(row, run)));
}

// As add, and also registers what PyTorch would make of each row. It would allocate the result after an iterator of its
// own, only for ours to be built again behind another call: half of a small operator's time on the host.
template <class Row, size_t N>
void add_all_forms(torch::Library &m, const Row (&rows)[N], Run<Row> run) {
  add_forms<Row, N>(m, rows, run, true);
}

// The same without the forms in place, whose shape and type PyTorch checks before it calls out=.
template <class Row, size_t N>
void add_new_forms(torch::Library &m, const Row (&rows)[N], Run<Row> run) {
  add_forms<Row, N>(m, rows, run, false);
}

// A family without a table: each overload has its function.
struct Single {
  const char *name;
  bool (*run)(Call &);
};
inline bool run_single(const Single &row, Call &call) { return row.run(call); }
template <size_t N>
void add(torch::Library &m, const Single (&rows)[N]) {
  add<Single, N>(m, rows, &run_single);
}
template <size_t N>
void add_all_forms(torch::Library &m, const Single (&rows)[N]) {
  add_all_forms<Single, N>(m, rows, &run_single);
}
template <size_t N>
void add_new_forms(torch::Library &m, const Single (&rows)[N]) {
  add_new_forms<Single, N>(m, rows, &run_single);
}

// |given| when it can be written as it is asked for, resized as out= arguments are, or a new tensor where it is
// undefined. Where |given| has another type or is not contiguous though |contiguous| is asked for, this is a temporary:
// finish() brings it home.
class Output {
 public:
  Output(const at::Tensor &given, at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like,
         bool contiguous = true);
  const at::Tensor &get() const { return work_; }
  const at::Tensor &finish();

 private:
  at::Tensor given_, work_;
};

// Ends the call with |value|, which is of its own memory: as the result, or written where the overload says.
bool give_or_write(Call &call, const at::Tensor &value);

// An operator that is made of others: its value, or an undefined tensor where that is not for these arguments.
struct Made {
  const char *name;
  at::Tensor (*value)(const Call &);
};
bool run_made(const Made &row, Call &call);

inline int64_t wrap(int64_t dim, int64_t rank) {
  const int64_t n = rank ? rank : 1;
  TORCH_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

}  // namespace rdna_torch
