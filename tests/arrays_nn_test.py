"""Networks of rdna.arrays: modules beside their functions, running statistics, optimizers beside their formulas in float64, schedules, and
networks that learn."""
import math
import unittest

import numpy as np
from arrays_tools import Case, ra, rng

from rdna.arrays import nn, optim, random


def reference(kind, x, slopes, lr=0.1, **o):
    """PyTorch's formulas, step by step, in float64."""
    decay, states = o.get("weight_decay", 0), [np.zeros_like(x) for _ in range(3)]
    for n, g in enumerate(slopes, 1):
        if decay and kind == "adamw":
            x = x * (1 - lr * decay)
        elif decay:
            g = g + decay * x
        if kind == "sgd":
            if o.get("momentum"):
                states[0] = g if n == 1 else o["momentum"] * states[0] + (1 - o.get("dampening", 0)) * g
                g = g + o["momentum"] * states[0] if o.get("nesterov") else states[0]
            x = x - lr * g
        elif kind == "rmsprop":
            states[0] = 0.9 * states[0] + 0.1 * g * g
            states[1] = 0.9 * states[1] + 0.1 * g
            average = np.sqrt(states[0] - states[1] ** 2 if o.get("centered") else states[0]) + 1e-8
            states[2] = o.get("momentum", 0) * states[2] + g / average
            x = x - lr * states[2]
        else:
            states[0] = 0.9 * states[0] + 0.1 * g
            states[1] = 0.99 * states[1] + 0.01 * g * g
            most = states[2] = np.maximum(states[2], states[1])
            square = most if o.get("amsgrad") else states[1]
            x = x - lr / (1 - 0.9 ** n) * states[0] / (np.sqrt(square) / math.sqrt(1 - 0.99 ** n) + 1e-8)
    return x


