"""Devices: how many, which one, what they are."""

from dataclasses import dataclass

import torch

from . import _C


# The names that devices of ours say they have; torch_rdna.as_cuda adds one.
types = {"rdna", "privateuseone"}


def is_ours(device):
    return device.type in types


def _index(device=None, optional=True):
    """The number of |device|: None (the current one), an int, "rdna:1" or torch.device."""
    if device is None and optional:
        return _C.current_device()
    if isinstance(device, int):
        return _there(device) if device >= 0 else _C.current_device()
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device):
        device = getattr(device, "device", device)
    if not isinstance(device, torch.device) or not is_ours(device):
        raise ValueError(f"expected a device of rdna, got {device!r}")
    return _C.current_device() if device.index is None else _there(device.index)


def _there(index):
    """The number itself, of a device that is there; without any device, what needs one says why there is none."""
    count = _C.device_count()
    if index >= count > 0:
        there = "is one, rdna:0" if count == 1 else f"are rdna:0 to rdna:{count - 1}"
        raise RuntimeError(f"device rdna:{index} was asked for; there {there}")
    return index


def is_available():
    """Whether there is a GPU, or RDNA_DRIVER or RDNA_EMULATE asks for what stands in for one."""
    return _C.device_count() > 0


def device_count():
    return _C.device_count()


def current_device():
    return _C.current_device()


def set_device(device):
    index = _index(device, optional=False) if device is not None else -1
    if index >= 0:
        _C.set_device(index)


def synchronize(device=None):
    """Waits for all work on the device."""
    _C.synchronize(_index(device))


_SYNC_DEBUG_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode):
    """What copies do that make the host wait for the device, as .item(), .cpu() and nonzero do: "default" (0) nothing,
    "warn" (1), "error" (2). synchronize() is never one of them."""
    if debug_mode in _SYNC_DEBUG_MODES:
        debug_mode = _SYNC_DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"expected 'default', 'warn', 'error' or 0, 1, 2, got {debug_mode!r}")
    _C.set_sync_debug_mode(debug_mode)


def get_sync_debug_mode():
    return _C.sync_debug_mode()


def can_device_access_peer(device, peer_device):
    _index(device), _index(peer_device)
    raise NotImplementedError(
        "librdna does not say whether a device reaches another's memory; copies between devices work in either case"
    )


def ipc_collect():
    """Nothing to do: a tensor arrives in another process as a copy, which that process frees."""


class _DeviceGuard:
    def __init__(self, index):
        self.idx = index
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _C.current_device()
        if self.idx >= 0:
            _C.set_device(self.idx)

    def __exit__(self, *unused):
        if self.idx >= 0:
            _C.set_device(self.prev_idx)
        return False


class device(_DeviceGuard):
    """Context in which |device| is the current one. None leaves it as it is."""

    def __init__(self, device):
        super().__init__(-1 if device is None else _index(device))


class device_of(device):
    """Context in which the device of |tensor| is the current one, if it is on rdna."""

    def __init__(self, tensor):
        super().__init__(tensor.device if tensor.is_rdna else None)


@dataclass(frozen=True)
class DeviceProperties:
    name: str
    driver: str  # "hip", "cuda", "host"
    arch: str  # "gfx1100"
    index: int
    native_index: int  # the number that the vendor's own library uses
    integrated: bool
    emulated: bool
    total_memory: int
    compute_units: int
    wave_size: int
    max_group_threads: int
    max_group_memory: int
    clock_mhz: int
    pci_domain: int
    pci_bus: int
    pci_device: int

    # The names that torch.cuda.get_device_properties has for the same.
    gcnArchName = property(lambda self: self.arch)
    major = property(lambda self: _capability(self.arch)[0])
    minor = property(lambda self: _capability(self.arch)[1])
    multi_processor_count = property(lambda self: self.compute_units)
    warp_size = property(lambda self: self.wave_size)
    max_threads_per_block = property(lambda self: self.max_group_threads)
    shared_memory_per_block = property(lambda self: self.max_group_memory)
    is_integrated = property(lambda self: int(self.integrated))
    clock_rate = property(lambda self: self.clock_mhz * 1000)  # in kHz
    pci_domain_id = property(lambda self: self.pci_domain)
    pci_bus_id = property(lambda self: self.pci_bus)
    pci_device_id = property(lambda self: self.pci_device)


def get_device_properties(device=None):
    return DeviceProperties(**_C.properties(_index(device)))


def get_device_name(device=None):
    return get_device_properties(device).name


def _capability(arch):
    if arch.startswith("gfx"):
        digits = arch[3:].split(":")[0]
        return int(digits[:-2]), int(digits[-2], 16)
    if arch.startswith("sm_"):
        digits = arch[3:].rstrip("af")
        return int(digits[:-1]), int(digits[-1])
    return 0, 0


def get_device_capability(device=None):
    """(major, minor) of the architecture: (11, 0) for gfx1100, (9, 0) for sm_90, (0, 0) for the host."""
    return _capability(get_device_properties(device).arch)


def get_arch_list():
    """The architectures of the devices that are there, without opening them."""
    return sorted({get_device_properties(i).arch for i in range(_C.device_count())})


def last_choice(operator):
    """(implementation, why) of this thread's last call of an operator that has several: "gemm", "linear", "conv"."""
    return _C.last_choice(operator)
