// Page-locked host memory. A block that took part in queued copies waits, after it is freed, for an event on each
// stream that used it; then it is handed out again for requests of its size class.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/util/llvmMathExtras.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "device.h"
#include "memory.h"

namespace rdna_torch {
namespace {

struct Block {
  size_t size;  // a power of two
  rdna_device *owner;
  std::vector<rdna_event *> uses;
};

std::mutex mutex;
std::map<uintptr_t, Block> blocks;  // all, by address
std::vector<uintptr_t> waiting;     // freed, with uses that may be under way
std::multimap<std::pair<rdna_device *, size_t>, uintptr_t> idle;

// The block that |data| points into, or the end. The lock is held.
std::map<uintptr_t, Block>::iterator find(const void *data) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return blocks.end();
  --next;
  return address < next->first + next->second.size ? next : blocks.end();
}

// Moves the waiting blocks whose uses are over to the idle ones. The lock is held.
void collect() {
  std::vector<uintptr_t> still;
  for (uintptr_t address : waiting) {
    Block &block = blocks.at(address);
    while (!block.uses.empty() && rdna_event_query(block.uses.back()) != RDNA_NOT_READY) {
      rdna_event_release(block.uses.back());
      block.uses.pop_back();
    }
    if (block.uses.empty())
      idle.emplace(std::make_pair(block.owner, block.size), address);
    else
      still.push_back(address);
  }
  waiting.swap(still);
}

void free_pinned(void *data) {
  if (!data || in_bad_fork()) return;
  std::lock_guard<std::mutex> lock(mutex);
  waiting.push_back(reinterpret_cast<uintptr_t>(data));
}

int64_t peak_bytes = 0, peak_blocks = 0;  // held from the driver, since the last reset

int64_t held_bytes() {  // The lock is held.
  int64_t sum = 0;
  for (const auto &[address, block] : blocks) sum += static_cast<int64_t>(block.size);
  return sum;
}

#if RDNA_TORCH_HOST_ALLOCATOR
using Base = at::HostAllocator;
#else
using Base = c10::Allocator;
#endif

struct PinnedAllocator final : Base {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) return {nullptr, nullptr, &free_pinned, c10::Device(c10::DeviceType::CPU)};
    const size_t rounded = size < 512 ? 512 : static_cast<size_t>(c10::llvm::PowerOf2Ceil(size));
    rdna_device *owner = device(-1);
    std::lock_guard<std::mutex> lock(mutex);
    collect();
    void *data = nullptr;
    auto found = idle.find({owner, rounded});
    if (found != idle.end()) {
      data = reinterpret_cast<void *>(found->second);
      idle.erase(found);
    } else {
      check(rdna_host_alloc(owner, rounded, &data));
      blocks[reinterpret_cast<uintptr_t>(data)] = Block{rounded, owner, {}};
      peak_bytes = std::max(peak_bytes, held_bytes());
      peak_blocks = std::max(peak_blocks, static_cast<int64_t>(blocks.size()));
    }
    return {data, data, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void *dst, const void *src, std::size_t count) const override { default_copy_data(dst, src, count); }

#if RDNA_TORCH_HOST_ALLOCATOR
  bool record_event(void *data, void *, c10::Stream stream) override {
    if (!is_pinned(data)) return false;
    pinned_used(data, raw_stream(stream));
    return true;
  }
  void empty_cache() override { pinned_empty_cache(); }
  at::HostStats get_stats() override {
    at::HostStats s;
    fill(s, pinned_counts());
    return s;
  }
  void reset_accumulated_stats() override {}  // none is kept
  void reset_peak_stats() override { pinned_reset_peaks(); }

 private:
  // The names of what is counted changed from release to release.
  template <class S>
  static void fill(S &s, const PinnedCounts &c) {
    if constexpr (requires { s.allocated_bytes.current; })
      s.allocated_bytes.current = c.bytes, s.allocated_bytes.peak = c.peak_bytes;
    if constexpr (requires { s.allocations.current; })
      s.allocations.current = c.blocks, s.allocations.peak = c.peak_blocks;
    if constexpr (requires { s.active_bytes.current; }) s.active_bytes.current = c.active_bytes;
    if constexpr (requires { s.active_requests.current; }) s.active_requests.current = c.active_blocks;
  }
#endif
};

PinnedAllocator allocator;
#if RDNA_TORCH_HOST_ALLOCATOR
REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator)
#endif

}  // namespace

c10::Allocator *pinned_allocator() { return &allocator; }

PinnedCounts pinned_counts() {
  std::lock_guard<std::mutex> lock(mutex);
  int64_t unused = 0;
  for (const auto &entry : idle) unused += static_cast<int64_t>(entry.first.second);
  for (uintptr_t address : waiting) unused += static_cast<int64_t>(blocks.at(address).size);
  const auto count = static_cast<int64_t>(blocks.size());
  return {held_bytes(),
          peak_bytes,
          count,
          peak_blocks,
          held_bytes() - unused,
          count - static_cast<int64_t>(idle.size() + waiting.size())};
}

void pinned_reset_peaks() {
  std::lock_guard<std::mutex> lock(mutex);
  peak_bytes = held_bytes();
  peak_blocks = static_cast<int64_t>(blocks.size());
}

bool is_pinned(const void *data) {
  if (in_bad_fork()) return false;  // and the lock may have been held when the process forked
  std::lock_guard<std::mutex> lock(mutex);
  return find(data) != blocks.end();
}

void pinned_used(const void *data, rdna_stream *stream) {
  std::lock_guard<std::mutex> lock(mutex);
  auto block = find(data);
  if (block == blocks.end()) return;
  rdna_event *event = nullptr;
  check(rdna_event_create(rdna_stream_device(stream), false, &event));
  const rdna_status status = rdna_event_record(event, stream);
  if (status != RDNA_OK) rdna_event_release(event);
  check(status);
  block->second.uses.push_back(event);
}

void pinned_empty_cache() {
  if (in_bad_fork()) return;
  std::lock_guard<std::mutex> lock(mutex);
  collect();
  for (const auto &entry : idle) {
    rdna_host_free(entry.first.first, reinterpret_cast<void *>(entry.second));
    blocks.erase(entry.second);
  }
  idle.clear();
}

}  // namespace rdna_torch
