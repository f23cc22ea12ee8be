"""Device memory: librdna's caching allocator, which everything in the process shares."""

import json

import torch

from . import _C
from ._device import _index, get_device_properties

OutOfMemoryError = torch.OutOfMemoryError


def memory_stats(device=None):
    """Counters of the allocator: its own names, and those that torch.cuda.memory_stats has for the same."""
    stats = dict(_C.memory_stats(_index(device)))
    for theirs, current, peak in (
        ("allocated_bytes", "allocated", "peak_allocated"),
        ("active_bytes", "allocated", "peak_allocated"),
        ("requested_bytes", "requested", "peak_requested"),
        ("reserved_bytes", "reserved", "peak_reserved"),
        ("allocation", "blocks", "peak_blocks"),
        ("segment", "segment_count", "peak_segment_count"),
    ):
        stats[f"{theirs}.all.current"] = stats[current]
        stats[f"{theirs}.all.peak"] = stats[peak]
    for theirs, taken, freed in (
        ("allocated_bytes", "alloc_bytes", "free_bytes"),
        ("allocation", "alloc_count", "free_count"),
    ):
        stats[f"{theirs}.all.allocated"] = stats[taken]
        stats[f"{theirs}.all.freed"] = stats[freed]
    stats["num_alloc_retries"] = stats["retries"]
    stats["num_ooms"] = stats["ooms"]
    stats["num_device_alloc"] = stats["driver_allocs"]
    stats["num_device_free"] = stats["driver_frees"]
    return stats


def _nested(stats):
    nested = {}
    for name, value in stats.items():
        *folders, last = name.split(".")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return nested


def memory_stats_as_nested_dict(device=None):
    """memory_stats, with a dict for what stands before each dot of a name."""
    return _nested(memory_stats(device))


def memory_allocated(device=None):
    return _C.memory_stats(_index(device))["allocated"]


def max_memory_allocated(device=None):
    return _C.memory_stats(_index(device))["peak_allocated"]


def memory_reserved(device=None):
    return _C.memory_stats(_index(device))["reserved"]


def max_memory_reserved(device=None):
    return _C.memory_stats(_index(device))["peak_reserved"]


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved  # their names before PyTorch 1.4


def reset_peak_memory_stats(device=None):
    """Every peak of memory_stats becomes what is current."""
    _C.reset_peaks(_index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None):
    """What memory_stats counts from call to call (allocations, retries, times out of memory) begins at 0 again."""
    _C.reset_counts(_index(device))


def mem_get_info(device=None):
    """(free, total) bytes of the device as its driver says, other processes included."""
    return _C.memory_info(_index(device))


def memory_snapshot(device=None):
    """Every segment and block."""
    return json.loads(_C.memory_snapshot(_index(device)))


def _size(value):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024


def memory_summary(device=None, abbreviated=False):
    index = _index(device)
    s = _C.memory_stats(index)
    lines = [f"rdna:{index}  {get_device_properties(index).name}", f"{'':12}{'now':>14}{'peak':>14}"]
    lines.append(f"{'allocated':12}{_size(s['allocated']):>14}{_size(s['peak_allocated']):>14}")
    lines.append(f"{'reserved':12}{_size(s['reserved']):>14}{_size(s['peak_reserved']):>14}")
    if not abbreviated:
        lines.append(f"{'requested':12}{_size(s['requested']):>14}")
        lines.append(f"{s['blocks']} blocks in {s['segment_count']} segments, fragmentation {s['fragmentation']:.2f}")
        lines.append(
            f"{s['alloc_count']} allocations, of which {s['driver_allocs']} reached the driver; "
            f"{s['retries']} retries, {s['ooms']} times out of memory"
        )
    return "\n".join(lines)


def empty_cache():
    """Gives cached, unused memory of all devices, and pinned host memory, back."""
    _C.empty_cache()


_fractions = {}


def set_per_process_memory_fraction(fraction, device=None):
    """Caps what this process may take of the device's memory, as a share in (0, 1]."""
    _C.set_memory_fraction(fraction, _index(device))
    _fractions[_index(device)] = fraction


def get_per_process_memory_fraction(device=None):
    return _fractions.get(_index(device), 1.0)


def get_allocator_backend():
    """"rdna": librdna's caching allocator, the only one."""
    return "rdna"


def caching_allocator_alloc(size, device=None, stream=None):
    """Address of |size| bytes on the device, for work in |stream|; caching_allocator_delete gives them back."""
    index = _index(device)
    return _C.allocate(index, size, _C.current_stream(index) if stream is None else stream.stream_id)


def caching_allocator_delete(mem_ptr):
    _C.deallocate(mem_ptr)


def host_memory_stats():
    """Counters of pinned memory, whose blocks are powers of two."""
    held, peak, blocks, peak_blocks, active, active_blocks = _C.pinned_counts()
    return {
        "allocated_bytes.current": held,
        "allocated_bytes.peak": peak,
        "allocations.current": blocks,
        "allocations.peak": peak_blocks,
        "active_bytes.current": active,
        "active_requests.current": active_blocks,
    }


def host_memory_stats_as_nested_dict():
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats():
    _C.pinned_reset_peaks()


def reset_accumulated_host_memory_stats():
    """host_memory_stats has nothing that is counted from call to call."""


def _no_other(what):
    def refuse(*unused, **named):
        raise NotImplementedError(
            f"{what}: memory of rdna comes from librdna's allocator alone, which everything in the process shares"
        )

    refuse.__name__ = refuse.__qualname__ = what
    return refuse


caching_allocator_disabled = _no_other("caching_allocator_disabled")
caching_allocator_enable = _no_other("caching_allocator_enable")
change_current_allocator = _no_other("change_current_allocator")
CUDAPluggableAllocator = _no_other("CUDAPluggableAllocator")
MemPool = _no_other("MemPool")
use_mem_pool = _no_other("use_mem_pool")


from ._history import _dump_snapshot, _record_memory_history, _snapshot  # which asks memory_snapshot
