// Devices, current device and streams as PyTorch names them, over librdna's handles.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <string>

#include "rdna/device.h"
#include "rdna/stream.h"

namespace rdna_torch {

constexpr c10::DeviceType kRdna = c10::DeviceType::PrivateUse1;

// Raises what |status| means in Python, with librdna's sentence: OutOfMemoryError, NotImplementedError for what this
// device or build does not offer, RuntimeError for the rest.
void check(rdna_status status);

// 0 where there is no GPU, unless RDNA_DRIVER or RDNA_EMULATE asks for what stands in for one.
c10::DeviceIndex device_count() noexcept;
// Why there is none: one sentence, "" when there is one.
std::string unavailable();

// Opens the device at the first call; -1 is the current one. Lives as long as the process.
rdna_device *device(c10::DeviceIndex index);
bool device_is_open(c10::DeviceIndex index) noexcept;
c10::DeviceIndex current_device() noexcept;
void set_device(c10::DeviceIndex index);
void synchronize(c10::DeviceIndex index);

// The thread's current stream on the device; until set, the default one.
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream default_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(c10::Stream stream);
// The next of a fixed set of streams, which live as long as the process.
c10::Stream pool_stream(c10::DeviceIndex index, bool high_priority);
rdna_stream *raw_stream(c10::Stream stream);
rdna_stream *raw_current_stream(c10::DeviceIndex index);
// The vendor's own, hipStream_t or CUstream; its device becomes the thread's current one for the vendor's library too.
void *driver_stream(c10::Stream stream);

// The stream that work on |tensor| goes to.
inline rdna_stream *stream_of(const at::Tensor &tensor) { return raw_current_stream(tensor.device().index()); }

// What torch.rdna.set_sync_debug_mode set: copies that make the host wait are silent (0), warn (1) or raise (2).
extern std::atomic<int> sync_debug_mode;
void about_to_wait();

// In a child of fork(): the driver's threads and contexts did not come along. Memory that the child inherited is the
// parent's: freeing it does nothing. All else raises what check_fork() raises.
bool in_bad_fork() noexcept;
void check_fork();

// librdna is deterministic where torch.use_deterministic_algorithms asks for it, and as RDNA_DETERMINISTIC says
// otherwise. PyTorch tells nobody of a change, so kernels begin with this.
extern std::atomic<bool> deterministic_asked;  // PyTorch's last answer that was followed
void set_deterministic(bool asked);
inline void follow_deterministic() {
  const bool asked = at::globalContext().deterministicAlgorithms();
  if (asked != deterministic_asked.load(std::memory_order_relaxed)) set_deterministic(asked);
}

// Sets the current device for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index) : before_(current_device()) {
    if (index >= 0 && index != before_) set_device(index);
  }
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;

 private:
  c10::DeviceIndex before_;
};

}  // namespace rdna_torch
