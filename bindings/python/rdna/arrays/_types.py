"""Types of values, which are NumPy's own objects, and what is asked about them."""

import builtins
import typing

import numpy as np

from . import _core

bool, int8, int16, int32, int64 = (np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
bfloat16 = _core.BF16
float16, float32, float64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
complex64, complex128 = (np.dtype(name) for name in ("complex64", "complex128"))

_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f", "complex floating": "c",
          "numeric": "iufc"}


class finfo_object(typing.NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class iinfo_object(typing.NamedTuple):
    bits: int
    max: int
    min: int
    dtype: np.dtype


def known(dtype):
    """|dtype| as NumPy's object, if arrays can hold it."""
    if _core.is_bfloat16(dtype):
        return bfloat16
    dtype = np.dtype(dtype)
    if dtype not in _core.number_of and dtype not in _core.part_of:
        raise TypeError(f"arrays hold no values of type {dtype}; there are {', '.join(str(d) for d in [*_core.number_of, *_core.part_of])}")
    return dtype


def finfo(type, /):
    """Bits, eps, largest, least and smallest normal value of a floating type; of a complex one, those of its parts."""
    dtype = known(getattr(type, "dtype", type))
    if dtype.kind not in "fc":
        raise TypeError(f"finfo is of floating types, not {dtype}; iinfo is of integers")
    dtype = _core.part_of.get(dtype, dtype)
    if dtype == bfloat16:
        return finfo_object(16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, -(2 - 2.0**-7) * 2.0**127, 2.0**-126, dtype)
    of = np.finfo(dtype)
    return finfo_object(of.bits, float(of.eps), float(of.max), float(of.min), float(of.smallest_normal), dtype)


def iinfo(type, /):
    """Bits, largest and least value of an integer type."""
    dtype = known(getattr(type, "dtype", type))
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo is of integer types, not {dtype}; finfo is of floating ones")
    of = np.iinfo(dtype)
    return iinfo_object(of.bits, int(of.max), int(of.min), dtype)


def isdtype(dtype, kind):
    """Whether |dtype| is of |kind|: another type, one of the array API's names of kinds, or a tuple of those."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"'{kind}' is no kind of types; there are {', '.join(_KINDS)}")
        return known(dtype).kind in _KINDS[kind]
    return known(dtype) == known(kind)


def promote(a, b):
    """The smallest type that holds the values of both."""
    if a == b:
        return a
    if a.kind != "c" and b.kind != "c":
        return _core.dtype_of[_core.library.rdna_dtype_promote(_core.number_of[a], _core.number_of[b])]
    part = promote(_core.part_of.get(a, a), _core.part_of.get(b, b))
    return complex128 if part == float64 or part in _core.WIDE else complex64


def with_number(dtype, value):
    """The type in which a Python number meets an array of |dtype|: that, if it has numbers of the kind."""
    if isinstance(value, builtins.bool):
        return dtype
    if isinstance(value, int):
        return int64 if dtype.kind == "b" else dtype
    if isinstance(value, float):
        return dtype if dtype.kind in "fc" else float64
    if not isinstance(value, complex):
        raise TypeError(f"{type(value).__name__} is no operand of an array")
    if dtype.kind == "c":
        return dtype
    return complex64 if dtype in (float32, float16, bfloat16) else complex128


def result_type(*arrays_and_dtypes):
    """The type that all are promoted to: arrays, types, and numbers, of which one must not be a number."""
    numbers = [a for a in arrays_and_dtypes if isinstance(a, (builtins.bool, int, float, complex))]
    dtypes = [known(getattr(a, "dtype", a)) for a in arrays_and_dtypes if not isinstance(a, (builtins.bool, int, float, complex))]
    if not dtypes:
        raise ValueError("result_type needs an array or a type beside numbers")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for number in numbers:
        result = with_number(result, number)
    return result


def can_cast(from_, to, /):
    """Whether every value of the type, or of an array's type, is one of |to|: whether the two are promoted to |to|."""
    return promote(known(getattr(from_, "dtype", from_)), known(to)) == known(to)
