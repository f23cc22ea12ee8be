"""What arrays can do by operators and behind a dot, out of the functions."""

from . import _core, _exchange, _indexing, _making, _moving, _pointwise, _products, _reducing
from ._array import Array, again, binary, compare, extension, is_operand, stream_of, with_float
from ._core import compares, zips

_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
              "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
_QUESTIONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


_IN_C = ("add", "sub", "mul", "truediv")


def _set_up_extension():
    """Gives the extension what its operators call."""
    def slow(own):
        function = getattr(_pointwise, own)
        return lambda a, b: function(a, b) if is_operand(a) and is_operand(b) else NotImplemented
    extension.setup(Array, _core.fail, tuple(map(_core.address, ("rdna_array_map", "rdna_array_zip", "rdna_array_zip_number", "rdna_array_tensor",
                                                                 "rdna_array_release"))),
                    tuple(zips[name] for name in ("add", "sub", "mul", "div")), (_core.maps["neg"], _core.maps["abs"]),
                    tuple(slow(_OPERATORS[name]) for name in _IN_C), (_pointwise.negative, _pointwise.abs))


def _operator(name, own):
    function, op, composed = getattr(_pointwise, own), zips[_pointwise._ZIPS[own]], own == "floor_divide"

    def method(self, other, /):
        if type(other) is Array:
            if not (self.pairs or other.pairs or composed):
                return binary(self, other, op)
        elif type(other) is float and not composed and self.dtype.kind == "f":
            return with_float(self, other, False, op)
        return function(self, other) if is_operand(other) else NotImplemented

    def mirrored(self, other, /):
        if type(other) is float and not composed and self.dtype.kind == "f":
            return with_float(self, other, True, op)
        return function(other, self) if is_operand(other) else NotImplemented
    for called, given in ((f"__{name}__", method), (f"__r{name}__", mirrored)):
        given.__name__ = given.__qualname__ = called
        setattr(Array, called, given)


def _question(name, own):
    function, op = getattr(_pointwise, own), compares[name]

    def method(self, other, /):
        if type(other) is Array and not self.pairs and not other.pairs:
            return compare(self, other, op, op)
        return function(self, other) if is_operand(other) else NotImplemented
    method.__name__ = method.__qualname__ = f"__{name}__"
    setattr(Array, f"__{name}__", method)


def _matmul(self, other, /):
    return _products.matmul(self, other) if hasattr(other, "shape") else NotImplemented


def _rmatmul(self, other, /):
    return _products.matmul(other, self) if hasattr(other, "shape") else NotImplemented


def _transposed(self):
    """Rows and columns of a matrix change places."""
    if self.ndim != 2:
        raise ValueError(f".T is of matrices; an array of {self.ndim} dimensions takes permute_dims or .mT")
    return _moving.permute_dims(self, (1, 0))


def _reshape(self, *shape):
    return _moving.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)


def _namespace(self, /, *, api_version=None):
    """rdna.arrays."""
    import rdna.arrays

    if api_version is not None and api_version not in rdna.arrays.VERSIONS:
        raise ValueError(f"rdna.arrays is the array API of {rdna.arrays.__array_api_version__}, not of {api_version}")
    return rdna.arrays


def _reduction(function):
    def method(self, axis=None, dtype=None, out=None, *, keepdims=False, **more):
        """As NumPy's method: |dtype| is that of the values, and std and var call the correction |ddof| too."""
        if "ddof" in more:
            more["correction"] = more.pop("ddof")
        if out is not None:
            raise TypeError(f"{function.__name__}: arrays do not change, so that there is no out; take what is returned")
        return function(self if dtype is None else _making.astype(self, dtype), axis=axis, keepdims=keepdims, **more)
    method.__name__, method.__doc__ = function.__name__, function.__doc__
    setattr(Array, function.__name__, method)


def _transpose(self, *dims):
    """The dimensions in this order, or turned round."""
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return _moving.permute_dims(self, tuple(dims) or tuple(range(self.ndim))[::-1])


def _squeeze(self, axis=None):
    """Without dimensions of size 1, all or those that are named."""
    return _moving.squeeze(self, axis=tuple(i for i, n in enumerate(self.shape) if n == 1) if axis is None else axis)


def _flatten(self):
    """The values in one dimension."""
    return _moving.reshape(self, (-1,) if self.size else (0,))


def _clip(self, min=None, max=None):
    """Values that are at least min and at most max."""
    return _pointwise.clip(self, min, max)


def _repeat(self, repeats, axis=None):
    """Each value so many times."""
    return _moving.repeat(self, repeats, axis=axis)


def _take(self, indices, axis=None):
    """What the indices name."""
    return _indexing.take(self, indices, axis=axis)


def _dot(self, other):
    """Products of matrices and vectors; of a number, times it."""
    from . import _numpy

    return _numpy.dot(self, other)


def _argsort(self, axis=-1):
    """The places of values in ascending order."""
    from . import _ordering

    return _ordering.argsort(self, axis=axis)


def _cumsum(self, axis=None):
    """Sums of what is before, without an axis of all values in one dimension."""
    from . import _ordering

    return _ordering.cumulative_sum(_flatten(self) if axis is None else self, axis=0 if axis is None else axis)


def _to_device(self, device, /, *, stream=None):
    """These values on the device of that name."""
    return _making.to_device(self, device, stream)


def attach():
    for name, own in _OPERATORS.items():
        if not (extension and name in _IN_C):
            _operator(name, own)
    for name, own in _QUESTIONS.items():
        _question(name, own)
    for function in (_reducing.sum, _reducing.mean, _reducing.prod, _reducing.max, _reducing.min, _reducing.any, _reducing.all, _reducing.argmax,
                     _reducing.argmin, _reducing.var, _reducing.std):
        _reduction(function)
    if extension:
        _set_up_extension()
    else:
        Array.__neg__, Array.__abs__ = _pointwise.negative, _pointwise.abs
    Array.__invert__, Array.__pos__ = lambda self: _pointwise.bitwise_invert(self), again
    Array.__matmul__, Array.__rmatmul__ = _matmul, _rmatmul
    Array.__getitem__, Array.__setitem__ = _indexing.getitem, _indexing.setitem
    Array.transpose, Array.squeeze, Array.flatten, Array.ravel, Array.copy = _transpose, _squeeze, _flatten, _flatten, again
    Array.clip, Array.repeat, Array.take, Array.argsort, Array.cumsum = _clip, _repeat, _take, _argsort, _cumsum
    Array.dot, Array.round, Array.conj = _dot, lambda self: _pointwise.round(self), lambda self: _pointwise.conj(self)
    Array.real, Array.imag = property(lambda self: _pointwise.real(self) if self.pairs else self), property(lambda self: _pointwise.imag(self))
    Array.T, Array.mT = property(_transposed), property(lambda self: _moving.matrix_transpose(self))
    Array.reshape, Array.astype = _reshape, lambda self, dtype: _making.astype(self, dtype)
    Array.__dlpack__, Array.__dlpack_device__ = _exchange.to_dlpack, lambda self: _exchange.dlpack_device(stream_of(self))
    Array.to_device, Array.__array_namespace__ = _to_device, _namespace


attach()
