"""Arrays out of numbers, of other arrays' shapes, and of other libraries' arrays."""

import builtins
import math
import operator

import numpy as np

from . import _core
from ._array import Array, again, cast, choose, empty_on, from_numpy, full_on, is_lazy, joined, need, part_of, parts, run, stream_of
from ._core import make, scalar
from ._types import complex64, float32, int64, known


def shape_of(shape):
    return tuple(operator.index(n) for n in shape) if isinstance(shape, (tuple, list)) else (operator.index(shape),)


def _of_number(value):
    """The type that a Python number has alone."""
    if isinstance(value, builtins.bool):
        return _core.BOOL
    return int64 if isinstance(value, int) else float32 if isinstance(value, float) else complex64


def _has_arrays(values):
    return isinstance(values, Array) or isinstance(values, (list, tuple)) and builtins.any(_has_arrays(v) for v in values)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of |obj|: numbers, lists of them, or what NumPy takes for an array. Python's floats are float32, its integers int64 and its
    complex numbers complex64. |copy| False is of arrays of the type and device alone."""
    if isinstance(obj, Array):
        if device is not None and obj.device != _core.device_name(_core.stream(device)):
            if copy is False:
                raise ValueError(f"asarray: on {device} there is but a copy of an array of {obj.device}")
            obj = from_numpy(obj.numpy(), device)
        if dtype is None or known(dtype) == obj.dtype:
            return again(obj) if copy else obj
        if copy is False:
            raise ValueError(f"asarray: of {obj.dtype} there is but a copy as {known(dtype)}")
        return cast(obj, known(dtype))
    if copy is False:
        raise ValueError("asarray: what is no array of rdna becomes one only by a copy")
    values = np.asarray(obj)
    if dtype is None and not isinstance(obj, (np.ndarray, np.generic)) and not _has_arrays(obj) and not hasattr(obj, "__array_interface__"):
        dtype = {np.dtype("float64"): float32, np.dtype("complex128"): complex64}.get(values.dtype) if not _is_buffer(obj) else None
    dtype = None if dtype is None else known(dtype)
    if dtype is _core.BF16 and known(values.dtype) is not dtype:
        return cast(from_numpy(values.astype(np.float32), device), dtype)
    return from_numpy(values if dtype is None or dtype is _core.BF16 else values.astype(dtype), device)  # of NumPy's types float64 is equal to None


def _is_buffer(obj):
    return not isinstance(obj, (list, tuple, int, float, complex))


def empty(shape, *, dtype=None, device=None):
    """|shape| of values that are whatever was in memory."""
    return empty_on(_core.stream(device), shape_of(shape), float32 if dtype is None else known(dtype))


def full(shape, fill_value, *, dtype=None, device=None):
    """|shape| of |fill_value|; without a type of Python's bool, int64, float32 or complex64."""
    if isinstance(fill_value, (Array, np.generic, np.ndarray)):
        dtype = fill_value.dtype if dtype is None else dtype
        fill_value = fill_value.item()
    return full_on(_core.stream(device), shape_of(shape), fill_value, _of_number(fill_value) if dtype is None else known(dtype))


def zeros(shape, *, dtype=None, device=None):
    """|shape| of 0, without a type float32."""
    return full(shape, 0, dtype=float32 if dtype is None else dtype, device=device)


def ones(shape, *, dtype=None, device=None):
    """|shape| of 1, without a type float32."""
    return full(shape, 1, dtype=float32 if dtype is None else dtype, device=device)


def _stream_like(x, device):
    return stream_of(x) if device is None else _core.stream(device)


def empty_like(x, /, *, dtype=None, device=None):
    """As empty, of x's shape, and of its type without another."""
    return empty_on(_stream_like(x, device), x.shape, x.dtype if dtype is None else known(dtype))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """As full, of x's shape, and of its type without another."""
    return full_on(_stream_like(x, device), x.shape, fill_value, x.dtype if dtype is None else known(dtype))


def zeros_like(x, /, *, dtype=None, device=None):
    """As zeros, of x's shape, and of its type without another."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """As ones, of x's shape, and of its type without another."""
    return full_like(x, 1, dtype=dtype, device=device)


def arange_on(stream, dtype, count, start, step):
    return Array(make("rdna_array_arange", stream, _core.number_of[dtype], count, scalar(start), scalar(step)))


