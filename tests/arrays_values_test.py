"""What rdna.arrays makes out of other arrays and of numbers: creation, movement, and the operations on values that are made of several."""
import math
import unittest

import numpy as np
from arrays_tools import COMPLEX, TYPES, Case, any_shape, draw, part_of, ra, rng

FLOATS = [np.dtype(t) for t in ("float16", "float32", "float64")]


def spread(dtype, count=60):
    """Numbers of all magnitudes and both signs, zeros, infinities and NaN."""
    most = {2: 4, 4: 37, 8: 300}[dtype.itemsize]
    numbers = rng.normal(size=count) * 10.0 ** rng.uniform(-most, most, count) * rng.integers(0, 2, count)
    small = rng.normal(size=count)
    return np.concatenate([numbers, small, [0.0, -0.0, 1, -1, 0.5, math.inf, -math.inf, math.nan]]).astype(dtype)


class Values(Case):
    def near(self, got, want, dtype, ulps):
        """As same, also of subnormal results."""
        self.same(got, np.asarray(want).astype(dtype), dtype, ulps, atol=float(np.finfo(dtype).smallest_normal))

    def test_made(self):
        for dtype in TYPES + COMPLEX:
            x = ra.asarray(draw(dtype, (2, 3)))
            for name, value in (("zeros", 0), ("ones", 1)):
                for got in (getattr(ra, name)((2, 3), dtype=dtype), getattr(ra, name + "_like")(x)):
                    self.same(got, np.full((2, 3), value, dtype))
            self.same(ra.full_like(x, 1), np.ones((2, 3), dtype))
            self.assertEqual((ra.empty((2, 0), dtype=dtype).shape, ra.empty_like(x).dtype), ((2, 0), dtype))
            for k in (-2, 0, 1, 7):
                self.same(ra.eye(3, 4, k=k, dtype=dtype), np.eye(3, 4, k, dtype=dtype))
            a = draw(dtype, (2, 3, 4))
            for k in (-1, 0, 2):
                self.same(ra.tril(ra.asarray(a), k=k), np.tril(a, k))
                self.same(ra.triu(ra.asarray(a), k=k), np.triu(a, k))
        self.same(ra.asarray([1j, 2]), np.complex64([1j, 2]))
        self.same(ra.full((2,), 1 + 2j), np.full(2, 1 + 2j, "c8"))

    def test_lines_and_grids(self):
        for _ in range(60):
            start, stop, num = float(rng.normal()), float(rng.normal()), int(rng.integers(0, 9))
            for dtype in FLOATS[1:]:
                for endpoint in (True, False):
                    self.same(ra.linspace(start, stop, num, dtype=dtype, endpoint=endpoint), np.linspace(start, stop, num, endpoint, dtype=dtype), ulps=4,
                              atol=1e-7)
        self.same(ra.linspace(0, 1 + 1j, 5), np.linspace(0, 1 + 1j, 5).astype("c8"), ulps=2)
        self.same(ra.linspace(-3, 9, 5, dtype=ra.int32), np.linspace(-3, 9, 5, dtype="i4"))
        lines = [draw("f4", int(n)) for n in (3, 1, 4)]
        for count in (1, 2, 3):
            for indexing in ("xy", "ij"):
                for got, want in zip(ra.meshgrid(*map(ra.asarray, lines[:count]), indexing=indexing), np.meshgrid(*lines[:count], indexing=indexing),
                                     strict=True):
                    self.same(got, want)

    def test_lines_of_any_numbers(self):
        """NumPy's numbers and arrays of one value are numbers."""
        for given in ((np.int64(3),), (np.int8(1), np.int16(9), np.int32(2)), (ra.asarray(3),), (np.float32(2.5),), (0, np.float64(1), 0.25), (5, 1, -2)):
            plain = [v.item() if hasattr(v, "item") else v for v in given]
            whole = all(isinstance(v, int) for v in plain)
            self.same(ra.arange(*given), np.arange(*plain, dtype="i8" if whole else "f4"))
            for dtype in COMPLEX:
                self.same(ra.arange(*given, dtype=dtype), np.arange(*plain).astype(dtype))
        self.same(ra.linspace(np.float64(0), np.int32(4), np.int64(5)), np.linspace(0, 4, 5, dtype="f4"))
        self.same(ra.linspace(np.complex64(1j), ra.asarray(2), 3), np.linspace(1j, 2, 3).astype("c8"))
        for error, text, call in ((TypeError, "not of complex", lambda: ra.arange(1j)), (ValueError, "steps of 0", lambda: ra.arange(0, 1, 0)),
                                  (TypeError, "not of str", lambda: ra.arange("3")), (ValueError, "-1 numbers", lambda: ra.linspace(0, 1, -1))):
            with self.assertRaisesRegex(error, text):
                call()

    def test_moved(self):
        for _ in range(150):
            a = draw(rng.choice(TYPES + COMPLEX), any_shape() or (2,))
            x, axis = ra.asarray(a), int(rng.integers(-a.ndim, a.ndim))
            self.same(ra.flip(x, axis=axis), np.flip(a, axis))
            self.same(ra.flip(x), np.flip(a))
            shift = int(rng.integers(-9, 9))
            self.same(ra.roll(x, shift, axis=axis), np.roll(a, shift, axis))
            self.same(ra.roll(x, shift), np.roll(a, shift))
            self.same(ra.roll(x, (shift, 1), axis=(axis, 0)), np.roll(a, (shift, 1), (axis, 0)))
            times = tuple(int(n) for n in rng.integers(0, 3, rng.integers(0, 5)))
            self.same(ra.tile(x, times), np.tile(a, times))
            self.same(ra.repeat(x, 3, axis=axis), np.repeat(a, 3, axis))
            each = rng.integers(0, 4, a.shape[axis])
            self.same(ra.repeat(x, ra.asarray(each), axis=axis), np.repeat(a, each, axis))
            self.same(ra.repeat(x, 2), np.repeat(a, 2))
            self.same(ra.moveaxis(x, axis, 0), np.moveaxis(a, axis, 0))
            self.same(ra.stack([x, x[...]], axis=axis), np.stack([a, a], axis))
            for got, want in zip(ra.unstack(x, axis=axis), np.moveaxis(a, axis, 0), strict=True):
                self.same(got, want)
            self.same(ra.broadcast_to(x, (2, *a.shape)), np.broadcast_to(a, (2, *a.shape)))

    def test_put_together(self):
        for _ in range(80):
            shape = any_shape() or (2,)
            axis = int(rng.integers(0, len(shape)))
            parts = [draw(rng.choice(TYPES + COMPLEX), shape[:axis] + (int(rng.integers(0, 4)),) + shape[axis + 1:]) for _ in range(rng.integers(1, 4))]
            self.same(ra.concat([ra.asarray(p) for p in parts], axis=axis), np.concatenate(parts, axis))
            self.same(ra.concat([ra.asarray(p) for p in parts], axis=None), np.concatenate(parts, None))
        for got, want in zip(ra.broadcast_arrays(ra.ones((2, 1)), ra.ones(3)), [(2, 3)] * 2, strict=True):
            self.assertEqual(got.shape, want)

    def test_functions_made_of_several(self):
        one = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "cosh")
        for dtype in FLOATS:
            a, b = spread(dtype), spread(dtype)
            b[::3] = a[::3]
            x, y = ra.asarray(a), ra.asarray(b)
            with np.errstate(all="ignore"):
                for name in one:
                    for values in (a, np.abs(a), (a % 1).astype(dtype)):
                        wide = values.astype(np.longdouble)
                        want = getattr(np, {"a": "arc"}.get(name[0], name[0]) + name[1:] if name[0] == "a" else name)(wide)
                        self.near(getattr(ra, name)(ra.asarray(values)), want, dtype, 4)
                self.near(ra.hypot(x, y), np.hypot(a.astype(np.longdouble), b.astype(np.longdouble)), dtype, 4)
                want = np.logaddexp(a.astype(np.longdouble), b.astype(np.longdouble))
                self.same(ra.logaddexp(x, y), want.astype(dtype), dtype, 4, atol=4 * float(np.finfo(dtype).eps))
                self.same(ra.copysign(x, y), np.copysign(a, b))
                self.same(ra.signbit(y), np.signbit(b))
                self.same(ra.nextafter(x, y), np.nextafter(a, b))
                self.same(ra.signbit(ra.copysign(x, y)), np.signbit(b))
                if dtype != np.float16:  # of equal zeros C has the second, NumPy's float16 the first
                    self.same(ra.signbit(ra.nextafter(x, y)), np.signbit(np.nextafter(a, b)))

    def test_clipped(self):
        for dtype in TYPES[1:]:
            a = draw(dtype, (3, 5))
            x, low, high = ra.asarray(a), draw(dtype, (5,)), draw(dtype, (3, 1))
            self.same(ra.clip(x, ra.asarray(low), ra.asarray(high)), np.clip(a, low, high))
            for bounds in ((1, 4), (None, 3), (2, None), (None, None)):
                self.same(ra.clip(x, *bounds), np.clip(a, *bounds) if bounds != (None, None) else a)
        self.same(ra.clip(ra.asarray(np.float32([math.nan, 3])), 0.0, 1.0), np.float32([math.nan, 1]))

    def test_whole_quotients_of_infinities(self):
        a, b = np.meshgrid(*[[3.5, -3.5, 0.0, math.inf, -math.inf, math.nan]] * 2)
        got = (ra.asarray(a) // ra.asarray(b)).numpy()
        with np.errstate(all="ignore"):
            want = np.where(np.isinf(a) | np.isinf(b), a / b, a // b)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(want)[want == 0])
        self.same(ra.asarray(np.float32(5)) // math.inf, np.float32(0))
        self.same(-math.inf // ra.asarray(np.float32(5)), np.float32(-math.inf))

    def test_complex_numbers(self):
        for dtype in COMPLEX:
            a, b = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(dtype), (rng.normal(size=4) + 1j * rng.normal(size=4)).astype(dtype)
            x, y, real = ra.asarray(a), ra.asarray(b), dtype.type().real.dtype
            for got, want in ((x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (2 - x, 2 - a), (x * (1 + 2j), a * (1 + 2j)), (-x, -a),
                              (ra.asarray(b.real.copy()) * x, b.real * a), (ra.sqrt(x), np.sqrt(a)), (ra.square(x), a * a), (ra.sum(x, axis=0), a.sum(0)),
                              (ra.mean(x), a.mean()), (ra.prod(x, axis=1), a.prod(1)), (ra.cumulative_prod(x, axis=1), a.cumprod(1)),
                              (ra.cumulative_sum(x, axis=1), a.cumsum(1)), (x ** 2, a ** 2), (ra.reciprocal(x), 1 / a)):
                self.same(got, np.asarray(want).astype(dtype), dtype, 32, atol=float(np.finfo(dtype).eps) * 16)
            for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log2", "log10", "log1p", "expm1", "conj"):
                self.same(getattr(ra, name)(x), getattr(np, name)(a.astype("c16")).astype(dtype), dtype, 8, atol=float(np.finfo(dtype).eps))
            for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
                want = getattr(np, "arc" + name[1:])(a.astype("c16")).astype(dtype)
                self.same(getattr(ra, name)(x), want, dtype, 16, atol=8 * float(np.finfo(dtype).eps))
            for got, want in ((ra.real(x), a.real), (ra.imag(x), a.imag), (ra.real(ra.conj(x)), a.real), (ra.imag(ra.asarray(b.real.copy())), 0 * b.real)):
                self.same(got, want, real)
            self.same(ra.abs(x), np.abs(a), real, 4)
            self.same(x == y, a == b)
            self.same(x != a, a != a)
            self.same(ra.where(x == y, x, 0), np.where(a == b, a, 0).astype(dtype))
            self.same(ra.round(x), np.round(a))
            self.same(ra.isfinite(x / 0), np.zeros(a.shape, bool))
            self.same(ra.logical_not(x - x), np.ones(a.shape, bool))
            self.same(x.astype(ra.bool), np.ones(a.shape, bool))
            self.assertEqual(complex(y[0]), complex(b[0]))
        self.same(ra.asarray(np.int8([1, 2])) * 1j, np.int8([1, 2]) * 1j)
        with self.assertRaisesRegex(TypeError, "no order"):
            ra.asarray([1j]) < 2
        with self.assertRaisesRegex(TypeError, "take real or abs"):
            ra.asarray([1j]).astype(ra.float32)

    def test_types(self):
        for a in TYPES + COMPLEX:
            for b in TYPES + COMPLEX:
                self.assertEqual(ra.result_type(a, b), np.result_type(a, b), (a, b))
                self.assertEqual(ra.can_cast(a, b), np.result_type(a, b) == b)
            for value in (True, 3, 0.5, 1j):
                x = ra.ones(2, dtype=a)
                self.assertEqual((x * value if a.kind != "b" or value is not True else x & value).dtype, ra.result_type(a, value), (a, value))
            self.assertEqual([ra.isdtype(a, k) for k in ("bool", "integral", "real floating", ("complex floating", "bool"), a)],
                             [a.kind == "b", a.kind in "iu", a.kind == "f", a.kind in "cb", True])
        self.assertEqual((ra.finfo(ra.complex64).eps, ra.iinfo(ra.int16).min), (float(np.finfo("f4").eps), -2**15))
        with self.assertRaisesRegex(TypeError, "iinfo is of integer types, not float32"):
            ra.iinfo(ra.float32)
        with self.assertRaisesRegex(ValueError, "'real' is no kind"):
            ra.isdtype(ra.float32, "real")

    def test_namespace(self):
        x = ra.ones(2)
        self.assertIs(x.__array_namespace__(api_version="2024.12"), ra)
        info = ra.__array_namespace_info__()
        self.assertIn(x.device, info.devices())
        self.assertEqual(info.default_device(), x.device)
        self.assertEqual(set(info.dtypes(kind="complex floating")), {"complex64", "complex128"})
        self.assertEqual(x.to_device(x.device).tolist(), [1, 1])
        host = ra.ones(2, device="cpu")
        self.assertEqual((host.device, ra.asarray(host, device="cpu", copy=False).device, x.to_device("cpu").device), ("host",) * 3)
        for name, mentions in (("cerebras", "'cerebras'"), ("cpu:7", "'host:7'"), ("rocm:999", "'hip:999'")):
            with self.assertRaisesRegex(RuntimeError, mentions):
                ra.ones(2, device=name)
        with self.assertRaisesRegex(ValueError, "2024.12, not of 1999.01"):
            x.__array_namespace__(api_version="1999.01")


if __name__ == "__main__":
    unittest.main()
