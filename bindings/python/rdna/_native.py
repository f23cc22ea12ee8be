"""librdna's structs and functions for the parts of this package that do without NumPy, and its failures as exceptions."""

import ctypes
import functools

from ._library import last_error, library
from ._types import (
    function as _function, rdna_convolution as Convolution, rdna_device_info as DeviceInfo, rdna_driver_info as DriverInfo, rdna_memory_stats as MemoryStats,
    rdna_profile_record as ProfileRecord, rdna_scalar as Scalar, rdna_tensor as Tensor)

MAX_RANK = 8


class Library(ctypes.CDLL):
    """librdna, whose functions have their arguments and results from the first use on."""

    def __getitem__(self, name):
        function = super().__getitem__(name)
        function.restype, function.argtypes = _function(name)
        return function


class RdnaError(RuntimeError):
    """What librdna says of a call that failed; |status| is its name for it, "OUT_OF_MEMORY"."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


@functools.cache
def functions():
    """librdna with its arguments' types. OSError where it is not."""
    return Library(library()._name)


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
