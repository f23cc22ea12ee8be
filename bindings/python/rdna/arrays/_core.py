"""librdna's arrays by ctypes: its functions, its types, and its failures as exceptions.

The numbers of types and operations are the library's own, asked for by name when it is loaded, so that nothing here
depends on their order.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import threading

import numpy as np

from .._library import path
from .._native import MAX_RANK, DeviceInfo, DriverInfo, Scalar, Tensor


class Complex(ctypes.Structure):  # rdna_complex of rdna/op/complex.h
    _fields_ = [("real", ctypes.c_double), ("imag", ctypes.c_double)]


library = ctypes.CDLL(path())

# The arguments of every function that is called here, after include/rdna. p: a pointer, also to a tensor; i: int, an enumeration;
# l: int64_t; u: uint32_t; b: bool; d: double; f: float; s: a scalar; c: a complex number.
_LETTERS = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_int64, "u": ctypes.c_uint32, "b": ctypes.c_bool, "d": ctypes.c_double,
            "f": ctypes.c_float, "s": Scalar, "c": Complex}
_ARGUMENTS = {
    "rdna_array_empty": "piipp", "rdna_array_full": "piipsp", "rdna_array_arange": "pilssp", "rdna_array_from_host": "piippp",
    "rdna_array_to_host": "ppl", "rdna_array_reshape": "pipp", "rdna_array_permute": "ppp", "rdna_array_slice": "pilllp",
    "rdna_array_broadcast": "pipp", "rdna_array_expand": "pip", "rdna_array_squeeze": "pip", "rdna_array_diagonal": "piilp",
    "rdna_array_bits": "pip", "rdna_array_own": "pp", "rdna_array_contiguous": "pp", "rdna_array_cast": "pip", "rdna_array_map": "pissp",
    "rdna_array_zip": "ppissp", "rdna_array_zip_number": "psbissp", "rdna_array_compare": "ppip", "rdna_array_compare_number": "psip",
    "rdna_array_where": "pppp", "rdna_array_reduce": "piubdp", "rdna_array_matmul": "ppp", "rdna_array_concat": "piip", "rdna_array_gather": "pipp",
    "rdna_array_release": "p",
    "rdna_op_copy": "ppp", "rdna_op_fill": "psp", "rdna_op_pad": "pippsp", "rdna_op_triangle": "ppblp",
    "rdna_op_index": "ppppp", "rdna_op_index_put": "ppppip", "rdna_op_gather": "ppippp", "rdna_op_nonzero": "ppp",
    "rdna_op_nonzero_count": "ppp", "rdna_op_sort": "ppibpp", "rdna_op_search_sorted": "pppbp", "rdna_op_cumsum": "ppip",
    "rdna_op_cumprod": "ppip", "rdna_op_complex_map": "pipp", "rdna_op_complex_zip": "pippcp", "rdna_op_complex_zip_scalar": "pipcbcp",
    "rdna_op_complex_measure": "pipp", "rdna_op_complex_gemm": "pcpbpbbp", "rdna_op_fft_c2c": "pbdpip", "rdna_op_fft_r2c": "pdpip",
    "rdna_op_fft_c2r": "pdpip", "rdna_op_cholesky": "pbpp", "rdna_op_solve_triangular": "pbbpp", "rdna_op_lu": "pbppp",
    "rdna_op_swap_rows": "pbpp", "rdna_op_qr": "ppp", "rdna_op_reflect": "pbbppp", "rdna_op_orthogonalize": "pdpp",
    "rdna_op_diagonalize": "pppp", "rdna_device_open": "pp", "rdna_device_describe": "pip", "rdna_driver_get_info": "ip",
    "rdna_stream_synchronize": "p", "rdna_device_synchronize": "p", "rdna_array_to_dlpack": "pbbbp", "rdna_array_from_dlpack": "ppbpp",
    "rdna_dlpack_release": "pb", "rdna_dlpack_device": "ppp",
}
for _name, _letters in _ARGUMENTS.items():
    getattr(library, _name).argtypes = [_LETTERS[letter] for letter in _letters]
library.rdna_array_release.restype = library.rdna_dlpack_release.restype = library.rdna_dlpack_device.restype = None
library.rdna_array_is_lazy.argtypes, library.rdna_array_is_lazy.restype = [ctypes.c_void_p], ctypes.c_bool
for _name in ("rdna_array_tensor", "rdna_array_retain", "rdna_array_stream", "rdna_stream_device", "rdna_device_default_stream", "rdna_device_get_info"):
    getattr(library, _name).argtypes, getattr(library, _name).restype = [ctypes.c_void_p], ctypes.c_void_p
for _name in ("rdna_last_error", "rdna_status_name", "rdna_dtype_name"):
    getattr(library, _name).restype = ctypes.c_char_p


def extension():
    """What bindings/python/arrays_extension.c was built to beside librdna, None where it was not: the same calls with less of Python in them."""
    file = os.path.join(os.path.dirname(path()), "rdna_arrays.abi3.so")
    if not os.path.exists(file):
        return None
    loader = importlib.machinery.ExtensionFileLoader("rdna_arrays", file)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("rdna_arrays", loader))
    loader.exec_module(module)
    return module


def address(function):
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value


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
# rdna/op/complex.def, whose numbers are part of the interface
complex_maps = {name: i for i, name in enumerate("conj neg reciprocal sgn sqrt exp log sin cos tan sinh cosh tanh".split())}
complex_zips = {name: i for i, name in enumerate("add sub mul div add_scaled pow".split())}
complex_measures = {"abs": 0, "angle": 1}

# What NumPy calls them; bf16 it has not. A complex array is one of reals whose last dimension has the pairs.
NUMPY = {"f32": np.dtype("float32"), "f16": np.dtype("float16"), "f64": np.dtype("float64"), "i8": np.dtype("int8"),
         "u8": np.dtype("uint8"), "i16": np.dtype("int16"), "i32": np.dtype("int32"), "i64": np.dtype("int64"),
         "bool": np.dtype("bool")}
number_of = {dtype: _dtypes[name] for name, dtype in NUMPY.items()}
dtype_of = {number: dtype for dtype, number in number_of.items()}
F32, F64, C64, C128 = (np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))
I64, I32, BOOL = np.dtype("int64"), np.dtype("int32"), np.dtype("bool")
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
        if not -2**63 <= value < 2**63:
            raise OverflowError(f"{value} has more than 64 bits")
        return Scalar(value, value)
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
