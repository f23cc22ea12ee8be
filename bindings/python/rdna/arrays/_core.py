"""librdna's arrays by ctypes: its functions, its types, and its failures as exceptions.

The numbers of types and operations are the library's own, asked for by name when it is loaded, so that nothing here
depends on their order.
"""

import ctypes
import importlib.machinery
import os
import threading

import numpy as np

from .._library import path
from .._native import MAX_RANK, DeviceInfo, DriverInfo, Library, Scalar, Tensor
from .._types import rdna_complex as Complex

library = Library(path())


def extension():
    """What bindings/python/arrays_extension.c was built to beside librdna, None where it was not: the same calls with less of Python in them."""
    file = os.path.join(os.path.dirname(path()), "rdna_arrays.abi3.so")
    if not os.path.exists(file):
        return None
    loader = importlib.machinery.ExtensionFileLoader("rdna_arrays", file)
    module = loader.create_module(importlib.machinery.ModuleSpec("rdna_arrays", loader, origin=file))
    loader.exec_module(module)
    return module


def address(function):
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value


def _names(function):
    """Number of each name that |function| has, from 0 until it has none."""
    name_of, found = getattr(library, function), {}
    while (name := name_of(len(found)).decode()) != "?":
        found[name] = len(found)
    return found


maps, zips, compares = (_names(f"rdna_{kind}_name") for kind in ("map", "zip", "compare"))
reductions = _names("rdna_reduction_name")
_dtypes = _names("rdna_dtype_name")
# rdna/op/complex.def, whose numbers are part of the interface
complex_maps = {name: i for i, name in enumerate("conj neg reciprocal sgn sqrt exp log sin cos tan sinh cosh tanh".split())}
complex_zips = {name: i for i, name in enumerate("add sub mul div add_scaled pow".split())}
complex_measures = {"abs": 0, "angle": 1}



class BFloat16:
    """The type of bfloat16, which NumPy has not, as far as types are asked here what they are. There is one; ml_dtypes' is equal to it."""

    name, kind, itemsize = "bfloat16", "f", 2

    def __repr__(self):
        return "bfloat16"

    def __eq__(self, other):
        return other is self or is_bfloat16(other)

    def __hash__(self):
        return hash("bfloat16")

    def __reduce__(self):
        return "BF16"


def is_bfloat16(dtype):
    """Whether somebody's type is that: its name, or an object that has the name, as ml_dtypes' and its scalars' are."""
    return dtype is BF16 or "bfloat16" in (dtype if isinstance(dtype, str) else getattr(dtype, "name", None), getattr(dtype, "__name__", None))


BF16 = BFloat16()
# What they are called. A complex array is one of reals whose last dimension has the pairs.
NUMPY = {"f32": np.dtype("float32"), "f16": np.dtype("float16"), "f64": np.dtype("float64"), "i8": np.dtype("int8"),
         "u8": np.dtype("uint8"), "i16": np.dtype("int16"), "i32": np.dtype("int32"), "i64": np.dtype("int64"),
         "bool": np.dtype("bool"), "u16": np.dtype("uint16"), "u32": np.dtype("uint32"), "u64": np.dtype("uint64"), "bf16": BF16}
number_of = {dtype: _dtypes[name] for name, dtype in NUMPY.items()}
dtype_of = {number: dtype for dtype, number in number_of.items()}
F32, F64, C64, C128 = (np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))
I64, I32, I16, BOOL = np.dtype("int64"), np.dtype("int32"), np.dtype("int16"), np.dtype("bool")
U64 = np.dtype("uint64")
WIDE = {I32, I64, np.dtype("uint32"), U64}  # integers that float64 stands for where functions are of floats, float32 for the others
complex_of = {number_of[F32]: C64, number_of[F64]: C128}
part_of = {C64: F32, C128: F64}


class Failure(RuntimeError):
    """What librdna says of a call that failed."""


class _Pending(threading.local):
    error = None  # what Python raised within a call of librdna, which fails for it


pending = _Pending()
INVALID = 1  # RDNA_INVALID_ARGUMENT
_EXCEPTIONS = {"INVALID_ARGUMENT": ValueError, "UNSUPPORTED": TypeError, "OUT_OF_MEMORY": MemoryError}


def fail(status):
    error, pending.error = pending.error, None
    if error is not None:
        raise error
    kind = _EXCEPTIONS.get(library.rdna_status_name(status).decode(), Failure)
    raise kind(library.rdna_last_error().decode(errors="replace"))


def check(status):
    if status:
        fail(status)


def make(function, *arguments):
    """The array that a function of rdna/array.h makes, as a pointer; its place is the last argument."""
    out = ctypes.c_void_p()
    status = getattr(library, function)(*arguments, ctypes.byref(out))
    if status:
        fail(status)
    return out.value


def scalar(value):
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        value = int(value)
        if not -2**63 <= value < 2**64:
            raise OverflowError(f"{value} has more than 64 bits")
        return Scalar(value, value if value < 2**63 else value - 2**64)  # of uint64 the bits
    value = float(value)
    return Scalar(value, int(value) if abs(value) < 2**63 else 0)


ZERO = Scalar(0, 0)
NOTHING = Complex(0, 0)


def sizes(shape):
    return (ctypes.c_int64 * len(shape))(*shape) if shape else None


# ---- devices ----


_streams, _device_names = {}, {}


# What frameworks call librdna's drivers.
_DRIVERS = {"cpu": "host", "rocm": "hip"}


def stream(device=None):
    """The default stream of a device by its name."""
    found = _streams.get(device)
    if found is None:
        opened = ctypes.c_void_p()
        driver, colon, index = (device or "auto").partition(":")
        check(library.rdna_device_open((_DRIVERS.get(driver, driver) + colon + index).encode(), ctypes.byref(opened)))
        found = _streams[device] = library.rdna_device_default_stream(opened)
        info = DeviceInfo.from_address(library.rdna_device_get_info(opened))
        _device_names[found] = info.driver.decode() + (f":{info.index}" if info.driver != b"host" else "")
    return found


def set_default(device):
    """What is made without a device is on this one from now on."""
    _streams[None] = stream(device)


def device_name(stream):
    return _device_names[stream]


def devices():
    """Names of all devices, in the order in which `auto` tries them."""
    found, driver, info = [], 0, DriverInfo()
    while library.rdna_driver_get_info(driver, ctypes.byref(info)) == 0:
        name = info.name.decode()
        if info.status == 0 and name != "null":
            found += [name if name == "host" else f"{name}:{i}" for i in range(info.device_count)]
        driver += 1
    return found
