"""Matrices: the array API's extension, with its names.

Real matrices are factored by librdna's operators. Complex ones become real ones of twice the size where that has the answer, and are
orthogonalized column by column where it has not.
"""

import math
import typing

import numpy as np

from . import _core
from ._array import (
    Array, axes_of, axis_of, bits_of, cast, choose, empty_on, full_on, is_lazy, need, one_type, part_of, parts, reduce, run, stream_of, unary)
from ._core import C64, C128, F32, I32, make, scalar
from ._indexing import take_along_axis
from ._making import tril, triu
from ._moving import broadcast_shapes, broadcast_to, concat, contiguous, expand_dims, matrix_transpose, permute_dims, reshape, slice_of, squeeze, stack
from ._ordering import argsort, sort
from ._own import own, same
from ._pointwise import (
    abs, conj, divide, exp2, floor, from_parts, imag, isfinite, log, multiply, negative, pow, real, sign, sqrt, square, subtract, where)
from ._products import matmul, tensordot, vecdot  # noqa: F401
from ._reducing import max as _max
from ._reducing import min as _min
from ._reducing import prod as _prod
from ._reducing import sum as _sum
from ._types import finfo

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
           "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


class eigh_result(typing.NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class qr_result(typing.NamedTuple):
    Q: Array
    R: Array


class slogdet_result(typing.NamedTuple):
    sign: Array
    logabsdet: Array


class svd_result(typing.NamedTuple):
    U: Array
    S: Array
    Vh: Array


class LinAlgError(ValueError):
    """A matrix that has no such factors, or no inverse."""


# ---- batches ----


def _matrices(name, x, square=False):
    x = need(name, x)
    if x.ndim < 2:
        raise ValueError(f"{name} is of matrices; an array of {x.ndim} dimensions has none")
    if x.dtype.kind not in "fc":
        raise TypeError(f"{name} is of floating types, not of {x.dtype}; cast the array")
    if x.dtype.itemsize == 2:
        raise TypeError(f"{name} is of float32 and float64, not of {x.dtype}; cast the array")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name} is of square matrices, not of shape {x.shape}")
    return x


def _count(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def _batch(x):
    """x as (batch, m, n), in memory of its own that a factorization may write."""
    made = empty_on(stream_of(x), (_count(x.shape[:-2]), *x.shape[-2:]), x.dtype)
    run("copy", x, reshape(x, made.shape), made)
    return made


def _unbatch(x, like):
    """(batch, m, n) with |like|'s dimensions before the last two."""
    return reshape(x, (*like.shape[:-2], *x.shape[1:]))


def _identity(x, rows, columns):
    """A batch of identities for x (batch, m, n), written and to be written."""
    made = full_on(stream_of(x), (x.shape[0], rows, columns), 0, x.dtype)
    run("fill", x, scalar(1), diagonal(part_of(made, 0) if made.pairs else made))
    return made


def _info(x):
    return full_on(stream_of(x), (x.shape[0],), 0, I32)


def _embed(x):
    """Complex (batch, m, n) as real (batch, 2 m, 2 n), each number a + b i as the block a -b, b a."""
    re, im = real(x), imag(x)
    rows = [stack([re, _negative(im)], axis=-1), stack([im, re], axis=-1)]
    blocks = stack(rows, axis=2)  # (batch, m, 2, n, 2)
    return reshape(blocks, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2]))


def _negative(x):
    return unary(x, _core.maps["neg"])


def _extract(x):
    """The complex matrices of such blocks."""
    batch, m, n = x.shape[0], x.shape[1] // 2, x.shape[2] // 2
    first = squeeze(slice_of(reshape(x, (batch, m, 2, n, 2)), 4, 0, 1), 4)  # (batch, m, 2, n): a, b
    made = empty_on(stream_of(x), (batch, m, n), C64 if x.dtype == F32 else C128)
    run("copy", x, permute_dims(first, (0, 1, 3, 2)), parts(made))
    return made


def _adjoint(x):
    """Conjugates, the other way round."""
    return conj(matrix_transpose(x)) if x.pairs else matrix_transpose(x)


def _symmetric(x):
    """The mean of x and its adjoint."""
    return multiply(x + _adjoint(x), 0.5)


def _on_diagonal(values, like):
    """Square matrices with |values| (…, n) on the diagonal, and 0 elsewhere, of |like|'s type."""
    n = values.shape[-1]
    return multiply(cast(expand_dims(values, axis=-1), like.dtype), _eye(n, like))


def _eye(n, like):
    """The identity as one matrix."""
    made = full_on(stream_of(like), (n, n), 0, like.dtype)
    run("fill", made, scalar(1), diagonal(part_of(made, 0) if made.pairs else made))
    return made


