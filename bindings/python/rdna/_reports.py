"""What there is and how it does, as text; the package's settings; times of pieces of work."""

import collections
import contextlib
import ctypes
import dataclasses
import logging
import os
import platform
import time

from . import _devices, _memory
from ._library import last_error, path
from ._native import DriverInfo, ProfileRecord, call, functions, made

_log = logging.getLogger("rdna")


def _drivers():
    found, info = [], DriverInfo()
    while functions().rdna_driver_get_info(len(found), ctypes.byref(info)) == 0:
        found.append((info.name.decode(), info.device_count, info.message.decode(), info.version.decode()))
    return found


def get_library_version():
    from . import __version__

    return __version__


def get_hip_version():
    """Of the HIP runtime that librdna found, as the driver says it; "" without."""
    return next((version for name, _, _, version in _drivers() if name == "hip"), "")


def get_roc_version():
    """Of the ROCm that ROCM_PATH names (/opt/rocm), by its own file; "" where there is none."""
    with contextlib.suppress(OSError):
        with open(os.path.join(os.environ.get("ROCM_PATH", "/opt/rocm"), ".info", "version")) as file:
            return file.read().strip()
    return ""


def get_build_info():
    return f"rdna {get_library_version()}, librdna {path()}, Python {get_python_version()}, {platform.machine()}"


def get_python_version():
    return platform.python_version()


def get_system_info():
    """A line for each driver and each device."""
    lines = [get_build_info(), f"{platform.system()} {platform.release()}, {os.cpu_count()} processors"]
    lines += [f"driver {name}: {count} device{'s' * (count != 1)}; {message}" for name, count, message, _ in _drivers()]
    count = _devices.device_count()
    for i in range(count):
        p = _devices.get_device_properties(i)
        lines.append(f"rdna:{i}  {p.name} ({p.arch}), {p.total_memory / 2**30:.1f} GiB, {p.compute_units} compute units, waves of {p.wavefront_size}")
    if not count:
        lines.append(f"no device: {_devices._driver()[2] or 'none is visible'}")
    return "\n".join(lines)


def get_memory_info(device_id=-1):
    return _memory.memory_summary(device_id)


def get_kernel_info(device_id=-1):
    """For which device librdna's kernels are, and where its packs come from."""
    if device_id in (-1, None) and not _devices.is_available():
        return "no device, so no kernels"
    p = _devices.get_device_properties(_devices.check_number(device_id))
    return f"rdna:{p.device_id}: kernels for {p.arch}; `rdna kernels` lists those of librdna, RDNA_KERNEL_PATH is {os.environ.get('RDNA_KERNEL_PATH', 'not set')}"


def print_system_info():
    print(get_system_info())


def print_memory_info(device_id=-1):
    print(get_memory_info(device_id))


def print_kernel_info(device_id=-1):
    print(get_kernel_info(device_id))


def run_diagnostics():
    """Prints all of that, and for each device whether a small computation on it is right. Returns whether all are."""
    print_system_info()
    good = True
    for i in range(_devices.device_count()):
        print_memory_info(i)
        print_kernel_info(i)
        said = _try(i)
        good &= not said
        print(f"rdna:{i}: {said or 'computes what it should'}")
    return good


diagnostics = run_diagnostics


def _try(device_id):
    """"" where a product of two matrices on the device is right, else what is wrong."""
    from ._kernels import TensorDesc, matmul

    n = 17
    a, b, c = ((ctypes.c_float * (n * n))() for _ in range(3))
    a[:], b[:] = [i % 7 - 3 for i in range(n * n)], [i % 5 - 2 for i in range(n * n)]
    try:
        matmul(TensorDesc([n, n]), a, TensorDesc([n, n]), b, TensorDesc([n, n]), c, device_id=device_id)
    except (RuntimeError, ValueError) as error:
        return str(error)
    wrong = sum(c[i * n + j] != sum(a[i * n + k] * b[k * n + j] for k in range(n)) for i in range(n) for j in range(n))
    return f"{wrong} of {n * n} values of a product are wrong" if wrong else ""


# ---- settings ----


