"""Gradients of rdna.arrays: of the array API's functions and of layers and losses against differences in float64, of what has no
float64 against the same formula in NumPy; second derivatives, vjp, jvp, plans, and what is refused."""
import functools
import math
import unittest
from xml.etree import ElementTree

import numpy as np
from arrays_tools import Case, ra, rng

from rdna.arrays import nn


def weights(shape):
    return np.cos(1.7 * np.arange(int(np.prod(shape)))).reshape(shape) + 0.3


def slopes(function, arrays, h=1e-6):
    """Of |function|, NumPy's arrays to a number, by each value of each array."""
    found = []
    for a in arrays:
        slope = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            v = a[i]
            a[i] = v + h
            above = function(*arrays)
            a[i] = v - h
            slope[i] = (above - function(*arrays)) / (2 * h)
            a[i] = v
        found.append(slope)
    return found


class Gradients(Case):
    def close(self, function, *arrays, second=True, tolerance=1e-5):
        """The gradient of a weighted sum of what |function| makes, and that of a weighted sum of the gradient. Differences of a step h have an error
        of h^2 times third derivatives, some hundreds at most here, 1e-10, and of what the values' rounding is over h, some 1e-16 / 1e-6 for each
        of a few dozen summands, 1e-8; gradients of the other kind are off by the whole."""
        arrays = [np.array(a, np.float64) for a in arrays]
        every = tuple(range(len(arrays)))

        def loss(*xs):
            made = function(*xs)
            return (made * ra.asarray(weights(made.shape))).sum()

        def steepness(*xs):
            return sum((g * ra.asarray(weights(g.shape))).sum() for g in ra.grad(loss, every)(*xs))

        given = list(map(ra.asarray, arrays))
        np.testing.assert_allclose(ra.compile(function)(*given).numpy(), function(*given).numpy(), rtol=1e-12, atol=1e-12, err_msg=str(function))
        for of in (loss, steepness) if second else (loss,):
            got = ra.grad(of, every)(*map(ra.asarray, arrays))
            want = slopes(lambda *xs: float(of(*map(ra.asarray, xs))), arrays)
            for g, w in zip(got, want):
                np.testing.assert_allclose(g.numpy(), w, rtol=tolerance, atol=tolerance, err_msg=str(function))

    def test_values(self):
        x, y = rng.uniform(0.2, 0.9, (2, 3)), rng.uniform(0.2, 0.9, 3)
        for name in ("abs negative square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan tanh erf sigmoid relu silu gelu "
                     "acos asin atan asinh atanh sinh cosh floor sign").split():
            self.close(getattr(ra, name), x)
            self.close(getattr(ra, name), -x) if name not in ("sqrt", "rsqrt", "log", "log2", "log10") else None
        self.close(ra.acosh, x + 1.5)
        for name in "add subtract multiply divide pow maximum minimum atan2 hypot logaddexp remainder fmod copysign".split():
            self.close(getattr(ra, name), x, y)
            self.close(getattr(ra, name), x, -y) if name != "pow" else None
        self.close(lambda a: 2 - a / 3 + 1 / a - a ** 2.5, x)
        self.close(lambda a: ra.clip(a, 0.3, 0.6) + ra.where(a > 0.5, a * a, a), x)
        for name in ("leaky_relu", "elu", "softplus", "mish", "hardswish", "hardsigmoid"):
            self.close(getattr(nn, name), np.concatenate([x, -x]))

    def test_zero_is_a_place_like_others(self):
        for name in "sinh asinh asin atan tanh erf expm1 log1p".split():
            self.assertAlmostEqual(float(ra.grad(getattr(ra, name))(ra.asarray(np.float64(0)))), 1.1283791670955126 if name == "erf" else 1, 12)

    def slope(self, function, *values, order=1):
        """Gradients by each of some numbers; of order 2 the second derivative by each twice."""
        given = [ra.asarray(np.float64(v)) for v in values]
        if order == 1:
            return [float(g) for g in ra.grad(function, tuple(range(len(values))))(*given)]
        return [float(ra.grad(ra.grad(function, i), i)(*given)) for i in range(len(values))]

    def test_where_rules_change(self):
        """At equal operands, at zeros and where large numbers take another way, first and second derivatives are those of the function."""
        close = lambda got, want, atol=1e-300: np.testing.assert_allclose(got, want, rtol=1e-12, atol=atol)
        close(self.slope(ra.logaddexp, 0.7, 0.7), [0.5, 0.5])
        close(self.slope(ra.logaddexp, 0.7, 0.7, order=2), [0.25, 0.25])
        close(self.slope(ra.logaddexp, 900.0, -900.0), [1, 0])
        close(self.slope(ra.logaddexp, -math.inf, 3.0), [0, 1])
        close(self.slope(ra.logaddexp, math.inf, 3.0), [1, 0])
        for same in (math.inf, -math.inf):
            close(self.slope(ra.logaddexp, same, same), [0.5, 0.5])
        self.assertTrue(np.isnan(self.slope(ra.logaddexp, math.nan, 1.0)).all())
        close(self.slope(ra.hypot, 1.0, -1.0), [math.sqrt(0.5), -math.sqrt(0.5)])
        close(self.slope(ra.hypot, 1.0, 1.0, order=2), [0.5 * math.sqrt(0.5)] * 2)
        close(self.slope(ra.hypot, 0.0, 2.0), [0, 1])
        close(self.slope(ra.hypot, 0.0, 2.0, order=2), [0.5, 0])
        close(self.slope(ra.hypot, 0.0, 0.0), [0, 0])
        close(self.slope(ra.hypot, 3e200, 4e200), [0.6, 0.8])
        for x in (0.0, -0.0, 1e-9, -3.0, 40.0, -40.0, 600.0, -1e9, 2.0 ** 28, 1e30, -1e200):
            with np.errstate(over="ignore"):
                root = np.hypot(1, x)
                close(self.slope(ra.asinh, x), 1 / root)
                near = 1e-15 if abs(x) < 1 else 1e-300  # odd derivatives of even functions there are differences of numbers near 1
                close(self.slope(ra.asinh, x, order=2), -x / root / root / root, near)
                if abs(x) < 700:
                    close(self.slope(ra.sinh, x), np.cosh(x))
                    close(self.slope(ra.sinh, x, order=2), np.sinh(x), near)
                    close(self.slope(ra.cosh, x), np.sinh(x), near)
                    close(self.slope(ra.cosh, x, order=2), np.cosh(x))
        close(self.slope(ra.acosh, 1e30), 1e-30)
        close(self.slope(ra.acosh, math.inf), 0)
        close(self.slope(lambda x: ra.floor_divide(x, 0.0), 3.0) + self.slope(lambda x: x // math.inf, 3.0), [0, 0])
        equal = ra.asarray(np.full(3, 2.5))
        close(ra.grad(ra.std)(equal).numpy(), 0)
        close(ra.grad(lambda x: ra.grad(ra.std)(x).sum())(equal).numpy(), 0)
        close(ra.grad(ra.linalg.vector_norm)(ra.zeros(3)).numpy(), 0)
        close(ra.grad(lambda x: ra.grad(ra.linalg.vector_norm)(x).sum())(ra.zeros(3)).numpy(), 0)

    def test_moves(self):
        x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 1, 4))
        self.close(lambda a: ra.permute_dims(a, (2, 0, 1))[::-2, :, 1:], x)
        self.close(lambda a, b: ra.concat([a, b, a], axis=1).reshape(-1, 2), x, y)
        self.close(lambda a, b: ra.stack([ra.broadcast_to(b, a.shape), a], axis=-1), x, y)
        self.close(lambda a: ra.concat([a[i % 2] for i in range(18)], axis=1), x[:, :1, :2])
        self.close(lambda a: ra.flip(a, axis=1) + ra.roll(a, 1, axis=2) + ra.squeeze(ra.expand_dims(a), 0), x)
        self.close(lambda a: ra.tile(ra.repeat(a[0], 2, axis=0), (2, 1)), x)
        self.close(lambda a: a[:, [0, 2, 2], 1] * a[[1], 0, :3], x)
        self.close(lambda a: a[0, ..., np.array([[3, -1], [0, 1]])], x)
        self.close(lambda a: ra.take(a, ra.asarray([1, 1, 0]), axis=1), x)
        self.close(lambda a: ra.take_along_axis(a, ra.argsort(ra.asarray(x), axis=2), axis=2), x)
        for k in (-4, -1, 0, 2, 5):
            self.close(lambda a: ra.triu(a, k=k) - ra.tril(a, k=k - 1), x)
            self.close(lambda a: ra.linalg.diagonal(a, offset=k), x)
            self.close(lambda a: ra.linalg.trace(a, offset=k), x)
        # a mask's places are those of the values that it has
        self.same(ra.grad(lambda a: (a[a > 0] ** 2.0).sum())(ra.asarray(x)), 2 * np.maximum(x, 0))
        self.close(lambda a: a[ra.argmax(a, axis=0)[0, 0]] + ra.take_along_axis(a, ra.argmax(a, axis=0, keepdims=True), axis=0), x)

    def test_sorting_and_running_sums(self):
        x = rng.permutation(np.linspace(-2, 2, 24)).reshape(2, 3, 4)
        for axis in (0, 1, -1):
            for include in (False, True):
                self.close(lambda a: ra.cumulative_sum(a, axis=axis, include_initial=include), x)
                self.close(lambda a: ra.cumulative_prod(a, axis=axis, include_initial=include), x)
            for descending in (False, True):
                loss = lambda a: (ra.sort(a, axis=axis, descending=descending) * ra.asarray(weights(x.shape))).sum()
                order = np.argsort(-x if descending else x, axis=axis)
                want = np.zeros_like(x)
                np.put_along_axis(want, order, weights(x.shape), axis)
                self.same(ra.grad(loss)(ra.asarray(x)), want)
        self.same(ra.grad(lambda a: a[ra.argsort(a)[:2]].sum())(ra.asarray(x[0, 0])), (np.argsort(np.argsort(x[0, 0])) < 2).astype("f8"))
        edges = ra.asarray([-1.0, 1.0])
        self.same(ra.grad(lambda a: (a * ra.astype(ra.searchsorted(edges, a), ra.float64)).sum())(ra.asarray(x[0])), np.searchsorted([-1, 1], x[0]).astype("f8"))

    def test_indices_that_come_later(self):
        """Within compile: of one outside NaN, no gradient, and an IndexError where values are asked for next."""
        x = rng.standard_normal((3, 4))
        i, j = np.array([[0, -1], [2, -3]]), np.array([1, -4])
        for function, arrays in ((lambda a, i: a[i], (i,)), (lambda a, i: ra.take(a, i, axis=0), (i,)), (lambda a, i, j: a[i, j], (i, j)),
                                 (lambda a, i: a[..., i], (i[0],)), (lambda a, i: a[i] + a[i, :], (np.array(2),)), (lambda a, i: a[1:, i, None], (j,)),
                                 (lambda a, i: ra.take_along_axis(a, i, axis=1), (np.array([[0, -4], [3, 1], [1, 1]]),))):
            given = [ra.asarray(v) for v in arrays]
            planned = ra.compile(function)(ra.asarray(x), *given)
            self.same(planned, function(ra.asarray(x), *given).numpy())
            slope = lambda a, *b: ra.grad(lambda a: (function(a, *b) ** 2.0).sum())(a)
            self.same(ra.compile(slope)(ra.asarray(x), *given), slope(ra.asarray(x), *given).numpy())
        take = ra.compile(lambda a, i: a[i])

        def told(made):
            with self.assertRaisesRegex(IndexError, r"an index is outside of an array of shape \(3, 4\), in a run of what compile has recorded"):
                made.numpy()
            return made.numpy()
        for outside in (3, -4, 2 ** 40):
            got = told(take(ra.asarray(x), ra.asarray([1, outside])))
            np.testing.assert_array_equal(got, [x[1], np.full(4, math.nan)])
            across = told(ra.compile(lambda a, i: ra.take_along_axis(a, i, axis=0))(ra.asarray(x), ra.asarray([[0] * 3 + [outside]])))
            np.testing.assert_array_equal(across, [[*x[0, :3], math.nan]])
            slope = told(ra.compile(ra.grad(lambda a, i: a[i].sum()))(ra.asarray(x), ra.asarray([1, outside])))
            np.testing.assert_array_equal(slope, np.repeat([0.0, 1.0, 0.0], 4).reshape(3, 4))
            for at_once in (lambda a: a[[1, outside]].sum(), lambda a: ra.take_along_axis(a, ra.asarray([[outside] * 4]), axis=0).sum()):
                with self.assertRaisesRegex(IndexError, "an index is outside of an array of shape"):
                    ra.grad(at_once)(ra.asarray(x))
        self.same(ra.compile(lambda z: z[[1, 0, 1]])(ra.asarray(x + 1j)), (x + 1j)[[1, 0, 1]])
        whole = np.arange(12).reshape(3, 4)
        self.same(take(ra.asarray(whole), ra.asarray([2, -3])), whole[[2, 0]])
        np.testing.assert_array_equal(told(take(ra.asarray(whole), ra.asarray([2, 3]))), [whole[2], np.zeros(4)])
        first, second = take(ra.asarray(whole), ra.asarray([3])), take(ra.asarray(whole), ra.asarray([-4]))
        with self.assertRaisesRegex(IndexError, "what compile has recorded; there are 1 more"):
            second.numpy()
        self.same(first, np.zeros((1, 4), whole.dtype))  # it was told, with the other
        for _ in range(70):  # more runs than are waited with: some are looked at before
            try:
                take(ra.asarray(x), ra.asarray([3]))
            except IndexError:
                break
        else:
            self.fail("nobody looked")
        with self.assertRaises(IndexError):
            ra.ones(1).numpy()
        self.same(take(ra.asarray(x), ra.asarray([2])), x[[2]])

    def test_reductions_and_products(self):
        x = rng.uniform(0.3, 2, (2, 3, 4))
        for name in "sum mean prod max min var std".split():
            self.close(functools.partial(getattr(ra, name), axis=(0, 2)), x)
            self.close(functools.partial(getattr(ra, name), axis=1, keepdims=True), x)
        self.close(ra.linalg.vector_norm, x)
        self.close(ra.linalg.matrix_norm, x)
        self.close(lambda a: ra.linalg.matrix_power(a[:, :3, :3], 3), x)
        self.close(lambda a, b: a @ b, x, rng.standard_normal((4, 2)))
        self.close(lambda a, b: a @ b, x, rng.standard_normal((2, 4, 1)))
        self.close(lambda a, b: ra.tensordot(a, b, axes=((0, 2), (1, 0))), x, rng.standard_normal((4, 2, 2)))
        self.close(lambda a, b: ra.vecdot(a, b), x, rng.standard_normal(4))

    def test_layers_and_losses(self):
        x, row = rng.standard_normal((2, 4, 4)), rng.uniform(0.5, 1.5, 4)
        self.close(nn.layer_norm, x, row, row + 1)
        self.close(nn.rms_norm, x, row)
        self.close(lambda a, w, b: nn.batch_norm(a, None, None, w, b, training=True), x, row, row - 1)
        self.close(lambda a, m, v, w, b: nn.batch_norm(a, m, v, w, b), x, row, row + 1, row + 2, row - 1)
        self.close(lambda a, w, b: nn.group_norm(a, 2, w, b), x, row, row)
        self.close(nn.instance_norm, x)
        for function in (nn.softmax, nn.log_softmax):
            self.close(function, x)
            self.close(functools.partial(function, axis=0), x)
        self.close(functools.partial(nn.embedding, ra.asarray([[1, 0], [1, 1]])), x[0])
        image = rng.standard_normal((1, 2, 5, 4))
        self.close(lambda a: nn.max_pool2d(a, 2, stride=1, padding=1), image)
        self.close(lambda a: nn.avg_pool2d(a, (2, 3), count_include_pad=False, padding=(1, 0)), image)
        self.close(lambda a: nn.adaptive_avg_pool2d(a, (2, 3)) + nn.global_avg_pool2d(a), image)
        self.close(lambda a: nn.max_pool1d(a, 2) + nn.avg_pool1d(a, 2) + nn.adaptive_avg_pool1d(a, 2), x)
        q = rng.standard_normal((1, 2, 3, 4))
        self.close(lambda a, b, c: nn.scaled_dot_product_attention(a, b, c, is_causal=True), q, q + 1, q * 2)
        p, t = rng.uniform(0.1, 0.9, (3, 2)), rng.uniform(0.1, 0.9, (3, 2))
        for loss in (nn.mse_loss, nn.l1_loss, nn.smooth_l1_loss, nn.huber_loss, nn.bce_loss, nn.bce_with_logits_loss, nn.kl_div_loss):
            for reduction in ("mean", "sum", "none"):
                self.close(functools.partial(loss, reduction=reduction), p, t)
        for loss in (nn.cross_entropy, nn.nll_loss):
            self.close(lambda a: loss(a, ra.asarray([1.0, 0.0, 1.0]), weight=ra.asarray([0.5, 2.0])), p)
            self.close(lambda a: loss(a, ra.asarray([[2, 0, 1, 3], [1, -100, 0, 2]]), reduction="none"), x)

    def test_convolutions(self):
        """In float32, beside their sums in NumPy, which are linear in each input: a step of 1 has no error but rounding."""
        x, w, b = (rng.uniform(-1, 1, shape).astype("f4") for shape in ((2, 4, 5, 6), (6, 2, 3, 2), (6,)))

        def numpy(a, k, c):
            padded = np.pad(a.astype("f8"), ((0, 0), (0, 0), (1, 1), (2, 2)))
            out = np.zeros((2, 6, 3, 9))
            for o, i, j in np.ndindex(6, 3, 9):
                part = padded[:, o // 3 * 2:o // 3 * 2 + 2, 2 * i:2 * i + 3, j:j + 2]
                out[:, o, i, j] = (part * k[o]).sum((1, 2, 3)) + c[o]
            return out

        def loss(*xs):
            made = nn.conv2d(*xs, stride=(2, 1), padding=(1, 2), groups=2)
            return (made * ra.asarray(weights(made.shape).astype("f4"))).sum()

        given = [ra.asarray(v) for v in (x, w, b)]
        # float32: sums of 12 products, and in the gradients of up to 54 of them with weights, all near 1
        np.testing.assert_allclose(nn.conv2d(*given, stride=(2, 1), padding=(1, 2), groups=2).numpy(), numpy(x, w, b), atol=1e-5)
        got = ra.grad(loss, (0, 1, 2))(*given)
        wide = [v.astype("f8") for v in (x, w, b)]
        want = slopes(lambda *xs: float((numpy(*xs) * weights((2, 6, 3, 9))).sum()), wide, h=1)
        for g, s in zip(got, want):
            np.testing.assert_allclose(g.numpy(), s, atol=2e-4)
        # the transposed one is the gradient by x of the other
        back = nn.conv_transpose2d(ra.asarray(weights((2, 6, 3, 9)).astype("f4")), given[1], stride=(2, 1), padding=(1, 2), groups=2)
        np.testing.assert_allclose(back.numpy(), got[0].numpy(), atol=1e-5)

    def test_dropout(self):
        x = ra.ones((4000,))
        y, slope = ra.value_and_grad(lambda a: nn.dropout(a, 0.25, seed=3).sum())(x)
        kept = slope.numpy() > 0
        np.testing.assert_array_equal(np.unique(slope.numpy()), np.float32([0, 1 / 0.75]))
        self.assertTrue(0.72 < kept.mean() < 0.78)
        self.assertAlmostEqual(float(y), kept.sum() / 0.75, delta=4000 * 2.0 ** -24 * 4000)  # a float32 sum of 4,000, in any order

    def test_forms(self):
        x = ra.asarray(np.array([0.5, -2.0]))
        parameters = {"w": [x, x * 2], "b": (x,)}
        value, slope = ra.value_and_grad(lambda p, scale: ((p["w"][0] * p["w"][1] + p["b"][0]) * scale).sum())(parameters, 3.0)
        self.assertAlmostEqual(float(value), 3 * (2 * (0.25 + 4) - 1.5))
        self.same(slope["w"][0], np.array([3.0, -12.0]))
        self.same(slope["b"][0], np.array([3.0, 3.0]))
        self.assertIsInstance(slope["b"], tuple)
        (value, aux), slope = ra.value_and_grad(lambda a: ((a * a).sum(), {"twice": a + a}), has_aux=True)(x)
        self.same(aux["twice"], np.array([1.0, -4.0]))
        slope, aux = ra.grad(lambda a: ((a * a).sum(), a), has_aux=True)(x)
        self.same(slope, np.array([1.0, -4.0]))
        self.same(ra.grad(lambda a: (a * ra.stop_gradient(a)).sum())(x), x.numpy())
        self.same(ra.grad(lambda a: ra.asarray(2.0))(x), np.zeros(2))
        self.same(ra.grad(lambda a, b: (a * b).sum(), argnums=-1)(x, np.array([1.0, 2.0])), x.numpy())
        # values may be asked for, and decide
        self.same(ra.grad(lambda a: (a * a if float(a[0]) > 0 else a).sum())(x), np.array([1.0, -4.0]))

    def test_derivatives_of_derivatives(self):
        x = np.float64(0.7)
        f, want = ra.sin, [np.cos(x), -np.sin(x), -np.cos(x), np.sin(x), np.cos(x)]
        for w in want:
            f = ra.grad(f)
            self.assertAlmostEqual(float(f(ra.asarray(x))), w, 12)
        # one over the variable of another
        mixed = ra.grad(lambda a: a * ra.grad(lambda b: a * a * b * b)(a))
        self.assertAlmostEqual(float(mixed(ra.asarray(x))), 8 * x ** 3, 12)

    def test_vjp_and_jvp(self):
        a, b = rng.standard_normal((3, 2)), rng.standard_normal((2, 4))
        along = rng.standard_normal((3, 2)), rng.standard_normal((2, 4))
        out, pull = ra.vjp(lambda x, y: (x @ y, ra.tanh(x)), ra.asarray(a), ra.asarray(b))
        seeds = rng.standard_normal((3, 4)), rng.standard_normal((3, 2))
        np.testing.assert_allclose(out[0].numpy(), a @ b)
        by_a, by_b = pull(tuple(map(ra.asarray, seeds)))
        np.testing.assert_allclose(by_a.numpy(), seeds[0] @ b.T + seeds[1] * (1 - np.tanh(a) ** 2))
        np.testing.assert_allclose(by_b.numpy(), a.T @ seeds[0])
        out, change = ra.jvp(lambda x, y: x @ y, (ra.asarray(a), ra.asarray(b)), tuple(map(ra.asarray, along)))
        np.testing.assert_allclose(change.numpy(), along[0] @ b + a @ along[1])

    def test_plans(self):
        calls = []

        @ra.compile
        def step(parameters, x, scale=1.0):
            calls.append(x.shape)
            loss = lambda p: (ra.tanh(x @ p["w"] + p["b"]) * scale).sum()
            value, slope = ra.value_and_grad(loss)(parameters)
            return value, {name: parameters[name] - 0.1 * slope[name] for name in parameters}

        for rows in (2, 3, 2, 3):
            x, w, b = rng.standard_normal((rows, 4)), rng.standard_normal((4, 5)), rng.standard_normal(5)
            value, after = step({"w": ra.asarray(w), "b": ra.asarray(b)}, ra.asarray(x), scale=2.0)
            y = np.tanh(x @ w + b)
            self.assertAlmostEqual(float(value), 2 * y.sum(), 10)
            np.testing.assert_allclose(after["w"].numpy(), w - 0.1 * x.T @ (2 * (1 - y * y)), rtol=1e-10)
        self.assertEqual(calls, [(2, 4), (3, 4)])
        kinds = []
        apart = ra.compile(lambda x, n: (kinds.append(n), ra.copysign(x, n))[1])
        for number in [0.0, -0.0, math.nan, 1, 1.0, True, np.float32(0.0), np.float32(-0.0)] * 2:
            self.assertEqual(np.signbit(apart(ra.ones(2), number).numpy()).tolist(), [math.copysign(1, number) < 0] * 2)
        self.assertEqual(len(kinds), 8)
        step({"w": ra.asarray(w), "b": ra.asarray(b)}, ra.asarray(x), scale=3.0)
        self.assertEqual(len(calls), 3)
        # ten operations on values are two launches, and one compiled function may be part of another
        chain = ra.compile(lambda x: ra.sqrt(ra.relu(ra.exp(-abs(x * 2 - 1)) + 1) * 3 - 0.5) * x + x)
        x = rng.uniform(-1, 1, 16).astype("f4")
        got = chain(ra.asarray(x))
        np.testing.assert_allclose(got.numpy(), np.sqrt(np.maximum(np.exp(-abs(x * 2 - 1)) + 1, 0) * 3 - 0.5) * x + x, rtol=1e-5)
        plan, = [plan for plan, _ in chain.plans.values()]
        self.assertLessEqual(plan.steps, 2)
        self.same(ra.compile(lambda a: chain(a) * 1)(ra.asarray(x)), got.numpy())
        np.testing.assert_allclose(ra.grad(lambda a: chain(a).sum())(ra.asarray(x)).numpy(),
                                   ra.grad(lambda a: chain.__wrapped__(a).sum())(ra.asarray(x)).numpy())

    def test_checkpoints(self):
        """Values and gradients are what they are without, of what is captured too, within each other and with dropped values; plans hold less."""
        x, w = ra.asarray(rng.standard_normal((5, 4))), ra.asarray(rng.standard_normal((4, 4)))

        def loss(around, x, w):
            for i in range(6):
                x = around(lambda x: ra.tanh(x @ w + i) * nn.layer_norm(x))(x)  # w is captured
            return (x * x).sum()
        plain = lambda f: f
        twice = lambda f: ra.checkpoint(lambda x: ra.checkpoint(f)(x) * 1.5)
        for around, same in ((ra.checkpoint, plain), (twice, lambda f: lambda x: f(x) * 1.5)):
            for order in (lambda f: ra.value_and_grad(f, (1, 2)), lambda f: ra.value_and_grad(lambda *a: (ra.grad(f, 2)(*a) ** 2.0).sum(), (1, 2)),
                          lambda f: ra.compile(ra.value_and_grad(f, (1, 2)))):
                (got, slopes), (want, wanted) = (order(lambda _, x, w: loss(how, x, w))(x, x, w) for how in (around, same))
                np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
                for a, b in zip(slopes, wanted):
                    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)
        big = ra.zeros((1000, 4), dtype=ra.float64)
        plans = [ra.graph(ra.grad(lambda w: loss(around, big, w)), w) for around in (plain, ra.checkpoint)]
        kept, again = (ra._graph.Plan(g.outputs, g.inputs) for g in plans)
        self.assertLess(again.peak_bytes, 0.6 * kept.peak_bytes)
        self.assertGreater(again.steps, kept.steps)
        drop = lambda x: nn.dropout(ra.astype(x, ra.float32), 0.5, seed=4) ** 2.0
        self.same(ra.grad(lambda x: ra.checkpoint(drop)(x).sum())(x), ra.grad(lambda x: drop(x).sum())(x).numpy())
        several = ra.checkpoint(lambda x, n=2: {"a": (x * n, 3), "b": ra.argmax(x)})
        self.same(several(x)["a"][0], 2 * x.numpy())
        self.same(ra.grad(lambda x: several(x, n=3)["a"][0].sum())(x), np.full((5, 4), 3.0))
        self.same(ra.grad(lambda x: ra.checkpoint(lambda y: x)(x).sum())(x), np.ones((5, 4)))

    def test_pictures(self):
        graph = ra.graph(ra.value_and_grad(lambda w, x: (ra.relu(x @ w + 1) ** 2.0).sum()), ra.ones((3, 4)), ra.ones((2, 3)))
        lines = str(graph).splitlines()
        product, = [line for line in lines if "= matmul" in line and "(2, 4)" in line]  # x @ w, beside w's gradient, which is (3, 4)
        self.assertIn("f32 (2, 4)", product)
        self.assertEqual(sum(line.startswith("output") for line in lines), 2)
        root = ElementTree.fromstring(graph.svg())
        boxes = [g for g in root.iter("{http://www.w3.org/2000/svg}g")]
        self.assertEqual(len(boxes), len(lines) - 2)
        self.assertIn("matmul", [next(g.iter("{http://www.w3.org/2000/svg}text")).text for g in boxes])
        self.assertIn("frees", graph.plan())

    def test_replays(self):
        """Every run but the first is one launch where the driver records, and otherwise it is said why not; in place and held, values are the same."""
        step, kept = ra.compile(lambda a, b: (ra.tanh(a @ b) + 1.0, (a * b).sum())), []
        for run in range(6):
            a, b = rng.normal(size=(40, 40)), rng.normal(size=(40, 40))
            kept.append((step(ra.asarray(a), ra.asarray(b)), np.tanh(a @ b) + 1, (a * b).sum()))
        for (made, total), want, of in kept:
            np.testing.assert_allclose(made.numpy(), want, rtol=0, atol=1e-12)
            np.testing.assert_allclose(float(total), of, rtol=1e-10, atol=1e-10)
        (plan, _), = step.plans.values()
        self.assertEqual(plan.replays, 0 if plan.obstacle else 5)
        if ra.asarray(1).device == "host":
            self.assertIn("the host driver cannot record a graph", plan.obstacle)

    def test_arrays_of_numpy_are_arguments_of_plans(self):
        f = ra.compile(lambda a, more, scale=None: a * more["b"][0] + scale)
        for _ in range(2):
            a, b, c = (rng.normal(size=(2, 3)) for _ in range(3))
            self.same(f(a, {"b": [b, 1]}, scale=c), a * b + c, ulps=2)
        self.assertEqual(len(f.plans), 1)

    def test_refusals(self):
        x = ra.asarray(np.array([0.5, -2.0]))
        for error, text, call in [
                (ValueError, "must be an array of one value, not of shape (2,)", lambda: ra.grad(lambda a: a)(x)),
                (ValueError, "not float", lambda: ra.grad(lambda a: 1.5)(x)),
                (TypeError, "arrays of floats, not of int64", lambda: ra.grad(lambda a: a.sum())(ra.asarray([1, 2]))),
                (TypeError, "its value must be real, not complex64", lambda: ra.grad(ra.sum)(ra.asarray([1j]))),
                (TypeError, "nextafter has no gradient", lambda: ra.grad(lambda a: ra.nextafter(a, 1.0).sum())(x)),
                (ValueError, "f64 (2) and f64 (3)", lambda: ra.grad(lambda a: (a + ra.ones(3, dtype=ra.float64)).sum())(x)),
                (ValueError, "argument 1 is asked for", lambda: ra.grad(ra.sum, argnums=1)(x)),
                (TypeError, "no array among its arguments", lambda: ra.grad(lambda a: a)(2.0)),
                (ValueError, "vjp: needs float64 (2,), not float64 (3,)", lambda: ra.vjp(ra.exp, x)[1](ra.ones(3, dtype=ra.float64))),
                (IndexError, "outside", lambda: ra.grad(lambda a: a[[0, 2]].sum())(x)),
                (ValueError, "a value is asked for within compile", lambda: ra.compile(lambda a: a.item())(x[:1])),
                (ValueError, "a value is asked for within compile", lambda: ra.compile(lambda a: a if a[0] > 0 else -a)(x)),
                (ValueError, "a value is asked for within compile, or graph", lambda: ra.graph(lambda a: a if a[0] > 0 else -a, x)),
                (ValueError, "a value is asked for within compile", lambda: ra.compile(lambda a, i: a[:i])(x, ra.asarray(1))),
                (TypeError, "how many places a mask has depends on its values", lambda: ra.compile(lambda a: a[a > 0])(x)),
                (TypeError, "must have a hash, by which its plan is found", lambda: ra.compile(lambda a, b: a)(x, {1})),
                (ValueError, "reduction is", lambda: nn.mse_loss(x, x, reduction="max")),
                (ValueError, "x f64 (2), weight f64 (2)", lambda: nn.conv2d(x, x))]:
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
