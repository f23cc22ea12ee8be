"""The operations on values, one by one: a function for each, under the array API's name.

A Python number beside an array takes the array's type if that has numbers of its kind, as NumPy's does (NEP 50). Most are an operation
of librdna's; those that it has not are made of several, in float64 for what is narrower, so that they are rounded once.
"""

import math

from . import _core
from ._array import (Array, again, ask, binary, bits_of, cast, choose, compare, empty_on, extension, from_bits, full_on, is_complex, is_lazy, joined,
                     need, operands, part_of, parts, prepare, reduce, run, stream_of, unary)
from ._core import F32, F64, NOTHING, WIDE, Complex, scalar
from ._graph import still
from ._moving import broadcast_shapes, broadcast_to, concat, expand_dims
from ._own import own, same
from ._types import iinfo, promote

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
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_QUESTIONS = {"logical_not": "logical_not", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
# Of integers these are what they were.
_ROUND = {"ceil", "floor", "round", "trunc"}
_COMPLEX_MAPS = {"negative": "neg", "sign": "sgn", "sqrt": "sqrt", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan",
                 "tanh": "tanh", "reciprocal": "reciprocal"}
_COMPLEX_ZIPS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "pow": "pow"}

__all__ = [*_MAPS, *_ZIPS, *_COMPARES, *_QUESTIONS]


def public(function):
    __all__.append(function.__name__)
    return function


# ---- complex numbers ----


# Of a function that has a derivative its derivative, by its argument and its value.
_SLOPES = {"neg": lambda x, y: -1.0, "reciprocal": lambda x, y: negative(y * y), "sqrt": lambda x, y: 0.5 / y, "exp": lambda x, y: y,
           "log": lambda x, y: 1.0 / x, "sin": lambda x, y: cos(x), "cos": lambda x, y: negative(sin(x)), "tan": lambda x, y: y * y + 1.0,
           "sinh": lambda x, y: cosh(x), "cosh": lambda x, y: sinh(x), "tanh": lambda x, y: 1.0 - y * y,
           "log1p": lambda x, y: 1.0 / (x + 1.0), "expm1": lambda x, y: y + 1.0, "acos": lambda x, y: -1.0 / sqrt(1.0 - x * x),
           "asin": lambda x, y: 1.0 / sqrt(1.0 - x * x), "atan": lambda x, y: 1.0 / (x * x + 1.0),
           "acosh": lambda x, y: 1.0 / (sqrt(x - 1.0) * sqrt(x + 1.0)), "asinh": lambda x, y: 1.0 / sqrt(x * x + 1.0),
           "atanh": lambda x, y: 1.0 / (1.0 - x * x)}


def _map_rule(given, made, came, name):
    (x,), (y,), (g,) = given, made, came
    if name == "conj":
        return (conj(g),)
    if name == "sgn":  # what is along y does not change it
        size = abs(x)
        along = real(g * conj(y))
        return (where(size > 0, (g - y * along) / choose(size > 0, size, 1.0), 0j),)
    slope = _SLOPES[name](x, y)
    return (g * (conj(slope) if isinstance(slope, Array) else slope),)


@own(same, _map_rule)
def _complex_of(x, *, name):
    made = empty_on(stream_of(x), x.shape, x.dtype)
    run("complex_map", x, _core.complex_maps[name], x, made)
    return made


def _complex_map(x, name):
    return _complex_of(x, name=name)


def _with_slope(name, function):
    """A function of complex numbers that is made of several, with the derivative that _SLOPES has."""
    recorded = own(same, lambda given, made, came: _map_rule(given, made, came, name), name)(function)
    return lambda x: recorded(x)


def _measure_rule(given, made, came, name):
    (x,), (g,) = given, came
    if name == "abs":
        return (g * _complex_map(x, "sgn"),)
    re, im = part_of(x, 0), part_of(x, 1)
    squared = re * re + im * im
    g = choose(squared > 0, g / choose(squared > 0, squared, 1.0), 0.0)
    return (from_parts(negative(im) * g, re * g),)


