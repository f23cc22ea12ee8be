"""NumPy's functions that are made of the array API's, and logsumexp of SciPy's."""

import math

from ._array import axes_of, full_on, need, stream_of
from ._making import asarray
from ._moving import concat, moveaxis, permute_dims, reshape, slice_of, squeeze
from ._ordering import sort
from ._pointwise import abs, exp, isfinite, isnan, less_equal, log, where
from ._products import matmul
from ._reducing import all, max, mean, sum
from ._types import result_type


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |a - b| is at most atol + rtol |b|, value by value; infinities where they are equal."""
    a, b = asarray(a), asarray(b)
    near = where(isfinite(a) & isfinite(b), less_equal(abs(a - b), atol + rtol * abs(b)), a == b)
    return near | (isnan(a) & isnan(b)) if equal_nan else near


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all values are close."""
    return bool(all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a, b):
    """Whether shapes and values are equal."""
    a, b = asarray(a), asarray(b)
    return a.shape == b.shape and bool(all(a == b))


def dot(a, b):
    """Products of matrices and vectors; of a number, times it. NumPy's of more dimensions is tensordot(a, b, axes=((-1,), (-2,)))."""
    a, b = asarray(a), asarray(b)
    if a.ndim > 1 and b.ndim > 2:
        raise ValueError(f"dot: the second is a matrix or a vector; of {a.shape} and {b.shape} matmul multiplies batches, tensordot all by all")
    return a * b if a.ndim == 0 or b.ndim == 0 else matmul(a, b)


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))), which does not overflow."""
    x = need("logsumexp", x)
    axes = axes_of("logsumexp", axis, x.ndim)
    most = max(x, axis=axes, keepdims=True)
    most = where(isfinite(most), most, 0.0)
    made = log(sum(exp(x - most), axis=axes, keepdims=True)) + most
    return made if keepdims else squeeze(made, axis=axes)


def median(x, axis=None):
    """The value in the middle, or the mean of the two."""
    x = need("median", x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axes_of("median", axis, x.ndim)[0])
    if x.shape[axis] == 0:
        raise ValueError("median: of no values there is none")
    n = x.shape[axis]
    middle = mean(slice_of(sort(x, axis=axis), axis, (n - 1) // 2, 2 - n % 2), axis=axis)
    return where(isnan(max(x, axis=axis)), math.nan, middle) if x.dtype.kind == "f" else middle


def pad(x, pad_width, constant_values=0.0):
    """x with |constant_values| around it: one number of places, (before, after), or such a pair for each dimension."""
    x = need("pad", x)
    given = pad_width
    if isinstance(given, int):
        given = (given, given)
    if len(given) == 2 and isinstance(given[0], int):
        given = (given,) * x.ndim
    if len(given) == 1 and x.ndim != 1:
        given = tuple(given) * x.ndim
    if len(given) != x.ndim or any(n < 0 for pair in given for n in pair):
        raise ValueError(f"pad: {pad_width} places around an array of {x.ndim} dimensions; a number, a pair, or a pair for each, not negative")
    for axis, (before, after) in enumerate(given):
        parts = [full_on(stream_of(x), (*x.shape[:axis], n, *x.shape[axis + 1:]), constant_values, x.dtype) if n else None for n in (before, after)]
        parts = [p for p in (parts[0], x, parts[1]) if p is not None]
        x = concat(parts, axis=axis) if len(parts) > 1 else x
    return x


def split(x, indices_or_sections, axis=0):
    """Views of equal parts, of a number of sections, or between places."""
    x = need("split", x)
    axis = axes_of("split", axis, x.ndim)[0]
    n = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or n % indices_or_sections:
            raise ValueError(f"split: {n} places are not {indices_or_sections} equal parts")
        ends = [n // indices_or_sections * i for i in range(indices_or_sections + 1)]
    else:
        ends = [0, *(i if i >= 0 else i + n if i > -n else 0 for i in indices_or_sections), n]
        ends = [i if i < n else n for i in ends]
    return [slice_of(x, axis, a, b - a if b > a else 0) for a, b in zip(ends, ends[1:])]


def swapaxes(x, axis1, axis2):
    """x with two dimensions in each other's place."""
    x = need("swapaxes", x)
    (a,), (b,) = axes_of("swapaxes", axis1, x.ndim), axes_of("swapaxes", axis2, x.ndim)
    dims = list(range(x.ndim))
    dims[a], dims[b] = b, a
    return permute_dims(x, tuple(dims))


