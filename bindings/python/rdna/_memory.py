"""Device memory by addresses: what is allocated here, what the pools of all in the process hold, copies and fills."""

import ctypes
import dataclasses
import json
import threading

from . import _devices
from ._native import MemoryStats as _Stats
from ._native import RdnaError, call, functions, made

ALIGNMENT = 256  # of what the pool gives


@dataclasses.dataclass
class AllocationOptions:
    """|alignment| is a power of two up to 256, which all memory here has. Unified and managed memory are refused."""

    pinned_host_memory: bool = False
    unified_memory: bool = False
    managed_memory: bool = False
    alignment: int = ALIGNMENT
    stream: object = None


@dataclasses.dataclass(frozen=True)
class AllocationInfo:
    ptr: int
    size: int
    allocated_size: int  # as the pool rounds
    is_device_memory: bool
    device_id: int
    stream: object
    allocation_id: int


@dataclasses.dataclass(frozen=True)
class MemoryStats:
    allocated_bytes: int
    allocated_blocks: int
    cached_bytes: int  # held from the driver and not in use
    cached_blocks: int
    max_allocated_bytes: int
    total_allocations: int
    total_frees: int


_lock = threading.Lock()
_allocations = {}  # address: AllocationInfo
_count = 0


def _stats(device):
    stats = _Stats()
    functions().rdna_memory_get_stats(device, ctypes.byref(stats))
    return stats


def _segments(device):
    """The pool of a device: its segments with their blocks, as rdna_memory_snapshot says."""
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    text = made("rdna_memory_snapshot", device)
    try:
        return json.loads(ctypes.string_at(text))["segments"]
    finally:
        libc.free(text)


def _device_of(address):
    """The number of the device in whose pool an address is, None where it is in none."""
    for number, device in _devices.opened_already().items():
        for segment in _segments(device):
            if segment["address"] <= address < segment["address"] + segment["size"]:
                if any(b["state"] == "live" and b["address"] <= address < b["address"] + b["size"] for b in segment["blocks"]):
                    return number
    return None


def is_device_pointer(ptr):
    """Whether an address is in memory of a device that somebody in this process holds: ours, PyTorch's, TensorFlow's."""
    return _device_of(int(ptr)) is not None


def get_device_for_pointer(ptr):
    """The number of that device. ValueError: it is in the memory of none."""
    number = _device_of(int(ptr))
    if number is None:
        raise ValueError(f"{int(ptr):#x} is not an address of a device's memory")
    return number


def get_memory_alignment():
    return ALIGNMENT


def calculate_aligned_size(size, alignment=ALIGNMENT):
    """|size| rounded up. ValueError: |alignment| is no power of two."""
    _check_alignment(alignment)
    return (int(size) + alignment - 1) & -alignment


def is_aligned(ptr, alignment=ALIGNMENT):
    _check_alignment(alignment)
    return int(ptr) % alignment == 0


def align_pointer(ptr, alignment=ALIGNMENT):
    """The next address from |ptr| on that is a multiple of |alignment|."""
    return calculate_aligned_size(ptr, alignment)


def _check_alignment(alignment):
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"an alignment is a power of two, not {alignment!r}")


def get_buffer_info(buffer):
    """{"ptr", "size" in items, "itemsize", "format", "ndim", "shape", "strides" in bytes} of what has Python's buffer interface."""
    view = memoryview(buffer)
    size = 1
    for n in view.shape:
        size *= n
    return {"ptr": host_address(view), "size": size, "itemsize": view.itemsize, "format": view.format, "ndim": view.ndim,
            "shape": list(view.shape), "strides": list(view.strides)}  # fmt: skip


class _Buffer(ctypes.Structure):  # Py_buffer, its beginning and room for the rest
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("rest", ctypes.c_char * 128)]


def host_address(buffer):
    """Where the first item lies of what has Python's buffer interface, which must outlive the use of it."""
    found = _Buffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes, release.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int], [ctypes.POINTER(_Buffer)]
    get(buffer, ctypes.byref(found), 0x11C)  # PyBUF_FULL_RO
    release(ctypes.byref(found))
    return found.buf or 0


# ---- copies ----