@dataclasses.dataclass
class LibraryConfig:
    """|memory_cache_limit| as set_memory_cache_limit has it. There is no unified memory: True is refused."""

    enable_debug_logging: bool = False
    enable_profiling: bool = False
    memory_cache_limit: int = 0
    use_unified_memory: bool = False


_config = LibraryConfig()
_handler = logging.StreamHandler()


def get_library_config():
    return dataclasses.replace(_config, memory_cache_limit=_devices.spare())


def set_library_config(config):
    """ValueError: it asks for unified memory. Nothing is changed then."""
    if config.use_unified_memory:
        raise ValueError("librdna has no unified memory")
    set_debug_logging(config.enable_debug_logging)
    set_profiling(config.enable_profiling)
    _memory.set_memory_cache_limit(config.memory_cache_limit)


def set_debug_logging(enabled):
    """What log_debug and its neighbours say goes to standard error, by Python's logger "rdna"."""
    _config.enable_debug_logging = bool(enabled)
    _log.setLevel(logging.DEBUG if enabled else logging.NOTSET)
    (_log.addHandler if enabled else _log.removeHandler)(_handler)


def log_debug(message):
    _log.debug("%s", message)


def log_info(message):
    _log.info("%s", message)


def log_warning(message):
    _log.warning("%s", message)


def log_error(message):
    _log.error("%s", message)


def get_last_hip_error():
    """The sentence of this thread's last failed call of librdna; "" without."""
    return last_error()


# ---- times ----

_profiled = None  # the number of the device that is profiled


def set_profiling(enabled):
    """Begins to record what runs on the current device; False ends it, and PerformanceProfiler has the times. Nothing happens twice."""
    global _profiled
    if bool(enabled) == _config.enable_profiling:
        return
    if enabled and _devices.is_available():
        device = _devices.check_number(-1)
        call("rdna_profile_start", _devices.opened(device))
        _profiled = device
    elif not enabled and _profiled is not None:
        records, count = ctypes.c_void_p(), ctypes.c_size_t()
        device, _profiled = _profiled, None
        call("rdna_profile_stop", _devices.opened(device), ctypes.byref(records), ctypes.byref(count))
        PerformanceProfiler.get_instance()._take(records, count.value)
    _config.enable_profiling = bool(enabled)


PerformanceStats = collections.namedtuple("PerformanceStats", "count total_ms min_ms max_ms avg_ms")


class PerformanceProfiler(_devices.Only):
    """Times by name, in milliseconds: of the device between set_profiling(True) and set_profiling(False), and of ScopedEvent."""

    def __init__(self):
        self._times, self._begun = collections.defaultdict(list), {}

    def _take(self, records, count):
        libc = ctypes.CDLL(None)
        libc.free.argtypes = [ctypes.c_void_p]
        for record in (ProfileRecord * count).from_address(records.value) if count else ():
            self._times[record.name.decode()].append(record.length)
        libc.free(records)

    def start_event(self, name):
        self._begun[name] = time.perf_counter()

    def end_event(self, name):
        """KeyError: it was not started."""
        self._times[name].append((time.perf_counter() - self._begun.pop(name)) * 1e3)

    def get_stats(self, name):
        """KeyError: nothing of that name was recorded."""
        if name not in self._times:
            raise KeyError(name)
        times = self._times[name]
        return PerformanceStats(len(times), sum(times), min(times), max(times), sum(times) / len(times))

    def get_all_stats(self):
        return {name: self.get_stats(name) for name in self._times}

    def get_event_count(self):
        return sum(map(len, self._times.values()))

    def is_enabled(self):
        return _config.enable_profiling

    def clear_events(self):
        self._times.clear()

    def generate_report(self, filename=""):
        """A line for each name, the longest first; into a file too, if one is named."""
        rows = sorted(self.get_all_stats().items(), key=lambda row: -row[1].total_ms)
        text = "\n".join(f"{s.total_ms:12.3f} ms {s.count:8} times {s.avg_ms:12.4f} ms each  {name}" for name, s in rows)
        if filename:
            with open(filename, "w") as file:
                file.write(text + "\n")
        return text

    def print_summary(self):
        print(self.generate_report())