def _off_diagonal(x):
    return multiply(x, 1 - _eye(x.shape[-1], x))


# ---- products and parts ----


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices that begin at column |offset|, a view."""
    x = need("diagonal", x)
    if x.ndim < 2:
        raise ValueError(f"diagonal is of matrices; an array of {x.ndim} dimensions has none")
    if is_lazy(x):  # every so many of the values in a row
        rows, columns = x.shape[-2:]
        count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        start = (offset if offset >= 0 else -offset * columns) if count else 0
        return slice_of(reshape(x, (*x.shape[:-2], rows * columns)), x.ndim - 2, start, count, columns + 1)
    return Array(make("rdna_array_diagonal", x.pointer, x.ndim - 2, x.ndim - 1, offset), x.pairs)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1, x2, /):
    """Each value of x1 times each of x2, of one dimension both."""
    x1, x2 = need("outer", x1), need("outer", x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer is of arrays of one dimension, not of {x1.ndim} and {x2.ndim}")
    return multiply(expand_dims(x1, axis=1), expand_dims(x2, axis=0))


def cross(x1, x2, /, *, axis=-1):
    """Cross products of vectors of three along |axis|."""
    x1, x2 = one_type("cross", [need("cross", x1), need("cross", x2)])
    shape = broadcast_shapes(x1.shape, x2.shape)
    if not -min(x1.ndim, x2.ndim) <= axis < max(x1.ndim, x2.ndim) or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: arrays {x1.shape} and {x2.shape} have no vectors of 3 along axis {axis}")
    axis = axis_of("cross", axis, len(shape))
    a, b = ([slice_of(x, axis, i, 1) for i in range(3)] for x in (broadcast_to(x1, shape), broadcast_to(x2, shape)))
    return concat([subtract(multiply(a[i], b[j]), multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))], axis=axis)


def matrix_power(x, n, /):
    """Square matrices multiplied by themselves |n| times; of a negative one their inverses."""
    x = _matrices("matrix_power", x, square=True)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        flat = reshape(x, (_count(x.shape[:-2]), *x.shape[-2:]))
        return _unbatch(_identity(flat, x.shape[-1], x.shape[-1]), x)
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return result


# ---- factorizations ----


# Rules for gradients are those of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008), of Seeger
# and others, "Auto-differentiating linear algebra" (2017), and for complex ones of Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019).


def _cholesky_rule(given, made, came, upper):
    """S of L^-H Phi(L^H g) L^-1, Phi being the lower triangle with half of the diagonal, made symmetric."""
    factor, g = (_adjoint(made[0]), _adjoint(came[0])) if upper else (made[0], came[0])
    inner = tril(matmul(_adjoint(factor), g))
    inner = inner - multiply(inner, _eye(inner.shape[-1], inner)) * 0.5
    inverse = solve(factor, _eye(factor.shape[-1], factor))
    return (_symmetric(matmul(matmul(_adjoint(inverse), inner), inverse)),)


def cholesky(x, /, *, upper=False):
    """L of positive definite matrices L L^H, or with |upper| U of U^H U. The other triangle is not read; gradients are symmetric."""
    return _cholesky(_matrices("cholesky", x, square=True), upper=bool(upper))


@own(same, _cholesky_rule)
def _cholesky(x, *, upper):
    a = _batch(x)
    if x.pairs:  # the factor of the blocks is the blocks of the factor; the triangle that is not read may be no conjugate
        a = conj(matrix_transpose(a)) if upper else a
        strict = tril(a, k=-1)
        middle = real(diagonal(a))
        a = _embed(strict + conj(matrix_transpose(strict)) + multiply(expand_dims(middle, axis=-1), _identity(a, a.shape[1], a.shape[1])))
    info = _info(a)
    run("cholesky", a, upper and not x.pairs, a, info)
    if info.size and _max(info).item():
        raise LinAlgError("cholesky: a matrix is not positive definite")
    if x.pairs:
        a = _extract(a)
        a = conj(matrix_transpose(a)) if upper else a
    return _unbatch(a, x)


def _qr(a, mode):
    """Of real (batch, m, n)."""
    batch, m, n = a.shape
    k = min(m, n)
    tau = empty_on(stream_of(a), (batch, k), a.dtype)
    run("qr", a, a, tau)
    columns = m if mode == "complete" else k
    q = _identity(a, m, columns)
    if q.size and k:
        run("reflect", a, False, True, a, tau, q)
    return q, triu(slice_of(a, 1, 0, columns))


def qr(x, /, *, mode="reduced"):
    """Orthonormal Q and triangular R of Q R; "complete": Q is square."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not '{mode}'")
    x = _matrices("qr", x)
    m, n = x.shape[-2:]
    if is_lazy(x) and m < n:  # the first columns have the factor, the others are by it
        q, r = qr(slice_of(x, x.ndim - 1, 0, m))
        return qr_result(q, concat([r, matmul(_adjoint(q), slice_of(x, x.ndim - 1, m, n - m))], axis=-1))
    return qr_result(*_qr_of(x, mode=mode))


