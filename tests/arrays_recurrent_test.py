"""Recurrent networks of rdna.arrays beside their formulas in NumPy, in float64: values, gradients by differences, plans, and a network that learns
what only a state can tell."""
import itertools
import unittest

import numpy as np
from arrays_tools import Case, launches, ra, rng

from rdna.arrays import nn, optim


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def formula(kind, parameters, x, states, layers, directions):
    """PyTorch's, place by place: x (places, batch, size), states each (layers times directions, batch, hidden)."""
    last = [[] for _ in states]
    for layer in range(layers):
        made = []
        for number, direction in enumerate(directions):
            wi, wh, bi, bh = (parameters.get(f"{name}_l{layer}{direction}", 0.0) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            own, out = [s[layer * len(directions) + number] for s in states], [None] * len(x)
            for t in reversed(range(len(x))) if direction else range(len(x)):
                given, carried = x[t] @ wi.T + bi, own[0] @ wh.T + bh
                if kind == "LSTM":
                    i, f, g, o = np.split(given + carried, 4, axis=1)
                    c = sigmoid(f) * own[1] + sigmoid(i) * np.tanh(g)
                    own = [sigmoid(o) * np.tanh(c), c]
                elif kind == "GRU":
                    (r, z, n), (hr, hz, hn) = np.split(given, 3, axis=1), np.split(carried, 3, axis=1)
                    n, z = np.tanh(n + sigmoid(r + hr) * hn), sigmoid(z + hz)
                    own = [(1 - z) * n + z * own[0]]
                else:
                    own = [np.tanh(given + carried) if kind == "RNN" else np.maximum(given + carried, 0)]
                out[t] = own[0]
            made.append(np.stack(out))
            for kept, s in zip(last, own):
                kept.append(s)
        x = np.concatenate(made, axis=2)
    return x, [np.stack(s) for s in last]


def make(kind, size, hidden, **options):
    """The module in float64, and its parameters as NumPy's."""
    model = getattr(nn, kind)(size, hidden, **options) if kind != "relu" else nn.RNN(size, hidden, nonlinearity="relu", **options)
    for name, x in model.parameters().items():
        setattr(model, name, x.astype(ra.float64))
    return model, {name: x.numpy() for name, x in model.parameters().items()}


class Recurrent(Case):
    def several(self, state):
        return state if isinstance(state, tuple) else (state,)

    def test_values(self):
        kinds = itertools.product(("RNN", "relu", "LSTM", "GRU"), (1, 3), (True, False), (True, False), (True, False), (True, False), (True, False))
        for kind, layers, bias, first, both, batched, given in kinds:
            model, parameters = make(kind, 3, 4, num_layers=layers, bias=bias, batch_first=first, bidirectional=both)
            directions = ("", "_reverse") if both else ("",)
            x = rng.standard_normal((5, 2, 3) if batched else (5, 1, 3))
            shape = (layers * len(directions), x.shape[1], 4)
            states = [rng.standard_normal(shape) if given else np.zeros(shape) for _ in range(2 if kind == "LSTM" else 1)]
            want, last = formula(kind, parameters, x, states, layers, directions)
            away = (lambda v: v) if batched else (lambda v: v[:, 0])
            turn = (lambda v: v.swapaxes(0, 1)) if batched and first else away
            own = tuple(ra.asarray(away(s)) for s in states)
            state = (own if kind == "LSTM" else own[0]) if given else None
            for run in (model, ra.compile(model)):
                out, after = run(ra.asarray(turn(x)), state) if given else run(ra.asarray(turn(x)))
                self.near(out, turn(want), np.float64)
                for got, s in zip(self.several(after), last, strict=True):
                    self.near(got, away(s), np.float64)

    def test_gradients(self):
        """Of both results, by every parameter, x and the states: differences of a step of 1e-6 are off by 1e-9, as values near 1 are by 1e-16."""
        for kind in ("RNN", "LSTM", "GRU"):
            model, parameters = make(kind, 2, 3, num_layers=2, bidirectional=True)
            x, shape = rng.standard_normal((3, 2, 2)), (4, 2, 3)
            states = [rng.standard_normal(shape) for _ in range(2 if kind == "LSTM" else 1)]
            weights = rng.standard_normal((3, 2, 6))

            def numpy(parameters, x, states):
                out, last = formula(kind, parameters, x, states, 2, ("", "_reverse"))
                return (out * weights).sum() + sum((s ** 3).sum() for s in last)

            def loss(x, *states):
                out, last = model(x, states if kind == "LSTM" else states[0])
                return (out * ra.asarray(weights)).sum() + sum((s ** 3.0).sum() for s in self.several(last))
            given = [ra.asarray(v) for v in (x, *states)]
            by_inputs = ra.grad(loss, tuple(range(len(given))))(*given)
            for compiled in (False, True):
                value, by_parameters = nn.value_and_grad(model, loss, compiled=compiled)(*given)
                self.assertAlmostEqual(float(value), numpy(parameters, x, states), 10)
                found = [*by_inputs, *by_parameters.values()]
                for slope, a in zip(found, [x, *states, *parameters.values()], strict=True):
                    for at in [tuple(int(rng.integers(n)) for n in a.shape) for _ in range(3)]:
                        value, ends = a[at], []
                        for h in (1e-6, -1e-6):
                            a[at] = value + h
                            ends.append(numpy(parameters, x, states))
                        a[at] = value
                        self.assertAlmostEqual(float(slope[at]), (ends[0] - ends[1]) / 2e-6, delta=1e-6 * max(1, abs(float(slope[at]))))

    def test_types(self):
        """In float32 and float16 as in float64, values and gradients, of 1,030 units too, which are too many for one call of a GPU's."""
        for kind, units, dtype, near in itertools.chain(itertools.product(("RNN", "relu", "LSTM", "GRU"), (5, 1030), ("float32",), (2e-5,)),
                                                        itertools.product(("RNN", "relu", "LSTM", "GRU"), (5,), ("float16",), (8e-3,))):
            model, _ = make(kind, 3, units)
            x, found = rng.standard_normal((3, 2, 3)), []

            def loss(x):
                out, state = model(x)
                return (out ** 2.0).sum() + sum(s.sum() for s in self.several(state))
            for t in (dtype, "float64"):
                for name, p in model.parameters().items():
                    setattr(model, name, p.astype(getattr(ra, t)))
                value, slopes = nn.value_and_grad(model, loss)(ra.asarray(x.astype(dtype)).astype(getattr(ra, t)))
                self.assertEqual((value.dtype, slopes["weight_hh_l0"].dtype), (np.dtype(t), np.dtype(t)))
                found.append([value.numpy(), *(s.numpy() for s in slopes.values())])
            for narrow, wide in zip(*found, strict=True):
                np.testing.assert_allclose(narrow, wide, rtol=0, atol=near * max(1, np.abs(wide).max()), err_msg=f"{kind} {units} {dtype}")
        self.assertEqual(nn.LSTM(3, 4)(ra.ones((2, 1, 3), dtype=ra.float64))[0].dtype, np.float64)

    def test_second_derivatives(self):
        for kind in ("RNN", "LSTM", "GRU"):
            model, _ = make(kind, 2, 3)
            x, along = rng.standard_normal((3, 2, 2)), rng.standard_normal((3, 2, 2))

            def slope(x):
                return ra.grad(lambda x: (model(x)[0] ** 3.0).sum() + (self.several(model(x)[1])[-1] ** 2.0).sum())(x)
            found = ra.grad(lambda x: (slope(x) * ra.asarray(along)).sum())(ra.asarray(x)).numpy()
            h = 1e-5
            want = (slope(ra.asarray(x + h * along)).numpy() - slope(ra.asarray(x - h * along)).numpy()) / (2 * h)
            np.testing.assert_allclose(found, want, rtol=0, atol=1e-7 * max(1, np.abs(want).max()))

    def test_launches(self):
        """Of 12 places a product for all inputs, and on the host a product and a cell for each; the operations around them are few."""
        x = ra.asarray(rng.standard_normal((12, 2, 3)).astype("f4"))
        for kind, most in (("RNN", 14), ("LSTM", 26), ("GRU", 25)):
            model = getattr(nn, kind)(3, 4)
            forward = ra.compile(lambda x: model(x)[0])
            self.assertLessEqual(len(launches(lambda: forward(x))), most, kind)

    def test_names_and_states(self):
        model = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        self.assertEqual(list(model.parameters())[:5], ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse"])
        self.assertEqual({name: x.shape for name, x in model.state_dict().items()}["weight_ih_l1_reverse"], (16, 8))
        self.assertEqual(len(nn.GRU(3, 4, bias=False).parameters()), 2)
        self.assertLess(max(abs(x.numpy()).max() for x in model.parameters().values()), 0.5)
        # what is read in pieces is what is read at once
        for kind in ("RNN", "LSTM", "GRU"):
            model, x = getattr(nn, kind)(3, 4), ra.asarray(rng.standard_normal((6, 2, 3)).astype("f4"))
            whole, _ = model(x)
            first, state = model(x[:2])
            second, _ = model(x[2:], state)
            np.testing.assert_allclose(ra.concat([first, second]).numpy(), whole.numpy(), rtol=1e-5, atol=1e-6)  # float32 sums of 7, four places on

    def test_dropout_is_between_layers(self):
        x = ra.asarray(rng.standard_normal((4, 3, 2)).astype("f4"))
        model = nn.GRU(2, 5, num_layers=2, dropout=0.5)
        first, second = model(x)[0].numpy(), model(x)[0].numpy()
        self.assertTrue((first != second).any() and (first != 0).all())
        self.same(model.eval()(x)[0], model(x)[0].numpy())
        single = nn.GRU(2, 5, dropout=0.5)
        self.same(single(x)[0], single(x)[0].numpy())

    def test_learning(self):
        """Whether the first of six signs was positive, which only the state knows at the end."""
        nn.manual_seed(5)
        signs = rng.choice([-1.0, 1.0], (6, 64, 1)).astype("f4")
        x, t = ra.asarray(signs), ra.asarray((signs[0, :, 0] > 0).astype("i8"))
        for kind in ("RNN", "LSTM", "GRU"):
            class Reader(nn.Module):
                def __init__(self):
                    self.reader, self.head = getattr(nn, kind)(1, 12), nn.Linear(12, 2)

                def forward(self, x):
                    return self.head(self.reader(x)[0][-1])
            model, adam = Reader(), optim.Adam(lr=0.03)
            step = nn.value_and_grad(model, lambda x: nn.cross_entropy(model(x), t), compiled=True)
            for _ in range(90):
                loss, slopes = step(x)
                adam.update(model, slopes)
            self.assertLess(float(loss), 0.2, kind)

    def test_refusals(self):
        model = nn.LSTM(3, 4)
        for text, call in (("x is (places, batch, 3) or (places, 3), not (2, 2)", lambda: model(ra.ones((2, 2)))),
                           ("not (1, 2, 3, 3)", lambda: model(ra.ones((1, 2, 3, 3)))), ("no places has no last state", lambda: model(ra.ones((0, 2, 3)))),
                           ("h and c have shape (1, 2, 4), not (1, 2, 4) and (1, 1, 4)", lambda: model(ra.ones((5, 2, 3)), (ra.ones((1, 2, 4)), ra.ones((1, 1, 4))))),
                           ("state have shape (1, 4), not (1, 1, 4)", lambda: nn.GRU(3, 4)(ra.ones((5, 3)), ra.ones((1, 1, 4)))),
                           ("'tanh' or 'relu', not 'gelu'", lambda: nn.RNN(3, 4, nonlinearity="gelu")), ("num_layers 0", lambda: nn.GRU(3, 4, 0))):
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
