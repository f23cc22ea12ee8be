"""Parts of arrays, taken and assigned to: by integers, slices, None and `...`, by masks and by arrays of integers."""

import builtins
import ctypes
import math
import operator

import numpy as np

from . import _core
from ._array import (
    Array, again, axis_of, become, cast, choose, compare, empty_on, from_numpy, full_on, is_lazy, joined, need, number, part_of, parts, reduce, run, stream_of,
    tensor_of)
from ._core import BOOL, I32, I64, make
from ._grad import watch, without_values
from ._graph import evaluate, gradients, lazy, record
from ._moving import broadcast_shapes, broadcast_to, expand_dims, permute_dims, reshape, slice_of, squeeze


def nonzero_rows(x):
    """The coordinates of values that are not 0, (count, x.ndim)."""
    if is_lazy(x):
        if without_values():
            raise TypeError("how many places a mask has depends on its values, and within compile there are none yet, so that a result would have no "
                            "shape; where(mask, x, other) keeps x's")
        x, = evaluate([x])
    stream = stream_of(x)
    count = empty_on(stream, (), I64)
    run("nonzero_count", x, x, count)
    rows = empty_on(stream, (count.item(), x.ndim), I64)
    run("nonzero", x, x, rows)
    return rows


def _is_list(key):
    return isinstance(key, (list, np.ndarray, np.generic))


def _expand(x, key):
    """The entries of a key, one for each dimension and None: slices, integers, and arrays that are int64, of masks those of their places."""
    keys = []
    for k in key if isinstance(key, tuple) else (key,):
        if _is_list(k):
            k = from_numpy(np.asarray(k, np.int64 if isinstance(k, list) and np.size(k) == 0 else None), x.device)
        if isinstance(k, builtins.bool):
            k = full_on(stream_of(x), (), k, BOOL)
        if isinstance(k, Array) and k.dtype == BOOL:
            keys.append(k)
        elif k is None or k is Ellipsis or isinstance(k, slice):
            keys.append(k)
        elif isinstance(k, Array) and k.ndim and k.dtype.kind in "iu":
            keys.append(k if k.dtype in (I64, I32) else cast(k, I64))
        elif isinstance(k, Array) and k.dtype.kind in "iu" and is_lazy(k) and without_values():
            keys.append(cast(k, I64))  # an index whose value comes when the plan runs
        elif hasattr(k, "__index__") and not (isinstance(k, Array) and k.dtype.kind not in "iu"):
            keys.append(operator.index(k))
        else:
            raise IndexError(f"arrays are indexed by integers, slices, None, '...', masks and arrays of integers, not by "
                             f"{f'arrays of {k.dtype}' if isinstance(k, Array) else type(k).__name__}")
    spent = builtins.sum(k.ndim if isinstance(k, Array) and k.dtype == BOOL else k is not None and k is not Ellipsis for k in keys)
    if builtins.sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index has one '...' at most")
    if spent > x.ndim:
        raise IndexError(f"{spent} indices of an array of {x.ndim} dimensions")
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
    keys[at:at + 1] = [slice(None)] * (x.ndim - spent)
    return keys


def _masks_to_places(x, keys):
    """Views and places: x with dimensions that masks of no dimensions add, and the entries with masks as the places that they have."""
    entries, dim = [], 0
    for k in keys:
        if not isinstance(k, Array) or k.dtype != BOOL:
            entries.append(k)
            dim += k is not None
            continue
        if builtins.any(own not in (n, 0) for own, n in zip(k.shape, x.shape[dim:dim + k.ndim])):  # of 0 it has no places
            raise IndexError(f"a mask of shape {k.shape} at dimension {dim} of an array of shape {x.shape}")
        if k.ndim == 0:
            x, k = expand_dims(x, axis=dim), expand_dims(k)
        rows = nonzero_rows(k)
        entries += [squeeze(slice_of(rows, 1, i, 1), 1) for i in range(k.ndim)]
        dim += k.ndim
    return x, entries


def place_of(dim, size, index):
    if not -size <= index < size:
        raise IndexError(f"index {index} of dimension {dim}, which has {size}")
    return index % size


def _view(x, entries):
    """x's view by slices, None and integers, and for each of its dimensions an array of indices or None."""
    arrays = builtins.any(isinstance(k, Array) for k in entries)
    result, indices, dim, own = x, [], 0, -1  # the dimension of the result, and that of x
    for k in entries:
        own += k is not None
        if k is None:
            result = expand_dims(result, axis=dim)
        elif isinstance(k, slice):
            start, stop, step = k.indices(result.shape[dim])
            count = len(range(start, stop, step))
            if (start, count, step) != (0, result.shape[dim], 1):
                result = slice_of(result, dim, start if count else 0, count, step)
        elif isinstance(k, Array):
            indices.append(k)
            dim += 1
            continue
        else:
            place = place_of(own, result.shape[dim], k)
            if not arrays:
                result = squeeze(slice_of(result, dim, place, 1), dim)
                continue
            indices.append(full_on(stream_of(x), (), place, I64))  # beside arrays it is one of no dimensions, as NumPy's
            dim += 1
            continue
        indices.append(None)
        dim += 1
    return result, indices if arrays else None


