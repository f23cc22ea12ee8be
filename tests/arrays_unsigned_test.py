"""uint16, uint32 and uint64 over their whole range, every function beside NumPy's: host, and once more on an emulated card."""
import os
import subprocess
import sys
import unittest
import warnings

import numpy as np
from arrays_tools import COMPLEX, TYPES, Case, any_shape, emulated_card, part_of, ra, rng

EMULATED = os.environ.get("RDNA_DRIVER") == "hip"
UNSIGNED = [np.dtype(t) for t in ("uint16", "uint32", "uint64")]
warnings.simplefilter("ignore", RuntimeWarning)


def spread(dtype, shape):
    """Values of any size: the ends of the range, and what signed types of the width take for negative, among them."""
    dtype, bits = np.dtype(dtype), 8 * np.dtype(dtype).itemsize
    if dtype.kind not in "iu":
        return rng.integers(0, 2, shape).astype(dtype)
    values = rng.integers(0, 2**64, shape, np.uint64, endpoint=False) >> rng.integers(64 - bits, 64, shape, np.uint64)
    ends = np.array([0, 1, 2, 2**bits - 1, 2**(bits - 1), 2**(bits - 1) - 1], np.uint64)[rng.integers(0, 6, shape)]
    return np.where(rng.integers(0, 3, shape) == 0, ends, values).astype(dtype)


