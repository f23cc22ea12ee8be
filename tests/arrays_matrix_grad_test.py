"""Gradients of rdna.arrays by complex numbers, through Fourier transforms and through the factors of matrices, against differences in float64, first and
second; sorting in plans; and what has none. By x + i y a gradient is the derivative by x plus i times that by y."""
import math
import unittest

import numpy as np
from arrays_tools import Case, ra, rng

LA, FFT = ra.linalg, ra.fft


def weights(shape):
    return np.cos(1.7 * np.arange(int(np.prod(shape)))).reshape(shape) + 0.3


def weighted(made):
    """One real number that all of real and imaginary parts of arrays lead to."""
    made = made if isinstance(made, (list, tuple)) else [made]
    total = 0.0
    for i, y in enumerate(made):
        w = ra.asarray(weights(y.shape) + 0.1 * i)
        total = (ra.real(y) * w).sum() + (ra.imag(y) * (w * 0.7 - 0.2)).sum() + total if y.dtype.kind == "c" else (y * w).sum() + total
    return total


def draw_like(a):
    values = rng.normal(size=a.shape)
    return values + 1j * rng.normal(size=a.shape) if a.dtype.kind == "c" else values


class Gradients(Case):
    def close(self, function, *arrays, second=True, tolerance=1e-6, h=1e-5):
        """Differences are off by h^2 times third derivatives, some hundreds at most here, 1e-8, and by values' rounding over h, 1e-10."""
        arrays = [np.array(a, np.complex128 if np.iscomplexobj(a) else np.float64) for a in arrays]
        every, given = tuple(range(len(arrays))), list(map(ra.asarray, arrays))
        loss = lambda *xs: weighted(function(*xs))
        steepness = lambda *xs: weighted(ra.grad(loss, every)(*xs))
        at_once, planned = (f(*given) for f in (function, ra.compile(function)))
        for a, b in zip(*((x,) if isinstance(x, ra.Array) else x for x in (at_once, planned))):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12, atol=1e-12)
        for of in (loss, steepness) if second else (loss,):
            slopes = ra.grad(of, every)(*given)
            for slope, x in zip(slopes, given):
                self.assertEqual((slope.dtype, slope.shape), (x.dtype, x.shape))
            for _ in range(2):  # along directions that all parts of all values have a share in
                along = list(map(draw_like, arrays))
                above, below = (float(of(*(ra.asarray(a + side * d) for a, d in zip(arrays, along)))) for side in (h, -h))
                shares = np.concatenate([(slope.numpy().conj() * d).real.ravel() for slope, d in zip(slopes, along)])
                self.assertAlmostEqual(shares.sum(), (above - below) / (2 * h), delta=tolerance * max(1, np.abs(shares).max()))

    @staticmethod
    def matrix(*shape, kind="f"):
        values = rng.normal(size=shape)
        return values + 1j * rng.normal(size=shape) if kind == "c" else values

    # ---- complex numbers ----

    def test_determinants_of_nothing(self):
        slope = ra.grad(lambda x: ra.sum(ra.linalg.det(x)))
        for shape in ((0, 3, 3), (0, 0), (2, 0, 0)):
            self.assertEqual(slope(ra.zeros(shape)).shape, shape)

    def test_complex_values(self):
        z = rng.uniform(0.3, 0.8, (2, 2)) * np.exp(1j * rng.uniform(-2.5, 2.5, (2, 2)))
        for name in ("negative sqrt exp log sin cos tan tanh sinh cosh reciprocal sign square abs conj real imag log1p expm1 log2 log10 acos asin atan acosh asinh "
                     "atanh").split():
            with self.subTest(name):
                self.close(getattr(ra, name), z)
        w, x = self.matrix(2, kind="c"), rng.uniform(0.5, 1.5, (2, 1))
        for name in "add subtract multiply divide pow".split():
            with self.subTest(name):
                self.close(getattr(ra, name), z, w)
                self.close(getattr(ra, name), x, w)
                self.close(getattr(ra, name), z, x)
                self.close(lambda a: getattr(ra, name)(a, 1.5 - 0.5j) + getattr(ra, name)(2.0, a), z)
        self.close(lambda a: ra.where(ra.asarray([True, False]), a, a * a), z)
        self.close(lambda a: ra.astype(a, ra.complex128) * 1j + a, x)
        self.close(lambda a: [ra.sum(a, axis=0), ra.mean(a), ra.prod(a, axis=1), ra.cumulative_sum(a, axis=1), ra.cumulative_prod(a, axis=1)], z)

    def test_complex_moves(self):
        z = self.matrix(2, 3, kind="c")
        for function in (lambda a: ra.reshape(a, (3, 2)).T, lambda a: a[::-1, 1:], lambda a: ra.concat([a, a * 2], axis=1), lambda a: ra.broadcast_to(a[:, None], (2, 2, 3)),
                         lambda a: ra.tril(a) + ra.triu(a, k=1) * 3, lambda a: ra.take(a, ra.asarray([2, 0]), axis=1), lambda a: ra.flip(a), lambda a: ra.roll(a, 1),
                         lambda a: ra.take_along_axis(a, ra.asarray([[0], [2]]), axis=1), lambda a: ra.stack([a, ra.conj(a)]), lambda a: ra.diff(a, axis=1)):
            self.close(function, z)

    def test_complex_products(self):
        a, b = self.matrix(2, 2, 3, kind="c"), self.matrix(3, 2, kind="c")
        for function in (ra.matmul, lambda x, y: ra.tensordot(x, y, axes=1), lambda x, y: ra.vecdot(x, y.T)):
            self.close(function, a, b)
        self.close(ra.matmul, a.real, b)
        self.close(LA.outer, self.matrix(3, kind="c"), self.matrix(2, kind="c"))
        self.close(ra.vecdot, self.matrix(3, kind="c"), self.matrix(3))

    def test_steepest_descent_goes_down(self):
        """The convention: what goes against the gradient gets smaller, and a holomorphic function's gradient is its conjugated derivative."""
        z = ra.asarray(np.array([1.0 + 2.0j, -0.5j]))
        loss = lambda a: (ra.abs(a * a - (3.0 + 4.0j)) ** 2.0).sum()
        value, slope = ra.value_and_grad(loss)(z)
        self.assertLess(float(loss(z - slope * 1e-3)), float(value))
        np.testing.assert_allclose(ra.grad(lambda a: ra.real(a ** 3.0).sum())(z).numpy(), np.conj(3 * z.numpy() ** 2), rtol=1e-12)
        _, pull = ra.vjp(lambda a: a * a, z)
        np.testing.assert_allclose(pull(z)[0].numpy(), z.numpy() * np.conj(2 * z.numpy()), rtol=1e-12)
        _, along = ra.jvp(lambda a: a * a, (z,), (z,))
        np.testing.assert_allclose(along.numpy(), 2 * z.numpy() ** 2, rtol=1e-12)

    def test_zeros(self):
        """abs and signs have no derivative at 0, where PyTorch has 0."""
        z = ra.asarray(np.array([0j]))
        for function in (ra.abs, lambda a: ra.real(ra.sign(a)), lambda a: ra.real(a ** 2.0)):
            np.testing.assert_array_equal(ra.grad(lambda a: function(a).sum())(z).numpy(), [0])

    # ---- Fourier transforms ----

    def test_fft(self):
        x, z = self.matrix(2, 5), self.matrix(2, 4, kind="c")
        for norm in ("backward", "ortho", "forward"):
            for function in (FFT.fft, FFT.ifft, FFT.hfft, FFT.irfft):
                self.close(lambda a: function(a, norm=norm), z)
            for function in (FFT.rfft, FFT.ihfft, FFT.fft):
                self.close(lambda a: function(a, norm=norm), x)
        for n in (1, 2, 3, 6, 7):
            for axis in (0, 1):
                self.close(lambda a: FFT.fft(a, n=n, axis=axis), z)
                self.close(lambda a: FFT.rfft(a, n=n, axis=axis), x)
                self.close(lambda a: FFT.irfft(a, n=n, axis=axis), z)
        self.close(lambda a: FFT.fftn(a), z)
        self.close(lambda a: FFT.ifftn(a, axes=(0,)), z)
        self.close(lambda a: FFT.rfftn(a), x)
        self.close(lambda a: FFT.irfftn(a, s=(2, 6)), z)
        self.close(lambda a: FFT.fftshift(FFT.fft(a)), z)
        self.close(lambda a: FFT.irfft(FFT.rfft(a) * FFT.rfft(a[::-1]), n=5), x)  # a convolution

    # ---- matrices ----

    def both(self, function, *shape, **options):
        for kind in "fc":
            with self.subTest(kind=kind, shape=shape):
                self.close(function, self.matrix(*shape, kind=kind), **options)

    @staticmethod
    def positive(a):
        """Hermitian matrices of a's, positive definite."""
        return a @ ra.conj(ra.matrix_transpose(a)) + ra.eye(a.shape[-1], dtype=ra.float64) * 2.0

    def test_cholesky(self):
        for upper in (False, True):
            self.both(lambda a: LA.cholesky(self.positive(a), upper=upper), 2, 3, 3)

    def test_solve(self):
        for kind in "fc":
            a, b = self.matrix(2, 3, 3, kind=kind), self.matrix(3, 2, kind=kind)
            self.close(LA.solve, a, b)
            self.close(LA.solve, a[0], b[:, 0])
            self.close(LA.inv, a)
            self.close(LA.det, a)
            self.close(lambda x: LA.matrix_power(x, 3), a[0])
            self.close(lambda x: LA.matrix_power(x, -2), a[0], tolerance=1e-5)
            self.close(lambda x: list(LA.slogdet(x))[kind == "f":], a)
        self.close(LA.solve, self.matrix(2, 2), self.matrix(2, 2, kind="c"))
        self.close(lambda a: LA.det(a), self.matrix(1, 1))

    def test_qr(self):
        for shape in ((2, 4, 3), (3, 3), (2, 4)):
            self.both(lambda a: list(LA.qr(a)), *shape, tolerance=1e-5)
            self.both(lambda a: LA.qr(a).R, *shape, tolerance=1e-5)
            self.both(lambda a: LA.qr(a).Q, *shape, tolerance=1e-5)
        self.both(lambda a: list(LA.qr(a, mode="complete")), 3, 3, tolerance=1e-5)

    def test_eigh(self):
        self.both(lambda a: LA.eigvalsh(self.positive(a)), 2, 3, 3, tolerance=1e-5)

        def fixed(a):  # by what does not depend on the vectors' phases
            values, v = LA.eigh(self.positive(a))
            return [values, ra.matmul(v * ra.reshape(ra.sin(values), (1, -1)), ra.conj(v.T))]
        self.both(fixed, 3, 3, tolerance=1e-5)
        self.close(lambda a: LA.eigh(self.positive(a)).eigenvectors ** 2.0, self.matrix(3, 3), tolerance=1e-5)

    def test_svd(self):
        for shape in ((2, 4, 3), (3, 4), (3, 3)):
            self.both(LA.svdvals, *shape, tolerance=1e-5)

            def fixed(a):
                u, s, vh = LA.svd(a, full_matrices=False)
                return [s, ra.matmul(u * ra.expand_dims(s * s, axis=-2), vh), ra.matmul(u * ra.expand_dims(ra.cos(s), axis=-2), ra.conj(ra.matrix_transpose(u))),
                        ra.matmul(ra.conj(ra.matrix_transpose(vh)) * ra.expand_dims(s, axis=-2), vh)]
            self.both(fixed, *shape, tolerance=2e-5)
        self.close(lambda a: [LA.svd(a, full_matrices=False).U ** 2.0, LA.svd(a, full_matrices=False).Vh ** 2.0], self.matrix(4, 3), tolerance=1e-5)
        self.close(lambda a: LA.svd(a).S, self.matrix(2, 3), tolerance=1e-5)

    def test_norms(self):
        for ord in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf):
            self.both(lambda a: LA.matrix_norm(a, ord=ord), 2, 3, 2, tolerance=1e-5)
        self.both(lambda a: LA.vector_norm(a, axis=0), 2, 3)

    def test_pinv(self):
        for shape in ((2, 4, 3), (2, 3), (3, 3)):
            self.both(LA.pinv, *shape, tolerance=1e-5)
        self.both(lambda a: LA.pinv(ra.matmul(a, ra.conj(a.T)), rtol=1e-8), 3, 2, second=False, tolerance=1e-5)  # of rank 2

    def test_products(self):
        self.both(lambda a: [LA.trace(a), LA.diagonal(a, offset=1), LA.matrix_transpose(a)], 2, 3, 3)
        self.close(LA.cross, self.matrix(2, 3), self.matrix(2, 3))

    def test_float32(self):
        """Types stay, and are as exact as they can be."""
        a = self.matrix(4, 4).astype(np.float32)
        of = lambda x: (LA.inv(x) ** 2.0).sum() + LA.slogdet(x).logabsdet + ra.abs(FFT.fft(x)).sum()
        got, want = ra.grad(of)(ra.asarray(a)), ra.grad(of)(ra.asarray(a.astype(np.float64)))
        self.assertEqual(got.dtype, np.float32)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=0, atol=2e3 * np.finfo("f4").eps * abs(want.numpy()).max())

    # ---- sorting, plans, and what is refused ----

    def test_sorting_in_plans(self):
        for dtype in (np.float64, np.int32):
            x = rng.permutation(30).reshape(5, 6).astype(dtype)
            for axis in (0, 1):
                for descending in (False, True):
                    order = ra.compile(lambda a: ra.argsort(a, axis=axis, descending=descending))(ra.asarray(x))
                    self.same(order, np.argsort(-x if descending else x, axis=axis))
                    self.same(ra.compile(lambda a: ra.sort(a, axis=axis, descending=descending))(ra.asarray(x)), np.take_along_axis(x, order.numpy(), axis))
            line, asked = ra.asarray(np.sort(x, axis=None)), ra.asarray(x[0])
            self.same(ra.compile(lambda a, b: ra.searchsorted(a, b, side="right"))(line, asked), np.searchsorted(line.numpy(), x[0], "right"))
        x = np.array([[3.0, np.nan, -1.0, 2.0]])
        self.same(ra.compile(ra.sort)(ra.asarray(x)), np.sort(x))
        self.close(lambda a: ra.sort(a, axis=0, descending=True), self.matrix(4, 2))
        self.close(lambda a: ra.cumulative_sum(ra.sort(a) ** 2.0, axis=1), self.matrix(2, 3))
        median = ra.compile(ra.grad(lambda a: ra.sort(a)[3]))
        for _ in range(3):
            a = rng.permutation(7).astype(float)
            self.same(median(ra.asarray(a)), (a == 3).astype(float))

    def test_determinants_of_graded_matrices(self):
        """Rows and columns from 1e-6 to 1e6 times the others keep the digits of their derivatives, which are whole numbers' determinants times powers."""
        for n in (2, 3, 5):
            for dtype, digits in (("f4", 3e-4), ("f8", 1e-11), ("c8", 3e-4), ("c16", 1e-11)):
                for singular in (False, True):
                    b = rng.integers(-9, 10, (n, n)) + 10.0 * np.eye(n)
                    b[-1] = b[0] if singular else b[-1]
                    rows, columns = (2.0 ** rng.permutation(np.linspace(-20, 20, n).astype(int)) for _ in range(2))
                    want = np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(b, i, 0), j, 1)) for j in range(n)] for i in range(n)]).round()
                    largest = np.abs(want).max()
                    want = want * np.prod(rows) * np.prod(columns) / (rows[:, None] * columns)
                    x = ra.asarray((rows[:, None] * b * columns).astype(dtype))
                    for call in (lambda f: f(x), lambda f: ra.compile(f)(x)):
                        got = call(ra.grad(lambda v: ra.real(LA.det(v)).sum() if v.pairs else LA.det(v).sum())).numpy()
                        scale = largest * np.prod(rows) * np.prod(columns) / (rows[:, None] * columns)
                        self.assertLess((np.abs(got - want) / scale).max(), digits, (n, dtype, singular))

    def test_determinants_of_singular_matrices(self):
        """The cofactors, which are determinants of what is left without a row and a column."""
        a = self.matrix(2, 4, 4)
        a[0, 3] = a[0, 1] - 2 * a[0, 0]
        a[1, 2:] = 0
        for x in (a, a + 1j * a[:, ::-1], np.zeros((1, 3, 3)), np.ones((1, 2, 2)), np.full((1, 1, 1), 2.0)):
            got = ra.grad(lambda v: ra.real(LA.det(v)).sum() if v.pairs else LA.det(v).sum())(ra.asarray(x)).numpy()
            for k, i, j in np.ndindex(x.shape):
                cofactor = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x[k], i, 0), j, 1))
                np.testing.assert_allclose(got[k, i, j], np.conj(cofactor), rtol=1e-9, atol=1e-11)

    def test_plans_run_again(self):
        step = ra.compile(ra.value_and_grad(lambda a: LA.slogdet(self.positive(a)).logabsdet))
        for _ in range(3):
            a = self.matrix(3, 3)
            value, slope = step(ra.asarray(a))
            p = a @ a.T + 2 * np.eye(3)
            np.testing.assert_allclose(float(value), np.linalg.slogdet(p)[1], rtol=1e-12)
            np.testing.assert_allclose(slope.numpy(), 2 * np.linalg.inv(p) @ a, rtol=1e-10)
        self.assertIn("slogdet", str(ra.graph(lambda a: LA.slogdet(a).logabsdet, ra.asarray(a))))

    def test_checkpoint(self):
        a = self.matrix(3, 3)
        of = lambda x: (LA.inv(ra.checkpoint(lambda v: LA.cholesky(self.positive(v)))(x)) ** 2.0).sum()
        plain = lambda x: (LA.inv(LA.cholesky(self.positive(x))) ** 2.0).sum()
        np.testing.assert_allclose(ra.grad(of)(ra.asarray(a)).numpy(), ra.grad(plain)(ra.asarray(a)).numpy(), rtol=1e-12)

    def test_what_is_refused(self):
        a = ra.asarray(self.matrix(3, 2))
        for error, mentions, call in (
                (TypeError, "columns of Q behind the first are not unique", lambda: ra.grad(lambda x: LA.qr(x, mode="complete").Q.sum())(a)),
                (TypeError, "full_matrices=False has none such", lambda: ra.grad(lambda x: LA.svd(x).U.sum())(a)),
                (TypeError, "its value must be real, not complex128; vjp takes others", lambda: ra.grad(lambda x: (x * 1j).sum())(a)),
                (LA.LinAlgError, "singular", lambda: ra.grad(lambda x: ra.grad(LA.det)(x).sum())(ra.asarray(np.ones((2, 2))))),
                (LA.LinAlgError, "not positive definite", lambda: ra.compile(LA.cholesky)(ra.asarray(-np.eye(2)))),
                (TypeError, "complex numbers have no order", lambda: ra.compile(ra.sort)(a * 1j)),
                (ValueError, "of square matrices, not of shape", lambda: ra.grad(lambda x: LA.inv(x).sum())(a))):
            with self.assertRaisesRegex(error, mentions):
                call()
        self.same(ra.grad(lambda x: x.sum())(a), np.ones((3, 2)))  # and nothing of that stays


if __name__ == "__main__":
    unittest.main()
