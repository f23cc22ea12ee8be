// Packages that torch._inductor.aoti_compile_and_package made for rdna, as PyTorch's loader of packages runs them.
//
// PyTorch's runtime for such packages allocates the weights, and its executor names the devices of operators, by a list
// of devices that is compiled into it and has no place for others. So a package of rdna's is a program for the CPU that
// has no weights and no kernels: it asks for operators by their numbers. Beside it lies a file, which _aoti.py wrote,
// with the weights and what each number means.
#include <torch/version.h>

// the functions that PyTorch calls have had these arguments since 2.13
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 13)
#include <ATen/DynamicLibrary.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "device.h"

namespace rdna_torch {
namespace {

// One operator: its arguments as the file has them, and which of its results the program takes.
struct Step {
  c10::OperatorHandle op;
  std::vector<c10::IValue> arguments;
  std::vector<bool> taken;
};

// The tensors and sizes of one call, in the order of their use.
struct Given {
  AtenTensorHandle *tensors;
  int64_t *sizes;
  int tensor_count, size_count;
  at::Tensor &tensor() {
    TORCH_CHECK(tensor_count-- > 0, "a package of rdna's gave an operator too few tensors: compile it again");
    return *reinterpret_cast<at::Tensor *>(*tensors++);
  }
  int64_t size() {
    TORCH_CHECK(size_count-- > 0, "a package of rdna's gave an operator too few sizes: compile it again");
    return *sizes++;
  }
};

class Executor : public torch::aot_inductor::ProxyExecutor {
 public:
  void begin(c10::Device device, const c10::IValue &steps) {
    device_ = device;
    for (const c10::IValue &one : steps.toListRef()) {
      const auto &parts = one.toTupleRef().elements();
      Step step{c10::Dispatcher::singleton().findSchemaOrThrow(parts[0].toStringRef().c_str(),
                                                               parts[1].toStringRef().c_str()),
                {},
                {}};
      for (const c10::IValue &argument : parts[2].toListRef()) step.arguments.push_back(argument);
      for (const c10::IValue &taken : parts[3].toListRef()) step.taken.push_back(taken.toBool());
      TORCH_CHECK(step.arguments.size() == step.op.schema().arguments().size(), "a package for rdna calls ",
                  step.op.schema().name(), " with ", step.arguments.size(), " arguments, which has ",
                  step.op.schema().arguments().size(), " in this release: compile it again");
      steps_.push_back(std::move(step));
    }
  }

  void call_function(int index, int size_count, int64_t *sizes, int tensor_count, AtenTensorHandle *tensors) override {
    const Step &step = steps_.at(static_cast<size_t>(index));
    Given given{tensors, sizes, tensor_count, size_count};
    std::vector<c10::IValue> stack;
    stack.reserve(step.arguments.size());
    for (size_t i = 0; i < step.arguments.size(); i++)
      stack.push_back(value(step.arguments[i], step.op.schema().arguments()[i].real_type(), given));
    step.op.callBoxed(&stack);
    size_t place = 0;
    auto take = [&](const c10::IValue &result) {
      if (place < step.taken.size() && step.taken[place++]) given.tensor() = result.toTensor();
    };
    for (const c10::IValue &result : stack) {
      if (!result.isList()) {
        take(result);
        continue;
      }
      for (const c10::IValue &part : result.toListRef()) take(part);
    }
  }

 private:
  // What the file says of an argument: None; a number or a text, itself; or a word and what belongs to it.
  c10::IValue value(const c10::IValue &said, c10::TypePtr type, Given &given) const {
    if (type->kind() == c10::TypeKind::OptionalType) type = type->castRaw<c10::OptionalType>()->getElementType();
    if (!said.isTuple()) return said;
    const auto &parts = said.toTupleRef().elements();
    const std::string &word = parts[0].toStringRef();
    if (word == "tensor") return given.tensor();
    if (word == "size") return given.size();
    if (word == "device") return device_;
    if (word == "host") return c10::Device(c10::kCPU);
    if (word == "type") return parts[1].toTensor().scalar_type();
    if (word == "number") {
      const at::Tensor number = c10::scalar_to_tensor(value(parts[1], c10::NumberType::get(), given).toScalar());
      number.unsafeGetTensorImpl()->set_wrapped_number(true);
      return number;
    }
    TORCH_CHECK(word == "list", "a package for rdna has an argument '", word, "' that this release does not know");
    const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
    const bool are_sizes = element->kind() == c10::TypeKind::SymIntType;
    c10::impl::GenericList list(are_sizes ? c10::TypePtr(c10::IntType::get()) : element);
    for (const c10::IValue &part : parts[1].toListRef()) list.push_back(value(part, element, given));
    return list;
  }

  c10::Device device_ = c10::Device(c10::kCPU);
  std::vector<Step> steps_;
};

class Runner : public torch::inductor::AOTIModelContainerRunner {
 public:
  Runner(const std::string &library, size_t models, const std::string &device, const std::string &folder, bool single)
      : AOTIModelContainerRunner(library, models, "cpu", folder, single), device_(device) {
    std::string path;
    for (const auto &file : std::filesystem::directory_iterator(folder))
      if (file.path().extension() == ".rdna") path = file.path().string();
    TORCH_CHECK(!path.empty(), "no file of rdna's is in the package (", folder,
                "): compile it with aoti_compile_and_package where torch_rdna is imported");
    std::ifstream stream(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    const c10::IValue file = torch::jit::pickle_load(bytes);
    const auto parts = file.toTupleRef().elements();
    executor_.begin(device_, parts[0]);
    update_user_managed_constant_buffer_func_ = holding();
    std::unordered_map<std::string, at::Tensor> weights;
    for (const auto &entry : parts[1].toGenericDict()) {
      const at::Tensor &weight = entry.value().toTuple()->elements()[0].toTensor();
      const bool moves = entry.value().toTuple()->elements()[1].toBool();
      weights[entry.key().toStringRef()] = moves ? weight.to(device_) : weight;
    }
    if (!weights.empty()) update_constant_buffer(weights, false, true, true);
    proxy_executor_handle_ =
        reinterpret_cast<AOTIProxyExecutorHandle>(static_cast<torch::aot_inductor::ProxyExecutor *>(&executor_));
  }

 private:
  std::vector<at::Tensor> run_impl(std::vector<AtenTensorHandle> &inputs, void *stream) override {
    const c10::OptionalDeviceGuard guard(device_);
    return AOTIModelContainerRunner::run_impl(inputs, stream);
  }

  // The library's function that gives references to weights back, which PyTorch's does not (_aoti.py).
  decltype(update_user_managed_constant_buffer_func_) holding() const {
    try {
      return reinterpret_cast<decltype(holding())>(model_so_->sym("rdna_hold_weights"));
    } catch (const c10::Error &) {
      TORCH_CHECK(false, "a package for rdna has no function that holds its weights: compile it again");
    }
  }

  c10::Device device_;
  Executor executor_;
};

std::unique_ptr<torch::inductor::AOTIModelContainerRunner> make_runner(const std::string &library, size_t models,
                                                                       const std::string &device,
                                                                       const std::string &folder, bool single) {
  return std::make_unique<Runner>(library, models, device, folder, single);
}

const torch::inductor::RegisterAOTIModelRunner registered("rdna", make_runner);

}  // namespace
}  // namespace rdna_torch
#endif
