"""Discrete Fourier transforms: the array API's extension, with its names.

|n| is how many values of |axis| are transformed, those that are missing being 0. |norm| says where 1/n stands: "backward" in the inverse
transform, "forward" in the other, "ortho" its square root in both.
"""

import math

from . import _core
from ._array import axis_of, axes_of, cast, empty_on, full_on, need, run, stream_of
from ._core import C64, C128, F32, F64, part_of
from ._making import arange_on
from ._moving import concat, reshape, roll, slice_of
from ._own import own, same
from ._pointwise import conj, multiply, real
from ._types import known

__all__ = ["fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift"]


def _scale(norm, n, inverse):
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward', not '{norm}'")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


def _length(name, n):
    if n < 1:
        raise ValueError(f"{name}: {n} values have no transform; at least 1")
    return n


def _fitted(x, axis, n):
    """x with |n| places along |axis|, cut or followed by 0."""
    have = x.shape[axis]
    if have > n:
        return slice_of(x, axis, 0, n)
    if have == n:
        return x
    return concat([x, full_on(stream_of(x), x.shape[:axis] + (n - have,) + x.shape[axis + 1:], 0, x.dtype)], axis=axis)


def _floats(name, x):
    x = need(name, x)
    if x.dtype.kind not in "fc":
        raise TypeError(f"{name} is of floating types, not of {x.dtype}")
    return cast(x, F32) if x.dtype.itemsize == 2 else x


def _complex(name, x):
    x = _floats(name, x)
    return x if x.pairs else cast(x, C64 if x.dtype == F32 else C128)


def _c2c(name, x, n, axis, norm, inverse):
    x = _complex(name, x)
    axis = axis_of(name, axis, x.ndim)
    n = _length(name, x.shape[axis] if n is None else n)
    return _whole(_fitted(x, axis, n), axis=axis, inverse=inverse, scale=_scale(norm, n, inverse))


# Transforms are linear, so that gradients are had by the transposed ones: the other direction with the same factor, conjugates having been taken.


@own(same, lambda given, made, came, axis, inverse, scale: (_whole(came[0], axis=axis, inverse=not inverse, scale=scale),), "fft")
def _whole(x, *, axis, inverse, scale):
    """Of all values of an axis."""
    made = empty_on(stream_of(x), x.shape, x.dtype)
    run("fft_c2c", x, inverse, scale, x, axis, made)
    return made


def _resized(shape, axis, n):
    return shape[:axis] + (n,) + shape[axis + 1:]


def _of_real_rule(given, made, came, axis, scale):
    full = _fitted(came[0], axis, given[0].shape[axis])  # the other half is not there, and counts nothing
    return (real(_whole(full, axis=axis, inverse=True, scale=scale)),)


