#include "native.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include <algorithm>

#include "one_device.h"

namespace rdna_torch {

c10::DeviceIndex Call::device() const { return one_device(op_, *stack_); }

std::vector<std::string> made_of(const char *name, bool in_place) {
  const std::string whole(name), base = whole.substr(0, whole.find('.'));
  std::string overload = whole.size() > base.size() ? whole.substr(base.size() + 1) : "";
  auto find = [](const std::string &op, const std::string &form) {
    return c10::Dispatcher::singleton().findSchema({"aten::" + op, form});
  };
  const auto out = find(base, overload);
  if (!out || !out->schema().arguments().back().is_out()) return {};
  auto takes_the_same = [&](const c10::OperatorHandle &op) {
    const auto &a = op.schema().arguments(), &b = out->schema().arguments();
    return a.size() + 1 == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto &x, const auto &y) {
             return x.name() == y.name() && *x.type() == *y.type();
           });
  };
  for (const char *end : {"_out", "out", "grad_input"}) {
    const size_t size = std::string(end).size();
    if (overload.size() < size || overload.compare(overload.size() - size, size, end) != 0) continue;
    overload.resize(overload.size() - size);
    break;
  }
  std::vector<std::string> names;
  for (const std::string &op : in_place ? std::vector{base, base + "_"} : std::vector{base})
    for (const std::string &form : {overload, std::string("Tensor"), std::string("Scalar"), std::string("dim"),
                                    "dim_" + overload}) {  // sum.IntList_out is that of sum.dim_IntList
      const auto found = find(op, form);
      if (!found || !found->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
          !takes_the_same(*found))
        continue;
      names.push_back(form.empty() ? op : op + "." + form);
      break;
    }
  return names;
}

Output::Output(const at::Tensor &given, at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like,
               bool contiguous)
    : given_(given) {
  if (given_.defined()) {
    TORCH_CHECK(given_.device() == like.device(), "Expected all tensors to be on the same device, but found ",
                given_.device(), " and ", like.device());
    TORCH_CHECK(c10::canCast(type, given_.scalar_type()), "result type ", type,
                " can't be cast to the desired output type ", given_.scalar_type());
    at::native::resize_output(given_, shape);
    at::assert_no_internal_overlap(given_);
    at::assert_no_partial_overlap(given_, like);
    const bool lazy = given_.is_conj() || given_.is_neg();
    if (given_.scalar_type() == type && !lazy && (!contiguous || given_.is_contiguous())) {
      work_ = given_;
      return;
    }
  }
  work_ = make(shape, type, like);
}

bool give_or_write(Call &call, const at::Tensor &value) {
  const at::Tensor given = call.output();
  if (!given.defined()) return call.give(value);
  TORCH_CHECK(!call.in_place() || given.sizes() == value.sizes(), "output with shape ", given.sizes(),
              " doesn't match the broadcast shape ", value.sizes());
  Output out(given, value.sizes(), value.scalar_type(), value, false);
  if (!out.get().is_same(value)) out.get().copy_(value);
  return call.give(out.finish());
}

bool run_made(const Made &row, Call &call) {
  const at::Tensor value = row.value(call), given = call.output();
  if (!value.defined()) return false;
  for (size_t i = 0; given.defined() && i < call.count(); i++)
    if (call[i].isTensor()) at::assert_no_partial_overlap(given, call.tensor(i));
  return give_or_write(call, value);
}

const at::Tensor &Output::finish() {
  if (!given_.defined()) return work_;
  if (!given_.is_same(work_)) given_.copy_(work_);
  return given_;
}

}  // namespace rdna_torch
