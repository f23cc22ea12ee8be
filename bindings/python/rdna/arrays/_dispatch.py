"""NumPy's own functions of arrays of rdna: np.sort(x) is ra.sort(x), on the device. What there is no function for is refused with a sentence, as
values would otherwise go to the host, and what is made of them would be NumPy's, without a word.

NumPy hands calls over by its protocols, __array_ufunc__ and __array_function__ (numpy.org/neps, 13 and 18).
"""

import functools
import inspect

import numpy as np

import rdna.arrays as ra

from . import fft, linalg
from ._array import Array
from ._making import astype

# ---- operations on values ----

_SAME_UFUNCS = """add subtract multiply divide floor_divide remainder fmod maximum minimum hypot logaddexp copysign nextafter negative positive sign square
    sqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh floor ceil trunc signbit isnan isinf isfinite bitwise_and bitwise_or
    bitwise_xor equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not matmul vecdot""".split()
_RENAMED_UFUNCS = {
    "absolute": "abs", "fabs": "abs", "conjugate": "conj", "power": "pow", "rint": "round", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}
_UFUNCS = {**{name: name for name in _SAME_UFUNCS}, **_RENAMED_UFUNCS}
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}
_RUNNING = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
_IDLE_OF_UFUNCS = dict(where=True, casting="same_kind", order="K", subok=True)  # what says nothing


def _refuse(name, why="rdna.arrays has no such function"):
    raise TypeError(f"np.{name} of an array of rdna: {why}; np.{name} of x.numpy() computes on the host")


def ufunc(function, method, inputs, options):
    """What NumPy's function of values, or its |method|, makes of inputs with an array of rdna among them."""
    name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
    if any(x is not None for x in options.pop("out", None) or ()):
        _refuse(name, "it is not written into other arrays; leave `out` out and take what is returned, of a += x that is a + x")
    if method == "__call__" and function is np.divmod:
        _given(name, options, _IDLE_OF_UFUNCS, none=True)
        return ra.floor_divide(*inputs), ra.remainder(*inputs)
    table = {"__call__": _UFUNCS, "reduce": _REDUCTIONS, "accumulate": _RUNNING, "outer": _UFUNCS}.get(method, {})
    own = table.get(function.__name__)
    if own is None:
        _refuse(name)
    own = getattr(ra, own)
    if method == "reduce":
        axis, options = options.pop("axis", 0), _given(name, options, dict(initial=np._NoValue, where=True, keepdims=False))
        dtype = options.pop("dtype", None)
        return own(inputs[0] if dtype is None else astype(inputs[0], dtype), axis=axis, **options)
    if method == "accumulate":
        return own(inputs[0], axis=options.pop("axis", 0), **_given(name, options, {}))
    _given(name, options, _IDLE_OF_UFUNCS, none=True)
    if method == "outer":
        first, second = (ra.asarray(x) for x in inputs)
        inputs = ra.reshape(first, (*first.shape, *(1 for _ in second.shape))), second
    return own(*inputs)


def _given(name, options, defaults, none=False):
    """|options| without those that say nothing; with |none| there must be no others."""
    left = {key: value for key, value in options.items() if not (value is None or key in defaults and value is defaults[key])}
    wrong = [key for key in left if none or key in ("where", "initial")]
    if wrong:
        _refuse(name, f"there is no {wrong[0]!r} of it in rdna.arrays")
    return left


# ---- functions ----


def _flat(x):
    return ra.reshape(x, (-1,)) if x.size else ra.reshape(x, (0,))


def _sorted(function):
    def own(a, axis=-1):
        return function(_flat(a), axis=0) if axis is None else function(a, axis=axis)
    return own


def _running(function):
    def own(a, axis=None, dtype=None):
        return function(_flat(a), axis=0, dtype=dtype) if axis is None else function(a, axis=axis, dtype=dtype)
    return own


def _statistic(function):
    def own(a, axis=None, dtype=None, keepdims=False, ddof=0, correction=0):
        spread = {"correction": ddof or correction} if function in (ra.var, ra.std) else {}
        return function(a if dtype is None else astype(a, dtype), axis=axis, keepdims=keepdims, **spread)
    return own


