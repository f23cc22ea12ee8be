"""Other shapes and orders of the same values, and arrays put together."""

import builtins
import ctypes
import operator

from ._array import Array, again, axes_of, axis_of, need, one_type, stream_of, tensor_of
from ._core import I64, make, sizes
from ._making import arange_on, shape_of


def _ints(values):
    return (ctypes.c_int * len(values))(*values) if values else None


def reshape(x, /, shape, *, copy=None):
    """The same values in another shape, one size of which may be -1: what is left."""
    x, shape = need("reshape", x), shape_of(shape)
    if x.pairs:
        if -1 in shape:
            known = 1
            for n in shape:
                known *= n if n != -1 else 1
            shape = tuple(n if n != -1 else x.size // known if known else 0 for n in shape)
        shape = (*shape, 2)
    made = Array(make("rdna_array_reshape", x.pointer, len(shape), sizes(shape)), x.pairs)
    if copy is False and x.size and tensor_data(made) != tensor_data(x):
        raise ValueError(f"reshape: an array {x.shape} of these strides has no view of shape {made.shape}; leave `copy` out")
    return made


def tensor_data(x):
    """The address of the first value."""
    return ctypes.c_void_p.from_address(tensor_of(x)).value


def permute_dims(x, /, axes):
    """Dimension i is what was dimension axes[i]."""
    x, axes = need("permute_dims", x), tuple(axes)
    if len(axes) != x.ndim:
        raise ValueError(f"permute_dims: {len(axes)} axes of an array of {x.ndim} dimensions")
    axes = axes_of("permute_dims", axes, x.ndim)
    return Array(make("rdna_array_permute", x.pointer, _ints((*axes, x.ndim) if x.pairs else axes)), x.pairs)


def matrix_transpose(x, /):
    """The last two dimensions change places."""
    x = need("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"an array of {x.ndim} dimensions has no matrices")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def moveaxis(x, source, destination, /):
    """The dimensions |source| come to |destination|, the others keep their order."""
    x = need("moveaxis", x)
    source, destination = (axes_of("moveaxis", a if isinstance(a, (tuple, list)) else (a,), x.ndim) for a in (source, destination))
    if len(source) != len(destination):
        raise ValueError(f"moveaxis: {len(source)} axes to {len(destination)} places")
    rest = [d for d in range(x.ndim) if d not in source]
    for place, axis in sorted(zip(destination, source)):
        rest.insert(place, axis)
    return permute_dims(x, rest)


def broadcast_to(x, /, shape):
    """A view in which sizes of 1, and dimensions that are missing in front, repeat."""
    x, shape = need("broadcast_to", x), shape_of(shape)
    if x.pairs:  # whose last dimension is not one to align
        x = reshape(x, (1,) * (len(shape) - x.ndim) + x.shape)
        shape = (*shape, 2)
    return Array(make("rdna_array_broadcast", x.pointer, len(shape), sizes(shape)), x.pairs)


def broadcast_shapes(*shapes):
    """The shape that all are broadcast to."""
    joined = [1] * builtins.max((len(s) for s in shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(reversed(shape), 1):
            if joined[-i] == 1:
                joined[-i] = n
            elif n not in (1, joined[-i]):
                raise ValueError(f"arrays {', '.join(str(s) for s in shapes)} have no common shape: {joined[-i]} and {n} meet at dimension {i} from "
                                 "the end, and neither is 1")
    return tuple(joined)


def broadcast_arrays(*arrays):
    """Views of all in the shape that they are broadcast to."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def expand_dims(x, /, axis=0):
    """With a dimension of size 1 before |axis|, or at several places of the result."""
    x = need("expand_dims", x)
    several = axis if isinstance(axis, (tuple, list)) else (axis,)
    for place in sorted(_axes_of_more(several, x.ndim + len(several))):
        x = Array(make("rdna_array_expand", x.pointer, place), x.pairs)
    return x


def _axes_of_more(axes, ndim):
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"expand_dims: axis {axis} of an array that then has {ndim} dimensions")
    return axes_of("expand_dims", axes, ndim)


def squeeze(x, /, axis):
    """Without the dimensions |axis|, which have size 1."""
    x = need("squeeze", x)
    axes = axes_of("squeeze", axis if axis is not None else [i for i, n in enumerate(x.shape) if n == 1], x.ndim)
    for dim in sorted(axes, reverse=True):
        x = Array(make("rdna_array_squeeze", x.pointer, dim), x.pairs)
    return again(x) if not axes else x


def slice_of(x, dim, start, count, step=1):
    """A view of |count| places of dimension |dim|, counted from the start."""
    return Array(make("rdna_array_slice", x.pointer, dim, start, count, step), x.pairs)


def contiguous(x):
    """x with its values in order and without gaps."""
    return Array(make("rdna_array_contiguous", x.pointer), x.pairs)


def concat(arrays, /, *, axis=0):
    """The arrays one after another along |axis|, promoted; None: all their values, in one dimension."""
    arrays = one_type("concat", [need("concat", x) for x in arrays])
    if axis is None:
        arrays, axis = [reshape(x, (x.size,)) for x in arrays], 0
    axis = axis_of("concat", axis, arrays[0].ndim)
    return Array(make("rdna_array_concat", (ctypes.c_void_p * len(arrays))(*(x.pointer for x in arrays)), len(arrays), axis), arrays[0].pairs)


def stack(arrays, /, *, axis=0):
    """Arrays of one shape beside each other in a new dimension |axis|."""
    arrays = [need("stack", x) for x in arrays]
    shapes = {x.shape for x in arrays}
    if len(shapes) != 1:
        raise ValueError(f"stack is of arrays of one shape, not of {', '.join(str(s) for s in sorted(shapes))}")
    axis = axis_of("stack", axis, arrays[0].ndim + 1)
    return concat([expand_dims(x, axis=axis) for x in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """The places of dimension |axis|, each an array."""
    x = need("unstack", x)
    axis = axis_of("unstack", axis, x.ndim)
    return tuple(squeeze(slice_of(x, axis, i, 1), axis) for i in range(x.shape[axis]))


def flip(x, /, *, axis=None):
    """Backwards along |axis|, one or several; None: all."""
    x = need("flip", x)
    for dim in axes_of("flip", axis, x.ndim):
        n = x.shape[dim]
        if n:
            x = slice_of(x, dim, n - 1, n, -1)
    return again(x)


def roll(x, /, shift, *, axis=None):
    """Values |shift| places on along |axis|, those that leave at the end coming in at the front; None: through all in order."""
    x = need("roll", x)
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, axis=0), x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts along {len(axes)} axes")
    for by, dim in zip(shifts, axes):
        dim = axis_of("roll", dim, x.ndim)
        n = x.shape[dim]
        by = operator.index(by) % n if n else 0
        if by:
            x = concat([slice_of(x, dim, n - by, by), slice_of(x, dim, 0, n - by)], axis=dim)
    return again(x)


def _repeated(x, dim, times):
    """Dimension |dim| |times| times over."""
    shape = x.shape
    whole = expand_dims(x, axis=dim)
    return reshape(broadcast_to(whole, shape[:dim] + (times,) + shape[dim:]), shape[:dim] + (times * shape[dim],) + shape[dim + 1:])


def tile(x, repetitions, /):
    """x beside itself, repetitions[i] times along dimension i, counted from the last."""
    x = need("tile", x)
    repetitions = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
    x = reshape(x, (1,) * (len(repetitions) - x.ndim) + x.shape)
    for dim, times in enumerate(repetitions):
        if times != 1:
            x = _repeated(x, dim, times)
    return again(x)


def repeat(x, repeats, /, *, axis=None):
    """Each value |repeats| times, a number or one for each place of |axis|; None: of all values in order."""
    x = need("repeat", x)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis, shape = axis_of("repeat", axis, x.ndim), x.shape
    if isinstance(repeats, Array) and repeats.size != 1:
        from ._ordering import cumulative_sum, searchsorted
        from ._indexing import take

        if repeats.shape != (shape[axis],):
            raise ValueError(f"repeat: {repeats.shape} numbers for the {shape[axis]} places of axis {axis}")
        ends = cumulative_sum(repeats, dtype=I64)
        total = int(ends[-1]) if shape[axis] else 0
        return take(x, searchsorted(ends, arange_on(stream_of(x), I64, total, 0, 1), side="right"), axis=axis)
    times = int(repeats.item() if isinstance(repeats, Array) else repeats)
    each = broadcast_to(expand_dims(x, axis=axis + 1), shape[:axis + 1] + (times,) + shape[axis + 1:])
    return reshape(each, shape[:axis] + (shape[axis] * times,) + shape[axis + 1:])