@own(lambda x, name: [(x.shape, _core.part_of[x.dtype])], _measure_rule)
def _measured(x, *, name):
    made = empty_on(stream_of(x), x.shape, _core.part_of[x.dtype])
    run("complex_measure", x, _core.complex_measures[name], x, made)
    return made


def complex_measure(x, name):
    return _measured(x, name=name)


def from_parts(real, imag):
    """real + i imag of two real arrays of one type."""
    if is_lazy(real) or is_lazy(imag):
        shape = broadcast_shapes(real.shape, imag.shape)
        return joined(concat([expand_dims(broadcast_to(x, shape), axis=len(shape)) for x in (real, imag)], axis=len(shape)))
    made = empty_on(stream_of(real), broadcast_shapes(real.shape, imag.shape), _core.C64 if real.dtype == F32 else _core.C128)
    for part, values in ((0, real), (1, imag)):
        run("copy", real, values, part_of(made, part))
    return made


def _zip_rule(given, made, came, name):
    (a, b), (y,), (g,) = given, made, came
    if name in ("add", "sub"):
        return g, g if name == "add" else negative(g)
    if name == "mul":
        return g * conj(b), g * conj(a)
    if name == "div":
        return g / conj(b), negative(g * conj(y / b))
    none = a == 0  # a^b is 0 there, or 1 for b 0, along b too
    of_base = where(b == 0, 0j, b * _complex_zip(a, b - 1.0, "pow"))
    return g * conj(of_base), where(none, 0j, g * conj(y * log(where(none, 1 + 0j, a))))


@own(same, _zip_rule)
def _zipped(a, b, *, name):
    made = empty_on(stream_of(a), a.shape, a.dtype)
    run("complex_zip", a, _core.complex_zips[name], a, b, NOTHING, made)
    return made