@own(lambda x, axis, scale: [(_resized(x.shape, axis, x.shape[axis] // 2 + 1), C64 if x.dtype == F32 else C128)], _of_real_rule, "rfft")
def _of_real(x, *, axis, scale):
    made = empty_on(stream_of(x), _resized(x.shape, axis, x.shape[axis] // 2 + 1), C64 if x.dtype == F32 else C128)
    run("fft_r2c", x, scale, x, axis, made)
    return made


def _to_real_rule(given, made, came, axis, n, scale):
    slope = _of_real(came[0], axis=axis, scale=scale)
    half, twice = slope.shape[axis], (n - 1) // 2  # but the first, and of an even number the last, they stand for two
    counts = [full_on(stream_of(slope), (count,), value, part_of[slope.dtype]) for count, value in ((1, 1), (twice, 2), (half - 1 - twice, 1))]
    return (multiply(slope, reshape(concat(counts), (half,) + (1,) * (slope.ndim - axis - 1))),)


@own(lambda x, axis, n, scale: [(_resized(x.shape, axis, n), part_of[x.dtype])], _to_real_rule, "irfft")
def _to_real(x, *, axis, n, scale):
    made = empty_on(stream_of(x), _resized(x.shape, axis, n), part_of[x.dtype])
    run("fft_c2r", x, scale, x, axis, made)
    return made


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform along |axis|."""
    return _c2c("fft", x, n, axis, norm, False)


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of fft."""
    return _c2c("ifft", x, n, axis, norm, True)


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform of real values, n // 2 + 1 of them: the others are conjugates."""
    x = _floats("rfft", x)
    if x.pairs:
        raise TypeError(f"rfft is of real values, not of {x.dtype}")
    axis = axis_of("rfft", axis, x.ndim)
    n = _length("rfft", x.shape[axis] if n is None else n)
    return _of_real(_fitted(x, axis, n), axis=axis, scale=_scale(norm, n, False))


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of rfft: n real values, without |n| twice what is there less 2."""
    x = _complex("irfft", x)
    axis = axis_of("irfft", axis, x.ndim)
    n = _length("irfft", 2 * (x.shape[axis] - 1) if n is None else n)
    return _to_real(_fitted(x, axis, n // 2 + 1), axis=axis, n=n, scale=_scale(norm, n, True))


_TURNED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform of values of which the other half are conjugates: n real ones."""
    if norm not in _TURNED:
        _scale(norm, 1, False)
    return irfft(conj(_complex("hfft", x)), n=n, axis=axis, norm=_TURNED[norm])


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of hfft."""
    if norm not in _TURNED:
        _scale(norm, 1, False)
    return conj(rfft(x, n=n, axis=axis, norm=_TURNED[norm]))


def _several(name, x, s, axes):
    """Axes and how many values of each: of both what is given, of neither all."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = axes_of(name, tuple(axes), x.ndim)
    s = [None] * len(axes) if s is None else list(s)
    if len(s) != len(axes):
        raise ValueError(f"{name}: {len(s)} lengths for {len(axes)} axes")
    return axes, s


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """fft along several axes; |s| is how many values of each."""
    x = _complex("fftn", x)
    for axis, n in zip(*_several("fftn", x, s, axes)):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of fftn."""
    x = _complex("ifftn", x)
    for axis, n in zip(*_several("ifftn", x, s, axes)):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return x


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """rfft along the last of several axes, fft along the others."""
    x = _floats("rfftn", x)
    axes, s = _several("rfftn", x, s, axes)
    x = rfft(x, n=s[-1], axis=axes[-1], norm=norm)
    for axis, n in zip(axes[:-1], s[:-1]):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of rfftn."""
    x = _complex("irfftn", x)
    axes, s = _several("irfftn", x, s, axes)
    for axis, n in zip(axes[:-1], s[:-1]):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return irfft(x, n=s[-1], axis=axes[-1], norm=norm)


def _real_type(dtype):
    dtype = F32 if dtype is None else known(dtype)
    if dtype.kind != "f":
        raise TypeError(f"frequencies are of floating types, not {dtype}")
    return dtype


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of fft's values, in cycles per unit of |d|, the distance of the samples."""
    stream, dtype = _core.stream(device), _real_type(dtype)
    half = (n - 1) // 2 + 1
    numbers = concat([arange_on(stream, F64, half, 0, 1), arange_on(stream, F64, n - half, -(n // 2), 1)])
    return cast(multiply(numbers, 1 / (n * d)), dtype)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of rfft's values."""
    return cast(multiply(arange_on(_core.stream(device), F64, n // 2 + 1, 0, 1), 1 / (n * d)), _real_type(dtype))


def fftshift(x, /, *, axes=None):
    """Frequency 0 comes to the middle."""
    x = need("fftshift", x)
    axes = axes_of("fftshift", axes, x.ndim)
    return roll(x, tuple(x.shape[a] // 2 for a in axes), axis=axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift."""
    x = need("ifftshift", x)
    axes = axes_of("ifftshift", axes, x.ndim)
    return roll(x, tuple(-(x.shape[a] // 2) for a in axes), axis=axes)