def copy(stream, dst, src, size):
    """|size| bytes on |stream|, the address of an rdna_stream, from one address to another; each is of a device or of the host."""
    dst, src, size = int(dst), int(src), int(size)
    if size < 0:
        raise ValueError(f"a copy of {size} bytes")
    if not size:
        return
    to, of = _device_of(dst), _device_of(src)
    if to is None and of is None:
        ctypes.memmove(dst, src, size)
    elif to is None:
        call("rdna_copy_to_host", stream, dst, src, size)
    elif of is None:
        call("rdna_copy_to_device", stream, dst, src, size)
    elif to == of:
        call("rdna_copy_on_device", stream, dst, src, size)
    else:
        call("rdna_device_synchronize", _devices.opened(of))
        receiver = functions().rdna_device_default_stream(_devices.opened(to))
        call("rdna_copy_peer", receiver, dst, _devices.opened(of), src, size)
        call("rdna_stream_synchronize", receiver)


def stream_address(stream, device):
    """Of a Stream, or of the device's default one for None."""
    return functions().rdna_device_default_stream(device) if stream is None else stream.get_native_handle()


class MemoryAllocator:
    """The pool of a context's device, by addresses. What fails raises: RdnaError whose status is OUT_OF_MEMORY where there is no more."""

    def __init__(self, context):
        self._context = context

    def allocate(self, size, options=None):
        """An address, 0 for 0 bytes; of device memory, or of the host's with pinned_host_memory."""
        global _count
        options = options or AllocationOptions()
        _check_alignment(options.alignment)
        if options.alignment > ALIGNMENT:
            raise ValueError(f"memory is aligned to {ALIGNMENT} bytes; {options.alignment} were asked for")
        if options.unified_memory or options.managed_memory:
            raise RdnaError("UNSUPPORTED", "librdna has no unified or managed memory: allocate on the device, or pinned on the host")
        if int(size) < 0:
            raise ValueError(f"{size} bytes were asked for")
        if not int(size):
            return 0
        device = self._context.address()
        if options.pinned_host_memory:
            address = made("rdna_host_alloc", device, int(size))
        else:
            stream = None if options.stream is None else options.stream.get_native_handle()
            address = made("rdna_memory_alloc_named", device, int(size), stream, b"rdna.MemoryAllocator")
        with _lock:
            _count += 1
            _allocations[address] = AllocationInfo(
                ptr=address, size=int(size), allocated_size=calculate_aligned_size(size), is_device_memory=not options.pinned_host_memory,
                device_id=self._context.get_device_id(), stream=options.stream, allocation_id=_count)
        return address

    def deallocate(self, ptr):
        """Of what this or another allocator here gave. ValueError: it is not such an address, or was given back. 0 is fine."""
        with _lock:
            info = _allocations.pop(int(ptr), None) if ptr else None
        if not ptr:
            return
        if info is None:
            raise ValueError(f"{int(ptr):#x} is not the beginning of memory that was allocated here")
        device = _devices.opened(info.device_id)
        if info.is_device_memory:
            call("rdna_memory_free", device, info.ptr)
        else:
            functions().rdna_host_free(device, info.ptr)

    def memcpy(self, dst, src, size, stream=None):
        """Bytes between two addresses, of the device or the host; without a |stream| it waits for them."""
        used = stream_address(stream, self._context.address())
        copy(used, dst, src, size)
        if stream is None:
            call("rdna_stream_synchronize", used)
        return True

    def memset(self, ptr, value, size, stream=None):
        """A byte's value everywhere; without a |stream| it waits until it is there."""
        if not 0 <= int(value) <= 255:
            raise ValueError(f"a byte is 0 to 255, not {value}")
        if _device_of(int(ptr)) is None and size:
            ctypes.memset(int(ptr), int(value), int(size))
            return True
        used = stream_address(stream, self._context.address())
        call("rdna_fill_bytes", used, int(ptr), int(value), int(size))
        if stream is None:
            call("rdna_stream_synchronize", used)
        return True

    def empty_cache(self):
        call("rdna_memory_empty_cache", self._context.address())

    def get_stats(self):
        stats = _stats(self._context.address())
        cached = [b for segment in _segments(self._context.address()) for b in segment["blocks"] if b["state"] == "cached"]
        return MemoryStats(allocated_bytes=stats.allocated, allocated_blocks=stats.blocks, cached_bytes=stats.reserved - stats.allocated,
                           cached_blocks=len(cached), max_allocated_bytes=stats.peak_allocated, total_allocations=stats.alloc_count,
                           total_frees=stats.free_count)  # fmt: skip

    def get_allocation_info(self, ptr):
        """ValueError: nothing that was allocated here begins there."""
        info = _allocations.get(int(ptr))
        if info is None:
            raise ValueError(f"{int(ptr):#x} is not the beginning of memory that was allocated here")
        return info

    def set_cache_size_limit(self, limit):
        set_memory_cache_limit(limit)

    def get_cache_size_limit(self):
        return _devices.spare()

    def get_total_memory(self):
        return _devices.free_and_total(self._context.get_device_id())[1]

    def get_free_memory(self):
        return _devices.free_and_total(self._context.get_device_id())[0]

    def get_used_memory(self):
        free, total = _devices.free_and_total(self._context.get_device_id())
        return total - free