def _qr_like(x, mode):
    m, n = x.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return [((*x.shape[:-2], m, k), x.dtype), ((*x.shape[:-2], k, n), x.dtype)]


def _qr_rule(given, made, came, mode):
    """(gQ + Q C) R^-H, C being the upper triangle of gR R^H - Q^H gQ made symmetric."""
    (q, r), (of_q, of_r) = made, came
    if q.shape[-1] > r.shape[-1]:
        raise TypeError("qr: the columns of Q behind the first are not unique, so that there is no gradient; mode='reduced' has none such")
    inner = None if of_r is None else matmul(of_r, _adjoint(r))
    if of_q is not None:
        projected = matmul(_adjoint(q), of_q)
        inner = _negative_of(projected) if inner is None else inner - projected
    inner = triu(inner)
    inner = inner + _adjoint(_strict(inner))
    if inner.pairs:  # R's diagonal is real
        inner = inner - multiply(inner, _eye(inner.shape[-1], inner)) + _on_diagonal(real(diagonal(inner)), inner)
    turned = matmul(q, inner)
    return (_adjoint(solve(r, _adjoint(turned if of_q is None else turned + of_q))),)


def _strict(upper):
    return triu(upper, k=1)


def _negative_of(x):
    return multiply(x, -1.0)


@own(_qr_like, _qr_rule, "qr")
def _qr_of(x, *, mode):
    a = _batch(x)
    if x.pairs:
        q = _orthonormal(a, a.shape[1] if mode == "complete" else min(a.shape[1:]))
        r = triu(matmul(conj(matrix_transpose(q)), a))
    else:
        q, r = _qr(a, mode)
    return _unbatch(q, x), _unbatch(r, x)


def _solve(a, b):
    """Real (batch, n, n) and (batch, n, k), both written; says whether a matrix is singular."""
    n = a.shape[1]
    pivots, info = empty_on(stream_of(a), (a.shape[0], n), I32), _info(a)
    run("lu", a, True, a, pivots, info)
    run("swap_rows", a, False, pivots, b)
    run("solve_triangular", a, False, True, a, b)
    run("solve_triangular", a, True, False, a, b)
    return info


def _solved(name, a, b):
    """The solutions, of complex batches too."""
    made = b if b.pairs else None
    if a.pairs:
        a, b = _embed(a), _embed(b)
    info = _solve(a, b)
    if info.size and _max(info).item():
        raise LinAlgError(f"{name}: a matrix is singular")
    return _extract(b) if made is not None else b


def _solved_rule(given, made, came):
    a, x = given[0], made[0]
    g = _solution(_adjoint(a), came[0])
    return _negative_of(matmul(g, _adjoint(x))), g


@own(lambda a, b: [(b.shape, b.dtype)], _solved_rule, "solve")
def _solution(a, b):
    """Of matrices and right sides with the same dimensions before the last two."""
    return _unbatch(_solved("solve", _batch(a), _batch(b)), b)


def solve(x1, x2, /):
    """x of x1 x = x2; x2 is a vector if it has one dimension, else matrices."""
    x1, x2 = one_type("solve", [_matrices("solve", x1, square=True), need("solve", x2)])
    vector = x2.ndim == 1
    right = expand_dims(x2, axis=1) if vector else x2
    if not right.ndim or right.shape[-2] != x1.shape[-1]:
        raise ValueError(f"solve: matrices of shape {x1.shape} and right sides of shape {x2.shape}")
    batch = broadcast_shapes(x1.shape[:-2], right.shape[:-2])
    a, b = broadcast_to(x1, (*batch, *x1.shape[-2:])), broadcast_to(right, (*batch, *right.shape[-2:]))
    made = _solution(a, b)
    return squeeze(made, made.ndim - 1) if vector else made


def inv(x, /):
    """The inverses of square matrices."""
    return _inverse(_matrices("inv", x, square=True))


@own(same, lambda given, made, came: (_negative_of(matmul(matmul(_adjoint(made[0]), came[0]), _adjoint(made[0]))),), "inv")
def _inverse(x):
    a = _batch(x)
    return _unbatch(_solved("inv", a, _identity(a, x.shape[-1], x.shape[-1])), x)


