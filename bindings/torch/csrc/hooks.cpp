// What PyTorch asks of the device type outside of operators. Functions without "override" are newer than torch 2.6.
#include "hooks.h"

#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Storage.h>

#include "device.h"
#include "generator.h"
#include "memory.h"

namespace rdna_torch {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const { return true; }
  bool isAvailable() const { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return device_is_open(index); }
  void init() const override { device(-1); }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = current_device();
    set_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  const at::Generator &getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const { return new_generator(index); }
  at::Allocator *getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void *data) const override { return is_pinned(data); }
  at::Device getDeviceFromPtr(void *) const override {
    TORCH_CHECK(device_count() == 1, "with several devices, memory must be given together with its device");
    return at::Device(kRdna, 0);
  }
  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t size) const override {
    resize_storage(storage.unsafeGetStorageImpl(), size);
  }
};

}  // namespace

void resize_storage(c10::StorageImpl *storage, size_t size) {
  TORCH_CHECK(storage->resizable(), "the storage of this tensor cannot be resized");
  const c10::DeviceIndex index = storage->device().index();
  CurrentDevice here(index);
  c10::DataPtr data = device_allocator()->allocate(size);
  const size_t kept = std::min(size, storage->nbytes());
  if (kept) check(rdna_copy_on_device(raw_current_stream(index), data.get(), storage->data(), kept));
  storage->set_data_ptr_noswap(std::move(data));
  storage->set_nbytes(size);
}

void register_hooks() {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
}

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 9
REGISTER_GENERATOR_PRIVATEUSE1(new_generator)
#endif

}  // namespace rdna_torch
