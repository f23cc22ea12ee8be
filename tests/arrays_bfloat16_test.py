"""ra.bfloat16, which NumPy has not: values beside float32 that is rounded here, layers and gradients beside float64, training beside sums in float64."""
import copy
import os
import pickle
import subprocess
import sys
import unittest

import numpy as np
from arrays_tools import TYPES, Case, emulated_card, normal, ra, rng
from rdna.arrays import nn, optim

EPSILON = 2.0**-7


def rounded(values):
    """float32 to the nearest of bfloat16, ties to even; a NaN stays one."""
    with np.errstate(over="ignore"):
        bits = np.asarray(values, "f4").view("u4").astype("u8")
    up = (bits + np.uint64(0x7fff) + (bits >> np.uint64(16) & np.uint64(1))) & np.uint64(0xffff0000)
    return np.where(np.isnan(values), np.float32(np.nan), up.astype("u4").view("f4"))


class Values(Case):
    def brain(self, got, want):
        self.assertEqual((got.dtype, got.shape), (ra.bfloat16, np.shape(want)))
        self.assertIsInstance(got.numpy(), np.ndarray)
        np.testing.assert_array_equal(got.numpy(), want)

    def test_type(self):
        self.assertEqual((str(ra.bfloat16), ra.bfloat16.kind, ra.bfloat16.itemsize), ("bfloat16", "f", 2))
        self.assertEqual([ra.bfloat16 == other for other in ("bfloat16", np.dtype("f4"), "float16", None)], [True, False, False, False])
        self.assertIs(pickle.loads(pickle.dumps(ra.bfloat16)), ra.bfloat16)
        self.assertTrue(ra.isdtype(ra.bfloat16, "real floating") and not ra.isdtype(ra.bfloat16, ra.float16))
        of = ra.finfo(ra.bfloat16)
        self.assertEqual((of.bits, of.eps, of.smallest_normal, of.max), (16, EPSILON, 2.0**-126, float(rounded(np.float32(3.3895e38)))))
        for dtype in TYPES:
            narrow = dtype.name in ("bool", "uint8", "int8")
            wide = ra.float64 if dtype.name in ("int32", "int64", "uint32", "uint64", "float64") else ra.float32
            self.assertEqual(ra.result_type(ra.bfloat16, dtype), ra.bfloat16 if narrow else wide, dtype)
        self.assertEqual(ra.result_type(ra.bfloat16, 1.5), ra.bfloat16)
        self.assertEqual(ra.result_type(ra.bfloat16, 1j), ra.complex64)
        with self.assertRaisesRegex(TypeError, "iinfo is of integers|iinfo is of integer types, not bfloat16"):
            ra.iinfo(ra.bfloat16)

    def test_there_and_back(self):
        a = np.concatenate([normal("f4", 500) * 10.0 ** rng.integers(-30, 30, 500), [0, -0.0, np.inf, -np.inf, np.nan, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38]]).astype("f4")
        x = ra.asarray(a, dtype=ra.bfloat16)
        self.brain(x, rounded(a))
        self.assertEqual(np.signbit(x.numpy()).tolist(), np.signbit(a).tolist())
        self.brain(ra.asarray(a).astype("bfloat16"), rounded(a))
        for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x[::-1][::-1], ra.from_dlpack(x)):
            self.brain(made, rounded(a))
        self.assertEqual((np.asarray(x).dtype, x.nbytes, repr(ra.ones(1, dtype=ra.bfloat16))), (np.float32, 2 * a.size, "Array([1.], dtype=bfloat16)"))
        self.brain(ra.full((2,), 1.01, dtype=ra.bfloat16), rounded(np.float32([1.01, 1.01])))
        self.brain(ra.arange(5, dtype=ra.bfloat16), np.arange(5, dtype="f4"))
        for dtype in TYPES:
            small = rng.integers(0, 2, 9).astype(dtype)
            self.same(ra.asarray(small).astype(ra.bfloat16).astype(dtype), small)

    def test_operations(self):
        a, b = rounded(normal("f4", (40, 5))), rounded(normal("f4", 5))
        x, y = ra.asarray(a, dtype=ra.bfloat16), ra.asarray(b, dtype=ra.bfloat16)
        for function in (lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q):
            for call in (function, ra.compile(function)):
                self.brain(call(x, y), rounded(function(a, b)))
        self.brain(x + 1.5, rounded(a + np.float32(1.5)))
        self.brain(2.5 - x, rounded(np.float32(2.5) - a))
        self.same(x < y, a < b)
        self.brain(ra.maximum(x, y), np.maximum(a, b))
        self.brain(ra.where(x > 0, x, 0.0), np.where(a > 0, a, 0))
        self.brain(abs(x), abs(a))
        self.brain(ra.copysign(x, y), np.copysign(a, b))
        self.brain(ra.sort(x, axis=0), np.sort(a, 0))
        self.brain(x.max(0), a.max(0))
        self.same(ra.argmax(x, axis=0), a.argmax(0))
        for name in ("exp", "tanh", "log1p", "sin", "sinh", "sqrt"):
            got, want = getattr(ra, name)(abs(x)), getattr(np, name)(abs(a).astype("f8"))
            self.assertEqual(got.dtype, ra.bfloat16)
            np.testing.assert_allclose(got.numpy(), want, rtol=0.51 * EPSILON)
        x[1:3, 0] = 7
        self.assertEqual(x[:4, 0].tolist(), [float(a[0, 0]), 7, 7, float(a[3, 0])])

    def test_sums_are_float32s(self):
        """1 + 1 + … would stop at 256 if sums were of the type."""
        x = ra.ones((4096, 3), dtype=ra.bfloat16)
        self.brain(x.sum(0), np.full(3, 4096))
        self.brain(ra.cumulative_sum(x, axis=0)[-1], np.full(3, 4096))
        self.brain(x.T @ x, np.full((3, 3), 4096))
        self.brain(ra.mean(x * 1.25), np.array(1.25))