class MemoryManager(_devices.Only):
    """The one of the process: MemoryManager.get_instance(). device_id -1 is this thread's current device."""

    def __init__(self):
        self._allocators = {}

    def get_allocator(self, device_id):
        device_id = _devices.check_number(device_id)
        if device_id not in self._allocators:
            self._allocators[device_id] = MemoryAllocator(_devices.DeviceContext(device_id))
        return self._allocators[device_id]

    def get_current_allocator(self):
        return self.get_allocator(-1)

    def allocate(self, size, device_id=-1, options=None):
        return self.get_allocator(device_id).allocate(size, options)

    def deallocate(self, ptr):
        self.get_current_allocator().deallocate(ptr)

    def memcpy(self, dst, src, size, stream=None):
        return self.get_allocator(self._of(dst, src)).memcpy(dst, src, size, stream)

    def memset(self, ptr, value, size, stream=None):
        return self.get_allocator(self._of(ptr)).memset(ptr, value, size, stream)

    def _of(self, *addresses):
        """The device of the first that is a device's."""
        return next((number for number in map(_device_of, map(int, addresses)) if number is not None), -1)

    def empty_cache(self, device_id=-1):
        self.get_allocator(device_id).empty_cache()

    def get_stats(self, device_id=-1):
        return self.get_allocator(device_id).get_stats()

    def get_total_memory(self, device_id=-1):
        return self.get_allocator(device_id).get_total_memory()

    def get_free_memory(self, device_id=-1):
        return self.get_allocator(device_id).get_free_memory()

    def get_used_memory(self, device_id=-1):
        return self.get_allocator(device_id).get_used_memory()


# ---- functions ----


def _of_device(device_id, read):
    """|read| of a device's statistics; 0 where there is no device and none was named, as nothing is there."""
    if device_id in (-1, None) and not _devices.is_available():
        return 0
    return read(_stats(_devices.opened(device_id)))


def memory_allocated(device_id=-1):
    """Bytes in use, by all in this process. -1: the current device; without devices 0."""
    return _of_device(device_id, lambda stats: stats.allocated)


def max_memory_allocated(device_id=-1):
    """The most that was in use."""
    return _of_device(device_id, lambda stats: stats.peak_allocated)


def memory_reserved(device_id=-1):
    """Bytes held from the driver, in use or kept."""
    return _of_device(device_id, lambda stats: stats.reserved)


def memory_cached(device_id=-1):
    """Bytes held from the driver and not in use."""
    return _of_device(device_id, lambda stats: stats.reserved - stats.allocated)


def empty_cache(device_id=-1):
    """Gives what is kept and not in use back to the driver. Without devices there is nothing."""
    if device_id not in (-1, None) or _devices.is_available():
        call("rdna_memory_empty_cache", _devices.opened(device_id))


def set_memory_cache_limit(limit):
    """Bytes that are kept for the next allocations, on each device, beyond 5/4 of the most that was ever in use."""
    if int(limit) < 0:
        raise ValueError(f"a limit of {limit} bytes")
    _devices.keep_spare(int(limit))


def memory_summary(device_id=-1):
    """A few lines of the above."""
    if device_id in (-1, None) and not _devices.is_available():
        return "no device"
    number = _devices.check_number(device_id)
    stats, (free, total) = _stats(_devices.opened(number)), _devices.free_and_total(number)
    rows = {"allocated": (stats.allocated, stats.peak_allocated), "reserved": (stats.reserved, stats.peak_reserved)}
    lines = [f"rdna:{number}  {_devices.get_device_properties(number).name}", f"{'MiB':12}{'now':>14}{'peak':>14}"]
    lines += [f"{name:12}{now / 2**20:14.1f}{peak / 2**20:14.1f}" for name, (now, peak) in rows.items()]
    lines.append(f"{stats.blocks} blocks, {stats.alloc_count} allocations, {stats.free_count} freed; {free / 2**20:.0f} MiB of {total / 2**20:.0f} free")
    return "\n".join(lines)