class Unsigned(Case):
    def test_types(self):
        for a in UNSIGNED:
            self.assertEqual((getattr(ra, a.name), ra.iinfo(a)[:3]), (a, (8 * a.itemsize, 2**(8 * a.itemsize) - 1, 0)))
            self.assertTrue(ra.isdtype(a, "unsigned integer") and ra.isdtype(a, "integral") and not ra.isdtype(a, "signed integer"))
            for b in TYPES + COMPLEX:
                self.assertEqual(ra.result_type(a, b), np.result_type(a, b), (a, b))
                self.assertEqual(ra.can_cast(b, a), np.can_cast(b, a), (b, a))

    def test_there_and_back(self):
        for dtype in UNSIGNED:
            a = spread(dtype, (3, 4))
            x = ra.asarray(a)
            self.same(x, a)
            self.same(ra.from_dlpack(a), a)
            self.same(x[::-1, 1], a[::-1, 1])
            if not EMULATED:  # whose memory NumPy does not read
                np.testing.assert_array_equal(np.from_dlpack(x), a)
            self.assertEqual((x.tolist(), repr(x)), (a.tolist(), repr(a).replace("array", "Array")))
            most = 2**(8 * dtype.itemsize) - 1
            self.same(ra.full((2,), most, dtype=dtype), np.full(2, most, dtype))
            self.same(ra.arange(most - 6, most, 2, dtype=dtype), np.array([most - 6, most - 4, most - 2], dtype))

    def test_casts(self):
        for a in UNSIGNED:
            values = spread(a, 200)
            for b in TYPES:
                want = np.asarray(values, "f4").astype(b) if b == np.float16 and a != np.uint16 else values.astype(b)
                self.same(ra.asarray(values).astype(b), want)
                if b.kind in "iub":
                    back = spread(b, 200)
                    self.same(ra.asarray(back).astype(a), back.astype(a))
            reals = np.array([0.0, 0.9, 1.5, 255.9, 65535.0, 4294967295.0, 2.0**63, 2.0**64 - 2048, -1.0, -5e20, 1e30, np.nan, np.inf])
            most = 2**(8 * a.itemsize) - 1
            self.assertEqual(ra.asarray(reals).astype(a).tolist(), [0 if not v > 0 else most if v > most else int(v) for v in reals])

    def test_operators(self):
        names = "add subtract multiply floor_divide remainder maximum minimum bitwise_and bitwise_or bitwise_xor equal not_equal less less_equal greater greater_equal".split()
        for _ in range(30 if EMULATED else 150):
            shape, a, b = any_shape(), rng.choice(UNSIGNED), rng.choice([t for t in TYPES if t.kind in "iu"])
            if rng.integers(2):
                a, b = b, a
            if np.result_type(a, b).kind == "f":
                continue  # of int64 and uint64, whose float64 NumPy compares otherwise
            x, y = spread(a, part_of(shape)), spread(b, part_of(shape))
            name = names[rng.integers(len(names))]
            if name in ("floor_divide", "remainder"):
                y = np.where(y == 0, np.ones_like(y), y)
            want = getattr(np, name)(x, y)
            self.same(getattr(ra, name)(ra.asarray(x), ra.asarray(y)), want)
            self.same(getattr(ra, name)(x, ra.asarray(y)), want)
        self.assertEqual((ra.asarray(np.uint64(7)) // 0).item(), 0)
        self.assertEqual((ra.asarray(np.uint64(2**64 - 7)) % 0).item(), 2**64 - 7)  # as of all integers: rdna/op/pointwise.h

    def test_powers_and_shifts(self):
        for dtype in UNSIGNED:
            bits = 8 * dtype.itemsize
            x, n = spread(dtype, 300), rng.integers(0, 70, 300).astype(dtype)
            self.same(ra.pow(ra.asarray(x), ra.asarray(n)), np.power(x, n))
            by = np.where(n < bits, n, 0).astype(dtype)
            self.same(ra.asarray(x) << ra.asarray(by), x << by)
            self.same(ra.asarray(x) >> ra.asarray(by), x >> by)
            self.assertEqual((ra.asarray(x) >> bits).numpy().any(), False)

    def test_numbers(self):
        for dtype in UNSIGNED:
            a, most = spread(dtype, 50), 2**(8 * dtype.itemsize) - 1
            x = ra.asarray(a)
            for n in (0, 1, 3, most // 2 + 1, most):
                self.same(x + n, a + dtype.type(n))
                self.same(n - x, dtype.type(n) - a)
                self.same(x < n, a < n)
                self.same(n <= x, n <= a)
                self.same(ra.maximum(x, n), np.maximum(a, dtype.type(n)))
                self.same(ra.clip(x, n // 2, n), np.clip(a, n // 2, n))
                self.same(ra.where(ra.asarray(a > 9), x, n), np.where(a > 9, a, dtype.type(n)))
            self.same(x / 2.0, a / 2.0)
            for n in (-1, most + 1):
                with self.assertRaisesRegex(OverflowError, f"{n} is no value of type {dtype}"):
                    x + n

    def test_functions_of_one_array(self):
        for dtype in UNSIGNED:
            a = spread(dtype, (4, 30))
            x, real = ra.asarray(a), np.dtype("f4" if dtype == np.uint16 else "f8")
            for got, want in ((-x, 0 - a), (~x, ~a), (abs(x), a), (ra.sign(x), np.sign(a)), (ra.square(x), a * a), (ra.floor(x), a), (ra.round(x), a), (ra.relu(x), a),
                              (ra.logical_not(x), a == 0), (ra.isfinite(x), np.ones(a.shape, bool)), (ra.conj(x), a), (+x, a)):
                self.same(got, want)
            for name in ("sqrt", "log1p", "exp2"):
                self.same(getattr(ra, name)(x), getattr(np, name)(a.astype(real)), real, ulps=4)
            self.same(x / ra.asarray(a[0]), a.astype(real) / a[0].astype(real), ulps=1)

    def test_reductions(self):
        for dtype in [np.dtype("uint8"), *UNSIGNED]:
            for _ in range(3 if EMULATED else 25):
                a = spread(dtype, tuple(max(1, n) for n in any_shape()))
                x, keep = ra.asarray(a), bool(rng.integers(2))
                axis = [None, *range(-a.ndim, a.ndim)][rng.integers(2 * a.ndim + 1)]
                for name in ("sum", "prod", "max", "min", "any", "all"):
                    want = getattr(np, name)(a, axis=axis, keepdims=keep)
                    self.same(getattr(ra, name)(x, axis=axis, keepdims=keep), want, want.dtype)
                    self.same(ra.compile(lambda v: getattr(ra, name)(v, axis=axis, keepdims=keep))(x), want, want.dtype)
                self.same(ra.argmax(x, axis=axis), np.argmax(a, axis=axis))
                self.same(ra.argmin(x, axis=axis), np.argmin(a, axis=axis))
                self.same(ra.count_nonzero(x, axis=axis), np.count_nonzero(a, axis=axis))
                real = "f8" if dtype in UNSIGNED[1:] else "f4"
                self.same(ra.mean(x, axis=axis), a.mean(axis, dtype="f8"), real, ulps=32)
                if axis is not None:
                    self.same(ra.cumulative_sum(x, axis=axis), np.cumsum(a, axis=axis))
                    self.same(ra.cumulative_prod(x, axis=axis), np.cumprod(a, axis=axis))
                    self.same(ra.diff(x, axis=axis), np.diff(a, axis=axis))

    def test_order(self):
        for dtype in UNSIGNED:
            for n in (1, 300) if EMULATED else (1, 7, 300, 5000):
                a = spread(dtype, n)
                x = ra.asarray(a)
                self.same(ra.sort(x), np.sort(a))
                self.same(ra.sort(x, descending=True), np.sort(a)[::-1])
                self.same(ra.argsort(x), np.argsort(a, stable=True))
                wanted = spread(dtype, 40)
                self.same(ra.searchsorted(ra.sort(x), ra.asarray(wanted)), np.searchsorted(np.sort(a), wanted))
                values, counts = np.unique(a, return_counts=True)
                self.same(ra.unique_counts(x).values, values)
                self.same(ra.unique_counts(x).counts, counts)
                self.same(ra.median(x), np.median(a.astype("f8")).astype("f4" if dtype == np.uint16 else "f8"), ulps=2)

    def test_moves_and_products(self):
        for dtype in UNSIGNED:
            a, b = spread(dtype, (3, 4)), spread(dtype, (4, 5))
            x, y = ra.asarray(a), ra.asarray(b)
            self.same(x @ y, a @ b)
            self.same(ra.concat([x, ra.ones((1, 4), dtype=ra.bool)]), np.concatenate([a, np.ones((1, 4), bool)]))
            self.same(ra.roll(x, 2), np.roll(a, 2))
            self.same(ra.tril(x), np.tril(a))
            self.same(x[ra.asarray(a > 5)], a[a > 5])
            places = np.array([2, 0, 2], dtype)
            self.same(x[ra.asarray(places)], a[places])
            self.same(ra.take_along_axis(x, ra.asarray(np.argsort(a, 1)), axis=1), np.sort(a, 1))
            self.same(ra.repeat(x, ra.asarray(places), axis=0), np.repeat(a, places.astype(int), axis=0))
            x[1:, ra.asarray(places)] = 2**(8 * dtype.itemsize) - 1
            a[1:, places] = 2**(8 * dtype.itemsize) - 1
            self.same(x, a)
            self.same(ra.nonzero(x)[0], np.nonzero(a)[0])

    def test_in_plans(self):
        for dtype in UNSIGNED:
            a, b = spread(dtype, (6, 7)), spread(dtype, (7,))
            b[b == 0] = 1
            step = ra.compile(lambda x, y: (x // y, x % y, ra.maximum(x, y) - ra.minimum(x, y), x < y, (x ^ y) >> 3, ra.where(x > 7, x, 1), ra.sort(x), ra.sum(x, axis=0)))
            want = (a // b, a % b, np.maximum(a, b) - np.minimum(a, b), a < b, (a ^ b) >> 3, np.where(a > 7, a, dtype.type(1)), np.sort(a), a.sum(0))
            for got, right in zip(step(ra.asarray(a), ra.asarray(b)), want):
                self.same(got, right)


@unittest.skipIf(EMULATED, "this is what it starts")
class Emulated(Case):
    def test_on_a_card(self):
        out = subprocess.run([sys.executable, __file__, "Unsigned"], env={**os.environ, **emulated_card(self)}, capture_output=True, text=True, timeout=300)
        self.assertEqual(out.returncode, 0, out.stderr[-4000:])


if __name__ == "__main__":
    unittest.main()
