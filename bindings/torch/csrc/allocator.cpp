#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <utility>

#include "device.h"
#include "history.h"
#include "memory.h"

namespace rdna_torch {
namespace {

void free_on(c10::DeviceIndex index, void *data) {
  if (!data || in_bad_fork()) return;
  note_free(data);
  rdna_status status = rdna_memory_free(device(index), data);
  if (status != RDNA_OK) TORCH_WARN(rdna_last_error());
}

// A deleter gets the pointer alone, so there is one for each device.
template <size_t... I>
constexpr auto make_deleters(std::index_sequence<I...>) {
  return std::array<c10::DeleterFnPtr, sizeof...(I)>{
      +[](void *data) { free_on(static_cast<c10::DeviceIndex>(I), data); }...};
}
constexpr auto deleters = make_deleters(std::make_index_sequence<16>());

#if RDNA_TORCH_DEVICE_ALLOCATOR
using Base = c10::DeviceAllocator;
#else
using Base = c10::Allocator;
#endif

struct Allocator final : Base {
  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex index = current_device();
    void *data = nullptr;
    rdna_device *owner = device(index);
    check(rdna_memory_alloc_named(owner, size, raw_current_stream(index), "PyTorch", &data));
    note_allocation(index, data, size);
    return {data, data, deleters[static_cast<size_t>(index)], c10::Device(kRdna, index)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return +[](void *data) { free_anywhere(data); };
  }
  void copy_data(void *dst, const void *src, std::size_t count) const override {
    rdna_stream *stream = raw_current_stream(current_device());
    check(rdna_copy_on_device(stream, dst, src, count));
  }
#if RDNA_TORCH_DEVICE_ALLOCATOR
  bool initialized() override { return device_count() > 0; }
  void emptyCache(c10::MempoolId_t = {0, 0}) override {
    for (c10::DeviceIndex i = 0; i < device_count(); i++)
      if (device_is_open(i)) check(rdna_memory_empty_cache(device(i)));
  }
  void recordStream(const c10::DataPtr &data, c10::Stream stream) override { record_stream(data, stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    rdna_memory_stats s{};
    rdna_memory_get_stats(device(index), &s);
    c10::CachingDeviceAllocator::DeviceStats out;
    auto set = [](auto &stats, uint64_t current, uint64_t peak) {
      stats[0].current = static_cast<int64_t>(current);  // 0 is the aggregate of all pools
      stats[0].peak = static_cast<int64_t>(peak);
    };
    set(out.allocated_bytes, s.allocated, s.peak_allocated);
    set(out.active_bytes, s.allocated, s.peak_allocated);
    set(out.reserved_bytes, s.reserved, s.peak_reserved);
    set(out.requested_bytes, s.requested, s.peak_requested);
    set(out.allocation, s.blocks, s.peak_blocks);
    set(out.segment, s.segment_count, s.peak_segment_count);
    out.allocated_bytes[0].allocated = static_cast<int64_t>(s.alloc_bytes);
    out.allocated_bytes[0].freed = static_cast<int64_t>(s.free_bytes);
    out.allocation[0].allocated = static_cast<int64_t>(s.alloc_count);
    out.allocation[0].freed = static_cast<int64_t>(s.free_count);
    out.num_alloc_retries = static_cast<int64_t>(s.retries);
    out.num_ooms = static_cast<int64_t>(s.ooms);
    out.num_device_alloc = static_cast<int64_t>(s.driver_allocs);
    out.num_device_free = static_cast<int64_t>(s.driver_frees);
    return out;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override { rdna_memory_reset_counts(device(index)); }
  void resetPeakStats(c10::DeviceIndex index) override { rdna_memory_reset_peaks(device(index)); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) {
    uint64_t free = 0, total = 0;
    check(rdna_memory_get_info(device(index), &free, &total));
    return {free, total};
  }
#endif
};

Allocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);

}  // namespace

c10::Allocator *device_allocator() { return &allocator; }

bool free_anywhere(void *data) {
  note_free(data);
  for (c10::DeviceIndex i = 0; data && i < device_count(); i++)
    if (device_is_open(i) && rdna_memory_free(device(i), data) == RDNA_OK) return true;
  return false;
}

void record_stream(const c10::DataPtr &data, c10::Stream stream) {
  if (!data.get()) return;
  check(rdna_memory_record_stream(device(data.device().index()), data.get(), raw_stream(stream)));
}

}  // namespace rdna_torch
