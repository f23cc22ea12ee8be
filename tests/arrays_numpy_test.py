"""NumPy's functions and methods beside the array API's, against NumPy: at once, in plans, and with gradients."""
import itertools
import unittest

import numpy as np
from arrays_tools import Case, any_shape, draw, normal, ra, rng
from rdna.arrays import nn


class Functions(Case):
    def test_einsum(self):
        sizes = dict(zip("abijkl", (2, 3, 4, 5, 2, 3)))
        for text in ("ij,jk->ik", "bij,bjk->bik", "ij,ij->", "ij->ji", "ii", "ii->i", "i,j->ij", "ij,jk,kl->il", "bij,bij->b", "ij,kl->", "aibj,ai->bj", "ij,j", "i,i", "ijk->j",
                     "aij,bij->ab", "ij,k->ik", "iij,j->ij", "abij,abkj->abik"):
            given = text.partition("->")[0].split(",")
            for dtype in ("f8", "c16", "i8"):
                values = [normal(dtype, [sizes[c] for c in letters]) if dtype != "i8" else draw("i8", [sizes[c] for c in letters]) for letters in given]
                want = np.einsum(text, *values)
                for call in (ra.einsum, ra.compile(ra.einsum)):
                    got = call(text, *map(ra.asarray, values))
                    self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
                    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
        a, b = normal("f8", (3, 4)), normal("f8", (4, 2))
        np.testing.assert_allclose(ra.grad(lambda x: (ra.einsum("ij,jk->ik", x, ra.asarray(b)) ** 2).sum())(ra.asarray(a)).numpy(), 2 * a @ b @ b.T, rtol=1e-12)
        x = ra.ones((2, 3))
        for text, arrays, words in (("ij,jk", [x], "for 1 arrays"), ("ijk", [x], "of 2 dimensions"), ("ij->k", [x], "no array has"), ("i...", [x], "letters"),
                                    ("ij,jk->ik", [x, x], "'j' is 3 and 2")):
            with self.assertRaisesRegex(ValueError, words):
                ra.einsum(text, *arrays)

    def test_made_of_others(self):
        for _ in range(40):
            a = normal("f8", any_shape(3, empty=False) or (2,))
            axis = int(rng.integers(-a.ndim, a.ndim))
            x = ra.asarray(a)
            self.near(ra.median(x, axis=axis), np.median(a, axis), "f8")
            self.near(ra.median(x), np.median(a), "f8")
            self.near(ra.logsumexp(x * 1e3, axis=axis), np.logaddexp.reduce(a * 1e3, axis), "f8")
            width = [tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in range(a.ndim)]
            self.same(ra.pad(x, width, constant_values=2.5), np.pad(a, width, constant_values=2.5))
            self.same(ra.pad(x, 1), np.pad(a, 1))
            ends = sorted(int(n) for n in rng.integers(0, a.shape[axis] + 1, 2))
            for got, want in itertools.zip_longest(ra.split(x, ends, axis=axis), np.split(a, ends, axis)):
                self.same(got, want)
            self.same(ra.swapaxes(x, axis, 0), np.swapaxes(a, axis, 0))
        self.same(ra.median(ra.asarray([1.0, np.nan, 2.0])), np.float32(np.nan))
        self.same(ra.median(ra.asarray([4, 1, 3, 2])), np.median([4, 1, 3, 2]))
        self.same(ra.logsumexp(ra.asarray([-np.inf, -np.inf])), np.float32(-np.inf))
        self.assertEqual([p.shape for p in ra.split(ra.ones(6), 3)], [(2,)] * 3)
        self.same(ra.dot(ra.asarray([1.0, 2.0]), ra.asarray([3.0, 4.0])), np.float32(11))
        for error, words, call in ((ValueError, "not 4 equal parts", lambda: ra.split(ra.ones(6), 4)), (ValueError, "pad: -1", lambda: ra.pad(ra.ones(2), -1)),
                                   (ValueError, "of no values", lambda: ra.median(ra.ones((0,))))):
            with self.assertRaisesRegex(error, words):
                call()

    def test_closeness(self):
        a = np.array([1.0, np.inf, -np.inf, np.nan, 0.0, 1e9])
        b = np.array([1.0 + 1e-6, np.inf, np.inf, np.nan, 1e-9, 1e9 + 1])
        for equal_nan in (False, True):
            self.same(ra.isclose(ra.asarray(a), ra.asarray(b), equal_nan=equal_nan), np.isclose(a, b, equal_nan=equal_nan))
        self.assertEqual((ra.allclose(ra.ones(2), ra.ones(2) + 1e-7), ra.allclose(ra.ones(2), 2 * ra.ones(2))), (True, False))
        self.assertEqual((ra.array_equal(ra.ones(2), ra.ones(2)), ra.array_equal(ra.ones(2), ra.ones(3)), ra.array_equal(ra.ones(2), ra.zeros(2))), (True, False, False))