def _python_number(name, value):
    """A real number, which may be NumPy's or an array of one value, as Python's."""
    if isinstance(value, (Array, np.generic, np.ndarray)):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} is of real numbers, not of {type(value).__name__}")
    return value


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, … before |stop|; of one number, from 0 to before it."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_python_number("arange", v) for v in (start, stop, step))
    whole = builtins.all(isinstance(v, int) for v in (start, stop, step))
    dtype = known(dtype) if dtype is not None else int64 if whole else float32
    if step == 0:
        raise ValueError("arange: steps of 0 do not come to an end")
    if dtype.kind == "c":
        return cast(arange(start, stop, step, dtype=_core.part_of[dtype], device=device), dtype)
    count = builtins.max(0, -((start - stop) // step) if whole else math.ceil((stop - start) / step))
    if dtype.kind != "f" and not whole:  # NumPy's rule: the first two decide on the distance
        start, step = int(start), int(start + step) - int(start)
    return arange_on(_core.stream(device), dtype, count, start, step)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """|num| numbers from |start| to |stop|, evenly apart; without |endpoint| the last is one step before it."""
    steps = num - 1 if endpoint else num
    stream = _core.stream(device)
    start, stop = (v.item() if isinstance(v, (Array, np.generic, np.ndarray)) else v for v in (start, stop))
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"linspace: {num} numbers")
    if isinstance(start, complex) or isinstance(stop, complex):
        dtype = complex64 if dtype is None else known(dtype)
    dtype = float32 if dtype is None else known(dtype)
    if dtype.kind == "c":
        made = empty_on(stream, (num,), dtype)
        for part, ends in ((0, (complex(start).real, complex(stop).real)), (1, (complex(start).imag, complex(stop).imag))):
            line = linspace(*ends, num, dtype=_core.part_of[dtype], device=device, endpoint=endpoint)
            run("copy", line, line, part_of(made, part))
        return made
    step = (stop - start) / steps if steps > 0 else 0.0
    whole = dtype.kind in "iu"
    line = arange_on(stream, _core.F64 if whole else dtype, num, float(start), step)
    if endpoint and num > 1:
        last = Array(make("rdna_array_slice", line.pointer, 0, num - 1, 1, 1))
        run("fill", line, scalar(float(stop)), last)
    if whole:  # towards minus infinity, as NumPy's
        line = Array(make("rdna_array_map", line.pointer, _core.maps["floor"], _core.ZERO, _core.ZERO))
    return cast(line, dtype)


def _near(k, x):
    """The diagonal |k|, or of those beyond x's matrices one that is, as the library counts in 64 bits."""
    return builtins.min(builtins.max(operator.index(k), -x.shape[-2] - 1), x.shape[-1] + 1)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A matrix of 0 with 1 on the diagonal that begins at column |k|."""
    n_cols = n_rows if n_cols is None else n_cols
    made = zeros((n_rows, n_cols), dtype=dtype, device=device)
    real = part_of(made, 0) if made.pairs else made
    run("fill", made, scalar(1), Array(make("rdna_array_diagonal", real.pointer, 0, 1, _near(k, made))))
    return made


def meshgrid(*arrays, indexing="xy"):
    """For arrays of one dimension, each repeated over the grid that they span together; "xy": the second counts rows."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not '{indexing}'")
    from ._moving import broadcast_arrays, permute_dims, reshape

    count = len(arrays)
    for x in arrays:
        if x.ndim != 1:
            raise ValueError(f"meshgrid is of arrays of one dimension, not of {x.ndim}")
    if builtins.any(x.dtype != arrays[0].dtype for x in arrays):
        raise ValueError("meshgrid is of arrays of one type")
    lines = [reshape(x, (1,) * i + (-1,) + (1,) * (count - 1 - i)) if x.size else reshape(x, (1,) * i + (0,) + (1,) * (count - 1 - i))
             for i, x in enumerate(arrays)]
    grids = broadcast_arrays(*lines)
    if indexing == "xy" and count > 1:
        grids = [permute_dims(g, (1, 0, *range(2, count))) for g in grids]
    return list(grids)


def _triangle(name, x, upper, k):
    x = need(name, x)
    if x.ndim < 2:
        raise ValueError(f"{name} is of matrices; an array of {x.ndim} dimensions has none")
    k = _near(k, x)
    if is_lazy(x):
        from ._moving import reshape

        rows, columns = (arange_on(stream_of(x), int64, n, 0, 1) for n in x.shape[-2:])
        rows = reshape(rows, (x.shape[-2], 1))
        inside = (columns - rows >= k) if upper else (columns - rows <= k)
        return joined(choose(reshape(inside, (*inside.shape, 1)), parts(x), 0)) if x.pairs else choose(inside, x, 0)
    made = empty_on(stream_of(x), x.shape, x.dtype)
    for own, out in ([(x, made)] if not x.pairs else [(part_of(x, i), part_of(made, i)) for i in (0, 1)]):
        run("triangle", x, own, upper, k, out)
    return made


def tril(x, /, *, k=0):
    """The matrices of x with 0 above the diagonal that begins at column |k|."""
    return _triangle("tril", x, False, k)


def triu(x, /, *, k=0):
    """The matrices of x with 0 below the diagonal that begins at column |k|."""
    return _triangle("triu", x, True, k)


def astype(x, dtype, /, *, copy=True, device=None):
    """x in another type. Complex numbers become no real ones; bool says whether they are not 0."""
    x = asarray(need("astype", x), device=device)
    dtype = known(dtype)
    if x.pairs and dtype == _core.BOOL:
        from ._pointwise import not_equal

        return not_equal(x, 0)
    if x.dtype == dtype:
        return again(x) if copy else x
    return cast(x, dtype)


def to_device(x, device, stream=None):
    """x on the device of that name."""
    if stream is not None:
        raise ValueError("to_device: arrays use their device's default stream; leave `stream` out")
    return asarray(x, device=device)
