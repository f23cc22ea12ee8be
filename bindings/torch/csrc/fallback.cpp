#include "fallback.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "by_parts.h"
#include "device.h"
#include "generator.h"
#include "half_complex.h"
#include "one_device.h"

namespace rdna_torch {
namespace {

enum class Mode { kAllow, kWarn, kError };

std::mutex mutex;
std::map<std::string, int64_t> counts;

Mode parse(const std::string &text) {
  if (text == "allow") return Mode::kAllow;
  if (text == "warn") return Mode::kWarn;
  if (text == "error") return Mode::kError;
  TORCH_CHECK(false, "RDNA_FALLBACK is allow, warn or error, not '", text, "'");
}

Mode &mode() {
  static Mode current = [] {
    const char *text = std::getenv("RDNA_FALLBACK");
    return parse(text && *text ? text : "allow");
  }();
  return current;
}

std::string full_name(const c10::OperatorName &name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// Where the results go: the device of the arguments.
c10::Device target_device(const std::vector<c10::IValue> &arguments) {
  for (const c10::IValue &value : arguments) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kRdna)
      return value.toTensor().device();
    if (value.isTensorList())
      for (const at::Tensor &t : value.toTensorVector())
        if (t.defined() && t.device().type() == kRdna) return t.device();
    if (value.isList())
      for (const c10::IValue &item : value.toListRef())
        if (item.isTensor() && item.toTensor().defined() && item.toTensor().device().type() == kRdna)
          return item.toTensor().device();
    if (value.isDevice() && value.toDevice().type() == kRdna)
      return value.toDevice().has_index() ? value.toDevice() : c10::Device(kRdna, current_device());
  }
  return c10::Device(kRdna, current_device());
}

int64_t reach(const at::Tensor &t) {
  return static_cast<int64_t>(at::detail::computeStorageNbytes(t.sizes(), t.strides(), 1));
}

// An empty tensor with |t|'s shape and, unless that leaves more room between values than they take, its strides.
at::Tensor same_layout(const at::Tensor &t, c10::Device device) {
  const bool apart = at::has_internal_overlap(t) == at::MemOverlap::Yes || reach(t) > 2 * t.numel();
  return apart ? at::empty(t.sizes(), t.options().device(device))
               : at::empty_strided(t.sizes(), t.strides(), t.options().device(device));
}

// A copy on |device| with the same shape and strides; of a sparse tensor, its parts.
at::Tensor copy_on(c10::Device device, const at::Tensor &t) {
  if (t.is_sparse())
    return at::_sparse_coo_tensor_unsafe(t._indices().to(device), t._values().to(device), t.sizes(),
                                         t.options().device(device), t.is_coalesced());
  if (at::sparse_csr::is_sparse_compressed(t)) {
    const at::SparseCsrTensorImpl *parts = at::sparse_csr::get_sparse_csr_impl(t);
    return at::_sparse_compressed_tensor_unsafe(parts->compressed_indices().to(device),
                                                parts->plain_indices().to(device), parts->values().to(device),
                                                t.sizes(), t.options().device(device));
  }
  return same_layout(t, device).copy_(t, /*non_blocking=*/true);  // in the order of the stream, as every operator
}

at::Tensor to_cpu(const at::Tensor &t) { return t.defined() && t.device().type() == kRdna ? copy_on(at::kCPU, t) : t; }

at::Tensor to_device(const at::Tensor &t, c10::Device device) {
  return t.defined() && t.device().type() != kRdna ? copy_on(device, t) : t;
}

// Brings what the CPU wrote back into the tensor that was given, and its layout where the CPU chose a new one.
void write_back(const at::Tensor &given, const at::Tensor &result) {
  if (result.is_sparse()) {
    auto *parts = static_cast<at::SparseTensorImpl *>(given.unsafeGetTensorImpl());
    parts->raw_resize_(result.sparse_dim(), result.dense_dim(), result.sizes());
    parts->set_indices_and_values_unsafe(result._indices().to(given.device()), result._values().to(given.device()));
    parts->set_coalesced(result.is_coalesced());
    return;
  }
  if (at::sparse_csr::is_sparse_compressed(result)) {
    const at::SparseCsrTensorImpl *from = at::sparse_csr::get_sparse_csr_impl(result);
    at::sparse_csr::get_sparse_csr_impl(given)->set_member_tensors(from->compressed_indices().to(given.device()),
                                                                   from->plain_indices().to(given.device()),
                                                                   from->values().to(given.device()), result.sizes());
    return;
  }
  if (!given.sizes().equals(result.sizes()) && at::has_internal_overlap(result) != at::MemOverlap::Yes) {
    given.resize_({reach(result)});
    given.as_strided_(result.sizes(), result.strides());
  }
  given.copy_(result);
}

// The CPU's key for these arguments: that of the layout that the dispatcher would take.
c10::DispatchKey cpu_key(const torch::jit::Stack &arguments) {
  c10::DispatchKey key = c10::DispatchKey::CPU;
  auto look = [&](const at::Tensor &t) {
    if (!t.defined()) return;
    if (at::sparse_csr::is_sparse_compressed(t))
      key = c10::DispatchKey::SparseCsrCPU;
    else if (t.is_sparse() && key == c10::DispatchKey::CPU)
      key = c10::DispatchKey::SparseCPU;
  };
  for (const c10::IValue &value : arguments) {
    if (value.isTensor()) look(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor &t : value.toTensorVector()) look(t);
    if (value.isOptionalTensorList())
      for (const c10::IValue &item : value.toListRef())
        if (item.isTensor()) look(item.toTensor());
  }
  return key;
}

// Whether PyTorch's CPU has the operator at all, for these arguments' layout.
void check_cpu_has(const c10::OperatorHandle &op, const std::string &name, c10::DispatchKey key) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(key), name,
                              " has no rdna kernel for these arguments, and PyTorch's CPU, where it would run instead, "
                              "has none either");
}