def _triangular_with_sign(a):
    """The diagonal of U of P A = L U, (batch, n), and the sign of P."""
    batch, n = a.shape[0], a.shape[2]
    if a.pairs:
        return _eliminate(a)
    pivots, info = empty_on(stream_of(a), (batch, n), I32), _info(a)
    run("lu", a, True, a, pivots, info)
    stay = Array(make("rdna_array_arange", stream_of(a), _core.number_of[I32], n, scalar(1), scalar(1)))
    moves = _sum(cast(pivots != stay, I32), axis=1)
    return diagonal(a), cast(1 - moves % 2 * 2, a.dtype)


def _eliminate(a):
    """The same of complex matrices, a column at a time."""
    batch, n = a.shape[0], a.shape[2]
    swaps, found = full_on(stream_of(a), (batch,), 1, _core.part_of[a.dtype]), []
    for k in range(n):
        size = n - k
        column = slice_of(a, 2, 0, 1)
        at = reduce(abs(squeeze(column, 2)), "argmax", (1,), True)  # (batch, 1)
        swaps = multiply(swaps, cast(squeeze(1 - (at != 0) * 2, 1), swaps.dtype))
        places = Array(make("rdna_array_arange", stream_of(a), _core.number_of[_core.I64], size, scalar(0), scalar(1)))
        order = choose(places == 0, at, choose(places == at, 0, broadcast_to(places, (batch, size))))
        a = take_along_axis(a, expand_dims(order, axis=2), axis=1)
        top, pivot = slice_of(a, 1, 0, 1), slice_of(slice_of(a, 1, 0, 1), 2, 0, 1)
        found.append(squeeze(squeeze(pivot, 2), 1))
        below = slice_of(slice_of(a, 1, 1 if size > 1 else 0, size - 1), 2, 0, 1)
        safe = where(pivot == 0, full_on(stream_of(a), (), 1, a.dtype), pivot)
        rest = slice_of(slice_of(a, 1, 1 if size > 1 else 0, size - 1), 2, 1 if size > 1 else 0, size - 1)
        a = subtract(rest, multiply(divide(below, safe), slice_of(top, 2, 1 if size > 1 else 0, size - 1)))
    values = stack(found, axis=1) if found else full_on(stream_of(a), (batch, 0), 1, swaps.dtype)
    return values, swaps


def _as_matrix(x):
    return expand_dims(expand_dims(x, axis=x.ndim), axis=x.ndim + 1)


def _cofactor_rule(given, made, came):
    """By those of the determinant times the inverse, which singular matrices have not."""
    (x,), (g,) = given, came
    inverse = inv(x)
    y = multiply(_as_matrix(_det(x)), matrix_transpose(inverse))  # C; dC = tr(A^-1 dA) C - A^-T dA^T C
    along = _sum(multiply(conj(y) if y.pairs else y, g), axis=(-2, -1), keepdims=True)
    adjoint = _adjoint(inverse)
    turned = matmul(matmul(conj(y) if y.pairs else y, matrix_transpose(g)), adjoint)
    return (subtract(multiply(along, adjoint), turned),)


@own(same, _cofactor_rule, name="det")
def _cofactors(x):
    """The derivatives of determinants by their elements, of singular matrices too: by singular values all but one of which are multiplied. Those are
    right beside the largest one; so that rows and columns of other sizes than the rest keep their digits they are brought to one size before."""
    if x.size == 0:
        return x
    x, power = _evened(x)
    u, s, vh = svd(x)
    n = s.shape[-1]
    others = [_prod(concat([slice_of(s, s.ndim - 1, 0, i), slice_of(s, s.ndim - 1, i + 1, n - i - 1)], axis=-1), axis=-1, keepdims=True) for i in range(n)]
    scale = multiply(_as_matrix(multiply(_det(u), _det(vh))), expand_dims(cast(concat(others, axis=-1), x.dtype), axis=-2))
    u, vh = (conj(m) if m.pairs else m for m in (u, vh))
    slope, half = matmul(multiply(u, scale), vh), floor(power * 0.5)
    return multiply(multiply(slope, exp2(half)), exp2(power - half))  # by two, as one may be out of range and the result not


def _exponent(x, axis):
    """e of the power of two 2^e that is next below the largest magnitude along |axis|, which stays with size 1; 0 where that is 0 or not finite."""
    most = _max(abs(x), axis=axis, keepdims=True)
    width, fraction = (64, 52) if most.dtype.itemsize == 8 else (32, 23)
    exponent = (bits_of(most) >> fraction) - (2 ** (width - fraction - 2) - 1)
    return cast(choose((most >= finfo(most.dtype).smallest_normal) & isfinite(most), exponent, 0), most.dtype)