def _indexed_shape(x, indices):
    """The shape that arrays of indices give: their dimensions in the place of the first, if they are neighbours, else in front."""
    at = [i for i, k in enumerate(indices) if k is not None]
    joined = broadcast_shapes(*(indices[i].shape for i in at))
    rest = [n for i, n in enumerate(x.shape) if indices[i] is None]
    place = at[0] if at[-1] - at[0] + 1 == len(at) else 0
    return (*rest[:place], *joined, *rest[place:])


def _tensors(x, indices):
    """One for each of x's dimensions, that of pairs too."""
    return (ctypes.c_void_p * (len(indices) + x.pairs))(*(None if k is None else tensor_of(k) for k in indices))


class _Outside:
    """A word on the device that an operator writes where an index is none, and the question, which waits for it."""

    def __init__(self, x):
        self.word = full_on(stream_of(x), (), 0, I32)
        self.address = ctypes.c_void_p.from_address(tensor_of(self.word)).value

    def check(self, name, shape):
        if self.word.item():
            raise IndexError(f"{name}: an index is outside of an array of shape {shape}")


def gather_at(x, indices):
    """Advanced indexing: an array of indices or None for each dimension."""
    if is_lazy(x) or without_values() and builtins.any(k is not None and is_lazy(k) for k in indices):
        return joined(_recorded_gather(parts(x), [*indices, None])) if x.pairs else _recorded_gather(x, indices)
    indices = [k if k is None else evaluate([k])[0] for k in indices]
    made = empty_on(stream_of(x), _indexed_shape(x, indices), x.dtype)
    if made.size == 0 and not builtins.any(k is not None and k.size for k in indices):
        return made
    outside = _Outside(x)
    run("index", x, x, _tensors(x, indices), made, outside.address)
    outside.check("index", x.shape)
    return made


def _counted(name, x, dim, indices):
    """Indices of dimension |dim| of x, counted from its start, of which one outside is refused. Where their values come later: with which of them
    are inside, the others being 0, so that what is taken by these can be NaN."""
    k, n = cast(indices, I64), x.shape[dim]
    inside = compare(k, n, _core.compares["lt"], None) & compare(k, -n, _core.compares["ge"], None)
    later = is_lazy(k) and without_values()
    if later:
        watch(inside, f"{name}: an index is outside of an array of shape {x.shape}, in a run of what compile has recorded")
        k = choose(inside, k, 0)
    elif not reduce(inside, "all", range(k.ndim), False).item():
        raise IndexError(f"{name}: an index is outside of an array of shape {x.shape}")
    return choose(compare(k, 0, _core.compares["lt"], None), k + n, k), inside if later else None