class Methods(Case):
    def test_are_those_of_numpy(self):
        a = normal("f8", (2, 1, 3))
        x = ra.asarray(a)
        for call in (lambda v: v.transpose(), lambda v: v.transpose(2, 0, 1), lambda v: v.transpose((1, 0, 2)), lambda v: v.squeeze(), lambda v: v.squeeze(axis=1), lambda v: v.flatten(),
                     lambda v: v.ravel(), lambda v: v.copy(), lambda v: v.clip(-0.5, 0.5), lambda v: v.clip(min=0), lambda v: v.repeat(2, axis=2), lambda v: v.take([0, 2], axis=2) if
                     isinstance(v, np.ndarray) else v.take(ra.asarray([0, 2]), axis=2), lambda v: v.argsort(), lambda v: v.cumsum(), lambda v: v.cumsum(axis=2), lambda v: v.round(),
                     lambda v: v.conj(), lambda v: v.real, lambda v: (v * 1j).real, lambda v: (v + 2j).imag, lambda v: v.flatten().dot(v.flatten())):
            got, want = call(x), call(a)
            self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)

    def test_dot_of_numbers_and_what_is_refused(self):
        x = rng.normal(size=(3, 4))
        np.testing.assert_allclose(ra.asarray(x).dot(2.0).numpy(), x * 2)
        np.testing.assert_allclose(ra.dot(2.0, ra.asarray(x)).numpy(), x * 2)
        self.assertEqual([p.shape for p in ra.split(ra.arange(3), [-5])], [p.shape for p in np.split(np.arange(3), [-5])])
        with self.assertRaisesRegex(ValueError, r"einsum: 'i' is 3 and 4 in one array"):
            ra.einsum("ii->i", ra.asarray(x))
        with self.assertRaisesRegex(ValueError, r"dot: the second is a matrix or a vector; of \(2, 3, 4\) and \(2, 4, 5\)"):
            ra.dot(ra.ones((2, 3, 4)), ra.ones((2, 4, 5)))

    def test_numpys_reductions_take_arrays(self):
        a = normal("f4", (3, 4))
        for function in (np.mean, np.sum, np.max, np.min, np.prod, np.std, np.var, np.argmax):
            got = function(ra.asarray(a), axis=1)
            self.assertIsInstance(got, ra.Array)
            np.testing.assert_allclose(got.numpy(), function(a, axis=1), rtol=1e-5)
        self.assertEqual(np.sum(ra.asarray(a), dtype="f8").dtype, np.float64)
        with self.assertRaisesRegex(TypeError, "there is no out"):
            np.sum(ra.asarray(a), axis=0, out=np.zeros(4))

    def test_powers_by_numbers(self):
        """Their gradients ask nothing, of 0, 1 and 2 too, at 0 as NumPy's."""
        a = np.array([-2.0, 0.0, 0.5, 3.0])
        for n in (0, 1, 2, 3, 0.5, -1.0):
            with np.errstate(all="ignore"):
                want = n * a ** (n - 1.0) if n else np.zeros(4)
                second = n * (n - 1) * a ** (n - 2.0) if n * (n - 1) else np.zeros(4)
            both = ra.grad(lambda x: (x ** n).sum())
            np.testing.assert_allclose(both(ra.asarray(a)).numpy(), want, rtol=1e-13)
            np.testing.assert_allclose(ra.grad(lambda x: both(x).sum())(ra.asarray(a)).numpy(), second, rtol=1e-13)
            self.assertNotIn("where", str(ra.graph(both, ra.asarray(a)).plan()))

    def test_modules_are_shown(self):
        text = repr(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU())))
        self.assertEqual(text, "Sequential(\n  (0): Linear(weight (3, 2), bias (3,))\n  (1): Sequential(\n    (0): ReLU()\n  )\n)")


if __name__ == "__main__":
    unittest.main()