def _evened(x):
    """x with its rows, then its columns divided by powers of two so that their largest values are near 1; and the powers by which that changes the
    derivative of the determinant by each element: those of all other rows and columns."""
    total = 0.0
    for axis in (-1, -2):
        exponent = _exponent(x, axis)
        half = floor(exponent * 0.5)
        x = multiply(multiply(x, exp2(negative(half))), exp2(half - exponent))
        total = _sum(exponent, axis=(-2, -1), keepdims=True) - exponent + total
    return x, total


def _det_rule(given, made, came):
    (x,), (g,) = given, came
    slope = _cofactors(x)
    return (multiply(_as_matrix(g), conj(slope) if slope.pairs else slope),)


def det(x, /):
    """Determinants. The second derivatives of singular ones are an error."""
    return _det(_matrices("det", x, square=True))


@own(lambda x: [(x.shape[:-2], x.dtype)], _det_rule)
def _det(x):
    values, swaps = _triangular_with_sign(_batch(x))
    return reshape(multiply(_prod(cast(values, x.dtype), axis=1), swaps), x.shape[:-2])


def _slogdet_rule(given, made, came):
    (x,), (of_sign, of_log) = given, came
    factor = None if of_log is None else cast(of_log, x.dtype)
    if of_sign is not None and x.pairs:  # the angle of the sign changes, a real sign does not
        angle = imag(conj(of_sign) * made[0])
        turned = from_parts(full_on(stream_of(angle), angle.shape, 0, angle.dtype), _negative_of(angle))
        factor = turned if factor is None else factor + turned
    return (None if factor is None else multiply(_as_matrix(factor), _adjoint(inv(x))),)


def slogdet(x, /):
    """Signs of determinants and logarithms of their magnitudes: 0 and -infinity of singular matrices, which have no gradients."""
    return slogdet_result(*_slogdet(_matrices("slogdet", x, square=True)))


@own(lambda x: [(x.shape[:-2], x.dtype), (x.shape[:-2], _core.part_of.get(x.dtype, x.dtype))], _slogdet_rule)
def _slogdet(x):
    values, swaps = _triangular_with_sign(_batch(x))
    values = cast(values, x.dtype)
    signs = multiply(_prod(sign(values), axis=1), swaps)
    return reshape(signs, x.shape[:-2]), reshape(_sum(log(abs(values)), axis=1), x.shape[:-2])


# ---- eigenvalues and singular values ----


def _scale(a):
    """(batch, 1, 1): the largest magnitude of each matrix, 1 where that is 0 or not finite."""
    if not a.size:
        return full_on(stream_of(a), (a.shape[0], 1, 1), 1, _core.part_of.get(a.dtype, a.dtype))
    most = _max(abs(a), axis=(1, 2), keepdims=True)
    return choose((most > 0) & isfinite(most), most, 1.0)


def _columns(a, order):
    """The columns of (batch, m, n) in the order (batch, k)."""
    order = expand_dims(order, axis=1)
    return take_along_axis(a, broadcast_to(order, (a.shape[0], a.shape[1], order.shape[2])), axis=2)


def _unmet(name, turned):
    if turned.size and _max(slice_of(turned, 1, turned.shape[1] - 1, 1)).item():
        raise LinAlgError(f"{name}: rotations did not come to an end; are all values finite?")


def _eigh(a):
    """Of real symmetric (batch, n, n), written: ascending values, vectors."""
    n, size = a.shape[1], _scale(a)
    a, v = divide(a, size), _identity(a, a.shape[1], a.shape[1])
    turned = full_on(stream_of(a), (a.shape[0], 30), 0, I32)
    if a.size:
        run("diagonalize", a, a, v, turned)
    _unmet("eigh", turned)
    values = contiguous(diagonal(a))
    order = argsort(values)
    return multiply(sort(values), squeeze(size, 2)) if n else values, _columns(v, order)


def _eigh_rule(given, made, came):
    """V (gL + (V^H gV) / E) V^H, E being the differences of eigenvalues."""
    (values, v), (of_values, of_v) = made, came
    inner = None if of_values is None else _on_diagonal(of_values, v)
    if of_v is not None:
        gaps = expand_dims(values, axis=-2) - expand_dims(values, axis=-1) + _eye(values.shape[-1], values)
        turned = divide(_off_diagonal(matmul(_adjoint(v), of_v)), gaps)
        inner = turned if inner is None else inner + turned
    return (_symmetric(matmul(matmul(v, inner), _adjoint(v))),)


