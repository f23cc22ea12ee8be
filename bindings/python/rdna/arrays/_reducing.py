"""One value out of many: statistics, and the questions whether any or all are true."""

from ._array import again, axes_of, cast, full_on, joined, need, parts, reduce, stream_of
from ._core import BOOL
from ._moving import concat, moveaxis, reshape, slice_of
from ._pointwise import _not_zero, multiply, subtract
from ._types import known


def _typed(x, dtype):
    return x if dtype is None else cast(x, known(dtype))


def _over(name, x, axis):
    return axes_of(name, axis, x.ndim)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over |axis|, one dimension or several; None: all. Of integers and bool in int64, of unsigned ones in uint64, or in |dtype|."""
    x = _typed(need("sum", x), dtype)
    axes = _over("sum", x, axis)
    made = reduce(parts(x), "sum", axes, keepdims)
    return joined(made) if x.pairs else _typed(made, dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over |axis|, as sum."""
    x = _typed(need("prod", x), dtype)
    axes = _over("prod", x, axis)
    if not x.pairs:
        return _typed(reduce(x, "prod", axes, keepdims), dtype)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    rest = [d for d in range(x.ndim) if d not in axes]
    x = reshape(moveaxis(x, list(axes), list(range(len(rest), x.ndim))) if axes else x, (*[x.shape[d] for d in rest], _count(x, axes)))
    while x.shape[-1] > 1:  # halves by halves
        n, last = x.shape[-1], x.ndim - 1
        product = multiply(slice_of(x, last, 0, n // 2), slice_of(x, last, n // 2, n // 2))
        x = concat([product, slice_of(x, last, n - 1, 1)], axis=last) if n % 2 else product
    if x.shape[-1] == 0:
        x = full_on(stream_of(x), (*x.shape[:-1], 1), 1, x.dtype)
    return reshape(x, kept if keepdims else x.shape[:-1])


def _count(x, axes):
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


def mean(x, /, *, axis=None, keepdims=False):
    """The mean over |axis|."""
    x = need("mean", x)
    axes = _over("mean", x, axis)
    made = reduce(parts(x), "mean", axes, keepdims)
    return joined(made) if x.pairs else made


def max(x, /, *, axis=None, keepdims=False):
    """The largest value over |axis|; a NaN, if there is one."""
    x = need("max", x)
    return reduce(_real("max", x), "max", _over("max", x, axis), keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The least value over |axis|; a NaN, if there is one."""
    x = need("min", x)
    return reduce(_real("min", x), "min", _over("min", x, axis), keepdims)


def _real(name, x):
    if x.pairs:
        raise TypeError(f"{name} is of real numbers, not of {x.dtype}")
    return x


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The mean of squared distances from the mean; sums are divided by their count less |correction|."""
    x = need("var", x)
    return reduce(_real("var", x), "var", _over("var", x, axis), keepdims, correction)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The square root of var."""
    x = need("std", x)
    return reduce(_real("std", x), "std", _over("std", x, axis), keepdims, correction)


def any(x, /, *, axis=None, keepdims=False):
    """Whether a value over |axis| is not 0."""
    x = need("any", x)
    axes = _over("any", x, axis)
    return reduce(_truth(x), "any", axes, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether no value over |axis| is 0."""
    x = need("all", x)
    axes = _over("all", x, axis)
    return reduce(_truth(x), "all", axes, keepdims)


def _truth(x):
    return x if x.dtype == BOOL else _not_zero(x)


def argmax(x, /, *, axis=None, keepdims=False):
    """Where the largest value is along |axis|, one dimension, or None: among all of them in order."""
    x = need("argmax", x)
    return reduce(_real("argmax", x), "argmax", _over("argmax", x, axis), keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Where the least value is, as argmax."""
    x = need("argmin", x)
    return reduce(_real("argmin", x), "argmin", _over("argmin", x, axis), keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many values over |axis| are not 0."""
    x = need("count_nonzero", x)
    return reduce(_truth(x), "sum", _over("count_nonzero", x, axis), keepdims)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along |axis|, |n| times over, with values before and behind."""
    x = need("diff", x)
    axis = axes_of("diff", axis, x.ndim)[0]
    ends = [a for a in (prepend, x, append) if a is not None]
    if len(ends) > 1:
        x = concat(ends, axis=axis)
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        later, earlier = slice_of(x, axis, 1 if size > 1 else 0, size - 1), slice_of(x, axis, 0, size - 1)
        x = subtract(later, earlier) if x.dtype != BOOL else later ^ earlier
    return again(x)