def _choose(condition, x=None, y=None):
    return ra.nonzero(condition) if x is None and y is None else ra.where(condition, x, y)


def _rounded(a, decimals=0):
    if decimals == 0 or a.dtype.kind in "iub" and decimals > 0:
        return ra.round(a)
    if a.dtype.kind in "iub":
        raise TypeError(f"np.round of {a.dtype} to {decimals} decimals: rdna.arrays rounds integers to none; cast them to a floating type")
    scale = 10.0**abs(decimals)
    return ra.round(a * scale) / scale if decimals > 0 else ra.round(a / scale) * scale


def _clipped(a, a_min=None, a_max=None, min=None, max=None):
    low, high = a_min if min is None else min, a_max if max is None else max
    typed = [x for x in (low, high) if isinstance(x, float) or hasattr(x, "dtype")]  # of Python's integers a has the type
    return ra.clip(astype(a, ra.result_type(a, *typed)), low, high) if typed else ra.clip(a, low, high)


def _taken(a, indices, axis=None):
    indices = indices if isinstance(indices, Array) else ra.asarray(indices)
    a, axis = (_flat(a), 0) if axis is None else (a, axis)
    made = ra.take(a, _flat(indices), axis=axis)
    return ra.reshape(made, (*a.shape[:axis % a.ndim], *indices.shape, *a.shape[axis % a.ndim + 1:]))


def _of_matrix(function):
    def own(a, offset=0, axis1=0, axis2=1, dtype=None):
        a = ra.moveaxis(a, (axis1, axis2), (-2, -1))
        return function(a, offset=offset) if dtype is None else function(astype(a, dtype), offset=offset)
    return own


