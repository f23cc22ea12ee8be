"""Which devices this process uses, and what their memory holds."""

from . import _devices, _memory


def set_visible_devices(devices):
    """Only these, by number, become device 0, 1, …; before the first use of one. [] is none. RuntimeError after it, ValueError for one
    that there is not, or that comes twice. PyTorch's and TensorFlow's devices have settings of their own."""
    _devices.set_visible(devices)


def get_memory_info(device_id=None):
    """{"current", "peak", "reserved", "peak_reserved"} bytes of this process, {"free", "total"} of the device."""
    number = _devices.check_number(-1 if device_id is None else device_id)
    stats, (free, total) = _memory._stats(_devices.opened(number)), _devices.free_and_total(number)
    return {"current": stats.allocated, "peak": stats.peak_allocated, "reserved": stats.reserved, "peak_reserved": stats.peak_reserved,
            "free": free, "total": total}  # fmt: skip
