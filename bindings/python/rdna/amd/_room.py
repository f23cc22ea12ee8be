"""How much memory a device may still give, and how PyTorch's errors become rdna.amd's."""

import contextlib
import os

import torch

from .amd_exceptions import AMDDeviceError, ROCmMemoryError

MB = 1024 * 1024


def host_memory():
    """(available, total) bytes of the machine's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    with contextlib.suppress(OSError):
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024, total
    return os.sysconf("SC_AVPHYS_PAGES") * page, total


def memory_info(device):
    """(free, total) bytes of the device as its driver says, of the machine for the CPU."""
    return host_memory() if device.type == "cpu" else torch.rdna.mem_get_info(device)


def room(device, fraction):
    """Bytes that may still be allocated, if this process is to hold no more than |fraction| of the device's memory: what
    the driver has free and what the allocator has cached. Of the CPU, where nobody counts what this process holds, that
    share of what is available."""
    free, total = memory_info(device)
    if device.type == "cpu":
        return int(free * fraction)
    allocated = torch.rdna.memory_allocated(device)
    cached = torch.rdna.memory_reserved(device) - allocated
    return max(0, min(free + cached, int(total * fraction) - allocated))


@contextlib.contextmanager
def as_amd_errors(device, operation, required):
    """What PyTorch raises within becomes ROCmMemoryError or AMDDeviceError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ROCmMemoryError(operation, required / MB, room(device, 1) / MB) from error
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise AMDDeviceError(device.index or 0, operation, str(error)) from error
