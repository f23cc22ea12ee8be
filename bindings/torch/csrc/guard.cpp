// What PyTorch asks of a device type: current device, streams, events.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device.h"
#include "memory.h"
#include "rdna/stream.h"

namespace rdna_torch {
namespace {

rdna_event *as_event(void *event) { return static_cast<rdna_event *>(event); }

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  GuardImpl() = default;
  explicit GuardImpl(c10::DeviceType type) { TORCH_INTERNAL_ASSERT(type == kRdna); }

  c10::DeviceType type() const override { return kRdna; }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device before = getDevice();
    setDevice(d);
    return before;
  }
  c10::Device getDevice() const override { return c10::Device(kRdna, current_device()); }
  void setDevice(c10::Device d) const override { set_device(d.index()); }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    try {
      set_device(d.index());
    } catch (...) {  // the interface promises not to throw; the device stays what it was
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  // torch 2.6 declares these two noexcept, later releases do not: noexcept satisfies both.
  c10::Stream getStream(c10::Device d) const noexcept override { return current_stream(d.index()); }
  c10::Stream exchangeStream(c10::Stream s) const noexcept override { return exchange_stream(s); }
  c10::Stream getDefaultStream(c10::Device d) const override { return default_stream(d.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool high_priority) const override {
    return pool_stream(d.index(), high_priority);
  }
  c10::Stream getNewStream(c10::Device d, int priority) const override { return pool_stream(d.index(), priority < 0); }
  bool queryStream(const c10::Stream &s) const override {
    const rdna_status status = rdna_stream_query(raw_stream(s));
    if (status != RDNA_NOT_READY) check(status);
    return status == RDNA_OK;
  }
  void synchronizeStream(const c10::Stream &s) const override { check(rdna_stream_synchronize(raw_stream(s))); }
  void synchronizeDevice(const c10::DeviceIndex index) const { synchronize(index); }   // newer than torch 2.6
  void *getStreamNativeHandle(const c10::Stream s) const { return driver_stream(s); }  // newer than torch 2.13

#if __has_include(<c10/core/DeviceCapability.h>)  // newer than torch 2.9
  // Of what tensors can be: all types but the quantized ones.
  c10::DeviceCapability getDeviceCapability(c10::Device) const {
    c10::DeviceCapability all;
    auto &types = all.capability_data.supported_scalar_types;
    types.has_QInt8 = types.has_QUInt8 = types.has_QInt32 = types.has_QUInt4x2 = types.has_QUInt2x4 = 0;
    return all;
  }
#endif

  void record(void **event, const c10::Stream &s, const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == s.device_index(), "an event of rdna:", static_cast<int>(index),
                " cannot be recorded in a stream of ", s.device());
    if (!*event) {
      rdna_event *made = nullptr;
      check(rdna_event_create(device(s.device_index()), flag == c10::EventFlag::BACKEND_DEFAULT, &made));
      *event = made;
    }
    check(rdna_event_record(as_event(*event), raw_stream(s)));
  }
  void block(void *event, const c10::Stream &s) const override {
    if (event) check(rdna_stream_wait(raw_stream(s), as_event(event)));
  }
  bool queryEvent(void *event) const override {
    if (!event) return true;
    check_fork();
    const rdna_status status = rdna_event_query(as_event(event));
    if (status != RDNA_NOT_READY) check(status);
    return status == RDNA_OK;
  }
  void synchronizeEvent(void *event) const override {
    if (!event) return;
    check_fork();
    check(rdna_event_synchronize(as_event(event)));
  }
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
    if (!in_bad_fork()) rdna_event_release(as_event(event));
  }
  double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "both events must be recorded before the time between them can be asked for");
    check_fork();
    float ms = 0;
    check(rdna_event_elapsed(as_event(start), as_event(end), &ms));
    return ms;
  }
  void recordDataPtrOnStream(const c10::DataPtr &data, const c10::Stream &s) const override { record_stream(data, s); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

}  // namespace
}  // namespace rdna_torch
