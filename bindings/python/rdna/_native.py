"""librdna's structs and functions for the parts of this package that do without NumPy, and its failures as exceptions."""

import ctypes
import functools

from ._library import last_error, library

MAX_RANK = 8


class Tensor(ctypes.Structure):  # rdna/tensor.h
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * MAX_RANK), ("stride", ctypes.c_int64 * MAX_RANK)]


class Scalar(ctypes.Structure):  # rdna/scalar.h
    _fields_ = [("real", ctypes.c_double), ("integer", ctypes.c_int64)]


class DeviceInfo(ctypes.Structure):  # rdna/device.h
    _fields_ = [("name", ctypes.c_char * 128), ("driver", ctypes.c_char * 8), ("arch", ctypes.c_char * 32), ("index", ctypes.c_int),
                ("native_index", ctypes.c_int), ("integrated", ctypes.c_bool), ("emulated", ctypes.c_bool), ("total_memory", ctypes.c_uint64),
                ("compute_units", ctypes.c_int), ("wave_size", ctypes.c_int), ("max_group_threads", ctypes.c_int),
                ("max_group_memory", ctypes.c_uint32), ("clock_mhz", ctypes.c_int), ("pci_domain", ctypes.c_int), ("pci_bus", ctypes.c_int),
                ("pci_device", ctypes.c_int)]


class DriverInfo(ctypes.Structure):  # rdna/device.h
    _fields_ = [("name", ctypes.c_char_p), ("status", ctypes.c_int), ("message", ctypes.c_char_p), ("library", ctypes.c_char_p),
                ("version", ctypes.c_char_p), ("device_count", ctypes.c_int)]


class MemoryStats(ctypes.Structure):  # rdna/memory.h
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "allocated", "requested", "reserved", "peak_allocated", "peak_requested", "peak_reserved", "blocks", "peak_blocks", "alloc_count",
        "free_count", "alloc_bytes", "free_bytes", "segment_count", "peak_segment_count", "driver_allocs", "driver_frees", "retries", "ooms",
    )] + [("fragmentation", ctypes.c_double)]


class Convolution(ctypes.Structure):  # rdna/op/conv.h
    _fields_ = [("size", ctypes.c_size_t), ("spatial_dims", ctypes.c_int), ("stride", ctypes.c_int64 * 3), ("pad_before", ctypes.c_int64 * 3),
                ("pad_after", ctypes.c_int64 * 3), ("dilation", ctypes.c_int64 * 3), ("groups", ctypes.c_int64)]


class ProfileRecord(ctypes.Structure):  # rdna/profile.h
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("stream", ctypes.c_int), ("mark", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("start", ctypes.c_double), ("length", ctypes.c_double)]


# What is called by these parts: p a pointer, z size_t, i int or an enumeration, u uint32_t, B a byte, f float, d double, b bool, s a scalar.
_LETTERS = {"p": ctypes.c_void_p, "z": ctypes.c_size_t, "i": ctypes.c_int, "u": ctypes.c_uint32, "B": ctypes.c_uint8, "f": ctypes.c_float,
            "d": ctypes.c_double, "b": ctypes.c_bool, "s": Scalar}
_ARGUMENTS = {
    "rdna_driver_get_info": "ip", "rdna_driver_default": "pp", "rdna_device_describe": "pip", "rdna_device_open": "pp",
    "rdna_device_release": "p", "rdna_device_synchronize": "p", "rdna_device_default_stream": "p", "rdna_stream_create": "pip",
    "rdna_stream_release": "p", "rdna_stream_device": "p", "rdna_stream_synchronize": "p", "rdna_memory_alloc_named": "pzppp",
    "rdna_memory_free": "pp", "rdna_memory_empty_cache": "p", "rdna_memory_set_spare": "pz", "rdna_memory_get_info": "ppp",
    "rdna_memory_get_stats": "pp", "rdna_memory_snapshot": "pp", "rdna_host_alloc": "pzp", "rdna_host_free": "pp",
    "rdna_copy_to_device": "pppz", "rdna_copy_to_host": "pppz", "rdna_copy_on_device": "pppz", "rdna_copy_peer": "ppppz",
    "rdna_fill_bytes": "ppBz", "rdna_event_create": "pbp", "rdna_event_release": "p", "rdna_event_record": "pp", "rdna_event_synchronize": "p",
    "rdna_event_elapsed": "ppp", "rdna_profile_start": "p", "rdna_profile_stop": "ppp", "rdna_op_gemm": "pfppfpp", "rdna_op_conv": "pppppp",
    "rdna_op_conv_backward_data": "pppppp", "rdna_op_conv_backward_weight": "ppppp", "rdna_op_softmax": "ppifp", "rdna_op_reduce": "pipudp",
    "rdna_op_map": "pipssp", "rdna_op_zip": "pippssp", "rdna_stream_last_kernel": "p",
}
_RESULTS = {"rdna_device_release": None, "rdna_stream_release": None, "rdna_event_release": None, "rdna_host_free": None,
            "rdna_memory_get_stats": None, "rdna_device_default_stream": ctypes.c_void_p, "rdna_stream_device": ctypes.c_void_p,
            "rdna_stream_last_kernel": ctypes.c_char_p}


class RdnaError(RuntimeError):
    """What librdna says of a call that failed; |status| is its name for it, "OUT_OF_MEMORY"."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


@functools.cache
def functions():
    """librdna with its arguments' types. OSError where it is not."""
    found = ctypes.CDLL(library()._name)  # its own object: others say other types
    for name, letters in _ARGUMENTS.items():
        function = getattr(found, name)
        function.argtypes, function.restype = [_LETTERS[letter] for letter in letters], _RESULTS.get(name, ctypes.c_int)
    return found


def call(name, *arguments):
    """Of a function that returns a status: raises what failed, ValueError for arguments without a meaning."""
    status = getattr(functions(), name)(*arguments)
    if status:
        kind = library().rdna_status_name(status).decode()
        if kind == "INVALID_ARGUMENT":
            raise ValueError(last_error())
        raise RdnaError(kind, last_error())


def made(name, *arguments):
    """The pointer that such a function puts at its last argument."""
    out = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(out))
    return out.value


@functools.cache
def number(kind, name):
    """The library's number for a "dtype", "map", "zip" or "reduction" by its name."""
    name_of = getattr(library(), f"rdna_{kind}_name")
    name_of.restype = ctypes.c_char_p
    at = 0
    while (said := name_of(at).decode()) != "?":
        if said == name:
            return at
        at += 1
    raise KeyError(f"librdna has no {kind} {name}")
