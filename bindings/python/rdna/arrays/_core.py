"""librdna's arrays by ctypes: its functions, its types, and its failures as exceptions.

The numbers of types and operations are the library's own, asked for by name when it is loaded, so that nothing here
depends on their order.
"""

import ctypes

import numpy as np

from .._library import path

MAX_RANK = 8


class Tensor(ctypes.Structure):  # rdna/tensor.h
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * MAX_RANK), ("stride", ctypes.c_int64 * MAX_RANK)]


class Scalar(ctypes.Structure):  # rdna/scalar.h
    _fields_ = [("real", ctypes.c_double), ("integer", ctypes.c_int64)]


library = ctypes.CDLL(path())
library.rdna_last_error.restype = library.rdna_status_name.restype = library.rdna_dtype_name.restype = ctypes.c_char_p
library.rdna_array_tensor.restype = ctypes.POINTER(Tensor)
library.rdna_array_retain.restype = library.rdna_device_default_stream.restype = ctypes.c_void_p
for _name in ("rdna_array_release", "rdna_array_tensor", "rdna_array_retain", "rdna_device_default_stream"):
    getattr(library, _name).argtypes = [ctypes.c_void_p]


def _names(function):
    """Number of each name that |function| has, from 0 until it has none."""
    name_of, found = getattr(library, function), {}
    name_of.restype = ctypes.c_char_p
    while (name := name_of(len(found)).decode()) != "?":
        found[name] = len(found)
    return found


maps, zips, compares = (_names(f"rdna_{kind}_name") for kind in ("map", "zip", "compare"))
reductions = _names("rdna_reduction_name")
_dtypes = _names("rdna_dtype_name")

# What NumPy calls them; bf16 it has not.
NUMPY = {"f32": np.dtype("float32"), "f16": np.dtype("float16"), "f64": np.dtype("float64"), "i8": np.dtype("int8"),
         "u8": np.dtype("uint8"), "i16": np.dtype("int16"), "i32": np.dtype("int32"), "i64": np.dtype("int64"),
         "bool": np.dtype("bool")}
number_of = {dtype: _dtypes[name] for name, dtype in NUMPY.items()}
dtype_of = {number: dtype for dtype, number in number_of.items()}


class Failure(RuntimeError):
    """What librdna says of a call that failed."""


_EXCEPTIONS = {"INVALID_ARGUMENT": ValueError, "UNSUPPORTED": TypeError, "OUT_OF_MEMORY": MemoryError}


def check(status):
    if status:
        kind = _EXCEPTIONS.get(library.rdna_status_name(status).decode(), Failure)
        raise kind(library.rdna_last_error().decode(errors="replace"))


def make(function, *arguments):
    """The array that a function of rdna/array.h makes, as a pointer; its place is the last argument."""
    out = ctypes.c_void_p()
    check(getattr(library, function)(*arguments, ctypes.byref(out)))
    return out


def scalar(value):
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        value = int(value)
        if not -2**63 <= value < 2**63:
            raise OverflowError(f"{value} has more than 64 bits")
        return Scalar(float(value), value)
    value = float(value)
    return Scalar(value, int(value) if abs(value) < 2**63 else 0)


ZERO = Scalar(0, 0)


def sizes(shape):
    return (ctypes.c_int64 * max(len(shape), 1))(*shape)


_streams = {}


def stream(device="auto"):
    """The default stream of a device by its name."""
    if device not in _streams:
        opened = ctypes.c_void_p()
        check(library.rdna_device_open(device.encode(), ctypes.byref(opened)))
        _streams[device] = ctypes.c_void_p(library.rdna_device_default_stream(opened))
    return _streams[device]
