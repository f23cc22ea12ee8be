"""Products of matrices and vectors."""

from ._array import Array, axes_of, cast, empty_on, need, one_type, reduce, run, stream_of
from ._core import Complex, make
from ._moving import broadcast_shapes, broadcast_to, expand_dims, matrix_transpose, moveaxis, permute_dims, reshape, slice_of, squeeze
from ._own import own
from ._pointwise import conj, multiply

_BLOCK = 1 << 22  # products of integers that are in memory at once


def matmul(x1, x2, /):
    """Products of matrices, as numpy.matmul; x1 @ x2."""
    x1, x2 = one_type("matmul", [need("matmul", x1), need("matmul", x2)])
    if x1.dtype.kind == "f":
        return Array(make("rdna_array_matmul", x1.pointer, x2.pointer))
    if not x1.ndim or not x2.ndim:
        raise ValueError("matmul: an array of no dimensions is no matrix")
    row, column = x1.ndim == 1, x2.ndim == 1
    a, b = expand_dims(x1) if row else x1, expand_dims(x2, axis=1) if column else x2
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: {x1.dtype} {x1.shape} by {x2.dtype} {x2.shape}: the last dimension of the first and the one before the last of "
                         "the second must be equal")
    made = _complex_product(a, b) if a.pairs else _whole_product(a, b)
    if row:
        made = squeeze(made, made.ndim - 2)
    return squeeze(made, made.ndim - 1) if column else made


def _complex_product(a, b):
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    flat = [reshape(broadcast_to(x, (*batch, *x.shape[-2:])), (-1 if x.size else _product(batch), *x.shape[-2:])) for x in (a, b)]
    return reshape(_complex_batches(*flat), (*batch, a.shape[-2], b.shape[-1]))


def _batches_rule(given, made, came):
    (a, b), (g,) = given, came
    return _complex_batches(g, conj(matrix_transpose(b))), _complex_batches(conj(matrix_transpose(a)), g)


@own(lambda a, b: [((a.shape[0], a.shape[1], b.shape[2]), a.dtype)], _batches_rule, "matmul")
def _complex_batches(a, b):
    """Of (batch, m, k) and (batch, k, n)."""
    made = empty_on(stream_of(a), (a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    if made.size:
        run("complex_gemm", a, Complex(1, 0), a, False, b, False, False, made)
    return made


def _product(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def _whole_product(a, b):
    """Of integers, of which there are no matrix products but of signed bytes: rows times columns, summed, some rows at a time."""
    rows, dtype = a.shape[-2], a.dtype
    each = _product(broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-1] * b.shape[-1]
    step = max(1, _BLOCK // each) if each else rows
    columns, made = expand_dims(matrix_transpose(b), axis=-3), []
    for row in range(0, rows, step) if rows else (0,):
        some = expand_dims(slice_of(a, a.ndim - 2, row if rows else 0, min(step, rows - row)), axis=-2)
        products = multiply(some, columns)
        made.append(cast(reduce(products, "sum", (products.ndim - 1,), False), dtype))
    if len(made) == 1:
        return made[0]
    from ._moving import concat

    return concat(made, axis=-2)


def tensordot(x1, x2, /, *, axes=2):
    """Products summed over the last |axes| dimensions of x1 and the first of x2, or over two lists of dimensions."""
    x1, x2 = one_type("tensordot", [need("tensordot", x1), need("tensordot", x2)])
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ValueError(f"tensordot: {axes} axes of arrays of {x1.ndim} and {x2.ndim} dimensions")
        first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    else:
        first, second = (axes_of("tensordot", a if isinstance(a, (tuple, list)) else (a,), x.ndim) for a, x in zip(axes, (x1, x2)))
    sizes = [x1.shape[i] for i in first]
    if sizes != [x2.shape[i] for i in second]:
        raise ValueError(f"tensordot: axes {first} of {x1.shape} and {second} of {x2.shape} differ in size")
    left = [i for i in range(x1.ndim) if i not in first]
    right = [i for i in range(x2.ndim) if i not in second]
    m, k, n = _product(x1.shape[i] for i in left), _product(sizes), _product(x2.shape[i] for i in right)
    made = matmul(reshape(permute_dims(x1, (*left, *first)), (m, k)), reshape(permute_dims(x2, (*second, *right)), (k, n)))
    return reshape(made, (*(x1.shape[i] for i in left), *(x2.shape[i] for i in right)))


def vecdot(x1, x2, /, *, axis=-1):
    """Products of vectors along |axis|, of the conjugates of x1 with x2."""
    x1, x2 = one_type("vecdot", [need("vecdot", x1), need("vecdot", x2)])
    if not -min(x1.ndim, x2.ndim) <= axis < max(x1.ndim, x2.ndim) or x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: arrays {x1.shape} and {x2.shape} have no vectors of one size along axis {axis}")
    rows, columns = expand_dims(conj(moveaxis(x1, axis, -1)), axis=-2), expand_dims(moveaxis(x2, axis, -1), axis=-1)
    made = matmul(rows, columns)
    return squeeze(made, (made.ndim - 2, made.ndim - 1))
