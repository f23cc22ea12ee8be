"""AMDMemoryManager: tensors with purposes over the device's caching allocator, which everything in the process shares."""

import threading
import weakref
from collections import Counter
from dataclasses import dataclass, replace

import torch

from ._cards import architecture_name
from ._room import MB, as_amd_errors, memory_info, room
from .amd_exceptions import AMDBackendError, AMDConfigurationError, ROCmMemoryError
from .backend import _amd_config, choose_device


@dataclass(frozen=True)
class MemoryStats:
    """Attributes, and the same by stats["name"]. Sizes in MB of 2^20 bytes."""

    total_mb: float  # of the device, or of the machine in fallback
    allocated_mb: float  # in tensors of this process; in fallback of this manager
    reserved_mb: float  # held from the driver, in tensors or cached
    free_mb: float  # what the driver has free
    peak_allocated_mb: float  # the most that was allocated since the last reset
    num_allocations: int  # of allocate_tensor
    num_frees: int  # tensors of it that are gone
    fragmentation_percent: float  # of cached memory, what is not in its largest block
    defrag_count: int

    def __getitem__(self, name):
        try:
            return vars(self)[name]
        except KeyError:
            raise KeyError(f"there is no {name!r}; there are {', '.join(vars(self))}") from None

    def keys(self):
        return vars(self).keys()


@dataclass
class _Allocation:
    purpose: str
    size: int
    reference: weakref.ref
    gone: weakref.finalize = None


def _checked_shape(shape):
    sizes = (shape,) if isinstance(shape, int) else tuple(shape) if isinstance(shape, (tuple, list)) else None
    if sizes is None or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in sizes):
        raise AMDConfigurationError("shape", shape, "expected sizes of 0 or more, as a tuple of whole numbers")
    return sizes