// What the CPU's kernels say that were not made for a type, "…" not implemented for 'Half', and the type that they have
// instead, in which all values of that one stay what they are.
constexpr char kNotFor[] = "not implemented for '";
struct Widening {
  at::ScalarType from, to;
};
std::optional<Widening> widening(const std::string &sentence) {
  static const Widening known[] = {
      {at::kHalf, at::kFloat}, {at::kBFloat16, at::kFloat}, {at::kComplexHalf, at::kComplexFloat}};
  for (const Widening &w : known)
    if (sentence.find(std::string(kNotFor) + c10::toString(w.from) + "'") != std::string::npos) return w;
  return {};
}

c10::IValue with_tensors(const c10::IValue &value, const std::function<at::Tensor(const at::Tensor &)> &change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor &t : value.toTensorVector()) list.push_back(change(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue &item : value.toListRef())
      list.push_back(item.isTensor() ? std::optional<at::Tensor>(change(item.toTensor())) : std::nullopt);
    return list;
  }
  return value;
}

// One argument's tensors before and after they went to the CPU.
struct Moved {
  std::vector<at::Tensor> given, used;
};

bool returns_view(const c10::FunctionSchema &schema) {
  for (const auto &r : schema.returns())
    if (r.alias_info() && !r.alias_info()->isWrite()) return true;
  return false;
}

// What the CPU gets for an argument, whose tensors go there by |move|.
c10::IValue on_cpu(const c10::IValue &value, const c10::Argument &argument, c10::Device device,
                   const std::function<at::Tensor(const at::Tensor &)> &move) {
  if (value.isDevice()) return value.toDevice().type() == kRdna ? c10::Device(at::kCPU) : value.toDevice();
  if (value.isGenerator())
    return value.toGenerator().device().type() == kRdna ? cpu_generator(value.toGenerator(), device.index())
                                                        : value.toGenerator();
  if (value.isNone() && argument.type()->str().find("Generator") != std::string::npos)
    return cpu_generator(std::nullopt, device.index());
  return with_tensors(value, move);
}

// Copies |t|, of argument |i|, to the CPU; one tensor given twice is one tensor there too.
at::Tensor move_to_cpu(std::vector<Moved> &moved, size_t i, const at::Tensor &t) {
  if (!t.defined()) return t;
  at::Tensor copy;
  for (const Moved &m : moved)
    for (size_t k = 0; k < m.given.size() && !copy.defined(); k++)
      if (m.given[k].is_same(t)) copy = m.used[k];
  moved[i].given.push_back(t);
  moved[i].used.push_back(copy.defined() ? copy : to_cpu(t));
  return moved[i].used.back();
}

bool is_written(const c10::Argument &argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

void write_back_all(const c10::FunctionSchema &schema, const std::vector<Moved> &moved) {
  for (size_t i = 0; i < moved.size(); i++)
    for (size_t k = 0; is_written(schema.arguments()[i]) && k < moved[i].given.size(); k++)
      if (moved[i].given[k].device().type() == kRdna) write_back(moved[i].given[k], moved[i].used[k]);
}

// A result that is one of the written arguments is that argument; the others are new.
c10::IValue result_on_device(const c10::IValue &value, const c10::FunctionSchema &schema,
                             const std::vector<Moved> &moved, c10::Device device) {
  for (size_t i = 0; value.isTensor() && i < moved.size(); i++)
    for (size_t k = 0; is_written(schema.arguments()[i]) && k < moved[i].used.size(); k++)
      if (value.toTensor().is_same(moved[i].used[k])) return moved[i].given[k];
  return with_tensors(value, [&](const at::Tensor &t) { return to_device(t, device); });
}

}  // namespace

