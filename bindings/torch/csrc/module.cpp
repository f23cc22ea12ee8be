// What the Python side calls.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdlib>
#include <cstring>

#include "as_cuda.h"
#include "device.h"
#include "dlpack.h"
#include "fallback.h"
#include "generator.h"
#include "graph.h"
#include "history.h"
#include "hooks.h"
#include "memory.h"
#include "process_group.h"
#include "profiler.h"
#include "rdna/memory.h"
#include "rdna/op/activation.h"
#include "rdna/op/pointwise.h"
#include "rdna/tune.h"

namespace py = pybind11;

namespace rdna_torch {
namespace {

py::dict properties(c10::DeviceIndex index) {
  const rdna_device_info *info = rdna_device_get_info(device(index));
  py::dict d;
  d["name"] = info->name;
  d["driver"] = info->driver;
  d["arch"] = info->arch;
  d["index"] = info->index;
  d["native_index"] = info->native_index;
  d["integrated"] = info->integrated;
  d["emulated"] = info->emulated;
  d["total_memory"] = info->total_memory;
  d["compute_units"] = info->compute_units;
  d["wave_size"] = info->wave_size;
  d["max_group_threads"] = info->max_group_threads;
  d["max_group_memory"] = info->max_group_memory;
  d["clock_mhz"] = info->clock_mhz;
  d["pci_domain"] = info->pci_domain;
  d["pci_bus"] = info->pci_bus;
  d["pci_device"] = info->pci_device;
  return d;
}

py::dict memory_stats(c10::DeviceIndex index) {
  rdna_memory_stats s{};
  if (device_is_open(index)) rdna_memory_get_stats(device(index), &s);
  py::dict d;
  d["allocated"] = s.allocated;
  d["requested"] = s.requested;
  d["reserved"] = s.reserved;
  d["peak_allocated"] = s.peak_allocated;
  d["peak_requested"] = s.peak_requested;
  d["peak_reserved"] = s.peak_reserved;
  d["blocks"] = s.blocks;
  d["peak_blocks"] = s.peak_blocks;
  d["alloc_count"] = s.alloc_count;
  d["free_count"] = s.free_count;
  d["alloc_bytes"] = s.alloc_bytes;
  d["free_bytes"] = s.free_bytes;
  d["segment_count"] = s.segment_count;
  d["peak_segment_count"] = s.peak_segment_count;
  d["driver_allocs"] = s.driver_allocs;
  d["driver_frees"] = s.driver_frees;
  d["retries"] = s.retries;
  d["ooms"] = s.ooms;
  d["fragmentation"] = s.fragmentation;
  return d;
}

std::string memory_snapshot(c10::DeviceIndex index) {
  char *json = nullptr;
  check(rdna_memory_snapshot(device(index), &json));
  std::string text(json);
  std::free(json);
  return text;
}

void empty_cache() {
  for (c10::DeviceIndex i = 0; i < device_count(); i++)
    if (device_is_open(i)) check(rdna_memory_empty_cache(device(i)));
  pinned_empty_cache();
}

// The numbers of operations by their names, as this library has them.
template <typename Op>
py::dict numbers(const char *(*name_of)(Op)) {
  py::dict d;
  for (int i = 0; std::strcmp(name_of(static_cast<Op>(i)), "?") != 0; i++) d[name_of(static_cast<Op>(i))] = i;
  return d;
}

py::dict operations() {
  py::dict d, activations;
  activations["relu"] = static_cast<int>(RDNA_ACTIVATION_RELU);
  activations["sigmoid"] = static_cast<int>(RDNA_ACTIVATION_SIGMOID);
  activations["tanh"] = static_cast<int>(RDNA_ACTIVATION_TANH);
  activations["silu"] = static_cast<int>(RDNA_ACTIVATION_SILU);
  activations["gelu_tanh"] = static_cast<int>(RDNA_ACTIVATION_GELU_TANH);
  activations["gelu_erf"] = static_cast<int>(RDNA_ACTIVATION_GELU_ERF);
  d["map"] = numbers(rdna_map_name);
  d["zip"] = numbers(rdna_zip_name);
  d["activation"] = activations;
  return d;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  register_hooks();
  register_profiler();
  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("unavailable", &unavailable);
  // (name, the vendor's library in use, its version), without opening a device; "" where there is none
  m.def("driver", [] {
    rdna_driver_info info;
    if (rdna_driver_default(&info, nullptr) != RDNA_OK) info = {"", RDNA_UNAVAILABLE, "", "", "", 0};
    return std::make_tuple(std::string(info.name), std::string(info.library), std::string(info.version));
  });
  m.def("init", [](int index) { device(static_cast<c10::DeviceIndex>(index)); });
  m.def("is_open", [](int index) { return device_is_open(static_cast<c10::DeviceIndex>(index)); });
  m.def("in_bad_fork", &in_bad_fork);
  m.def("current_device", [] { return static_cast<int>(current_device()); });
  m.def("set_device", [](int index) { set_device(static_cast<c10::DeviceIndex>(index)); });
  m.def("synchronize", [](int index) {
    py::gil_scoped_release unlocked;
    synchronize(static_cast<c10::DeviceIndex>(index));
  });
  m.def("properties", [](int index) { return properties(static_cast<c10::DeviceIndex>(index)); });

  m.def("current_stream", [](int index) { return current_stream(static_cast<c10::DeviceIndex>(index)).id(); });
  m.def("default_stream", [](int index) { return default_stream(static_cast<c10::DeviceIndex>(index)).id(); });
  // rdna_stream * as a number, for callers of librdna itself (rdna/amd/_compiled.py)
  m.def("native_stream", [](int index) {
    return reinterpret_cast<uintptr_t>(raw_current_stream(static_cast<c10::DeviceIndex>(index)));
  });
  m.def("driver_stream", [](int index) {
    return reinterpret_cast<uintptr_t>(driver_stream(current_stream(static_cast<c10::DeviceIndex>(index))));
  });
  m.def("set_stream", [](int index, int64_t id) {
    const c10::Stream stream(c10::Stream::UNSAFE, c10::Device(kRdna, static_cast<c10::DeviceIndex>(index)), id);
    raw_stream(stream);
    exchange_stream(stream);
  });

  m.def("memory_stats", [](int index) { return memory_stats(static_cast<c10::DeviceIndex>(index)); });
  m.def("memory_snapshot", [](int index) { return memory_snapshot(static_cast<c10::DeviceIndex>(index)); });
  m.def("memory_info", [](int index) {
    uint64_t free = 0, total = 0;
    check(rdna_memory_get_info(device(static_cast<c10::DeviceIndex>(index)), &free, &total));
    return std::make_pair(free, total);
  });
  m.def("reset_peaks", [](int index) {
    const auto i = static_cast<c10::DeviceIndex>(index);
    if (device_is_open(i)) rdna_memory_reset_peaks(device(i));
  });
  m.def("reset_counts", [](int index) {
    const auto i = static_cast<c10::DeviceIndex>(index);
    if (device_is_open(i)) rdna_memory_reset_counts(device(i));
  });
  m.def("set_memory_fraction", [](double fraction, int index) {
    check(rdna_memory_set_fraction(device(static_cast<c10::DeviceIndex>(index)), fraction));
  });
  m.def("empty_cache", &empty_cache);

  m.def("allocate", [](int index, size_t size, int64_t stream) {
    const auto i = static_cast<c10::DeviceIndex>(index);
    void *data = nullptr;
    rdna_stream *of = raw_stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(kRdna, i), stream));
    check(rdna_memory_alloc_named(device(i), size, of, "PyTorch", &data));
    note_allocation(i, data, size);
    return reinterpret_cast<uintptr_t>(data);
  });
  m.def("deallocate", [](uintptr_t address) {
    TORCH_CHECK(free_anywhere(reinterpret_cast<void *>(address)), "no memory of rdna begins at address ", address);
  });
  m.def("pinned_counts", [] {
    const PinnedCounts c = pinned_counts();
    return py::make_tuple(c.bytes, c.peak_bytes, c.blocks, c.peak_blocks, c.active_bytes, c.active_blocks);
  });
  m.def("pinned_reset_peaks", &pinned_reset_peaks);
  define_history(m);
  define_graph(m);
  m.def("set_sync_debug_mode", [](int mode) { sync_debug_mode = mode; });
  m.def("sync_debug_mode", [] { return sync_debug_mode.load(); });

  m.def("last_choice", [](const std::string &name) {
    rdna_choice choice{};
    check(rdna_choice_last(name.c_str(), &choice));
    return std::make_pair(std::string(choice.implementation), std::string(choice.why));
  });

  m.def("default_generator", [](int index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });

  m.def("stop_autograd", [] {
    py::gil_scoped_release unlocked;
    torch::autograd::Engine::get_default_engine().stop();
  });

  define_process_group(m);
  m.def("adopt_dlpack", &adopt_dlpack);
  m.def("as_cuda", &as_cuda);

  m.def("operations", &operations);
  m.def("fallback_counts", &fallback_counts);
  m.def("reset_fallback_counts", &reset_fallback_counts);
  m.def("set_fallback_mode", &set_fallback_mode);
  m.def("fallback_mode", &fallback_mode);
}

}  // namespace rdna_torch