ids = ra.asarray([1, 2, 0, 3])
LAYERS = {
    "linear": (lambda x, w, b: x @ w + b, (5, 8), (8, 4), (4,)),
    "conv": (lambda x, w, b: nn.conv2d(x, w, b, padding=1), (2, 3, 8, 8), (4, 3, 3, 3), (4,)),
    "layer norm": (nn.layer_norm, (5, 16), (16,), (16,)),
    "rms norm": (nn.rms_norm, (5, 16), (16,)),
    "group norm": (lambda x, w, b: nn.group_norm(x, 2, w, b), (2, 4, 5, 5), (4,), (4,)),
    "softmax": (nn.softmax, (5, 16)),
    "attention": (lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True), *3 * ((1, 2, 6, 16),)),
    "pools": (lambda x: nn.avg_pool2d(nn.max_pool2d(x, 2), 2), (2, 3, 8, 8)),
    "gelu": (ra.gelu, (40,)),
    "loss": (nn.mse_loss, (4, 5), (4, 5)),
    "classes": (lambda x: nn.cross_entropy(x, ids), (4, 5)),
    "embedding": (lambda w: nn.embedding(ids, w), (6, 4)),
}


class Networks(Case):
    def test_layers_and_gradients(self):
        for name, (function, *shapes) in LAYERS.items():
            narrow = [ra.asarray(normal("f4", s), dtype=ra.bfloat16) for s in shapes]
            wide = [x.astype(ra.float64) for x in narrow]
            square = lambda *given: (function(*given).astype(ra.float32 if given[0].dtype == ra.bfloat16 else ra.float64) ** 2).sum()
            every = tuple(range(len(shapes)))
            made = [[function(*given), *ra.grad(square, argnums=every)(*given)] for given in (narrow, wide)]
            for got, want in zip(*made):
                self.assertEqual((got.dtype, got.shape), (ra.bfloat16, want.shape), name)
                np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=0, atol=4 * EPSILON * max(1e-3, np.abs(want.numpy()).max()), err_msg=name)

    def test_modules(self):
        for module, shape in ((nn.BatchNorm2d(3), (2, 3, 8, 8)), (nn.LSTM(8, 4), (5, 2, 8)), (nn.GRU(8, 4), (5, 2, 8))):
            x = ra.asarray(normal("f4", shape), dtype=ra.bfloat16)
            first = lambda y: y[0] if isinstance(y, tuple) else y
            self.assertEqual(module.astype(ra.bfloat16).parameters()[next(iter(module.parameters()))].dtype, ra.bfloat16)
            value, slopes = nn.value_and_grad(module, lambda x: first(module(x)).astype(ra.float32).sum(), compiled=True)(x)
            self.assertEqual({value.dtype, *(g.dtype for g in slopes.values())}, {ra.float32, ra.bfloat16})
        tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        setattr(tied._modules().__next__()[1], "weight", list(tied._modules())[1][1].weight)
        tied.astype(ra.bfloat16)
        self.assertEqual(len(tied.parameters()), 3)  # one weight, two biases
        with self.assertRaisesRegex(TypeError, "astype: models are of floating types, not of int32"):
            tied.astype(ra.int32)

    def test_steps_add_up(self):
        """Steps of 2^-12 that bfloat16 cannot tell from nothing beside 1; the sums of them it can."""
        for make in (lambda: optim.SGD(lr=2.0**-12), lambda: optim.SGD(lr=2.0**-12, momentum=0.5), lambda: optim.AdamW(lr=2.0**-10), lambda: optim.RMSprop(lr=2.0**-11)):
            narrow, wide, start = make(), make(), rounded(normal("f4", (6, 7)) + 1)
            x, y = {"a": ra.asarray(start, dtype=ra.bfloat16)}, {"a": ra.asarray(start)}
            for step in range(70):
                g = ra.asarray(rounded(normal("f4", (6, 7)) + 1), dtype=ra.bfloat16)
                narrow.update(x, {"a": g})
                wide.update(y, {"a": g.astype(ra.float32)})
                if step == 30:  # it goes on from files
                    state = narrow.state_dict()
                    narrow = make()
                    narrow.load_state_dict(state)
                np.testing.assert_array_equal(x["a"].numpy(), rounded(y["a"].numpy()))
            self.assertEqual(x["a"].dtype, ra.bfloat16)
            self.assertGreater(np.abs(x["a"].numpy() - start).max(), 0)

    def test_what_is_assigned_is_trained_on(self):
        x, sgd = {"a": ra.ones(4, dtype=ra.bfloat16)}, optim.SGD(lr=0.25)
        slope = {"a": ra.ones(4, dtype=ra.bfloat16)}
        sgd.update(x, slope)
        x["a"][1:3] = 8
        sgd.update(x, slope)
        self.assertEqual(x["a"].tolist(), [0.5, 7.75, 7.75, 0.5])
        state = sgd.state_dict()
        x["a"][0] = -4
        other = optim.SGD(lr=0.25)
        other.load_state_dict(state)
        other.update(x, slope)
        self.assertEqual(x["a"].tolist(), [-4.25, 7.5, 7.5, 0.25])

    def test_what_is_refused_leaves_sums(self):
        slope = ra.ones(4, dtype=ra.bfloat16)
        x, sgd = {name: ra.ones(4, dtype=ra.bfloat16) for name in "ab"}, optim.SGD(lr=2.0**-10)
        for _ in range(8):
            with self.assertRaisesRegex(TypeError, "update: b is bfloat16"):
                sgd.update(x, {"a": slope, "b": ra.ones(5, dtype=ra.bfloat16)})
            sgd.update(x, {"a": slope, "b": slope})
        self.assertEqual(x["a"].tolist(), [1 - 2.0**-7] * 4)

    def test_in_place(self):
        """A parameter stays where it is, so that what is recorded of a step stays good."""
        x, sgd, place = {"a": ra.ones(40, dtype=ra.bfloat16)}, optim.SGD(lr=0.25), ra._moving.tensor_data
        sgd.update(x, x)
        before = place(x["a"])
        for _ in range(3):
            sgd.update(x, {"a": ra.ones(40, dtype=ra.bfloat16)})
        self.assertEqual(place(x["a"]), before)

    def test_a_network_learns(self):
        ra.random.manual_seed(3)
        values = rng.normal(size=(256, 2)).astype("f4")
        x, target = ra.asarray(values, dtype=ra.bfloat16), ra.asarray((values[:, 0] * values[:, 1] > 0).astype(int))
        model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)).astype(ra.bfloat16)
        step = nn.value_and_grad(model, lambda x, target: nn.cross_entropy(model(x).astype(ra.float32), target), compiled=True)
        adam = optim.AdamW(lr=1e-2)
        for _ in range(150):
            value, slopes = step(x, target)
            adam.update(model, optim.clip_grad_norm(slopes, 1.0)[0])
        right = ra.argmax(model(x), axis=1) == target
        self.assertGreater(float(ra.mean(right)), 0.95)
        self.assertEqual({p.dtype for p in model.parameters().values()}, {ra.bfloat16})
        other = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
        other.load_state_dict(model.state_dict())  # into float32, which holds them
        np.testing.assert_array_equal(other.parameters()["0.weight"].numpy(), model.parameters()["0.weight"].numpy())


@unittest.skipIf(os.environ.get("RDNA_DRIVER") == "hip", "this is what it starts")
class Emulated(Case):
    def test_on_a_card(self):
        names = ["Values", "Networks.test_layers_and_gradients", "Networks.test_steps_add_up", "Networks.test_what_is_assigned_is_trained_on"]
        out = subprocess.run([sys.executable, __file__, *names], env={**os.environ, **emulated_card(self)}, capture_output=True, text=True, timeout=300)
        self.assertEqual(out.returncode, 0, out.stderr[-4000:])


if __name__ == "__main__":
    unittest.main()