void count_fallback(const std::string &name) {
  // the mark by which PyTorch's profiler shows a fallback of any device: its parent is the operator
  RECORD_FUNCTION("aten::_to_cpu", c10::ArrayRef<const c10::IValue>{});
  const Mode now = mode();
  TORCH_CHECK_NOT_IMPLEMENTED(now != Mode::kError, name,
                              " has no rdna kernel for these arguments, and RDNA_FALLBACK=error forbids running it on "
                              "the CPU; torch.rdna.set_fallback_mode('allow') allows it");
  std::lock_guard<std::mutex> lock(mutex);
  if (++counts[name] == 1 && now == Mode::kWarn)
    TORCH_WARN(name, " has no rdna kernel for these arguments and runs on the CPU, on copies");
}

namespace {

// Runs |op| on the CPU; where its kernel was not made for 16 bits, on values of 32, and counts that. Results come back
// in the type that was given.
void run_on_cpu(const c10::OperatorHandle &op, const std::string &name, c10::DispatchKey key, std::vector<Moved> &moved,
                torch::jit::Stack *inner) {
  const torch::jit::Stack before = *inner;
  std::string sentence;
  try {
    return op.redispatchBoxed(c10::DispatchKeySet(key), inner);
  } catch (const c10::Error &error) {  // PyTorch 2.6 has no class of its own for it
    sentence = error.what_without_backtrace();
    if (sentence.find(kNotFor) == std::string::npos) throw;
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // one tensor given twice stays one
  inner->clear();
  if (const std::optional<Widening> wider = widening(sentence)) {
    auto widen = [&](const at::Tensor &t) {
      if (!t.defined() || t.scalar_type() != wider->from) return t;
      for (const auto &[old, now] : changed)
        if (old.is_same(t)) return now;
      changed.emplace_back(t, t.to(wider->to));
      return changed.back().second;
    };
    for (const c10::IValue &value : before) inner->push_back(with_tensors(value, widen));
    for (Moved &m : moved)
      for (at::Tensor &t : m.used) t = widen(t);
    auto narrow = [&](const at::Tensor &t) {
      if (!t.defined() || t.scalar_type() != wider->to) return t;
      for (const auto &[old, now] : changed)
        if (now.is_same(t)) return t;  // an argument that was written
      return t.to(wider->from);
    };
    if (!changed.empty()) {
      count_fallback(name + " (" + c10::toString(wider->from) + " computed in " + c10::toString(wider->to) + ")");
      try {
        op.redispatchBoxed(c10::DispatchKeySet(key), inner);
        for (c10::IValue &value : *inner) value = with_tensors(value, narrow);
        return;
      } catch (const c10::Error &error) {  // nor for the wider one
        if (std::string(error.what_without_backtrace()).find(kNotFor) == std::string::npos) throw;
      }
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, name,
                              " has no rdna kernel for these arguments, and that of PyTorch's CPU, where it would run "
                              "instead, was not made for their type: ",
                              sentence);
}

}  // namespace

void fall_back(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const c10::FunctionSchema &schema = op.schema();
  const std::string name = full_name(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(!returns_view(schema), name,
                              " returns a view, which a copy on the CPU cannot be; it has no rdna kernel yet");
  one_device(op, *stack);
  if (by_wider_complex(op, stack) || by_parts(op, stack)) return;

  const size_t count = schema.arguments().size();
  const std::vector<c10::IValue> given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const c10::DispatchKey key = cpu_key(given);
  check_cpu_has(op, name, key);
  count_fallback(name);
  const c10::Device device = target_device(given);
  CurrentDevice here(device.index());
  std::vector<Moved> moved(count);
  torch::jit::drop(*stack, count);

  torch::jit::Stack inner;
  for (size_t i = 0; i < count; i++)
    inner.push_back(
        on_cpu(given[i], schema.arguments()[i], device, [&](const at::Tensor &t) { return move_to_cpu(moved, i, t); }));

  if (key != c10::DispatchKey::CPU)  // kernels on sparse tensors ask whether a gradient will want more results
    for (const Moved &m : moved)
      for (size_t k = 0; k < m.given.size(); k++)
        if (m.given[k].requires_grad() && !m.given[k].is_same(m.used[k])) m.used[k].set_requires_grad(true);
  run_on_cpu(op, name, key, moved, &inner);

  write_back_all(schema, moved);
  for (const c10::IValue &value : inner) stack->push_back(result_on_device(value, schema, moved, device));
}

std::map<std::string, int64_t> fallback_counts() {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

void reset_fallback_counts() {
  std::lock_guard<std::mutex> lock(mutex);
  counts.clear();
}

void set_fallback_mode(const std::string &text) { mode() = parse(text); }

std::string fallback_mode() { return mode() == Mode::kAllow ? "allow" : mode() == Mode::kWarn ? "warn" : "error"; }

namespace {
void boxed(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) { fall_back(op, stack); }
}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed>()); }

// Operators without a derivative, as torch.distributed's and our own, go through autograd on such a device only in
// releases later than torch 2.6; there it is ours to let them.
std::unique_ptr<torch::Library> let_through() {
  constexpr auto kKey = c10::DispatchKey::AutogradPrivateUse1;
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kKey)) return nullptr;
  auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFallthrough());
  return library;
}
const std::unique_ptr<torch::Library> autograd = let_through();

}  // namespace rdna_torch
