"""Sorting, searching, sets, running sums and statistics of rdna.arrays against NumPy."""
import unittest

import numpy as np
from arrays_tools import COMPLEX, TYPES, Case, any_shape, draw, ra, rng

REAL = TYPES[1:]


def with_nan(a):
    if a.dtype.kind in "fc" and a.size:
        a = np.array(a)
        a.flat[rng.integers(0, a.size, 2)] = np.nan
    return a


class Order(Case):
    def test_sorted(self):
        for _ in range(150):
            a = with_nan(draw(rng.choice(TYPES), any_shape() or (2,)))
            x, axis = ra.asarray(a), int(rng.integers(-a.ndim, a.ndim))
            self.same(ra.sort(x, axis=axis), np.sort(a, axis))
            self.same(ra.argsort(x, axis=axis), np.argsort(a, axis, stable=True))
            down = ra.argsort(x, axis=axis, descending=True)
            self.same(ra.take_along_axis(x, down, axis=axis), np.flip(np.sort(a, axis), axis))
            self.same(ra.sort(x, axis=axis, descending=True), np.flip(np.sort(a, axis), axis))

    def test_searched(self):
        for _ in range(60):
            a, b = np.sort(draw(rng.choice(REAL), int(rng.integers(0, 9)))), draw(rng.choice(REAL), any_shape())
            for side in ("left", "right"):
                self.same(ra.searchsorted(ra.asarray(a), ra.asarray(b), side=side), np.searchsorted(a, b, side))
            order = rng.permutation(a.size)
            mixed = np.empty_like(a)
            mixed[order] = a
            self.same(ra.searchsorted(ra.asarray(mixed), ra.asarray(b), sorter=ra.asarray(order)), np.searchsorted(a, b))

    def test_sets(self):
        for _ in range(100):
            a = with_nan(draw(rng.choice(TYPES + COMPLEX), any_shape()))
            values, first, inverse, counts = np.unique(a, True, True, True, equal_nan=False)
            x = ra.asarray(a)
            got = ra.unique_all(x)
            self.same(got.values, values)
            self.same(got.counts, counts)
            known = ~np.isnan(values)
            np.testing.assert_array_equal(got.indices.numpy()[known], first[known])
            self.same(ra.take(got.values, ra.reshape(got.inverse_indices, (-1,)) if a.size else ra.zeros(0, dtype=ra.int64)), a.ravel())
            self.assertEqual(got.inverse_indices.shape, a.shape)
            for part, names in ((ra.unique_values(x), ("values",)), (ra.unique_counts(x), ("values", "counts")),
                                (ra.unique_inverse(x), ("values", "inverse_indices"))):
                for name in names:
                    self.same(getattr(part, name, part), getattr(got, name).numpy())

    def test_running(self):
        for _ in range(80):
            a = draw(rng.choice(TYPES), any_shape(empty=False) or (3,))
            x, axis = ra.asarray(a), int(rng.integers(-a.ndim, a.ndim))
            dtype = a.dtype if a.dtype.kind == "f" else np.dtype("u8" if a.dtype.kind == "u" else "i8")
            for name, function in (("cumulative_sum", np.cumsum), ("cumulative_prod", np.cumprod)):
                want = function(a.astype("f8"), axis)
                self.same(getattr(ra, name)(x, axis=axis), want, dtype, 2)
                front = np.full(want.shape[:axis % a.ndim] + (1,) + want.shape[axis % a.ndim + 1:], name == "cumulative_prod")
                self.same(getattr(ra, name)(x, axis=axis, include_initial=True, dtype=ra.float64), np.concatenate([front, want], axis), "f8")
            self.same(ra.diff(x, axis=axis), np.diff(a, axis=axis))
            self.same(ra.diff(x, axis=axis, n=2, prepend=x), np.diff(a, 2, axis, prepend=a))
            self.same(ra.count_nonzero(x, axis=axis), np.count_nonzero(a, axis))
            self.same(ra.sum(x, axis=axis, dtype=ra.float64), a.sum(axis, dtype="f8"))
            self.same(ra.prod(x, axis=axis, dtype=ra.int64, keepdims=True), a.prod(axis, dtype="i8", keepdims=True) if a.dtype.kind != "f" else
                      np.trunc(a).prod(axis, keepdims=True).astype("i8"))

    def test_refusals(self):
        x = ra.asarray([[1j]])
        for error, mentions, call in (
            (TypeError, "complex numbers have no order", lambda: ra.sort(x)),
            (TypeError, "of real numbers", lambda: ra.max(x)),
            (ValueError, "needs an axis", lambda: ra.cumulative_sum(x)),
            (ValueError, "one dimension, not 2", lambda: ra.searchsorted(ra.ones((2, 2)), ra.ones(2))),
            (ValueError, "axis 2 of an array of 2", lambda: ra.sort(ra.ones((2, 2)), axis=2)),
            (ValueError, "'left' or 'right'", lambda: ra.searchsorted(ra.ones(2), ra.ones(2), side="up")),
        ):
            with self.assertRaisesRegex(error, mentions):
                call()


if __name__ == "__main__":
    unittest.main()
