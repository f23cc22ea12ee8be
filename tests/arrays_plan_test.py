"""What plans leave out that was recorded: values and gradients beside NumPy in double, and the steps that are left. The emulated card runs few of them."""
import os
import subprocess
import sys
import unittest

import numpy as np
from arrays_tools import Case, emulated_card, ra, rng
from rdna.arrays import nn, optim

FEW = "few" in sys.argv[1:]


def steps(function, *arguments):
    """The lines of the plan, without numbers of values."""
    return [line.split(" = ")[1].split(" %")[0].split(" :")[0] for line in str(ra.graph(function, *arguments).plan()).splitlines() if " = " in line]


def entropy(logits, target, keep=None, smoothing=0.0):
    """The mean loss and its gradient, in double."""
    keep = np.ones(len(target), bool) if keep is None else keep
    x = logits - logits.max(1, keepdims=True)
    log = x - np.log(np.exp(x).sum(1, keepdims=True))
    aim = np.full(logits.shape, smoothing / logits.shape[1])
    aim[np.arange(len(target)), np.where(keep, target, 0)] += 1 - smoothing
    losses = -(aim * log).sum(1)
    return losses[keep].mean(), (np.exp(log) - aim) * keep[:, None] / keep.sum()


class Losses(Case):
    """Of logits in float16 that are cast to float32, as mixed precision does."""

    def data(self, rows, width, words):
        h, w = rng.normal(size=(2, rows // 2, width)).astype("f2"), (rng.normal(size=(words, width)) * 0.3).astype("f2")
        logits = (h.astype("f4").reshape(rows, width) @ w.astype("f4").T).astype("f2")
        return h, w, rng.integers(0, words, rows), logits.astype("f8")

    def check(self, words, extra=None, **options):
        rows, width = 24, 16
        h, w, target, logits = self.data(rows, width, words)

        def loss(h, w, t):
            out = ra.matmul(h, ra.matrix_transpose(w))
            value = nn.cross_entropy(ra.astype(out, ra.float32).reshape((rows, words)), t, **options)
            return value + extra(out) if extra else value
        keep = target != options.get("ignore_index", -100)
        want, slope = entropy(logits, target, keep, options.get("label_smoothing", 0.0))
        if extra:
            want, slope = want + logits.sum() * 2.0 ** -12, slope + 2.0 ** -12
        both = ra.value_and_grad(loss, (0, 1))
        given = [ra.asarray(a) for a in (h, w, target)]
        compiled = ra.compile(both)
        for call in (both, compiled, compiled, compiled):
            value, (dh, dw) = call(*given)
            self.assertEqual(value.dtype, np.float32)
            np.testing.assert_allclose(float(value), want, rtol=2e-6 if not extra else 2e-3)
            for got, right in ((dh, (slope @ w.astype("f8")).reshape(h.shape)), (dw, slope.T @ h.astype("f8").reshape(rows, width))):
                np.testing.assert_allclose(got.numpy(), right, rtol=0, atol=3e-3 * np.abs(right).max())
        return steps(both, *given)

    def test_reads_what_was_cast(self):
        left = self.check(1013)
        self.assertNotIn("cast", left)
        self.assertIn("matmul_padded", left)
        self.assertIn("cross_entropy_back_padded", left)
        self.assertNotIn("cast", self.check(1016, label_smoothing=0.1))
        left = self.check(97, ignore_index=5)
        self.assertNotIn("cast", left)
        self.assertNotIn("matmul_padded", left)  # too few columns for it to matter

    def test_others_that_read_them_get_what_they_need(self):
        left = self.check(1013, lambda out: ra.astype(out, ra.float32).sum() * 2.0 ** -12)
        self.assertNotIn("cross_entropy_back_padded", left)

    def test_logits_that_are_asked_for(self):
        h, w, target, logits = self.data(24, 16, 301)

        def loss(h, w, t):
            out = ra.astype(ra.matmul(h, ra.matrix_transpose(w)), ra.float32).reshape((24, 301))
            return nn.cross_entropy(out, t), out
        (value, out), slope = ra.value_and_grad(loss, 1, has_aux=True)(*(ra.asarray(a) for a in (h, w, target)))
        np.testing.assert_allclose(float(value), entropy(logits, target)[0], rtol=2e-6)
        self.assertEqual(out.dtype, np.float32)
        np.testing.assert_allclose(out.numpy(), logits, rtol=2e-3, atol=1e-3)  # rounded once, in any order of the sums
        self.assertEqual(slope.dtype, np.float16)


class Sums(Case):
    def test_of_parts_that_fill_the_whole(self):
        """Of slices whose gradients lie beside each other, in any order and dimension, behind a permutation or not."""
        for turn in range(4 if FEW else 30):
            shape = tuple(int(n) for n in rng.integers(2, 6, 3))
            dim, parts = int(rng.integers(3)), int(rng.integers(2, 4))
            ends = sorted({0, shape[dim], *(int(n) for n in rng.integers(0, shape[dim] + 1, parts - 1))})
            pieces = list(zip(ends, ends[1:]))
            if turn % 3 == 1 and len(pieces) > 1:
                pieces = pieces[1:]  # one is missing
            if turn % 3 == 2:
                pieces.append((0, shape[dim]))  # and one is twice
            rng.shuffle(pieces)
            dims = tuple(int(d) for d in rng.permutation(3))
            weights, x = [float(rng.integers(1, 5)) for _ in pieces], rng.normal(size=shape)
            wide = tuple(shape[d] for d in np.argsort(dims))

            def function(x):
                y = ra.permute_dims(x.reshape(wide), dims)  # of the given shape
                return sum((ra.exp(y[tuple(slice(*p) if d == dim else slice(None) for d in range(3))]) * w).sum() for p, w in zip(pieces, weights))
            y = x.reshape(wide).transpose(dims)
            factor = np.zeros(y.shape)
            for p, w in zip(pieces, weights):
                factor[tuple(slice(*p) if d == dim else slice(None) for d in range(3))] += w
            slope = (np.exp(y) * factor).transpose(np.argsort(dims)).reshape(shape)
            got = ra.compile(ra.grad(function))(ra.asarray(x))
            np.testing.assert_allclose(got.numpy(), slope, rtol=1e-12, atol=1e-12)

    def test_of_parts_that_are_broadcast_to_each_other(self):
        def function(a, b):
            first = ra.grad(lambda a: (a[:, :2] ** 2).sum())(a)
            return first + ra.grad(lambda b: (b[:, 2:] ** 2).sum())(b)
        a, b = rng.normal(size=(1, 4)), rng.normal(size=(3, 4))
        want = np.where(np.arange(4) < 2, 2 * a, 2 * b)
        np.testing.assert_allclose(ra.compile(function)(ra.asarray(a), ra.asarray(b)).numpy(), want, rtol=1e-12)

    def test_attention_by_one_matrix(self):
        """The gradients of queries, keys and values become rows of one matrix by one copy."""
        def loss(x, w):
            y = ra.permute_dims((x @ w).reshape((2, 8, 3, 2, 4)), (2, 0, 3, 1, 4))
            return (nn.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True) * 0.5).sum()
        x, w = (ra.asarray(rng.normal(size=s).astype("f4")) for s in ((2, 8, 5), (5, 24)))
        left = steps(ra.grad(loss, (0, 1)), x, w)
        self.assertEqual([left.count(name) for name in ("concat", "unslice", "add")], [1, 0, 0])
        dx, dw = ra.grad(loss, (0, 1))(x, w)
        for got, i in ((dx, 0), (dw, 1)):  # beside differences along a random direction
            given = [ra.astype(x, ra.float64), ra.astype(w, ra.float64)]
            along, h = rng.normal(size=got.shape), 1e-5
            ends = []
            for sign in (1, -1):
                moved = list(given)
                moved[i] = given[i] + ra.asarray(along * h * sign)
                ends.append(float(loss(*moved)))
            np.testing.assert_allclose((got.numpy() * along).sum(), (ends[0] - ends[1]) / (2 * h), rtol=1e-3, atol=1e-4)


class Products(Case):
    def test_gradients_of_weights_that_lie_transposed_are_computed_so(self):
        x, w, b = (rng.normal(size=s) for s in ((7, 5), (3, 5), (3,)))
        model = nn.Linear(5, 3)
        step = nn.value_and_grad(model, lambda x: (model(x) * model(x)).sum(), compiled=True)
        model.load_state_dict({"weight": w.astype("f4"), "bias": b.astype("f4")})
        _, slopes = step(ra.asarray(x.astype("f4")))
        np.testing.assert_allclose(slopes["weight"].numpy(), 2 * (x @ w.T + b).T @ x, rtol=1e-4, atol=1e-4)
        left = steps(ra.grad(lambda w, x: (x @ ra.matrix_transpose(w)).sum()), ra.asarray(w), ra.asarray(x))
        self.assertEqual(left[-1], "matmul")

    def test_what_is_added_to_batches_of_rows_follows_the_product(self):
        x, w, b, y = (rng.normal(size=s).astype("f4") for s in ((2, 3, 5), (5, 4), (4,), (2, 3, 4)))

        def layer(x, w, b, y):
            return ra.exp(y) + (x @ w + b)
        for given in (y, y.transpose(1, 0, 2).copy().transpose(1, 0, 2)):
            got = ra.compile(layer)(*(ra.asarray(a) for a in (x, w, b, given)))
            np.testing.assert_allclose(got.numpy(), np.exp(y) + x @ w + b, rtol=1e-5, atol=1e-5)
        self.assertIn("matmul+bias+residual", steps(layer, *(ra.asarray(a) for a in (x, w, b, y))))


class Statistics(Case):
    def test_are_those_of_the_norm(self):
        for shape, dtype, tolerance in (((6, 4, 3, 5), "f4", 2e-6), ((6, 4), "f4", 2e-6), ((3, 4, 7), "f2", 2e-3)):
            x = (rng.normal(size=shape) * 3 + np.arange(4).reshape((4,) + (1,) * (len(shape) - 2))).astype(dtype)
            axes = tuple(i for i in range(len(shape)) if i != 1)
            wide = x.astype("f8")
            for correction, keepdims in ((0, False), (1, True)):
                def function(x):
                    y = nn.batch_norm(x, None, None, None, None, True)
                    return (y * 2).sum(), ra.mean(x, axis=axes, keepdims=keepdims), ra.var(x, axis=axes, correction=correction, keepdims=keepdims)
                compiled = ra.compile(function)
                for _ in range(3):
                    _, mean, var = compiled(ra.asarray(x))
                self.assertEqual((mean.dtype, var.dtype), (x.dtype, x.dtype))
                want = wide.mean(axes, keepdims=keepdims), wide.var(axes, ddof=correction, keepdims=keepdims)
                np.testing.assert_allclose(mean.numpy(), want[0], rtol=tolerance, atol=tolerance * 3)
                np.testing.assert_allclose(var.numpy(), want[1], rtol=tolerance * 4)
                left = steps(function, ra.asarray(x))
                self.assertEqual([left.count(name) for name in ("mean", "var")], [0, 0], left)

    def test_variances_far_below_the_norms_epsilon(self):
        x = (rng.normal(size=(6, 3, 5)) * np.array([1e-3, 1e-5, 1e-7]).reshape(3, 1)).astype("f4")
        both = ra.compile(lambda x: (nn.batch_norm(x, None, None, None, None, True), ra.var(x, axis=(0, 2))))
        np.testing.assert_allclose(both(ra.asarray(x))[1].numpy(), x.astype("f8").var((0, 2)), rtol=2e-6)

    def test_of_equal_values_and_of_one(self):
        flat = ra.compile(lambda x: (nn.batch_norm(x, None, None, None, None, True).sum(), ra.var(x, axis=0, correction=1)))
        self.assertTrue((flat(ra.full((5, 2), 3.0))[1].numpy() >= 0).all())
        np.testing.assert_allclose(flat(ra.full((5, 2), 3.0))[1].numpy(), 0, atol=1e-11)
        self.assertTrue(np.isnan(flat(ra.full((1, 2), 3.0))[1].numpy()).all())


class Emulated(unittest.TestCase):
    @unittest.skipIf(FEW, "this is the emulated card's run")
    def test_the_same_on_an_emulated_card(self):
        done = subprocess.run([sys.executable, __file__, "few"], env={**os.environ, **emulated_card(self)}, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("rdna emulator", done.stderr)


class Scaled(Case):
    def test_gradients_in_float16_are_divided_by_the_scale(self):
        for rule in (lambda: optim.AdamW(lr=0.1), lambda: optim.SGD(lr=0.1, momentum=0.5)):
            x, g = rng.normal(size=(9, 5)).astype("f4"), rng.normal(size=(9, 5)).astype("f4")
            scaled = (g * 1024).astype("f2")
            ours, plain = ({"a": ra.asarray(x), "b": ra.asarray(x)} for _ in range(2))
            first, second = rule(), rule()
            for _ in range(3):
                first.update(ours, {"a": ra.asarray(scaled), "b": ra.asarray(g * 1024)}, 1024.0)
                second.update(plain, {"a": ra.asarray(scaled.astype("f4") / 1024), "b": ra.asarray(g)})
            for name in "ab":
                np.testing.assert_allclose(ours[name].numpy(), plain[name].numpy(), rtol=1e-6, atol=1e-7)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "few"])