class Networks(Case):
    def test_optimizers(self):
        for kind, make, options in [
                ("sgd", optim.SGD, {}), ("sgd", optim.SGD, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.2}),
                ("sgd", optim.SGD, {"momentum": 0.9, "nesterov": True}), ("adam", optim.Adam, {"weight_decay": 0.1}),
                ("adam", optim.Adam, {"amsgrad": True}), ("adamw", optim.AdamW, {"weight_decay": 0.3}), ("rmsprop", optim.RMSprop, {}),
                ("rmsprop", optim.RMSprop, {"momentum": 0.5, "centered": True, "weight_decay": 0.1})]:
            fixed = {"betas": (0.9, 0.99)} if "adam" in kind else {"alpha": 0.9} if kind == "rmsprop" else {}
            start = {"a": rng.standard_normal((3, 5)).astype("f4"), "b": rng.standard_normal(7).astype("f4")}
            slopes = [{name: rng.standard_normal(v.shape).astype("f4") for name, v in start.items()} for _ in range(4)]
            parameters = {name: ra.asarray(v) for name, v in start.items()}
            beside = parameters["a"][0]  # a view, which stays as it was
            optimizer = make(lr=0.1, **fixed, **options)
            for g in slopes:
                # gradients may have any strides
                optimizer.update(parameters, {name: ra.asarray(np.asfortranarray(v)) for name, v in g.items()})
            for name, v in start.items():
                want = reference(kind, v.astype("f8"), [g[name].astype("f8") for g in slopes], **options)
                # four steps of a dozen float32 operations on numbers near 1, of which a quotient by a root of 1e-3 makes more
                np.testing.assert_allclose(parameters[name].numpy(), want, rtol=2e-5, atol=2e-5, err_msg=f"{kind} {options}")
            self.same(beside, start["a"][0])

    def test_clipping(self):
        g = {"a": ra.asarray(np.array([3.0, 0.0])), "b": ra.asarray(np.array([[4.0]]))}
        clipped, norm = optim.clip_grad_norm(g, 1.0)
        self.assertAlmostEqual(float(norm), 5.0)
        np.testing.assert_allclose(clipped["a"].numpy(), [0.6, 0], rtol=1e-5)
        np.testing.assert_allclose(optim.clip_grad_norm(g, 100.0)[0]["b"].numpy(), [[4.0]])

    def test_schedules(self):
        def rates(make, steps=6):
            optimizer = optim.SGD(lr=0.8)
            schedule, found = make(optimizer), []
            for _ in range(steps):
                found.append(optimizer.lr)
                schedule.step()
            return found
        close = np.testing.assert_allclose
        close(rates(lambda o: optim.StepLR(o, 2, 0.5)), [0.8, 0.8, 0.4, 0.4, 0.2, 0.2])
        close(rates(lambda o: optim.MultiStepLR(o, [1, 4], 0.5)), [0.8, 0.4, 0.4, 0.4, 0.2, 0.2])
        close(rates(lambda o: optim.ExponentialLR(o, 0.5)), [0.8, 0.4, 0.2, 0.1, 0.05, 0.025])
        close(rates(lambda o: optim.LinearLR(o, 0.25, 1.0, 3)), [0.2, 0.4, 0.6, 0.8, 0.8, 0.8])
        close(rates(lambda o: optim.CosineAnnealingLR(o, 4)), [0.4 + 0.4 * math.cos(math.pi * n / 4) for n in range(6)], atol=1e-12)
        optimizer = optim.SGD(lr=1.0)
        plateau = optim.ReduceLROnPlateau(optimizer, 0.5, patience=1)
        for value, lr in [(3.0, 1), (2.0, 1), (2.0, 1), (2.5, 0.5), (1.0, 0.5), (1.0, 0.5), (1.0, 0.25)]:
            plateau.step(value)
            self.assertEqual(optimizer.lr, lr)

    def test_modules_are_their_functions(self):
        x, image = (ra.asarray(rng.standard_normal(shape).astype("f4")) for shape in ((3, 6), (2, 4, 5, 5)))
        linear, conv = nn.Linear(6, 4), nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
        # both sums of 6 products in float32
        np.testing.assert_allclose(linear(x).numpy(), x.numpy() @ linear.weight.numpy().T + linear.bias.numpy(), rtol=1e-4, atol=1e-5)
        self.assertLess(abs(linear.weight.numpy()).max(), 1 / math.sqrt(6))
        self.same(conv(image), nn.conv2d(image, conv.weight, conv.bias, 2, 1, 1, 2).numpy())
        self.assertEqual(nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)(image).shape, (2, 6, 12, 12))
        for module, function in [
                (nn.LayerNorm(6), nn.layer_norm), (nn.RMSNorm(6), nn.rms_norm), (nn.ReLU(), ra.relu), (nn.GELU(), ra.gelu), (nn.Tanh(), ra.tanh),
                (nn.LeakyReLU(0.2), lambda v: nn.leaky_relu(v, 0.2)), (nn.Softmax(0), lambda v: nn.softmax(v, 0))]:
            self.same(module(x), function(x).numpy())
        for module, function in [
                (nn.GroupNorm(2, 4), lambda v: nn.group_norm(v, 2)), (nn.MaxPool2d(2), lambda v: nn.max_pool2d(v, 2)),
                (nn.AvgPool2d(2, padding=1), lambda v: nn.avg_pool2d(v, 2, padding=1)), (nn.AdaptiveAvgPool2d((1, 1)), nn.global_avg_pool2d),
                (nn.Flatten(), lambda v: v.reshape(2, 100))]:
            self.same(module(image), function(image).numpy())
        self.same(nn.MSELoss(reduction="sum")(x, x * 2), nn.mse_loss(x, x * 2, "sum").numpy())
        attention = nn.SelfAttention(6, 2)
        tokens = ra.asarray(rng.standard_normal((2, 3, 6)).astype("f4"))
        self.assertEqual((attention(tokens, is_causal=True).shape, nn.CrossAttention(6, 3)(tokens, tokens[:, :2]).shape), ((2, 3, 6), (2, 3, 6)))
        # what comes later changes nothing before it
        changed = ra.concat([tokens[:, :2], tokens[:, 2:] + 1], axis=1)
        np.testing.assert_allclose(attention(changed, is_causal=True).numpy()[:, :2], attention(tokens, is_causal=True).numpy()[:, :2], rtol=1e-5)

    def test_masks_of_attention(self):
        """Beside NumPy in double, with gradients by differences along a random direction, of a mask that is added too."""
        def attend(q, k, v, m):
            s = q @ k.swapaxes(-1, -2) * 0.5
            s = np.where(m, s, -np.inf) if m.dtype == bool else s + m
            p = np.exp(s - s.max(-1, keepdims=True))
            return p / p.sum(-1, keepdims=True) @ v
        given = [rng.normal(size=s) for s in ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))]
        masks = [rng.random((5, 7)) < 0.6, rng.random((2, 1, 5, 7)) < 0.7, rng.normal(size=(2, 3, 5, 7)), rng.normal(size=(1, 3, 1, 7)), rng.normal(size=7)]
        for m in masks:
            if m.dtype == bool:
                m[..., 0] = True
            for dtype, tolerance in (("f4", 2e-5), ("f8", 1e-7)):
                arrays = [ra.asarray(x if x.dtype == bool else x.astype(dtype)) for x in (*given, m)]

                def of(q, k, v, m):
                    return (nn.scaled_dot_product_attention(q, k, v, attn_mask=m) ** 2).sum()
                got = nn.scaled_dot_product_attention(*arrays[:3], attn_mask=arrays[3])
                np.testing.assert_allclose(got.numpy(), attend(*given, m), rtol=0, atol=tolerance)
                by = (0, 1, 2) if m.dtype == bool else (0, 1, 2, 3)
                for i, slope in zip(by, ra.compile(ra.grad(of, by))(*arrays)):
                    along, h = rng.normal(size=slope.shape), 1e-5
                    ends = [(attend(*(x + sign * h * along if k == i else x for k, x in enumerate((*given, m)))) ** 2).sum() for sign in (1, -1)]
                    np.testing.assert_allclose((slope.numpy() * along).sum(), (ends[0] - ends[1]) / (2 * h), rtol=0, atol=20 * tolerance)
        # a mask that is a product of batches, and one that is the queries too
        x, w, square = (rng.normal(size=n) for n in ((2, 3, 5, 4), (4, 7), (2, 3, 4, 4)))
        cases = ((lambda w: attend(*given, x @ w), lambda w: nn.scaled_dot_product_attention(*map(ra.asarray, given), attn_mask=ra.asarray(x) @ w), w),
                 (lambda q: attend(q, q, q, q), lambda q: nn.scaled_dot_product_attention(q, q, q, attn_mask=q), square))
        for want, ours, at in cases:
            ours = (lambda f: lambda x: (f(x) ** 2).sum())(ours)
            along, h = rng.normal(size=at.shape), 1e-5
            slope = ra.grad(ours)(ra.asarray(at)).numpy()
            ends = [(want(at + sign * h * along) ** 2).sum() for sign in (1, -1)]
            np.testing.assert_allclose((slope * along).sum(), (ends[0] - ends[1]) / (2 * h), rtol=1e-6)
        with self.assertRaisesRegex(ValueError, r"attention: a mask f32 \(1, 1, 4, 7\) for q f32 \(2, 3, 5, 4\) and k f32"):
            nn.scaled_dot_product_attention(*(ra.asarray(x.astype("f4")) for x in given), attn_mask=ra.ones((4, 7)))
        nothing = nn.scaled_dot_product_attention(*(ra.asarray(x.astype("f4")) for x in given), attn_mask=ra.zeros((5, 7), dtype=ra.bool))
        self.same(nothing, np.zeros((2, 3, 5, 6), "f4"))
        self.assertEqual(nn.SelfAttention(6, 2)(ra.ones((2, 3, 6)), attn_mask=ra.ones((3, 3), dtype=ra.bool)).shape, (2, 3, 6))

    def test_queries_that_see_nothing(self):
        """Zeros, with gradients of zeros, of masks that are added and second ones too."""
        for dtype in ("f4", "f8"):
            q, k, v = (ra.asarray(rng.normal(size=(1, 2, 3, 4)).astype(dtype)) for _ in range(3))
            seen = np.ones((3, 3), bool)
            seen[0] = False
            added = ra.asarray(np.where(seen, 0, -np.inf).astype(dtype))

            def of(q, m):
                return (nn.scaled_dot_product_attention(q, k, v, attn_mask=m) ** 2).sum()
            self.assertTrue((nn.scaled_dot_product_attention(q, k, v, attn_mask=ra.asarray(seen)).numpy()[:, :, 0] == 0).all())
            for mask in (ra.asarray(seen), added):
                first = ra.grad(of)
                second = ra.grad(lambda q: (first(q, mask) ** 2).sum())(q).numpy()
                self.assertTrue(np.isfinite(second).all() and (second[:, :, 0] == 0).all() and (second[:, :, 1:] != 0).any())
            self.assertTrue(np.isfinite(ra.grad(of, 1)(q, added).numpy()).all())

    def test_convolutions_of_float64(self):
        """Beside loops, and gradients beside those in float32."""
        def loops(x, w, stride, before, dilation, groups):
            x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in before)])
            sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation)]
            out, of, into = np.zeros((len(x), len(w), *sizes)), w.shape[1], len(w) // groups
            for o in range(len(w)):
                group = slice(o // into * of, o // into * of + of)
                for at in np.ndindex(*sizes):
                    cut = tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, w.shape[2:]))
                    out[(slice(None), o, *at)] = (x[(slice(None), group, *cut)] * w[o]).sum(tuple(range(1, x.ndim)))
            return out
        for xs, ws, stride, pad, dilation, groups in (((2, 4, 9), (6, 2, 3), (2,), (1,), (1,), 2), ((2, 3, 7, 8), (4, 3, 3, 2), (1, 2), (2, 0), (2, 1), 1),
                                                      ((1, 2, 4, 5, 4), (3, 2, 2, 2, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1)):
            x, w, b, dims = rng.normal(size=xs), rng.normal(size=ws), rng.normal(size=ws[0]), len(xs) - 2
            conv, transposed = getattr(nn, f"conv{dims}d"), getattr(nn, f"conv_transpose{dims}d")
            wide, narrow = ([ra.asarray(v.astype(t)) for v in (x, w, b)] for t in ("f8", "f4"))
            y = loops(x, w, stride, pad, dilation, groups) + b.reshape(-1, *(1,) * dims)
            np.testing.assert_allclose(conv(*wide, stride, pad, dilation, groups).numpy(), y, rtol=0, atol=1e-12)
            back = transposed(ra.asarray(y), wide[1], None, stride, pad, 0, groups, dilation)
            turned = transposed(ra.asarray(y.astype("f4")), narrow[1], None, stride, pad, 0, groups, dilation)
            self.assertEqual((back.dtype, back.shape), (np.float64, turned.shape))
            np.testing.assert_allclose(back.numpy(), turned.numpy(), rtol=0, atol=2e-5 * np.abs(back.numpy()).max())
            slopes = [ra.compile(ra.grad(lambda *a: (conv(*a, stride, pad, dilation, groups) ** 2).sum(), (0, 1, 2)))(*arrays) for arrays in (wide, narrow)]
            for got, near in zip(*slopes):
                np.testing.assert_allclose(got.numpy(), near.numpy(), rtol=0, atol=2e-5 * np.abs(got.numpy()).max())

    def test_running_statistics(self):
        norm, x = nn.BatchNorm2d(3), rng.standard_normal((4, 3, 2, 5)).astype("f4") * 2 + 1
        step = nn.value_and_grad(norm, lambda v: (norm(v) * v).sum())
        mean, var = np.zeros(3), np.ones(3)
        steps = [step, nn.value_and_grad(norm, lambda v: (norm(v) * v).sum(), compiled=True)]
        for step in steps:
            _, slopes = step(ra.asarray(x))
            mean, var = 0.9 * mean + 0.1 * x.mean((0, 2, 3)), 0.9 * var + 0.1 * x.var((0, 2, 3), ddof=1)
        # float32 means of 40 numbers; dividing by roots of variances doubles the error of these
        np.testing.assert_allclose(norm.running_mean.numpy(), mean, rtol=1e-5)
        np.testing.assert_allclose(norm.running_var.numpy(), var, rtol=1e-5)
        self.assertEqual(set(slopes), {"weight", "bias"})
        self.assertEqual(set(norm.state_dict()), {"weight", "bias", "running_mean", "running_var"})
        got = norm.eval()(ra.asarray(x)).numpy()
        np.testing.assert_allclose(got, (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5), rtol=1e-4, atol=1e-5)

    def test_integers_are_drawn_once(self):
        for dtype, high in ((ra.int32, 2**31 - 1), (ra.int64, 2**62)):
            for count in (1, 7, 8):
                nn.manual_seed(1)
                parts = [random.integers(0, high, (count,), dtype=dtype).numpy() for _ in range(3)]
                self.assertEqual(len(np.unique(np.concatenate(parts))), 3 * count)
                nn.manual_seed(1)
                if count == 8:  # as many as one place of numbers begins a new one
                    np.testing.assert_array_equal(np.concatenate(parts), random.integers(0, high, (24,), dtype=dtype).numpy())

    def test_state(self):
        make = lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False)))
        nn.manual_seed(3)
        one, other = make(), make()
        x = ra.asarray(rng.standard_normal((5, 3)).astype("f4"))
        self.assertEqual(list(one.parameters()), ["0.weight", "0.bias", "1.weight", "1.bias", "2.1.weight"])
        self.assertGreater(abs(one(x).numpy() - other(x).numpy()).max(), 1e-3)
        other.load_state_dict(one.state_dict())
        self.same(other.eval()(x), one.eval()(x).numpy())
        nn.manual_seed(3)
        self.same(make()[0].weight, one[0].weight.numpy())
        with self.assertRaisesRegex(ValueError, "1.bias.*on one side alone"):
            other.load_state_dict({name: v for name, v in one.state_dict().items() if name != "1.bias"})
        with self.assertRaisesRegex(ValueError, r"0.bias is float32 \(3,\), and here float32 \(4,\)"):
            other.load_state_dict({**one.state_dict(), "0.bias": ra.zeros(3)})

    def test_loaded_and_given_out(self):
        """What is trained, assigned to or loaded afterwards changes neither what was loaded nor what was given out."""
        one, x = nn.Linear(2, 3), ra.ones((4, 2))
        given = {"weight": ra.ones((3, 2)), "bias": np.zeros(3, "f4")}
        one.load_state_dict(given)
        seen, weight = one.state_dict(), one.weight
        optim.SGD(lr=1.0).update(one, {"weight": ra.ones((3, 2)), "bias": ra.ones(3)})
        one.bias[0] = 7.0
        self.same(one.weight, np.zeros((3, 2), "f4"))
        self.same(one.bias, np.float32([7, -1, -1]))
        self.assertIs(one.weight, weight)  # who has the parameter still has it
        for state in (given, seen):
            self.same(ra.asarray(state["weight"]), np.ones((3, 2), "f4"))
            self.same(ra.asarray(state["bias"]), np.zeros(3, "f4"))
        given["weight"][:] = 5.0
        self.same(one.weight, np.zeros((3, 2), "f4"))
        one.load_state_dict(seen)
        self.same(one(x), np.full((4, 3), 2, "f4"))
        with self.assertRaisesRegex(ValueError, "bias is float64"):
            one.load_state_dict({"weight": np.ones((3, 2), "f4") * 9, "bias": np.zeros(3)})
        self.same(one.weight, np.ones((3, 2), "f4"))  # nothing is loaded of what does not fit

    def test_tied(self):
        """One array at several places is one parameter, whose gradient is the sum of theirs, at once and in a plan."""
        class Tied(nn.Module):
            def __init__(self):
                self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3)
                self.second.weight = self.first.weight
                self.again = self.second  # a module at two places

            def forward(self, x):
                return self.again(ra.tanh(self.second(ra.tanh(self.first(x)))))
        nn.manual_seed(2)
        model, x = Tied(), ra.asarray(rng.standard_normal((4, 3)).astype("f4"))
        self.assertEqual(list(model.parameters()), ["first.weight", "second.bias"])
        self.assertEqual(len(model.state_dict()), 5)
        w, b = (p.astype(ra.float64) for p in (model.first.weight, model.second.bias))

        def apart(first, second, third, bias, last):
            a = ra.tanh(x.astype(ra.float64) @ first.T)
            return ((ra.tanh(a @ second.T + bias) @ third.T + last) ** 2.0).sum()
        wants = ra.grad(apart, (0, 1, 2, 3, 4))(w, w, w, b, b)
        for compiled in (False, True):
            step = nn.value_and_grad(model, lambda x: (model(x) ** 2.0).sum(), compiled=compiled)
            _, slopes = step(x)
            self.assertEqual(list(slopes), ["first.weight", "second.bias"])
            # sums of a dozen float32 products of numbers near 1
            np.testing.assert_allclose(slopes["first.weight"].numpy(), sum(g.numpy() for g in wants[:3]), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(slopes["second.bias"].numpy(), sum(g.numpy() for g in wants[3:]), rtol=1e-4, atol=1e-5)
        optim.SGD(lr=0.1).update(model, slopes)
        self.assertIs(model.second.weight, model.first.weight)
        np.testing.assert_allclose(model.first.weight.numpy(), w.numpy() - 0.1 * slopes["first.weight"].numpy(), rtol=1e-5, atol=1e-6)
        # loading keeps them tied; one name is enough, and two values are refused
        state = model.state_dict()
        other = Tied()
        other.load_state_dict({name: v.numpy() for name, v in state.items() if not name.startswith(("second.weight", "again"))})
        self.assertIs(other.again.weight, other.first.weight)
        self.same(other(x), model(x).numpy())
        other.load_state_dict({name: v.numpy() for name, v in state.items()})
        with self.assertRaisesRegex(ValueError, "second.weight and first.weight are one array here, and have two values"):
            other.load_state_dict({**state, "second.weight": ra.zeros((3, 3))})
        # plans are of the places that were tied
        model.second.weight = ra.asarray(w.numpy().astype("f4"))
        self.assertEqual(list(step(x)[1]), ["first.weight", "second.weight", "second.bias"])
        with self.assertRaisesRegex(ValueError, "one array has several names"):
            optim.SGD().update({"a": w, "b": w}, {"a": w, "b": w})

    def test_modes_have_plans_of_their_own(self):
        model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
        x = ra.asarray(rng.standard_normal((6, 3)).astype("f4") + 4)
        steps = [nn.value_and_grad(model, lambda x: (model(x) ** 2.0).sum(), compiled=compiled) for compiled in (False, True)]
        model[1].eval()
        for training in (True, False, True):
            model[0].train(training)
            mean = model[0].running_mean.numpy()
            values = []
            for step in steps:
                model[0].running_mean = ra.asarray(mean)
                values.append(float(step(x)[0]))
            self.assertAlmostEqual(values[0], values[1], delta=1e-4 * abs(values[0]))
            self.assertEqual((model[0].running_mean.numpy() != mean).all(), training)
        with self.assertRaisesRegex(ValueError, "2 or 3"):
            steps[1](ra.ones((1, 2, 3, 3)))
        self.assertIsInstance(model[0].running_mean.numpy(), np.ndarray)  # what failed left nothing behind that has no values

    def test_running_statistics_have_values(self):
        norm, x = nn.BatchNorm1d(3), ra.asarray(rng.standard_normal((6, 3)).astype("f4"))
        ra.grad(lambda v: (norm(v) ** 3.0).sum())(x)
        np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * x.numpy().mean(0), rtol=1e-5)  # a mean of 6
        self.assertFalse(ra._array.is_lazy(norm.running_mean))
        with self.assertRaisesRegex(RuntimeError, "would not keep running statistics"):
            ra.compile(norm)(x)
        with self.assertRaisesRegex(RuntimeError, "within compile the parameters would stay"):
            ra.compile(nn.value_and_grad(norm, lambda v: norm(v).sum()))(x)
        with self.assertRaisesRegex(ValueError, "a channel needs several values"):
            norm(x[:1])
        self.same(ra.compile(norm.eval())(x), norm(x).numpy())

    def test_steps_that_failed_do_not_count(self):
        x, adam, other = ra.ones(3), optim.Adam(lr=0.1), optim.Adam(lr=0.1)
        with self.assertRaises(TypeError):
            adam.update({"a": x, "b": x + 1}, {"a": x + 0, "b": ra.ones(4)})
        self.assertEqual(adam.step, 0)
        for optimizer in (adam, other):
            p = ra.ones(3)
            optimizer.update({"a": p}, {"a": ra.full(3, 0.5)})
        self.assertEqual((adam.step, p.tolist()), (1, [p.tolist()[0]] * 3))

    def test_dropout(self):
        x = ra.ones((40, 50, 2, 2))
        for layer, axes in ((nn.Dropout(0.25), ()), (nn.Dropout2d(0.25), (2, 3))):
            first, second = layer(x).numpy(), layer(x).numpy()
            self.assertTrue(0.7 < (first > 0).mean() < 0.8 and (first != second).any())
            np.testing.assert_array_equal(first, np.broadcast_to(first.max(axes, keepdims=True), first.shape) if axes else first)
            # a plan drops others in each run, and their gradients with them
            nn.manual_seed(11)
            twice = ra.compile(lambda v: (layer(v) - layer(v), layer(v)))
            (apart, first), (_, second) = twice(x), twice(x)
            self.assertTrue((apart.numpy() != 0).any() and (first.numpy() != second.numpy()).any())
            nn.manual_seed(11)
            self.same(twice(x)[1], first.numpy())
            plan = ra.compile(ra.value_and_grad(lambda v: (layer(v) * 3.0).sum()))
            runs = [plan(x)[1].numpy() for _ in range(2)]
            self.assertTrue((runs[0] != runs[1]).any())
            for slope in runs:
                np.testing.assert_allclose(np.unique(slope), [0, 4], rtol=1e-6)
                self.assertTrue(0.7 < (slope > 0).mean() < 0.8)
            np.testing.assert_allclose(float(plan(x)[0]), 24000, rtol=0.1)
            self.same(layer.eval()(x), x.numpy())

    def test_learning(self):
        """Rings, by a network of vectors; bars that lie or stand, by one of images."""
        nn.manual_seed(1)
        angle, ring = rng.uniform(0, 2 * np.pi, 300), np.arange(300) % 3
        points = ((ring + 1 + 0.1 * rng.standard_normal(300)) * np.array([np.cos(angle), np.sin(angle)])).T
        model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
        self.learn(model, points, ring, optim.Adam(lr=0.03), 120)
        images, stands = 0.3 * rng.standard_normal((96, 1, 8, 8)), np.arange(96) % 2
        for image, upright, at in zip(images, stands, rng.integers(0, 8, 96)):
            (image[0].T if upright else image[0])[at] += 1
        model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(),
                              nn.GlobalAvgPool2d(), nn.Flatten(), nn.Linear(8, 2))
        self.learn(model, images, stands, optim.AdamW(lr=0.02), 60)

    def learn(self, model, x, target, optimizer, steps):
        x, t = ra.asarray(x.astype("f4")), ra.asarray(target)
        step = nn.value_and_grad(model, lambda x: nn.cross_entropy(model(x), t), compiled=True)
        for _ in range(steps):
            loss, slopes = step(x)
            optimizer.update(model, slopes)
        self.assertLess(float(loss), 0.2)
        self.assertGreater((model.eval()(x).numpy().argmax(1) == target).mean(), 0.95)

    def test_refusals(self):
        x = ra.ones((2, 3))
        for error, text, call in [
                (ValueError, "2 dimensions, not 4", lambda: nn.BatchNorm2d(3)(x)),
                (ValueError, "10 dimensions are not 3 equal heads", lambda: nn.MultiheadAttention(10, 3)),
                (ValueError, "'b'", lambda: optim.SGD().update({"a": x}, {"b": x})),
                (TypeError, "float16 are trained", lambda: optim.SGD().update({"a": x.astype(ra.float64)}, {"a": x})),
                (TypeError, "its gradient float32 (3, 2)", lambda: optim.SGD().update({"a": x}, {"a": x.T}))]:
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
