#include "outside.h"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "rdna/memory.h"

namespace rdna_torch {
namespace {

constexpr size_t kNames = 64, kDevices = 64;

std::mutex mutex;
std::vector<const char *> names;  // each has the word of its place
std::array<std::atomic<uint32_t *>, kDevices> marks{};

}  // namespace

uint32_t *outside(const at::Tensor &t, const char *name) {
  const size_t index = static_cast<size_t>(t.device().index());
  TORCH_INTERNAL_ASSERT(index < kDevices);
  check_fork();
  std::lock_guard<std::mutex> lock(mutex);
  uint32_t *words = marks[index].load();
  if (!words) {
    void *memory = nullptr;
    check(rdna_host_alloc(device(t.device().index()), kNames * sizeof(uint32_t), &memory));
    words = static_cast<uint32_t *>(memory);
    std::memset(words, 0, kNames * sizeof(uint32_t));
    marks[index].store(words);
  }
  size_t i = 0;
  while (i < names.size() && std::strcmp(names[i], name) != 0) i++;
  TORCH_INTERNAL_ASSERT(i < kNames);
  if (i == names.size()) names.push_back(name);
  return words + i;
}

void check_outside(c10::DeviceIndex index) {
  const size_t place = static_cast<size_t>(index < 0 ? current_device() : index);
  volatile uint32_t *words = place < kDevices ? marks[place].load() : nullptr;
  if (!words) return;
  const char *name = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < names.size(); i++)
      if (words[i]) {
        words[i] = 0;
        if (!name) name = names[i];
      }
  }
  TORCH_CHECK_INDEX(
      !name, name,
      ": an index was out of range. The device found it after the call had returned, so that "
      "another place in the program may be named here; the values at such indices were not read or written.");
}

}  // namespace rdna_torch