# ---- sums of products ----


def _letters(subscripts, arrays):
    """The letters of each array's dimensions, and the result's."""
    text = subscripts.replace(" ", "")
    given, arrow, out = text.partition("->")
    given = given.split(",")
    if len(given) != len(arrays) or not _all_letters(given + [out]):
        raise ValueError(f"einsum: {subscripts!r} for {len(arrays)} arrays; it has letters for each, \"ij,jk->ik\"")
    for letters, x in zip(given, arrays):
        if len(letters) != x.ndim:
            raise ValueError(f"einsum: {letters!r} of {subscripts!r} for an array of {x.ndim} dimensions")
    if not arrow:
        joined = "".join(given)
        out = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    if len(set(out)) < len(out) or not set(out) <= set("".join(given)):
        raise ValueError(f"einsum: the result {out!r} of {subscripts!r} has letters twice, or such as no array has")
    return given, out


def _all_letters(texts):
    return not [c for text in texts for c in text if not c.isalpha()]


def _without_repeats(letters, x):
    """Dimensions with one letter become their diagonal."""
    from .linalg import diagonal

    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            first = letters.index(c)
            second = letters.index(c, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(f"einsum: {c!r} is {x.shape[first]} and {x.shape[second]} in one array")
            rest = letters[:first] + letters[first + 1:second] + letters[second + 1:]
            x = diagonal(moveaxis(x, (first, second), (-2, -1)))
            letters = rest + c
    return letters, x


def _times(left, a, right, b, kept):
    """Two of them as a product of matrices, without the letters that nobody needs any more."""
    for name, letters, x, other in (("a", left, a, right), ("b", right, b, left)):
        gone = [i for i, c in enumerate(letters) if c not in kept and c not in other]
        if gone:
            x = sum(x, axis=tuple(gone), dtype=x.dtype)
            letters = "".join(c for c in letters if c in kept or c in other)
        if name == "a":
            left, a = letters, x
        else:
            right, b = letters, x
    shared = [c for c in left if c in right and c in kept]
    inner = [c for c in left if c in right and c not in kept]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    size = dict(zip(left + right, (*a.shape, *b.shape)))
    for c in shared + inner:
        if a.shape[left.index(c)] != b.shape[right.index(c)]:
            raise ValueError(f"einsum: {c!r} is {a.shape[left.index(c)]} and {b.shape[right.index(c)]}")
    product = lambda letters: math.prod(size[c] for c in letters)
    a = reshape(permute_dims(a, tuple(left.index(c) for c in shared + rows + inner)), (*(size[c] for c in shared), product(rows), product(inner)))
    b = reshape(permute_dims(b, tuple(right.index(c) for c in shared + inner + columns)), (*(size[c] for c in shared), product(inner), product(columns)))
    return "".join(shared + rows + columns), reshape(matmul(a, b), tuple(size[c] for c in shared + rows + columns))


def einsum(subscripts, /, *arrays):
    """Sums of products by letters, "bij,bjk->bik"; from left to right, two at a time. Without "..."."""
    arrays = [need("einsum", x) for x in arrays]
    if not arrays:
        raise ValueError("einsum needs an array")
    given, out = _letters(subscripts, arrays)
    dtype = result_type(*arrays)
    terms = [_without_repeats(letters, x if x.dtype == dtype else x.astype(dtype)) for letters, x in zip(given, arrays)]
    letters, x = terms[0]
    for i, (other, y) in enumerate(terms[1:], 2):
        kept = set(out).union(*(set(more) for more, _ in terms[i:]))
        letters, x = _times(letters, x, other, y, kept)
    gone = tuple(i for i, c in enumerate(letters) if c not in out)
    x = sum(x, axis=gone, dtype=x.dtype) if gone else x
    letters = "".join(c for c in letters if c in out)
    return permute_dims(x, tuple(letters.index(c) for c in out))
