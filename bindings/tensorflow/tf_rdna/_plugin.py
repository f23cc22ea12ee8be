"""The plugin's own functions, through ctypes on the library that TensorFlow has loaded."""

import ctypes
import functools
import os

NAME = "librdna_tensorflow.so"


class MemoryStats(ctypes.Structure):  # rdna_memory_stats of rdna/memory.h
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "allocated", "requested", "reserved", "peak_allocated", "peak_requested", "peak_reserved", "blocks",
            "peak_blocks", "alloc_count", "free_count", "alloc_bytes", "free_bytes", "segment_count",
            "peak_segment_count", "driver_allocs", "driver_frees", "retries", "ooms",
        )
    ] + [("fragmentation", ctypes.c_double)]  # fmt: skip


def path():
    """Where the plugin lies that this process has loaded; RuntimeError where it has none."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            found = line.rstrip("\n").partition("/")[2]
            if os.path.basename(found) == NAME:
                return "/" + found
    raise RuntimeError(
        f"TensorFlow has not loaded {NAME}: it lies in the folder tensorflow-plugins beside TensorFlow, or in the one that "
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH names"
    )


@functools.cache
def library():
    import tensorflow  # noqa: F401  loads the plugin

    found = ctypes.CDLL(path())
    found.rdna_tensorflow_why_none.restype = ctypes.c_char_p
    found.rdna_tensorflow_set_visible.restype = ctypes.c_bool
    found.rdna_tensorflow_memory.restype = ctypes.c_bool
    found.rdna_tensorflow_ledger.restype = ctypes.c_char_p
    found.rdna_tensorflow_fused.restype = ctypes.c_long
    return found


def memory(index):
    stats = MemoryStats()
    if not library().rdna_tensorflow_memory(index, ctypes.byref(stats)):
        raise RuntimeError(f"TensorFlow has no device RDNA:{index}; {device_count()} are there")
    return stats


def device_count():
    return library().rdna_tensorflow_device_count()


def ledger():
    """How often each operator of ours was called, those on the host driver apart."""
    on_host, calls = ctypes.c_bool(), ctypes.c_long()
    native, host, i = {}, {}, 0
    while True:
        name = library().rdna_tensorflow_ledger(i, ctypes.byref(on_host), ctypes.byref(calls))
        if name is None:
            return native, host
        if calls.value:
            (host if on_host.value else native)[name.decode()] = calls.value
        i += 1


def operators():
    """The names of all operators that have a kernel on the device."""
    on_host, calls = ctypes.c_bool(), ctypes.c_long()
    names, i = set(), 0
    while True:
        name = library().rdna_tensorflow_ledger(i, ctypes.byref(on_host), ctypes.byref(calls))
        if name is None:
            return sorted(names)
        if not on_host.value:
            names.add(name.decode())
        i += 1
