"""What the card's sensors say, as Linux's amdgpu driver shows it in files."""

import glob
import os

from ._device import _index, get_device_properties
from .memory import mem_get_info

_DEVICES = "/sys/bus/pci/devices"


def _read(device, what, *names):
    """The number in the first of the files |names| (patterns) of the card."""
    p = get_device_properties(device)
    if p.driver != "hip" or p.emulated or p.pci_bus < 0:
        raise NotImplementedError(
            f"{what}: rdna:{_index(device)} is {p.name!r} through the driver {p.driver!r}; "
            "only cards of Linux's amdgpu driver say it"
        )
    folder = f"{_DEVICES}/{p.pci_domain:04x}:{p.pci_bus:02x}:{p.pci_device:02x}.0"
    for name in names:
        for path in sorted(glob.glob(os.path.join(folder, name))):
            with open(path) as file:
                return int(file.read())
    raise RuntimeError(f"{what}: {folder} has no file {' or '.join(names)}")


def utilization(device=None):
    """Percent of the last moment in which the card computed."""
    return _read(device, "utilization", "gpu_busy_percent")


def memory_usage(device=None):
    """Percent of the last moment in which the card's memory was read or written."""
    return _read(device, "memory_usage", "mem_busy_percent")


def temperature(device=None):
    """Of the card's edge, in degrees Celsius."""
    return _read(device, "temperature", "hwmon/hwmon*/temp1_input") // 1000


def power_draw(device=None):
    """In milliwatts."""
    return _read(device, "power_draw", "hwmon/hwmon*/power1_average", "hwmon/hwmon*/power1_input") // 1000


def clock_rate(device=None):
    """Of the compute units now, in MHz."""
    return _read(device, "clock_rate", "hwmon/hwmon*/freq1_input") // 1000000


def device_memory_used(device=None):
    """Bytes of the device's memory that all processes hold together."""
    free, total = mem_get_info(device)
    return total - free
