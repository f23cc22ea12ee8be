"""Sorting, searching in what is sorted, sets, and running sums."""

import ctypes
import typing

from ._array import Array, axis_of, cast, empty_on, full_on, is_lazy, need, one_type, run, stream_of, tensor_of
from ._core import BOOL, I64, U64, make
from ._graph import still
from ._indexing import nonzero_rows, take
from ._moving import concat, contiguous, reshape, slice_of, squeeze
from ._own import own
from ._pointwise import add, imag, multiply, not_equal, real
from ._types import known


def _order_rule(given, made, came, **options):
    return (None,)  # of where values are there is none


@own(lambda x, axis, descending: [(x.shape, I64)], _order_rule, "argsort")
def _places_in_order(x, *, axis, descending):
    made = empty_on(stream_of(x), x.shape, I64)
    run("sort", x, x, axis, descending, None, made)
    return made


def _ordered(name, x, axis):
    x = need(name, x)
    if x.pairs:
        raise TypeError(f"{name}: complex numbers have no order")
    return x, axis_of(name, axis, x.ndim)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """In ascending order along |axis|; NaN are last, as the largest, and equal values stay in their order."""
    x, axis = _ordered("sort", x, axis)
    if is_lazy(x):
        order = _places_in_order(still(x), axis=axis, descending=descending)
        return Array(make("rdna_array_gather", x.pointer, axis, order.pointer))
    made = empty_on(stream_of(x), x.shape, x.dtype)
    run("sort", x, x, axis, descending, made, None)
    return made


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """Where the values are that sort puts in order."""
    x, axis = _ordered("argsort", x, axis)
    return _places_in_order(still(x), axis=axis, descending=descending)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """For each value of x2 how many of x1, which ascends, are less; side "right": less or equal."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not '{side}'")
    x1, x2 = one_type("searchsorted", [still(need("searchsorted", x)) for x in (x1, x2)])
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: x1 has one dimension, not {x1.ndim}")
    if sorter is not None:
        x1 = take(x1, sorter)
    return _found(x1, x2, right=side == "right")


@own(lambda x1, x2, right: [(x2.shape, I64)], lambda given, made, came, right: (None, None), "searchsorted")
def _found(x1, x2, *, right):
    made = empty_on(stream_of(x2), x2.shape, I64)
    flat = x2 if x2.ndim else reshape(x2, (1,))
    run("search_sorted", x2, x1, flat, right, made if x2.ndim else reshape(made, (1,)))
    return made


# ---- sets ----


class unique_all_result(typing.NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class unique_counts_result(typing.NamedTuple):
    values: Array
    counts: Array


class unique_inverse_result(typing.NamedTuple):
    values: Array
    inverse_indices: Array


def _order(x):
    """Where the values of one dimension are in ascending order; complex ones by their real, then their imaginary parts."""
    if not x.pairs:
        return argsort(x)
    by_imag = argsort(contiguous(imag(x)))
    return take(by_imag, argsort(take(real(x), by_imag)))


def _unique(name, x):
    """The order of x's values in one dimension, those values, and where in the order each of the different ones begins."""
    x = need(name, x)
    flat = reshape(x, (x.size,))
    order = _order(flat)
    ordered = take(flat, order)
    n = x.size
    first = full_on(stream_of(x), (1 if n else 0,), True, BOOL)
    if n > 1:
        first = concat([first, not_equal(slice_of(ordered, 0, 1, n - 1), slice_of(ordered, 0, 0, n - 1))])
    return order, ordered, first, squeeze(nonzero_rows(first), 1)


def unique_values(x, /):
    """The values of x, each once, in ascending order. Every NaN is another value."""
    _, ordered, _, begins = _unique("unique_values", x)
    return take(ordered, begins)


def unique_counts(x, /):
    """The values of x, and how often each is there."""
    _, ordered, _, begins = _unique("unique_counts", x)
    return unique_counts_result(take(ordered, begins), _counts(ordered, begins))


def _counts(ordered, begins):
    ends = concat([slice_of(begins, 0, 1, begins.size - 1), full_on(stream_of(ordered), (1,), ordered.size, I64)]) if begins.size else begins
    return ends - begins


def _inverse(x, order, first):
    """For each value of x which of the different ones it is."""
    number = cumulative_sum(first, dtype=I64) - 1
    made = empty_on(stream_of(x), (x.size,), I64)
    if x.size:
        run("index_put", x, made, (ctypes.c_void_p * 1)(tensor_of(order)), number, 0, None)
    return reshape(made, x.shape)


def unique_inverse(x, /):
    """The values of x, and for each of x which of them it is."""
    order, ordered, first, begins = _unique("unique_inverse", x)
    return unique_inverse_result(take(ordered, begins), _inverse(x, order, first))


def unique_all(x, /):
    """The values of x, where each is first, for each of x which of them it is, and how often each is there."""
    order, ordered, first, begins = _unique("unique_all", x)
    return unique_all_result(take(ordered, begins), take(order, begins), _inverse(x, order, first), _counts(ordered, begins))


# ---- running ----


def _running(name, x, axis, dtype, include_initial, neutral):
    x = need(name, x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    axis = axis_of(name, axis, x.ndim)
    if dtype is not None:
        x = cast(x, known(dtype))
    wanted = x.dtype if dtype is not None or x.dtype.kind in "fc" else U64 if x.dtype.kind == "u" else I64
    if x.dtype.kind in "biu" and x.dtype != I64:  # which wraps around as the others do
        x = cast(x, I64)
    made = _by_doubling(x, axis, multiply) if x.pairs and neutral else _scan(name, x, axis)
    made = cast(made, wanted)
    if not include_initial:
        return made
    front = full_on(stream_of(x), x.shape[:axis] + (1,) + x.shape[axis + 1:], neutral, wanted)
    return concat([front, made], axis=axis)


def _scan(name, x, axis):
    if is_lazy(x):
        return _by_doubling(x, axis, multiply if name == "cumulative_prod" else add)
    made = empty_on(stream_of(x), x.shape, x.dtype)
    run("cumprod" if name == "cumulative_prod" else "cumsum", x, contiguous(x), axis, made)
    return made


def _by_doubling(x, axis, join):
    """After a step each value is the product or sum of the last 2, 4, 8, … up to itself."""
    n, reach = x.shape[axis], 1
    while reach < n:
        x = concat([slice_of(x, axis, 0, reach), join(slice_of(x, axis, reach, n - reach), slice_of(x, axis, 0, n - reach))], axis=axis)
        reach *= 2
    return x


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """What x comes to up to each place of |axis|, with |include_initial| also before the first. Of integers in int64 or uint64, or in |dtype|."""
    return _running("cumulative_sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The product up to each place of |axis|, as cumulative_sum."""
    return _running("cumulative_prod", x, axis, dtype, include_initial, 1)