def _recorded_gather(x, indices):
    """The same as rows of a matrix, whose gradient is known: the dimensions with indices become its rows, the others its columns."""
    at = [i for i, k in enumerate(indices) if k is not None]
    rest = [i for i, k in enumerate(indices) if k is None]
    rows, inside = full_on(stream_of(x), (), 0, I64), None
    for i in at:
        k, there = _counted("index", x, i, indices[i])
        rows = rows * x.shape[i] + k
        inside = there if inside is None else inside if there is None else inside & there
    table = permute_dims(x, at + rest)
    count = 1
    for i in at:
        count *= x.shape[i]
    table = reshape(table, (count, x.size // count if count else 0))
    taken = reshape(record("embedding", [table, rows]), (*rows.shape, *(x.shape[i] for i in rest)))
    if inside is not None:
        taken = choose(reshape(broadcast_to(inside, rows.shape), (*rows.shape, *(1 for _ in rest))), taken, math.nan if x.dtype.kind == "f" else 0)
    place = at[0] if at[-1] - at[0] + 1 == len(at) else 0
    order = [*range(rows.ndim, rows.ndim + place), *range(rows.ndim), *range(rows.ndim + place, taken.ndim)]
    return permute_dims(taken, order)


def getitem(x, key):
    if type(key) is int:
        return squeeze(slice_of(x, 0, place_of(0, len(x), key), 1), 0) if x.shape else _no_dimensions()
    view, entries = _masks_to_places(x, _expand(x, key))
    view, indices = _view(view, entries)
    if indices is not None:
        return gather_at(view, indices)
    return again(x) if view is x else view


def _no_dimensions():
    raise IndexError("1 indices of an array of 0 dimensions")


def setitem(x, key, value):
    """What x is from now on: its own memory, if no other array has that, else a copy of it."""
    entries = _expand(x, key)
    if isinstance(value, (np.ndarray, np.generic)):
        value = from_numpy(np.asarray(value), x.device)
    elif not isinstance(value, (Array, int, float, complex)):
        raise TypeError(f"{type(value).__name__} is no value of an array")
    beside = again(x) if value is x or builtins.any(k is x for k in entries) else None  # so that what is written is not what is read
    owned = Array(make("rdna_array_own", x.pointer), x.pairs)
    view, indices = _view(*_masks_to_places(owned, entries))
    if indices is None:
        _write(view, value)
    else:
        shape = _indexed_shape(view, indices)
        values = value if isinstance(value, Array) else full_on(stream_of(x), (), value, x.dtype)
        values = broadcast_to(_without_ones(cast(values, x.dtype), shape), shape)
        if values.size:
            gather_at(view, indices)  # which refuses an index that is outside, before anything is written
            run("index_put", x, view, _tensors(view, indices), values, 1, None)  # of several for one place the last
    del beside
    become(x, owned)


def _without_ones(values, shape):
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = squeeze(values, 0)
    return values


def _write(view, value):
    """|value|, broadcast, into what |view| shows."""
    if isinstance(value, Array) or view.pairs:
        value = value if isinstance(value, Array) else full_on(stream_of(view), (), value, view.dtype)
        if value.pairs or view.pairs:
            value = cast(value, view.dtype)
        run("copy", view, broadcast_to(_without_ones(value, view.shape), view.shape), view)
    else:
        run("fill", view, number(value, view.dtype), view)


def take(x, indices, /, *, axis=None):
    """x at |indices| of dimension |axis|, which may be left out for one dimension."""
    x, indices = need("take", x), need("take", indices)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    if indices.dtype.kind not in "iu":
        raise IndexError(f"take: indices are integers, not {indices.dtype}")
    indices = indices if indices.dtype in (I32, I64) else cast(indices, I64)
    at = axis_of("take", axis, x.ndim)
    return gather_at(x, [indices if i == at else None for i in range(x.ndim)])


def index_add(x, indices, values, /, *, axis=0):
    """x with |values| added where |indices|, integers, say along |axis|, as often as they say so: NumPy's add.at on a copy. Of floats; values are of the shape
    that take(x, indices, axis) has, or broadcast to it."""
    x, indices, values = (need("index_add", v) for v in (x, indices, values))
    if x.dtype.kind != "f":
        raise TypeError(f"index_add is of real floats, not of {x.dtype}")
    axis = axis_of("index_add", axis, x.ndim)
    place = lazy(full_on(stream_of(x), x.shape, 0, x.dtype))
    taken = take(place, indices, axis=axis)
    values = broadcast_to(cast(values, x.dtype), taken.shape)
    # what a sum of values times what is taken changes by
    spread, = gradients([taken], [values if is_lazy(values) else lazy(values)], [place])
    made = spread + x
    return made if is_lazy(x) or is_lazy(values) or is_lazy(indices) else evaluate([made])[0]


def take_along_axis(x, indices, /, *, axis=-1):
    """x at |indices| of dimension |axis|, for each place of the others."""
    x, indices = need("take_along_axis", x), need("take_along_axis", indices)
    if x.ndim != indices.ndim:
        raise ValueError(f"take_along_axis: indices have {indices.ndim} dimensions, the array {x.ndim}")
    axis = axis_of("take_along_axis", axis, x.ndim)
    indices, n, inside = cast(indices, I64), x.shape[axis], None
    recorded = is_lazy(x) or is_lazy(indices)
    if recorded and x.pairs:
        return from_parts_of(take_along_axis, x, indices, axis=axis)
    if recorded:
        indices, inside = _counted("take_along_axis", x, axis, indices)
    else:
        indices = choose(compare(indices, 0, _core.compares["lt"], None), indices + n, indices)
    shape = list(broadcast_shapes(x.shape[:axis] + (1,) + x.shape[axis + 1:], indices.shape[:axis] + (1,) + indices.shape[axis + 1:]))
    x = broadcast_to(x, (*shape[:axis], n, *shape[axis + 1:]))
    indices = broadcast_to(indices, (*shape[:axis], indices.shape[axis], *shape[axis + 1:]))
    if recorded:
        taken = Array(make("rdna_array_gather", x.pointer, axis, indices.pointer))
        return taken if inside is None else choose(inside, taken, math.nan if x.dtype.kind == "f" else 0)
    made = empty_on(stream_of(x), indices.shape, x.dtype)
    if made.size == 0:
        return made
    outside = _Outside(x)
    if x.pairs:
        indices = expand_dims(indices, axis=indices.ndim)
        indices = broadcast_to(indices, (*indices.shape[:-1], 2))
    run("gather", x, x, axis, indices, made, outside.address)
    outside.check("take_along_axis", x.shape)
    return made


def from_parts_of(function, x, *arguments, **options):
    """A function of complex x that does the same to real and imaginary parts."""
    from ._pointwise import from_parts

    return from_parts(*(function(part_of(x, i), *arguments, **options) for i in (0, 1)))


def nonzero(x, /):
    """For each dimension the coordinates of values that are not 0."""
    x = need("nonzero", x)
    if x.ndim == 0:
        raise ValueError("nonzero: an array of no dimensions has no coordinates")
    if x.pairs:
        x = reduce(compare(parts(x), 0, _core.compares["ne"], _core.compares["ne"]), "any", (x.ndim,), False)
    rows = nonzero_rows(x)
    return tuple(squeeze(slice_of(rows, 1, i, 1), 1) for i in range(x.ndim))
