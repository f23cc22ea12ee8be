"""rdna.arrays.linalg against NumPy in double: what can differ by a sign or a phase by what it must satisfy."""
import math
import unittest

import numpy as np
from arrays_tools import COMPLEX, Case, any_shape, normal, part_of, ra, rng, wide

TYPES = [np.dtype("float32"), np.dtype("float64"), *COMPLEX]
linalg = ra.linalg


def turned(a):
    return a.conj().swapaxes(-1, -2)


class Linalg(Case):
    def cases(self, square=False, most=6):
        for _ in range(4):
            for dtype in TYPES:
                m, n = (int(v) for v in rng.integers(0 if rng.integers(6) == 0 else 1, most + 1, 2))
                yield dtype, normal(dtype, (*any_shape(2), m, m if square else n))

    def test_factors(self):
        for dtype, a in self.cases():
            x, (m, n), real = ra.asarray(a), a.shape[-2:], dtype.type().real.dtype
            for mode in ("reduced", "complete"):
                q, r = linalg.qr(x, mode=mode)
                k = m if mode == "complete" else min(m, n)
                self.assertEqual((q.shape, r.shape), ((*a.shape[:-2], m, k), (*a.shape[:-2], k, n)))
                self.near(q @ r, a, dtype)
                self.near(ra.asarray(turned(q.numpy())) @ q, np.broadcast_to(np.eye(k), (*a.shape[:-2], k, k)), dtype)
                self.same(r, np.triu(r.numpy()))
            want = np.linalg.svd(wide(a), compute_uv=False) if a.size else np.zeros((*a.shape[:-2], min(m, n)))
            self.near(linalg.svdvals(x), want, real)
            for full in (True, False):
                u, s, vh = linalg.svd(x, full_matrices=full)
                self.near(s, want, real)
                k = min(m, n)
                self.near(ra.asarray(u.numpy()[..., :k] * s.numpy()[..., None, :]) @ ra.asarray(vh.numpy()[..., :k, :]), a, dtype)
                for side in (turned(u.numpy()) @ u.numpy(), vh.numpy() @ turned(vh.numpy())):
                    np.testing.assert_allclose(side, np.broadcast_to(np.eye(side.shape[-1]), side.shape), atol=64 * np.finfo(dtype).eps)
                self.assertEqual((u.shape[-1], vh.shape[-2]), (m, n) if full else (k, k))

    def test_square(self):
        for dtype, a in self.cases(square=True):
            n = a.shape[-1]
            a = a + 3 * np.eye(n, dtype=dtype)
            x = ra.asarray(a)
            exact = wide(a)
            inverse = np.linalg.inv(exact)
            bound = 64 * max(1, np.abs(inverse).max(initial=0) * np.abs(exact).max(initial=0) * max(n, 1))
            self.near(linalg.inv(x), inverse, dtype, bound)
            b = normal(dtype, (*a.shape[:-2], n, 3))
            self.near(linalg.solve(x, ra.asarray(b)), inverse @ wide(b), dtype, bound * 4)
            self.near(linalg.solve(x, ra.asarray(b[..., 0].reshape(-1)[:n] if b.size >= n and n else np.zeros(n, dtype))),
                      (inverse @ (wide(b)[..., 0].reshape(-1)[:n] if b.size >= n and n else np.zeros(n))[:, None])[..., 0], dtype, bound * 4)
            self.near(linalg.det(x), np.linalg.det(exact), dtype, bound)
            sign, size = linalg.slogdet(x)
            want = np.linalg.slogdet(exact)
            self.near(sign, want[0], dtype, bound)
            self.near(size, want[1], dtype.type().real.dtype, bound)
            for power in (-2, 0, 1, 5):
                self.near(linalg.matrix_power(x, power), np.linalg.matrix_power(exact, power), dtype, bound * bound)

    def test_symmetric(self):
        for dtype, a in self.cases(square=True):
            n, real = a.shape[-1], dtype.type().real.dtype
            b = a + turned(a)
            values, vectors = linalg.eigh(ra.asarray(b))
            want = np.linalg.eigvalsh(wide(b)) if b.size else np.zeros(b.shape[:-1])
            self.near(values, want, real)
            self.near(linalg.eigvalsh(ra.asarray(np.tril(b))), want, real)  # of which the lower triangle is read
            self.near(ra.asarray(b) @ vectors, vectors.numpy() * values.numpy()[..., None, :], dtype, 256)
            self.near(ra.asarray(turned(vectors.numpy())) @ vectors, np.broadcast_to(np.eye(n), b.shape), dtype)
            definite = a @ turned(a) + np.eye(n, dtype=dtype)
            for upper in (False, True):
                given = ra.asarray(np.triu(definite) if upper else np.tril(definite))
                factor = linalg.cholesky(given, upper=upper).numpy()
                self.near(ra.asarray(turned(factor) @ factor if upper else factor @ turned(factor)), definite, dtype)
                np.testing.assert_array_equal(factor, np.triu(factor) if upper else np.tril(factor))

    def test_of_lower_rank(self):
        for dtype in TYPES:
            a = normal(dtype, (2, 5, 2)) @ normal(dtype, (2, 2, 4))
            x = ra.asarray(a)
            self.same(linalg.matrix_rank(x), [2, 2])
            self.near(linalg.pinv(x), np.linalg.pinv(wide(a), rcond=1e-4), dtype, 4096)
            u, s, vh = linalg.svd(x)
            np.testing.assert_allclose(turned(u.numpy()) @ u.numpy(), np.broadcast_to(np.eye(5), (2, 5, 5)), atol=64 * np.finfo(dtype).eps)
            same = ra.asarray(np.eye(4, dtype=dtype) * 2)  # values that are all equal
            values, vectors = linalg.eigh(same)
            self.near(values, [2] * 4, dtype.type().real.dtype)
            self.near(ra.asarray(turned(vectors.numpy())) @ vectors, np.eye(4), dtype)
            self.same(linalg.matrix_rank(ra.asarray(np.zeros((3, 4), dtype))), 0)
            zero = linalg.svd(ra.asarray(np.zeros((4, 3), dtype)))
            self.near(ra.asarray(turned(zero.U.numpy())) @ zero.U, np.eye(4), dtype)

    def test_norms(self):
        for dtype, a in self.cases():
            if not a.size:
                continue
            x, real = ra.asarray(a), dtype.type().real.dtype
            for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
                for keep in (False, True):
                    self.near(linalg.matrix_norm(x, ord=order, keepdims=keep), np.linalg.norm(wide(a), order, (-2, -1), keep), real)
            for order in (0, 1, 2, 3, -1, -2, 0.5, math.inf, -math.inf):
                self.near(linalg.vector_norm(x, ord=order, axis=-1), np.linalg.norm(wide(a), order, -1), real)
            self.near(linalg.vector_norm(x), np.linalg.norm(wide(a).ravel()), real)

    def test_products(self):
        for _ in range(40):
            dtype = rng.choice(TYPES + [np.dtype("i4"), np.dtype("i8"), np.dtype("u1"), np.dtype("bool")])
            a, b = ((normal("f8", s) * 5).astype(dtype) if dtype.kind != "c" else normal(dtype, s) for s in ((2, 3, 4), (4, 3, 5)))
            self.near_or_same(linalg.tensordot(ra.asarray(a), ra.asarray(b), axes=((1, 2), (1, 0))), np.tensordot(a, b, ((1, 2), (1, 0))))
            batch = any_shape(2)
            k = int(rng.integers(0, 5))
            a, b = ((normal("f8", s) * 5).astype(dtype) if dtype.kind != "c" else normal(dtype, s)
                    for s in ((*part_of(batch), 3, k), (*part_of(batch), k, 2)))
            self.near_or_same(linalg.matmul(ra.asarray(a), ra.asarray(b)), np.matmul(a, b))
            self.near_or_same(linalg.vecdot(ra.asarray(a), ra.asarray(a[..., :1, :])), np.vecdot(a, a[..., :1, :]))
            if dtype.kind != "b":
                a, b = ((normal("f8", s) * 5).astype(dtype) if dtype.kind != "c" else normal(dtype, s) for s in ((2, 3, 1), (3, 4)))
                self.near_or_same(linalg.cross(ra.asarray(a), ra.asarray(b), axis=-2), np.cross(np.broadcast_to(a, (2, 3, 4)), np.broadcast_to(b, (2, 3, 4)), axis=-2))
                self.near_or_same(linalg.outer(ra.asarray(a[0, :, 0]), ra.asarray(b[0])), np.outer(a[0, :, 0], b[0]))
            for offset in (-5, -1, 0, 2):
                self.near_or_same(linalg.diagonal(ra.asarray(b), offset=offset), np.diagonal(b, offset, -2, -1))
                self.near_or_same(linalg.trace(ra.asarray(b), offset=offset, dtype=dtype), np.trace(b, offset, -2, -1, dtype))
            self.assertEqual(linalg.matrix_transpose(ra.asarray(b)).shape, (*b.shape[:-2], b.shape[-1], b.shape[-2]))

    def near_or_same(self, got, want):
        if want.dtype.kind in "fc":
            self.near(got, want, want.dtype)
        else:
            self.same(got, want)

    def test_many_rows_of_integers(self):
        a, b = rng.integers(-9, 9, (700, 90)), rng.integers(-9, 9, (90, 80))
        self.same(ra.asarray(a) @ ra.asarray(b), a @ b)

    def test_refusals(self):
        x = ra.ones((2, 2))
        for error, mentions, call in (
            (ValueError, "a matrix is singular", lambda: linalg.inv(x)),
            (ValueError, "a matrix is singular", lambda: linalg.solve(ra.asarray([[0j]]), ra.asarray([1j]))),
            (ValueError, "not positive definite", lambda: linalg.cholesky(-x)),
            (ValueError, "square matrices, not of shape \\(2, 3\\)", lambda: linalg.det(ra.ones((2, 3)))),
            (ValueError, "of matrices", lambda: linalg.svd(ra.ones(3))),
            (TypeError, "floating types, not of int64", lambda: linalg.eigh(ra.asarray([[1]]))),
            (TypeError, "float32 and float64", lambda: linalg.qr(ra.ones((2, 2), dtype=ra.float16))),
            (ValueError, "no vectors of 3", lambda: linalg.cross(x, x)),
            (ValueError, "right sides", lambda: linalg.solve(x, ra.ones(3))),
            (ValueError, "differ in size", lambda: linalg.tensordot(x, ra.ones((3, 2)), axes=1)),
            (ValueError, "ord is", lambda: linalg.matrix_norm(x, ord=3)),
        ):
            with self.assertRaisesRegex(error, mentions):
                call()
        self.same(linalg.svdvals(x * math.nan), [math.nan, math.nan], "f4")


if __name__ == "__main__":
    unittest.main()
