#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "device.h"

namespace rdna_torch {

GeneratorImpl::GeneratorImpl(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(kRdna, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      seed_(c10::detail::getNonDeterministicRandom()) {}

void GeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t GeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

// The state is seed and offset, 16 bytes.
void GeneratorImpl::set_state(const c10::TensorImpl &state) {
  TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.numel() == 16,
              "the state of an rdna generator is 16 bytes on the CPU; got ", state.numel(), " values of ",
              state.dtype(), " on ", state.device());
  TORCH_CHECK(state.is_contiguous(), "the state of an rdna generator must be contiguous");
  uint64_t words[2];
  std::memcpy(words, state.data(), sizeof words);
  seed_ = words[0];
  offset_ = words[1];
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  at::Tensor state = at::empty({16}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  const uint64_t words[2] = {seed_, offset_};
  std::memcpy(state.data_ptr(), words, sizeof words);
  return state.getIntrusivePtr();
}

uint64_t GeneratorImpl::take(uint64_t counters) {
  const uint64_t first = offset_;
  offset_ += counters;
  return first;
}

GeneratorImpl *GeneratorImpl::clone_impl() const {
  auto *copy = new GeneratorImpl(device().index());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

const at::Generator &default_generator(c10::DeviceIndex index) {
  static std::mutex mutex;
  static std::deque<at::Generator> generators;  // one for each device; references stay good
  if (index < 0) index = current_device();
  TORCH_CHECK(index < device_count(), "rdna:", static_cast<int>(index), " has no generator: there are ",
              static_cast<int>(device_count()), " devices. ", unavailable());
  std::lock_guard<std::mutex> lock(mutex);
  while (generators.size() <= static_cast<size_t>(index))
    generators.push_back(new_generator(static_cast<c10::DeviceIndex>(generators.size())));
  return generators[static_cast<size_t>(index)];
}

at::Generator new_generator(c10::DeviceIndex index) {
  TORCH_CHECK(index < device_count(), "a generator of rdna:", static_cast<int>(index), " was asked for; there are ",
              static_cast<int>(device_count()), " devices. ", unavailable());
  return at::make_generator<GeneratorImpl>(index < 0 ? current_device() : index);
}

Draw draw(const std::optional<at::Generator> &generator, c10::DeviceIndex index, uint64_t counters) {
  at::Generator from = generator && generator->defined() ? *generator : default_generator(index);
  TORCH_CHECK(from.device().type() == kRdna, "expected a generator of rdna, got one of ", from.device());
  std::lock_guard<std::mutex> lock(from.mutex());
  auto *impl = static_cast<GeneratorImpl *>(from.unsafeGetGeneratorImpl());
  const uint64_t seed = impl->current_seed();
  return {seed, impl->take(counters)};
}

at::Generator cpu_generator(const std::optional<at::Generator> &generator, c10::DeviceIndex index) {
  const Draw from = draw(generator, index, 1);
  // Seeds that follow from one another by the offset; the odd factor spreads neighbouring offsets.
  return at::make_generator<at::CPUGeneratorImpl>(from.seed + from.offset * 0x9E3779B97F4A7C15ull);
}

}  // namespace rdna_torch