class AMDMemoryManager:
    """Memory of the device of |config|, or of number |device_id| where that is given; of the machine where there is none.

    memory_pool_size_gb bounds what stays cached after a tensor is freed; without enable_memory_pooling nothing does.
    Without memory_growth_enabled, memory_pool_init_mb is taken at once and all that the manager's tensors may hold."""

    def __init__(self, config=None, device_id=None):
        self.config = _amd_config(config)
        if device_id is not None and device_id != self.config.device_id:
            self.config = replace(self.config, device_id=device_id)
        self.config.validate()
        self.device, self.fallback_reason = choose_device(self.config)
        self.device_id = self.config.device_id
        self._lock = threading.RLock()  # a finalizer may run within any call
        self._live = {}
        self._allocations = self._frees = self._defrags = 0
        self._held = self._peak = 0
        if not self.config.memory_growth_enabled:
            self._take(int(self.config.memory_pool_init_mb * MB))

    @property
    def _on_device(self):
        return self.fallback_reason is None

    def _get_device(self):
        return self.device

    def _take(self, size):
        """The pool holds at least |size| bytes more, free."""
        operation = "the pool of memory_pool_init_mb"
        self._must_fit(operation, size)
        with as_amd_errors(self.device, operation, size):
            torch.empty(size, dtype=torch.uint8, device=self.device)

    def _must_fit(self, operation, size):
        if not self.config.enable_oom_protection:
            return
        available = room(self.device, self.config.max_memory_fraction)
        if size > available:
            raise ROCmMemoryError(operation, size / MB, available / MB)

    def estimate_tensor_size(self, shape, dtype=torch.float32):
        """Bytes of a tensor's values. The allocator rounds up, to 512 bytes at most for small ones."""
        if not isinstance(dtype, torch.dtype):
            raise AMDConfigurationError("dtype", dtype, "expected a torch.dtype")
        size = dtype.itemsize
        for n in _checked_shape(shape):
            size *= n
        return size

    def allocate_tensor(self, shape, dtype=torch.float32, purpose="unknown", check_oom=True):
        """A new tensor with values that nobody set. Where |check_oom| and config.enable_oom_protection are on, asks first
        whether it fits into config.max_memory_fraction of the device. ROCmMemoryError: it does not, or the driver has
        none left; nothing was allocated. AMDConfigurationError: a size below 0, or no dtype."""
        size = self.estimate_tensor_size(shape, dtype)
        operation = f"allocate_tensor of {tuple(_checked_shape(shape))} for {purpose!r}"
        with self._lock:
            if not self.config.memory_growth_enabled:
                left = int(self.config.memory_pool_init_mb * MB) - self._held
                if size > left:
                    raise ROCmMemoryError(f"{operation}, in a pool that does not grow,", size / MB, left / MB)
            if check_oom:
                self._must_fit(operation, size)
            with as_amd_errors(self.device, operation, size):
                tensor = torch.empty(_checked_shape(shape), dtype=dtype, device=self.device)
            record = _Allocation(str(purpose), size, weakref.ref(tensor))
            record.gone = weakref.finalize(tensor, self._forget, id(tensor))
            record.gone.atexit = False
            self._live[id(tensor)] = record
            self._allocations += 1
            self._held += size
            self._peak = max(self._peak, self._held)
        return tensor

    def _forget(self, key):
        with self._lock:
            record = self._live.pop(key, None)
            if record is not None:
                self._held -= record.size
                self._frees += 1

    def free_tensor(self, tensor):
        """Gives the memory of a tensor of allocate_tensor back at once, whoever still holds the tensor: it is empty then.
        Views of it keep the memory as long as they live. AMDBackendError: it is not one of this manager's, or was freed."""
        with self._lock:
            record = self._live.get(id(tensor))
            if record is None or record.reference() is not tensor:
                raise AMDBackendError("free_tensor: this is no tensor that allocate_tensor of this manager gave, or it was freed")
            record.gone.detach()
            self._forget(id(tensor))
            tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            if self._on_device and self._cached() > self._spare():
                torch.rdna.empty_cache()

    def _spare(self):
        return self.config.memory_pool_size_gb * 1024 * MB if self.config.enable_memory_pooling else 0

    def _cached(self):
        return torch.rdna.memory_reserved(self.device) - torch.rdna.memory_allocated(self.device)

    def get_memory_stats(self):
        """MemoryStats of now."""
        free, total = memory_info(self.device)
        counts = dict(num_allocations=self._allocations, num_frees=self._frees, defrag_count=self._defrags)
        if not self._on_device:
            held = self._held / MB
            return MemoryStats(total / MB, held, held, free / MB, self._peak / MB, fragmentation_percent=0.0, **counts)
        pool = torch.rdna.memory_stats(self.device)
        return MemoryStats(
            total / MB, pool["allocated"] / MB, pool["reserved"] / MB, free / MB, pool["peak_allocated"] / MB,
            fragmentation_percent=100.0 * pool["fragmentation"], **counts)

    def get_amd_memory_stats(self):
        """A dict: what get_memory_stats has, the device, what may still be allocated, the tensors by purpose, and the
        allocator's own counters (torch.rdna.memory_stats) under "allocator"."""
        card = torch.rdna.get_device_properties(self.device) if self._on_device else None
        return {
            **self.get_memory_stats(),
            "device": str(self.device),
            "device_name": card.name if card else "CPU",
            "architecture": architecture_name(card.arch) if card else "cpu",
            "available_mb": room(self.device, self.config.max_memory_fraction) / MB,
            "purposes": self.get_allocation_summary(),
            "allocator": torch.rdna.memory_stats(self.device) if self._on_device else {},
        }

    def get_allocated_memory_mb(self):
        return self.get_memory_stats().allocated_mb

    def get_free_memory_mb(self):
        return memory_info(self.device)[0] / MB

    def get_total_memory_mb(self):
        return memory_info(self.device)[1] / MB

    def get_allocation_summary(self):
        """{purpose: tensors of it that live}."""
        with self._lock:
            return dict(Counter(record.purpose for record in self._live.values()))

    def defragment(self):
        """Waits for the device and gives every segment without a live tensor back to the driver. Tensors do not move.
        A dict: returned_mb, segments_returned, and fragmentation_percent of what remains cached."""
        self._defrags += 1
        if not self._on_device:
            return {"returned_mb": 0.0, "segments_returned": 0, "fragmentation_percent": 0.0}
        torch.rdna.synchronize(self.device)  # what other streams still use could not go
        before = torch.rdna.memory_stats(self.device)
        torch.rdna.empty_cache()
        after = torch.rdna.memory_stats(self.device)
        return {
            "returned_mb": (before["reserved"] - after["reserved"]) / MB,
            "segments_returned": before["segment_count"] - after["segment_count"],
            "fragmentation_percent": 100.0 * after["fragmentation"],
        }

    def reset_peak_stats(self):
        """peak_allocated_mb becomes what is allocated."""
        self._peak = self._held
        if self._on_device:
            torch.rdna.reset_peak_memory_stats(self.device)

    def cleanup(self):
        """Frees all tensors of this manager that still live, and gives cached memory back. The manager can be used on."""
        with self._lock:
            for record in list(self._live.values()):
                tensor = record.reference()
                if tensor is not None:
                    self.free_tensor(tensor)
        if self._on_device:
            torch.rdna.synchronize(self.device)
            torch.rdna.empty_cache()

    def __repr__(self):
        return f"AMDMemoryManager(device={str(self.device)!r}, tensors={len(self._live)}, held_mb={self._held / MB:.2f})"