def eigh(x, /):
    """Ascending eigenvalues and orthonormal eigenvectors, the columns, of symmetric or Hermitian matrices, whose lower triangle is read. Gradients are
    symmetric; by vectors of equal values there are none, nor by what depends on the signs or phases that vectors have."""
    return eigh_result(*_eigh_of(_matrices("eigh", x, square=True)))


@own(lambda x: [(x.shape[:-1], _core.part_of.get(x.dtype, x.dtype)), (x.shape, x.dtype)], _eigh_rule, "eigh")
def _eigh_of(x):
    lower = tril(x)
    strict = tril(x, k=-1)
    a = _batch(lower + (conj(matrix_transpose(strict)) if x.pairs else matrix_transpose(strict)))
    values, vectors = _eigh(_embed(a)) if x.pairs else _eigh(a)
    if x.pairs:
        values, vectors = _halves(values, vectors, x.dtype)
    return reshape(values, x.shape[:-1]), _unbatch(vectors, x)


def _as_complex_vectors(v, dtype):
    """Real columns (batch, 2 n, k), in pairs of real and imaginary parts, as complex ones (batch, n, k)."""
    batch, n, k = v.shape[0], v.shape[1] // 2, v.shape[2]
    made = empty_on(stream_of(v), (batch, n, k), dtype)
    run("copy", v, permute_dims(reshape(v, (batch, n, 2, k)), (0, 1, 3, 2)), parts(made))
    return made


def _halves(values, vectors, dtype):
    """Of the blocks every eigenvalue is there twice, with real vectors of which n are independent as complex ones: those that are farthest
    from the span of the ones before, orthonormal, and their values, in ascending order."""
    n = vectors.shape[1] // 2
    candidates = _as_complex_vectors(vectors, dtype)
    chosen, found = [], []
    for _ in range(n):
        at = reduce(_squares(candidates), "argmax", (1,), True)  # (batch, 1)
        vector = _unit(_columns(candidates, at))
        chosen.append(vector)
        found.append(take_along_axis(values, at, axis=1))
        for _ in range(2):
            candidates = subtract(candidates, matmul(vector, matmul(conj(matrix_transpose(vector)), candidates)))
    if not n:
        return slice_of(values, 1, 0, 0), candidates
    found, vectors = concat(found, axis=1), concat(chosen, axis=2)
    return sort(found), _columns(vectors, argsort(found))


def _squares(x):
    """The squared lengths of the columns of complex (batch, m, n)."""
    return _sum(square(real(x)) + square(imag(x)), axis=1)


def _unit(column):
    return multiply(column, 1 / sqrt(expand_dims(_squares(column), axis=1)))


def _orthonormal(a, count):
    """|count| orthonormal columns of complex (batch, m, n) of which the first span what its first do (Gram and Schmidt, twice over). Where a
    column adds nothing, and behind the last, the unit vector that is farthest from those before."""
    batch, m, n = a.shape
    dtype, eps = a.dtype, np.finfo(_core.part_of[a.dtype]).eps
    q, units = None, _identity(a, m, m)

    def without(x):
        for _ in range(2):
            x = x if q is None else subtract(x, matmul(q, matmul(conj(matrix_transpose(q)), x)))
        return x
    for j in range(count):
        rest = without(units)
        other = _unit(_columns(rest, reduce(_squares(rest), "argmax", (1,), True)))
        if j < n:
            column = slice_of(a, 2, j, 1)
            left = without(column)
            little = sqrt(_squares(left)) <= sqrt(_squares(column)) * (16 * m * eps)  # (batch, 1)
            mark = expand_dims(little, axis=1)
            other = where(mark, other, _unit(where(mark, other, left)))
        other = _unit(without(other))
        q = other if q is None else concat([q, other], axis=2)
    return q if q is not None else empty_on(stream_of(a), (batch, m, 0), dtype)


def _svd(a, full, wanted):
    """Of real (batch, m, n), m at least n: U, S, V. a = q r, and rotations turn r^T into v s; a v = u s."""
    n, size = a.shape[2], _scale(a)
    a = divide(a, size)
    work = _batch(a)
    w = _batch(matrix_transpose(_qr(work, "reduced")[1]))
    turned = full_on(stream_of(a), (a.shape[0], 20), 0, I32)
    if w.size:
        run("orthogonalize", a, float(np.finfo(a.dtype).eps), w, turned)
    _unmet("svd", turned)
    lengths = reduce(w, "norm", (1,), False, 2.0)
    s = multiply(sort(lengths, descending=True), squeeze(size, 2)) if n else lengths
    if not wanted:
        return None, s, None
    v, _ = _qr(_columns(w, argsort(lengths, descending=True)), "reduced")
    u, r = _qr(matmul(a, v), "complete" if full else "reduced")
    turn = choose(diagonal(r) < 0, -1.0, full_on(stream_of(a), (), 1, a.dtype))  # (batch, n)
    if n:
        first = multiply(slice_of(u, 2, 0, n), expand_dims(turn, axis=1))
        u = concat([first, slice_of(u, 2, n, u.shape[2] - n)], axis=2) if u.shape[2] > n else first
    return u, s, v


