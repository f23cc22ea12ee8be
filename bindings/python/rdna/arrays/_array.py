"""The array and what makes, views and reduces it."""

import builtins
import ctypes
import operator

import numpy as np

from . import _core
from ._core import ZERO, check, library, make, scalar, sizes


class Array:
    """Values on a device. It never changes; what looks as if it did makes another."""

    __slots__ = ("pointer", "shape", "dtype", "__weakref__")
    __array_priority__ = 1000  # NumPy's arrays leave operators to this one

    def __init__(self, pointer):
        """Takes over |pointer|, an rdna_array *."""
        self.pointer = pointer
        tensor = library.rdna_array_tensor(pointer).contents
        self.shape = tuple(tensor.shape[:tensor.rank])
        self.dtype = _core.dtype_of[tensor.dtype]

    def __del__(self):
        if library is not None and getattr(self, "pointer", None):  # not while the interpreter ends
            library.rdna_array_release(self.pointer)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)

    # ---- to the host ----

    def numpy(self):
        """A copy of the values as NumPy's array, after they have been computed."""
        out = np.empty(self.shape, self.dtype)
        check(library.rdna_array_to_host(self.pointer, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(out.nbytes)))
        return out

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array of rdna becomes NumPy's only as a copy")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def item(self):
        """The value of an array that has one."""
        if self.size != 1:
            raise ValueError(f"an array of {self.size} values is no single one")
        return self.numpy().item()

    def tolist(self):
        return self.numpy().tolist()

    def __bool__(self):
        return builtins.bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __index__(self):
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only an integer array of no dimensions is an index")
        return self.item()

    def __len__(self):
        if not self.shape:
            raise TypeError("an array of no dimensions has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return repr(self.numpy()).replace("array", "Array", 1)

    def __str__(self):
        return str(self.numpy())

    def __format__(self, spec):
        return format(self.item() if spec and not self.shape else str(self), spec)

    def __reduce__(self):
        """Files and copies hold the values, which go to the device that `auto` is where they are read."""
        return asarray, (self.numpy(),)

    __hash__ = None

    # ---- views ----

    @property
    def T(self):
        """Rows and columns of a matrix change places."""
        if self.ndim != 2:
            raise ValueError(f".T is of matrices; an array of {self.ndim} dimensions takes permute_dims or .mT")
        return permute_dims(self, (1, 0))

    mT = property(lambda self: matrix_transpose(self))

    def reshape(self, *shape):
        return reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def astype(self, dtype):
        return astype(self, dtype)

    def __getitem__(self, key):
        """By integers, slices, None and `...`."""
        keys = list(key) if isinstance(key, tuple) else [key]
        spent = builtins.sum(k is not None and k is not Ellipsis for k in keys)
        if builtins.sum(k is Ellipsis for k in keys) > 1:
            raise IndexError("an index has one '...' at most")
        if spent > self.ndim:
            raise IndexError(f"{spent} indices of an array of {self.ndim} dimensions")
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
        keys[at:at + 1] = [slice(None)] * (self.ndim - spent)
        result, dim = self, 0
        for k in keys:
            if k is None:
                result = expand_dims(result, axis=dim)
                dim += 1
            elif isinstance(k, slice):
                start, stop, step = k.indices(result.shape[dim])
                count = len(range(start, stop, step))
                if (start, count, step) != (0, result.shape[dim], 1):
                    result = _slice(result, dim, start if count else 0, count, step)
                dim += 1
            else:
                result = _place(result, dim, k)
        return result if result is not self else Array(ctypes.c_void_p(library.rdna_array_retain(self.pointer)))

    # ---- operators: _pointwise.py's, by librdna's names ----

    def __neg__(self):
        return _unary(self, _core.maps["neg"])

    def __pos__(self):
        return self

    def __abs__(self):
        return _unary(self, _core.maps["abs"])

    def __invert__(self):
        return _unary(self, _core.maps["bitwise_not"])

    def __matmul__(self, other):
        return matmul(self, other) if isinstance(other, (Array, np.ndarray)) else NotImplemented

    def __rmatmul__(self, other):
        return matmul(other, self) if isinstance(other, np.ndarray) else NotImplemented


def _operators():
    names = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_div", "mod": "remainder", "pow": "pow",
             "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "shift_left", "rshift": "shift_right"}
    for name, own in names.items():
        op = _core.zips[own]
        setattr(Array, f"__{name}__", lambda a, b, op=op: _binary(a, b, op) if _is_operand(b) else NotImplemented)
        setattr(Array, f"__r{name}__", lambda a, b, op=op: _binary(b, a, op) if _is_operand(b) else NotImplemented)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        op = _core.compares[name]
        setattr(Array, f"__{name}__", lambda a, b, op=op: _compare(a, b, op) if _is_operand(b) else NotImplemented)


def _is_operand(value):
    return isinstance(value, (Array, int, float, np.ndarray, np.generic))


# ---- making ----


def _number(dtype):
    dtype = np.dtype(dtype)
    if dtype not in _core.number_of:
        raise TypeError(f"arrays hold no values of type {dtype}; there are {', '.join(str(d) for d in _core.number_of)}")
    return _core.number_of[dtype]


def _shape(shape):
    return tuple(operator.index(n) for n in shape) if isinstance(shape, (tuple, list)) else (operator.index(shape),)


def asarray(values, /, *, dtype=None, device="auto"):
    """An array of |values|: numbers, lists of them, or what NumPy takes for an array. Python's floats are float32, its
    integers int64."""
    if isinstance(values, Array):
        return values if dtype is None else astype(values, dtype)
    own = np.asarray(values)
    if not isinstance(values, (np.ndarray, np.generic)) and own.dtype == np.float64:
        own = own.astype(np.float32)
    own = np.ascontiguousarray(own, dtype).reshape(own.shape)
    data = own.ctypes.data_as(ctypes.c_void_p)
    return Array(make("rdna_array_from_host", _core.stream(device), _number(own.dtype), own.ndim, sizes(own.shape), data))


def full(shape, value, *, dtype=None, device="auto"):
    """|shape| of |value|; without a type of Python's bool, int64 or float32."""
    if dtype is None:
        dtype = np.bool_ if isinstance(value, builtins.bool) else np.int64 if isinstance(value, int) else np.float32
    shape = _shape(shape)
    return Array(make("rdna_array_full", _core.stream(device), _number(dtype), len(shape), sizes(shape), scalar(value)))


def zeros(shape, *, dtype=np.float32, device="auto"):
    return full(shape, 0, dtype=dtype, device=device)


def ones(shape, *, dtype=np.float32, device="auto"):
    return full(shape, 1, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device="auto"):
    """start, start + step, … before |stop|; of one number, from 0 to before it."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = np.int64 if builtins.all(isinstance(v, int) for v in (start, stop, step)) else np.float32
    count = builtins.max(0, int(np.ceil((stop - start) / step)))
    return Array(make("rdna_array_arange", _core.stream(device), _number(dtype), ctypes.c_int64(count), scalar(start), scalar(step)))


def astype(x, dtype, /):
    return Array(make("rdna_array_cast", x.pointer, _number(dtype)))


def result_type(*arrays_and_dtypes):
    """The type that all are promoted to, of arrays and types."""
    numbers = [_number(getattr(a, "dtype", a)) for a in arrays_and_dtypes]
    result = numbers[0]
    for number in numbers[1:]:
        result = library.rdna_dtype_promote(result, number)
    return _core.dtype_of[result]


# ---- views ----


def reshape(x, /, shape):
    shape = _shape(shape)
    return Array(make("rdna_array_reshape", x.pointer, len(shape), sizes(shape)))


def permute_dims(x, /, axes):
    axes = tuple(axes)
    if len(axes) != x.ndim:
        raise ValueError(f"permute_dims: {len(axes)} axes of an array of {x.ndim} dimensions")
    return Array(make("rdna_array_permute", x.pointer, (ctypes.c_int * builtins.max(1, len(axes)))(*axes)))


def matrix_transpose(x, /):
    if x.ndim < 2:
        raise ValueError(f"an array of {x.ndim} dimensions has no matrices")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def broadcast_to(x, /, shape):
    shape = _shape(shape)
    return Array(make("rdna_array_broadcast", x.pointer, len(shape), sizes(shape)))


def expand_dims(x, /, *, axis=0):
    return Array(make("rdna_array_expand", x.pointer, axis))


def squeeze(x, /, axis):
    """Without the dimensions |axis|, which have size 1."""
    for dim in sorted({d % x.ndim if x.ndim and -x.ndim <= d < x.ndim else d for d in _shape(axis)}, reverse=True):
        x = Array(make("rdna_array_squeeze", x.pointer, dim))
    return x


def _slice(x, dim, start, count, step):
    return Array(make("rdna_array_slice", x.pointer, dim, ctypes.c_int64(start), ctypes.c_int64(count), ctypes.c_int64(step)))


def _place(x, dim, key):
    """One place of |dim|, which goes."""
    if isinstance(key, (builtins.bool, np.bool_)) or not hasattr(key, "__index__") or getattr(key, "ndim", 0):
        raise TypeError(f"arrays are indexed by integers, slices, None and '...', not yet by {type(key).__name__}")
    place, size = operator.index(key), x.shape[dim]
    if not -size <= place < size:
        raise IndexError(f"index {place} of dimension {dim}, which has {size}")
    return squeeze(_slice(x, dim, place % size, 1, 1), dim)


# ---- computing ----


def _operands(a, b):
    """Both as arrays. A number takes the other's type where that has numbers of its kind."""
    if not isinstance(a, Array) and not isinstance(b, Array):
        raise TypeError(f"one of two operands must be an array, not {type(a).__name__} and {type(b).__name__}")
    return _operand(a, b), _operand(b, a)


def _operand(value, other):
    if isinstance(value, Array):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return asarray(value)
    if not isinstance(value, (int, float)):
        raise TypeError(f"{type(value).__name__} is no operand of an array")
    kind = 0 if isinstance(value, builtins.bool) else 1 if isinstance(value, int) else 2
    own = {"b": 0, "i": 1, "u": 1, "f": 2}[other.dtype.kind]
    dtype = other.dtype if own >= kind else np.dtype(np.int64) if kind == 1 else np.dtype(np.float64)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise OverflowError(f"{value} is no value of type {dtype}")
    return Array(make("rdna_array_full", ctypes.c_void_p(library.rdna_array_stream(other.pointer)), _core.number_of[dtype], 0, None,
                      scalar(value)))


library.rdna_array_stream.restype = ctypes.c_void_p
library.rdna_array_stream.argtypes = [ctypes.c_void_p]


def _unary(x, op):
    return Array(make("rdna_array_map", x.pointer, op, ZERO, ZERO))


def _binary(a, b, op):
    a, b = _operands(a, b)
    return Array(make("rdna_array_zip", a.pointer, b.pointer, op, ZERO, ZERO))


def _compare(a, b, op):
    a, b = _operands(a, b)
    return Array(make("rdna_array_compare", a.pointer, b.pointer, op))


def where(condition, x1, x2, /):
    """x1 where |condition| is true, else x2; all broadcast."""
    x1, x2 = _operands(x1, x2)
    return Array(make("rdna_array_where", condition.pointer, x1.pointer, x2.pointer))


def matmul(x1, x2, /):
    """Products of matrices, as numpy.matmul; x1 @ x2."""
    x1, x2 = _operands(x1, x2)
    return Array(make("rdna_array_matmul", x1.pointer, x2.pointer))


def _reduce(x, name, axis, keepdims, parameter=0.0):
    axes = range(x.ndim) if axis is None else _shape(axis)
    dims = 0
    for dim in axes:
        if not -x.ndim <= dim < x.ndim:
            raise ValueError(f"{name}: axis {dim} of an array of {x.ndim} dimensions")
        if dims >> dim % x.ndim & 1:
            raise ValueError(f"{name}: axis {dim} is named twice")
        dims |= 1 << dim % x.ndim
    return Array(make("rdna_array_reduce", x.pointer, _core.reductions[name], dims, ctypes.c_bool(keepdims), ctypes.c_double(parameter)))


def _reduction(name, own):
    def function(x, /, *, axis=None, keepdims=False):
        return _reduce(x, own, axis, keepdims)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} over the dimensions |axis|, a number or several; None: all."
    return function


sum, mean, prod, min, max, any, all = (_reduction(n, n) for n in ("sum", "mean", "prod", "min", "max", "any", "all"))


def argmax(x, /, *, axis=None, keepdims=False):
    """Where the largest value is along |axis|, one dimension, or None: among all of them in order."""
    return _reduce(x, "argmax", axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Where the least value is, as argmax."""
    return _reduce(x, "argmin", axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The mean of squared distances from the mean; sums are divided by their count less |correction|."""
    return _reduce(x, "var", axis, keepdims, correction)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The square root of var."""
    return _reduce(x, "std", axis, keepdims, correction)


def _methods():
    """x.sum(0) beside sum(x, axis=0)."""
    for function in (sum, mean, prod, max, min, any, all, argmax, argmin, var, std):
        def method(self, axis=None, *, keepdims=False, function=function, **more):
            return function(self, axis=axis, keepdims=keepdims, **more)
        method.__name__, method.__doc__ = function.__name__, function.__doc__
        setattr(Array, function.__name__, method)


_operators()
_methods()
