"""The operations on values, one by one: a function for each, under the array API's name.

A Python number beside an array takes the array's type if that has numbers of its kind, as NumPy's does (NEP 50).
"""

from . import _core
from ._array import Array, _binary, _compare, _unary

# array API's name: librdna's
_MAPS = {"abs": "abs", "negative": "neg", "sign": "sign", "square": "square", "ceil": "ceil", "floor": "floor", "round": "round",
         "trunc": "trunc", "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
         "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
         "erf": "erf", "sigmoid": "sigmoid", "relu": "relu", "silu": "silu", "bitwise_invert": "bitwise_not"}
_ZIPS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "floor_divide": "floor_div", "remainder": "remainder",
         "fmod": "fmod", "pow": "pow", "maximum": "maximum", "minimum": "minimum", "atan2": "atan2",
         "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
         "bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right"}
_COMPARES = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
             "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}
_QUESTIONS = {"logical_not": "logical_not", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
# Of integers these are what they were.
_ROUND = {"ceil", "floor", "round", "trunc"}

__all__ = [*_MAPS, *_ZIPS, *_COMPARES, *_QUESTIONS, "gelu"]


def _map(name, op):
    def function(x, /):
        if name in _ROUND and x.dtype.kind != "f":
            return x
        return _unary(x, op)
    function.__doc__ = f"{name} of each value of x."
    return function


def _zip(name, op):
    def function(x1, x2, /):
        return _binary(x1, x2, op)
    function.__doc__ = f"{name} of x1's values and x2's, broadcast and promoted; one of them may be a number."
    return function


def _question(name, op):
    def function(x1, x2, /):
        return _compare(x1, x2, op)
    function.__doc__ = f"{name} of x1's values and x2's, in bool; one of them may be a number."
    return function


def _question_of_one(name, op):
    def function(x, /):
        return Array(_core.make("rdna_array_compare", x.pointer, None, op))
    function.__doc__ = f"{name} of each value of x, in bool."
    return function


for _table, _numbers, _maker in ((_MAPS, _core.maps, _map), (_ZIPS, _core.zips, _zip), (_COMPARES, _core.compares, _question),
                                 (_QUESTIONS, _core.compares, _question_of_one)):
    for _name, _own in list(_table.items()):
        globals()[_name] = _maker(_name, _numbers[_own])
        globals()[_name].__name__ = globals()[_name].__qualname__ = _name


def gelu(x, /, *, approximate=False):
    """x Phi(x), the Gaussian error linear unit; |approximate|: by tanh."""
    return _unary(x, _core.maps["gelu_tanh" if approximate else "gelu_erf"])