class ScopedEvent:
    """with rdna.ScopedEvent("load"): the time of the block goes to PerformanceProfiler."""

    def __init__(self, name):
        self._name = name

    def __enter__(self):
        PerformanceProfiler.get_instance().start_event(self._name)
        return self

    def __exit__(self, *error):
        PerformanceProfiler.get_instance().end_event(self._name)


class Timer:
    """start(), stop() and elapsed_ms() by the device's own clock, of what the current device's default stream was given between."""

    def __init__(self, name):
        self.name, self._device = name, _devices.opened(-1)
        self._events = [made("rdna_event_create", self._device, True) for _ in range(2)]
        self.start()

    def _record(self, i):
        call("rdna_event_record", self._events[i], functions().rdna_device_default_stream(self._device))

    def start(self):
        self._record(0)
        self._running = True

    def stop(self):
        self._record(1)
        self._running = False

    def elapsed_ms(self):
        """Waits for what was timed; stops the timer where it runs."""
        if self._running:
            self.stop()
        found = ctypes.c_float()
        call("rdna_event_synchronize", self._events[1])
        call("rdna_event_elapsed", *self._events, ctypes.byref(found))
        return found.value

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def __del__(self):
        for event in getattr(self, "_events", ()):
            functions().rdna_event_release(event)


def create_timer(name):
    """A Timer that runs. RuntimeError: there is no device."""
    return Timer(name)


class BenchmarkRunner(_devices.Only):
    """The one of the process: small measurements of a device by its own clock."""

    def _best(self, device_id, work):
        """Milliseconds of the quickest of five calls of |work|, which queues on the default stream."""
        before = _devices.current_device()
        _devices.set_device(device_id)
        try:
            work()
            times = []
            for _ in range(5):
                timer = Timer("benchmark")
                work()
                times.append(timer.elapsed_ms())
            return min(times)
        finally:
            _devices.set_device(before)

    @contextlib.contextmanager
    def _room(self, device_id, *sizes):
        allocator = _memory.MemoryManager.get_instance().get_allocator(device_id)
        taken = []
        try:
            for size in sizes:
                taken.append(allocator.allocate(size))
                allocator.memset(taken[-1], 0, size)
            yield taken
        finally:
            for address in taken:
                allocator.deallocate(address)

    def benchmark_memory_bandwidth(self, device_id=0, size=64 << 20):
        """GB/s, bytes read and written, of a copy on the device."""
        with self._room(device_id, size, size) as (dst, src):
            stream = functions().rdna_device_default_stream(_devices.opened(device_id))
            ms = self._best(device_id, lambda: call("rdna_copy_on_device", stream, dst, src, size))
        return 2 * size / ms / 1e6

    def benchmark_matrix_multiply(self, m, n, k, device_id=0):
        """GFLOP/s of a product in float32."""
        from ._kernels import TensorDesc, matmul

        with self._room(device_id, 4 * m * k, 4 * k * n, 4 * m * n) as (a, b, c):
            ms = self._best(device_id, lambda: matmul(TensorDesc([m, k]), a, TensorDesc([k, n]), b, TensorDesc([m, n]), c, device_id=device_id))
        return 2 * m * n * k / ms / 1e6

    def run_benchmarks(self, device_id=0):
        """Prints both at usual sizes."""
        print(f"memory bandwidth {self.benchmark_memory_bandwidth(device_id):10.1f} GB/s")
        print(f"matrix product   {self.benchmark_matrix_multiply(1024, 1024, 1024, device_id):10.1f} GFLOP/s")


def to_dlpack(x):
    """A capsule of what has __dlpack__: of rdna.arrays, of PyTorch, of NumPy."""
    return x.__dlpack__()


class _Capsule:
    """A capsule as what rdna.arrays takes: an object that gives it away."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **wishes):
        return self._capsule

    def __dlpack_device__(self):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return tuple((ctypes.c_int32 * 2).from_address(get(self._capsule, b"dltensor") + 8))


def from_dlpack(x):
    """An array of rdna.arrays over the memory of a capsule, or of what has __dlpack__. ValueError: somebody has taken the capsule."""
    from .arrays import from_dlpack as take

    return take(x if hasattr(x, "__dlpack__") else _Capsule(x))
