"""rdna.arrays.fft against NumPy in double."""
import unittest

import numpy as np
from arrays_tools import COMPLEX, Case, any_shape, normal, ra, rng, wide

TYPES = [np.dtype("float32"), np.dtype("float64"), *COMPLEX]


class Fft(Case):
    def test_transforms(self):
        fft = ra.fft
        for _ in range(12):
            for dtype in TYPES:
                a = normal(dtype, any_shape(3, empty=False) or (4,))
                x, axis = ra.asarray(a), int(rng.integers(-a.ndim, a.ndim))
                wide_complex, real = ("c8" if a.dtype.itemsize == (8 if a.dtype.kind == "c" else 4) else "c16"), dtype.type().real.dtype
                for norm in ("backward", "ortho", "forward"):
                    for n in (None, 1, 5, 8):
                        for name in ("fft", "ifft"):
                            self.near(getattr(fft, name)(x, n=n, axis=axis, norm=norm), getattr(np.fft, name)(wide(a), n, axis, norm), wide_complex)
                        if n or a.shape[axis] > 1:
                            for name in ("irfft", "hfft"):
                                self.near(getattr(fft, name)(x, n=n, axis=axis, norm=norm), getattr(np.fft, name)(wide(a), n, axis, norm), real)
                        if a.dtype.kind == "f":
                            for name in ("rfft", "ihfft"):
                                self.near(getattr(fft, name)(x, n=n, axis=axis, norm=norm), getattr(np.fft, name)(wide(a), n, axis, norm), wide_complex)
                    self.near(fft.fftn(x, norm=norm), np.fft.fftn(wide(a), norm=norm), wide_complex)
                    self.near(fft.ifftn(x, s=(3,), axes=(axis,), norm=norm), np.fft.ifftn(wide(a), (3,), (axis,), norm), wide_complex)
                    if a.dtype.kind == "f":
                        self.near(fft.rfftn(x, norm=norm), np.fft.rfftn(wide(a), norm=norm), wide_complex)
                    self.near(fft.irfftn(x, s=(4,) * a.ndim, axes=range(a.ndim), norm=norm), np.fft.irfftn(wide(a), (4,) * a.ndim, range(a.ndim), norm), real)
                self.same(fft.fftshift(x), np.fft.fftshift(a))
                self.same(fft.ifftshift(x, axes=axis), np.fft.ifftshift(a, axis))
        for n in (1, 4, 7):
            self.same(fft.fftfreq(n, d=0.3), np.fft.fftfreq(n, 0.3), "f4", 1)
            self.same(fft.rfftfreq(n, dtype=ra.float64), np.fft.rfftfreq(n), "f8", 1)

    def test_refusals(self):
        for error, mentions, call in (
            (ValueError, "norm is", lambda: ra.fft.fft(ra.ones(3), norm="x")),
            (ValueError, "at least 1", lambda: ra.fft.fft(ra.ones(0))),
            (TypeError, "real values, not of complex64", lambda: ra.fft.rfft(ra.asarray([1j]))),
            (TypeError, "floating types", lambda: ra.fft.fft(ra.asarray([1]))),
            (ValueError, "2 lengths for 1 axes", lambda: ra.fft.fftn(ra.ones(3), s=(1, 2), axes=(0,))),
        ):
            with self.assertRaisesRegex(error, mentions):
                call()


if __name__ == "__main__":
    unittest.main()
