// Random numbers: a seed and an offset into librdna's Philox sequence.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <optional>

namespace rdna_torch {

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex index);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl &state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Takes |counters| from the sequence; returns the first. The lock mutex_ is held.
  uint64_t take(uint64_t counters);

 private:
  GeneratorImpl *clone_impl() const override;

  uint64_t seed_, offset_ = 0;
};

const at::Generator &default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);

// What one operator draws: a seed and the first of its counters. |generator| or the device's own.
struct Draw {
  uint64_t seed, offset;
};
Draw draw(const std::optional<at::Generator> &generator, c10::DeviceIndex index, uint64_t counters);

// A generator of the CPU that continues where |generator| (or the device's own) is, for operators that fall back.
at::Generator cpu_generator(const std::optional<at::Generator> &generator, c10::DeviceIndex index);

}  // namespace rdna_torch
