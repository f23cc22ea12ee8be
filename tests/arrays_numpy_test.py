"""NumPy's functions and methods beside the array API's, against NumPy: at once, in plans, and with gradients."""
import io
import itertools
import unittest
import unittest.mock

import numpy as np
from arrays_tools import Case, any_shape, draw, normal, ra, rng
from rdna.arrays import _dispatch, nn


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

class NumPys(Case):
    """np.sort(x) and its kin are on the device and the same as of NumPy's arrays, or say that they are not."""

    CALLS = (
        lambda v: np.round(v), lambda v: np.round(v, 2), lambda v: np.round(v * 1e3, -2), lambda v: np.around(v), lambda v: np.clip(v, 0, 1), lambda v: np.clip(v, min=0.5),
        lambda v: np.sort(v, axis=0), lambda v: np.sort(v, None), lambda v: np.argsort(v, kind="stable"), lambda v: np.add(v, v), lambda v: np.float64(2) * v,
        lambda v: np.ones((3, 4)) - v, lambda v: np.ones(4) @ v.T, lambda v: np.ones(4) < v, lambda v: np.sum(v, axis=0), lambda v: np.sum(v, dtype="f4"),
        lambda v: np.mean(v, (0, 1), keepdims=True), lambda v: np.std(v, axis=0, ddof=1), lambda v: np.var(v), lambda v: np.max(v, axis=1, keepdims=True), lambda v: np.argmin(v, 1),
        lambda v: np.amin(v), lambda v: np.concatenate([v, np.ones((1, 4))]), lambda v: np.concatenate([v, v], axis=1), lambda v: np.stack([v, v], axis=1), lambda v: np.vstack([v, v[0]]),
        lambda v: np.hstack([v, v]), lambda v: np.where(v > 0, v, 0.0), lambda v: np.where(v > 0)[1], lambda v: np.cumsum(v), lambda v: np.cumprod(v, axis=1),
        lambda v: np.einsum("ij->j", v), lambda v: np.tensordot(v, v.T, axes=1), lambda v: np.dot(v, v.T), lambda v: np.outer(v, v), lambda v: np.multiply.outer(v, v),
        lambda v: np.add.reduce(v), lambda v: np.maximum.reduce(v, axis=1), lambda v: np.logical_or.reduce(v > 0, axis=None), lambda v: np.add.accumulate(v, axis=1),
        lambda v: np.transpose(v), lambda v: np.transpose(v[None], (2, 0, 1)), lambda v: np.reshape(v, (4, 3)), lambda v: np.ravel(v, "C"), lambda v: np.squeeze(v[None]),
        lambda v: np.expand_dims(v, 0), lambda v: np.moveaxis(v, 0, 1), lambda v: np.swapaxes(v, 0, 1), lambda v: np.flip(v, axis=1), lambda v: np.roll(v, 1), lambda v: np.roll(v, 1, axis=0),
        lambda v: np.repeat(v, 2, axis=1), lambda v: np.tile(v, 2), lambda v: np.tile(v, (2, 1)), lambda v: np.pad(v, 1), lambda v: np.split(v, 2, axis=1)[1], lambda v: np.diff(v),
        lambda v: np.broadcast_to(v, (2, 3, 4)), lambda v: np.take(v, [0, 2], axis=1), lambda v: np.take(v, [[0, 7], [2, 3]]), lambda v: np.take_along_axis(v, np.argsort(v, axis=1), axis=1),
        lambda v: np.nonzero(v > 0)[0], lambda v: np.count_nonzero(v, axis=0), lambda v: np.searchsorted(np.sort(v[0]), v[1]), lambda v: np.median(v, axis=0), lambda v: np.tril(v, -1),
        lambda v: np.trace(v), lambda v: np.diagonal(v, 1), lambda v: np.full_like(v, 2.0), lambda v: np.ones_like(v, dtype="i4"), lambda v: np.zeros_like(v), lambda v: np.isclose(v, v),
        lambda v: np.any(v > 1, axis=0), lambda v: np.power(abs(v), 1.5), lambda v: np.arctan2(v, 2.0), lambda v: np.rint(v), lambda v: np.absolute(v), lambda v: np.hypot(v, v),
        lambda v: np.real(v), lambda v: np.conj(v), lambda v: np.divmod(v, 2.0)[1], lambda v: np.linalg.norm(v), lambda v: np.linalg.norm(v, axis=1), lambda v: np.linalg.norm(v, 1),
        lambda v: np.linalg.svd(v, full_matrices=False)[1], lambda v: np.linalg.solve(v[:, :3], v[:, 3]), lambda v: np.linalg.det(v[:, :3]), lambda v: np.linalg.matrix_power(v[:, :3], 2),
        lambda v: np.fft.fft(v), lambda v: np.fft.rfft(v, 8, axis=0), lambda v: np.fft.ifftn(v, axes=(0, 1)), lambda v: np.linalg.norm(v, axis=(0, 1), keepdims=True))

    def test_on_the_device(self):
        a = normal("f8", (3, 4))
        for i, call in enumerate(self.CALLS):
            got, want = call(ra.asarray(a)), call(a)
            self.assertIsInstance(got, ra.Array, i)
            self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), i)
            rtol = 1e-5 if want.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol / 100, err_msg=str(i))
        x = ra.asarray(a)
        self.assertEqual((np.shape(x), np.ndim(x), np.size(x, 1), np.iscomplexobj(x), np.allclose(x, x), np.array_equal(x, -x), np.array2string(x)),
                         (a.shape, 2, 4, False, True, False, np.array2string(a)))
        place = np.zeros((3, 4))
        np.copyto(place, x)
        np.testing.assert_array_equal(place, a)
        whole, halves = np.arange(12).reshape(3, 4), np.full(4, 2.5)
        for low, high in ((0.5, 9.5), (None, 3.5), (halves, 7), (1, 8), (np.float32(1.5), None), (np.int8(3), 9)):  # in the type of all
            self.same(np.clip(ra.asarray(whole), low, high), np.clip(whole, low, high))
        self.same(np.clip(whole, ra.asarray(halves), 9), np.clip(whole, halves, 9))
        np.savez(file := io.BytesIO(), a=x)
        file.seek(0)
        np.testing.assert_array_equal(np.load(file)["a"], a)
        self.same(ra.grad(lambda v: np.sum(np.square(v)))(x), 2 * a)
        for call in (lambda v, w: np.linalg.solve(b=w, a=v), lambda v, w: np.searchsorted(v=w, a=v[0]), lambda v, w: np.take(axis=1, indices=[2, 0], a=v)):  # in any order
            left, right = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0], [0.5, 0.0, 2.0]]), normal("f8", (3, 2))
            np.testing.assert_allclose(call(ra.asarray(left), ra.asarray(right)).numpy(), call(left, right), rtol=1e-12)

    def test_no_other_makes_arrays_of_numpys(self):
        """All functions that NumPy hands over, on one array and on two: what is no array of rdna is a number, a shape or the like, or a TypeError."""
        x, plain, refused = ra.asarray([[1.0, 2.0], [2.0, 5.0]]), 0, 0
        host = {"save", "savez", "savez_compressed", "savetxt", "copyto"}
        for module in (np, np.linalg, np.fft):
            for name in dir(module):
                function = getattr(module, name)
                if not hasattr(function, "_implementation") and not isinstance(function, np.ufunc) or name in host:
                    continue
                for given in ((x,), (x, x)):
                    try:
                        made = function(*given)
                    except Exception as error:
                        if len(given) == 1:  # a second may stand where a number is meant
                            self.assertIsInstance(error, (TypeError, ValueError), name)
                        refused += 1
                        continue
                    plain += 1
                    for one in made if isinstance(made, (tuple, list)) else (made,):
                        self.assertNotIsInstance(one, (np.ndarray, np.generic), name)
        self.assertGreater(plain, 150)
        self.assertGreater(refused, 100)

    def test_functions_that_do_not_tell_their_parameters(self):
        """As those of NumPy 1 that are in C."""
        a, known = normal("f8", (3, 3)), _dispatch._signature
        with unittest.mock.patch.object(_dispatch, "_signature", lambda function: None if function.__module__ == "numpy" else known(function)):
            for call in (lambda v: np.concatenate([v, v], axis=1), lambda v: np.where(v > 0, v, 0.0), lambda v: np.dot(v, v), lambda v: np.zeros_like(v, dtype="f4")):
                np.testing.assert_allclose(call(ra.asarray(a)).numpy(), call(a), rtol=1e-12)
            with self.assertRaisesRegex(TypeError, "np.concatenate of an array of rdna: there is no 'casting' of it"):
                np.concatenate([ra.asarray(a)], casting="no")

    def test_what_is_refused(self):
        x, a = ra.ones((2, 2)), np.ones((2, 2))
        for words, call in (("np.histogram of an array of rdna: rdna.arrays has no such function; np.histogram of x.numpy\\(\\) computes on the host", lambda: np.histogram(x)),
                            ("no 'where' of it", lambda: np.sin(x, where=a > 0)), ("no 'initial'", lambda: np.max(x, initial=3)), ("np.gcd of", lambda: np.gcd(x, x)),
                            ("no 'overwrite_input'", lambda: np.median(x, overwrite_input=True)), ("leave `out` out", lambda: np.add(x, x, out=a)), ("leave `out` out", lambda: a.__iadd__(x)),
                            ("no out, as arrays do not change", lambda: np.cumsum(x, 0, out=a)), ("np.add.at of", lambda: np.add.at(x, 0, 1)), ("np.linalg.eig of", lambda: np.linalg.eig(x)),
                            ("no 'where' of it", lambda: np.divmod(x, 2, where=a > 0)), ("np.einsum of an array of rdna: there is no 'optimize'", lambda: np.einsum("ij->i", x, optimize=True)),
                            ("np.meshgrid of an array of rdna: there is no 'sparse'", lambda: np.meshgrid(x[0], x[0], sparse=True)),
                            ("np.copyto of an array of rdna: its memory is not written to", lambda: np.copyto(x, a)), ("by rows, order 'C', and not by 'F'", lambda: np.ravel(x, order="F")), ("by rows", lambda: np.reshape(x, (4,), "A")),
                            ("np.round of int64 to -1 decimals", lambda: np.round(ra.asarray([15]), -1))):
            with self.assertRaisesRegex(TypeError, words):
                call()


class Powers(Case):
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