def _complex_svd(a, full, wanted):
    """The same of complex matrices: V and S from those of the blocks, U by making the columns of a V orthonormal."""
    m, n = a.shape[1:]
    size = _scale(a)
    a = multiply(a, 1 / size)
    _, s, v = _svd(_embed(a), False, True)
    values, v = _halves(_negative(s), v, a.dtype)
    s = _negative(values)
    if not wanted:
        return None, multiply(s, squeeze(size, 2)), None
    product = matmul(a, v)
    u = _orthonormal(product, m if full else n)
    inner = diagonal(matmul(conj(matrix_transpose(slice_of(u, 2, 0, n))), product))  # s, but for a phase
    length = abs(inner)
    phase = where(length > 0, divide(inner, cast(choose(length > 0, length, 1.0), a.dtype)), full_on(stream_of(a), (), 1, a.dtype))
    first = multiply(slice_of(u, 2, 0, n), expand_dims(phase, axis=1))
    u = concat([first, slice_of(u, 2, n, u.shape[2] - n)], axis=2) if u.shape[2] > n else first
    return u, multiply(s, squeeze(size, 2)), v


def _svd_like(x, full):
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    return [((*batch, m, m if full else k), x.dtype), ((*batch, k), _core.part_of.get(x.dtype, x.dtype)), ((*batch, n if full else k, n), x.dtype)]


def _svd_rule(given, made, came, full):
    """U (I gS + (skew(U^H gU) S + S skew(V^H gV)) / E) V^H, E being the differences of squares, and what of gU and gV is outside of U and V."""
    (u, s, vh), (of_u, of_s, of_vh) = made, came
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    if full and m != n and (of_u is not None or of_vh is not None):
        raise TypeError("svd: vectors behind the last singular value are not unique, so that there is no gradient; full_matrices=False has none such")
    if full and m != n:  # by vectors that are unique, so that the slope has one too
        u, s, vh = _svd_of(given[0], full=False)
    v, row, column = _adjoint(vh), expand_dims(s, axis=-2), expand_dims(s, axis=-1)
    inner = None if of_s is None else _on_diagonal(of_s, u)
    gaps = (row - column) * (row + column) + _eye(k, s)
    skew = lambda x: x - _adjoint(x)
    more = []
    if of_u is not None:
        along = matmul(_adjoint(u), of_u)
        turned = multiply(divide(_off_diagonal(skew(along)), gaps), row)
        if u.pairs:  # a phase that U and V have in common
            phase = imag(diagonal(along)) / s
            turned = turned + _on_diagonal(from_parts(full_on(stream_of(phase), phase.shape, 0, phase.dtype), phase), turned)
        inner = turned if inner is None else inner + turned
        if m > k:
            more.append(matmul(divide(of_u - matmul(u, along), row), _adjoint(v)))
    if of_vh is not None:
        of_v = _adjoint(of_vh)
        along = matmul(_adjoint(v), of_v)
        turned = multiply(divide(_off_diagonal(skew(along)), gaps), column)
        inner = turned if inner is None else inner + turned
        if n > k:
            more.append(matmul(divide(u, row), _adjoint(of_v - matmul(v, along))))
    made = matmul(matmul(u, inner), _adjoint(v))
    for x in more:
        made = made + x
    return (made,)


@own(_svd_like, _svd_rule, "svd")
def _svd_of(x, *, full):
    return _singular(x, full, True)


def _singular(x, full, wanted):
    flat = reshape(x, (_count(x.shape[:-2]), *x.shape[-2:]))
    wide = x.shape[-2] < x.shape[-1]
    if wide:
        flat = matrix_transpose(flat)
    u, s, v = (_complex_svd if x.pairs else _svd)(flat, full, wanted)
    s = reshape(s, (*x.shape[:-2], s.shape[1]))
    if not wanted:
        return None, s, None
    if wide:  # x^T = u s v^H
        u, v = conj(v), conj(u)
    return _unbatch(u, x), s, _unbatch(conj(matrix_transpose(v)), x)


def svd(x, /, *, full_matrices=True):
    """U, S, Vh of U S Vh: orthonormal columns, descending singular values, orthonormal rows; with |full_matrices| U and Vh are square. By vectors of equal
    values there are no gradients, nor by what depends on the signs or phases that vectors have."""
    return svd_result(*_svd_of(_matrices("svd", x), full=bool(full_matrices)))