def _norm(x, ord=None, axis=None, keepdims=False):
    if axis is None and (ord is None or x.ndim == 1):
        return linalg.vector_norm(x, keepdims=keepdims, ord=2 if ord is None else ord)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if isinstance(axes, int) or len(axes) == 1:
        return linalg.vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    made = linalg.matrix_norm(ra.moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return ra.expand_dims(made, axis=tuple(axis % x.ndim for axis in axes)) if keepdims else made


def _stacked(axis, least):
    def own(tup):
        whole = [ra.reshape(x, (1,) * (least - x.ndim) + x.shape) if x.ndim < least else x for x in map(ra.asarray, tup)]
        return ra.concat(whole, axis=axis if least > 1 or whole[0].ndim > 1 else 0)
    return own


def _on_host(function):
    """What gives values out of the program, as text or into a file or an array of NumPy's that is written to."""
    def own(*arguments, **options):
        host = lambda x: x.numpy() if isinstance(x, Array) else x
        return function(*map(host, arguments), **{key: host(x) for key, x in options.items()})
    return own


def _copied(dst, src, casting="same_kind", where=True):
    if isinstance(dst, Array):
        _refuse("copyto", "its memory is not written to; x[...] = y gives it y's values")
    return _on_host(np.copyto)(dst, src, casting, where)


# Of the same names, and arguments that have the same names or places.
_SAME = """all any allclose array_equal broadcast_arrays concat count_nonzero diff dot empty_like expand_dims flip full_like isclose matrix_transpose
    median meshgrid moveaxis nonzero ones_like pad permute_dims reshape roll searchsorted split swapaxes take_along_axis tensordot tril triu
    unique_all unique_counts unique_inverse unique_values unstack zeros_like real imag broadcast_to argmax argmin max min repeat""".split()
_OTHERS = {
    np.concatenate: lambda arrays, axis=0, dtype=None: ra.concat([ra.asarray(x, dtype=dtype) for x in arrays], axis=axis),
    np.stack: lambda arrays, axis=0, dtype=None: ra.stack([ra.asarray(x, dtype=dtype) for x in arrays], axis=axis),
    np.amax: ra.max, np.amin: ra.min, np.where: _choose, np.round: _rounded, np.around: _rounded, np.clip: _clipped, np.take: _taken,
    np.sort: _sorted(ra.sort), np.argsort: _sorted(ra.argsort), np.cumsum: _running(ra.cumulative_sum), np.cumprod: _running(ra.cumulative_prod),
    np.sum: _statistic(ra.sum), np.prod: _statistic(ra.prod), np.mean: _statistic(ra.mean), np.var: _statistic(ra.var), np.std: _statistic(ra.std),
    np.transpose: lambda a, axes=None: ra.permute_dims(a, range(a.ndim)[::-1] if axes is None else axes),
    np.squeeze: lambda a, axis=None: ra.squeeze(a, axis=axis), np.ravel: _flat, np.copy: lambda a: a.copy(), np.tile: lambda A, reps: ra.tile(A, (reps,) if isinstance(reps, int) else tuple(reps)),
    np.trace: _of_matrix(linalg.trace), np.diagonal: _of_matrix(linalg.diagonal),
    np.outer: lambda a, b: linalg.outer(_flat(ra.asarray(a)), _flat(ra.asarray(b))),
    np.einsum: lambda subscripts, *operands: ra.einsum(subscripts, *operands),
    np.shape: lambda a: a.shape, np.ndim: lambda a: a.ndim, np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.iscomplexobj: lambda x: x.pairs, np.isrealobj: lambda x: not x.pairs, np.result_type: lambda *kinds: ra.result_type(*kinds),
    np.vstack: _stacked(0, 2), np.hstack: _stacked(1, 1),
    np.linalg.norm: _norm, np.copyto: _copied,
    **{function: _on_host(function) for function in (np.array2string, np.array_repr, np.array_str, np.save, np.savez, np.savez_compressed,
                                                     np.savetxt)}}
_OTHERS |= {getattr(np, name): getattr(ra, name) for name in _SAME if hasattr(np, name) and getattr(np, name) not in _OTHERS}
for _module, _own, _names in (
        (np.linalg, linalg, "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr slogdet "
                            "solve svd svdvals tensordot trace vecdot vector_norm"),
        (np.fft, fft, "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fftshift ifftshift")):
    for _name in _names.split():
        if hasattr(_module, _name) and hasattr(_own, _name):
            _OTHERS.setdefault(getattr(_module, _name), getattr(_own, _name))
# What says the same where it is given: how NumPy sorts and lays out memory, and that it makes classes of its own.
_IDLE = {"kind", "stable", "order", "subok", "casting", "sorted"}
_BY_ROWS = {np.reshape, np.ravel}  # their order is that in which values are taken too


@functools.lru_cache(None)
def _signature(function):
    """The parameters by their names; None of those of NumPy 1's functions in C that do not tell."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return None


def function(called, arguments, options):
    """What NumPy's function |called| makes of arguments with an array of rdna among them."""
    own, name = _OTHERS.get(called), f"{called.__module__}.{called.__name__}".removeprefix("numpy.")
    if own is None:
        _refuse(name)
    parameters, has = _signature(called), _signature(own)
    values = dict(zip(parameters or (), arguments)) | options  # by NumPy's names, as which they come in any order
    all_kinds = [p.kind for p in (*(parameters or {}).values(), *has.values())]
    if parameters is None or inspect.Parameter.VAR_POSITIONAL in all_kinds or not values.keys() <= parameters.keys():
        unknown = options.keys() - has.keys()
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in has.values()):
            _refuse(name, f"there is no {min(unknown)!r} of it in rdna.arrays")
        return own(*arguments, **options)
    if called in _BY_ROWS and (values.get("order") or "C") != "C":
        _refuse(name, f"values are taken by rows, order 'C', and not by {values['order']!r}; transpose before and after")
    places, named = [], {}
    first = [p.name for p in has.values() if p.default is p.empty]
    for key, of in parameters.items():
        if key not in values:
            continue
        value = values[key]
        if value is np._NoValue or value is of.default and key not in has:
            continue
        if key == "out":
            if value is not None:
                _refuse(name, "there is no out, as arrays do not change; take what is returned")
        elif len(places) < len(first) and (of.default is of.empty or key not in has):
            places.append(value)
        elif key in has:
            named[key] = value
        elif key not in _IDLE:
            _refuse(name, f"there is no {key!r} of it in rdna.arrays")
    return own(*places, **named)