def _complex_zip(a, b, name):
    a, b = prepare(a, b)
    if isinstance(a, Array) and is_lazy(a) or isinstance(b, Array) and is_lazy(b):
        a, b = operands(a, b)
        dtype, shape = promote(a.dtype, b.dtype), broadcast_shapes(a.shape, b.shape)
        return _zipped(*(broadcast_to(cast(x, dtype), shape) for x in (a, b)), name=name)
    op = _core.complex_zips[name]
    if not isinstance(a, Array) or not isinstance(b, Array):
        x, number = (a, b) if isinstance(a, Array) else (b, a)
        made, number = empty_on(stream_of(x), x.shape, x.dtype), complex(number)
        run("complex_zip_scalar", x, op, x, Complex(number.real, number.imag), x is b, NOTHING, made)
        return made
    dtype = promote(a.dtype, b.dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    made = empty_on(stream_of(a), broadcast_shapes(a.shape, b.shape), dtype)
    run("complex_zip", a, op, a, b, NOTHING, made)
    return made


def _not_zero(x):
    """In bool."""
    if not x.pairs:
        return compare(x, 0, _core.compares["ne"], _core.compares["ne"])
    return reduce(_not_zero(parts(x)), "any", (x.ndim,), False)


def _complex_question(a, b, name):
    a, b = operands(a, b)
    if name.startswith("logical"):
        return compare(_not_zero(a), _not_zero(b), _core.compares[name], None)
    if name not in ("eq", "ne"):
        raise TypeError(f"complex numbers have no order: {name} of {a.dtype} and {b.dtype}")
    dtype = promote(a.dtype, b.dtype)
    of_parts = compare(parts(cast(a, dtype)), parts(cast(b, dtype)), _core.compares[name], None)
    return reduce(of_parts, "all" if name == "eq" else "any", (of_parts.ndim - 1,), False)


def _complex_question_of_one(x, name):
    if name == "logical_not":
        return ask(_not_zero(x), _core.compares[name])
    return reduce(ask(parts(x), _core.compares[name]), "all" if name == "isfinite" else "any", (x.ndim,), False)


def _of_complex(name, x):
    """What has no operation of its own among the complex ones."""
    if name == "abs":
        return complex_measure(x, "abs")
    if name == "square":
        return _complex_zip(x, x, "mul")
    if name in ("round", "log2", "log10", "log1p", "expm1"):
        return {"round": lambda: joined(unary(parts(x), _core.maps["round"])), "log2": lambda: log(x) * (1 / math.log(2)),
                "log10": lambda: log(x) * (1 / math.log(10)), "log1p": lambda: _in_double(_with_slope("log1p", _complex_log1p), x),
                "expm1": lambda: _in_double(_with_slope("expm1", _complex_expm1), x)}[name]()
    raise TypeError(f"{name} is of real numbers, not of {x.dtype}")


def _complex_log1p(x):
    re, im = part_of(x, 0), part_of(x, 1)
    return from_parts(choose(_endless(re, im), math.inf, log1p(re * (re + 2) + im * im) * 0.5), atan2(im, re + 1))


def _complex_expm1(x):
    re, im = part_of(x, 0), part_of(x, 1)
    half, gone = sin(im * 0.5), isinf(re) & ~isfinite(im)
    size = choose(re < 0, full_on(stream_of(x), (), -1.0, re.dtype), math.inf)  # where the angle is lost
    real_part = choose(gone, size, expm1(re) * cos(im) - half * half * 2 + 0.0)
    return from_parts(real_part, choose((im == 0) | (gone & (re < 0)), choose(im == 0, im, 0.0), exp(re) * sin(im)))


def _endless(re, im):
    """Whether one of the parts is infinite."""
    return isinf(re) | isinf(im)


# ---- the operations of librdna ----


def _map(name, op):
    rounds = name in _ROUND

    def function(x, /):
        if type(x) is Array and not x.pairs and not rounds:
            return unary(x, op)
        x = need(name, x)
        if x.pairs:
            return _complex_map(x, _COMPLEX_MAPS[name]) if name in _COMPLEX_MAPS else _of_complex(name, x)
        if rounds and x.dtype.kind != "f":
            return again(x)
        return unary(x, op)
    function.__doc__ = f"{name} of each value of x."
    return function


def _zip(name, op):
    def function(x1, x2, /):
        if is_complex(x1, x2):
            if name not in _COMPLEX_ZIPS:
                raise TypeError(f"{name} is of real numbers")
            return _complex_zip(x1, x2, _COMPLEX_ZIPS[name])
        return _whole_quotient(x1, x2) if name == "floor_divide" else binary(x1, x2, op)
    function.__doc__ = f"{name} of x1's values and x2's, broadcast and promoted; one of them may be a number."
    return function


def _whole_quotient(x1, x2):
    """Rounded towards minus infinity. Of infinities and by them the array API has the quotient as it is, where Python's floats have NaN and -1."""
    quotient = binary(x1, x2, _core.zips["floor_div"])
    if quotient.dtype.kind != "f":
        return quotient
    endless = [ask(x, _core.compares["isinf"]) for x in (x1, x2) if isinstance(x, Array) and x.dtype.kind == "f"]
    endless += [full_on(stream_of(quotient), (), True, _core.BOOL) for x in (x1, x2) if isinstance(x, float) and math.isinf(x)]
    if not endless:
        return quotient
    divided = still(binary(x1, x2, _core.zips["div"]))
    return choose(endless[0] | endless[1] if len(endless) > 1 else endless[0], divided, quotient)


def _question(name, own):
    op, mirrored = _core.compares[own], _core.compares[_MIRRORED.get(own, own)]

    def function(x1, x2, /):
        if is_complex(x1, x2):
            return _complex_question(x1, x2, own)
        return compare(x1, x2, op, mirrored)
    function.__doc__ = f"{name} of x1's values and x2's, in bool; one of them may be a number."
    return function


def _question_of_one(name, op):
    def function(x, /):
        x = need(name, x)
        return _complex_question_of_one(x, name) if x.pairs else ask(x, op)
    function.__doc__ = f"{name} of each value of x, in bool."
    return function


for _table, _numbers, _maker in ((_MAPS, _core.maps, _map), (_ZIPS, _core.zips, _zip), (_COMPARES, None, _question),
                                 (_QUESTIONS, _core.compares, _question_of_one)):
    for _name, _own in _table.items():
        globals()[_name] = _maker(_name, _numbers[_own] if _numbers else _own)
        globals()[_name].__name__ = globals()[_name].__qualname__ = _name
        if extension and _table is _MAPS and _name not in _ROUND:
            globals()[_name] = extension.map(_numbers[_own], globals()[_name], _name, f"{_name}(x, /)\n--\n\n{globals()[_name].__doc__}")


@public
def gelu(x, /, *, approximate=False):
    """x Phi(x), the Gaussian error linear unit; |approximate|: by tanh."""
    return unary(need("gelu", x), _core.maps["gelu_tanh" if approximate else "gelu_erf"])


@public
def positive(x, /):
    """x itself."""
    return again(need("positive", x))


# ---- parts of numbers ----


@public
def real(x, /):
    """The real parts, a view."""
    x = need("real", x)
    return part_of(x, 0) if x.pairs else again(x)


@public
def imag(x, /):
    """The imaginary parts, a view."""
    x = need("imag", x)
    return part_of(x, 1) if x.pairs else full_on(stream_of(x), x.shape, 0, x.dtype)


@public
def conj(x, /):
    """Complex conjugates."""
    x = need("conj", x)
    return _complex_map(x, "conj") if x.pairs else again(x)


def _as_float(x):
    """Real numbers in the floating type in which functions of floats take them."""
    return x if x.dtype.kind in "fc" else cast(x, F64 if x.dtype in WIDE else F32)


@public
def signbit(x, /):
    """Whether the sign is minus, that of zeros too, and of NaN unless it is recorded."""
    x = _as_float(need("signbit", x))
    return (x < 0) | (1 / x < 0) if is_lazy(x) else bits_of(x) < 0


@public
def copysign(x1, x2, /):
    """x1's magnitudes with x2's signs."""
    x1, x2 = operands(x1, x2)
    dtype = _as_float_type(x1, x2)
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    if is_lazy(x1) or is_lazy(x2):
        size = abs(x1)
        return choose(signbit(x2), negative(size), size)
    first = 2 ** (dtype.itemsize * 8 - 1)
    return from_bits((bits_of(x1) & first - 1) | (bits_of(x2) & -first), dtype)


def _as_float_type(x1, x2):
    dtype = promote(x1.dtype, x2.dtype)
    return dtype if dtype.kind == "f" else F64 if dtype in WIDE else F32


@public
def nextafter(x1, x2, /):
    """The number of the type that is next to x1 towards x2. It has no gradient."""
    x1, x2 = operands(x1, x2)
    dtype = _as_float_type(x1, x2)
    return _nextafter(cast(x1, dtype), cast(x2, dtype))


@own(lambda a, b: [(broadcast_shapes(a.shape, b.shape), a.dtype)], name="nextafter")
def _nextafter(a, b):
    return binary(a, b, _core.zips["nextafter"])


# ---- made of several ----


def _in_double(function, *arrays):
    """|function| in float64 or complex128, rounded to the type of the arrays."""
    arrays = [_as_float(x) for x in arrays]
    dtype = arrays[0].dtype
    if dtype == F64 or dtype == _core.C128:
        return function(*arrays)
    return cast(function(*[cast(x, _core.C128 if x.pairs else F64) for x in arrays]), dtype)


def _of_double(real_function, complex_function):
    """A public function out of its rules for float64 and complex128."""
    name = real_function.__name__.strip("_")
    complex_function = _with_slope(name, complex_function)

    def function(x, /):
        x = need(name, x)
        return _in_double(complex_function if x.pairs else real_function, x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of each value of x."
    __all__.append(name)
    return function


_HUGE = 2.0 ** 28  # beside whose square 1 is nothing


# These are recorded too, and differentiated, twice and more. So they have no copied signs, and nothing that is chosen between has an infinite
# derivative where the other is taken, as 0 times that would be NaN: arguments are chosen, not results.


def _acos(x):
    return atan2(sqrt(1 - x), sqrt(1 + x)) * 2


def _asin(x):
    return atan2(x, sqrt((1 - x) * (1 + x)))


def _atan(x):
    return atan2(x, 1.0)


def _log_of_twice(x):
    return log(x) + math.log(2)


def _asinh_above(x):
    """asinh of what is not negative."""
    small = choose(x > _HUGE, 0.0, x)
    near = log1p(small * (1 + small / (1 + sqrt(small * small + 1))))
    return choose(x > _HUGE, _log_of_twice(choose(x > _HUGE, x, 1.0)), near)


def _asinh(x):
    above = x >= 0
    return _asinh_above(choose(above, x, 0.0)) - _asinh_above(choose(above, 0.0, negative(x)))


def _acosh(x):
    t = choose(x > _HUGE, 1.0, x - 1)
    return choose(x > _HUGE, _log_of_twice(choose(x > _HUGE, x, 1.0)), log1p(t + sqrt(t) * sqrt(t + 2)))


def _atanh(x):
    return (log1p(x) - log1p(negative(x))) * 0.5


def _sinh(x):
    """2 sinh(x / 2) cosh(x / 2), as exp(x) would be too large before sinh is."""
    half = x * 0.5
    below = negative(half)
    return (expm1(half) - expm1(below)) * 0.5 * (exp(half) + exp(below))


def _cosh(x):
    half = x * 0.5
    rise, fall = exp(half), exp(negative(half))
    return rise * 0.5 * rise + fall * 0.5 * fall


# Of complex numbers as Kahan has them ("Branch cuts for complex elementary functions", 1987); of infinities and NaN as C's annex G, which the
# array API follows.


def _times_i(x, sign=1):
    """i x, or -i x."""
    re, im = part_of(x, 0), part_of(x, 1)
    return from_parts(negative(im), re) if sign > 0 else from_parts(im, negative(re))


def _roots(x):
    """sqrt(1 - x) and sqrt(1 + x); the sign of a zero imaginary part is kept."""
    re, im = part_of(x, 0), part_of(x, 1)
    return sqrt(from_parts(1 - re, negative(im))), sqrt(from_parts(1 + re, im))


def _complex_acos(x):
    re, im, (below, above) = part_of(x, 0), part_of(x, 1), _roots(x)
    endless = _endless(re, im)
    real_part = choose((re == 0) & isnan(im), math.pi / 2, atan2(real(below), real(above)) * 2)
    return from_parts(choose(endless, atan2(abs(im), re), real_part),
                      choose(endless, copysign(math.inf, negative(im)), _asinh(imag(conj(above) * below))))


def _complex_asin(x):
    below, above = _roots(x)
    return from_parts(atan2(real(x), real(below * above)), _asinh(imag(conj(below) * above)))


def _complex_acosh(x):
    re, im = part_of(x, 0), part_of(x, 1)
    below, above = sqrt(from_parts(re - 1, im)), sqrt(from_parts(re + 1, im))
    endless, angle = _endless(re, im), choose((re == 0) & isnan(im), math.pi / 2, atan2(imag(below), real(above)) * 2)
    return from_parts(choose(endless, math.inf, _asinh(real(conj(below) * above))), choose(endless, atan2(im, re), angle))


def _complex_asinh(x):
    re, im, turned = part_of(x, 0), part_of(x, 1), _complex_asin(_times_i(x))
    endless = _endless(re, im)
    return from_parts(choose(endless, copysign(math.inf, re), part_of(turned, 1)),
                      choose(endless, atan2(im, abs(re)), choose(isnan(re) & (im == 0), im, negative(part_of(turned, 0)))))


def _complex_atanh(x):
    re, im = part_of(x, 0), part_of(x, 1)
    endless = _endless(re, im)
    size = log1p(re * 4 / ((1 - re) * (1 - re) + im * im)) * 0.25
    angle = atan2(im * 2, (1 - re) * (1 + re) - im * im) * 0.5
    return from_parts(choose(endless, copysign(0.0, re), choose((re == 0) & isnan(im), re, size)),
                      choose(endless, choose(isnan(im), im, copysign(math.pi / 2, im)), angle))


def _complex_atan(x):
    return _times_i(_complex_atanh(_times_i(x)), -1)


acos, asin, atan = _of_double(_acos, _complex_acos), _of_double(_asin, _complex_asin), _of_double(_atan, _complex_atan)
acosh, asinh, atanh = _of_double(_acosh, _complex_acosh), _of_double(_asinh, _complex_asinh), _of_double(_atanh, _complex_atanh)
sinh, cosh = _of_double(_sinh, lambda x: _complex_map(x, "sinh")), _of_double(_cosh, lambda x: _complex_map(x, "cosh"))


def _hypot(a, b):
    endless, zero = isinf(a) | isinf(b), (a == 0) & (b == 0)
    plain = ~(endless | zero)
    x, y = choose(plain, a, 1.0), choose(plain, b, 1.0)
    scale = still(maximum(abs(x), abs(y)))  # of which the length does not depend
    length = sqrt(square(x / scale) + square(y / scale)) * scale
    return choose(endless, math.inf, choose(zero, 0.0, length))


@public
def hypot(x1, x2, /):
    """sqrt(x1^2 + x2^2), of numbers whose squares would be too large too."""
    x1, x2 = operands(x1, x2)
    dtype = _as_float_type(x1, x2)
    return _in_double(_hypot, cast(x1, dtype), cast(x2, dtype))


def _logaddexp(a, b):
    """Either way round the same, so that equal ones share the gradient."""
    same = (a == b) & isinf(a)
    apart = choose(same, 0.0, a - b)
    more, less = (unary(x, _core.maps["softplus"], scalar(1.0), scalar(40.0)) for x in (negative(apart), apart))
    return choose(same, a * 0.5 + b * 0.5, choose(apart > 0, a + more, b + less))


@public
def logaddexp(x1, x2, /):
    """log(exp(x1) + exp(x2))."""
    x1, x2 = operands(x1, x2)
    dtype = _as_float_type(x1, x2)
    return _in_double(_logaddexp, cast(x1, dtype), cast(x2, dtype))


@public
def clip(x, /, min=None, max=None):
    """x at least |min|, then at most |max|, numbers or arrays; None: no bound. In x's type."""
    x = need("clip", x)
    if isinstance(min, float) and isinstance(max, float) and x.dtype.kind == "f" and not math.isnan(min) and not math.isnan(max):
        return unary(x, _core.maps["clamp"], scalar(min), scalar(max))
    result = x
    for bound, nearer in ((min, maximum), (max, minimum)):
        if bound is not None:
            result = nearer(result, _in_type(bound, x.dtype))
    return again(x) if result is x else cast(result, x.dtype)


def _in_type(bound, dtype):
    """A bound as one of x's values: infinite ones of integers are none."""
    if isinstance(bound, float) and dtype.kind in "iu" and math.isinf(bound):
        return iinfo(dtype).max if bound > 0 else iinfo(dtype).min
    return bound


@public
def where(condition, x1, x2, /):
    """x1 where |condition| is true, else x2; all broadcast, x1 or x2 may be a number."""
    condition = need("where", condition)
    if not is_complex(x1, x2):
        return choose(condition, x1, x2)
    x1, x2 = operands(x1, x2)
    dtype = promote(x1.dtype, x2.dtype)
    return joined(choose(expand_dims(condition, axis=condition.ndim), parts(cast(x1, dtype)), parts(cast(x2, dtype))))