def svdvals(x, /):
    """The singular values, descending."""
    x = _matrices("svdvals", x)
    return _svd_of(x, full=False)[1] if is_lazy(x) else _singular(x, False, False)[1]


def eigvalsh(x, /):
    """The eigenvalues of eigh, ascending."""
    return eigh(x).eigenvalues


def _tolerance(x, given, default):
    """|given|, a number, an array or None, for the singular values of x, one dimension more than it."""
    if given is None:
        return default
    return expand_dims(given, axis=given.ndim) if isinstance(given, Array) else given


def _eps(x):
    return finfo(x.dtype).eps


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are above |rtol| times the largest."""
    x = _matrices("matrix_rank", x)
    s = svdvals(x)
    if s.shape[-1] == 0:
        return full_on(stream_of(x), x.shape[:-2], 0, _core.I64)
    rtol = _tolerance(x, rtol, max(x.shape[-2:]) * _eps(x))
    return _sum(s > _max(s, axis=-1, keepdims=True) * rtol, axis=-1)


def pinv(x, /, *, rtol=None):
    """Moore and Penrose's inverses; singular values up to |rtol| times the largest count as 0."""
    x = _matrices("pinv", x)
    if not x.size:
        return full_on(stream_of(x), (*x.shape[:-2], x.shape[-1], x.shape[-2]), 0, x.dtype)
    if isinstance(rtol, Array) and is_lazy(rtol):
        raise TypeError("pinv: rtol is a number or an array with values")
    return _pseudo_inverse(x, rtol=rtol)


def _pinv_rule(given, made, came, rtol):
    """Golub and Pereyra's (1973), of a rank that stays."""
    a, p, g = given[0], made[0], _adjoint(came[0])
    if a.shape[-2] <= a.shape[-1]:
        k = matmul(g, p)
        outside = matmul(k, _adjoint(p))
        slope = outside - _adjoint(matmul(p, k)) - matmul(matmul(a, p), outside) + matmul(matmul(_adjoint(p), p), g - matmul(k, a))
    else:
        k = matmul(p, g)
        outside = matmul(_adjoint(p), k)
        slope = outside - _adjoint(matmul(k, p)) + matmul(matmul(g - matmul(a, k), p), _adjoint(p)) - matmul(matmul(outside, p), a)
    return (slope,)


@own(lambda x, rtol: [((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)], _pinv_rule, "pinv")
def _pseudo_inverse(x, *, rtol):
    u, s, vh = svd(x, full_matrices=False)
    least = multiply(_max(s, axis=-1, keepdims=True), _tolerance(x, rtol, max(x.shape[-2:]) * _eps(x)))
    inverse = choose(s > least, 1 / choose(s > least, s, 1.0), 0.0)
    v = conj(matrix_transpose(vh))
    return matmul(multiply(v, expand_dims(inverse, axis=-2)), conj(matrix_transpose(u)))


# ---- norms ----


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """(sum of |x|^ord)^(1/ord) over |axis|; of 0 how many are not 0, of infinities the largest or least magnitude."""
    x = need("vector_norm", x)
    if x.dtype.kind not in "fc":
        raise TypeError(f"vector_norm is of floating types, not of {x.dtype}")
    axes = axes_of("vector_norm", axis, x.ndim)
    size = abs(x)
    if ord == -math.inf:
        return reduce(size, "min", axes, keepdims)
    if ord >= 0:
        return reduce(size, "norm", axes, keepdims, float(ord))
    return pow(reduce(pow(size, float(ord)), "sum", axes, keepdims), 1 / ord)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Of matrices: "fro", the root of the sum of squares; "nuc", the sum of singular values, 2 and -2 the largest and least; 1 and -1 of the
    sums of columns, infinities of those of rows."""
    x = _matrices("matrix_norm", x)
    axes = (x.ndim - 2, x.ndim - 1)
    if ord == "fro":
        return reduce(abs(x), "norm", axes, keepdims, 2.0)
    if ord in ("nuc", 2, -2):
        s = svdvals(x)
        made = _sum(s, axis=-1) if ord == "nuc" else (_max if ord == 2 else _min)(s, axis=-1)
        return reshape(made, (*x.shape[:-2], 1, 1)) if keepdims else made
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord is 'fro', 'nuc', 1, 2, infinity or one of these with a minus, not {ord!r}")
    over = axes[0] if ord in (1, -1) else axes[1]
    sums = reduce(abs(x), "sum", (over,), True)
    made = (_max if ord > 0 else _min)(sums, axis=axes, keepdims=True)
    return made if keepdims else squeeze(made, axes)
