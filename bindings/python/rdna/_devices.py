"""The devices of this process by number, contexts and streams on them."""

import ctypes
import dataclasses
import re
import threading

from ._library import last_error
from ._native import DeviceInfo, DriverInfo, RdnaError, call, functions, made

_local, _lock = threading.local(), threading.Lock()
_opened = {}  # number: address of an rdna_device that stays open
_visible = None  # numbers within the driver that config.set_visible_devices left; None: all
_spare = 0  # bytes that set_memory_cache_limit wants kept


def _driver():
    """(name, number of devices, why there is none): a GPU's driver, or what RDNA_DRIVER or RDNA_EMULATE ask for."""
    info, asked = DriverInfo(), ctypes.c_bool()
    if functions().rdna_driver_default(ctypes.byref(info), ctypes.byref(asked)):
        return "", 0, last_error()
    if info.status:
        return "", 0, info.message.decode()
    if info.name == b"host" and not asked.value:
        return "", 0, "no GPU was found (rdna doctor says why); RDNA_DRIVER=host computes on the processor"
    return info.name.decode(), info.device_count, ""


def is_available():
    """Whether there is a device: a GPU, or what RDNA_DRIVER or RDNA_EMULATE ask for."""
    return device_count() > 0


def device_count():
    return len(_visible) if _visible is not None else _driver()[1]


is_rdna_available, rdna_device_count = is_available, device_count


def check_number(device_id):
    """It, or the current one for -1 and None. RuntimeError: there are no devices; ValueError: not that one."""
    device_id = current_device() if device_id is None or device_id == -1 else int(device_id)
    count = device_count()
    if not count:
        raise RuntimeError(f"device {device_id} was asked for: {_driver()[2] or 'none is visible'}")
    if not 0 <= device_id < count:
        raise ValueError(f"device {device_id} was asked for; there are {count}, counted from 0")
    return device_id


def _name(device_id):
    return f"{_driver()[0]}:{device_id if _visible is None else _visible[device_id]}"


def opened(device_id=-1):
    """The address of an rdna_device, which is opened when it is first asked for and stays open."""
    device_id = check_number(device_id)
    with _lock:
        if device_id not in _opened:
            _opened[device_id] = made("rdna_device_open", _name(device_id).encode())
            call("rdna_memory_set_spare", _opened[device_id], _spare)
        return _opened[device_id]


def opened_already():
    """{number: address} of those in use."""
    with _lock:
        return dict(_opened)


def keep_spare(limit):
    global _spare
    _spare = limit
    for device in opened_already().values():
        call("rdna_memory_set_spare", device, limit)


def spare():
    return _spare


def set_visible(devices):
    """What config.set_visible_devices does."""
    global _visible
    numbers = [int(device) for device in devices]
    count = _driver()[1]
    if _opened:
        raise RuntimeError("set_visible_devices: a device was used already; call it before the first use")
    if not all(0 <= number < count for number in numbers) or len(set(numbers)) != len(numbers):
        raise ValueError(f"set_visible_devices: {numbers} were asked for; there are {count}, counted from 0, each once")
    _visible = numbers


def current_device():
    """This thread's, 0 at first."""
    return getattr(_local, "device", 0)


def set_device(device_id):
    """Of this thread. ValueError: there is no such device; RuntimeError: there is none."""
    _local.device = check_number(int(device_id))


def synchronize(device_id=-1):
    """Waits for all work on the device."""
    call("rdna_device_synchronize", opened(device_id))


class device:
    """with rdna.device("rdna:1"): the current device of this thread meanwhile. ValueError: not "rdna" or "rdna:N"."""

    _pattern, _form = r"rdna(?::(\d+))?", '"rdna" or "rdna:N"'

    def __init__(self, device):
        found = re.fullmatch(self._pattern, str(device), re.ASCII)
        if not found:
            raise ValueError(f"a device is {self._form}, not {device!r}")
        self.device_id = int(found[1] or 0)

    def __enter__(self):
        self._before = current_device()
        set_device(self.device_id)
        return self

    def __exit__(self, *error):
        _local.device = self._before


class tf_device(device):
    """The same by TensorFlow's names: with rdna.tf_device("/device:RDNA:0"). TensorFlow's own operators follow tf.device."""

    _pattern, _form = r"/device:RDNA(?::(\d+))?", '"/device:RDNA" or "/device:RDNA:N"'


# ---- what a device is ----


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """Memory in bytes. supports_tensor_cores: it has instructions for products of small matrices, which librdna's kernels use."""

    device_id: int
    name: str
    arch: str
    total_memory: int
    free_memory: int
    compute_units: int
    max_workgroup_size: int
    wavefront_size: int
    supports_fp16: bool
    supports_bf16: bool
    supports_tensor_cores: bool
    pci_bus_id: int
    pci_device_id: int


_MATRIX = ("gfx11", "gfx12", "gfx908", "gfx90a", "gfx94", "gfx95")


