#include "device.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cctype>
#include <mutex>

#include "outside.h"
#include "rdna/memory.h"
#include "rdna/tune.h"

namespace rdna_torch {
namespace {

constexpr int kMaxDevices = 16;
constexpr int kPoolStreams = 32;  // of each priority, handed out in turn

struct Open {
  std::atomic<rdna_device *> device{nullptr};
  std::array<std::array<std::atomic<rdna_stream *>, kPoolStreams>, 2> pool{};
  std::array<std::atomic<unsigned>, 2> next{};
};

std::array<Open, kMaxDevices> opened;
std::mutex open_mutex;
std::atomic<bool> forked{false};  // this is a child of a process whose driver was running
thread_local c10::DeviceIndex current_index = 0;
thread_local std::array<c10::StreamId, kMaxDevices> current_streams{};  // 0 is the default stream

struct Default {
  std::string driver;
  int count = 0;
  std::string reason;  // why |count| is 0
};

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forked = true; }); });
}

const Default &default_driver() {
  static const Default found = [] {
    Default d;
    rdna_driver_info info;
    bool asked = false;
    if (rdna_driver_default(&info, &asked) != RDNA_OK) {
      d.reason = rdna_last_error();
      return d;
    }
    d.driver = info.name;
    const bool gpu = d.driver == "hip" || d.driver == "cuda";
    if (gpu) watch_forks();  // counting devices has started the vendor's driver
    if (!gpu && !asked) {
      d.reason =
          "no GPU was found; RDNA_DRIVER=host computes on the processor, RDNA_EMULATE=gfx1100 on an emulated card";
      for (int i = 0; i < rdna_driver_count(); i++)
        if (rdna_driver_get_info(i, &info) == RDNA_OK && info.status != RDNA_OK)
          d.reason += std::string("; ") + info.name + ": " + info.message;
      return d;
    }
    d.count = info.device_count < kMaxDevices ? info.device_count : kMaxDevices;
    if (d.count == 0) d.reason = info.message;
    return d;
  }();
  return found;
}

c10::DeviceIndex valid(c10::DeviceIndex index) {
  if (index < 0) index = current_index;
  const Default &d = default_driver();
  TORCH_CHECK(d.count > 0, "torch.device('rdna') cannot be used: ", d.reason);
  TORCH_CHECK(index < d.count, "device rdna:", static_cast<int>(index), " was asked for; there ",
              d.count == 1 ? "is one, rdna:0" : "are rdna:0 to rdna:" + std::to_string(d.count - 1));
  return index;
}

}  // namespace

void check(rdna_status status) {
  if (status == RDNA_OK) return;
  std::string sentence = rdna_last_error();
  if (status == RDNA_OUT_OF_MEMORY) {  // programs look for these words, as PyTorch's own devices say them
    if (!sentence.empty()) sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
    TORCH_CHECK_WITH(OutOfMemoryError, false, "rdna out of memory. ", sentence);
  }
  if (status == RDNA_UNSUPPORTED) TORCH_CHECK_NOT_IMPLEMENTED(false, sentence);
  TORCH_CHECK(false, sentence);
}

c10::DeviceIndex device_count() noexcept {
  try {
    return static_cast<c10::DeviceIndex>(default_driver().count);
  } catch (...) {
    return 0;
  }
}

std::string unavailable() { return default_driver().reason; }

rdna_device *device(c10::DeviceIndex index) {
  check_fork();
  index = valid(index);
  Open &slot = opened[static_cast<size_t>(index)];
  if (rdna_device *device = slot.device.load(std::memory_order_acquire)) return device;
  std::lock_guard<std::mutex> lock(open_mutex);
  if (rdna_device *device = slot.device.load(std::memory_order_acquire)) return device;
  watch_forks();
  rdna_device *device = nullptr;
  check(rdna_device_open((default_driver().driver + ":" + std::to_string(index)).c_str(), &device));
  // PyTorch's programs repeat their steps and expect that free memory is kept (torch.rdna.empty_cache gives it back).
  check(rdna_memory_set_spare(device, rdna_device_get_info(device)->total_memory / 4));
  slot.device.store(device, std::memory_order_release);
  return device;
}

