#include "history.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <unordered_map>

namespace py = pybind11;

namespace rdna_torch {
namespace {

struct Event {
  bool allocation;
  c10::DeviceIndex device;
  uintptr_t address;
  size_t size;
  c10::StreamId stream;
  int64_t microseconds;
  py::object stack;  // PyTorch's captured traceback, or none
};

struct Live {
  c10::DeviceIndex device;
  size_t size;
  c10::StreamId stream;
  py::object stack;
};

std::atomic<bool> recording{false};

// Guarded by the interpreter's lock, which stacks need anyhow. Never destroyed: the interpreter ends first.
struct History {
  bool stacks_of_allocations = false, stacks_of_frees = false;
  size_t limit = 0;
  py::object gather;  // PyTorch's function that captures a traceback
  std::deque<Event> events;
  std::unordered_map<uintptr_t, Live> live;  // allocated since the recording began
};
History &history() {
  static History *const one = new History;
  return *one;
}

py::object stack() { return history().gather(true, false, false); }

void add(Event event) {
  History &h = history();
  h.events.push_back(std::move(event));
  if (h.events.size() > h.limit) h.events.pop_front();
}

int64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

void record(bool with_events, bool stacks_of_allocations, bool stacks_of_frees, size_t limit) {
  History &h = history();
  h.stacks_of_allocations = stacks_of_allocations;
  h.stacks_of_frees = stacks_of_frees;
  h.limit = with_events ? limit : 0;
  h.gather = py::module_::import("torch._C._profiler").attr("gather_traceback");
  h.events.clear();
  recording = true;
}

void stop() {
  recording = false;
  history().events.clear();
  history().live.clear();
}

py::list events() {
  py::list all;
  for (const Event &e : history().events)
    all.append(
        py::make_tuple(e.allocation, static_cast<int>(e.device), e.address, e.size, e.stream, e.microseconds, e.stack));
  return all;
}

py::dict live_stacks() {
  py::dict all;
  for (const auto &[address, block] : history().live) all[py::int_(address)] = block.stack;
  return all;
}

}  // namespace

void note_allocation(c10::DeviceIndex index, const void *data, size_t size) {
  if (!data || !recording.load(std::memory_order_relaxed) || !Py_IsInitialized()) return;
  py::gil_scoped_acquire locked;
  History &h = history();
  const auto address = reinterpret_cast<uintptr_t>(data);
  const c10::StreamId stream = current_stream(index).id();
  py::object where = h.stacks_of_allocations ? stack() : py::none();
  h.live.insert_or_assign(address, Live{index, size, stream, where});
  add({true, index, address, size, stream, now(), std::move(where)});
}

void note_free(const void *data) {
  if (!data || !recording.load(std::memory_order_relaxed) || !Py_IsInitialized()) return;
  py::gil_scoped_acquire locked;
  History &h = history();
  const auto address = reinterpret_cast<uintptr_t>(data);
  const auto found = h.live.find(address);
  if (found == h.live.end()) return;  // its size was not recorded
  const Live block = std::move(found->second);
  h.live.erase(found);
  add({false, block.device, address, block.size, block.stream, now(), h.stacks_of_frees ? stack() : py::none()});
}

void define_history(py::module_ &m) {
  m.def("record_history", &record);
  m.def("stop_history", &stop);
  m.def("history", &events);
  m.def("live_stacks", &live_stacks);
}

}  // namespace rdna_torch