def _has_matrix_cores(arch):
    return arch.startswith(_MATRIX) or (arch.startswith("sm_") and int(arch[3:].rstrip("af")) >= 70)


def free_and_total(device_id=-1):
    """Bytes of the whole device, as its driver says."""
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    call("rdna_memory_get_info", opened(device_id), ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def get_device_properties(device_id=0):
    device_id = check_number(device_id)
    info, driver = DeviceInfo(), _driver()[0]
    call("rdna_device_describe", driver.encode(), int(_name(device_id).partition(":")[2]), ctypes.byref(info))
    arch = info.arch.decode()
    return DeviceProperties(
        device_id=device_id, name=info.name.decode(), arch=arch, total_memory=info.total_memory, free_memory=free_and_total(device_id)[0],
        compute_units=info.compute_units, max_workgroup_size=info.max_group_threads, wavefront_size=info.wave_size, supports_fp16=True,
        supports_bf16=True, supports_tensor_cores=_has_matrix_cores(arch), pci_bus_id=info.pci_bus, pci_device_id=info.pci_device)


def get_device_capability(device_id=0, capability="fp16"):
    """Whether the device computes in "fp16" or "bf16" (librdna does on all), or has "tensor_cores". ValueError: another word."""
    if capability not in ("fp16", "bf16", "tensor_cores"):
        raise ValueError(f"a capability is fp16, bf16 or tensor_cores, not {capability!r}")
    return getattr(get_device_properties(device_id), "supports_" + capability)


check_device_capability = get_device_capability


# ---- contexts and streams ----


class DeviceContext:
    """A device that is used: initialize() opens it, and what needs it does too."""

    def __init__(self, device_id):
        self._device_id, self._streams = int(device_id), []
        self._address = None

    def initialize(self):
        self._address = opened(check_number(self._device_id))
        return True

    def address(self):
        """Of the rdna_device."""
        if self._address is None:
            self.initialize()
        return self._address

    def is_valid(self):
        return self._address is not None

    def synchronize(self):
        call("rdna_device_synchronize", self.address())

    def get_device_id(self):
        return self._device_id

    def get_properties(self):
        return get_device_properties(self._device_id)

    def create_stream(self):
        stream = Stream(self)
        stream.initialize()
        return stream

    def get_default_stream(self):
        return Stream(self, functions().rdna_device_default_stream(self.address()))


class Stream:
    """A queue of work on a context's device. Addresses are of device memory that MemoryAllocator gave, or of host memory."""

    def __init__(self, context, borrowed=None):
        self._context, self._address, self._own = context, borrowed, False

    def initialize(self):
        if self._address is None:
            self._address, self._own = made("rdna_stream_create", self._context.address(), 0), True
        return True

    def is_valid(self):
        return self._address is not None

    def get_native_handle(self):
        """The address of the rdna_stream."""
        self.initialize()
        return self._address

    def synchronize(self):
        call("rdna_stream_synchronize", self.get_native_handle())

    def memcpy(self, dst, src, size):
        """Copies bytes between two addresses and waits for them."""
        self.memcpy_async(dst, src, size)
        self.synchronize()
        return True

    def memcpy_async(self, dst, src, size):
        """In the order of the stream; what is pageable on the host is read before the call returns."""
        from ._memory import copy

        copy(self.get_native_handle(), dst, src, size)
        return True

    def __del__(self):
        if self._own and functions is not None:
            functions().rdna_stream_release(self._address)


class Only:
    """A class of which a process has one object."""

    _instance = None

    @classmethod
    def get_instance(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance


class DeviceManager(Only):
    """The one of the process: DeviceManager.get_instance()."""

    def device_count(self):
        return device_count()

    def get_device_properties(self, device_id):
        return get_device_properties(device_id)

    def get_all_device_properties(self):
        return [get_device_properties(i) for i in range(device_count())]

    def create_context(self, device_id):
        context = DeviceContext(device_id)
        context.initialize()
        return context

    def get_current_context(self):
        """This thread's; of its current device where set_current_context has put none."""
        context = getattr(_local, "context", None)
        if context is None or context.get_device_id() != current_device():
            context = _local.context = self.create_context(current_device())
        return context

    def set_current_context(self, context):
        set_device(context.get_device_id())
        _local.context = context

    def check_device_compatibility(self, device_id):
        """Whether the device can be opened, and librdna has kernels for it; get_last_error() says why not."""
        try:
            stream = DeviceContext(device_id).create_stream()
            from ._memory import MemoryAllocator

            allocator = MemoryAllocator(stream._context)
            address = allocator.allocate(256)
            try:
                from ._kernels import CustomKernels, TensorDesc

                CustomKernels(stream._context).relu(TensorDesc([4]), address, TensorDesc([4]), address)
            finally:
                allocator.deallocate(address)
            return True
        except (RdnaError, RuntimeError, ValueError) as error:
            self._error = str(error)
            return False

    def get_last_error(self):
        """What check_device_compatibility found, else this thread's last failed call of librdna; "" without."""
        return getattr(self, "_error", "") or last_error()
