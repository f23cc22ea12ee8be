"""Operators that are recorded as a function of Python's: what computes their values, and a rule for their gradients (rdna_array_call of
rdna/graph_array.h).

    @own(like=lambda x: [(x.shape, x.dtype)], rule=lambda given, made, came: (came[0] * 2,))
    def double(x): ...

|like| says the shapes and types of results, |rule| the gradients by each array that was given, of those that came to the results; either has
None for 0. Rules compute with lazy arrays, so that they are differentiated again. Of complex numbers a gradient by x + i y of a real value is
its derivative by x plus i times that by y, as PyTorch's: what goes down the slope is x less it.
"""

import ctypes
import functools
import itertools

from .. import _types
from . import _core
from ._array import Array, is_lazy, make_tensor
from ._core import check, library, pending
from ._graph import pointers

_Several = ctypes.POINTER(ctypes.c_void_p)
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _Several, _Several)
_Differentiate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _Several, _Several, _Several, _Several)


class _Call:
    """One node's function, its rule, and which of its arrays are complex."""

    def __init__(self, name, function, rule, given, made):
        self.name, self.function, self.rule, self.given, self.made = name, function, rule, given, made


_calls, _numbers = {}, itertools.count(1)


def _arrays(pointers_, pairs):
    return [Array(library.rdna_array_retain(pointers_[i]), p) if pointers_[i] else None for i, p in enumerate(pairs)]


def _hand_over(made, place):
    for i, x in enumerate(made):
        if x is not None:
            place[i] = library.rdna_array_retain(x.pointer)


def _kept(function):
    """What is raised is kept for who asked for the values, and the call fails."""
    def called(number, *places):
        pending.error = None
        try:
            function(_calls[number], *places)
        except BaseException as error:
            pending.error = error
            return _core.INVALID
        return 0
    return called


@_Run
@_kept
def _run(call, given, made):
    _hand_over(call.function(*_arrays(given, call.given)), made)


@_Differentiate
@_kept
def _differentiate(call, given, made, came, slopes):
    if call.rule is None:
        raise TypeError(f"{call.name} has no gradient")
    _hand_over(call.rule(_arrays(given, call.given), _arrays(made, call.made), _arrays(came, call.made)), slopes)


@_Release
def _forget(number, calls=_calls):
    calls.pop(number, None)


_ADDRESSES = [ctypes.cast(function, ctypes.c_void_p) for function in (_forget, _run, _differentiate)]


def _record(name, function, rule, arrays, like):
    number = next(_numbers)
    _calls[number] = _Call(name, function, rule, [x.pairs for x in arrays], [dtype.kind == "c" for _, dtype in like])
    types, out = (_core.Tensor * len(like))(*(make_tensor(*each) for each in like)), pointers([None] * len(like))
    operator = _types.rdna_array_operator(ctypes.sizeof(_types.rdna_array_operator), name.encode(), number, *_ADDRESSES)
    status = library.rdna_array_call(ctypes.byref(operator), pointers(arrays), len(arrays), types, len(like), out)
    if status:
        del _calls[number]
    check(status)
    return [Array(pointer, dtype.kind == "c") for pointer, (_, dtype) in zip(out, like)]


def own(like, rule=None, name=None):
    """For a function of arrays, which come first, and of options by keywords, that returns an array or a tuple of up to three: its values at once
    where all arrays have theirs, else a node. |like| and |rule| are given the options too."""
    def around(function):
        @functools.wraps(function)
        def wrapped(*arrays, **options):
            if not any(is_lazy(x) for x in arrays):
                return function(*arrays, **options)

            def values(*given):
                made = function(*given, **options)
                return made if isinstance(made, tuple) else (made,)

            def slopes(given, made, came):
                return rule(given, made, came, **options)
            made = _record(name or function.__name__.strip("_"), values, rule and slopes, arrays, like(*arrays, **options))
            return made[0] if len(made) == 1 else tuple(made)
        return wrapped
    return around


def same(x, *_, **options):
    """|like| of what has its first array's shape and type."""
    return [(x.shape, x.dtype)]