bool device_is_open(c10::DeviceIndex index) noexcept {
  if (index < 0) index = current_index;
  return !forked && index < kMaxDevices && opened[static_cast<size_t>(index)].device.load() != nullptr;
}

c10::DeviceIndex current_device() noexcept { return current_index; }

void set_device(c10::DeviceIndex index) {
  if (index >= 0) current_index = valid(index);
}

CurrentDevice::~CurrentDevice() { current_index = before_; }

void synchronize(c10::DeviceIndex index) {
  check(rdna_device_synchronize(device(index)));
  check_outside(index);
}

std::atomic<int> sync_debug_mode{0};

void about_to_wait() {
  const int mode = sync_debug_mode.load(std::memory_order_relaxed);
  if (mode == 1) TORCH_WARN("an operation makes the host wait for the device");
  TORCH_CHECK(mode != 2,
              "an operation makes the host wait for the device, which set_sync_debug_mode(\"error\") forbids");
}

bool in_bad_fork() noexcept { return forked; }

void check_fork() {
  TORCH_CHECK(
      !forked,
      "rdna was used before this process was forked, and its driver does not work in the child: use rdna in the "
      "parent alone, or start processes with multiprocessing's 'spawn'");
}

std::atomic<bool> deterministic_asked{false};

void set_deterministic(bool asked) {
  static std::mutex mutex;
  static bool before = false;  // what librdna did until PyTorch asked
  std::lock_guard<std::mutex> lock(mutex);
  if (deterministic_asked == asked) return;
  if (asked) before = rdna_deterministic_get();
  rdna_deterministic_set(asked || before);
  deterministic_asked = asked;
}

// A stream's id is 0 for the default one, and 1 + its place among those of both priorities otherwise.
c10::Stream default_stream(c10::DeviceIndex index) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kRdna, valid(index)), 0);
}

c10::Stream current_stream(c10::DeviceIndex index) {
  index = valid(index);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kRdna, index), current_streams[static_cast<size_t>(index)]);
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::Stream before = current_stream(stream.device_index());
  current_streams[static_cast<size_t>(stream.device_index())] = stream.id();
  return before;
}

c10::Stream pool_stream(c10::DeviceIndex index, bool high_priority) {
  index = valid(index);
  const unsigned place = opened[static_cast<size_t>(index)].next[high_priority]++ % kPoolStreams;
  const c10::StreamId id = 1 + (high_priority ? kPoolStreams : 0) + static_cast<c10::StreamId>(place);
  const c10::Stream stream(c10::Stream::UNSAFE, c10::Device(kRdna, index), id);
  raw_stream(stream);
  return stream;
}

rdna_stream *raw_stream(c10::Stream stream) {
  rdna_device *owner = device(stream.device_index());
  const c10::StreamId id = stream.id();
  if (id == 0) return rdna_device_default_stream(owner);
  TORCH_CHECK(id > 0 && id <= 2 * kPoolStreams, "stream ", id, " of ", stream.device(), " does not exist");
  const bool high = id > kPoolStreams;
  auto &slot =
      opened[static_cast<size_t>(stream.device_index())].pool[high][static_cast<size_t>((id - 1) % kPoolStreams)];
  if (rdna_stream *made = slot.load(std::memory_order_acquire)) return made;
  std::lock_guard<std::mutex> lock(open_mutex);
  if (rdna_stream *made = slot.load(std::memory_order_acquire)) return made;
  rdna_stream *made = nullptr;
  check(rdna_stream_create(owner, high ? -1 : 0, &made));
  slot.store(made, std::memory_order_release);
  return made;
}

rdna_stream *raw_current_stream(c10::DeviceIndex index) { return raw_stream(current_stream(index)); }

void *driver_stream(c10::Stream stream) {
  void *native = nullptr;
  check(rdna_stream_native(raw_stream(stream), &native));
  return native;
}

}  // namespace rdna_torch
